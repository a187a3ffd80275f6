"""What a report says, finding by finding, and of change; a report that comes again is looked up."""

from dataclasses import dataclass
from functools import lru_cache

from tabon.text.change_words import Change, sentence_changes
from tabon.text.findings import sentence_findings
from tabon.text.observations import Polarity, Side
from tabon.text.reports import SECTIONS, Report, Section
from tabon.text.sentences import split_sentences

HELD = ("positive", "uncertain")


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
        dict.fromkeys(
            Statement(found.name, found.polarity, found.side, section, index)
            for section, index, sentence in sentences
            for found in sentence_findings(sentence)
        )
    )
    changes = tuple(
        dict.fromkeys(
            ChangeSaid(word.change, section, index)
            for section, index, sentence in sentences
            for word in sentence_changes(sentence)
            if word.told
        )
    )
    named = frozenset(said.name for said in statements)
    return Reading(statements, changes, named, frozenset(said.name for said in statements if said.held))
