"""The phrase book: `phrases.toml`, read once and cut into choices.

A phrase such as `"[Stable|Unchanged] {np}."` becomes a template: parts, each with one option or
more. Every choice has a number of its own, in the order of the file, so that a reader can have a
favourite there.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count
from types import MappingProxyType
from typing import Any

_CHOICE = re.compile(r"\[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a phrase: fixed words, or a choice of words."""

    number: int
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrases:
    """Ways to say one thing: templates to choose from."""

    number: int
    templates: tuple[tuple[Part, ...], ...]


@dataclass(frozen=True, slots=True)
class Words:
    """How a kind of finding is named."""

    noun: Phrases
    grades: tuple[Phrases, ...]  # mild, moderate, severe, as adjectives
    adverbs: tuple[Phrases, ...]  # the same as an adverb ("mildly enlarged")
    present: Phrases | None  # phrases of its own for a finding without a change word
    mass: bool  # takes no article
    plural: bool


@dataclass(frozen=True, slots=True)
class PhraseBook:
    """All phrases, by what they are for."""

    ago: Phrases
    tail: Phrases
    findings: Mapping[str, Phrases]  # by course
    devices: Mapping[str, Phrases]
    impression: Mapping[str, Phrases]
    house: Mapping[str, Phrases]  # normal regions, as radiologists put it
    machine: Mapping[str, Phrases]  # and as a language model does
    chat: Mapping[str, Phrases]
    kinds: Mapping[str, Words]


def cut(phrase: str, numbers: Iterator[int]) -> tuple[Part, ...]:
    """Cut a phrase into its parts.

    >>> [part.options for part in cut("[Stable|Old] {np}.", count())]
    [('Stable', 'Old'), (' {np}.',)]
    """
    pieces = _CHOICE.split(phrase)  # words and choices take turns
    parts = (
        Part(next(numbers), tuple(piece.split("|")) if turn % 2 else (piece,))
        for turn, piece in enumerate(pieces)
    )
    return tuple(part for part in parts if part.options != ("",))


def _phrases(ways: list[str], numbers: Iterator[int]) -> Phrases:
    """The ways to say one thing."""
    return Phrases(next(numbers), tuple(cut(way, numbers) for way in ways))


def _table(rows: Mapping[str, list[str]], numbers: Iterator[int]) -> Mapping[str, Phrases]:
    """A table of phrases by name."""
    return MappingProxyType({name: _phrases(ways, numbers) for name, ways in rows.items()})


def _words(row: Mapping[str, Any], numbers: Iterator[int]) -> Words:
    """The words for one kind of finding; a grade is mild, moderate or severe unless the file says more."""
    grades = row.get("grades", ["mild", "moderate", "severe"])
    adverbs = row.get("grade_adverbs", grades)
    return Words(
        noun=_phrases([row["noun"]], numbers),
        grades=tuple(_phrases([grade], numbers) for grade in grades),
        adverbs=tuple(_phrases([adverb], numbers) for adverb in adverbs),
        present=_phrases(row["present"], numbers) if "present" in row else None,
        mass=row.get("mass", False),
        plural=row.get("plural", False),
    )


@cache
def phrase_book() -> PhraseBook:
    """The phrase book that ships with tabon."""
    book = tomllib.loads(files("tabon.data.simulate").joinpath("phrases.toml").read_text(encoding="utf-8"))
    numbers = count(1)
    tables = {name: _table(book[name], numbers) for name in ("findings", "devices", "impression", "chat")}
    return PhraseBook(
        ago=_phrases(book["ago"], numbers),
        tail=_phrases(book["tail"], numbers),
        house=_table(book["normals"], numbers),
        machine=_table(book["machine"], numbers),
        kinds=MappingProxyType({kind: _words(row, numbers) for kind, row in book["kinds"].items()}),
        **tables,
    )
