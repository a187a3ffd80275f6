"""Transition vectors g^S (eq. 6) of many pairs of sentence sets at once.

Pairs of one shape (n prior, m current sentences) go through the set distances
as one stack that fits the processor's cache. That grouping is the only batching
code there is. Costs are worked out once for all the distances asked for. Where
there is much to do, stacks are shared out among threads; no bit depends on it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import prod
from threading import local

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from tabon.distances import Distance, Stack, cosine_cost
from tabon.encoders.protocol import Matrix
from tabon.errors import EmptySectionError
from tabon.sentence_sets import Ids, RaggedSets

STACK_NUMBERS = 400_000  # numbers in one stack at most: some three megabytes
THREADED_NUMBERS = 4_000_000  # with fewer numbers in all, threads are not worth their start
MOST_THREADS = 4  # more wait for the interpreter's lock, which the transport solver needs pair by pair
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

    Args:
        distances: functions of `distances`.
        vectors: the sentence table that the ids of the sets point into.
        prior: the sets A; none may be empty.
        current: the sets B, one for each A; none may be empty.
    """
    if (prior.lengths == 0).any() or (current.lengths == 0).any():
        raise EmptySectionError("a transition needs a sentence on each side; leave empty pairs out")
    dimension = vectors.shape[1]
    directions = np.empty((len(distances), len(prior), dimension), dtype=np.float32)
    zero = np.empty((len(distances), len(prior)), dtype=bool)
    own = local()  # each thread has a workspace

    def fill(stack: Shaped) -> None:
        n, m, pairs = stack
        ids = np.concatenate([prior.stack(pairs, n), current.stack(pairs, m)], axis=1)
        space = own.__dict__.setdefault("space", _Workspace())
        units, none = directions_of(_displacements(distances, space.gathered(vectors, ids), n, space))
        directions[:, pairs], zero[:, pairs] = units.swapaxes(0, 1), none.T

    numbers = (len(prior.ids) + len(current.ids)) * dimension
    _each(
        fill,
        groups_of_one_shape(prior.lengths, current.lengths, dimension),
        1 if numbers < THREADED_NUMBERS else _cores(),
    )
    return [Transitions(*pair) for pair in zip(directions, zero, strict=True)]


class _Workspace:
    """Memory that stacks use one after another: fresh memory for each would cost as much as the sums."""

    def __init__(self) -> None:
        """Begin with none; it grows with the largest stack."""
        self._single, self._double, self._sums = np.empty(0, dtype=np.float32), np.empty(0), np.empty(0)

    def gathered(self, vectors: Matrix, ids: Ids) -> Stack:
        """Return the rows of a table in float64, (..., d); they last until the next call."""
        shape = (*ids.shape, vectors.shape[1])
        if self._single.size < prod(shape):
            self._single, self._double = np.empty(prod(shape), dtype=np.float32), np.empty(prod(shape))
        single = self._single[: prod(shape)].reshape(shape)
        np.take(vectors, ids, axis=0, out=single, mode="clip")  # ids are a table's own: none is clipped
        double: Stack = self._double[: prod(shape)].reshape(shape)
        np.copyto(double, single)
        return double

    def product(self, left: Stack, right: Stack) -> Stack:
        """Return a stack of matrix products; they last until the next call."""
        shape = (*left.shape[:-1], right.shape[-1])
        if self._sums.size < prod(shape):
            self._sums = np.empty(prod(shape))
        sums: Stack = self._sums[: prod(shape)].reshape(shape)
        return np.matmul(left, right, out=sums)


def _each(work: Callable[[Shaped], None], stacks: Iterator[Shaped], workers: int) -> None:
    """Do the work of each stack, in threads where there are several workers."""
    if workers == 1:
        deque(map(work, stacks), maxlen=0)
        return
    with ThreadPoolExecutor(workers) as pool:
        deque(pool.map(work, stacks), maxlen=0)


@cache
def _libraries() -> ThreadpoolController:
    """Return the handle to the BLAS library's own threads."""
    return ThreadpoolController().select(user_api="blas")


def _cores() -> int:
    """Return half of the threads that the BLAS library may use: two on one core share its arithmetic."""
    allowed = max([library["num_threads"] for library in _libraries().info()], default=1)
    return max(1, min(allowed // 2, MOST_THREADS))


def _displacements(distances: Sequence[Distance], both: Stack, n: int, space: _Workspace) -> Stack:
    """T(A, B) under several distances for one stack of pairs: (pairs, distances, d).

    `both` holds the n rows of A and then the rows of B, so all sums are one product.
    """
    cost = cosine_cost(prior=both[:, :n], current=both[:, n:])
    weights = np.empty((len(both), len(distances), both.shape[1]))
    for number, distance in enumerate(distances):
        share = distance(cost)
        np.negative(share.prior, out=weights[:, number, :n])
        weights[:, number, n:] = share.current
    return space.product(weights, both)


def directions_of(displacements: Stack) -> tuple[Stack, NDArray[np.bool_]]:
    """Divide by the norm, in place; below the norm floor there is no direction."""
    norms = np.sqrt(np.einsum("...d,...d->...", displacements, displacements))
    zero = norms < NORM_FLOOR
    norms[zero] = np.inf
    displacements *= (1.0 / norms)[..., None]
    return displacements, zero


def groups_of_one_shape(ns: Ids, ms: Ids, dimension: int) -> Iterator[Shaped]:
    """Yield (n, m, pairs) in stacks of bounded size."""
    order = np.lexsort((ms, ns))
    shapes = np.stack([ns[order], ms[order]], axis=1)
    changes = 1 + np.flatnonzero((np.diff(shapes, axis=0) != 0).any(axis=1))
    for start, stop in pairwise([0, *changes.tolist(), len(order)] if len(order) else []):
        n, m = map(int, shapes[start])
        size = max(1, STACK_NUMBERS // ((n + m) * dimension))
        for at in range(start, stop, size):
            yield n, m, order[at : min(at + size, stop)]
