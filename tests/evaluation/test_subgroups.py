"""Groups of studies: a planted interaction is found, none where none is, and the groups are right."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import f_oneway, kstest

from tabon.errors import BadInputError
from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases
from tabon.evaluation.compare import Chance, Estimate, RunTable
from tabon.evaluation.draft_scores import Measured
from tabon.evaluation.inputs import Case
from tabon.evaluation.results import RANDOM, merge_results, read_results, write_results
from tabon.evaluation.subgroups import Grouping, compare_subgroups, grouping, interaction_p
from tabon.metrics import load_metric
from tabon.metrics.protocol import Score, mean_of
from tabon.reporting.tables import render, subgroups_table
from tabon.text.records import Query
from tabon.text.reports import Report

SIDES = Grouping("side", lambda case: case.query.facts["side"])


def simulated(gains, *, seed, patients=120, repetitions=100):
    """Return runs that are many: a score is a repetition; the second draft gains by the study's group.

    Patients have one to three studies, each in a group of its own, so patients are in several groups.
    """
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(patients), rng.integers(1, 4, size=patients))
    sides = rng.integers(len(gains), size=len(rows))
    cases = tuple(
        Case(
            Query(
                id=str(row),
                prior=None,
                candidates=(Report(),) * 3,
                patient=str(who),
                facts={"side": f"g{side}"},
            ),
            Report(),
        )
        for row, (who, side) in enumerate(zip(rows, sides, strict=True))
    )
    chance = Chance.draw(cases, resamples=1000, swaps=1, seed=seed)
    scores = tuple(Score(f"repetition-{column}", mean_of(column)) for column in range(repetitions))
    for _ in range(400 // repetitions):
        shape = (len(rows), repetitions)
        values = rng.uniform(size=(len(rows), 3, repetitions))
        spread = 0.1 * rng.normal(size=(patients, repetitions))[rows] + (
            0.05 + 0.1 * sides[:, None]
        ) * rng.normal(size=shape)
        values[:, 1] = values[:, 0] + np.array(gains)[sides][:, None] + spread
        there = np.ones(values.shape[:2], dtype=bool)
        picks = [np.full(len(rows), 1), np.zeros(len(rows), dtype=np.intp)]
        table = RunTable("run", Measured("findings", cases, scores, "made up", values, there), picks)
        yield from compare_subgroups([table], ["better", "worse"], chance, SIDES)


def interactions(gains, **how):
    """Return p of the 400 repetitions, of the two methods against each other, with the rows."""
    rows = [row for row in simulated(gains, **how) if (row.method, row.other) == ("better", "worse")]
    return np.array([row.p for row in rows if row.group == "g0"]), rows


@pytest.mark.parametrize(("groups", "patients", "seed"), [(2, 120, 3), (3, 120, 4), (4, 20, 5), (6, 40, 6)])
def test_no_interaction_is_found_where_none_is(groups, patients, seed):
    """The same gain in groups of other spread, also many small ones: p is uniform (KS test on 400)."""
    p, _ = interactions([0.05] * groups, seed=seed, patients=patients)
    assert len(p) == 400
    assert kstest(p, "uniform").pvalue > 0.05
    assert 0.02 <= np.mean(p < 0.05) <= 0.07


def test_a_planted_interaction_is_found():
    """A gain in one of two groups alone is an interaction, and each group's interval holds its own gain."""
    p, rows = interactions([0.0, 0.1], seed=1)
    assert np.mean(p < 0.05) >= 0.95
    for group, gain in (("g0", 0.0), ("g1", 0.1)):
        held = [row.delta_low <= gain <= row.delta_high for row in rows if row.group == group]
        assert len(held) == 400
        assert 0.93 <= np.mean(held) <= 0.97


def exact(value, spread, patients, number, groups):
    """Return an estimate whose draws have just this standard error, unrelated to those of other groups."""
    noise = np.random.default_rng(0).normal(size=(500, groups))
    unrelated, _ = np.linalg.qr(noise - noise.mean(axis=0))
    draws = np.sqrt(499) * unrelated[:, [number]] * spread * np.sqrt((patients - 1) / patients)
    return Estimate(np.array([value]), draws, float(patients))


def test_with_patients_in_one_group_each_it_is_welchs_test():
    """The interaction of independent groups is Welch's analysis of variance of their patients."""
    rng = np.random.default_rng(10)
    for sizes in ((5, 9), (4, 7, 12), (3, 5, 8, 20, 6)):
        samples = [rng.normal(0.4 * place, 1 + place, size=size) for place, size in enumerate(sizes)]
        groups = [
            exact(each.mean(), each.std(ddof=1) / np.sqrt(len(each)), len(each), place, len(sizes))
            for place, each in enumerate(samples)
        ]
        assert interaction_p(groups)[0] == pytest.approx(f_oneway(*samples, equal_var=False).pvalue)


def test_groups_without_spread_are_tested_only_where_they_are_equal():
    """Differences that are the same in every study of a group: p is 1 if the groups agree, else unknown."""
    still = [Estimate(np.array([0.1, 0.1]), np.full((9, 2), 0.1), 5.0) for _ in range(2)]
    other = Estimate(np.array([0.1, 0.3]), np.array([[0.1, 0.3]] * 9), 5.0)
    p = interaction_p([*still, other])
    assert p[0] == 1.0
    assert np.isnan(p[1])
    assert np.isnan(interaction_p([replace(other, patients=1.0), *still])).all()


def queries():
    """Return made-up queries that differ in all that studies are grouped by."""
    texts = ("Lungs are clear.", "Left pleural effusion.", "Left pleural effusion. Cardiomegaly.")
    return [
        {
            "id": f"q{number}",
            "patient": f"p{number}",
            "prior": {"findings": texts[number % 2]},
            "candidates": [{"findings": texts[number % 3]}, {"findings": texts[(number + 1) % 3]}],
            "reference": {"findings": texts[(number // 2) % 2]},
            "view": ("AP", "PA")[number % 2],
            "model": ("one", "other")[number // 12],
            "prior_date": "2001-01-01",
            "current_date": f"2001-01-{2 + number:02d}",
            "age": 30 + number,
            "site": ("a", "b", None)[number % 3],
            "note": f"text {number}",
        }
        for number in range(24)
    ]


@pytest.fixture(scope="module")
def run():
    """Return the queries as a run with two selectors."""
    cases = read_cases([json.dumps(query).encode() for query in queries()], name="made up")

    def picks(name, choose):
        chosen = {case.query.id: choose(row) for row, case in enumerate(cases.cases)}
        return Picks(method=name, signature=f"selector:{name}", chosen=chosen, distances={})

    return RunInput(
        name="run", cases=cases, picks=(picks("one", lambda row: row % 2), picks("two", lambda _: 0))
    )


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("change", {"changed": 12, "unchanged": 12}),
        ("prior", {"abnormal": 12, "normal": 12}),
        ("days", {"up to 8": 8, "up to 16": 8, "over 16": 8}),
        ("view", {"AP": 12, "PA": 12}),
        ("generator", {"one": 12, "other": 12}),
        ("age", {"up to 37": 8, "up to 45": 8, "over 45": 8}),
        ("site", {"a": 8, "b": 8}),
    ],
)
def test_studies_are_grouped_by_what_is_known_of_them(run, name, groups):
    """Labels by rule, dates, any key of the queries; numbers in thirds, studies without a value in none."""
    results = evaluate([run], [load_metric("rouge")], EvaluationSettings(resamples=20, by=(name,)))
    found = {row.group: row.n for row in results.subgroups if row.section == "findings"}
    assert found == groups
    assert list(found) == sorted(found, key=list(groups).index)
    assert {(row.method, row.other) for row in results.subgroups} == {
        ("one", RANDOM), ("two", RANDOM), ("one", "two"),
    }  # fmt: skip


def test_a_group_is_an_evaluation_of_its_studies(run):
    """The difference in a group is that of the same studies evaluated alone."""
    results = evaluate([run], [load_metric("rouge")], EvaluationSettings(resamples=50, by=("view",)))
    ap = tuple(case for case in run.cases.cases if case.query.facts["view"] == "AP")
    alone = evaluate(
        [replace(run, cases=replace(run.cases, cases=ap))],
        [load_metric("rouge")],
        EvaluationSettings(resamples=50),
    )
    for row in results.subgroups:
        if row.group == "AP" and row.other == RANDOM:
            cell = alone.cell(run="run", section=row.section, method=row.method, score=row.score)
            assert (row.delta, row.gap, row.n) == pytest.approx((cell.delta, cell.gap, cell.n))


@pytest.mark.parametrize(
    ("name", "message"),
    [("colour", "0 values of it"), ("note", "24 values are too many; give at most 6, or numbers")],
)
def test_groups_that_cannot_be_are_refused(run, name, message):
    """One sentence with what there is to group by."""
    with pytest.raises(BadInputError, match=message):
        grouping(name, run.cases.cases)


def test_the_subgroups_are_written_merged_and_tabled(run, tmp_path):
    """Results come back whole, merging keeps the rows without Holm's p, and the table names every group."""
    results = evaluate([run], [load_metric("rouge")], EvaluationSettings(resamples=20, by=("view", "change")))
    write_results(tmp_path / "results.json", results)
    again = read_results(tmp_path / "results.json")
    assert again.subgroups == results.subgroups
    assert all(row.holm is not None for row in results.subgroups)
    assert {row.holm for row in merge_results([again, again]).subgroups} == {None}
    table = render(subgroups_table(again, "findings", {"ROUGE-L": "rouge-l-f"}), "markdown")
    for text in ("view: one – two", "change: one – Random", "unchanged", "interaction p"):
        assert text in table
