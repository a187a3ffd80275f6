"""Which of the 14 observations the whole report should hold, and how far a draft is from them."""

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
    asked,
    habits,
    remembered,
)
from tabon.selectors.fused.samples import sample_rows
from tabon.selectors.scorer import Batch, Distances
from tabon.text.observations import NO_FINDING, NOT_A_FINDING, OBSERVATIONS, label_text
from tabon.text.reports import SECTIONS, Section

TRANSITIONS: Final = 1024  # training transitions that stand for all
FOUND, IMAGINED = 0.7, 0.1  # how often a draft names what is there, and what is not
PRIOR_COUNTS: Final = 2.0  # how much more than its odds the prior says

_SICK = np.array([name not in NOT_A_FINDING for name in OBSERVATIONS])
_NOTHING = OBSERVATIONS.index(NO_FINDING)


def held(reports: Iterable[Sequence[str]]) -> Held:
    """Return which observations each report holds, from its sentences, (reports, 14)."""
    rows = []
    for sentences in reports:
        found: Held = np.zeros(len(OBSERVATIONS), dtype=bool)
        for sentence in sentences:
            found |= _in_sentence(sentence)
        found[_NOTHING] = bool(sentences) and not found[_SICK].any()  # where nothing is ill
        rows.append(found)
    return np.array(rows, dtype=bool).reshape(len(rows), len(OBSERVATIONS))


@remembered
def _in_sentence(sentence: str) -> tuple[bool, ...]:
    """Return which observations one sentence holds."""
    return label_text(sentence).held()


@dataclass(frozen=True)
class ExpectedLabels:
    """How far each draft's observations are from those that are to be expected, in spreads."""

    bank: TransitionBank

    def distances(self, batch: Batch, section: Section) -> tuple[Distances, Distances]:
        """Return each draft's distance to what the prior lets expect, and to what the drafts say.

        NaN where a draft lacks the section. Without a prior, the first is to what reports hold at all.
        """
        by_prior, by_drafts = np.full((2, len(batch.drafts)), np.nan)
        for query, rows in asked(batch, section):
            drafts, prior = held(_all(batch.drafts[row]) for row in rows), held([_all(batch.priors[query])])
            known = prior.any()  # a report with a sentence holds something, if only "No Finding"
            by_prior[rows] = self._habits.distances(drafts, prior, PRIOR_COUNTS * known, votes=0.0)
            by_drafts[rows] = self._habits.distances(drafts, prior, 0.0)
        return by_prior, by_drafts

    def expected(self, batch: Batch, section: Section, row: int) -> Expectations:
        """Return how likely prior and drafts make each observation, and whether a draft holds it."""
        query = int(batch.owner[row])
        rows = [each for each in batch.rows(query) if batch.drafts[each][section]]
        drafts, prior = held(_all(batch.drafts[each]) for each in rows), held([_all(batch.priors[query])])
        chances = self._habits.chances(drafts, prior, PRIOR_COUNTS * prior.any())[0].tolist()
        own = held([_all(batch.drafts[row])])[0].tolist()
        return tuple(Expectation(*each) for each in zip(OBSERVATIONS, chances, own, strict=True))

    @cached_property
    def _habits(self) -> Habits:
        """Count over a sample of the bank's transitions that have a section on both sides."""
        pairs, sentences = [self.bank.pairs[section] for section in SECTIONS], self.bank.table.sentences
        rows = np.unique(np.concatenate([pair.present() for pair in pairs]))
        prior, current = (
            held(
                [sentences[place] for sets in side for place in sets[row]]
                for row in sample_rows(rows, TRANSITIONS)
            )
            for side in ([pair.prior for pair in pairs], [pair.current for pair in pairs])
        )
        return habits(prior, current, found=FOUND, imagined=IMAGINED)


def _all(report: Mapping[Section, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the sentences of both sections."""
    return sum((report[section] for section in SECTIONS), ())
