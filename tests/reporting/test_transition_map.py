"""The flat map of the transition space: its axes, its nearest rows, its record."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.errors import BadInputError
from tabon.reporting.transition_map import DIGITS, TransitionMap, project

HALF = 10.0**-DIGITS


def unit_rows(count, dimension, seed):
    """Return directions that are wider along the first coordinates."""
    rows = np.random.default_rng(seed).normal(size=(count, dimension)) * np.linspace(3, 1, dimension)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def slow_shares(rows):
    """Return the two largest shares of variance, by way of the covariance."""
    values = np.linalg.eigvalsh(np.cov(rows.astype(np.float64), rowvar=False))[::-1]
    return values[:2] / values.sum()


def example_map(**changes):
    """Return a map of a small bank and three drafts, one without a direction."""
    drafts = np.array([[2, 1, 0, 0], [0, 0, 0, 0], [-1, 0, 3, 0]], dtype=np.float32)
    facts = {"query": "q", "section": "findings", "distance": "novelty", "picked": 2, **changes}
    return TransitionMap(**asdict(project(unit_rows(30, 4, 1), drafts)), **facts)


@given(st.integers(0, 50), st.integers(3, 40), st.integers(2, 6))
def test_the_shares_are_those_of_the_covariance(seed, count, dimension):
    """Both axes hold the variance that the covariance's largest eigenvalues say."""
    bank = unit_rows(count, dimension, seed)
    flat = project(bank, bank[:1])
    np.testing.assert_allclose(flat.explained, slow_shares(bank), atol=HALF)
    places = np.array(flat.bank)
    assert places.var(axis=0).sum() == pytest.approx(
        sum(flat.explained) * bank.astype(np.float64).var(axis=0).sum(), abs=1e-3
    )


@given(st.integers(0, 50))
def test_flat_distances_are_never_longer_than_real_ones(seed):
    """A projection only shortens."""
    bank = unit_rows(25, 5, seed)
    places = np.array(project(bank, bank[:1]).bank)
    real = np.linalg.norm(bank[:, None] - bank[None], axis=2)
    flat = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert (flat <= real + 4 * HALF).all()


@given(st.integers(0, 50), st.integers(1, 30))
def test_nearest_is_measured_in_the_whole_space_and_always_shown(seed, rows):
    """The place of the nearest transition holds the projection of the row with the largest cosine."""
    bank, drafts = unit_rows(60, 6, seed), 7 * unit_rows(4, 6, seed + 1000)
    flat = project(bank, drafts, rows=rows, seed=seed)
    nearest = [int(np.argmax([float(row @ draft) for row in bank])) for draft in drafts]
    assert len(set(nearest)) <= len(flat.bank) <= rows + len(set(nearest))
    again = project(bank, bank[nearest], rows=rows, seed=seed)
    for place, itself in zip(flat.nearest, again.drafts, strict=True):
        np.testing.assert_allclose(flat.bank[place], itself, atol=2 * HALF)


def test_a_draft_that_is_a_bank_row_lies_on_it():
    """Drafts are put on the bank's axes, not on their own."""
    bank = unit_rows(40, 5, 3)
    flat = project(bank, 2.5 * bank[[7, 21]])
    assert flat.nearest == (7, 21)
    np.testing.assert_allclose(flat.drafts, [flat.bank[7], flat.bank[21]], atol=2 * HALF)


def test_the_sign_of_an_axis_is_fixed():
    """The largest coordinate of an axis is positive, whichever way the solver turns it."""
    bank = np.array([[-1, 0], [1, 0], [0, -0.5], [0, 0.5]], dtype=np.float32)
    flat = project(bank, bank[:1])
    assert flat.bank == ((-1.0, 0.0), (1.0, 0.0), (0.0, -0.5), (0.0, 0.5))


def test_the_same_bank_gives_the_same_map_and_another_seed_another_sample():
    """The sample is seeded and the bank's size is told."""
    bank, drafts = unit_rows(200, 4, 5), unit_rows(2, 4, 6)
    first = project(bank, drafts, rows=50, seed=1)
    assert first == project(bank, drafts, rows=50, seed=1)
    assert first != project(bank, drafts, rows=50, seed=2)
    assert first.total == 200
    assert 50 <= len(first.bank) <= 52


def test_drafts_without_a_direction_have_no_place():
    """Zero and not finite rows are left out by name, not put in the middle."""
    bank = unit_rows(20, 3, 0)
    flat = project(bank, np.array([[0, 0, 0], [np.nan, 1, 0], [1, 0, 0]], dtype=np.float32))
    assert flat.drafts[:2] == flat.nearest[:2] == (None, None)
    assert flat.drafts[2] is not None


@pytest.mark.parametrize("bank", [np.ones((1, 3)) / np.sqrt(3), np.tile([0.6, 0.8], (5, 1)), np.ones((4, 1))])
def test_a_bank_without_spread_is_one_point(bank):
    """One row, equal rows or one dimension still make a map, which explains nothing."""
    rows = bank.astype(np.float32)
    flat = project(rows, rows[:1])
    np.testing.assert_allclose(flat.bank, 0.0, atol=HALF)
    assert flat.nearest == (0,)
    assert flat.explained == (0.0, 0.0)


@pytest.mark.parametrize(
    ("bank", "drafts"), [((0, 3), (1, 3)), ((3,), (1, 3)), ((4, 3), (1, 2)), ((4, 3), (3,))]
)
def test_shapes_that_do_not_fit_are_refused(bank, drafts):
    """The message names both shapes."""
    with pytest.raises(BadInputError, match="a map needs"):
        project(np.zeros(bank, dtype=np.float32), np.zeros(drafts, dtype=np.float32))


def test_a_map_survives_json():
    """What a results file keeps gives the same map back."""
    points = example_map()
    record = json.loads(json.dumps(points.as_record(), allow_nan=False))
    assert TransitionMap.from_record(record) == points
    record.pop("total")
    assert TransitionMap.from_record(record).total == 30


@pytest.mark.parametrize(
    "change",
    [
        {"picked": 3},
        {"picked": -1},
        {"bank": []},
        {"picked": "a"},
        {"nearest": [0, None, 99]},
        {"nearest": [0]},
        {"bank": [[1]]},
        {"drafts": None},
        {"explained": [1, 2, 3]},
    ],
)
def test_a_record_that_points_at_nothing_is_refused(change):
    """A broken map says so, before anything is drawn."""
    with pytest.raises(BadInputError, match="not whole"):
        TransitionMap.from_record({**example_map().as_record(), **change})


def test_a_record_without_a_part_is_refused():
    """Every key but the total is needed."""
    record = example_map().as_record()
    for key in record.keys() - {"total"}:
        with pytest.raises(BadInputError, match="not whole"):
            TransitionMap.from_record({name: value for name, value in record.items() if name != key})
