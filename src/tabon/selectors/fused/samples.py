"""Samples of the training reports that stand for all, and how far two of them are from each other."""

from dataclasses import dataclass

import numpy as np

from tabon.method.bank import TransitionBank
from tabon.method.sentence_sets import Ids
from tabon.selectors.scorer import Distances
from tabon.selectors.similarity import TextDistance, written_sections
from tabon.text.reports import Section

PAIRS = 2000  # random pairs of training reports that a spread is taken over
SEED = 0


@dataclass(frozen=True, slots=True)
class Apart:
    """How far two training reports are from each other, over random pairs."""

    mean: float  # 1 where there are no two
    std: float  # 1 where none differ


def apart(bank: TransitionBank, distance: TextDistance, section: Section) -> Apart:
    """Measure random pairs of different training reports that have the section."""
    rows = np.flatnonzero(bank.pairs[section].current.lengths > 0)
    left, right = random_pairs(len(rows))
    reports = written_sections(bank.table, bank.pairs[section].current)
    found = distance.between(reports, rows[left], reports, rows[right])
    return Apart(float(found.mean()) if found.any() else 1.0, spread_of(found))


def spread_of(values: Distances) -> float:
    """Return a standard deviation; 1 where there is none.

    >>> spread_of(np.array([1.0, 3.0])), spread_of(np.array([]))
    (1.0, 1.0)
    """
    found = float(np.std(values)) if len(values) else 0.0
    return found if found > 0 else 1.0


def random_pairs(count: int) -> tuple[Ids, Ids]:
    """Draw pairs of different places among so many; none where there are no two."""
    rng = np.random.default_rng(SEED)
    left, right = (rng.integers(max(count, 1), size=PAIRS * (count > 1)) for _ in range(2))
    differ = left != right
    return left[differ], right[differ]


def sample_rows(rows: Ids, size: int) -> Ids:
    """Draw a sample; all rows where there are few."""
    if len(rows) <= size:
        return rows
    return np.sort(np.random.default_rng(SEED).permutation(rows)[:size])
