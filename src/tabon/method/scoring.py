"""Bank distances of candidate transitions (eq. 8-10).

Where a transition is zero the cosine of eq. 9 is 0/0, and a named policy speaks:

* `neutral` (default): cosine 0, so distance ½ to everything;
* `match`: zero to zero is distance 0, zero to anything else ½;
* `farthest`: distance 1 to everything, on either side.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tabon.method.bank import SectionBank
from tabon.method.sentence_sets import Ids
from tabon.method.transitions import Transitions

ZeroPolicy = Literal["neutral", "match", "farthest"]
Aggregate = Literal["min", "knn"]
ZERO_POLICIES: tuple[ZeroPolicy, ...] = ("neutral", "match", "farthest")
AGGREGATES: tuple[Aggregate, ...] = ("min", "knn")

ZERO_TO_OTHER = {"neutral": 0.5, "match": 0.5, "farthest": 1.0}
ZERO_TO_ZERO = {"neutral": 0.5, "match": 0.0, "farthest": 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class BankNeighbours:
    """The k nearest training transitions of each candidate, nearest first."""

    distances: NDArray[np.float64]  # (candidates, k)
    rows: Ids  # (candidates, k), rows of the whole bank


def bank_neighbours(candidates: Transitions, bank: SectionBank, k: int, zero: ZeroPolicy) -> BankNeighbours:
    """Return the k nearest training transitions of each candidate (eq. 9), ties by row.

    `k` may not exceed `len(bank)`.
    """
    if not candidates.zero.any():  # the usual case: no copy of all directions
        return BankNeighbours(*_of_moving(candidates.directions, bank, k, zero))
    distances = np.empty((len(candidates.zero), k))
    rows = np.empty((len(candidates.zero), k), dtype=np.int64)
    moving, still = np.flatnonzero(~candidates.zero), np.flatnonzero(candidates.zero)
    distances[moving], rows[moving] = _of_moving(candidates.directions[moving], bank, k, zero)
    distances[still], rows[still] = _of_still(bank, k, zero)
    return BankNeighbours(distances, rows)


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


def _of_still(bank: SectionBank, k: int, zero: ZeroPolicy) -> tuple[NDArray[np.float64], Ids]:
    """Neighbours of a candidate without a direction: the same for each of them."""
    others, zeros = bank.rows[:k], bank.zero_rows[:k]
    distances = np.r_[np.full(len(others), ZERO_TO_OTHER[zero]), np.full(len(zeros), ZERO_TO_ZERO[zero])]
    return _nearest_of(distances[None], np.r_[others, zeros][None], k)


def _nearest_of(distances: NDArray[np.float64], rows: Ids, k: int) -> tuple[NDArray[np.float64], Ids]:
    """Keep the k nearest, ties by row number."""
    order = np.lexsort((rows, distances), axis=-1)[:, :k]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(rows, order, axis=1)
