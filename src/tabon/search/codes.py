"""Short forms of stored rows, by which a query pre-selects what it looks at whole.

A sketch bounds the similarity of a row r and a query q from above. With y the coordinates
along the first p principal axes and z the rest, q·r ≤ q_y·r_y + |q_z||r_z|
(Cauchy-Schwarz): one product of p + 1 numbers. Nothing near is missed.

A code is shorter: half a byte for two coordinates. A row is turned into its widest axes, turned
once more by a seeded rotation so that all axes weigh alike, and each two coordinates are replaced
by the nearest of 16 points (a product quantiser). Codes cost recall, never a distance.
"""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.encoders.protocol import Matrix
from tabon.method.sentence_sets import Ids
from tabon.search.cell_scan import HalfMatrix, Run, best, faiss_scan, only, slack_of, to_single

SKETCH_COLUMNS = 64
SKETCHES_KEPT = 4096  # rows with the largest bounds that a scan keeps
MEASURED_FIRST = 64  # rows that are measured, beside k, to know about how near the k-th is
LENGTH_ROUNDING = 1e-5  # added to squared lengths: a length is never too short
FLOAT16_MARGIN = np.float32(1.25 * 2.0**-11)  # by which float16 may lower a bound
AXES = 192  # of a row that go into its code, two by two
BITS = 4
POINTS = 2**BITS  # that stand for two coordinates
FEWEST = 64 * POINTS  # rows that points are learnt from
FEWEST_AXES = 4
KEPT = 1024  # rows that a query measures
PARTS = 8  # of the cells, if memory is short
ROUNDS = 10
SEED = 0
CodeRows = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The sketches of stored rows."""

    basis: Matrix  # (d, p), orthonormal columns
    rows: HalfMatrix  # (rows, p + 1)

    def of(self, queries: Matrix) -> Matrix:
        """Return the sketches of queries, one product each, whatever else is in the batch."""
        return np.concatenate(
            [sketched(queries[number : number + 1], self.basis) for number in range(len(queries))]
        )

    def candidates(self, queries: Matrix, rows: HalfMatrix, runs: Sequence[Run], k: int) -> tuple[Ids, Ids]:
        """Return (query, row) of all in the runs that can be among the k nearest.

        A query whose k-th nearest is so far that too many bounds reach it looks at the rows themselves.
        """
        width = max(SKETCHES_KEPT, 2 * k)
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
    """Return the rows that can be among the k nearest; None if the scan may have dropped one of them."""
    there = place >= 0
    order = np.argsort(-bounds[there], kind="stable")
    bound, row = bounds[there][order], place[there][order]
    similarity = to_single(rows[row[: k + MEASURED_FIRST]]) @ query
    reach = kth_largest(similarity, k) - slack_of(len(query)) - FLOAT16_MARGIN
    lowest = bounds.min(axis=1)
    if not (np.isneginf(lowest) | (lowest < reach)).all():
        return None
    more = int(np.searchsorted(-bound, -reach, side="right"))  # rows whose bound reaches it
    similarity = np.concatenate([similarity, to_single(rows[row[k + MEASURED_FIRST : more]]) @ query])
    near = similarity >= kth_largest(similarity, k) - slack_of(len(query))
    return row[: len(near)][near]


def within_reach(query: Matrix, named: Ids, rows: HalfMatrix, k: int) -> Ids:
    """Return those of some rows that can be among the k nearest of them; not by BLAS, as in `Cells.order`."""
    similarity = np.einsum("rd,d->r", to_single(rows[named]), query)
    near: Ids = named[similarity >= kth_largest(similarity, k) - slack_of(len(query))]
    return near


def kth_largest(similarity: Matrix, k: int) -> np.float32:
    """Return the k-th largest similarity, 1 at most; minus infinity if there are fewer.

    >>> float(kth_largest(np.array([0.5, 2.0, 0.25], dtype=np.float32), 2))
    0.5
    """
    if len(similarity) < k:
        return np.float32(-np.inf)
    found = np.partition(similarity, len(similarity) - k)[len(similarity) - k]
    return np.float32(min(found, 1.0))


def principal_basis(sample: Matrix) -> Matrix:
    """Return the axes along which the rows of a sample are longest, as columns."""
    return axes_of(sample, min(SKETCH_COLUMNS - 1, sample.shape[1] - 1))


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
    return np.concatenate(
        [first, np.sqrt(np.maximum(rest, 0.0) + LENGTH_ROUNDING)[:, None]], axis=1, dtype=np.float32
    )


@dataclass(frozen=True, slots=True, eq=False)
class Coder:
    """What turns rows into codes."""

    basis: Matrix  # (d, axes), orthonormal columns
    points: Matrix  # (axes / 2, 16, 2)

    def quantizer(self) -> Any:  # noqa: ANN401  # FAISS has no types
        """Return FAISS's product quantiser with these points."""
        faiss = _faiss()
        made = faiss.ProductQuantizer(self.basis.shape[1], len(self.points), BITS)
        faiss.copy_array_to_vector(
            np.ascontiguousarray(self.points, dtype=np.float32).ravel(), made.centroids
        )
        return made

    def codes(self, rows: Matrix) -> CodeRows:
        """Return the code of each row, two pairs of coordinates a byte."""
        found: CodeRows = self.quantizer().compute_codes(np.ascontiguousarray(rows @ self.basis))
        return found


def can_code(rows: int, dimension: int) -> bool:
    """Say whether codes can be learnt from so many rows, and used: FAISS is there."""
    return rows >= FEWEST and dimension >= FEWEST_AXES and find_spec("faiss") is not None


def trained_coder(sample: Matrix) -> Coder:
    """Learn axes and points from a sample of rows."""
    faiss = _faiss()
    axes = min(AXES, sample.shape[1] // 4 * 4)
    turn, _ = np.linalg.qr(np.random.default_rng(SEED).standard_normal((axes, axes)))
    basis = np.ascontiguousarray(axes_of(sample, axes) @ turn.astype(np.float32))
    learner = faiss.ProductQuantizer(axes, axes // 2, BITS)
    learner.cp.niter = ROUNDS
    learner.train(np.ascontiguousarray(sample @ basis))
    points = faiss.vector_to_array(learner.centroids).reshape(axes // 2, POINTS, 2)
    return Coder(basis, points)


@dataclass(frozen=True, eq=False)
class Codes:
    """The codes of stored rows, in their cells."""

    coder: Coder
    codes: CodeRows  # (rows, axes / 4)
    starts: Ids  # cell i has the places starts[i] : starts[i + 1]
    rows: Ids | None = None  # the row at each place; None: the place itself

    @cached_property
    def _all(self) -> Any:  # noqa: ANN401
        """Return the lists of all cells."""
        return self._lists(range(len(self.starts) - 1))

    def _lists(self, cells: Iterable[int]) -> Any:  # noqa: ANN401
        """Hand the codes of some cells to FAISS; it keeps them in memory, with 8 bytes a row beside them."""
        faiss, axes = _faiss(), self.coder.basis.shape[1]
        made = faiss.IndexIVFPQ(
            faiss.IndexFlatIP(axes), axes, len(self.starts) - 1, axes // 2, BITS, faiss.METRIC_INNER_PRODUCT
        )
        made.by_residual, made.pq, made.is_trained = False, self.coder.quantizer(), True
        for cell in cells:
            places = np.arange(self.starts[cell], self.starts[cell + 1])
            rows = places if self.rows is None else self.rows[places].astype(np.int64)
            block = np.ascontiguousarray(self.codes[rows])
            if len(rows):
                made.invlists.add_entries(cell, len(rows), faiss.swig_ptr(rows), faiss.swig_ptr(block))
                made.ntotal += len(rows)
        packed = faiss.IndexIVFPQFastScan(made)
        made.replace_invlists(None, False)  # `packed` keeps `made`, which need not keep its codes
        return packed

    def candidates(self, queries: Matrix, cells: Sequence[Ids], k: int) -> list[Ids]:
        """Return for each query the rows whose codes are nearest in the cells that it looks at, ascending.

        Queries look at a cell together, while it is in the processor's cache. A query's rows are those it
        would find alone, with any number of threads: it is turned alone, and rows that tie with the last
        one that fits are left out. So there may be few, though hardly ever.
        """
        turned, looked, width = self._turned(queries), _side_by_side(cells), max(KEPT, 2 * k)
        threads = _threads()
        shares = [np.where(looked % threads == share, looked, -1) for share in range(threads)]
        found = list(workers().map(partial(_nearest, self._all, turned, width), shares))
        return _best(found, width)

    def candidates_in_parts(self, queries: Matrix, cells: Sequence[Ids], k: int) -> list[Ids]:
        """Return the same with the codes of a part of the cells in memory at a time."""
        turned, looked, width = self._turned(queries), _side_by_side(cells), max(KEPT, 2 * k)
        found = []
        for part in range(PARTS):
            lists = self._lists(range(part, len(self.starts) - 1, PARTS))
            inside = np.where(looked % PARTS == part, looked, -1)
            found.append(workers().submit(_nearest, lists, turned, width, inside).result())
        return _best(found, width)

    def _turned(self, queries: Matrix) -> Matrix:
        """Return the coordinates of queries along the axes of the codes."""
        return np.stack([np.einsum("d,da->a", query, self.coder.basis) for query in queries])


def _side_by_side(cells: Sequence[Ids]) -> Ids:
    """Return the cells of each query in a row, -1 if there are no more."""
    looked = np.full((len(cells), max(map(len, cells))), -1, dtype=np.int64)
    for own, numbers in zip(looked, cells, strict=True):
        own[: len(numbers)] = numbers
    return looked


def _best(found: Sequence[tuple[Matrix, Ids]], width: int) -> list[Ids]:
    """Return the rows of each query above the last of `width`, ascending."""
    similarity, row = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    last = -np.partition(-similarity, width, axis=1)[:, width, None]
    return [np.sort(own[near]) for own, near in zip(row, similarity > last, strict=True)]


def _nearest(lists: Any, queries: Matrix, width: int, cells: Ids) -> tuple[Matrix, Ids]:  # noqa: ANN401
    """Return similarity and row of the nearest codes in some cells, one more than `width` of each query.

    A cell -1 is none. Where there are fewer rows the similarity is minus infinity. This runs on one of
    `workers()`, in which FAISS starts no further threads from then on.
    """
    faiss, shape = _faiss(), (len(queries), width + 1)
    similarity, row = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.int64)
    unused = np.zeros(cells.shape, dtype=np.float32)
    arrays = [np.ascontiguousarray(queries), np.ascontiguousarray(cells), unused, similarity, row]
    asked, looked, *rest = map(faiss.swig_ptr, arrays)
    settings = faiss.IVFSearchParameters(nprobe=cells.shape[1])
    faiss.omp_set_num_threads(1)
    lists.search_preassigned_c(len(queries), asked, width + 1, looked, *rest, False, settings)
    return np.where(row < 0, np.float32(-np.inf), similarity), row


def workers() -> ThreadPoolExecutor:
    """Return threads that wait for work; fresh ones would bring fresh memory into every search."""
    return _workers_of(os.getpid(), _threads())


def _threads() -> int:
    """Return how many threads FAISS may have, by OMP_NUM_THREADS or as set for this thread."""
    return max(1, int(_faiss().omp_get_max_threads()))


@cache
def _workers_of(process: int, threads: int) -> ThreadPoolExecutor:  # noqa: ARG001  # a fork has no threads
    """Make the threads of a process."""
    return ThreadPoolExecutor(threads)


def _faiss() -> Any:  # noqa: ANN401
    """Return FAISS."""
    return require("faiss", extra="faiss", feature="an index with codes")
