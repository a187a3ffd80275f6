"""A streaming selector: text of drafts in, which of them to stop out, and in the end which to take."""

from collections.abc import Collection
from dataclasses import replace

from tabon.errors import BadInputError
from tabon.method.selection import Note, Selection
from tabon.selectors.scorer import AnySelector
from tabon.selectors.streaming.race import Decision, Race
from tabon.selectors.streaming.rules import Halving, Rule
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
            partial: compares beginnings of drafts; the same selector where it is left out.
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
        asked = Query(id="", priors=(report,), candidates=(), patient=patient)
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
