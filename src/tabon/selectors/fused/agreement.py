"""How far the drafts of a query agree, and how much that is worth as evidence.

Drafts that err each in its own way are nearest to each other where they are
right: their agreement is evidence, and the more of it the nearer they are. Drafts
that share errors come in groups: whoever differs from most is not alone. What
copies of the prior have in common is no agreement at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, exp, fsum, sqrt
from typing import Final

import numpy as np

from tabon.selectors.scorer import Batch, Distances
from tabon.selectors.similarity import TextDistance, draft_sections
from tabon.text.reports import Section

# Chosen on development data alone: docs/decisions/fused.md
FELLOWS: Final = 5  # the nearest of so many others: a group that is this large is seen
TRUST: Final = 1.4  # log-odds that votes are right where nothing speaks for or against them
GROUPS: Final = 11.0  # and what is taken off where drafts come in groups,
ALONGSIDE: Final = 1.7  # and added where the next visits of similar priors rank the drafts as votes do
STRONGER: Final = 0.5  # by how much votes count more for each spread that drafts are nearer than any two
STRONGEST: Final = 2.0  # spreads


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The drafts of one query that have a section, and how far they are from each other."""

    rows: Sequence[int]
    apart: Distances  # (drafts, drafts)

    @property
    def mean(self) -> float:
        """Return the mean distance of two drafts; NaN where there are no two."""
        count = len(self.rows)
        return fsum(self.apart.flat) / (count * (count - 1)) if count > 1 else np.nan

    def to_others(self, copied: Distances, far: float) -> Distances:
        """Return each draft's mean distance to the others, had they not both copied the prior; 0 alone.

        Args:
            copied: the share of each draft that is the prior's.
            far: the distance of any two reports.

        >>> square = np.array([[0.0, 0.5], [0.5, 0.0]])
        >>> Pool([0, 1], square).to_others(np.array([0.5, 0.5]), 0.8).tolist()
        [0.7, 0.7]
        """
        found: Distances = self._others(self.apart + far * (copied[:, None] * copied)).sum(axis=1)
        return found / max(len(self.rows) - 1, 1)

    def fellows(self) -> float:
        """Return the mean distance of a draft to the nearest fifth of the others."""
        nearest = max(ceil((len(self.rows) - 1) / FELLOWS), 1)
        return fsum(self._others(self.apart)[:, :nearest].sum(axis=1)) / (nearest * len(self.rows))

    def _others(self, square: Distances) -> Distances:
        """Return each row without its own column, from near to far: the order of drafts has no say."""
        count = len(square)
        rows: Distances = square[~np.eye(count, dtype=bool)].reshape(count, max(count - 1, 0))
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


def groups(sections: Iterable[Pool]) -> float:
    """Return how much nearer drafts are to a fifth of the others than to all of them, from 0 to 1.

    About a half where they err alone, towards 1 where those that differ from most are alike.

    >>> two = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]], dtype=float)
    >>> groups([Pool(range(4), two)]), groups([Pool(range(4), 1 - np.eye(4))])
    (1.0, 0.0)
    """
    several = [pool for pool in sections if len(pool.rows) > 1]
    mean = fsum(len(pool.rows) * pool.mean for pool in several)
    return 1.0 - fsum(len(pool.rows) * pool.fellows() for pool in several) / mean if mean > 0 else 0.0


def alongside(pairs: Sequence[tuple[Distances, Distances]]) -> float:
    """Return the correlation of two distances inside the sections of a query; 0 where there is none.

    >>> alongside([(np.array([1.0, 2.0]), np.array([5.0, 7.0]))])
    1.0
    """
    left, right = ([value for pair in pairs for value in _centred(pair[side])] for side in (0, 1))
    sizes = fsum(value * value for value in left) * fsum(value * value for value in right)
    both = fsum(a * b for a, b in zip(left, right, strict=True))
    return both / sqrt(sizes) if sizes > 0 else 0.0


def _centred(values: Distances) -> list[float]:
    """Take the mean off; a missing value is no evidence."""
    known = values.tolist()
    mean = fsum(known) / len(known) if known else 0.0
    return [value - mean for value in known]


def vote_trust(grouped: float, alike: float) -> float:
    """Return how far the drafts' agreement may be trusted, from 0 to 1.

    >>> round(vote_trust(0.2, 0.5), 2), round(vote_trust(0.9, -0.5), 2)
    (1.0, 0.02)
    """
    return 1.0 / (1.0 + exp(-(TRUST + ALONGSIDE * alike + GROUPS * (0.5 - grouped))))


def vote_strength(nearer: Sequence[float]) -> float:
    """Return how much votes count by how many spreads drafts are nearer than any two reports.

    Args:
        nearer: of each section; none where there are no two drafts.

    >>> vote_strength([]), vote_strength([0.5, 1.5]), vote_strength([9.0])
    (1.0, 1.5, 2.0)
    """
    mean = fsum(nearer) / len(nearer) if nearer else 0.0
    return 1.0 + STRONGER * min(max(mean, 0.0), STRONGEST)
