"""Equal rows: found by hashes, confirmed by their bytes, and stored once.

A row that is taken for a new one although it is not costs its room and nothing else.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabon.method.sentence_sets import Ids
from tabon.search.cell_scan import HalfMatrix

Hashes = NDArray[np.uint64]
RECENT = 1 << 19  # hashes that are put in order with the others at once
SEED = 7


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """Which bank rows share a distinct row: those of row i are rows[starts[i] : starts[i + 1]], ascending."""

    rows: Ids
    starts: Ids

    @classmethod
    def of(cls, group: Ids, distinct: int) -> "Copies":
        """Turn the distinct row of each bank row around."""
        rows = np.argsort(group, kind="stable")
        counts = np.bincount(group, minlength=distinct)
        return cls(rows, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]))

    def spread(
        self, query: Ids, distance: NDArray[np.float64], distinct: Ids
    ) -> tuple[Ids, NDArray[np.float64], Ids]:
        """Replace each distinct row by the bank rows that are equal to it."""
        starts = self.starts[distinct]
        counts = self.starts[distinct + 1] - starts
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        row = self.rows[np.repeat(starts, counts) + within]
        return np.repeat(query, counts), np.repeat(distance, counts), row


class _Table:
    """Sorted hashes and the number of the row that has each."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.hashes, self.numbers = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32)

    def __len__(self) -> int:
        """Count the hashes."""
        return len(self.hashes)

    def find(self, hashes: Hashes) -> NDArray[np.int32]:
        """Return the number of each hash; -1 where it is not there."""
        place = np.minimum(np.searchsorted(self.hashes, hashes), max(len(self) - 1, 0))
        if not len(self):
            return np.full(len(hashes), -1, dtype=np.int32)
        return np.where(self.hashes[place] == hashes, self.numbers[place], np.int32(-1))

    def insert(self, hashes: Hashes, numbers: NDArray[np.int32]) -> None:
        """Add hashes that are not there, in ascending order."""
        places = np.searchsorted(self.hashes, hashes)
        self.hashes = np.insert(self.hashes, places, hashes)
        self.numbers = np.insert(self.numbers, places, numbers)


class SeenRows:
    """Numbers of distinct rows in the order in which they came."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._count, self._old, self._recent = 0, _Table(), _Table()

    def numbers_of(self, block: HalfMatrix, stored: HalfMatrix) -> tuple[NDArray[np.int32], Ids]:
        """Return the number of each row of a block, and which rows of it are new, in order.

        `stored` holds all distinct rows before this block.
        """
        hashes = row_hashes(block)
        distinct, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        known = np.maximum(self._old.find(distinct), self._recent.find(distinct))
        number = np.where(known[inverse] >= 0, known[inverse], -1)
        twin = stored[number[number >= 0]] if len(stored) else block[:0]
        same = np.zeros(len(block), dtype=bool)
        same[number >= 0] = _equal(block[number >= 0], twin)
        own = (number < 0) & _equal(block, block[first[inverse]])
        new = np.flatnonzero(~same & ~(own & (first[inverse] != np.arange(len(block)))))
        fresh = np.full(len(block), -1, dtype=np.int32)
        fresh[new] = self._count + np.arange(len(new), dtype=np.int32)
        number = np.where(same, number, np.where(own, fresh[first[inverse]], fresh)).astype(np.int32)
        self._count += len(new)
        self._recent.insert(distinct[known < 0], fresh[first[known < 0]])
        if len(self._recent) > RECENT:
            self._old.insert(self._recent.hashes, self._recent.numbers)
            self._recent = _Table()
        return number, new


def row_hashes(rows: HalfMatrix) -> Hashes:
    """Return a 64-bit hash of each row's bytes."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 4) * 4), dtype=np.float16)
    padded[:, : rows.shape[1]] = rows
    words = padded.view(np.uint64)
    words ^= words >> np.uint64(29)
    factors = np.random.default_rng(SEED).integers(
        1, 2**64, size=words.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    words *= factors
    words ^= words >> np.uint64(32)
    words *= factors[::-1]
    found: Hashes = words.sum(axis=1, dtype=np.uint64)
    return found


def _equal(rows: HalfMatrix, others: HalfMatrix) -> NDArray[np.bool_]:
    """Tell which rows have the same bytes."""
    same: NDArray[np.bool_] = (rows.view(np.uint16) == others.view(np.uint16)).all(axis=1)
    return same
