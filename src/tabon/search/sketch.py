"""Sketches: some numbers a row that bound its similarity to a query from above.

A row r is turned into its principal axes and cut after p of them; what is left
counts by its length alone. With y the first p coordinates and z the rest,
q·r ≤ q_y·r_y + |q_z||r_z| (Cauchy-Schwarz): one product of p + 1 numbers. Only
rows whose bound reaches the k-th best similarity found must be looked at whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tabon.encoders.protocol import Matrix
from tabon.method.sentence_sets import Ids
from tabon.search.cell_scan import HalfMatrix, Run, best, faiss_scan, only, slack_of, to_single

COLUMNS = 64  # of a sketch
KEPT = 4096  # rows with the largest bounds that a scan keeps
FIRST = 64  # rows that are measured, beside k, to know about how near the k-th is
SAFE = 1e-5  # added to squared lengths, for rounding: a length is never too short
MARGIN = np.float32(1.25 * 2.0**-11)  # by which float16 may lower a bound


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The sketches of stored rows."""

    basis: Matrix  # (d, p), orthonormal columns
    rows: HalfMatrix  # (rows, p + 1)

    def of(self, queries: Matrix) -> Matrix:
        """Return the sketches of queries, one product each, so that its company does not matter."""
        return np.concatenate(
            [sketched(queries[number : number + 1], self.basis) for number in range(len(queries))]
        )

    def candidates(self, queries: Matrix, rows: HalfMatrix, runs: Sequence[Run], k: int) -> tuple[Ids, Ids]:
        """Return (query, row) of all in the runs that can be among the k nearest.

        A query whose k-th nearest is so far that too many bounds reach it looks at the rows themselves.
        """
        width = max(KEPT, 2 * k)
        bounds, place = best(np.ascontiguousarray(self.of(queries)), self.rows, runs, width)
        found: list[tuple[Ids, Ids]] = []
        left = set()
        for number, query in enumerate(queries):
            near = _near(query, rows, bounds[:, number], place[:, number], k)
            if near is None:
                left.add(number)
            else:
                found.append((np.full(len(near), number), near))
        if left:
            found.append(faiss_scan(queries, rows, only(runs, frozenset(left)), k))
        return np.concatenate([one for one, _ in found]), np.concatenate([one for _, one in found])


def _near(query: Matrix, rows: HalfMatrix, bounds: Matrix, place: Ids, k: int) -> Ids | None:
    """Return the rows that can be among the k nearest; None where the scan may have dropped one of them."""
    there = place >= 0
    order = np.argsort(-bounds[there], kind="stable")
    bound, row = bounds[there][order], place[there][order]
    similarity = to_single(rows[row[: k + FIRST]]) @ query
    reach = kth_largest(similarity, k) - slack_of(len(query)) - MARGIN
    lowest = bounds.min(axis=1)
    if not (np.isneginf(lowest) | (lowest < reach)).all():
        return None
    more = int(np.searchsorted(-bound, -reach, side="right"))  # rows whose bound reaches it
    similarity = np.concatenate([similarity, to_single(rows[row[k + FIRST : more]]) @ query])
    near = similarity >= kth_largest(similarity, k) - slack_of(len(query))
    return row[: len(near)][near]


def within_reach(query: Matrix, named: Ids, rows: HalfMatrix, k: int) -> Ids:
    """Return those of some rows that can be among the k nearest of them; not by BLAS, as in `Cells.order`."""
    similarity = np.einsum("rd,d->r", to_single(rows[named]), query)
    near: Ids = named[similarity >= kth_largest(similarity, k) - slack_of(len(query))]
    return near


def kth_largest(similarity: Matrix, k: int) -> np.float32:
    """Return the k-th largest similarity, 1 at most; minus infinity where there are fewer.

    >>> float(kth_largest(np.array([0.5, 2.0, 0.25], dtype=np.float32), 2))
    0.5
    """
    if len(similarity) < k:
        return np.float32(-np.inf)
    found = np.partition(similarity, len(similarity) - k)[len(similarity) - k]
    return np.float32(min(found, 1.0))


def principal_basis(sample: Matrix) -> Matrix:
    """Return the axes along which the rows of a sample are longest, as columns."""
    return axes_of(sample, min(COLUMNS - 1, sample.shape[1] - 1))


def axes_of(sample: Matrix, columns: int) -> Matrix:
    """Return so many of the axes along which the rows of a sample are longest, as columns."""
    _, axes = np.linalg.eigh(sample.T.astype(np.float64) @ sample)
    return np.ascontiguousarray(axes[:, ::-1][:, :columns], dtype=np.float32)


def sketched(rows: Matrix, basis: Matrix) -> Matrix:
    """Return the first coordinates of rows and the length of the rest.

    >>> [[first, rest]] = sketched(np.array([[0.6, 0.0, 0.8]]), np.eye(3, 1)).tolist()
    >>> round(first, 3), round(rest, 3)
    (0.6, 0.8)
    """
    first = rows @ basis
    rest = np.einsum("rd,rd->r", rows, rows) - np.einsum("rp,rp->r", first, first)
    return np.concatenate([first, np.sqrt(np.maximum(rest, 0.0) + SAFE)[:, None]], axis=1, dtype=np.float32)
