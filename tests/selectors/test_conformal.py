"""p-values hold the asked rate on exchangeable cases, and the curve is what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.selectors.abstention import best_of_p, conformal_p, risk_coverage

VALUES = st.lists(st.floats(0, 1).map(lambda value: round(value, 2)), min_size=1, max_size=20)


@given(VALUES, VALUES)
def test_p_is_the_share_at_least_as_strange(distances, calibration):
    """The vectorised p is the count as it is written down."""
    expected = [
        (1 + sum(usual >= distance for usual in calibration)) / (len(calibration) + 1)
        for distance in distances
    ]
    np.testing.assert_allclose(conformal_p(np.array(distances), np.array(calibration)), expected)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.25])
def test_the_asked_rate_is_held_on_exchangeable_cases(rate):
    """Over many draws the share with p at most the rate is the rate."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(200):
        cases = rng.gamma(2.0, size=700)
        shares.append((conformal_p(cases[:200], cases[200:]) <= rate).mean())
    assert np.mean(shares) == pytest.approx(rate, abs=0.005)


def test_the_best_of_k_is_calibrated_where_drafts_are_independent():
    """The largest of K uniform p-values is uniform again when corrected; else it never abstains."""
    rng = np.random.default_rng(1)
    largest = rng.random((20_000, 5)).max(axis=1)
    assert (best_of_p(largest, np.full(len(largest), 5)) <= 0.1).mean() == pytest.approx(0.1, abs=0.01)
    assert (largest <= 0.1).mean() < 0.001


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), min_size=1, max_size=20))
def test_the_curve_keeps_the_least_strange_first(cases):
    """Every point is the mean loss of all cases up to some distance."""
    distances, losses = (np.array(column, dtype=float) for column in zip(*cases, strict=True))
    curve = risk_coverage(distances, losses)
    for coverage, risk, limit in zip(curve.coverage, curve.risk, sorted(set(distances)), strict=True):
        kept = distances <= limit
        assert coverage == pytest.approx(kept.mean())
        assert risk == pytest.approx(losses[kept].mean(), abs=1e-12)
    assert curve.coverage[-1] == 1.0


def test_a_curve_can_be_thinned():
    """Some evenly spaced coverages, each at least what was asked for."""
    rng = np.random.default_rng(2)
    curve = risk_coverage(rng.random(1000), rng.random(1000), points=10)
    np.testing.assert_allclose(curve.coverage, np.arange(1, 11) / 10)
    assert curve.area == pytest.approx(np.mean(curve.risk))
