"""What one float32 product says about the distances of a sentence set to all sets of a bank.

The bank's sets stand longest first, and their sentences by position: the first of
every set, the second of every set that has one, and so on. Folding values of
sentences over the sets is then a few long vector operations.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.method.sentence_sets import Ids, RaggedSets
from tabon.selectors.set_distances.distances import UNMATCHED

SENTENCES_AT_ONCE = 128  # rows of the product
COLUMNS_AT_ONCE = 8192

Row = NDArray[np.float32]


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
