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
TWO = 2
CLEAR = 1e-9  # a gap between costs that no rounding can close


@cache
def _network_simplex() -> Any:  # noqa: ANN401  # a compiled function
    """Return POT's compiled solver: `ot.emd` without its checks, which cost ten times the solving."""
    return require("ot.lp.emd_wrap", extra="all", feature="the transport solver POT").emd_c


def optimal_plans(cost: Stack) -> Stack:
    """Return the optimal plan between uniform marginals for each cost matrix of a stack.

    Masses go in as whole numbers (m for each of n rows, n for each of m columns),
    so the flows come back as whole numbers and the marginals hold to the last bit.
    Where one side has two sentences and the optimum is clearly unique, sorting
    finds it for the whole stack at once: the same plan as the solver's.

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
    hard = np.ones(len(matrices), dtype=bool)
    if n == TWO:
        flows, hard = _flows_from_two(matrices)
    elif m == TWO:
        flipped, hard = _flows_from_two(matrices.swapaxes(1, 2))
        flows = np.ascontiguousarray(flipped.swapaxes(1, 2))
    _solve(matrices, flows, np.flatnonzero(hard))
    flows /= n * m
    return flows.reshape(cost.shape)


def _flows_from_two(matrices: Stack) -> tuple[Stack, NDArray[np.bool_]]:
    """Return whole-number flows from two rows to m columns, and where they are not clearly unique.

    Columns in the order of (cost from the first row) - (cost from the second): the
    first row fills the first half of them. With m odd the column between is shared.
    """
    columns = matrices.shape[2]
    lean = matrices[:, 0] - matrices[:, 1]
    order = np.argsort(lean, axis=1)
    from_first = np.zeros(columns)
    from_first[: columns // 2] = TWO
    from_first[columns // 2 : -(-columns // 2)] = 1.0
    flows = np.empty_like(matrices)
    np.put_along_axis(flows[:, 0], order, from_first[None], axis=1)
    np.subtract(TWO, flows[:, 0], out=flows[:, 1])
    middle = slice((columns - 1) // 2 - columns % 2, columns // 2 + 1 + columns % 2)
    gaps = np.diff(np.take_along_axis(lean, order[:, middle], axis=1), axis=1)
    return flows, np.logical_not(gaps.min(axis=1) > CLEAR)  # a NaN is for the solver


def _solve(matrices: Stack, flows: Stack, which: NDArray[np.int64]) -> None:
    """Fill in the whole-number flows of the matrices named, by the network simplex."""
    n, m = matrices.shape[1:]
    leaving, arriving = np.full(n, float(m)), np.full(m, float(n))
    solve = _network_simplex()
    for number in which.tolist():
        flows[number], _, _, _, code = solve(leaving, arriving, matrices[number], MAX_PIVOTS, 1)
        if code != OPTIMAL:
            raise TransportError(
                f"optimal transport of {n} to {m} sentences did not converge (solver code {code}); "
                "check the embeddings, or choose another distance"
            )
