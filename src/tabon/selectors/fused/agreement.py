"""How far the drafts of a query are from each other, and the signs that are read off them.

Drafts that err each in its own way are nearest to each other where they are
right. Drafts that share errors come in groups: whoever differs from most is not
alone. Drafts that copy the prior agree for another reason.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, fsum, sqrt
from typing import Final

import numpy as np

from tabon.selectors.scorer import Batch, Distances
from tabon.selectors.similarity import TextDistance, draft_sections
from tabon.text.reports import Section

FELLOWS: Final = 5  # the nearest of so many others: a group that is this large is seen


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The drafts of one query that have a section, and how far they are from each other."""

    rows: Sequence[int]
    apart: Distances  # (drafts, drafts)

    def to_others(self) -> Distances:
        """Return each draft's mean distance to the others; 0 where it is alone.

        >>> Pool([0, 1], np.array([[0.0, 0.5], [0.5, 0.0]])).to_others().tolist()
        [0.5, 0.5]
        """
        found: Distances = self._others().sum(axis=1)
        return found / max(len(self.rows) - 1, 1)

    def to_fellows(self) -> Distances:
        """Return each draft's mean distance to the nearest fifth of the others; 0 where it is alone."""
        nearest = max(ceil((len(self.rows) - 1) / FELLOWS), 1)
        found: Distances = self._others()[:, :nearest].sum(axis=1)
        return found / nearest

    def _others(self) -> Distances:
        """Return each row without its own column, from near to far: the order of drafts has no say."""
        count = len(self.apart)
        rows: Distances = self.apart[~np.eye(count, dtype=bool)].reshape(count, max(count - 1, 0))
        return np.sort(rows, axis=1)


def pools(batch: Batch, section: Section, distance: TextDistance) -> list[Pool]:
    """Return the pool of every query; both ways between two drafts are the same."""
    there, drafts = batch.has_draft(section), draft_sections(batch, section)
    rows = [[row for row in batch.rows(query) if there[row]] for query in range(len(batch.queries))]
    pairs = [np.triu_indices(len(each), 1) for each in rows]
    left, right = (
        np.array([each[place] for each, pair in zip(rows, pairs, strict=True) for place in pair[side]])
        for side in (0, 1)
    )
    found = distance.between(drafts, left.astype(np.int64), drafts, right.astype(np.int64))
    made, start = [], 0
    for each, (first, second) in zip(rows, pairs, strict=True):
        square = np.zeros((len(each), len(each)))
        square[first, second] = square[second, first] = found[start : start + len(first)]
        made.append(Pool(each, square))
        start += len(first)
    return made


def groups(sections: Iterable[Pool]) -> float | None:
    """Return how much nearer drafts are to a fifth of the others than to all of them, from 0 to 1.

    About a half where they err alone, towards 1 where those that differ from most are alike; None
    where no two differ.

    >>> two = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]], dtype=float)
    >>> groups([Pool(range(4), two)]), groups([Pool(range(4), 1 - np.eye(4))])
    (1.0, 0.0)
    """
    several = [pool for pool in sections if len(pool.rows) > 1]
    all_others = fsum(value for pool in several for value in pool.to_others())
    nearest = fsum(value for pool in several for value in pool.to_fellows())
    return 1.0 - nearest / all_others if all_others > 0 else None


def alongside(pairs: Sequence[tuple[Distances, Distances]]) -> float | None:
    """Return the correlation of two distances inside the sections of a query; None where there is none.

    >>> alongside([(np.array([1.0, 2.0]), np.array([5.0, 7.0]))])
    1.0
    """
    left, right = ([value for pair in pairs for value in _centred(pair[side])] for side in (0, 1))
    sizes = fsum(value * value for value in left) * fsum(value * value for value in right)
    both = fsum(a * b for a, b in zip(left, right, strict=True))
    return both / sqrt(sizes) if sizes > 0 else None


def _centred(values: Distances) -> list[float]:
    """Take the mean off."""
    middle = mean(values)
    return [value - middle for value in values.tolist()]


def mean(values: Sequence[float] | Distances) -> float:
    """Return the mean, the same bits in any order; 0 of nothing.

    >>> mean([1.0, 2.0]), mean([])
    (1.5, 0.0)
    """
    return fsum(values) / len(values) if len(values) else 0.0
