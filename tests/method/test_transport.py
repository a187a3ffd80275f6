"""Exact optimal transport: marginals, optimality, one solver against another."""

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import as_printed
from tabon.errors import TransportError
from tabon.method import transport
from tabon.method.transport import optimal_plans

shapes = st.tuples(st.integers(1, 12), st.integers(1, 12))


def random_cost(shape, seed, *, levels=None):
    """A cost matrix, with many ties where levels are few."""
    rng = np.random.default_rng(seed)
    return rng.random(shape) if levels is None else rng.integers(levels, size=shape) / levels


@given(shapes, st.integers(0, 2**32 - 1), st.sampled_from([None, 2, 3]))
def test_marginals_hold(shape, seed, levels):
    """Rows sum to 1/n and columns to 1/m within 1e-9; no mass is negative."""
    plan = optimal_plans(random_cost(shape, seed, levels=levels))
    np.testing.assert_allclose(plan.sum(axis=1), 1 / shape[0], atol=1e-12)
    np.testing.assert_allclose(plan.sum(axis=0), 1 / shape[1], atol=1e-12)
    assert plan.min() >= 0.0


@given(shapes, st.integers(0, 2**32 - 1), st.sampled_from([None, 2, 3]))
def test_no_gap_between_primal_and_dual(shape, seed, levels):
    """The plan's cost equals a feasible dual's value within 1e-9, so no plan is cheaper."""
    cost = random_cost(shape, seed, levels=levels)
    n, m = shape
    below = np.concatenate([np.kron(np.eye(n), np.ones((m, 1))), np.kron(np.ones((n, 1)), np.eye(m))], axis=1)
    worth = np.r_[np.full(n, 1 / n), np.full(m, 1 / m)]
    dual = linprog(-worth, A_ub=below, b_ub=cost.ravel(), bounds=(None, None), method="highs")
    assert abs((optimal_plans(cost) * cost).sum() + dual.fun) < 1e-9


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_the_plan_is_the_linear_program_s(n, m, seed):
    """Where the optimum is unique, two unlike solvers return one plan."""
    cost = random_cost((n, m), seed)
    plan, _ = as_printed.plan_by_linear_programming(cost)
    np.testing.assert_allclose(optimal_plans(cost), plan, atol=1e-9)


def test_a_stack_is_solved_matrix_by_matrix():
    """Leading axes are kept and do not mix."""
    cost = np.random.default_rng(0).random((2, 3, 4, 5))
    stacked = optimal_plans(cost)
    alone = [[optimal_plans(matrix) for matrix in row] for row in cost]
    np.testing.assert_array_equal(stacked, np.array(alone))


def test_an_empty_stack_is_an_empty_stack():
    """No pair, no plan, no error."""
    assert optimal_plans(np.empty((0, 3, 2))).shape == (0, 3, 2)


def test_anything_but_the_optimum_is_an_error(monkeypatch):
    """A solver that gives up must never pass as a plan."""
    monkeypatch.setattr(transport, "MAX_PIVOTS", 1)
    with pytest.raises(TransportError, match="12 to 11 sentences did not converge"):
        optimal_plans(np.random.default_rng(0).random((12, 11)))


simple_shapes = st.tuples(st.just(2), st.integers(2, 9)) | st.sampled_from(sorted(transport.COUNTED))


@given(simple_shapes, st.booleans(), st.integers(0, 2**32 - 1), st.sampled_from([None, 2, 3, 40]))
def test_simple_shapes_get_the_solver_s_plan(shape, flipped, seed, levels):
    """Where a plan is found without the simplex it has the simplex's bits, ties or not."""
    costs = random_cost((transport.MANY, *shape), seed, levels=levels)
    costs = costs.swapaxes(1, 2) if flipped else costs
    solved = np.empty(costs.shape)
    transport._solve(np.ascontiguousarray(costs), solved, np.arange(len(costs)))
    np.testing.assert_array_equal(optimal_plans(costs), solved / (shape[0] * shape[1]))


@given(shapes, st.integers(0, 2**32 - 1), st.sampled_from([None, 2, 3]))
def test_no_plan_is_dearer_than_pot_s(shape, seed, levels):
    """The total is that of `ot.emd` within 1e-12, and whole-number flows add up to the last bit."""
    costs = random_cost((3, *shape), seed, levels=levels)
    for cost, plan in zip(costs, optimal_plans(costs), strict=True):
        assert abs((plan * cost).sum() - (ot.emd([], [], cost) * cost).sum()) < 1e-12
        flows = np.rint(plan * (shape[0] * shape[1]))
        np.testing.assert_array_equal(flows / (shape[0] * shape[1]), plan)
        assert set(flows.sum(axis=1)) == {shape[1]}
        assert set(flows.sum(axis=0)) == {shape[0]}


@pytest.mark.parametrize("shape", [(2, 5), (5, 2), (3, 3), (3, 4), (4, 3), (3, 6), (6, 3), (4, 4), (5, 5)])
def test_clear_plans_of_simple_shapes_need_no_solver(monkeypatch, shape):
    """Only ties go to the simplex where the shape is simple."""
    asked = []
    monkeypatch.setattr(transport, "_solve", lambda _costs, _flows, which: asked.extend(which.tolist()))
    costs = random_cost((transport.MANY, *shape), 1)
    costs[[3, 17]] = 0.5
    optimal_plans(costs)
    assert asked == [3, 17]


def test_shapes_with_many_vertices_are_left_to_the_solver(monkeypatch):
    """However large the stack is: listing every plan of 7 to 8 sentences would not end."""
    monkeypatch.setattr(transport, "_flows_by_trial", None)
    costs = random_cost((transport.MANY, 7, 8), 1)
    np.testing.assert_array_equal(optimal_plans(costs)[-1], optimal_plans(costs[-1]))


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("columns", range(2, 10))
def test_ties_that_leave_one_plan_need_no_solver(monkeypatch, columns, flipped):
    """Two sentences to many: equal columns on one side of the middle all go to the same row."""
    monkeypatch.setattr(transport, "_solve", lambda _costs, _flows, which: asked.extend(which.tolist()))
    asked = []
    lean = np.sign(np.arange(columns) - (columns - 1) / 2)
    cost = np.stack([0.5 + lean / 4, 0.5 - lean / 4])
    plan = optimal_plans(cost.T if flipped else cost)
    assert asked == []
    first = (plan.T if flipped else plan)[0]
    np.testing.assert_array_equal(first, (1 - lean) / (2 * columns))
