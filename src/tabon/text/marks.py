"""The words of a sentence that a reader must not overlook: numbers, sides, amounts, changes.

    "Small left effusion, now 3 cm, has increased." ─▶ amount, side, number, change

Each has a meaning, by which two sentences can be compared: "6-mm" and "6 mm" are one number, "unchanged"
and "stable" one change.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from tabon.text.attributes import grade_words
from tabon.text.change_words import CHANGES, sentence_changes
from tabon.text.observations import side_words

MarkKind = Literal["number", "side", "severity", "change"]

_FIGURE = r"\d+(?:[.,/]\d+)*"
_UNIT = r"(?:\s?-?(?:mm|cm|millimet\w+|centimet\w+|ml|cc|%|percent|degrees?)|st|nd|rd|th)"
_COUNTED = "two|three|four|five|six|seven|eight|nine|ten"
NUMBER: Final = (
    rf"(?<!\w)[a-z]?{_FIGURE}(?:\s?(?:x|by|-|to)\s?[a-z]?{_FIGURE})*{_UNIT}?(?!\w)|\b(?:{_COUNTED})\b"
)
"""A figure with its unit, several that belong together ("3 x 4 cm", "T8-T9"), or a small count in letters."""

_NUMBER = re.compile(NUMBER)


@dataclass(frozen=True, slots=True)
class Mark:
    """A word, or some, of one kind: sentence[start:end]."""

    kind: MarkKind
    start: int
    end: int
    meaning: str


@lru_cache(maxsize=1 << 16)
def marks(sentence: str) -> tuple[Mark, ...]:
    """Find the words of one sentence that a reader must not overlook, in their order; none overlap.

    >>> [(one.kind, one.meaning) for one in marks("Small left effusion, now 3-cm, has increased.")]
    [('severity', '1'), ('side', 'left'), ('number', '3cm'), ('change', 'worse')]
    """
    kept: list[Mark] = []
    for mark in _found(sentence):
        if mark.start < mark.end <= len(sentence) and not any(
            mark.start < other.end and other.start < mark.end for other in kept
        ):
            kept.append(mark)
    return tuple(sorted(kept, key=lambda mark: mark.start))


def number_meaning(words: str) -> str:
    """Return what two ways to write a number in small letters have in common; other words stay as they are.

    >>> number_meaning("3 x 4-cm") == number_meaning("3x4 cm"), number_meaning("by")
    (True, 'by')
    """
    return re.sub(r"[\s-]+", "", re.sub(r"(?<=\d)\s?(?:x|by)\s?(?=\d)", "x", words))


def _found(sentence: str) -> Iterator[Mark]:
    """Yield all marks; of those that overlap the first counts."""
    text = sentence.lower()
    for word in sentence_changes(sentence):
        if word.change in CHANGES:
            yield Mark("change", word.start, word.end, word.change)
    for found in _NUMBER.finditer(text):
        yield Mark("number", found.start(), found.end(), number_meaning(found[0]))
    for start, end, side in side_words(text):
        yield Mark("side", start, end, side)
    for start, end, grade in grade_words(text):
        yield Mark("severity", start, end, f"{grade:g}")
