"""Equations 2-5: the forms over stacks against the loops that the paper prints."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import as_printed
from strategies import generic_sets, tied_sets, unit_rows
from tabon.errors import UnknownNameError
from tabon.method import distances
from tabon.method.distances import (
    DISTANCES,
    DistanceName,
    cosine_cost,
    cost_ot,
    dir_hausdorff,
    get_distance,
    mean_shift,
    novelty,
    transition,
)
from tabon.method.transport import optimal_plans

pairs = st.one_of(st.tuples(generic_sets(), generic_sets()), st.tuples(tied_sets(), tied_sets()))
generic_pairs = st.tuples(generic_sets(), generic_sets())
ALL = sorted(DISTANCES)


@given(pairs)
def test_mean_shift_is_equation_2(pair):
    """The vectorised mean shift agrees with the printed one."""
    prior, current = pair
    expected = as_printed.mean_shift(list(prior), list(current))
    np.testing.assert_allclose(transition(mean_shift, prior=prior, current=current), expected, atol=1e-12)


@given(pairs)
def test_novelty_is_equation_3(pair):
    """The vectorised novelty agrees with the loop over current sentences, ties included."""
    prior, current = pair
    expected = as_printed.novelty(list(prior), list(current))
    np.testing.assert_allclose(transition(novelty, prior=prior, current=current), expected, atol=1e-12)


@given(pairs)
def test_dir_hausdorff_is_equation_4(pair):
    """The vectorised anchor displacement agrees with the printed arg max of a min, ties included."""
    prior, current = pair
    expected = as_printed.dir_hausdorff(list(prior), list(current))
    np.testing.assert_allclose(transition(dir_hausdorff, prior=prior, current=current), expected, atol=1e-12)


@given(generic_pairs)
def test_cost_ot_is_equation_5(pair):
    """Where the plan is unique, cost-OT agrees with the double sum over a linear program's plan."""
    prior, current = pair
    expected = as_printed.cost_ot(list(prior), list(current))
    np.testing.assert_allclose(transition(cost_ot, prior=prior, current=current), expected, atol=1e-7)


@given(pairs)
def test_cost_ot_is_the_printed_sum_over_its_own_plan(pair):
    """With ties many plans are optimal: the plan taken is one of them, and the sum is eq. 5's."""
    prior, current = pair
    cost = as_printed.cost_matrix(list(prior), list(current))
    plan = optimal_plans(cosine_cost(prior=prior, current=current))
    _, optimum = as_printed.plan_by_linear_programming(cost)
    np.testing.assert_allclose((plan * cost).sum(), optimum, atol=1e-9)
    expected = as_printed.displacement(plan, cost, list(prior), list(current))
    np.testing.assert_allclose(transition(cost_ot, prior=prior, current=current), expected, atol=1e-12)


@given(generic_sets(max_size=4), generic_sets(max_size=4), st.integers(0, 2**16))
def test_duplicates_do_not_make_cost_ot_ambiguous(prior, current, seed):
    """Repeated sentences split mass among equal rows, which no sum can see."""
    rng = np.random.default_rng(seed)
    prior = prior[np.sort(rng.integers(len(prior), size=5))]
    expected = as_printed.cost_ot(list(prior), list(current))
    np.testing.assert_allclose(transition(cost_ot, prior=prior, current=current), expected, atol=1e-7)


@pytest.mark.parametrize("name", ALL)
@given(a=st.one_of(generic_sets(), tied_sets()))
def test_no_change_is_the_zero_vector(name, a):
    """T(A, A) = 0, whatever the distance."""
    np.testing.assert_allclose(transition(get_distance(name), prior=a, current=a), 0.0, atol=1e-15)


@given(pairs)
def test_mean_shift_is_antisymmetric(pair):
    """T(A, B) = -T(B, A) for the mean shift."""
    a, b = pair
    forth, back = (transition(mean_shift, prior=x, current=y) for x, y in ((a, b), (b, a)))
    np.testing.assert_array_equal(forth, -back)


@given(pairs)
def test_mass_only_transport_is_the_mean_shift(pair):
    """Without the cost factor, eq. 5 collapses to eq. 2, as the paper says."""
    prior, current = pair
    plan = optimal_plans(cosine_cost(prior=prior, current=current))
    moved = plan.sum(axis=0) @ current - plan.sum(axis=1) @ prior
    np.testing.assert_allclose(moved, transition(mean_shift, prior=prior, current=current), atol=1e-12)


@given(generic_sets(), generic_sets())
def test_a_repeated_prior_sentence_scales_novelty(prior, current):
    """Adding one of the prior's own sentences to B scales novelty by m/(m+1)."""
    longer = np.concatenate([current, prior[:1]])
    scaled = transition(novelty, prior=prior, current=current) * len(current) / len(longer)
    np.testing.assert_allclose(transition(novelty, prior=prior, current=longer), scaled, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
@given(pair=generic_pairs, seed=st.integers(0, 2**16))
def test_a_rotation_of_the_space_rotates_the_transition(name, pair, seed):
    """T(AR, BR) = T(A, B)R for an orthogonal R."""
    prior, current = pair
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((8, 8)))[0]
    turned = transition(get_distance(name), prior=prior @ rotation, current=current @ rotation)
    np.testing.assert_allclose(
        turned, transition(get_distance(name), prior=prior, current=current) @ rotation, atol=1e-9
    )


@pytest.mark.parametrize("name", ["novelty", "dir-hausdorff"])
@given(a=generic_sets())
def test_a_dropped_sentence_is_invisible_to_novelty_and_hausdorff(name, a):
    """A report that only drops sentences has a zero transition under these two (documented)."""
    assume(len(a) > 1)
    np.testing.assert_allclose(transition(get_distance(name), prior=a, current=a[1:]), 0.0, atol=1e-15)


@pytest.mark.parametrize("name", ALL)
def test_a_stack_is_each_pair_alone(name):
    """Fifty pairs of one shape give the bits that each gives alone."""
    rng = np.random.default_rng(1)
    prior = np.stack([unit_rows(rng, 4) for _ in range(50)])
    current = np.stack([unit_rows(rng, 3) for _ in range(50)])
    stacked = transition(get_distance(name), prior=prior, current=current)
    alone = [transition(get_distance(name), prior=a, current=b) for a, b in zip(prior, current, strict=True)]
    np.testing.assert_array_equal(stacked, np.stack(alone))


@pytest.mark.parametrize("name", ALL)
def test_near_rows_of_a_stack_meet_their_own_partners(name):
    """In a stack of stacks, sentences that return, or nearly so, cost what they cost in their pair alone."""
    rng = np.random.default_rng(2)
    prior = unit_rows(rng, 5 * 6 * 4).reshape(5, 6, 4, -1)
    current = unit_rows(rng, 5 * 6 * 3).reshape(5, 6, 3, -1)
    current[:, :, 1] = prior[:, :, 3]
    current[1:4, ::2, 0] = prior[1:4, ::2, 2] * (1 + 1e-7)
    stacked = transition(get_distance(name), prior=prior, current=current)
    for at in np.ndindex(5, 6):
        np.testing.assert_array_equal(
            stacked[at], transition(get_distance(name), prior=prior[at], current=current[at])
        )


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("stack", [(), (7,), (2, 3)])
def test_each_sentence_of_each_pair_has_its_share(name, stack):
    """Weights are (..., n) and (..., m), and what leaves is as much as what arrives."""
    weights = get_distance(name)(np.random.default_rng(3).random((*stack, 4, 3)))
    assert (weights.prior.shape, weights.current.shape) == ((*stack, 4), (*stack, 3))
    np.testing.assert_allclose(weights.prior.sum(axis=-1), weights.current.sum(axis=-1), atol=1e-15)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mean-shift", [-0.5, 0.5]),
        ("novelty", [-0.5, 0.5]),
        ("dir-hausdorff", [-1, 1]),
        ("cost-ot", [-0.25, 0.25]),
    ],
)
def test_a_case_done_by_hand(name, expected):
    """Prior {e1}, current {e1, e2}: d = 0 and ½, half the mass moves."""
    prior, current = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(transition(get_distance(name), prior=prior, current=current), expected)


def test_a_near_twin_does_not_beat_the_sentence_itself():
    """Float32 rounding of norms must not make another row nearer than the row itself."""
    row = np.zeros(8)
    row[0] = np.float32(1.0) - np.float32(6e-8)
    twin = np.zeros(8)
    twin[0], twin[1] = 1.0 + 6e-8, 1e-7
    prior = np.stack([twin, row])
    np.testing.assert_array_equal(transition(novelty, prior=prior, current=row[None]), np.zeros(8))


@given(st.floats(1e-4, 0.2), st.integers(0, 2**16))
def test_the_costs_of_near_rows_have_all_their_digits_in_float32_too(moved, seed):
    """A product of float32 is wrong by 1e-7, which would be most of the cost of two near sentences."""
    rng = np.random.default_rng(seed)
    rows = unit_rows(rng, 3, 384)
    near = rows + moved * unit_rows(rng, 3, 384)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    prior, current = rows.astype(np.float32), near.astype(np.float32)
    exact = as_printed.cost_matrix(list(prior.astype(np.float64)), list(current.astype(np.float64)))
    found = cosine_cost(prior=prior, current=current)
    small = exact < 5e-3
    np.testing.assert_allclose(found[small], exact[small], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(found, exact, atol=1e-6)


def test_an_unknown_distance_is_met_with_a_suggestion():
    """A near miss names the name that was meant."""
    with pytest.raises(UnknownNameError, match="Did you mean 'cost-ot'"):
        get_distance("cost_ot")


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_costs_stay_between_0_and_1_however_norms_were_rounded(precision):
    """Rows a rounding too long: opposite ones cost 1 at most, nearly equal ones more than nothing."""
    long = np.array([[1.0 + 2.0**-23, 0.0]], dtype=precision)
    short = np.array([[1.0, 0.0]], dtype=precision)
    assert cosine_cost(prior=long, current=-long).tolist() == [[1.0]]
    assert cosine_cost(prior=long, current=long).tolist() == [[0.0]]
    assert 0.0 < cosine_cost(prior=long, current=short)[0, 0] < 1e-12


def test_only_small_costs_are_measured_again(monkeypatch):
    """Far rows are measured by one product of their own precision; a near one does not make them dearer."""
    seen = []

    def noted(prior, current):
        seen.append((prior.tolist(), current.tolist()))
        return np.zeros(len(prior))

    monkeypatch.setattr(distances, "_small_costs", noted)
    rows = np.eye(6)
    cosine_cost(prior=rows[:3], current=-rows[:3])
    assert seen == []
    cosine_cost(prior=rows[:3], current=rows[2:])
    assert seen == [([rows[2].tolist()], [rows[2].tolist()])]


@pytest.mark.parametrize(("prior_rows", "fixed_order"), [(32, False), (33, True)])
@pytest.mark.parametrize("stack", [(), (1,)])
def test_a_product_that_threads_would_share_is_summed_in_a_fixed_order(stack, prior_rows, fixed_order):
    """Up to 2^18 multiplications a product is BLAS's; above, where threads change last bits, einsum's."""
    rng = np.random.default_rng(0)
    prior, current = (
        (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)
        for rows in (rng.standard_normal((*stack, n, 256)) for n in (prior_rows, 32))
    )
    fixed = 0.5 - 0.5 * np.einsum("...nd,...md->...nm", prior, current).astype(np.float64)
    blas = 0.5 - 0.5 * (prior @ np.swapaxes(current, -1, -2)).astype(np.float64)
    assert (fixed != blas).any()  # so that the bits tell which one it was
    np.testing.assert_array_equal(cosine_cost(prior=prior, current=current), fixed if fixed_order else blas)


def test_type_checkers_know_the_names():
    """The literal type of `distance=` has the names of the table."""
    assert get_args(DistanceName) == tuple(DISTANCES)
