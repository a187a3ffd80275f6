"""What a report says, finding by finding: the labeller's observations and those of `findings.toml`.

    sentence ─▶ words of findings.toml ─▶ the rest to the labeller ─▶ statements with polarity and side

A sentence and a report that come again are looked up.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from tabon.text.change_words import CHANGES, Change, ChangeWord, change_words
from tabon.text.observations import Polarity, Side, polarity_at, sentence_mentions, side_of
from tabon.text.reports import SECTIONS, Report, Section
from tabon.text.sentences import split_sentences

GENERIC_DEVICE = "support devices"
HELD = ("positive", "uncertain")
_STAND_IN = "appearance"  # for hidden words: no finding, and no scope ends or begins at it
_OUT = "extubat"  # says by itself that the tube is gone
_DEVICES = "Support Devices"  # the lexicon says which one
_CLAUSE = re.compile(r";|, (?!left\b|right\b)|\bwith\b|\bbut\b|\bwhile\b|\btips?\b")
_DESCRIBES = re.compile(
    r"(?:increas|decreas|reduc|diminish)(?!ing)|more |less |greater|larger|smaller|bigger|better"
)
_ADVICE = re.compile(r"continued (?:\w+ )?(?:follow|surveillance|attention|monitor|observation)")
_LOOKS_BACK = re.compile(r"interval|previous|prior|earlier|preceding|last|comparison")
_NOTHING_THERE = re.compile(r"\b(?:no|without|none|not)\b[\w\s]*\Z")
_HAPPENED = re.compile(r"\b(?:has|have|had|been|interval|now|since|further|slightly|some)\W*(?:\w+ly\W+)?\Z")


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
    book = tomllib.loads(files(__package__).joinpath("findings.toml").read_text(encoding="utf-8"))
    rows = book["findings"]
    groups = (f"(?P<k{index}>{'|'.join(row['words'])})" for index, row in enumerate(rows))
    kinds = tuple(Kind(row["name"], row.get("hides", False), row.get("device", False)) for row in rows)
    devices = [[GENERIC_DEVICE, kind.name] for kind in kinds if kind.device and kind.name != GENERIC_DEVICE]
    akin: dict[str, set[str]] = {}
    for group in [*book["akin"], *devices]:
        for name in group:
            akin.setdefault(name, set()).update(group)
    return Lexicon(
        words=re.compile(rf"\b(?:{'|'.join(groups)})"),
        kinds=kinds,
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


@dataclass(frozen=True, slots=True)
class Statement:
    """One finding as one sentence speaks of it."""

    name: str
    polarity: Polarity
    side: Side | None
    section: Section
    sentence: int

    @property
    def held(self) -> bool:
        """Whether the finding is said to be there, for sure or perhaps."""
        return self.polarity in HELD


@dataclass(frozen=True, slots=True)
class ChangeSaid:
    """One word of change in a section."""

    change: Change
    section: Section
    sentence: int


@dataclass(frozen=True, slots=True)
class Reading:
    """All that a report says of findings and of change."""

    statements: tuple[Statement, ...]
    changes: tuple[ChangeSaid, ...]
    named: frozenset[str]  # what some sentence speaks of
    held: frozenset[str]  # what some sentence says to be there, for sure or perhaps

    def about(self, name: str) -> tuple[Statement, ...]:
        """Return the statements about one finding."""
        return tuple(said for said in self.statements if said.name == name)


@lru_cache(maxsize=1 << 12)
def read(report: Report) -> Reading:
    """Read both sections.

    >>> reading = read(Report("Left PICC. No granuloma."))
    >>> [(said.name, said.polarity, said.side) for said in reading.statements]
    [('PICC', 'positive', 'left'), ('granuloma', 'negative', None)]
    """
    sentences = [
        (section, index, sentence)
        for section in SECTIONS
        for index, sentence in enumerate(split_sentences(report.section(section)))
    ]
    statements = tuple(
        Statement(*found, section, index)
        for section, index, sentence in sentences
        for found in _in_sentence(sentence)
    )
    changes = tuple(
        ChangeSaid(change, section, index)
        for section, index, sentence in sentences
        for change in _changes_in(sentence)
    )
    named = frozenset(said.name for said in statements)
    return Reading(statements, changes, named, frozenset(said.name for said in statements if said.held))


class _Found(NamedTuple):
    name: str
    polarity: Polarity
    side: Side | None


@lru_cache(maxsize=1 << 16)
def _in_sentence(sentence: str) -> tuple[_Found, ...]:
    """Find the statements of one sentence, those of the lexicon first; each once.

    The side of a finding is the one that its clause gives before it, in its own words, or after it.
    """
    bare = text = sentence.lower()
    words = [(word, lexicon().kind_of(word)) for word in lexicon().words.finditer(text)]
    found = []
    for word, kind in words:
        polarity = "negative" if word[0].startswith(_OUT) else polarity_at(text, *word.span())
        before, after = _CLAUSE.split(text[: word.start()])[-1], _CLAUSE.split(text[word.end() :])[0]
        found.append(_Found(kind.name, polarity, side_of(before + word[0]) or side_of(after)))
    for word, kind in reversed(words):
        if kind.hides:  # the labeller would read it otherwise
            bare = bare[: word.start()] + _STAND_IN + bare[word.end() :]
    found += [
        _Found(said.observation, said.polarity, said.side)
        for said in sentence_mentions(bare)
        if said.observation != _DEVICES
    ]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=1 << 16)
def _changes_in(sentence: str) -> tuple[Change, ...]:
    """Find what one sentence tells of the time since the prior, each kind once."""
    text = sentence.lower()
    changes = (word.change for word in change_words(sentence) if _tells_of_time(word, text))
    return tuple(dict.fromkeys(changes))


def _tells_of_time(word: ChangeWord, text: str) -> bool:
    """Whether a word looks back at the prior.

    "Has increased" and "increasing" do, "increased markings" may only describe;
    "no prior studies" is no look at one, and "continued follow-up" looks ahead.
    """
    before = text[: word.start]
    if word.change not in CHANGES:
        return _LOOKS_BACK.search(word.text) is not None and _NOTHING_THERE.search(before) is None
    if _ADVICE.match(text, word.start):
        return False
    return _DESCRIBES.match(word.text) is None or _HAPPENED.search(before) is not None
