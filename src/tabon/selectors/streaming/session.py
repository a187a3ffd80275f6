"""A streaming selector: text of drafts in, which of them to stop out, and in the end which to take.

Finished drafts can be replayed as if they were being written, one word at a time, in step: decisions do
not depend on who is ahead, so each query gets what its own session would have said.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tabon.errors import BadInputError
from tabon.method.selection import Note, Selection
from tabon.selectors.scorer import AnySelector
from tabon.selectors.streaming.draft_text import Unit
from tabon.selectors.streaming.rules import Decision, Halving, Margin, Race, Rule
from tabon.text.records import Query
from tabon.text.reports import Report, report_from_record


class StreamingSelector:
    """Any selector, with drafts that are still being written."""

    def __init__(
        self, selector: AnySelector, *, partial: AnySelector | None = None, rule: Rule | None = None
    ) -> None:
        """Take the selector that has the last word.

        Args:
            selector: chooses among the drafts that were finished.
            partial: compares beginnings of drafts; the same selector if it is left out.
            rule: says which beginnings are stopped.
        """
        self.selector, self.partial = selector, selector if partial is None else partial
        self.rule = Halving() if rule is None else rule

    @property
    def signature(self) -> str:
        """Return what goes under every number: the selector's line, the rule, and who compares beginnings."""
        partial = "same" if self.partial is self.selector else f"({self.partial.signature})"
        return f"{self.selector.signature}|rule:{self.rule.name}|partial:{partial}"

    def open(
        self, prior: Report | str, num_candidates: int, *, patient: str | None = None
    ) -> "StreamingSession":
        """Return a session for the drafts of one visit."""
        if num_candidates < 1:
            raise BadInputError(f"num_candidates is {num_candidates}; give 1 or more")
        report = prior if isinstance(prior, Report) else report_from_record(prior)
        asked = Query(id="", prior=report, candidates=(), patient=patient)
        return StreamingSession(self, Race.start(asked, self.rule, num_candidates))


class StreamingSession:
    """The drafts of one visit while they are written; made by `StreamingSelector.open`."""

    def __init__(self, streaming: StreamingSelector, race: Race) -> None:
        """Begin with nothing written."""
        self._streaming, self._race = streaming, race

    @property
    def stopped(self) -> tuple[int, ...]:
        """Return the drafts that were stopped."""
        return tuple(sorted(self._race.stopped))

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Return what was decided so far."""
        return tuple(self._race.decisions)

    def feed(self, draft: int, text_delta: str) -> tuple[int, ...]:
        """Take more text of a draft; return the drafts to stop now.

        What still arrives of a stopped draft is ignored: it was under way.

        Raises:
            BadInputError: there is no such draft, or it was finished.
        """
        self._check(draft)
        if draft in self._race.stopped:
            return ()
        self._race.drafts[draft].feed(text_delta)
        return self._advance()

    def finish(self, draft: int) -> tuple[int, ...]:
        """Take a draft as whole; return the drafts to stop now.

        Raises:
            BadInputError: there is no such draft, or it was finished before.
        """
        self._check(draft)
        if draft in self._race.stopped:
            return ()
        self._race.drafts[draft].finish()
        return self._advance()

    def result(self) -> Selection:
        """Choose among the drafts that were finished; flags name the others as `stopped:DRAFT`.

        A stopped draft keeps its place and has the distance of a draft without text.

        Raises:
            BadInputError: a draft is still being written.
        """
        race = self._race
        running = [n for n, one in enumerate(race.drafts) if n not in race.stopped and not one.finished]
        if running:
            raise BadInputError(f"draft {running[0]} is still being written; finish it first")
        [selection] = self._streaming.selector.select_many([self._race.query()])
        return with_stopped(selection, self._race.stopped, self._streaming.signature)

    def _check(self, draft: int) -> None:
        """Refuse a draft that there is not, or that is finished."""
        count = len(self._race.drafts)
        if not 0 <= draft < count:
            raise BadInputError(f"there is no draft {draft}; they count from 0 to {count - 1}")
        if self._race.drafts[draft].finished:
            raise BadInputError(f"draft {draft} was finished; open a new session for other drafts")

    def _advance(self) -> tuple[int, ...]:
        """Decide all that is due; return who of the stopped is still being written."""
        lost: set[int] = set()
        while (query := self._race.due()) is not None:
            [selection] = self._streaming.partial.select_many([query])
            lost |= self._race.decide(selection)
        return tuple(sorted(draft for draft in lost if not self._race.drafts[draft].finished))


def with_stopped(selection: Selection, stopped: Collection[int], signature: str) -> Selection:
    """Say `stopped` of a draft where the selector says that it lacks sections."""
    kept = (note for note in selection.flags if note.kind != "draft-lacks" or note.draft not in stopped)
    flags = (*kept, *(Note("stopped", draft=draft) for draft in sorted(stopped)))
    return replace(selection, flags=flags, signature=signature)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One query after its race."""

    selection: Selection
    stopped: frozenset[int]
    written: tuple[int, ...]  # words of each draft until it was stopped or had ended
    words: tuple[int, ...]  # words of each draft as it is


def replay(
    streaming: StreamingSelector, queries: Sequence[Query], texts: Sequence[Sequence[str]]
) -> list[Replayed]:
    """Return what would have been written and selected, one for each query; `texts` are its drafts."""
    races = [
        written_race(streaming.rule, query, drafts) for query, drafts in zip(queries, texts, strict=True)
    ]
    while due := [(race, query) for race in races if (query := race.due()) is not None]:
        selections = streaming.partial.select_many([query for _, query in due])
        for (race, _), selection in zip(due, selections, strict=True):
            race.decide(selection)
    final = streaming.selector.select_many([race.query() for race in races])
    found = []
    for race, selection in zip(races, final, strict=True):
        stops = {draft: made.words for made in race.decisions for draft in made.stopped}
        words = tuple(len(draft.text.split()) for draft in race.drafts)
        written = tuple(min(length, stops.get(draft, length)) for draft, length in enumerate(words))
        chosen = with_stopped(selection, race.stopped, streaming.signature)
        found.append(Replayed(chosen, frozenset(race.stopped), written, words))
    return found


def saved(replayed: Sequence[Replayed]) -> float:
    """Return the share of all words that were not written; 0 if there are none."""
    everything = sum(sum(one.words) for one in replayed)
    return 1 - sum(sum(one.written) for one in replayed) / everything if everything else 0.0


def written_race(rule: Rule, query: Query, texts: Sequence[str]) -> Race:
    """Return a query's race with every draft written to its end and nothing decided."""
    race = Race.start(query, rule, len(texts))
    for draft, text in zip(race.drafts, texts, strict=True):
        draft.feed(text)
        draft.finish()
    return race


def calibrated_margin(
    streaming: StreamingSelector,
    queries: Sequence[Query],
    texts: Sequence[Sequence[str]],
    *,
    points: tuple[int, ...],
    unit: Unit = "words",
    lost: float = 0.1,
) -> Margin:
    """Return margins that stop the selector's own pick in a share `lost` of these queries, at each point.

    Raises:
        BadInputError: `lost` is no share, or there is nothing to learn from.
    """
    if not 0 <= lost <= 1:
        raise BadInputError(f"lost is {lost}; give a share from 0 to 1")
    finals = streaming.selector.select_many(
        [written_race(streaming.rule, *one).query() for one in zip(queries, texts, strict=True)]
    )
    margins = []
    for point in points:
        rule = Halving((point,), unit)
        begun = [
            (due, final.selected)
            for query, drafts, final in zip(queries, texts, finals, strict=True)
            if (due := written_race(rule, query, drafts).due()) is not None and final.selected is not None
        ]
        selections = streaming.partial.select_many([due for due, _ in begun])
        behind = [  # how much worse than the best beginning the later pick's beginning was
            selection.total_distances[pick] - min(selection.total_distances)
            for selection, (_, pick) in zip(selections, begun, strict=True)
            if selection.total_distances
        ]
        if not behind:
            raise BadInputError(
                "nothing to compare at one of the points; give longer drafts or earlier points"
            )
        margins.append(float(np.quantile(behind, 1 - lost, method="higher")))
    return Margin(points, tuple(margins), unit)
