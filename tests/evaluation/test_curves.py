"""Curves: the best of fewer drafts in expectation is the mean over all sets of them."""

import json
from dataclasses import replace
from itertools import combinations
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases
from tabon.evaluation.curves import OVER, POINTS, areas, best_of
from tabon.evaluation.results import MEAN_RUN
from tabon.evaluation.statistics import bootstrap_weights, interval
from tabon.metrics import Score
from tabon.metrics.protocol import mean_of
from tabon.selectors.abstention import risk_coverage

DISTANCES = st.one_of(st.sampled_from([0.1, 0.2, 0.3, np.nan]), st.floats(0, 1))  # ties and unknown ones


def by_enumeration(distances, values, drafts):
    """Return the mean value of the nearest of each set of so many drafts; unknown ones come last."""
    taken = []
    unknown = [value for distance, value in zip(distances, values, strict=True) if np.isnan(distance)]
    for some in combinations(range(len(values)), min(drafts, len(values))):
        known = [draft for draft in some if not np.isnan(distances[draft])]
        nearest = min(known, key=lambda draft: (distances[draft], draft), default=None)
        taken.append(np.mean(unknown) if nearest is None else values[nearest])
    return float(np.mean(taken))


@given(
    st.lists(st.lists(st.tuples(DISTANCES, st.floats(0, 1)), min_size=1, max_size=8), min_size=1, max_size=3),
    st.integers(1, 8),
)
def test_the_best_of_fewer_is_the_mean_over_all_sets(studies, drafts):
    """For up to 8 drafts a study, ties, unknown distances and shorter studies among them."""
    most = max(map(len, studies))
    distances, values = np.full((2, len(studies), most), np.nan)
    there = np.zeros(distances.shape, dtype=bool)
    for row, study in enumerate(studies):
        distances[row, : len(study)], values[row, : len(study)] = np.array(study).T
        there[row, : len(study)] = True
    chances = best_of(-distances, there, drafts)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (chances[~there] == 0).all()
    expected = [by_enumeration(*np.array(study).T, drafts) for study in studies]
    np.testing.assert_allclose((chances * np.nan_to_num(values)).sum(axis=1), expected, atol=1e-12)


class Given:
    """A score that stands in the draft."""

    name = "given"
    signature = "given"
    statistics = ("value",)
    scores = (Score("given", mean_of(0)),)

    def measure(self, pairs):
        """Read the numbers."""
        return np.array([[float(pair.candidate)] for pair in pairs])


def run_of(name, counts, *, seed):
    """Return a run whose studies have so many drafts, with a value and a distance that has to do with it."""
    rng = np.random.default_rng(seed)
    values = [rng.uniform(size=count).round(3) for count in counts]
    distances = [rng.uniform(size=len(row)) - 0.5 * row for row in values]
    records = [
        {
            "id": f"q{number}",
            "prior": {"findings": "Clear."},
            "candidates": [{"findings": str(value)} for value in row],
            "reference": {"findings": "Clear."},
        }
        for number, row in enumerate(values)
    ]
    picks = Picks(
        method="novelty/min",
        signature="s",
        chosen={f"q{number}": int(np.argmin(row)) for number, row in enumerate(distances)},
        distances={f"q{number}": tuple(row) for number, row in enumerate(distances)},
        per_draft=True,
    )
    cases = read_cases([json.dumps(record).encode() for record in records], name=name)
    return RunInput(name=name, cases=cases, picks=(picks,)), values, distances


def curves_of(results):
    """Return the two curves by name."""
    return {curve["name"]: curve for curve in results.facts["curves"]}


SETTINGS = EvaluationSettings(resamples=50, curves=("given",))


def test_the_curve_is_the_mean_over_all_sets_and_ends_where_the_table_is():
    """Random, the method and the oracle of each point are those of brute force, study by study."""
    run, values, distances = run_of("run", [8, 6, 8, 7, 3], seed=0)
    results = evaluate([run], [Given()], SETTINGS)
    curve = curves_of(results)["K-curve"]
    assert [point["x"] for point in curve["points"]] == list(range(2, 9))
    random = np.mean([row.mean() for row in values])
    for point in curve["points"]:
        pairs = list(zip(distances, values, strict=True))
        nearest = np.mean([by_enumeration(near, row, point["x"]) for near, row in pairs])
        best = np.mean([by_enumeration(-row, row, point["x"]) for row in values])
        assert point["gap"] == pytest.approx((nearest - random) / (best - random))
    cell = results.cell(run="run", section="findings", method="novelty/min", score="given")
    assert curve["points"][-1]["gap"] == pytest.approx(cell.gap)


def test_over_optimisation_is_the_score_against_the_divergence_from_random():
    """On one scale for all k: the gap of all drafts; x is log k - (k - 1) / k."""
    run, values, distances = run_of("run", [4] * 6, seed=1)
    points = curves_of(evaluate([run], [Given()], SETTINGS))[OVER]["points"]
    assert [point["x"] for point in points] == pytest.approx([log(k) - (k - 1) / k for k in (2, 3, 4)])
    random, best = np.mean(values), np.mean([row.max() for row in values])
    for k, point in enumerate(points, start=2):
        nearest = np.mean([by_enumeration(*pair, k) for pair in zip(distances, values, strict=True)])
        assert point["gap"] == pytest.approx((nearest - random) / (best - random))
        assert point["low"] < point["gap"] < point["high"]


def test_a_distance_that_is_over_optimised_shows():
    """Where a long tail of bad drafts has the smallest distances, the score rises with k and then falls."""
    run, values, _ = run_of("run", [8] * 300, seed=2)
    rng = np.random.default_rng(3)
    fooled = {
        f"q{number}": tuple(np.where(rng.uniform(size=8) < 0.1, -1 - row, -row))
        for number, row in enumerate(values)
    }
    spoilt = {  # what fools the distance is worth nothing
        query: [0.0 if distance < -1 else value for distance, value in zip(near, row, strict=True)]
        for (query, near), row in zip(fooled.items(), values, strict=True)
    }
    [picks] = run.picks
    cases = replace(
        run.cases,
        cases=tuple(
            replace(
                case,
                query=replace(
                    case.query,
                    candidates=tuple(
                        replace(draft, findings=str(value))
                        for draft, value in zip(case.query.candidates, spoilt[case.query.id], strict=True)
                    ),
                ),
            )
            for case in run.cases.cases
        ),
    )
    chosen = {query: int(np.argmin(near)) for query, near in fooled.items()}
    again = replace(run, cases=cases, picks=(replace(picks, distances=fooled, chosen=chosen),))
    shares = [point["gap"] for point in curves_of(evaluate([again], [Given()], SETTINGS))[OVER]["points"]]
    assert max(shares) > shares[-1] + 0.05
    assert shares[0] > 0


def test_of_several_runs_the_curve_is_of_the_mean():
    """The last point is the cell of the mean over runs."""
    runs = [run_of(name, [5] * 6, seed=seed)[0] for seed, name in enumerate(("a", "b"))]
    results = evaluate(runs, [Given()], SETTINGS)
    cell = results.cell(run=MEAN_RUN, section="findings", method="novelty/min", score="given")
    assert curves_of(results)["K-curve"]["points"][-1]["gap"] == pytest.approx(cell.gap)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.4]), st.floats(0, 1)), min_size=1, max_size=15))
def test_the_area_of_a_resample_is_that_of_its_cases_written_out(cases):
    """Weights say how often a case is there: the area is the plain one of the repeated cases."""
    distances, losses = np.array(cases).T
    weights = np.random.default_rng(len(cases)).integers(0, 3, size=(3, len(cases)))
    weights[:, 0] += 1
    found = areas(distances, losses, weights.astype(np.float64))
    for row, area in zip(weights, found, strict=True):
        plain = risk_coverage(np.repeat(distances, row), np.repeat(losses, row), points=POINTS)
        assert area == pytest.approx(plain.area)


def test_the_interval_of_the_area_holds_it_as_often_as_it_says():
    """Of 400 samples of 60 patients the interval holds the area of the population in 93 to 97 %."""
    rng, held = np.random.default_rng(0), 0

    def drawn(count):
        distances = rng.uniform(size=count)
        return distances, np.clip(0.5 * distances + 0.5 * rng.uniform(size=count), 0, 1)

    truth = risk_coverage(*drawn(200_000), points=POINTS).area
    weights = bootstrap_weights(60, 1000, rng)
    for _ in range(400):
        low, high = interval(areas(*drawn(60), weights), 60)
        held += bool(low <= truth <= high)
    assert 0.93 <= held / 400 <= 0.97
