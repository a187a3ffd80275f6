"""Which of the 14 observations the report should hold, and how far a draft is from them.

The scope is the whole report, or one section of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal

import numpy as np

from tabon.bank import TransitionBank
from tabon.observations import NO_FINDING, NOT_A_FINDING, OBSERVATIONS, label_text
from tabon.reports import SECTIONS, Section
from tabon.selectors.batch import Batch
from tabon.selectors.expectation import Habits, Held, Odds, drafts_saying, expected_distances, habits
from tabon.selectors.protocol import Distances
from tabon.selectors.typical import sample_rows
from tabon.sentence_sets import RaggedSets

LONGEST: Final = 1000  # characters of a sentence that is remembered
KEPT: Final = 1 << 16  # sentences whose labels are remembered: sections and parts ask for the same ones
TRANSITIONS: Final = 1024  # training transitions that stand for all
FOUND, IMAGINED = 0.7, 0.1  # how often a draft names what is there, and what is not
PRIOR_COUNTS: Final = 2.0  # what the prior says weighs this much against one draft's word
Scope = Literal["report", "section"]
SCOPES: tuple[Scope, ...] = ("report", "section")

_SICK = np.array([name not in NOT_A_FINDING for name in OBSERVATIONS])
_NOTHING = OBSERVATIONS.index(NO_FINDING)


def held(reports: Iterable[Sequence[str]]) -> Held:
    """Return which observations each report holds, from its sentences, (reports, 14)."""
    rows = [_held(tuple(sentences)) for sentences in reports]
    return np.array(rows, dtype=bool).reshape(len(rows), len(OBSERVATIONS))


def _held(sentences: tuple[str, ...]) -> Held:
    """Return what one report holds: all that its sentences do, and "No Finding" where nothing is ill."""
    found: Held = np.zeros(len(OBSERVATIONS), dtype=bool)
    for sentence in sentences:
        found |= _in_sentence(sentence)
    found[_NOTHING] = bool(sentences) and not found[_SICK].any()
    return found


def _in_sentence(sentence: str) -> tuple[bool, ...]:
    """Return which observations one sentence holds."""
    return _looked_up(sentence) if len(sentence) <= LONGEST else label_text(sentence).held()


@lru_cache(maxsize=KEPT)
def _looked_up(sentence: str) -> tuple[bool, ...]:
    """Return the same, from memory where it was found before."""
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
        parts, found = self._parts(section), self._habits[section]
        drafts = held(sum((draft[part] for part in parts), ()) for draft in batch.drafts)
        priors = held(sum((prior[part] for part in parts), ()) for prior in batch.priors)
        there = batch.has_draft(section)
        said = drafts_saying(drafts, batch.owner, there, len(priors))
        counts = np.bincount(batch.owner[there], minlength=len(priors)).astype(np.float64)
        known = priors.any(axis=1)  # a report with a sentence holds something, if only "No Finding"
        chances = found.expected(priors, PRIOR_COUNTS * np.where(known, trust, 0.0), said, counts)
        distances = expected_distances(drafts, chances[batch.owner]) / found.spread
        return np.where(there, distances, np.nan)

    def _parts(self, section: Section) -> tuple[Section, ...]:
        """Return the sections that are read."""
        return SECTIONS if self.scope == "report" else (section,)

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
