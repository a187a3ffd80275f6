"""Equation 6 over ragged sets: grouping by shape changes nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import as_printed
from strategies import unit_rows
from tabon.errors import EmptySectionError
from tabon.method import transitions as module
from tabon.method.distances import DISTANCES, get_distance, transition
from tabon.method.sentence_sets import RaggedSets
from tabon.method.transitions import NORM_FLOOR, transitions

TABLE = unit_rows(np.random.default_rng(7), 30).astype(np.float32)
ALL = [get_distance(name) for name in DISTANCES]
sets = st.lists(st.integers(0, 29), min_size=1, max_size=6)
many_pairs = st.lists(st.tuples(sets, sets), min_size=1, max_size=12)


def ragged(pairs):
    """Lay the two sides of pairs out."""
    return (RaggedSets.of([pair[side] for pair in pairs]) for side in (0, 1))


@given(many_pairs)
def test_a_batch_is_equation_6_pair_by_pair(pairs):
    """Every row is the direction of the printed T(A, B) of its own pair."""
    prior, current = ragged(pairs)
    for name, found in zip(DISTANCES, transitions(ALL, TABLE, prior=prior, current=current), strict=True):
        for i in range(len(pairs)):
            a, b = (list(TABLE[side[i]].astype(np.float64)) for side in (prior, current))
            expected = as_printed.DISTANCES[name](a, b)
            norm = np.linalg.norm(expected)
            if norm < NORM_FLOOR:
                assert found.zero[i]
            else:
                np.testing.assert_allclose(found.directions[i], expected / norm, atol=1e-5)


@given(many_pairs, st.sampled_from([1, 200, 5_000]))
def test_the_size_of_stacks_does_not_change_a_bit(pairs, numbers):
    """A pair alone and a pair in company give the same bits, however stacks are cut."""
    prior, current = ragged(pairs)
    whole = transitions(ALL, TABLE, prior=prior, current=current)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STACK_NUMBERS", numbers)
        cut = transitions(ALL, TABLE, prior=prior, current=current)
    for one, other in zip(whole, cut, strict=True):
        np.testing.assert_array_equal(one.directions, other.directions)


@given(many_pairs, st.integers(2, 5))
def test_threads_do_not_change_a_bit(pairs, workers):
    """Stacks shared out among threads give the bits of one thread."""
    prior, current = ragged(pairs)
    alone = transitions(ALL, TABLE, prior=prior, current=current)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "THREAD_STACK_NUMBERS", 50)
        patch.setattr(module, "THREADED_NUMBERS", 0)
        patch.setattr(module, "_cores", lambda: workers)
        shared = transitions(ALL, TABLE, prior=prior, current=current)
    for one, other in zip(alone, shared, strict=True):
        np.testing.assert_array_equal(one.directions, other.directions)
        np.testing.assert_array_equal(one.zero, other.zero)


@given(many_pairs)
def test_the_other_distances_do_not_change_a_bit(pairs):
    """A distance asked for alone gives the bits that it gives beside others."""
    prior, current = ragged(pairs)
    for distance, beside in zip(ALL, transitions(ALL, TABLE, prior=prior, current=current), strict=True):
        [alone] = transitions([distance], TABLE, prior=prior, current=current)
        np.testing.assert_array_equal(alone.directions, beside.directions)


def test_the_threads_of_blas_do_not_change_a_bit():
    """Long reports, whose products are shared out among threads, give the bits of one thread."""
    table = unit_rows(np.random.default_rng(5), 90, 768).astype(np.float32)
    prior, current = RaggedSets.of([list(range(40))]), RaggedSets.of([list(range(40, 90))])
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(transitions(ALL, table, prior=prior, current=current))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one.directions, two.directions)


def test_float32_decides_and_sums_as_float64_does():
    """On 2,000 pairs of full length no plan and no nearest sentence is another, and no sum is off."""
    rng = np.random.default_rng(11)
    table = unit_rows(rng, 500, 384).astype(np.float32)
    prior, current = (
        RaggedSets.of([rng.integers(500, size=size).tolist() for size in rng.integers(1, 9, 2000)])
        for _ in "ab"
    )
    for distance, found in zip(ALL, transitions(ALL, table, prior=prior, current=current), strict=True):
        for i in range(len(prior)):
            a, b = (table[side[i]].astype(np.float64) for side in (prior, current))
            exact = transition(distance, prior=a, current=b)
            norm = max(np.linalg.norm(exact), NORM_FLOOR)
            np.testing.assert_allclose(found.directions[i], exact / norm, atol=2e-7)


@pytest.mark.parametrize("name", ["novelty", "dir-hausdorff"])
@given(st.lists(st.integers(2, 29), max_size=6), st.lists(st.integers(2, 29), max_size=6))
def test_equal_changes_have_equal_bits_in_any_company(name, before, kept):
    """Sentence 1 for sentence 0 is one direction, whatever else stands in the two reports."""
    table = unit_rows(np.random.default_rng(8), 30, 384)
    table[1] = table[0] + 0.5 * table[1]  # nearest to sentence 0
    table = (table / np.linalg.norm(table, axis=1, keepdims=True)).astype(np.float32)
    kept = [row for row in kept if row in before]
    prior, current = RaggedSets.of([[0], [0, *before]]), RaggedSets.of([[1], [1, *kept]])
    [found] = transitions([get_distance(name)], table, prior=prior, current=current)
    np.testing.assert_array_equal(found.directions[0], found.directions[1])


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("moved", [1e-4, 1e-2, 0.05])
def test_a_small_change_in_a_long_report_keeps_its_direction(name, moved):
    """Sentences that cancel, and costs that float32 can hardly tell from 0, cost no digits."""
    rng = np.random.default_rng(3)
    rows = unit_rows(rng, 10, 384)
    steps = moved * np.linspace(0.5, 1.0, 10)[:, None] * unit_rows(rng, 10, 384)
    after = rows + steps * (np.arange(10) % 3 == 0)[:, None]
    after /= np.linalg.norm(after, axis=1, keepdims=True)
    table = np.concatenate([rows, after]).astype(np.float32)
    prior, current = RaggedSets.of([list(range(10))]), RaggedSets.of([list(range(10, 20))])
    [found] = transitions([get_distance(name)], table, prior=prior, current=current)
    a, b = (list(side.astype(np.float64)) for side in (table[:10], table[10:]))
    expected = as_printed.DISTANCES[name](a, b)
    if np.linalg.norm(expected) >= NORM_FLOOR:
        np.testing.assert_allclose(found.directions[0], expected / np.linalg.norm(expected), atol=1e-6)


def test_an_error_in_a_thread_is_an_error(monkeypatch):
    """What goes wrong in one stack is not lost among the others."""
    monkeypatch.setattr(module, "THREADED_NUMBERS", 0)
    monkeypatch.setattr(module, "_cores", lambda: 2)
    both = RaggedSets.of([[1, 2], [3]])
    with pytest.raises(AssertionError):
        transitions([transition_of_nothing], TABLE, prior=both, current=both)


@given(st.lists(sets, min_size=1, max_size=8))
def test_no_change_is_exactly_zero(lists):
    """Equal sets give a zero row and the mark of it, under every distance."""
    both = RaggedSets.of(lists)
    for found in transitions(ALL, TABLE, prior=both, current=both):
        assert found.zero.all()
        np.testing.assert_array_equal(found.directions, 0.0)


@pytest.mark.parametrize(("factor", "is_zero"), [(0.5, True), (2.0, False)])
def test_the_norm_floor_divides_change_from_noise(factor, is_zero):
    """Half the floor has no direction, twice the floor has one."""
    angle = factor * NORM_FLOOR
    table = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]], dtype=np.float32)
    [found] = transitions(
        [get_distance("mean-shift")], table, prior=RaggedSets.of([[0]]), current=RaggedSets.of([[1]])
    )
    assert found.zero.tolist() == [is_zero]


def test_directions_have_unit_norm():
    """A row is a unit vector or zero, nothing between."""
    rng = np.random.default_rng(3)
    prior, current = (RaggedSets.of([rng.integers(0, 30, size=4).tolist() for _ in range(50)]) for _ in "ab")
    for found in transitions(ALL, TABLE, prior=prior, current=current):
        norms = np.linalg.norm(found.directions[~found.zero].astype(np.float64), axis=1)
        np.testing.assert_allclose(norms, 1.0, atol=1e-6)


def test_an_empty_set_is_refused():
    """T is defined for non-empty sets only."""
    with pytest.raises(EmptySectionError, match="leave empty pairs out"):
        transitions(ALL, TABLE, prior=RaggedSets.of([[]]), current=RaggedSets.of([[1]]))


def test_no_pairs_give_no_rows():
    """An empty batch is an empty result."""
    [found] = transitions([transition_of_nothing], TABLE, prior=RaggedSets.of([]), current=RaggedSets.of([]))
    assert found.directions.shape == (0, 8)


def transition_of_nothing(cost):
    """Never called."""
    raise AssertionError(cost)


def test_the_stack_form_and_the_batch_agree():
    """`transition` on raw vectors is the batch on ids."""
    prior, current = RaggedSets.of([[1, 2, 3]]), RaggedSets.of([[4, 5]])
    for name, found in zip(DISTANCES, transitions(ALL, TABLE, prior=prior, current=current), strict=True):
        raw = transition(
            get_distance(name), prior=TABLE[[1, 2, 3]].astype(float), current=TABLE[[4, 5]].astype(float)
        )
        np.testing.assert_allclose(found.directions[0], raw / np.linalg.norm(raw), atol=1e-6)
