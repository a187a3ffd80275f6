"""Which words of a sentence were lost, and which are new, beside the sentence that it takes the place of.

    "Nodule of 6 mm is stable." ─▶ "The nodule is stable."      lost: of 6 mm      added: The

Words are compared without case and punctuation, a number with its unit as one word. What changed among
numbers, sides, amounts and words of change is named: these are what a reader must not overlook.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NamedTuple, get_args

from tabon.text.marks import NUMBER, Mark, MarkKind, marks, number_meaning

MOST_WORDS: Final = 400  # of a sentence that is compared word by word; a longer one is lost and added whole
_WORD = re.compile(rf"{NUMBER}|\w+(?:['\u2019]\w+)*", re.IGNORECASE)


class Span(NamedTuple):
    """A piece of a sentence: sentence[start:end]."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Turn:
    """What one kind of marked word says before and after; empty where it says nothing."""

    kind: MarkKind
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    """The words that differ between two sentences."""

    lost: tuple[Span, ...]  # of the earlier sentence
    added: tuple[Span, ...]  # of the later one
    turns: tuple[Turn, ...]


def differences(prior: str, current: str) -> Differences:
    """Compare two sentences word by word.

    >>> found = differences("Nodule of 6 mm is unchanged.", "The nodule is stable.")
    >>> found.lost, found.turns
    ((Span(start=7, end=14), Span(start=18, end=27)), (Turn(kind='number', before=('6 mm',), after=()),))
    """
    before, after = _words(prior), _words(current)
    same = [] if max(len(before), len(after)) > MOST_WORDS else _same(prior, current, before, after)
    return Differences(
        lost=_rest(before, {i for i, _ in same}),
        added=_rest(after, {j for _, j in same}),
        turns=tuple(_turns(prior, current)),
    )


def _words(sentence: str) -> list[Span]:
    """Return where the words of a sentence are."""
    return [Span(*found.span()) for found in _WORD.finditer(sentence)]


def _same(prior: str, current: str, before: Sequence[Span], after: Sequence[Span]) -> list[tuple[int, int]]:
    """Return the pairs of words that stayed, as places among the words."""
    old, new = (
        [number_meaning(text[word.start : word.end].casefold()) for word in words]
        for text, words in ((prior, before), (current, after))
    )
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return [(i + step, j + step) for i, j, size in blocks for step in range(size)]


def _rest(words: Sequence[Span], kept: set[int]) -> tuple[Span, ...]:
    """Return the words that are not kept, those side by side as one piece."""
    found: list[Span] = []
    for place, word in enumerate(words):
        if place in kept:
            continue
        if found and place - 1 not in kept:
            found[-1] = Span(found[-1].start, word.end)
        else:
            found.append(word)
    return tuple(found)


def _turns(prior: str, current: str) -> list[Turn]:
    """Return what marked words say on one side and not on the other, by kind."""
    before, after = marks(prior), marks(current)
    sides = ((prior, before, after), (current, after, before))
    found = []
    for kind in get_args(MarkKind):
        said = [_only(kind, *side) for side in sides]
        if any(said):
            found.append(Turn(kind, *said))
    return found


def _only(kind: MarkKind, sentence: str, own: Sequence[Mark], other: Sequence[Mark]) -> tuple[str, ...]:
    """Return the words of one kind whose meaning the other sentence does not have."""
    known = {mark.meaning for mark in other if mark.kind == kind}
    words = (
        sentence[mark.start : mark.end] for mark in own if mark.kind == kind and mark.meaning not in known
    )
    return tuple(dict.fromkeys(words))
