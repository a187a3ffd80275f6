"""Exact optimal transport between uniform sentence sets (in eq. 5)."""

from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.errors import TransportError

Stack = NDArray[np.float64]
Plan = tuple[int, ...]  # whole-number flows, row by row

SOLVER = "pot-network-simplex"
MAX_PIVOTS = 1_000_000
OPTIMAL = 1  # the solver's code for "optimum reached"
TWO = 2
COUNTED = {(3, 3), (3, 4), (3, 6), (4, 4), (5, 5)}  # shapes with so few vertices that all are tried
MANY = 100  # in smaller stacks the solver is done before the vertices are listed
CLEAR = 1e-9  # a gap between costs that no rounding can close


def optimal_plans(cost: Stack) -> Stack:
    """Return the optimal plan γ* between uniform marginals for each cost matrix (..., n, m) of a stack.

    Masses go in as whole numbers (m for each of n rows, n for each of m columns), so the rows of γ* sum
    to 1/n and its columns to 1/m to the last bit. If the shape is simple and the optimum clearly unique,
    it is found for the whole stack at once: the same plan as the solver's (docs/decisions/transport-plan.md).

    >>> optimal_plans(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    n, m = cost.shape[-2:]
    if n == 1 or m == 1:  # only one plan exists
        return np.full(cost.shape, 1.0 / (n * m))
    matrices = np.ascontiguousarray(cost, dtype=np.float64).reshape(-1, n, m)
    if n <= m:
        flows, hard = _clear_flows(matrices)
    else:
        flipped, hard = _clear_flows(np.ascontiguousarray(matrices.swapaxes(1, 2)))
        flows = np.ascontiguousarray(flipped.swapaxes(1, 2))
    _solve(matrices, flows, np.flatnonzero(hard))
    flows /= n * m
    return flows.reshape(cost.shape)


def _clear_flows(matrices: Stack) -> tuple[Stack, NDArray[np.bool_]]:
    """Return whole-number flows from no more rows than columns, and where they are yet to be solved."""
    n, m = matrices.shape[1:]
    if n == TWO:
        return _flows_from_two(matrices)
    if (n, m) in COUNTED and len(matrices) >= MANY:
        return _flows_by_trial(matrices)
    return np.empty_like(matrices), np.ones(len(matrices), dtype=bool)


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


def _flows_by_trial(matrices: Stack) -> tuple[Stack, NDArray[np.bool_]]:
    """Return the cheapest vertex, all of them tried, and where it is not clearly the only one."""
    pairs, n, m = matrices.shape
    plans = _vertices(n, m)
    totals = matrices.reshape(pairs, n * m) @ plans.T
    best = totals.argmin(axis=1)[:, None]
    least = np.take_along_axis(totals, best, axis=1)
    np.put_along_axis(totals, best, np.inf, axis=1)
    gaps = (totals.min(axis=1) - least[:, 0]) / (n * m)
    return plans[best[:, 0]].reshape(matrices.shape), np.logical_not(gaps > CLEAR)


@cache
def _vertices(n: int, m: int) -> Stack:
    """Return every plan that filling cells to the brim, one after another, may lead to: (plans, n * m)."""
    done: set[Plan] = set()
    begun: set[Plan] = {(0,) * (n * m)}
    while begun:
        done |= {plan for plan in begun if sum(plan) == n * m}
        begun = {further for plan in begun for further in _one_more_cell(plan, n, m)}
    return np.array(sorted(done), dtype=np.float64)


def _one_more_cell(plan: Plan, n: int, m: int) -> Iterator[Plan]:
    """Yield the plans in which one cell more carries all that its row has left and its column can take."""
    left = [m - sum(plan[row * m : (row + 1) * m]) for row in range(n)]
    room = [n - sum(plan[column::m]) for column in range(m)]
    for row, column in product(range(n), range(m)):
        if amount := min(left[row], room[column]):
            cell = row * m + column
            yield (*plan[:cell], amount, *plan[cell + 1 :])


def _solve(matrices: Stack, flows: Stack, which: NDArray[np.int64]) -> None:
    """Fill in the whole-number flows of the matrices named, by POT's compiled network simplex.

    That is `ot.emd` without its checks, which cost ten times the solving.
    """
    n, m = matrices.shape[1:]
    leaving, arriving = np.full(n, float(m)), np.full(m, float(n))
    solve = require("ot.lp.emd_wrap", extra="all", feature="the transport solver POT").emd_c
    for number, matrix in zip(which.tolist(), matrices[which], strict=True):
        flows[number], _, _, _, code = solve(leaving, arriving, matrix, MAX_PIVOTS, 1)
        if code != OPTIMAL:
            raise TransportError(
                f"optimal transport of {n} to {m} sentences did not converge (solver code {code}); "
                "check the embeddings, or choose another distance"
            )
