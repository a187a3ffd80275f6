"""The findings that a sentence speaks of: those of `findings.toml`, and the labeller's observations.

    sentence ─▶ words of findings.toml ─▶ the rest to the labeller ─▶ findings with polarity, side and place

A sentence that comes again is looked up.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from tabon.text.observations import Polarity, Side, polarity_at, sentence_mentions, side_of

GENERIC_DEVICE = "support devices"
_STAND_IN = "appearance"  # for hidden words: no finding, and no scope ends or begins at it
_OUT = "extubat"  # says by itself that the tube is gone
_DEVICES = "Support Devices"  # the lexicon says which one
_CLAUSE = re.compile(r";|, (?!left\b|right\b)|\bwith\b|\bbut\b|\bwhile\b|\btips?\b")


@dataclass(frozen=True, slots=True)
class Kind:
    """One finding of `findings.toml`."""

    name: str
    hides: bool  # its words are taken out before the labeller looks
    device: bool


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All findings, their words and how they hang together."""

    words: re.Pattern[str]  # group k<i> is kind i
    kinds: tuple[Kind, ...]
    devices: frozenset[str]
    lasting: frozenset[str]
    minor: frozenset[str]
    umbrella: frozenset[str]
    akin: Mapping[str, frozenset[str]]  # names that may stand for each other; none is its own

    def kind_of(self, found: re.Match[str]) -> Kind:
        """Return the kind whose words were found."""
        return self.kinds[int((found.lastgroup or "k0")[1:])]

    def akin_to(self, name: str) -> frozenset[str]:
        """Return the other names that a reader may use for this finding."""
        return self.akin.get(name, frozenset())


@cache
def lexicon() -> Lexicon:
    """Read and compile the lexicon, once."""
    book = tomllib.loads(files("tabon.text").joinpath("findings.toml").read_text(encoding="utf-8"))
    rows = book["findings"]
    groups = (f"(?P<k{index}>{'|'.join(row['words'])})" for index, row in enumerate(rows))
    kinds = tuple(Kind(row["name"], row.get("hides", False), row.get("device", False)) for row in rows)
    devices = frozenset(kind.name for kind in kinds if kind.device)
    akin: dict[str, set[str]] = {}
    for group in [*book["akin"], *([GENERIC_DEVICE, name] for name in sorted(devices - {GENERIC_DEVICE}))]:
        for name in group:
            akin.setdefault(name, set()).update(group)
    return Lexicon(
        words=re.compile(rf"\b(?:{'|'.join(groups)})"),
        kinds=kinds,
        devices=devices,
        lasting=frozenset({*book["lasting"], *(row["name"] for row in rows if row.get("lasting"))}),
        minor=frozenset(row["name"] for row in rows if row.get("minor")),
        umbrella=frozenset(book["umbrella"]),
        akin={name: frozenset(others - {name}) for name, others in akin.items()},
    )


def is_lasting(name: str) -> bool:
    """Whether a finding does not go away by itself, so that silence about it is no recovery.

    >>> is_lasting("scoliosis"), is_lasting("Cardiomegaly"), is_lasting("Pleural Effusion")
    (True, True, False)
    """
    return name in lexicon().lasting


class SentenceFinding(NamedTuple):
    """One finding as one sentence speaks of it."""

    name: str
    polarity: Polarity
    side: Side | None
    start: int  # of its words in the sentence
    end: int


@lru_cache(maxsize=1 << 16)
def sentence_findings(sentence: str) -> tuple[SentenceFinding, ...]:
    """Find what one sentence speaks of, the findings of the lexicon first.

    The side of a finding is the one that its clause gives before it, in its own words, or after it.

    >>> [found[:3] for found in sentence_findings("Left PICC, no granuloma.")]
    [('PICC', 'positive', 'left'), ('granuloma', 'negative', None)]
    """
    text = sentence.lower()
    words = [(word, lexicon().kind_of(word)) for word in lexicon().words.finditer(text)]
    found = []
    for word, kind in words:
        polarity = "negative" if word[0].startswith(_OUT) else polarity_at(text, *word.span())
        before, after = _CLAUSE.split(text[: word.start()])[-1], _CLAUSE.split(text[word.end() :])[0]
        side = side_of(before + word[0]) or side_of(after)
        found.append(SentenceFinding(kind.name, polarity, side, *word.span()))
    bare, places = _without(text, [word.span() for word, kind in words if kind.hides])
    found += [
        SentenceFinding(said.observation, said.polarity, said.side, places[said.start], places[said.end])
        for said in sentence_mentions(bare)
        if said.observation != _DEVICES
    ]
    return tuple(found)


def _without(text: str, hidden: Iterable[tuple[int, int]]) -> tuple[str, list[int]]:
    """Put the stand-in for hidden words; return the text and where each place of it was before.

    The labeller would read them otherwise.
    """
    pieces, places, last = [], [], 0
    for start, end in hidden:
        pieces += [text[last:start], _STAND_IN]
        places += [*range(last, start), *[start] * len(_STAND_IN)]
        last = end
    return "".join([*pieces, text[last:]]), [*places, *range(last, len(text) + 1)]
