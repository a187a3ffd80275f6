"""Which of the 14 observations the report should hold, and how far a draft is from them.

The scope is the whole report, or one section of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

from tabon.method.bank import TransitionBank
from tabon.method.sentence_sets import RaggedSets
from tabon.selectors.fused.expectation import Habits, Held, Odds, asked, habits, remembered
from tabon.selectors.fused.typical import sample_rows
from tabon.selectors.prepared import Batch
from tabon.selectors.scorer import Distances
from tabon.text.observations import NO_FINDING, NOT_A_FINDING, OBSERVATIONS, label_text
from tabon.text.reports import SECTIONS, Section

TRANSITIONS: Final = 1024  # training transitions that stand for all
FOUND, IMAGINED = 0.7, 0.1  # how often a draft names what is there, and what is not
PRIOR_COUNTS: Final = 2.0  # what the prior says weighs this much against one draft's word
Scope = Literal["report", "section"]
SCOPES: tuple[Scope, ...] = ("report", "section")

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
    scope: Scope

    @property
    def name(self) -> str:
        """Return what the part is called."""
        return f"expected-labels:{self.scope}"

    def distances(self, batch: Batch, section: Section, trust: Odds) -> Distances:
        """Return each draft's distance; NaN where it lacks the section.

        Args:
            batch: the queries.
            section: whose drafts are looked at.
            trust: how much each query's prior counts, (queries,).
        """
        parts: tuple[Section, ...] = SECTIONS if self.scope == "report" else (section,)
        distances = np.full(len(batch.drafts), np.nan)
        for query, rows in asked(batch, section):
            drafts = held(sum((batch.drafts[row][part] for part in parts), ()) for row in rows)
            prior = held([sum((batch.priors[query][part] for part in parts), ())])
            known = prior.any()  # a report with a sentence holds something, if only "No Finding"
            counts = PRIOR_COUNTS * trust[query] if known else 0.0
            distances[rows] = self._habits[section].distances(drafts, prior, counts)
        return distances

    @cached_property
    def _habits(self) -> dict[Section, Habits]:
        """Return what a sample of the bank's transitions tells, by section."""
        if self.scope == "report":
            whole = self._counted(SECTIONS)
            return dict.fromkeys(SECTIONS, whole)
        return {section: self._counted((section,)) for section in SECTIONS}

    def _counted(self, parts: tuple[Section, ...]) -> Habits:
        """Count over the transitions that have these sections, or one of them, on both sides."""
        pairs = [self.bank.pairs[part] for part in parts]
        rows = np.unique(np.concatenate([pair.present() for pair in pairs]))
        sample = sample_rows(rows, TRANSITIONS).tolist()
        prior = held(self._sentences([pair.prior for pair in pairs], row) for row in sample)
        current = held(self._sentences([pair.current for pair in pairs], row) for row in sample)
        return habits(prior, current, found=FOUND, imagined=IMAGINED)

    def _sentences(self, sets: Sequence[RaggedSets], row: int) -> list[str]:
        """Return the sentences of one training report."""
        return [self.bank.table.sentences[place] for part in sets for place in part[row]]
