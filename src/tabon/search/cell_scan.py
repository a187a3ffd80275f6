"""Which of many float16 rows can be among the k nearest of a query.

A scan only pre-selects: it returns every row whose similarity, as it computes
it, is within the rounding error of the k-th best. FAISS does it at the speed of
memory; numpy gives the same rows without it.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.encoders.protocol import Matrix
from tabon.method.sentence_sets import Ids

HalfMatrix = NDArray[np.float16]
Scan = Callable[[Matrix, HalfMatrix, Sequence["Run"], int], tuple[Ids, Ids]]  # (query, row) of k candidates

RUN = 1024  # whole rows that all queries look at before the next: they stay in the processor's cache
SKETCH_RUN = 6144  # the same of sketches
EXTRA = 64  # rows that FAISS keeps beside the k nearest
PRUNE = 4096  # pairs that numpy collects before it drops those that have become too far
WIDER = 8
LOW_BITS = 32  # FAISS labels a row by (run, place in the run)
HALF_SIGN_AND_BITS = np.int32(-0x70002000)  # of an int16 moved up by 13: sign, exponent and fraction
HALF_SCALE = np.float32(2.0**112)  # between the exponents of float16 and float32


@dataclass(frozen=True, slots=True)
class Run:
    """Rows that lie together, and the queries that look at them."""

    start: int
    stop: int
    queries: tuple[int, ...]


def runs_of(start: int, stop: int, queries: tuple[int, ...], length: int) -> Iterator[Run]:
    """Cut rows into runs of some length."""
    return (Run(at, min(at + length, stop), queries) for at in range(start, stop, length))


def only(runs: Sequence[Run], asked: frozenset[int]) -> list[Run]:
    """Return the runs with those of their queries that are asked."""
    return [
        Run(run.start, run.stop, left)
        for run in runs
        if (left := tuple(one for one in run.queries if one in asked))
    ]


def slack_of(dimension: int) -> np.float32:
    """Return how far below the k-th best computed similarity one of the k nearest may lie.

    Four rounding errors, as in docs/decisions/exact-search.md, and one for
    stored rows that are a little longer than 1 and for this subtraction.
    """
    return np.float32(5.0 * dimension * 2.0**-24)


def to_single(rows: HalfMatrix) -> Matrix:
    """Return float16 rows (all finite) as float32, five times as fast as `astype`.

    >>> to_single(np.array([1.0, -0.5, 6e-8, 0.0], dtype=np.float16)).tolist()[:2]
    [1.0, -0.5]
    """
    bits = np.asarray(rows).view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= HALF_SIGN_AND_BITS
    single: Matrix = bits.view(np.float32)
    single *= HALF_SCALE
    return single


def lower_bounds(query: Ids, similarity: Matrix, queries: int, k: int) -> Matrix:
    """Return the k-th largest similarity of each query, 1 at most; minus infinity if there are fewer.

    Stored rows may be a little longer than 1. Whatever is above 1 has distance 0, so all of it ties.
    """
    order = np.lexsort((-similarity, query))
    starts = np.searchsorted(query[order], np.arange(queries + 1))
    bounds = np.full(queries, -np.inf, dtype=np.float32)
    enough = np.flatnonzero(np.diff(starts) >= k)
    bounds[enough] = np.minimum(similarity[order[starts[enough] + k - 1]], 1.0)
    return bounds


def numpy_scan(queries: Matrix, rows: HalfMatrix, runs: Sequence[Run], k: int) -> tuple[Ids, Ids]:
    """Return (query, row) of all that can be among the k nearest."""
    bounds, enough = np.full(len(queries), -np.inf, dtype=np.float32), PRUNE
    query, row, similarity = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    for number, run in enumerate(runs, start=1):
        looking = np.array(run.queries)
        found = queries[looking] @ to_single(rows[run.start : run.stop]).T
        near, place = np.nonzero(found >= bounds[looking][:, None])
        query = np.concatenate([query, looking[near]])
        row = np.concatenate([row, run.start + place])
        similarity = np.concatenate([similarity, found[near, place]])
        if len(query) > enough or number == len(runs):
            bounds = lower_bounds(query, similarity, len(queries), k) - slack_of(queries.shape[1])
            keep = similarity >= bounds[query]
            query, row, similarity = query[keep], row[keep], similarity[keep]
            enough = len(query) + PRUNE
    return query, row


def faiss_scan(queries: Matrix, rows: HalfMatrix, runs: Sequence[Run], k: int) -> tuple[Ids, Ids]:
    """Return (query, row) of all that can be among the k nearest.

    FAISS keeps the best k and some more. Where the last one kept is not below
    the bound, something may have been dropped, and the query is asked again.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    found: list[tuple[Ids, Ids]] = []
    asked, width = frozenset(range(len(queries))), k + EXTRA
    while asked:
        similarity, row = best(queries, rows, only(runs, asked), width)
        short = similarity.min(axis=2)
        query = np.broadcast_to(np.arange(len(queries))[:, None], row.shape)[row >= 0]
        bound = lower_bounds(query, similarity[row >= 0], len(queries), k) - slack_of(queries.shape[1])
        proven = (np.isneginf(short) | (short < bound)).all(axis=0)
        done = proven[query] & (similarity[row >= 0] >= bound[query])
        found.append((query[done], row[row >= 0][done]))
        asked, width = frozenset(one for one in asked if not proven[one]), WIDER * width
    return np.concatenate([one for one, _ in found]), np.concatenate([one for _, one in found])


def best(queries: Matrix, rows: HalfMatrix, runs: Sequence[Run], width: int) -> tuple[Matrix, Ids]:
    """Return the best similarities and their rows, (threads, queries, width); row -1 if there is none."""
    faiss = require("faiss", extra="faiss", feature="the FAISS search")
    threads = max(1, min(faiss.omp_get_max_threads(), len(runs)))
    cuts = np.linspace(0, len(runs), threads + 1).astype(int)
    shares = [runs[start:stop] for start, stop in pairwise(cuts)]
    codes = np.asarray(rows).view(np.uint8)
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(partial(_best_of_share, faiss, queries, codes, width), shares))
    return np.stack([one for one, _ in found]), np.stack([one for _, one in found])


def _best_of_share(
    faiss: Any,  # noqa: ANN401  # the module
    queries: Matrix,
    codes: NDArray[np.uint8],
    width: int,
    runs: Sequence[Run],
) -> tuple[Matrix, Ids]:
    """Let FAISS look at runs of rows in place, one run after another, each by all its queries."""
    similarity = np.full((len(queries), width), -np.inf, dtype=np.float32)
    label = np.full((len(queries), width), -1, dtype=np.int64)
    heaps = [tuple(map(faiss.swig_ptr, pair)) for pair in zip(similarity, label, strict=True)]
    quantizer = faiss.ScalarQuantizer(queries.shape[1], faiss.ScalarQuantizer.QT_fp16)
    settings = faiss.METRIC_INNER_PRODUCT, None, True, None, False
    scanners = [quantizer.select_InvertedListScanner(*settings) for _ in queries]
    try:
        for scanner, query in zip(scanners, queries, strict=True):
            scanner.set_query(faiss.swig_ptr(query))
        for number, run in enumerate(runs):
            first, count = faiss.swig_ptr(codes[run.start : run.stop]), run.stop - run.start
            for place in run.queries:
                scanners[place].set_list(number, 0.0)
                scanners[place].scan_codes(count, first, None, *heaps[place], width)
    finally:
        for scanner in scanners:  # by hand: handing them to Python with `thisown` breaks FAISS's types
            faiss.InvertedListScanner.__swig_destroy__(scanner)
    starts = np.array([run.start for run in runs], dtype=np.int64)
    row = starts[label >> LOW_BITS] + (label & ((1 << LOW_BITS) - 1))
    return similarity, np.where(label < 0, -1, row)
