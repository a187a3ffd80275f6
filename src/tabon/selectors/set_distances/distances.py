"""Symmetric distances D(A, B) of two sentence sets, each over stacks of costs.

Each equation is one function from the costs `(..., n, m)` of a pair of sets, or
of many pairs of one shape, to `(...)`; only `mean` takes the vectors themselves.
All are in [0, 1], symmetric, and 0 on equal sets. An empty set has no distance.

A cost is d(u, v) = ½(1 - u·v), rounded to a multiple of 2⁻⁴⁰: sums of up to 2¹³ such costs have no
rounding error, so the order of sentences, sides and pairs changes no bit (docs/decisions/set-distances.md).
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.registry import check_name, lookup
from tabon.encoders.protocol import Matrix
from tabon.method.distances import CLOSE, Stack
from tabon.method.sentence_sets import Ids, RaggedSets
from tabon.method.transitions import NORM_FLOOR, groups_of_one_shape
from tabon.method.transport import optimal_plans

SET_DISTANCES: Mapping[str, str] = MappingProxyType(
    {
        "chamfer": "tabon.selectors.set_distances.distances:chamfer",
        "hausdorff": "tabon.selectors.set_distances.distances:hausdorff",
        "transport": "tabon.selectors.set_distances.distances:transport",
        "hungarian": "tabon.selectors.set_distances.distances:hungarian",
        "mean": "tabon.selectors.set_distances.distances:mean",
    }
)

GRID = 2.0**-40  # costs are multiples of this
UNMATCHED = 0.5  # what a sentence without a partner costs: as much as an unrelated one

SetDistance = Callable[[Stack], Stack]  # costs (..., n, m) -> (...)


def get_set_distance(name: str) -> SetDistance:
    """Return the set distance of that name that is a function of costs; `mean` is not."""
    known = tuple(known for known in SET_DISTANCES if known != "mean")
    return lookup("set distance", SET_DISTANCES, check_name("set distance", known, name))


def chamfer(cost: Stack) -> Stack:
    """½(mean_a min_b d(a, b) + mean_b min_a d(a, b)): how far sentences are from their nearest.

    >>> float(chamfer(np.array([[0.0, 0.5]])))
    0.125
    """
    *_, n, m = cost.shape
    there, back = cost.min(axis=-1).sum(axis=-1), cost.min(axis=-2).sum(axis=-1)
    distance: Stack = 0.5 * (there / n + back / m)
    return distance


def hausdorff(cost: Stack) -> Stack:
    """max(max_a min_b d(a, b), max_b min_a d(a, b)): the sentence that is covered worst.

    >>> float(hausdorff(np.array([[0.0, 0.5]])))
    0.5
    """
    distance: Stack = np.maximum(cost.min(axis=-1).max(axis=-1), cost.min(axis=-2).max(axis=-1))
    return distance


def transport(cost: Stack) -> Stack:
    """min_γ ⟨γ, M⟩ with uniform marginals: the least cost of moving one set onto the other.

    >>> float(transport(np.array([[0.0, 0.5]])))
    0.25
    """
    *_, n, m = cost.shape
    flows = np.rint(optimal_plans(cost) * (n * m))  # whole numbers: the sum is exact
    distance: Stack = (flows * cost).sum(axis=(-2, -1)) / (n * m)
    return distance


def hungarian(cost: Stack) -> Stack:
    """Return the least cost of pairing min(n, m) sentences, each left over costing ½, over max(n, m).

    >>> float(hungarian(np.array([[0.0, 0.25]])))
    0.25
    """
    *_, n, m = cost.shape
    solve = _assignment()
    matrices = cost.reshape(-1, n, m)
    paired = np.array([matrix[solve(matrix)].sum() for matrix in matrices]).reshape(cost.shape[:-2])
    distance: Stack = (paired + UNMATCHED * abs(n - m)) / max(n, m)
    return distance


def mean(left: Stack, right: Stack) -> Stack:
    """D of the two mean embeddings, each divided by its norm; ½ if a mean has no direction.

    Takes unit rows (..., n, d) and (..., m, d).

    >>> float(mean(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 1.0]])))
    0.5
    """
    cosine = np.einsum("...d,...d->...", unit_mean(left), unit_mean(right))
    return on_grid(np.clip(0.5 * (1.0 - cosine), 0.0, 1.0))


def unit_mean(vectors: Stack) -> Stack:
    """Return the direction of each set's mean embedding (..., d); zero if it has none."""
    total: Stack = np.zeros((*vectors.shape[:-2], vectors.shape[-1]))
    for sentence in range(vectors.shape[-2]):  # a fixed order of additions, whatever the stack
        total += vectors[..., sentence, :]
    norm = np.sqrt(np.einsum("...d,...d->...", total, total))
    norm = np.where(norm < NORM_FLOOR * vectors.shape[-2], np.inf, norm)
    total /= norm[..., None]
    return total


def unit_means(vectors: Matrix, sets: RaggedSets) -> Matrix:
    """Return the direction of the mean of each of many sets, (sets, d); none may be empty."""
    means: Matrix = np.empty((len(sets), vectors.shape[1]), dtype=np.float32)
    nothing = np.zeros(len(sets), dtype=np.int64)
    for size, _, places in groups_of_one_shape(sets.lengths, nothing, vectors.shape[1]):
        means[places] = unit_mean(vectors[sets.stack(places, size)].astype(np.float64))
    return means


def grid_cost(left: Stack, right: Stack) -> Stack:
    """M_ij = d(a_i, b_j) on the grid, (..., n, m); 0 for equal rows and for them alone.

    >>> grid_cost(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.0, 0.5]]
    """
    cost = np.einsum("...nd,...md->...nm", left, right)
    cost *= -0.5
    cost += 0.5
    cost = np.clip(on_grid(cost), GRID, 1.0)
    close = np.nonzero(cost < CLOSE)
    same = (left[close[:-1]] == right[(*close[:-2], close[-1])]).all(axis=-1)
    cost[tuple(axis[same] for axis in close)] = 0.0
    return cost


def on_grid(values: Stack) -> Stack:
    """Round to the nearest multiple of the grid."""
    rounded: Stack = np.rint(values / GRID) * GRID
    return rounded


def paired_distances(
    name: str, left_vectors: Matrix, left: RaggedSets, right_vectors: Matrix, right: RaggedSets
) -> NDArray[np.float64]:
    """Return D(A_i, B_i) of each pair of sets, (pairs,); NaN if either is empty.

    The ids of `left` and `right` are rows of `left_vectors` and `right_vectors`.
    """
    check_name("set distance", tuple(SET_DISTANCES), name)
    distances = np.full(len(left), np.nan)
    both = np.flatnonzero((left.lengths > 0) & (right.lengths > 0))
    groups = groups_of_one_shape(left.lengths[both], right.lengths[both], left_vectors.shape[1])
    for n, m, places in groups:
        pairs: Ids = both[places]
        a = left_vectors[left.stack(pairs, n)].astype(np.float64)
        b = right_vectors[right.stack(pairs, m)].astype(np.float64)
        distances[pairs] = mean(a, b) if name == "mean" else get_set_distance(name)(grid_cost(a, b))
    return distances


@cache
def _assignment() -> Any:  # noqa: ANN401  # a compiled function
    """Return scipy's exact assignment solver; imported on first use, for it is slow to import."""
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment
