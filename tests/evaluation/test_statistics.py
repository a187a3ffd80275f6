"""Intervals cover what they say, p is uniform when nothing is there, and corrections are the textbook's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import false_discovery_control, kstest, norm, t

from tabon.evaluation.statistics import (
    benjamini_hochberg,
    bootstrap_weights,
    holm,
    interval,
    patient_rows,
    randomisation_p,
    spread,
    sum_by_patient,
    swap_signs,
    weighted,
)

MANY = 10**9  # patients: the plain percentiles
P_VALUES = arrays(np.float64, st.integers(1, 12), elements=st.floats(1e-6, 1.0))


def clustered(rng, patients=40):
    """Return studies of patients who differ: (value of each study, its patient)."""
    studies = rng.integers(1, 4, size=patients)
    rows = np.repeat(np.arange(patients), studies)
    return rng.normal(size=patients)[rows] + 0.3 * rng.normal(size=len(rows)), rows


def means(weights, values, rows):
    """Return the mean under each resample of patients."""
    patients = weights.shape[1]
    sums = sum_by_patient(values[:, None], rows, patients)[:, 0]
    counts = np.bincount(rows, minlength=patients)
    return (weights @ sums) / (weights @ counts)


def holm_as_printed(p):
    """Holm's procedure, step by step."""
    adjusted, highest = {}, 0.0
    for step, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        highest = max(highest, min(1.0, (len(p) - step) * p[index]))
        adjusted[index] = highest
    return [adjusted[index] for index in range(len(p))]


@pytest.mark.parametrize("patients", [3, 150, 1727])
def test_draws_in_blocks_are_those_of_one_call(patients, monkeypatch):
    """The same numbers in the same order, and the same sums."""
    monkeypatch.setattr("tabon.evaluation.statistics.NUMBERS_AT_ONCE", 64 * patients)
    blocks, whole = np.random.default_rng(5), np.random.default_rng(5)
    weights, signs = bootstrap_weights(patients, 200, blocks), swap_signs(patients, 100, blocks)
    drawn = whole.integers(patients, size=(200, patients))
    expected = np.stack([np.bincount(row, minlength=patients) for row in drawn])
    np.testing.assert_array_equal(weights, expected)
    np.testing.assert_array_equal(signs, whole.integers(2, size=(100, patients)))
    sums = np.random.default_rng(6).normal(size=(patients, 2, 5))
    found = weighted(weights, sums)
    np.testing.assert_allclose(found, np.tensordot(expected.astype(np.float64), sums, axes=1), rtol=1e-9)


@given(P_VALUES)
def test_holm_is_the_step_down_procedure(p):
    """The vectorised correction agrees with the loop."""
    np.testing.assert_allclose(holm(p), holm_as_printed(p.tolist()))


@given(P_VALUES)
def test_benjamini_hochberg_is_scipys(p):
    """The correction over the grid agrees with scipy."""
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p))


@given(P_VALUES)
def test_corrections_only_raise_p_and_keep_the_order(p):
    """An adjusted p is never below p, never above 1, and never changes who is ahead of whom."""
    for adjusted in (holm(p), benjamini_hochberg(p)):
        assert (adjusted >= p - 1e-12).all()
        assert adjusted.max() <= 1.0
        assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= -1e-12).all()


def test_a_resample_draws_as_many_patients_as_there_are():
    """Each row of weights adds up to the patients, and the mean weight is 1."""
    weights = bootstrap_weights(30, 2000, np.random.default_rng(0))
    assert set(weights.sum(axis=1)) == {30.0}
    np.testing.assert_allclose(weights.mean(axis=0), 1.0, atol=0.12)


def test_patients_are_numbered_by_their_first_study():
    """The number of a patient does not depend on how often they come."""
    assert patient_rows(["x", "y", "x", "z"]).tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("patients", [2, 12, 300])
def test_the_interval_is_numpys_percentile(patients):
    """Without undefined resamples the interval is a percentile one, further out where patients are few."""
    draws = np.random.default_rng(1).normal(size=(500, 3))
    low, high = interval(draws, patients)
    tail = norm.cdf(-np.sqrt(patients / (patients - 1)) * t.ppf(0.975, patients - 1))
    np.testing.assert_allclose(low, np.quantile(draws, tail, axis=0))
    np.testing.assert_allclose(high, np.quantile(draws, 1 - tail, axis=0))


def test_undefined_resamples_are_left_out_of_the_interval():
    """NaN in some resamples does not spread; a column of NaN stays undefined."""
    draws = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]])
    low, high = interval(draws, MANY)
    assert low[0] == pytest.approx(1.05)
    assert high[0] == pytest.approx(2.95)
    assert np.isnan([low[1], high[1]]).all()


def test_the_interval_of_one_defined_resample_is_that_value():
    """One value has no spread, whatever else is undefined."""
    for draws in (np.array([[2.0, 5.0]]), np.array([[np.nan, 5.0], [2.0, np.nan]])):
        low, high = interval(draws, MANY)
        assert low.tolist() == high.tolist() == [2.0, 5.0]


def test_one_patient_has_no_interval():
    """Nothing can be resampled, so the ends are undefined."""
    assert np.isnan(interval(np.ones((9, 2)), 1)).all()


@pytest.mark.parametrize("patients", [10, 20, 60])
def test_the_interval_covers_the_truth_as_often_as_it_says(patients):
    """95 % intervals of a clustered mean hold the true mean in 93 to 97 % of 400 cohorts, small ones too."""
    rng = np.random.default_rng(patients)
    weights = bootstrap_weights(patients, 2000, rng)
    hits = 0
    for _ in range(400):
        values, rows = clustered(rng, patients=patients)
        low, high = interval(means(weights, values, rows), patients)
        hits += bool(low <= 0.0 <= high)
    assert 0.93 <= hits / 400 <= 0.97


def test_resampling_studies_instead_of_patients_would_cover_too_little():
    """The same intervals without the clusters are too narrow: the patient is the unit."""
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(300):
        patients = np.repeat(rng.normal(size=25), 4)
        low, high = interval(means(bootstrap_weights(100, 300, rng), patients, np.arange(100)), 100)
        hits += bool(low <= 0.0 <= high)
    assert hits / 300 < 0.85


def test_p_is_uniform_when_nothing_is_there():
    """Under the null the share of p below x is x."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(300):
        values, rows = clustered(rng, patients=30)
        sums = sum_by_patient(values[:, None], rows, 30)[:, 0]
        signs = 1 - 2 * swap_signs(30, 400, rng)
        found.append(float(randomisation_p(np.array(sums.sum()), signs @ sums)))
    assert kstest(found, "uniform").pvalue > 0.01


def test_p_finds_what_is_there():
    """A difference of half a standard deviation in 200 patients is found nearly always."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(40):
        differences = rng.normal(0.5, 1.0, size=200)
        signs = 1 - 2 * swap_signs(200, 400, rng)
        found.append(float(randomisation_p(np.array(differences.sum()), signs @ differences)))
    assert np.mean(np.array(found) < 0.05) > 0.95


def test_p_is_never_zero_and_counts_itself():
    """P = (c + 1) / (n + 1): the smallest possible is 1 / (n + 1)."""
    assert float(randomisation_p(np.array(5.0), np.zeros(99))) == pytest.approx(0.01)
    assert float(randomisation_p(np.array(0.0), np.zeros(9))) == 1.0
    assert np.isnan(randomisation_p(np.array(np.nan), np.zeros(9)))
    assert float(randomisation_p(np.array(0.5), np.array([np.nan, 1.0, 0.1]))) == pytest.approx(2 / 3)
    assert float(randomisation_p(np.array(0.5), np.full(9, np.nan))) == 1.0


def test_each_score_has_its_own_p():
    """Of several differences at once each is compared with its own swapped ones."""
    swapped = np.array([[1.0, 9.0], [2.0, np.nan], [3.0, 9.0]])
    found = randomisation_p(np.array([2.0, 5.0]), swapped)
    np.testing.assert_allclose(found, [(2 + 1) / (3 + 1), (2 + 1) / (2 + 1)])


def test_p_is_near_the_normal_one_for_many_patients():
    """For a plain paired mean the randomisation p is close to that of the z test."""
    rng = np.random.default_rng(5)
    differences = rng.normal(0.1, 1.0, size=400)
    signs = 1 - 2 * swap_signs(400, 20_000, rng)
    p = float(randomisation_p(np.array(differences.sum()), signs @ differences))
    z = differences.sum() / np.sqrt((differences**2).sum())
    assert p == pytest.approx(2 * norm.sf(abs(z)), abs=0.01)


def test_the_spread_is_numpy_s_of_what_is_defined():
    """The standard deviation of each column without its NaNs; 0 where fewer than two are left."""
    rng = np.random.default_rng(5)
    draws = rng.normal(3.0, 2.0, size=(40, 5))
    draws[rng.random(draws.shape) < 0.3] = np.nan
    np.testing.assert_allclose(spread(draws), np.nanstd(draws, axis=0), rtol=1e-12)
    draws[:, 0], draws[1:, 1] = np.nan, np.nan
    assert spread(draws)[:2].tolist() == [0.0, 0.0]
