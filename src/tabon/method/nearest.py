"""The nearest training transitions of a draft's transition, exactly, and their distance (eq. 8-10).

A blocked float32 product pre-selects all that rounding cannot exclude; the kept pairs are multiplied
again, one by one and in a fixed order. So no bit of the result depends on block sizes, on threads or on
which queries are asked together (docs/decisions/exact-search.md). Equal bank rows are searched once.

If a transition is zero the cosine of eq. 9 is 0/0, and a named policy decides:

* `match`: zero to zero is distance 0 like any two equal transitions, zero to anything else ½;
* `neutral`: cosine 0, so distance ½ to everything;
* `farthest`: distance 1 to everything, on either side.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.distances import SHARED_OUT
from tabon.method.sentence_sets import Ids
from tabon.method.transitions import Transitions, blas, blas_threads

QUERY_BLOCK = 256
FOLD = 32  # columns in a group
PAIRS_AT_ONCE = 2048
SMALL_PRODUCT = 1 << 28  # multiplications: some milliseconds of one core
CLOSE = 1.0 - 1e-5  # two rows of a smaller cosine are not equal
_ALONE = (
    Lock()
)  # the limit of BLAS is the process's: two searches at once would restore it in the wrong order
ABSENT = np.float32(-3.0)  # less than any cosine
ZeroPolicy = Literal["neutral", "match", "farthest"]
Aggregate = Literal["min", "knn"]
ZERO_POLICIES: tuple[ZeroPolicy, ...] = ("neutral", "match", "farthest")
AGGREGATES: tuple[Aggregate, ...] = ("min", "knn")
ZERO_TO_OTHER = {"neutral": 0.5, "match": 0.5, "farthest": 1.0}
ZERO_TO_ZERO = {"neutral": 0.5, "match": 0.0, "farthest": 1.0}
EXACT = "exact"


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """The k nearest bank rows of each query, nearest first; ties by row number."""

    distances: NDArray[np.float64]  # (queries, k), ½(1 - cosine), in [0, 1]
    rows: Ids  # (queries, k)


class Index(Protocol):
    """Something that finds the k nearest rows of a bank."""

    def __len__(self) -> int:
        """Count the bank rows, copies included."""

    def search(self, queries: Matrix, k: int) -> Neighbours:
        """Return the k nearest bank rows of each unit query."""


class ExactIndex:
    """Distinct unit rows of a bank, laid out for the blocked product."""

    block = QUERY_BLOCK  # queries at once
    most_workers = sys.maxsize  # blocks at once; there are no more than the BLAS library has threads

    def __init__(self, rows: Matrix) -> None:
        """Find the distinct rows and remember which bank rows share them."""
        first, self._copies, self._starts = distinct_rows(rows)
        self._size, self._sizes = len(rows), np.diff(self._starts)
        self._groups = -(-len(first) // FOLD)
        self._distinct = np.zeros((self._groups * FOLD, rows.shape[1]), dtype=np.float32)
        self._distinct[: len(first)] = rows[first]
        self._count = len(first)

    def __len__(self) -> int:
        """Count the bank rows, copies included."""
        return self._size

    @property
    def vectors(self) -> Matrix:
        """Return the distinct rows."""
        return self._distinct[: self._count]

    def rows(self) -> Matrix:
        """Return all rows, copies included, in the bank's order."""
        group = np.empty(self._size, dtype=np.int64)
        group[self._copies] = np.repeat(np.arange(self._count), self._sizes)
        return self._distinct[group]

    def search(self, queries: Matrix, k: int) -> Neighbours:
        """Return the k nearest bank rows of each unit query, exactly.

        >>> index = ExactIndex(np.eye(3, dtype=np.float32))
        >>> index.search(np.eye(3, dtype=np.float32)[:1], 2).distances.tolist()
        [[0.0, 0.5]]
        """
        check_neighbours(k, self._size)
        distances = np.empty((len(queries), k))
        rows = np.empty((len(queries), k), dtype=np.int64)

        def fill(start: int) -> None:
            block = slice(start, start + self.block)
            distances[block], rows[block] = self._search_block(queries[block], k)

        _each(fill, range(0, len(queries), self.block), self.most_workers)
        return Neighbours(distances, rows)

    def _search_block(self, queries: Matrix, k: int) -> tuple[NDArray[np.float64], Ids]:
        """Search one block of queries: pre-select, measure again, add copies, sort, cut at k."""
        query, column = self._candidates(queries, min(k, self._count))
        distance = pair_distances(queries, self._distinct, query, column)
        counts = self._sizes[column]  # of the bank rows that are equal to a distinct one
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        row = self._copies[np.repeat(self._starts[column], counts) + within]
        query, distance = np.repeat(query, counts), np.repeat(distance, counts)
        order = np.lexsort((row, distance, query))
        first = np.searchsorted(query[order], np.arange(len(queries)))
        best = order[first[:, None] + np.arange(k)]
        return distance[best], row[best]

    def _candidates(self, queries: Matrix, k: int) -> tuple[Ids, Ids]:
        """Return (query, column) of all that can be among the k nearest, by query."""
        with _one_thread(len(queries) * self._distinct.size):
            similarity = queries @ self._distinct.T
        similarity[:, self._count :] = ABSENT
        slack = np.float32(rounding_slack(self._distinct.shape[1]))
        folded = similarity.reshape(len(similarity), FOLD, self._groups)
        if k > self._groups:
            query, column = np.nonzero(similarity > ABSENT)
            return query, column
        best = folded.max(axis=1)
        bound = np.partition(best, self._groups - k, axis=1)[:, self._groups - k] - slack
        query, group = np.nonzero(best >= bound[:, None])
        hit, fold = np.nonzero(folded[query, :, group] >= bound[query, None])
        return query[hit], fold * self._groups + group[hit]


def rounding_slack(dimension: int) -> float:
    """Return how far two float32 products of unit rows can be out of order by rounding alone.

    Each is off by at most d·2⁻²⁴; two of them, both ways: docs/decisions/exact-search.md.
    """
    return 4.0 * dimension * 2.0**-24


def check_neighbours(k: int, size: int) -> None:
    """Refuse more neighbours than there are rows."""
    if not 1 <= k <= size:
        raise BadInputError(f"k = {k} neighbours were asked for, the bank has {size} rows; lower -k")


def distinct_rows(rows: Matrix) -> tuple[Ids, Ids, Ids]:
    """Return the first of each set of equal rows, and the rows of each set, ragged.

    Rows are known by a cryptographic hash: their bytes would be a second copy of the bank.
    """
    number: dict[bytes, int] = {}
    hashes = (blake2b(row, digest_size=16).digest() for row in np.ascontiguousarray(rows))
    group = np.fromiter(
        (number.setdefault(each, len(number)) for each in hashes), dtype=np.int64, count=len(rows)
    )
    copies = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[copies], np.arange(len(number) + 1))
    return copies[starts[:-1]], copies, starts


def _each(work: Callable[[int], None], starts: range, most: int) -> None:
    """Do the work of each block: one block per core, rather than one product over all cores."""
    workers = min(most, blas_threads())
    if len(starts) <= 1 or workers == 1:
        deque(map(work, starts), maxlen=0)
        return
    with alone_on_one_thread(), ThreadPoolExecutor(workers) as pool:
        deque(pool.map(work, starts), maxlen=0)


@contextmanager
def alone_on_one_thread() -> Iterator[None]:
    """Keep the BLAS library to one thread; others who ask for that wait."""
    with _ALONE, blas().limit(limits=1):
        yield


@contextmanager
def _one_thread(multiplications: int) -> Iterator[None]:
    """Keep a small product on one thread: on a busy machine, waiting for a second one takes far longer."""
    if not SHARED_OUT < multiplications < SMALL_PRODUCT or not _ALONE.acquire(blocking=False):
        yield
        return
    try:
        with blas().limit(limits=1):
            yield
    finally:
        _ALONE.release()


def pair_distances(queries: Matrix, rows: Matrix, query: Ids, row: Ids) -> NDArray[np.float64]:
    """½(1 - cosine) of each (query, row) pair (eq. 9), each summed in the same fixed order.

    Rows are unit only to float32; equal ones are exactly 0 apart, so that two drafts
    which both make a change of the bank are tied, and no rounding chooses between them.
    """
    cosine = np.empty(len(query))
    for start in range(0, len(query), PAIRS_AT_ONCE):
        piece = slice(start, start + PAIRS_AT_ONCE)
        asked, found = queries[query[piece]], rows[row[piece]]
        similar = np.einsum("pd,pd->p", asked, found)
        close = np.flatnonzero(similar > CLOSE)
        similar[close[(asked[close] == found[close]).all(axis=1)]] = 1.0
        cosine[piece] = similar
    return np.clip(0.5 * (1.0 - cosine), 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class SectionBank:
    """One section's bank under one distance, ready to be searched."""

    index: Index | None  # over the rows that have a direction; None if none has
    rows: Ids  # bank row of each index row
    zero_rows: Ids  # bank rows whose transition is zero
    search: str = EXACT  # how distances are found, where that may change them

    def __len__(self) -> int:
        """Count the transitions."""
        return len(self.rows) + len(self.zero_rows)


def bank_neighbours(candidates: Transitions, bank: SectionBank, k: int, zero: ZeroPolicy) -> Neighbours:
    """Return the k nearest training transitions of each candidate (eq. 9), as rows of the whole bank.

    `k` may not exceed `len(bank)`.
    """
    if not candidates.zero.any():  # the usual case: no copy of all directions
        return Neighbours(*_of_moving(candidates.directions, bank, k, zero))
    distances = np.empty((len(candidates.zero), k))
    rows = np.empty((len(candidates.zero), k), dtype=np.int64)
    moving, still = np.flatnonzero(~candidates.zero), np.flatnonzero(candidates.zero)
    distances[moving], rows[moving] = _of_moving(candidates.directions[moving], bank, k, zero)
    # a candidate without a direction: the same for each of them
    others, zeros = bank.rows[:k], bank.zero_rows[:k]
    far = np.r_[np.full(len(others), ZERO_TO_OTHER[zero]), np.full(len(zeros), ZERO_TO_ZERO[zero])]
    distances[still], rows[still] = _nearest_of(far[None], np.r_[others, zeros][None], k)
    return Neighbours(distances, rows)


def aggregate_distances(neighbours: NDArray[np.float64], aggregate: Aggregate) -> NDArray[np.float64]:
    """Take the nearest, or the mean of the k nearest (eq. 10).

    >>> aggregate_distances(np.array([[0.1, 0.3]]), "knn").tolist()
    [0.2]
    """
    total = np.zeros(len(neighbours))
    counted = 1 if aggregate == "min" else neighbours.shape[1]
    for column in neighbours.T[:counted]:  # a fixed order of additions, whatever the batch
        total += column
    total /= counted
    return total


def _of_moving(
    directions: NDArray[np.float32], bank: SectionBank, k: int, zero: ZeroPolicy
) -> tuple[NDArray[np.float64], Ids]:
    """Neighbours of candidates that have a direction; the bank's zero rows join as a constant."""
    distances = np.empty((len(directions), 0))
    rows = np.empty((len(directions), 0), dtype=np.int64)
    if bank.index is not None:
        found = bank.index.search(directions, min(k, len(bank.index)))
        distances, rows = found.distances, bank.rows[found.rows]
    if distances.shape[1] < k:
        return _with_zero_rows(distances, rows, bank, k, zero)
    if len(bank.zero_rows):
        late = np.flatnonzero(distances[:, -1] >= ZERO_TO_OTHER[zero])
        distances[late], rows[late] = _with_zero_rows(distances[late], rows[late], bank, k, zero)
    return distances, rows


def _with_zero_rows(
    distances: NDArray[np.float64], rows: Ids, bank: SectionBank, k: int, zero: ZeroPolicy
) -> tuple[NDArray[np.float64], Ids]:
    """Let the bank's zero rows in among the neighbours of candidates that have a direction."""
    others = np.broadcast_to(bank.zero_rows[:k], (len(rows), min(k, len(bank.zero_rows))))
    return _nearest_of(
        np.concatenate([distances, np.full(others.shape, ZERO_TO_OTHER[zero])], axis=1),
        np.concatenate([rows, others], axis=1),
        k,
    )


def _nearest_of(distances: NDArray[np.float64], rows: Ids, k: int) -> tuple[NDArray[np.float64], Ids]:
    """Keep the k nearest, ties by row number."""
    order = np.lexsort((rows, distances), axis=-1)[:, :k]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(rows, order, axis=1)
