"""Cells: rows that lie near each other are stored together, and a query looks at its nearest cells.

The partition is plain k-means on the sphere, from a seeded sample. Only recall depends on it, and
recall is measured on rows that the sample does not have.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.method.sentence_sets import Ids
from tabon.search.cell_scan import HalfMatrix, Run, runs_of, to_single

SAMPLE_PER_CELL = 32
ROUNDS = 8
ROWS_AT_ONCE = 4096
NEIGHBOURS = 10  # of recall@10
HELD_OUT = 1000
TARGET = 0.995  # on held-out rows, so that other queries, and codes, reach 0.99
SPREAD = 0.3  # how much more similar to a query than on average rows may be that point everywhere
CELLS_A_LOOK = 32  # a query looks at one of so many cells at least, however far the others are behind
DIGITS = 4  # of a margin
ALL = 3.0  # no cell is that much less similar to a query than another
SEED = 0
GROUPS = 4  # of cells, that a row is compared with


@dataclass(frozen=True, eq=False)
class Cells:
    """Where the rows of each cell lie, and which cells a query looks at.

    Those that may be hardly less similar to it than its nearest one, and some in any case: now and
    then a query is near to a cell that has none of its neighbours.
    """

    means: Matrix  # (cells, d), of each cell's unit rows: the shorter, the more they are spread
    starts: Ids  # cell i has the rows starts[i] : starts[i + 1]
    margin: float  # how much less similar to a query than its nearest cell another may be

    @cached_property
    def _spread(self) -> Matrix:
        """Return how much more similar to a query than on average the rows of each cell may be."""
        filled = self.starts[1:] > self.starts[:-1]
        lengths = np.einsum("cd,cd->c", self.means, self.means)
        return cast("Matrix", SPREAD * filled * np.sqrt(np.maximum(0.0, 1.0 - lengths))).astype(np.float32)

    def behind(self, query: Matrix) -> Matrix:
        """Return how much less similar to a query each cell may be than its nearest one.

        Summed in a fixed order, whatever else is in the batch, and not by BLAS, whose threads
        spin for a while after a product and slow down the scan that follows.
        """
        similarity = np.einsum("cd,d->c", self.means, query) + self._spread
        return cast("Matrix", similarity.max() - similarity)

    def nearest(self, queries: Matrix, k: int) -> list[Ids]:
        """Return the cells that each query looks at; more if these hold under k rows."""
        return [self.near(query, k) for query in queries]

    def reach(self, behind: Matrix) -> np.float32:
        """Return how far behind its nearest cell a query looks."""
        fewest = max(1, len(behind) // CELLS_A_LOOK)
        return max(np.float32(self.margin), np.float32(np.partition(behind, fewest - 1)[fewest - 1]))

    def near(self, query: Matrix, k: int) -> Ids:
        """Return the cells within reach, or as many as it takes to hold k rows."""
        behind = self.behind(query)
        near = np.flatnonzero(behind <= self.reach(behind))
        sizes = np.diff(self.starts)
        if sizes[near].sum() >= k:
            return near
        order = np.argsort(behind, kind="stable")
        return order[: 1 + int(np.searchsorted(np.cumsum(sizes[order]), k))]

    def runs(self, queries: Matrix, k: int, length: int) -> list[Run]:
        """Return the rows that queries look at."""
        looking: dict[int, list[int]] = defaultdict(list)
        starts = self.starts.tolist()
        for number, cells in enumerate(self.nearest(queries, k)):
            for cell in cells.tolist():
                looking[cell].append(number)
        return [
            run
            for cell, numbers in sorted(looking.items())
            for run in runs_of(starts[cell], starts[cell + 1], tuple(numbers), length)
        ]


@dataclass(frozen=True, slots=True)
class Recall:
    """Which cells find what share of the nearest rows."""

    margin: float
    probes: float  # cells that a query looks at, in the mean
    recall: float
    queries: int


def number_of_cells(rows: int) -> int:
    """Return the power of two nearest to the square root of the number of rows.

    >>> number_of_cells(10_000_000)
    4096
    """
    return int(2 ** round(log2(max(rows, 1)) / 2))


def sampled_rows(rows: int, cells: int) -> tuple[Ids, Ids]:
    """Return the rows to train on and the rows held out, both seeded, ascending and without each other."""
    train = min(SAMPLE_PER_CELL * cells, max(rows - HELD_OUT, (rows + 1) // 2))
    held = min(HELD_OUT, rows - train)
    drawn = np.random.default_rng(SEED).choice(rows, train + held, replace=False)
    return np.sort(drawn[:train]), np.sort(drawn[train:])


def trained_centroids(sample: Matrix, cells: int) -> Matrix:
    """Return unit centroids of a sample; k-means on the sphere, some rounds."""
    rng = np.random.default_rng(SEED)
    sample = sample / np.maximum(np.linalg.norm(sample, axis=1, keepdims=True), np.float32(1e-12))
    centroids = sample[np.sort(rng.choice(len(sample), cells, replace=False))].copy()
    for _ in range(ROUNDS):
        cell = nearest_cells(sample, centroids)
        used = np.unique(cell)
        centroids[used] = _sums(sample, cell, cells)[used]
        centroids /= np.maximum(np.linalg.norm(centroids, axis=1, keepdims=True), np.float32(1e-12))
    return centroids


def _sums(rows: Matrix, cell: NDArray[np.int32], cells: int) -> Matrix:
    """Return the sum of the rows of each cell."""
    from scipy.sparse import csr_array  # slow to import

    ones, places = np.ones(len(rows), dtype=np.float32), np.arange(len(rows))
    return cast("Matrix", csr_array((ones, (cell, places)), shape=(cells, len(rows))) @ rows)


def nearest_cells(rows: Matrix, centroids: Matrix) -> NDArray[np.int32]:
    """Return the cell of each row."""
    found = np.empty(len(rows), dtype=np.int32)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        block = slice(start, start + ROWS_AT_ONCE)
        found[block] = (rows[block] @ centroids.T).argmax(axis=1)
    return found


def cells_of(rows: HalfMatrix, centroids: Matrix) -> tuple[NDArray[np.int32], Matrix]:
    """Return a near cell of each stored row, block by block, and the mean of the rows of each cell.

    Not always the nearest: centroids are sorted into groups, and a row is compared with those of
    its nearest groups only, which takes a tenth of the products.
    """
    groups = number_of_cells(len(centroids))
    heads = trained_centroids(centroids, groups)
    member = nearest_cells(centroids, heads)
    found, means = np.empty(len(rows), dtype=np.int32), np.zeros(centroids.shape)
    for block in blocks_of(len(rows)):
        single = to_single(rows[block])
        found[block] = _near_cells(single, centroids, heads, member)
        means += _sums(single, found[block], len(means))
    means /= np.maximum(1, np.bincount(found, minlength=len(means)))[:, None]
    return found, means.astype(np.float32)


def _near_cells(
    rows: Matrix, centroids: Matrix, heads: Matrix, member: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the nearest cell of each row among the cells of its nearest groups."""
    near = rows @ heads.T
    bound = np.partition(near, -min(GROUPS, len(heads)), axis=1)[:, -min(GROUPS, len(heads))]
    best, found = np.full(len(rows), -np.inf, dtype=np.float32), np.zeros(len(rows), dtype=np.int32)
    for group in range(len(heads)):
        cells, asked = np.flatnonzero(member == group), np.flatnonzero(near[:, group] >= bound)
        if not len(cells) or not len(asked):
            continue
        similarity = rows[asked] @ centroids[cells].T
        choice = similarity.argmax(axis=1)
        value = similarity[np.arange(len(asked)), choice]
        better = value > best[asked]
        best[asked[better]], found[asked[better]] = value[better], cells[choice[better]]
    return found


def blocks_of(rows: int) -> Iterator[slice]:
    """Cut rows into blocks."""
    return (slice(start, start + 8 * ROWS_AT_ONCE) for start in range(0, rows, 8 * ROWS_AT_ONCE))


def enough_margin(cells: Cells, queries: Matrix, neighbour_cells: Ids) -> Recall:
    """Return the least margin that alone holds the wanted share of the true neighbours.

    Args:
        cells: the partition; its `margin` is not looked at.
        queries: held-out rows.
        neighbour_cells: (queries, neighbours), the cell in which each true neighbour lies.
    """
    if not neighbour_cells.size:
        return Recall(ALL, float(len(cells.means)), 1.0, len(queries))
    behind = np.stack([cells.behind(query) for query in queries])
    needed = np.take_along_axis(behind, neighbour_cells, axis=1)
    least = np.sort(needed, axis=None)[ceil(TARGET * needed.size) - 1]
    cells = replace(cells, margin=ceil(least * 10**DIGITS) / 10**DIGITS)
    reach = np.array([[cells.reach(one)] for one in behind])
    probes = float((behind <= reach).sum(axis=1).mean())
    return Recall(cells.margin, round(probes, 1), float((needed <= reach).mean()), len(queries))
