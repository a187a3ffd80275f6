"""Batch transition vectors against a plain loop of numpy and `ot.emd`."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import ot

from openi_text import reports, sentence_lists
from tabon.method.distances import DISTANCES, get_distance
from tabon.method.sentence_sets import RaggedSets
from tabon.method.transitions import transitions
from timing import Line, best_of, faster


def plain_loop(vectors: np.ndarray, prior: RaggedSets, current: RaggedSets) -> np.ndarray:
    """All four distances as one would write them for one pair, pair by pair."""
    out = np.empty((4, len(prior), vectors.shape[1]), dtype=np.float32)
    for i in range(len(prior)):
        a, b = vectors[prior[i]], vectors[current[i]]
        cost = 0.5 * (1.0 - a @ b.T)
        nearest = a[cost.argmin(axis=0)]
        anchor = cost.min(axis=0).argmax()
        plan = ot.emd(np.full(len(a), 1 / len(a)), np.full(len(b), 1 / len(b)), cost.astype(float))
        out[0, i] = b.mean(axis=0) - a.mean(axis=0)
        out[1, i] = (b - nearest).mean(axis=0)
        out[2, i] = b[anchor] - nearest[anchor]
        out[3, i] = np.einsum("ij,ijd->d", plan * cost, b[None] - a[:, None])
    return out


def loop_over_emd(vectors: np.ndarray, prior: RaggedSets, current: RaggedSets) -> np.ndarray:
    """Cost-OT alone, pair by pair."""
    out = np.empty((1, len(prior), vectors.shape[1]), dtype=np.float32)
    for i in range(len(prior)):
        a, b = vectors[prior[i]], vectors[current[i]]
        cost = 0.5 * (1.0 - a @ b.T)
        plan = ot.emd(np.full(len(a), 1 / len(a)), np.full(len(b), 1 / len(b)), cost.astype(float))
        out[0, i] = np.einsum("ij,ijd->d", plan * cost, b[None] - a[:, None])
    return out


def transition_lines(*, quick: bool) -> Iterator[Line]:
    """Cost-OT alone and four distances at once, on the corpus's sections in pairs drawn at random.

    And Cost-OT on sections of their sizes with rows evenly drawn, where no sentence is
    more common than another and none is found in the processor's cache.
    """
    pairs = 500 if quick else 20_000
    rng = np.random.default_rng(0)
    sections = sections_as_rows()
    rows = 1 + max(max(section) for section in sections)
    for dimension in (384, 768):
        vectors = rng.standard_normal((rows, dimension)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        drawn = [[sections[i] for i in rng.integers(len(sections), size=pairs)] for _ in range(2)]
        even = [[rng.choice(rows, len(section), replace=False) for section in side] for side in drawn]
        cost_ot = (["cost-ot"], "Cost-OT alone", loop_over_emd, "loop over ot.emd", "≥ 10")
        four = (list(DISTANCES), "four distances", plain_loop, "plain loop, numpy + ot.emd", "≥ 5, aim 10")
        for sides, of, compared in (
            (drawn, "sections", (cost_ot, four)),
            (even, "sizes, rows evenly drawn", (cost_ot,)),
        ):
            prior, current = map(RaggedSets.of, sides)
            what = f"{pairs} pairs of {reports()[0]}'s {of}, d = {dimension}"
            for names, title, loop, peer, goal in compared:
                ours = partial(
                    transitions, list(map(get_distance, names)), vectors, prior=prior, current=current
                )
                theirs = partial(loop, vectors, prior, current)
                check(ours(), theirs())
                yield faster(f"{title}, {what}", *best_of(1 if quick else 3, ours, theirs), peer, goal)


def sections_as_rows() -> list[list[int]]:
    """Return the distinct sentences of each section as row numbers."""
    row: dict[str, int] = {}
    return [[row.setdefault(one, len(row)) for one in dict.fromkeys(each)] for each in sentence_lists()]


def check(found: list, expected: np.ndarray) -> None:
    """Both ways must give the same directions."""
    for ours, loop in zip(found, expected, strict=True):
        moving = ~ours.zero
        unit = loop[moving] / np.linalg.norm(loop[moving], axis=1, keepdims=True)
        np.testing.assert_allclose(ours.directions[moving], unit, atol=1e-4)
