"""Set distances: against their formulas, and the laws they obey to the last bit."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import slow_set_distances as slow
from strategies import generic_sets, tied_sets, unit_rows
from tabon._internal.registry import lookup
from tabon.errors import UnknownNameError
from tabon.method.sentence_sets import RaggedSets
from tabon.selectors.set_distances.distances import (
    GRID,
    SET_DISTANCES,
    get_set_distance,
    grid_cost,
    hungarian,
    mean,
    paired_distances,
    transport,
    unit_mean,
    unit_means,
)

few = settings(max_examples=30)
any_set = st.one_of(generic_sets(), tied_sets().map(lambda rows: np.pad(rows, ((0, 0), (0, 4)))))
ragged = st.lists(st.lists(st.integers(0, 11), max_size=5), min_size=1, max_size=12)


def distance(name, left, right):
    """D(A, B) of two sets of rows."""
    return float(mean(left, right) if name == "mean" else get_set_distance(name)(grid_cost(left, right)))


@pytest.fixture(scope="module")
def table():
    """Twelve sentences, two of them with the same vector."""
    rows = unit_rows(np.random.default_rng(3), 12).astype(np.float32)
    rows[7] = rows[2]
    return rows


@pytest.mark.parametrize("name", SET_DISTANCES)
@few
@given(left=any_set, right=any_set)
def test_a_distance_is_its_formula(name, left, right):
    """The vectorised form agrees with loops in fractions."""
    assume(name != "mean" or (unit_mean(left).any() and unit_mean(right).any()))
    expected = float(slow.set_distance(name, left, right))
    assert distance(name, left, right) == pytest.approx(expected, abs=1e-12, rel=0)


@few
@given(generic_sets(max_size=5), generic_sets(max_size=5))
def test_transport_is_the_optimum_of_the_linear_programme(left, right):
    """HiGHS finds the same least cost from the marginals as constraints."""
    cost = grid_cost(left, right)
    n, m = cost.shape
    rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    found = linprog(
        cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.r_[np.full(n, 1 / n), np.full(m, 1 / m)]
    )
    assert transport(cost) == pytest.approx(found.fun, abs=1e-9)


@few
@given(tied_sets(max_size=4), tied_sets(max_size=4))
def test_hungarian_is_the_best_of_all_pairings(left, right):
    """No pairing of the smaller set with as many of the larger one costs less."""
    cost = grid_cost(left, right)
    cost = cost if cost.shape[0] <= cost.shape[1] else cost.T
    n, m = cost.shape
    best = min(sum(cost[i, j] for i, j in enumerate(chosen)) for chosen in permutations(range(m), n))
    assert hungarian(cost) == pytest.approx((best + 0.5 * (m - n)) / m, abs=1e-12)


@pytest.mark.parametrize("name", SET_DISTANCES)
@few
@given(left=any_set, right=any_set)
def test_a_distance_is_symmetric(name, left, right):
    """D(A, B) and D(B, A) are the same bits."""
    assert distance(name, left, right) == distance(name, right, left)


@pytest.mark.parametrize("name", SET_DISTANCES)
@few
@given(rows=any_set, seed=st.integers(0, 99))
def test_equal_sets_are_at_distance_zero(name, rows, seed):
    """A set and any order of it are exactly 0 apart."""
    assume(name != "mean" or unit_mean(rows).any())
    assert distance(name, rows, np.random.default_rng(seed).permutation(rows)) == 0.0


@pytest.mark.parametrize("name", SET_DISTANCES)
@few
@given(left=any_set, right=any_set)
def test_distances_lie_between_zero_and_one(name, left, right):
    """The range of d is the range of every set distance."""
    assert 0.0 <= distance(name, left, right) <= 1.0


@pytest.mark.parametrize("name", [name for name in SET_DISTANCES if name != "mean"])
@few
@given(left=any_set, right=any_set, seed=st.integers(0, 99))
def test_the_order_of_sentences_changes_no_bit(name, left, right, seed):
    """Sums of costs on the grid are exact, so any order gives the same value."""
    rng = np.random.default_rng(seed)
    other = distance(name, rng.permutation(left), rng.permutation(right))
    assert distance(name, left, right) == other


def test_a_cost_does_not_depend_on_the_shape_it_is_measured_in():
    """The same two sentences cost the same bits in every stack."""
    rng = np.random.default_rng(0)
    left, right = unit_rows(rng, 7, 100), unit_rows(rng, 9, 100)
    whole = grid_cost(left, right)
    stacked = grid_cost(np.stack([left[::-1]] * 3), np.stack([right] * 3))
    np.testing.assert_array_equal(stacked[2][::-1], whole)
    for i, j in np.ndindex(whole.shape):
        assert grid_cost(left[i : i + 1], right[j : j + 2])[0, 0] == whole[i, j]


def test_costs_stand_on_the_grid_and_only_equal_rows_cost_nothing():
    """Every cost is a multiple of 2^-40; a near twin costs one step at least."""
    rows = unit_rows(np.random.default_rng(1), 6).astype(np.float32)
    twin = rows.copy()
    twin[0, 0] = np.nextafter(twin[0, 0], np.float32(2))
    cost = grid_cost(rows.astype(float), twin.astype(float))
    np.testing.assert_array_equal(cost / GRID, np.rint(cost / GRID))
    assert cost[0, 0] >= GRID
    np.testing.assert_array_equal(np.diag(cost)[1:], 0.0)


def test_a_mean_without_direction_is_half_way_from_everything():
    """Opposite sentences cancel: no direction, so no nearness."""
    opposite, other = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[0.0, 1.0]])
    assert mean(opposite, other) == mean(opposite, opposite) == 0.5


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chamfer", 1 / 6),
        ("hausdorff", 0.5),
        ("transport", 1 / 3),
        ("hungarian", 1 / 3),
        ("mean", 0.2763932022),
    ],
)
def test_a_case_worked_out_on_paper(name, expected):
    """A = {x} and B = {x, y, y} with x and y at right angles."""
    x, y = np.eye(2)
    assert distance(name, np.array([x]), np.array([x, y, y])) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", SET_DISTANCES)
@few
@given(left=ragged, right=ragged, seed=st.integers(0, 99))
def test_pairs_are_measured_as_if_alone(name, table, left, right, seed):
    """A pair's distance has the bits of its own call, in any company; NaN where a side is empty."""
    count = min(len(left), len(right))
    a, b = RaggedSets.of(left[:count]), RaggedSets.of(right[:count])
    found = paired_distances(name, table, a, table, b)
    order = np.random.default_rng(seed).permutation(count)
    again = paired_distances(name, table, a.take(order), table, b.take(order))
    np.testing.assert_array_equal(again, found[order])
    wide = table.astype(np.float64)
    for pair in range(count):
        one = distance(name, wide[a[pair]], wide[b[pair]]) if len(a[pair]) and len(b[pair]) else np.nan
        np.testing.assert_array_equal(found[pair], one)


def test_the_two_sides_may_have_tables_of_their_own(table):
    """Ids of each side point into the table of that side."""
    left, right = RaggedSets.of([[0, 1]]), RaggedSets.of([[0, 1]])
    [found] = paired_distances("chamfer", table, left, table[::-1], right)
    assert found == distance("chamfer", table[:2].astype(float), table[::-1][:2].astype(float))
    assert found > 0


def test_many_unit_means_are_those_of_each_set(table):
    """The ragged form is the loop over sets."""
    sets = RaggedSets.of([[0], [1, 2, 3], [4, 4], [5, 6, 7]])
    expected = [unit_mean(table[sets[i]].astype(np.float64)).astype(np.float32) for i in range(len(sets))]
    np.testing.assert_array_equal(unit_means(table, sets), expected)


@pytest.mark.parametrize("name", SET_DISTANCES)
def test_every_name_of_the_table_leads_to_its_function(name):
    """The frozen table is right."""
    assert lookup("set distance", SET_DISTANCES, name).__name__ == name


def test_an_unknown_name_is_answered_with_the_nearest(table):
    """A typing error gets a hint."""
    sets = RaggedSets.of([[0]])
    with pytest.raises(UnknownNameError, match="Did you mean 'chamfer'"):
        paired_distances("chamfers", table, sets, table, sets)
