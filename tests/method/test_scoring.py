"""Equations 9 and 10, and every zero policy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.method.nearest import ZERO_POLICIES, ExactIndex, SectionBank, aggregate_distances, bank_neighbours
from tabon.method.transitions import Transitions

E1, E2 = np.eye(2, dtype=np.float32)


def section_bank(rows):
    """A bank of given rows; zero rows are those without a direction."""
    rows = np.asarray(rows, dtype=np.float32).reshape(-1, 2)
    zero = ~rows.any(axis=1)
    index = ExactIndex(rows[~zero]) if (~zero).any() else None
    return SectionBank(index, np.flatnonzero(~zero), np.flatnonzero(zero))


def moves(rows):
    """Candidate transitions from unit or zero rows."""
    rows = np.asarray(rows, dtype=np.float32)
    return Transitions(rows, ~rows.any(axis=1))


BANK = section_bank([E1, 0 * E1, E2, 0 * E1])


@given(st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_aggregation_is_equation_10(k, seed):
    """Min takes the nearest, knn the mean of the k nearest."""
    distances = np.sort(np.random.default_rng(seed).random((5, k)), axis=1)
    np.testing.assert_array_equal(aggregate_distances(distances, "min"), distances.min(axis=1))
    np.testing.assert_allclose(aggregate_distances(distances, "knn"), distances.mean(axis=1), atol=1e-15)


@given(st.integers(0, 2**32 - 1))
def test_min_is_knn_with_one_neighbour(seed):
    """One neighbour is the nearest."""
    distances = np.random.default_rng(seed).random((5, 1))
    np.testing.assert_array_equal(
        aggregate_distances(distances, "min"), aggregate_distances(distances, "knn")
    )


@pytest.mark.parametrize(
    ("policy", "distances", "rows"),
    [
        ("neutral", [0.5, 0.5, 0.5, 0.5], [0, 1, 2, 3]),
        ("match", [0.0, 0.0, 0.5, 0.5], [1, 3, 0, 2]),
        ("farthest", [1.0, 1.0, 1.0, 1.0], [0, 1, 2, 3]),
    ],
)
def test_a_candidate_without_change(policy, distances, rows):
    """The named policy gives a zero candidate's distance to zero and to other rows."""
    found = bank_neighbours(moves([0 * E1]), BANK, 4, policy)
    assert found.distances[0].tolist() == distances
    assert found.rows[0].tolist() == rows


@pytest.mark.parametrize(
    ("policy", "distances", "rows"),
    [
        ("neutral", [0.0, 0.5, 0.5, 0.5], [0, 1, 2, 3]),
        ("match", [0.0, 0.5, 0.5, 0.5], [0, 1, 2, 3]),
        ("farthest", [0.0, 0.5, 1.0, 1.0], [0, 2, 1, 3]),
    ],
)
def test_a_bank_row_without_change(policy, distances, rows):
    """The named policy gives a changing candidate's distance to zero rows of the bank."""
    found = bank_neighbours(moves([E1]), BANK, 4, policy)
    assert found.distances[0].tolist() == distances
    assert found.rows[0].tolist() == rows


@given(st.integers(0, 4), st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_under_match_a_transition_of_the_bank_is_at_no_distance(own, others):
    """Whether it changes anything or not: alone among the policies, equal transitions are never apart."""
    rows = np.stack([0 * E1, E1, E2, -E1, -E2])
    bank = section_bank(rows[[own, *others]])
    assert bank_neighbours(moves(rows[[own]]), bank, 1, "match").distances[0, 0] == 0.0
    apart = {"neutral": 0.5, "farthest": 1.0}
    for policy, distance in apart.items() if own == 0 else ():
        assert bank_neighbours(moves(rows[[own]]), bank, 1, policy).distances[0, 0] == distance


@given(st.integers(1, 10), st.integers(0, 12), st.integers(1, 12))
def test_under_match_no_change_is_as_near_as_the_bank_has_zero_rows(k, still, moving):
    """The mean of the k nearest is ½ less ½ of the share of k that zero rows fill, whatever else is there."""
    bank = section_bank([0 * E1] * still + [E1] * moving)
    k = min(k, len(bank))
    near = bank_neighbours(moves([0 * E1]), bank, k, "match").distances
    assert aggregate_distances(near, "knn")[0] == pytest.approx(0.5 - 0.5 * min(still, k) / k)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(1, 4), st.data())
def test_match_and_neutral_differ_for_drafts_without_change_alone(others, candidate, data):
    """What changes something has the same neighbours under both."""
    rows = np.stack([0 * E1, E1, E2, -E1, -E2])
    bank, k = section_bank(rows[others]), data.draw(st.integers(1, len(others)))
    match, neutral = (
        bank_neighbours(moves(rows[[candidate]]), bank, k, name) for name in ("match", "neutral")
    )
    np.testing.assert_array_equal(match.distances, neutral.distances)
    np.testing.assert_array_equal(match.rows, neutral.rows)


@pytest.mark.parametrize("policy", ZERO_POLICIES)
def test_a_bank_of_zeros_only(policy):
    """A bank in which nothing ever changed still answers, without NaN."""
    found = bank_neighbours(moves([E1, 0 * E1]), section_bank([0 * E1, 0 * E1]), 2, policy)
    assert np.isfinite(found.distances).all()
    assert found.rows.tolist() == [[0, 1], [0, 1]]


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=12),
    st.lists(st.integers(0, 4), min_size=1, max_size=6),
    st.sampled_from(ZERO_POLICIES),
    st.data(),
)
def test_neighbours_are_the_first_of_all_rows_by_distance_and_row(bank, candidates, policy, data):
    """A plain sort of every row, with or without change, gives the same neighbours, ties included."""
    alphabet = np.stack([0 * E1, E1, E2, -E1, -E2])
    k = data.draw(st.integers(1, len(bank)))
    found = bank_neighbours(moves(alphabet[candidates]), section_bank(alphabet[bank]), k, policy)
    for candidate, distances, rows in zip(candidates, found.distances, found.rows, strict=True):
        every = [
            (distance_of(alphabet[candidate], alphabet[one], policy), row) for row, one in enumerate(bank)
        ]
        assert list(zip(distances.tolist(), rows.tolist(), strict=True)) == sorted(every)[:k]


def distance_of(candidate, row, policy):
    """Eq. 9 for one pair, with the policy where the cosine is 0/0."""
    still = int(not candidate.any()) + int(not row.any())
    if still:
        return {"neutral": 0.5, "match": 0.5 if still == 1 else 0.0, "farthest": 1.0}[policy]
    return 0.5 * (1.0 - float(candidate @ row))
