"""Exact top-k against the bare matrix product and against FAISS."""

import tracemalloc
from collections.abc import Iterator

import faiss
import numpy as np

from tabon.method.nearest import ExactIndex
from timing import Line, best_of, faster, share

K = 10


def unit(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    """Random unit rows: no ties, no structure to exploit."""
    rows = rng.standard_normal((count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def bare_product(queries: np.ndarray, rows: np.ndarray) -> None:
    """The product alone, in blocks that fit memory, into one buffer."""
    buffer = np.empty((512, len(rows)), dtype=np.float32)
    for start in range(0, len(queries), 512):
        block = queries[start : start + 512]
        np.matmul(block, rows.T, out=buffer[: len(block)])


def top_k_lines(*, quick: bool) -> Iterator[Line]:
    """Time and extra memory of 4,000 queries against a bank of the paper's size."""
    count, bank, dimension = (300, 3000, 64) if quick else (4000, 22_745, 768)
    rng = np.random.default_rng(0)
    queries, rows = unit(rng, count, dimension), unit(rng, bank, dimension)
    index, flat = ExactIndex(rows), faiss.IndexFlatIP(dimension)
    flat.add(rows)
    np.testing.assert_array_equal(index.search(queries, K).rows, flat.search(queries, K)[1])
    ours, product, theirs = best_of(
        1 if quick else 7,
        lambda: index.search(queries, K),
        lambda: bare_product(queries, rows),
        lambda: flat.search(queries, K),
    )
    what = f"top-{K} of {count} queries, {bank} × {dimension}"
    yield share(what, ours, product, "the bare matrix product", "≤ 1.3")
    yield faster(what, ours, theirs, f"FAISS {faiss.__version__} IndexFlatIP", "≥ 1")
    yield share(f"{what}: extra memory, MB", peak_memory(index, queries), 300, "300 MB", "≤ 1")


def peak_memory(index: ExactIndex, queries: np.ndarray) -> float:
    """The most memory that a search holds at once, results included."""
    tracemalloc.start()
    try:
        index.search(queries, K)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
