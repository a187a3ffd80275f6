"""Exact nearest sentence sets of a bank under any set distance.

One float32 product gives each distance to all sets at once, or a lower bound of
it (`set_coverage`). What can be among the k nearest is kept, with room for the
product's rounding, and measured again (`set_distances`). So the result is that of
measuring every set, bit for bit, whatever the blocks, the threads and the other
sets asked for. Equal sets are searched once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tabon._internal.registry import check_name
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.distances import CLOSE
from tabon.method.sentence_sets import Ids, RaggedSets
from tabon.selectors.set_distances.coverage import LOWER_BOUNDS, OUTRIGHT, Coverage, Row, SetLayout
from tabon.selectors.set_distances.distances import (
    GRID,
    SET_DISTANCES,
    get_set_distance,
    paired_distances,
    unit_means,
)

SOLVE_AT_ONCE = 32


@dataclass(frozen=True, slots=True, eq=False)
class SetNeighbours:
    """The k nearest sets of each set asked for, nearest first; ties by row number."""

    distances: NDArray[np.float64]  # (asked, k), in [0, 1]
    rows: Ids  # (asked, k)


@dataclass(frozen=True, slots=True, eq=False)
class DistinctSets:
    """The distinct ones of many sentence sets, longest first, and the rows that share each."""

    sets: RaggedSets
    rows: RaggedSets  # ascending
    number: Ids  # which of them each row is

    @classmethod
    def of(cls, sets: RaggedSets) -> Self:
        """Find equal sets."""
        seen: dict[bytes, int] = {}
        group = [seen.setdefault(sets[row].tobytes(), len(seen)) for row in range(len(sets))]
        number = np.asarray(group, dtype=np.int64)
        copies = np.argsort(number, kind="stable").astype(np.int64)
        starts = np.searchsorted(number[copies], np.arange(len(seen) + 1)).astype(np.int64)
        first = copies[starts[:-1]]
        order = np.argsort(-sets.lengths[first], kind="stable").astype(np.int64)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return cls(sets.take(first[order]), RaggedSets(copies, starts).take(order), rank[number])


class SetIndex:
    """The sentence sets of a bank, searchable under one set distance."""

    def __init__(self, distance: str, vectors: Matrix, sets: RaggedSets) -> None:
        """Find the distinct sets; none may be empty."""
        self._distance = check_name("set distance", tuple(SET_DISTANCES), distance)
        self._vectors, self._size = vectors, len(sets)
        self._bank = DistinctSets.of(sets)
        self._copies = self._bank.rows.lengths
        self._layout = SetLayout.of(*_as_compared(distance, vectors, self._bank.sets))

    def __len__(self) -> int:
        """Count the sets, copies included."""
        return self._size

    def search(self, vectors: Matrix, asked: RaggedSets, k: int) -> SetNeighbours:
        """Return the k nearest sets of each set asked for, exactly.

        >>> vectors = np.eye(3, dtype=np.float32)
        >>> index = SetIndex("chamfer", vectors, RaggedSets.of([[0, 1], [2]]))
        >>> index.search(vectors, RaggedSets.of([[0]]), 2).distances.tolist()
        [[0.125, 0.5]]
        """
        if not 1 <= k <= self._size:
            raise BadInputError(f"k = {k} reports were asked for, the bank has {self._size}; lower k")
        distinct = DistinctSets.of(asked)
        found = self._search_distinct(vectors, distinct.sets, k)
        return SetNeighbours(found.distances[distinct.number], found.rows[distinct.number])

    def _search_distinct(self, vectors: Matrix, asked: RaggedSets, k: int) -> SetNeighbours:
        """Pre-select, measure again, sort by (distance, row), cut at k."""
        kept = list(self._preselect(vectors, asked, k))
        query = np.repeat(np.arange(len(kept)), [len(part) for part in kept])
        place = np.concatenate([np.empty(0, dtype=np.int64), *kept])
        left, right = asked.take(query), self._bank.sets.take(place)
        distance = paired_distances(self._distance, vectors, left, self._vectors, right)
        copies = self._copies[place]
        query, distance, row = query.repeat(copies), distance.repeat(copies), self._bank.rows.take(place).ids
        order = np.lexsort((row, distance, query))
        first = np.searchsorted(query[order], np.arange(len(asked)))
        best = order[first[:, None] + np.arange(k)]
        return SetNeighbours(distance[best], row[best])

    def _preselect(self, vectors: Matrix, asked: RaggedSets, k: int) -> Iterator[Ids]:
        """Yield the distinct bank sets that can be among the k nearest, for each set asked for."""
        vectors, asked = _as_compared(self._distance, vectors, asked)
        slack = 2.0 * self._error(asked)  # one for the k-th best, one for what is compared with it
        for coverage in self._layout.coverages(vectors, asked):
            if self._distance in OUTRIGHT:
                value = OUTRIGHT[self._distance](coverage)
                yield np.flatnonzero(value <= _kth(value, self._copies, k) + slack)
            else:
                yield self._solve(coverage, LOWER_BOUNDS[self._distance](coverage), k, slack)

    def _error(self, asked: RaggedSets) -> float:
        """Bound how far a distance by the product is from the one measured again.

        The product of two unit rows of length d is off by d · 2⁻²⁴ at most, a cost by half of
        that, and sums of n costs by n · 2⁻²⁴ more; `grid_cost` rounds, and takes costs under
        CLOSE for 0. No set distance changes by more than the costs do.
        """
        longest = int(max(self._layout.sets.lengths.max(initial=0), asked.lengths.max(initial=0)))
        return float(self._vectors.shape[1] + 2 * longest + 8) * 2.0**-24 + CLOSE + GRID

    def _solve(self, coverage: Coverage, bound: Row, k: int, slack: float) -> Ids:
        """Solve in the order of the bounds until the k-th best is under the next bound."""
        solved = np.argpartition(bound, min(SOLVE_AT_ONCE, len(bound)) - 1)[:SOLVE_AT_ONCE]
        value = self._values(coverage, solved)
        limit = _kth(value, self._copies[solved], k) + slack
        bound[solved] = np.inf
        rest = np.flatnonzero(bound <= limit)
        rest = rest[np.argsort(bound[rest], kind="stable")]
        for start in range(0, len(rest), SOLVE_AT_ONCE):
            if bound[rest[start]] > limit:
                break
            ahead = rest[start : start + SOLVE_AT_ONCE]
            solved, value = np.r_[solved, ahead], np.r_[value, self._values(coverage, ahead)]
            limit = _kth(value, self._copies[solved], k) + slack
        return solved[value <= limit]

    def _values(self, coverage: Coverage, sets: Ids) -> NDArray[np.float64]:
        """Solve some bank sets by the product's costs, those of one size together."""
        values = np.empty(len(sets))
        sizes = self._layout.sets.lengths[sets]
        for size in np.unique(sizes).tolist():
            here = np.flatnonzero(sizes == size)
            values[here] = get_set_distance(self._distance)(coverage.matrices(sets[here], size))
        return values


def _as_compared(distance: str, vectors: Matrix, sets: RaggedSets) -> tuple[Matrix, RaggedSets]:
    """Return the rows whose costs a distance needs: the sentences, or under `mean` one row a set."""
    if distance != "mean":
        return vectors, sets
    ends = np.arange(len(sets) + 1, dtype=np.int64)
    return unit_means(vectors, sets), RaggedSets(ends[:-1], ends)


def _kth(values: NDArray[np.floating], copies: Ids, k: int) -> float:
    """Return the least value that k rows do not exceed; infinity where there are fewer rows.

    >>> _kth(np.array([0.3, 0.1, 0.2]), np.array([1, 2, 1]), 2)
    0.1
    """
    nearest = np.argpartition(values, min(k, len(values)) - 1)[:k]
    nearest = nearest[np.argsort(values[nearest])]
    place = int(np.searchsorted(np.cumsum(copies[nearest]), k))
    return float(values[nearest[place]]) if place < len(nearest) else float("inf")
