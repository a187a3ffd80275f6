"""Exact optimal transport between uniform sentence sets (in eq. 5)."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._extras import require
from tabon.errors import TransportError

Stack = NDArray[np.float64]

SOLVER = "pot-network-simplex"
MAX_PIVOTS = 1_000_000
OPTIMAL = 1  # the solver's code for "optimum reached"


@cache
def _network_simplex() -> Any:  # noqa: ANN401  # a compiled function
    """Return POT's compiled solver: `ot.emd` without its checks, which cost ten times the solving."""
    return require("ot.lp.emd_wrap", extra="all", feature="the transport solver POT").emd_c


def optimal_plans(cost: Stack) -> Stack:
    """Return the optimal plan between uniform marginals for each cost matrix of a stack.

    Masses go in as whole numbers (m for each of n rows, n for each of m columns),
    so the flows come back as whole numbers and the marginals hold to the last bit.

    Args:
        cost: (..., n, m), finite.

    Returns:
        γ* of the same shape; its rows sum to 1/n, its columns to 1/m.

    >>> optimal_plans(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    n, m = cost.shape[-2:]
    if n == 1 or m == 1:  # only one plan exists
        return np.full(cost.shape, 1.0 / (n * m))
    matrices = np.ascontiguousarray(cost, dtype=np.float64).reshape(-1, n, m)
    flows = np.empty_like(matrices)
    leaving, arriving = np.full(n, float(m)), np.full(m, float(n))
    solve = _network_simplex()
    for matrix, flow in zip(matrices, flows, strict=True):
        flow[:], _, _, _, code = solve(leaving, arriving, matrix, MAX_PIVOTS, 1)
        if code != OPTIMAL:
            raise TransportError(
                f"optimal transport of {n} to {m} sentences did not converge (solver code {code}); "
                "check the embeddings, or choose another distance"
            )
    flows /= n * m
    return flows.reshape(cost.shape)
