"""Estimates: right by closed forms, and their intervals hold the truth of simulated readers."""

import numpy as np
import pytest

from budgets import budget
from simulated_readers import World, simulated_study, true_preferences, true_ratings
from tabon.evaluation.statistics import patient_rows
from tabon.study.comparison import KAPPA, Resampling
from tabon.study.estimates import Crossed, numbers, quantile, shares
from tabon.study.preference import strengths
from tabon.study.results import study_results

WORLDS = (  # design, world, cases, readers: two to three selectors, three to six readers who differ in taste
    ("pairwise", World((0.4, 0.0), taste=0.6), 60, 4),
    ("pairwise", World((0.9, 0.0), taste=0.6), 60, 3),
    ("pairwise", World((0.5, 0.2, 0.0), taste=0.6), 120, 6),
    ("pairwise", World((0.3, 0.0), taste=0.5, skill=2.0), 40, 5),
    ("rating", World((0.6, 0.0), taste=0.6), 40, 4),
    ("rating", World((0.2, 0.0), taste=0.5, skill=2.0), 60, 3),
    ("ranking", World((0.6, 0.3, 0.0), taste=0.6, equal=0.0), 40, 4),
)


def crossed(rng, cases, readers, **facts):
    """Return every pair of a case and a reader, and a value of each."""
    case, reader = (rows.ravel() for rows in np.indices((cases, readers)))
    value = rng.normal(size=cases)[case] + rng.normal(size=readers)[reader] + rng.normal(size=len(case))
    return Crossed(cases=case, readers=reader, **facts), value


def ratio(sums):
    """Return the mean of the first column."""
    return sums[:, :1] / sums[:, 1:]


def test_the_spreads_are_those_of_the_closed_form():
    """Of a plain mean the resampled variances are the sums of squares that textbooks give."""
    found, value = crossed(np.random.default_rng(0), 30, 6, resamples=40_000)
    spreads = found.spreads(np.column_stack([value, np.ones(len(value))]), ratio)
    table = value.reshape(30, 6) - value.mean()
    expected = [
        (table.mean(axis=1) ** 2).sum() / 30 / 29,
        (table.mean(axis=0) ** 2).sum() / 6 / 5,
        (table**2).sum() / 180 / 179,
    ]
    assert spreads.value[0] == pytest.approx(value.mean())
    for part, wanted in zip((spreads.cases, spreads.readers, spreads.each), expected, strict=True):
        assert part[0] == pytest.approx(wanted, rel=0.05)
    variance, t = spreads.new_readers()
    assert variance[0] == pytest.approx(max(expected[0] + expected[1] - expected[2], *expected[:2]), rel=0.05)
    share = expected[1] / variance[0]
    assert t[0] == pytest.approx(share * quantile(5) + (1 - share) * quantile(29), rel=0.01)
    assert spreads.these_readers() == (spreads.cases, [quantile(29)])


def test_few_weights_at_once_change_no_number(monkeypatch):
    """Resamples are drawn in parts where they are many; a part of one is a part too."""
    found, value = crossed(np.random.default_rng(0), 30, 6, resamples=5)
    columns = np.column_stack([value, np.ones(len(value))])
    monkeypatch.setattr("tabon.study.estimates.MOST_WEIGHTS", 1)
    [estimate] = numbers(found.spreads(columns, ratio))
    assert estimate.low < estimate.these_low < estimate.value < estimate.these_high < estimate.high


def test_one_reader_or_one_case_says_nothing_of_others():
    """One reader: the interval is for new cases alone; one case: there is none."""
    for cases, readers, known in ((30, 1, True), (1, 5, False)):
        found, value = crossed(np.random.default_rng(0), cases, readers)
        [estimate] = numbers(found.spreads(np.column_stack([value, np.ones(len(value))]), ratio))
        assert (estimate.low is not None) == known
        assert (estimate.low, estimate.high) == (estimate.these_low, estimate.these_high)


def test_a_share_keeps_within_its_bounds():
    """Shares of 0 and 1 have an interval too, that of Wilson for the number of cases."""
    found, value = crossed(np.random.default_rng(0), 30, 3)
    for share, low, high in ((np.ones_like(value), 0.87, 1.0), (np.zeros_like(value), 0.0, 0.13)):
        [estimate] = shares(found.spreads(np.column_stack([share, np.ones(len(value))]), ratio), 30)
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=0.01)


def test_strengths_are_those_of_logistic_regression():
    """Bradley and Terry's model is a logistic regression without intercept; scikit-learn fits the same."""
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(3)
    for size in (2, 3, 5):
        wins = rng.integers(1, 30, (size, size)).astype(float)
        np.fill_diagonal(wins, 0)
        known = wins + (1 - np.eye(size)) / 2
        rows, outcomes, weights = [], [], []
        for one, other in zip(*np.nonzero(known), strict=True):
            for sign in (1, -1):  # both ways round, so that there are two classes
                rows.append(sign * (np.eye(size)[one] - np.eye(size)[other]))
                outcomes.append(sign > 0)
                weights.append(known[one, other])
        model = linear.LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000)
        model.fit(rows, outcomes, sample_weight=weights)
        expected = model.coef_[0] - model.coef_[0].mean()
        assert strengths(wins) == pytest.approx(expected, abs=1e-5)


def test_a_selector_that_always_wins_has_a_finite_strength():
    """And many tables at once give what each gives alone."""
    tables = np.array([[[0, 40, 40], [0, 0, 20], [0, 20, 0]], [[0, 1, 2], [3, 0, 4], [5, 6, 0]]], float)
    found = strengths(tables)
    assert np.isfinite(found).all()
    assert found[0, 0] > 2.5
    assert found[0, 1] == pytest.approx(found[0, 2])
    assert found[1] == pytest.approx(strengths(tables[1]))


def covered(design, world, cases, readers, studies):
    """Say of every estimate of simulated studies whether its interval holds the truth: new readers, these."""
    rng = np.random.default_rng(5)
    pairs, ratings = true_preferences(world, rng), true_ratings(world, rng)
    new, these = [], []
    for seed in range(studies):
        study, key, given, taste = simulated_study(world, design, cases=cases, readers=readers, seed=seed)
        found = study_results(study, key, given, Resampling(resamples=1000, seed=seed))
        own_pairs, own_ratings = true_preferences(world, rng, taste), true_ratings(world, rng, taste)
        for one in found.preferences:
            place = (one.selector, one.other)
            new.append(one.low <= pairs[place] <= one.high)
            these.append(one.these_low <= own_pairs[place] <= one.these_high)
        for one in found.numbers:
            if one.what == "rating":
                truth, own = (of[one.selector] - of.get(one.other, 0.0) for of in (ratings, own_ratings))
                new.append(one.low <= truth <= one.high)
                these.append(one.these_low <= own <= one.these_high)
    return new, these


@pytest.mark.heavy
def test_intervals_hold_the_truth_of_simulated_readers():
    """Over 200 studies of each world, 93 to 97 of 100 intervals hold it, for new readers and for these."""
    studies = budget(3, 200)
    rates = {world: covered(*world, studies) for world in WORLDS}
    for world, (new, these) in rates.items():
        print(world, f"new {np.mean(new):.3f} these {np.mean(these):.3f} of {len(new)}")  # noqa: T201
    for part in range(2):
        every = np.concatenate([found[part] for found in rates.values()])
        if studies >= 200:
            assert 0.93 <= every.mean() <= 0.97
            assert all(0.90 <= np.mean(found[part]) <= 0.99 for found in rates.values())
        else:
            assert every.mean() >= 0.8


def test_more_skill_is_more_agreement():
    """Readers with less noise agree more with each other and with themselves; the tastes stay the same."""

    def agreement(skill):
        world = World((0.5, 0.0), taste=0.2, skill=skill)
        study, key, given, _ = simulated_study(world, "rating", cases=150, readers=3, seed=1, repeat=0.5)
        found = study_results(study, key, given, Resampling(resamples=100))
        return {(one.what, one.measure, len(one.readers)): one.value for one in found.agreement}

    poor, good = agreement(0.5), agreement(4.0)
    for place in (("rating", "alpha", 3), ("rating again", KAPPA, 3)):
        assert good[place] > poor[place] + 0.2


def test_cases_of_one_patient_are_resampled_together():
    """Sixty cases of three patients tell about as much as three."""
    assert patient_rows(["a", "b", "a"]).tolist() == [0, 1, 0]
    rng = np.random.default_rng(2)
    value = np.repeat(rng.normal(size=30), 20)
    columns = np.column_stack([value, np.ones(600)])
    readers = np.tile(np.arange(4), 150)
    apart = Crossed(cases=np.arange(600), readers=readers).spreads(columns, ratio)
    together = Crossed(cases=np.repeat(np.arange(30), 20), readers=readers).spreads(columns, ratio)
    assert together.cases[0] > 10 * apart.cases[0]
