"""Which words a section should hold, and how far a draft is from them.

A draft's word is the report's with some chance, else anybody's: so common words
prove little, and rare ones much. A word that hardly any training report
holds is unexpected: it is never expected, and makes a draft longer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from tabon.method.bank import TransitionBank
from tabon.selectors.fused.expectation import (
    Expectation,
    Expectations,
    Habits,
    Held,
    Odds,
    asked,
    habits,
    how_often,
    remembered,
)
from tabon.selectors.fused.samples import sample_rows
from tabon.selectors.scorer import Batch, Distances
from tabon.text.reports import SECTIONS, Section

FAITHFUL: Final = 0.5  # how often a draft's word is the report's own
KNOWN: Final = 3  # training reports that make a word known
TRANSITIONS: Final = 4096  # training transitions that stand for all
LIKELY: Final = 0.5  # probability of a word that is shown,
SHOWN: Final = 6  # and how many of them are, the rarest first
Words = frozenset[str]

_WORD = re.compile(r"[a-z0-9]+")


def words_of(sentences: Iterable[str]) -> Words:
    """Return the words of a section: letters and digits, in lower case.

    >>> sorted(words_of(["No T1 fracture.", "No effusion."]))
    ['effusion', 'fracture', 'no', 't1']
    """
    return frozenset().union(*map(_in_sentence, sentences))


@remembered
def _in_sentence(sentence: str) -> Words:
    """Return the words of one sentence."""
    return frozenset(_WORD.findall(sentence.lower()))


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The words that training reports use in a section, and their habits."""

    places: Mapping[str, int]
    habits: Habits

    def held(self, sections: Sequence[Words]) -> tuple[Held, Odds]:
        """Return which known words each section holds, and how many unexpected ones."""
        return _held(sections, self.places), np.array([len(words - self.places.keys()) for words in sections])


@dataclass(frozen=True)
class ExpectedWords:
    """How far each draft's words are from those that are to be expected, in spreads."""

    bank: TransitionBank

    def distances(self, batch: Batch, section: Section) -> tuple[Distances, Distances]:
        """Return each draft's distance to what the prior lets expect, and to what the drafts say.

        NaN where a draft lacks the section. Without a prior, the first is to what reports hold at all.
        """
        known, (by_prior, by_drafts) = self._vocabularies[section], np.full((2, len(batch.drafts)), np.nan)
        for query, rows in asked(batch, section):
            drafts, unexpected = known.held([words_of(batch.drafts[row][section]) for row in rows])
            words = words_of(batch.priors[query][section])
            prior, counts = known.held([words])[0], 1.0 if words else 0.0
            by_prior[rows] = known.habits.distances(drafts, prior, counts, unexpected, votes=0.0)
            by_drafts[rows] = known.habits.distances(drafts, prior, 0.0, unexpected)
        return by_prior, by_drafts

    def expected(self, batch: Batch, section: Section, row: int) -> Expectations:
        """Return the rarest words that prior and drafts make likely, and whether a draft has them."""
        known, query = self._vocabularies[section], int(batch.owner[row])
        rows = [each for each in batch.rows(query) if batch.drafts[each][section]]
        said, prior = (
            [words_of(batch.drafts[each][section]) for each in rows],
            words_of(batch.priors[query][section]),
        )
        drafts, before = known.held(said)[0], known.held([prior])[0]
        chances = known.habits.chances(drafts, before, 1.0 if prior else 0.0)[0]
        rare = {
            word: known.habits.ever[known.places[word]]
            for word in prior.union(*said) & known.places.keys()
            if chances[known.places[word]] >= LIKELY
        }
        own = words_of(batch.drafts[row][section])
        return tuple(
            Expectation(word, float(chances[known.places[word]]), word in own)
            for word in sorted(rare, key=lambda word: (rare[word], word))[:SHOWN]
        )

    @cached_property
    def _vocabularies(self) -> dict[Section, Vocabulary]:
        """Return what a sample of the bank's transitions tells, by section."""
        return {section: self._counted(section) for section in SECTIONS}

    def _counted(self, section: Section) -> Vocabulary:
        """Count over the transitions that have the section on both sides."""
        pairs = self.bank.pairs[section]
        rows = sample_rows(pairs.present(), TRANSITIONS).tolist()
        sentences = self.bank.table.sentences
        prior, current = (
            [words_of(sentences[place] for place in sets[row]) for row in rows]
            for sets in (pairs.prior, pairs.current)
        )
        counts = Counter(word for words in current for word in words)
        known = sorted(word for word, count in counts.items() if count >= KNOWN)
        places = {word: place for place, word in enumerate(known)}
        after = _held(current, places)
        anybodys = (1.0 - FAITHFUL) * how_often(after)
        return Vocabulary(
            places, habits(_held(prior, places), after, found=FAITHFUL + anybodys, imagined=anybodys)
        )


def _held(sections: Sequence[Words], places: Mapping[str, int]) -> Held:
    """Return which known words each section holds, (sections, words)."""
    found = np.zeros((len(sections), len(places)), dtype=bool)
    for row, words in enumerate(sections):
        found[row, [places[word] for word in words if word in places]] = True
    return found
