r"""The four directional set distances T(A, B) (eq. 2-5), each over stacks.

Each of them is a weighted sum of the sentences on both sides,

.. math:: T(A, B) = \sum_j \beta_j b_j - \sum_i \alpha_i a_i ,

so each equation is one function from the cosine costs `(..., n, m)` of one pair
of sets, or of fifty thousand pairs of one shape, to its weights. The weights
are also the exact share of each sentence in the change. `prior` is the set A of
the earlier visit, `current` the set B of the later one, and T(A, B) is not
T(B, A). Rows are in canonical order (see `sentence_sets`); ties go to the first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from tabon._internal.registry import check_name, lookup
from tabon.method.transport import optimal_plans

Stack = NDArray[np.float64]
Rows = NDArray[np.floating[Any]]  # sentence vectors, of float32 or float64

DistanceName = Literal["mean-shift", "novelty", "dir-hausdorff", "cost-ot"]
DISTANCES: Mapping[str, str] = MappingProxyType(
    {
        "mean-shift": "tabon.method.distances:mean_shift",
        "novelty": "tabon.method.distances:novelty",
        "dir-hausdorff": "tabon.method.distances:dir_hausdorff",
        "cost-ot": "tabon.method.distances:cost_ot",
    }
)

CLOSE = 1e-6  # below this two unit rows of float32 may be the same row
NEAR = 1e-2  # below this a cost of float32 has fewer than five digits
SHARED_OUT = 1 << 18  # multiplications from which OpenBLAS shares a product out among threads
DISTINCT = 1e-15  # the least distance of two rows that are not the same


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The share of each sentence in a transition."""

    prior: Stack  # α, (..., n)
    current: Stack  # β, (..., m)


Distance = Callable[[Stack], Weights]


def distance_name(name: str) -> DistanceName:
    """Return the name of a set distance; another one is an UnknownNameError.

    >>> distance_name("cost-ot")
    'cost-ot'
    """
    return cast("DistanceName", check_name("distance", tuple(DISTANCES), name))


def get_distance(name: str) -> Distance:
    """Return the directional set distance of that name."""
    return lookup("distance", DISTANCES, name)


def transition(distance: Distance, *, prior: Stack, current: Stack) -> Stack:
    """T(A, B) of one pair of sets, or of a stack of pairs of one shape: (..., d).

    >>> transition(novelty, prior=np.array([[1.0, 0.0]]), current=np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [-0.5, 0.5]
    """
    weights = distance(cosine_cost(prior=prior, current=current))
    arrived = weights.current[..., None, :] @ current
    left = weights.prior[..., None, :] @ prior
    return (arrived - left)[..., 0, :]


def cosine_cost(*, prior: Rows, current: Rows) -> Stack:
    """M_ij = d(a_i, b_j) = ½(1 - a_i·b_j), (..., n, m).

    Products are of the rows' own precision; a small cost is measured again in float64, and equal
    rows, which are unit only to float32, cost exactly 0, others more.

    >>> cosine_cost(prior=np.array([[1.0, 0.0]]), current=np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.0, 0.5]]
    """
    if prior.shape[-2] * current.shape[-2] * current.shape[-1] > SHARED_OUT:  # threads change last bits
        products = np.einsum("...nd,...md->...nm", prior, current)
    else:
        products = prior @ np.swapaxes(current, -1, -2)
    cost = np.asarray(products, dtype=np.float64)
    cost *= -0.5
    cost += 0.5
    near = np.nonzero(cost < NEAR)
    if len(near[0]):
        cost[near] = _small_costs(prior[near[:-1]], current[(*near[:-2], near[-1])])
    return np.minimum(cost, 1.0, out=cost)


def _small_costs(prior: Rows, current: Rows) -> Stack:
    """d(a, b) of each row with its partner, where they are near: (rows,)."""
    apart = np.flatnonzero((prior != current).any(axis=-1))
    cost = np.zeros(len(prior))
    similar = np.einsum("rd,rd->r", prior[apart], current[apart], dtype=np.float64)
    cost[apart] = np.maximum(0.5 - 0.5 * similar, DISTINCT)
    return cost


def mean_shift(cost: Stack) -> Weights:
    r"""Centroid shift μ(B) - μ(A) (eq. 2): every sentence has the same share."""
    *_, n, m = cost.shape
    alpha = np.broadcast_to(1.0 / n, (*cost.shape[:-2], n))
    beta = np.broadcast_to(1.0 / m, (*cost.shape[:-2], m))
    return Weights(alpha, beta)


def novelty(cost: Stack) -> Weights:
    r"""Mean residual of current sentences to their nearest prior ones (eq. 3).

    A prior sentence counts as often as it is the nearest one. The transition is
    zero when every current sentence stands in the prior too: a report that only
    drops sentences has no novelty.
    """
    *_, n, m = cost.shape
    nearest = cost.argmin(axis=-2)  # NN_A(b_j), (..., m)
    chosen = nearest[..., None, :] == np.arange(n)[:, None]
    beta = np.broadcast_to(1.0 / m, (*cost.shape[:-2], m))
    return Weights(chosen.sum(axis=-1) / m, beta)


def dir_hausdorff(cost: Stack) -> Weights:
    r"""Displacement at the directed-Hausdorff anchor (eq. 4).

    .. math::
        b^\star = \arg\max_{b \in B} \min_{a \in A} d(b, a), \qquad
        T_{dh}(A, B) = b^\star - \mathrm{NN}_A(b^\star)

    Only the worst-covered current sentence and its nearest prior one count.
    """
    *_, n, m = cost.shape
    anchor = cost.min(axis=-2).argmax(axis=-1)[..., None]  # (..., 1)
    nearest = np.take_along_axis(cost.argmin(axis=-2), anchor, axis=-1)
    return Weights((nearest == np.arange(n)).astype(float), (anchor == np.arange(m)).astype(float))


def cost_ot(cost: Stack) -> Weights:
    r"""Cost-weighted optimal-transport displacement (eq. 5).

    .. math:: T_{cot}(A, B) = \sum_{ij} \gamma^*_{ij} M_{ij} (b_j - a_i)

    A sentence's share is the cost of the mass that leaves or reaches it.
    """
    weight = optimal_plans(cost) * cost
    return Weights(weight.sum(axis=-1), weight.sum(axis=-2))
