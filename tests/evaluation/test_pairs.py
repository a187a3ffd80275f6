"""Selectors against each other: equal picks are equal, a better one is found, and its interval holds."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, kstest

from tabon.errors import BadInputError
from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases
from tabon.evaluation.compare import Chance, RunTable
from tabon.evaluation.draft_scores import Measured
from tabon.evaluation.inputs import Case
from tabon.evaluation.pairs import adjusted_pairs, compare_pairs
from tabon.evaluation.results import MEAN_RUN, ORACLE, RANDOM, PairedDifference, read_results, write_results
from tabon.evaluation.statistics import holm
from tabon.metrics import load_metric
from tabon.metrics.protocol import Score, mean_of
from tabon.reporting.tables import margin_sentence, planning_table, render
from tabon.reporting.tables.pairs import TARGETS
from tabon.text.records import Query
from tabon.text.reports import Report

ROUGE = load_metric("rouge")
GAP = 0.26815  # of `planted` with a gain of 0.05: oracle - random, the mean of 10^7 studies
SETTINGS = EvaluationSettings(resamples=300, headline=("rouge-l-f", "rouge-1-f"))
WORDS = ["heart", "size", "normal", "lungs", "clear", "no", "effusion", "left", "opacity", "stable"]


@pytest.fixture(scope="module")
def cases():
    """Return 30 studies of 20 patients with three drafts each."""
    rng = np.random.default_rng(1)

    def text(words=8):
        return " ".join(rng.choice(WORDS, size=words))

    records = [
        {
            "id": f"q{number}",
            "patient": f"p{number % 20}",
            "prior": {"findings": text(), "impression": text(3)},
            "candidates": [{"findings": text(), "impression": text(3)} for _ in range(3)],
            "reference": {"findings": text(), "impression": text(3)},
        }
        for number in range(30)
    ]
    return read_cases([json.dumps(record).encode() for record in records], name="made up")


def picks(cases, method, choose):
    """Return picks by a rule over the number of a study."""
    chosen = {case.query.id: choose(number) for number, case in enumerate(cases.cases)}
    return Picks(method=method, signature=f"selector:{method}", chosen=chosen, distances={})


def rules(cases):
    """Return three rules: the first and the second draft, and the first under another name."""
    named = {"first": lambda _: 0, "second": lambda _: 1, "again": lambda _: 0}
    return tuple(picks(cases, name, choose) for name, choose in named.items())


@pytest.fixture(scope="module")
def results(cases):
    """Evaluate the three rules."""
    return evaluate([RunInput(name="run", cases=cases, picks=rules(cases))], [ROUGE], SETTINGS)


def pair(results, method, other, score="rouge-l-f", section="findings"):
    """Return one pair."""
    place = (section, score, method, other)
    [found] = [each for each in results.pairs if (each.section, each.score, each.method, each.other) == place]
    return found


def test_every_pair_is_compared_by_every_headline_score(results):
    """Three methods are three pairs, in two sections by two scores."""
    assert len(results.pairs) == 3 * 2 * 2
    assert {each.score for each in results.pairs} == set(SETTINGS.headline)


def test_equal_picks_do_not_differ(results):
    """Two methods with the same picks: difference 0 with an interval of 0, and p = 1."""
    same = pair(results, "first", "again")
    assert (same.delta, same.delta_low, same.delta_high) == (0.0, 0.0, 0.0)
    assert (same.gap, same.gap_low, same.gap_high) == (0.0, 0.0, 0.0)
    assert (same.p, same.holm) == (1.0, 1.0)


def test_a_difference_is_that_of_the_cells(results):
    """Value minus value, and gap closed minus gap closed."""
    found = pair(results, "first", "second")
    place = {"run": "run", "section": "findings", "score": "rouge-l-f"}
    one, other = (results.cell(method=method, **place) for method in ("first", "second"))
    assert found.delta == pytest.approx(one.value - other.value, abs=1e-12)
    assert found.gap == pytest.approx(one.gap - other.gap, abs=1e-12)
    assert found.delta_low < found.delta < found.delta_high
    assert found.n == one.n == 30


def test_the_other_way_round_only_the_sign_changes(cases, results):
    """B against A is A against B with the sign turned and the same p."""
    turned = evaluate([RunInput(name="run", cases=cases, picks=rules(cases)[1::-1])], [ROUGE], SETTINGS)
    there, back = pair(results, "first", "second"), pair(turned, "second", "first")
    assert back.delta == pytest.approx(-there.delta)
    assert (back.delta_low, back.delta_high) == pytest.approx((-there.delta_high, -there.delta_low))
    assert back.p == pytest.approx(there.p)


def test_against_the_random_pick_a_pair_is_the_cell(cases):
    """A method that always abstains is the random pick: delta, interval, gap and p are the cell's."""
    silent = picks(cases, "silent", lambda _: -1)
    run = RunInput(name="run", cases=cases, picks=(rules(cases)[0], silent))
    found = evaluate([run], [ROUGE], SETTINGS)
    cell = found.cell(run="run", section="findings", method="first", score="rouge-l-f")
    ahead = pair(found, "first", "silent")
    assert ahead.delta != 0
    assert 0.01 < ahead.p < 1
    for name in ("delta", "delta_low", "delta_high", "gap", "gap_low", "gap_high", "p"):
        assert getattr(ahead, name) == pytest.approx(getattr(cell, name)), name


def test_of_several_runs_the_mean_is_compared(cases):
    """The difference is that of the means over runs."""
    other = replace(cases, cases=cases.cases[:20])
    runs = [
        RunInput(name=name, cases=each, picks=rules(cases)) for name, each in (("a", cases), ("b", other))
    ]
    found = evaluate(runs, [ROUGE], SETTINGS)
    place = {"run": MEAN_RUN, "section": "findings", "score": "rouge-l-f"}
    one, two = (found.cell(method=method, **place) for method in ("first", "second"))
    assert pair(found, "first", "second").delta == pytest.approx(one.value - two.value, abs=1e-12)


def test_holm_is_over_all_pairs(results):
    """The family is every pair of every headline score in every section."""
    expected = holm(np.array([each.p for each in results.pairs]))
    assert [each.holm for each in results.pairs] == pytest.approx(expected.tolist())


def test_a_pair_without_p_is_left_out_of_the_family():
    """An undefined p is neither adjusted nor counted."""
    one = PairedDifference(section="findings", score="s", method="a", other="b", n=3, p=0.04)
    found = adjusted_pairs([one, replace(one, p=None)])
    assert [each.holm for each in found] == [0.04, None]


def test_results_without_pairs_can_still_be_read(results, tmp_path):
    """A file of before has no pairs; one of now comes back whole."""
    write_results(tmp_path / "new.json", results)
    assert read_results(tmp_path / "new.json").pairs == results.pairs
    record = json.loads((tmp_path / "new.json").read_text(encoding="utf-8"))
    del record["pairs"]
    (tmp_path / "old.json").write_text(json.dumps(record), encoding="utf-8")
    assert read_results(tmp_path / "old.json").pairs == ()


def planted(rng, gain, *, patients=80, repetitions=100, drafts=4):
    """Return one run that is many: each score is a repetition of its own, of the same patients.

    By each score the second draft of every study is better than the first by a gain, patient by patient.
    """
    rows = np.repeat(np.arange(patients), rng.integers(1, 4, size=patients))
    shape = (len(rows), repetitions)
    ahead = gain + 0.1 * rng.normal(size=(patients, repetitions))[rows] + 0.05 * rng.normal(size=shape)
    values = rng.uniform(size=(len(rows), drafts, repetitions))
    values[:, 1] = values[:, 0] + ahead
    cases = tuple(
        Case(Query(id=str(row), prior=None, candidates=(Report(),) * drafts, patient=str(patient)), Report())
        for row, patient in enumerate(rows)
    )
    scores = tuple(Score(f"repetition-{column}", mean_of(column)) for column in range(repetitions))
    there = np.ones(values.shape[:2], dtype=bool)
    measured = Measured("findings", cases, scores, "made up", values, there)
    return RunTable("run", measured, [np.full(len(rows), 1), np.zeros(len(rows), dtype=np.intp)])


def repeated(gain, *, seed, patients=80):
    """Yield the pair of each of 400 repetitions."""
    rng = np.random.default_rng(seed)
    for part in range(4):
        table = planted(rng, gain, patients=patients)
        chance = Chance.draw(table.measured.cases, resamples=1000, swaps=999, seed=part)
        yield from compare_pairs([table], ["better", "worse"], chance)


@pytest.mark.parametrize("patients", [12, 30, 80])
def test_the_planted_gain_lies_in_its_interval_as_often_as_it_says(patients):
    """In 95 of 100: of 400 intervals as many hold the gain, and its share of the gap, as chance allows."""
    found = list(repeated(0.05, seed=0, patients=patients))
    fewest, most = binom(len(found), 0.95).interval(0.95)
    assert (len(found), fewest, most) == (400, 371, 388)
    assert fewest <= sum(pair.delta_low <= 0.05 <= pair.delta_high for pair in found) <= most
    share = 0.05 / GAP
    assert fewest <= sum(pair.gap_low <= share <= pair.gap_high for pair in found) <= most


def test_the_planted_gain_is_found():
    """A gain of half the spread between 80 patients has p below 0.05 nearly always."""
    assert np.mean([pair.p < 0.05 for pair in repeated(0.05, seed=5)]) >= 0.89


def test_two_equal_methods_have_a_uniform_p():
    """Where neither is better, p is uniform (Kolmogorov-Smirnov on 400 repetitions)."""
    assert kstest([pair.p for pair in repeated(0.0, seed=6)], "uniform").pvalue > 0.05


def test_the_references_are_not_paired(results):
    """Pairs are of selectors; against random and the oracle there are cells."""
    assert not {RANDOM, ORACLE} & {name for each in results.pairs for name in (each.method, each.other)}


def test_a_loss_of_the_margin_is_seldom_called_not_worse():
    """Where a method loses just the margin, non-inferiority is found in about 2.5 % (binomial: <= 5 %)."""
    rng, found = np.random.default_rng(7), []
    for part in range(4):
        table = planted(rng, 0.05)
        chance = Chance.draw(table.measured.cases, resamples=1000, swaps=1, seed=part)
        turned = replace(table, picks=table.picks[::-1])
        found += [
            pair.not_worse(0.05 / GAP)[0] for pair in compare_pairs([turned], ["worse", "better"], chance)
        ]
    assert len(found) == 400
    assert np.mean(found) <= 0.05


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (-0.04, 0.03, "one and two are equivalent: neither is worse by 5 points"),
        (-0.04, 0.06, "one is not worse than two by 5 points"),
        (-0.06, 0.03, "two is not worse than one by 5 points"),
        (-0.06, 0.06, "neither of one and two is shown not to be worse by 5 points"),
    ],
)
def test_a_sentence_says_who_is_not_worse_by_the_margin(low, high, says):
    """Non-inferiority is read off the interval, in both directions."""
    pair = PairedDifference(
        section="findings",
        score="rouge-l-f",
        method="one",
        other="two",
        n=9,
        gap=0.0,
        gap_low=low,
        gap_high=high,
    )
    assert margin_sentence(pair, 0.05) == f"Findings: {says} of the ROUGE-L gap."


def test_a_margin_that_is_no_share_is_refused():
    """Points instead of a share are a mistake."""
    with pytest.raises(BadInputError, match="give a share of the gap between 0 and 1"):
        EvaluationSettings(margin=5.0)


@pytest.mark.parametrize("patients", [12, 60])
def test_as_many_patients_as_planned_find_the_difference(results, patients):
    """Of studies with the planned number of patients 80 % find the difference; the pilot may be small."""
    rng = np.random.default_rng(8)
    pilot = planted(rng, 0.05, patients=patients, repetitions=400)
    chance = Chance.draw(pilot.measured.cases, resamples=1000, swaps=1, seed=0)
    pairs = list(compare_pairs([pilot], ["better", "worse"], chance))
    width = float(np.mean([pair.gap_high - pair.gap_low for pair in pairs]))
    share = 0.1  # of the gap, a gain of 0.1 GAP
    planned = replace(
        results,
        pairs=(replace(pairs[0], score="rouge-l-f", gap=0.0, gap_low=-width / 2, gap_high=width / 2),),
        methods={},
        runs=(replace(results.runs[0], patients=patients),),
    )
    [row] = planning_table(planned, "findings", "rouge-l-f").blocks[0].rows
    needed = int(row.cells[2 + TARGETS.index(share)].text.replace(",", ""))
    found = [pair.p < 0.05 for pair in repeated(share * GAP, seed=9, patients=needed)]
    assert 0.73 <= np.mean(found) <= 0.87


def test_the_planning_table_has_every_pair_and_random(results):
    """Each method against random, and each pair that has a spread."""
    table = render(planning_table(results, "findings", "rouge-l-f"), "markdown")
    for text in ("first – Random", "first – second", "found with 20", "20 points"):
        assert text in table
    assert "first – again" not in table
