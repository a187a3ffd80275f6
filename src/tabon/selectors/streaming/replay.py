"""Finished drafts as if they were being written: what a rule would have stopped, and what that saves.

All drafts of a query write one word at a time, in step. A word is what stands
between blanks. Decisions do not depend on who is ahead, so many queries are
decided together, and each gets what its own session would have said.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tabon.method.selection import Selection
from tabon.selectors.streaming.race import Race
from tabon.selectors.streaming.rules import Rule
from tabon.selectors.streaming.session import StreamingSelector, with_stopped
from tabon.text.records import Query


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
    signature = streaming.signature
    return [
        Replayed(
            selection=with_stopped(selection, race.stopped, signature),
            stopped=frozenset(race.stopped),
            written=tuple(_words(race)),
            words=tuple(len(draft.text.split()) for draft in race.drafts),
        )
        for race, selection in zip(races, final, strict=True)
    ]


def saved(replayed: Sequence[Replayed]) -> float:
    """Return the share of all words that were not written; 0 where there are none."""
    everything = sum(sum(one.words) for one in replayed)
    return 1 - sum(sum(one.written) for one in replayed) / everything if everything else 0.0


def written_race(rule: Rule, query: Query, texts: Sequence[str]) -> Race:
    """Return a query's race with every draft written to its end and nothing decided."""
    race = Race.start(query, rule, len(texts))
    for draft, text in zip(race.drafts, texts, strict=True):
        draft.feed(text)
        draft.finish()
    return race


def _words(race: Race) -> Iterator[int]:
    """Yield the words that each draft wrote until it was stopped."""
    stops = {draft: made.words for made in race.decisions for draft in made.stopped}
    for number, draft in enumerate(race.drafts):
        length = len(draft.text.split())
        yield min(length, stops.get(number, length))
