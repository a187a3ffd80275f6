"""Exact nearest sentence sets of a bank under any set distance.

One float32 product gives each distance to all sets at once, or a lower bound of it. What can be among
the k nearest is measured again (`distances`), so the result is that of measuring every set, bit for bit.
Equal sets are searched once. Sets are in order of length, longest first, and their sentences by
position: the first of every set, the second of every set that has one, and so on. Folding values of
sentences over the sets is then a few long vector operations.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tabon._internal.registry import check_name
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.distances import CLOSE
from tabon.method.nearest import Neighbours
from tabon.method.sentence_sets import Ids, RaggedSets
from tabon.selectors.set_distances.distances import (
    GRID,
    SET_DISTANCES,
    UNMATCHED,
    get_set_distance,
    paired_distances,
    unit_means,
)

SENTENCES_AT_ONCE = 128  # rows of the product
COLUMNS_AT_ONCE = 8192
Row = NDArray[np.float32]
SOLVE_AT_ONCE = 32


@dataclass(frozen=True, slots=True, eq=False)
class SetLayout:
    """Bank sets, longest first, over the sentences that occur in them."""

    vectors: Matrix
    used: Ids  # rows of `vectors`: the sentences that occur
    sets: RaggedSets  # of places in `used`
    positions: tuple[Ids, ...]  # the first sentence of each set, the second of each that has one, ...

    @classmethod
    def of(cls, vectors: Matrix, sets: RaggedSets) -> Self:
        """Lay out sets that stand longest first; none is empty."""
        used, places = np.unique(sets.ids, return_inverse=True)
        local = RaggedSets(places.astype(np.int64), sets.offsets)
        counts = [int((sets.lengths > at).sum()) for at in range(int(sets.lengths.max(initial=0)))]
        positions = (local.ids[local.offsets[:count] + at] for at, count in enumerate(counts))
        return cls(vectors, used, local, tuple(positions))

    def coverages(self, vectors: Matrix, asked: RaggedSets) -> Iterator["Coverage"]:
        """Yield the costs of each set asked for, from one product for some hundred sentences."""
        for block in _blocks(asked):
            part = asked.take(block)
            sentences, places = np.unique(part.ids, return_inverse=True)
            costs = self._costs(vectors[sentences])
            nearest = np.stack([self.fold(np.minimum, row) for row in costs])
            for start, stop in zip(part.offsets[:-1], part.offsets[1:], strict=True):
                mine = places[start:stop]
                yield Coverage(self, costs[mine], nearest[mine])

    def fold(self, fold: np.ufunc, values: Row) -> Row:
        """Fold the values of sentences over each bank set: (sentences,) -> (sets,)."""
        folded = values[self.positions[0]]
        for places in self.positions[1:]:
            part = folded[: len(places)]
            fold(part, values[places], out=part)
        return folded

    def _costs(self, sentences: Matrix) -> Matrix:
        """Return ½(1 - cosine) of sentences to the bank's, in [0, 1]."""
        costs = np.empty((len(sentences), len(self.used)), dtype=np.float32)
        for start in range(0, len(self.used), COLUMNS_AT_ONCE):
            columns = slice(start, start + COLUMNS_AT_ONCE)
            costs[:, columns] = sentences @ self.vectors[self.used[columns]].T
        costs *= np.float32(-0.5)
        costs += np.float32(0.5)
        return np.clip(costs, 0.0, 1.0, out=costs)


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """The costs of one set A of n sentences to the sentences of every bank set B."""

    layout: SetLayout
    costs: Matrix  # d(a, b), (n, bank sentences)
    there: Matrix  # min_b d(a, b), (n, bank sets)

    @property
    def back(self) -> Row:
        """Return min_a d(a, b), (bank sentences,)."""
        nearest: Row = self.costs.min(axis=0)
        return nearest

    @property
    def sizes(self) -> Row:
        """Return m, the size of each bank set."""
        return self.layout.sets.lengths.astype(np.float32)

    def back_sum(self, most: float = 1.0) -> Row:
        """Return Σ_b min_a d(a, b), each at `most`, (bank sets,)."""
        return self.layout.fold(np.add, np.minimum(self.back, np.float32(most)))

    def matrices(self, sets: Ids, size: int) -> NDArray[np.float64]:
        """Return the costs of A to some bank sets of one size, (sets, n, size)."""
        costs = self.costs[:, self.layout.sets.stack(sets, size)]
        return np.ascontiguousarray(costs.swapaxes(0, 1), dtype=np.float64)


def chamfer(coverage: Coverage) -> Row:
    """Return the Chamfer distance of A to each bank set."""
    distance: Row = np.float32(0.5) * (coverage.there.mean(axis=0) + coverage.back_sum() / coverage.sizes)
    return distance


def hausdorff(coverage: Coverage) -> Row:
    """Return the Hausdorff distance of A to each bank set."""
    worst: Row = np.maximum(coverage.there.max(axis=0), coverage.layout.fold(np.maximum, coverage.back))
    return worst


def transport_bound(coverage: Coverage) -> Row:
    """Return the larger directed mean: mass that leaves a sentence costs at least its nearest one."""
    bound: Row = np.maximum(coverage.there.mean(axis=0), coverage.back_sum() / coverage.sizes)
    return bound


def hungarian_bound(coverage: Coverage) -> Row:
    """Return the larger of two bounds, one from each side.

    A sentence of the smaller set has a partner, which costs at least its nearest one, and
    those left over cost ½. A sentence of the larger set costs its nearest one, or ½, at least.
    """
    n, m = np.float32(len(coverage.there)), coverage.sizes
    left_over = np.float32(UNMATCHED) * np.abs(m - n)
    capped = np.minimum(coverage.there, np.float32(UNMATCHED)).sum(axis=0)
    there = np.where(n <= m, coverage.there.sum(axis=0) + left_over, capped)
    back = np.where(m <= n, coverage.back_sum() + left_over, coverage.back_sum(UNMATCHED))
    bound: Row = np.maximum(there, back) / np.maximum(n, m)
    return bound


# Distances that the costs give outright; `mean` is the cost of two sets of one row each.
OUTRIGHT: Mapping[str, Callable[[Coverage], Row]] = MappingProxyType(
    {"chamfer": chamfer, "hausdorff": hausdorff, "mean": hausdorff}
)

# Distances that must be solved set by set, and what they cannot be under.
LOWER_BOUNDS: Mapping[str, Callable[[Coverage], Row]] = MappingProxyType(
    {"transport": transport_bound, "hungarian": hungarian_bound}
)


def _blocks(asked: RaggedSets) -> Iterator[Ids]:
    """Cut sets into runs of a bounded number of sentences, or of one set."""
    start = 0
    while start < len(asked):
        limit = asked.offsets[start] + SENTENCES_AT_ONCE
        stop = int(np.searchsorted(asked.offsets, limit, side="right")) - 1
        yield np.arange(start, max(stop, start + 1))
        start = max(stop, start + 1)


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

    def search(self, vectors: Matrix, asked: RaggedSets, k: int) -> Neighbours:
        """Return the k nearest sets of each set asked for, exactly.

        >>> vectors = np.eye(3, dtype=np.float32)
        >>> index = SetIndex("chamfer", vectors, RaggedSets.of([[0, 1], [2]]))
        >>> index.search(vectors, RaggedSets.of([[0]]), 2).distances.tolist()
        [[0.125, 0.5]]
        """
        if not 1 <= k <= self._size:
            raise BadInputError(f"k = {k} reports were asked for, the bank has {self._size}; lower k")
        distinct = DistinctSets.of(asked)
        kept = list(self._preselect(vectors, distinct.sets, k))
        query = np.repeat(np.arange(len(kept)), [len(part) for part in kept])
        place = np.concatenate([np.empty(0, dtype=np.int64), *kept])
        left, right = distinct.sets.take(query), self._bank.sets.take(place)
        distance = paired_distances(self._distance, vectors, left, self._vectors, right)
        copies = self._copies[place]
        query, distance, row = query.repeat(copies), distance.repeat(copies), self._bank.rows.take(place).ids
        order = np.lexsort((row, distance, query))
        first = np.searchsorted(query[order], distinct.number)
        best = order[first[:, None] + np.arange(k)]
        return Neighbours(distance[best], row[best])

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

        The product of two unit rows of length d is off by d · 2⁻²⁴ at most, a cost by half of that, and sums
        of n costs by n · 2⁻²⁴ more; `grid_cost` rounds, and takes costs under CLOSE for 0.
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
    """Return the rows whose costs a distance needs: the sentences, or under `mean` one row per set."""
    if distance != "mean":
        return vectors, sets
    ends = np.arange(len(sets) + 1, dtype=np.int64)
    return unit_means(vectors, sets), RaggedSets(ends[:-1], ends)


def _kth(values: NDArray[np.floating], copies: Ids, k: int) -> float:
    """Return the least value that k rows do not exceed; infinity if there are fewer rows.

    >>> _kth(np.array([0.3, 0.1, 0.2]), np.array([1, 2, 1]), 2)
    0.1
    """
    nearest = np.argpartition(values, min(k, len(values)) - 1)[:k]
    nearest = nearest[np.argsort(values[nearest])]
    place = int(np.searchsorted(np.cumsum(copies[nearest]), k))
    return float(values[nearest[place]]) if place < len(nearest) else float("inf")
