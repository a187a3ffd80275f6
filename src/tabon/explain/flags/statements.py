"""What a report says, finding by finding: the labeller's mentions and those of the wider lexicon.

    sentence ─▶ words of findings.toml ─▶ the rest to the labeller ─▶ statements with polarity and side

A sentence and a report that come again are looked up.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tabon.explain.flags.lexicon import lexicon
from tabon.text.change_words import CHANGES, Change, ChangeWord, change_words
from tabon.text.observations import Polarity, Side, polarity_at, sentence_mentions, side_of
from tabon.text.reports import SECTIONS, Report, Section
from tabon.text.sentences import split_sentences

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

    def in_sentence(self, section: Section, sentence: int) -> tuple[Statement, ...]:
        """Return the statements of one sentence."""
        return tuple(said for said in self.statements if (said.section, said.sentence) == (section, sentence))


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
    """Find the statements of one sentence, those of the lexicon first; each once."""
    text = sentence.lower()
    words = tuple(lexicon().words.finditer(text))
    labelled = (
        _Found(said.observation, said.polarity, said.side)
        for said in sentence_mentions(_without_hidden(text, words))
        if said.observation != _DEVICES
    )
    return tuple(dict.fromkeys((*(_known(text, found) for found in words), *labelled)))


def _known(text: str, found: re.Match[str]) -> _Found:
    """Return what a sentence in small letters says of one finding of the lexicon."""
    name = lexicon().kind_of(found).name
    polarity = "negative" if found[0].startswith(_OUT) else polarity_at(text, *found.span())
    return _Found(name, polarity, _side_of(text, *found.span()))


def _without_hidden(text: str, words: tuple[re.Match[str], ...]) -> str:
    """Put a word that says nothing in place of those that the labeller would read otherwise."""
    for found in reversed(words):
        if lexicon().kind_of(found).hides:
            text = text[: found.start()] + _STAND_IN + text[found.end() :]
    return text


def _side_of(text: str, start: int, end: int) -> Side | None:
    """Return the side that the clause gives before a finding, in its own words, or after it."""
    before = _CLAUSE.split(text[:start])[-1]
    after = _CLAUSE.split(text[end:])[0]
    return side_of(before + text[start:end]) or side_of(after)


@lru_cache(maxsize=1 << 16)
def _changes_in(sentence: str) -> tuple[Change, ...]:
    """Find what one sentence tells of the time since the prior, each kind once."""
    text = sentence.lower()
    told = (word.change for word in change_words(sentence) if _tells_of_time(word, text))
    return tuple(dict.fromkeys(told))


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
