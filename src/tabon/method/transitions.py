"""Transition vectors g^S (eq. 6) of many pairs of sentence sets at once.

Pairs of one shape (n prior, m current sentences) go through the set distances as one stack that fits the
processor's cache. If there is much to do, stacks are shared out among threads; no bit depends on it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import prod
from threading import local

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from tabon.encoders.protocol import Matrix
from tabon.errors import EmptySectionError
from tabon.method.distances import Distance, Rows, Stack, Weights, cosine_cost
from tabon.method.sentence_sets import Ids, RaggedSets

STACK_NUMBERS = 1_000_000  # numbers in one stack at most: some four megabytes
THREAD_STACK_NUMBERS = 4_000_000  # in threads: at each step a stack may wait for the interpreter's lock
THREADED_NUMBERS = 4_000_000  # with fewer numbers in all, threads are not worth their start
MOST_THREADS = 4  # more wait for the interpreter's lock, which the transport solver needs pair by pair
TINY = 1e-300  # what no weight but 0 is below
FAINT = 0.1  # the share of its terms below which a sum is taken again in float64
NORM_FLOOR = 1e-6  # a shorter transition has no direction that could be trusted

Shaped = tuple[int, int, Ids]  # n, m and the pairs of that shape


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """Directions of change as float32 unit rows; a zero transition is a zero row."""

    directions: Matrix  # (pairs, d)
    zero: NDArray[np.bool_]  # (pairs,)


def transitions(
    distances: Sequence[Distance], vectors: Matrix, *, prior: RaggedSets, current: RaggedSets
) -> list[Transitions]:
    """Return the direction of g = T(A, B) for each pair of sets (eq. 6), for each distance.

    The ids of the sets A (`prior`) and B (`current`) are rows of `vectors`; none may be empty.
    """
    if (prior.lengths == 0).any() or (current.lengths == 0).any():
        raise EmptySectionError("a transition needs a sentence on each side; leave empty pairs out")
    dimension = vectors.shape[1]
    directions = np.empty((len(distances), len(prior), dimension), dtype=np.float32)
    zero = np.empty((len(distances), len(prior)), dtype=bool)
    space = _Workspace()

    def fill(stack: Shaped) -> None:
        n, m, pairs = stack
        ids = np.concatenate([prior.stack(pairs, n), current.stack(pairs, m)], axis=1)
        rows = space.room("rows", *ids.shape, dimension)
        np.take(vectors, ids, axis=0, out=rows, mode="clip")  # ids are a table's own: none is clipped
        cost = cosine_cost(prior=rows[:, :n], current=rows[:, n:])
        same = cost == 0.0  # a kept sentence is marked at the first of its places in the prior
        kept = same & (same.cumsum(axis=1) == 1) if same.any() else None
        for distance, units, none in zip(distances, directions, zero, strict=True):
            weights, largest = _net_weights(distance(cost), kept)
            sums, norms = _displacements(weights, rows, space.room("sums", len(pairs), dimension))
            units[pairs], none[pairs] = directions_of(sums, norms, floor=NORM_FLOOR / largest)

    numbers = (len(prior.ids) + len(current.ids)) * dimension
    workers = 1 if numbers < THREADED_NUMBERS else _cores()
    at_once = STACK_NUMBERS if workers == 1 else THREAD_STACK_NUMBERS
    stacks = groups_of_one_shape(prior.lengths, current.lengths, dimension, at_once)
    if workers == 1:
        deque(map(fill, stacks), maxlen=0)
    else:
        with ThreadPoolExecutor(workers) as pool:
            deque(pool.map(fill, stacks), maxlen=0)
    return [Transitions(*pair) for pair in zip(directions, zero, strict=True)]


class _Workspace(local):
    """Memory of each thread that its stacks use in turn: fresh memory would cost as much as the sums."""

    def room(self, name: str, *shape: int) -> Matrix:
        """Return an array of this shape, as it was left; it lasts until the next call for this name."""
        held = self.__dict__.get(name)
        if held is None or held.size < prod(shape):
            held = self.__dict__[name] = np.empty(prod(shape), dtype=np.float32)
        found: Matrix = held[: prod(shape)].reshape(shape)
        return found


@cache
def blas() -> ThreadpoolController:
    """Return the handle to the BLAS library's own threads."""
    return ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """Return how many threads the BLAS library may use."""
    return max([library["num_threads"] for library in blas().info()], default=1)


def _cores() -> int:
    """Return half of the BLAS library's threads: two on one core share its arithmetic."""
    return max(1, min(blas_threads() // 2, MOST_THREADS))


def _net_weights(weights: Weights, kept: NDArray[np.bool_] | None) -> tuple[Stack, Stack]:
    """Return the signed weight of each sentence as a part of the largest, (pairs, n + m), and the largest.

    A sentence that was kept has one weight, the difference of its two. So equal changes
    have equal weights, whatever else stands in the reports and however long they are.
    """
    alpha, beta = weights.prior, weights.current
    if kept is not None:
        alpha = alpha - (kept * beta[:, None, :]).sum(axis=2)
        beta = np.where(kept.any(axis=1), 0.0, beta)
    signed = np.concatenate([-alpha, beta], axis=1)
    largest = np.maximum(np.abs(signed).max(axis=1), TINY)
    signed /= largest[:, None]
    return signed, largest


def _displacements(weights: Stack, rows: Matrix, out: Matrix) -> tuple[Matrix, Rows]:
    """T(A, B) of each pair of a stack, the sum of its weighted sentences: (pairs, d), and the norms.

    In float32, and in one order of additions. Where the terms nearly cancel, rounding
    would be too much of what is left: those pairs are summed again in float64.
    """
    np.einsum("pk,pkd->pd", weights.astype(np.float32), rows, out=out)
    norms = norms_of(out)
    faint = np.flatnonzero(norms < FAINT * np.abs(weights).sum(axis=1))
    if len(faint):
        out[faint] = (weights[faint, None] @ rows[faint].astype(np.float64))[:, 0]
        norms[faint] = norms_of(out[faint])
    return out, norms


def norms_of(vectors: Rows) -> Rows:
    """Return the length of each vector."""
    norms: Rows = np.sqrt(np.einsum("...d,...d->...", vectors, vectors))
    return norms


def directions_of(
    displacements: Rows, norms: Rows, *, floor: float | Stack = NORM_FLOOR
) -> tuple[Rows, NDArray[np.bool_]]:
    """Divide by the norms, in place; below the norm floor there is no direction."""
    zero = norms < floor
    norms[zero] = np.inf
    displacements *= (1.0 / norms)[..., None]
    return displacements, zero


def groups_of_one_shape(ns: Ids, ms: Ids, dimension: int, at_once: int | None = None) -> Iterator[Shaped]:
    """Yield (n, m, pairs) in stacks of so many numbers at most (`STACK_NUMBERS` if left out)."""
    order = np.lexsort((ms, ns))
    shapes = np.stack([ns[order], ms[order]], axis=1)
    changes = 1 + np.flatnonzero((np.diff(shapes, axis=0) != 0).any(axis=1))
    for start, stop in pairwise([0, *changes.tolist(), len(order)] if len(order) else []):
        n, m = map(int, shapes[start])
        size = max(1, (at_once or STACK_NUMBERS) // ((n + m) * dimension))
        for at in range(start, stop, size):
            yield n, m, order[at : min(at + size, stop)]
