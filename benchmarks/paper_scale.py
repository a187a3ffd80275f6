"""Scoring at the paper's scale: eight methods against the four bare matrix products."""

import tempfile
import tracemalloc
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from tabon.method.distances import DISTANCES
from tabon.method.nearest import AGGREGATES, ExactIndex, SectionBank, aggregate_distances, bank_neighbours
from tabon.method.transitions import Transitions
from timing import Line, best_of, share
from top_k import bare_product

K = 10
AT_ONCE = 4096  # queries read from the file at once
COPIES, STILL = 0.03, 0.01  # shares of the bank's copies and of zero rows
SPREAD = 0.6  # how far rows lie from the centre of their cluster, whose length is 1


@dataclass(frozen=True)
class Size:
    """How much is scored."""

    queries: int
    bank: int
    dimension: int


PAPER, SMALL = Size(155_430, 22_745, 768), Size(6_000, 1_500, 32)


def clustered(rng: np.random.Generator, count: int, centres: np.ndarray) -> np.ndarray:
    """Unit rows around centres, some of them copies of others, some of them zero."""
    rows = rng.standard_normal((count, centres.shape[1]), dtype=np.float32)
    rows *= SPREAD / np.sqrt(centres.shape[1])
    rows += centres[rng.zipf(1.3, size=count) % len(centres)]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    copies = rng.random(count) < COPIES
    rows[copies] = rows[rng.integers(count, size=copies.sum())]
    rows[rng.random(count) < STILL] = 0.0
    return rows


def write_queries(path: Path, rng: np.random.Generator, bank: np.ndarray, size: Size) -> np.ndarray:
    """Write queries of the bank's kind, some of them rows of it, and map the file."""
    file = np.lib.format.open_memmap(path, "w+", np.float32, (size.queries, size.dimension))
    for start in range(0, size.queries, AT_ONCE):
        block = clustered(rng, min(AT_ONCE, size.queries - start), bank)
        known = rng.random(len(block)) < COPIES
        block[known] = bank[rng.integers(len(bank), size=known.sum())]
        file[start : start + len(block)] = block
    file.flush()
    return np.load(path, mmap_mode="r")


def section_bank(rows: np.ndarray) -> SectionBank:
    """Make a bank of directions ready to be searched."""
    moving = rows.any(axis=1)
    return SectionBank(ExactIndex(rows[moving]), np.flatnonzero(moving), np.flatnonzero(~moving))


def score(queries: np.ndarray, bank: SectionBank, out: np.ndarray) -> None:
    """One search, both aggregates: (queries, 2) distances (eq. 9-10)."""
    found = bank_neighbours(Transitions(queries, ~queries.any(axis=1)), bank, K, "neutral")
    for number, aggregate in enumerate(AGGREGATES):
        out[:, number] = aggregate_distances(found.distances, aggregate)


def check(queries: np.ndarray, rows: np.ndarray, found: np.ndarray) -> None:
    """Distances must be those of every pair in float64, sorted."""
    nearest = np.sort(np.clip(0.5 * (1.0 - queries.astype(float) @ rows.T.astype(float)), 0.0, 1.0), axis=1)
    expected = np.stack([nearest[:, 0], nearest[:, :K].mean(axis=1)], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def blocks(count: int) -> Iterator[slice]:
    """Cut the queries into what is read at once."""
    return (slice(start, min(start + AT_ONCE, count)) for start in range(0, count, AT_ONCE))


def product_by_core(queries: np.ndarray, rows: np.ndarray) -> None:
    """The product alone, each core with blocks of its own: what a busy machine does better."""
    workers = max([library["num_threads"] for library in threadpool_info()], default=1)
    pieces = np.array_split(queries, workers)
    with threadpool_limits(limits=1), ThreadPoolExecutor(workers) as pool:
        deque(pool.map(partial(bare_product, rows=rows), pieces), maxlen=0)


def times_in_turn(queries: np.ndarray, rows: np.ndarray, out: np.ndarray) -> list[float]:
    """Seconds of scoring, and of the bare product in two forms, block by block in turn."""
    bank = section_bank(rows)
    times = np.zeros(3)
    for block in blocks(len(queries)):
        held = np.array(queries[block])  # read for all
        times += best_of(
            1,
            partial(score, held, bank, out[block]),
            partial(bare_product, held, rows),
            partial(product_by_core, held, rows),
        )
    return times.tolist()


def peak_memory(queries: np.ndarray, rows: np.ndarray) -> float:
    """Megabytes held at once: the index, some blocks, and the results of all queries and methods."""
    tracemalloc.start()
    try:
        results = np.empty((len(DISTANCES), len(queries), len(AGGREGATES)))
        bank = section_bank(rows)
        for block in list(blocks(len(queries)))[:3]:
            score(queries[block], bank, results[0, block])
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def paper_scale_lines(*, quick: bool) -> Iterator[Line]:
    """Four distances × two aggregates, each distance with data of its own."""
    size = SMALL if quick else PAPER
    out = np.empty((size.queries, len(AGGREGATES)))
    times, memory = [], []
    for seed in range(len(DISTANCES)):
        rng = np.random.default_rng(seed)
        centres = clustered(rng, max(2, size.bank // 15), np.zeros((1, size.dimension), dtype=np.float32))
        rows = clustered(rng, size.bank, centres)
        with tempfile.TemporaryDirectory() as folder:
            queries = write_queries(Path(folder) / "queries.npy", rng, rows, size)
            times.append(times_in_turn(queries, rows, out))
            check(queries[:200], rows, out[:200])
            memory.append(peak_memory(queries, rows))
    ours, *products = np.sum(times, axis=0)
    what = f"8 methods, {size.queries} queries × {size.bank} × {size.dimension}"
    yield share(what, ours, min(products), "the four bare matrix products, the faster of two forms", "≤ 1.3")
    yield share(f"{what}: extra memory, MB", max(memory), 500, "500 MB", "≤ 1")
