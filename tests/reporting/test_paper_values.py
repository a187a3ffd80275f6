"""The paper's printed numbers: they are what the paper prints, and they agree with each other to rounding."""

import csv
from collections import Counter
from itertools import product
from math import copysign

import pytest

import paper_tex
from tabon.reporting.tables.places import (
    DELTA,
    HEADLINE,
    MEAN_OF_METHODS,
    PER_RUN,
    TRANSITION_METHODS,
    paper_value,
    paper_values,
)

COLUMNS = ("BLEU-1", "ROUGE-1", "ROUGE-L", "METEOR", "BERTSc", "RadGraph", "CheX-14")
RUNS = tuple(
    f"{model} P{p}" for model in ("Gemini-2.5-FL", "Gemini-3.1-FL", "Mistral-S-2603") for p in (1, 2, 3)
)
SECTIONS = ("impression", "findings")
HALF = 0.0005  # a printed number is that much away from the number at most
EXACT = 1e-9  # sums of decimals in binary


def value(table, section, run, method, column):
    """One printed value."""
    return paper_value(table=table, section=section, run=run, method=method, column=column).value


def relative(table, section, run, method, column):
    """One printed relative change."""
    return paper_value(table=table, section=section, run=run, method=method, column=column).relative


def test_the_file_is_what_the_paper_prints():
    """Parsing the paper's source again gives the committed file, line by line."""
    if not paper_tex.PAPER.exists():
        pytest.skip("the paper's source does not lie beside the project")
    with paper_tex.VALUES.open(newline="") as file:
        committed = [tuple(line) for line in csv.reader(file)]
    assert committed == [paper_tex.FIELDS, *paper_tex.records(paper_tex.PAPER.read_text())]


def test_every_place_is_there_once():
    """Two headline tables, two per-run tables and four delta tables, whole."""
    places = [(v.table, v.section, v.run, v.method, v.column) for v in paper_values()]
    rows = (*TRANSITION_METHODS, "random", MEAN_OF_METHODS)
    two, blocks = ("BERTSc", "RadGraph"), ("random", "novelty/min")
    expected = {
        *product([HEADLINE], SECTIONS, ["mean"], rows, COLUMNS),
        *product([PER_RUN], SECTIONS, [*RUNS, "mean"], blocks, COLUMNS),
        *product([DELTA], SECTIONS, RUNS, rows[:-1], two),
    }
    assert len(places) == len(set(places)) == 744
    assert set(places) == expected


def test_numbers_typed_from_the_paper():
    """A few cells, read by eye."""
    assert value(HEADLINE, "impression", "mean", "mean-shift/min", "RadGraph") == 0.064
    assert relative(HEADLINE, "impression", "mean", "mean-shift/min", "RadGraph") == 0.132
    assert value(PER_RUN, "findings", "Mistral-S-2603 P2", "novelty/min", "RadGraph") == 0.112
    assert relative(PER_RUN, "findings", "Mistral-S-2603 P2", "novelty/min", "RadGraph") == 0.162
    assert value(DELTA, "impression", "Mistral-S-2603 P2", "mean-shift/knn", "BERTSc") == -0.012
    assert value(DELTA, "findings", "Gemini-3.1-FL P3", "random", "RadGraph") == 0.126
    assert relative(PER_RUN, "findings", "mean", "random", "BLEU-1") is None


def test_there_is_nothing_where_the_paper_prints_nothing():
    """A method that the paper does not have has no number."""
    missing = paper_value(table=HEADLINE, section="findings", run="mean", method="longest", column="BLEU-1")
    assert missing is None


def test_subscripts_are_value_over_random():
    """Each relative change lies where the two rounded values allow it."""
    seen = 0
    for v in paper_values():
        if v.relative is not None:
            random = value(v.table, v.section, v.run, "random", v.column)
            least = (v.value - HALF) / (random + HALF) - 1
            most = (v.value + HALF) / (random - HALF) - 1
            assert least - HALF <= v.relative <= most + HALF, v
            seen += 1
    assert seen == 2 * 9 * 7 + 2 * 9 * 7


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("method", ["random", "novelty/min"])
def test_the_mean_of_nine_runs_is_the_printed_mean(section, method):
    """To rounding, and it is the headline's number to the last digit."""
    for column in COLUMNS:
        mean = sum(value(PER_RUN, section, run, method, column) for run in RUNS) / len(RUNS)
        printed = value(PER_RUN, section, "mean", method, column)
        assert abs(mean - printed) <= 2 * HALF + EXACT
        assert printed == value(HEADLINE, section, "mean", method, column)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_mean_of_methods_is_the_mean_of_eight(section):
    """To rounding, value and relative change."""
    for column in COLUMNS:
        for read in (value, relative):
            mean = sum(read(HEADLINE, section, "mean", method, column) for method in TRANSITION_METHODS) / 8
            assert abs(mean - read(HEADLINE, section, "mean", MEAN_OF_METHODS, column)) <= 2 * HALF + EXACT


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("column", ["BERTSc", "RadGraph"])
def test_delta_tables_agree_with_the_others(section, column):
    """Random is the per-run table's; a method's mean delta is the headline's relative change times random."""
    for run in RUNS:
        random = value(PER_RUN, section, run, "random", column)
        assert value(DELTA, section, run, "random", column) == random
        change = relative(PER_RUN, section, run, "novelty/min", column)
        slack = HALF * (1 + random + abs(change)) + EXACT
        assert abs(value(DELTA, section, run, "novelty/min", column) - change * random) <= slack
    random = value(HEADLINE, section, "mean", "random", column)
    for method in TRANSITION_METHODS:
        change = relative(HEADLINE, section, "mean", method, column)
        mean = sum(value(DELTA, section, run, method, column) for run in RUNS) / len(RUNS)
        assert abs(mean - change * random) <= HALF * (1 + random + abs(change)) + EXACT


def test_where_the_text_and_the_tables_disagree():
    """The list in docs/guide/tables.md: gains that the text gives otherwise than the tables."""
    text = {
        ("impression", "novelty/knn", "ROUGE-L"): 0.085,
        ("impression", "mean-shift/min", "RadGraph"): 0.136,
        ("impression", "dir-hausdorff/knn", "METEOR"): 0.044,
        ("findings", "cost-ot/min", "BERTSc"): 0.031,
        ("findings", "cost-ot/min", "RadGraph"): 0.051,
        ("findings", "mean-shift/knn", "CheX-14"): 0.022,
    }
    tables = {place: relative(HEADLINE, place[0], "mean", *place[1:]) for place in text}
    assert [tables[place] for place in text] == [0.086, 0.132, 0.044, 0.025, 0.047, 0.024]


def test_findings_that_do_not_beat_random():
    """BLEU-1 of two methods falls and of two stays, though the text says that all beat random."""
    flat = [
        v.method for v in paper_values() if v.table == HEADLINE and v.relative is not None and v.relative <= 0
    ]
    assert flat == ["mean-shift/min", "mean-shift/knn", "novelty/knn", "cost-ot/knn"]


def test_losses_of_the_per_run_tables():
    """Novelty / min loses in 7 of 63 Impressions cells, one of ROUGE-L among them, and in 12 of Findings."""
    lost = [v for v in paper_values() if v.table == PER_RUN and v.relative is not None and v.relative < 0]
    assert [sum(v.section == section for v in lost) for section in SECTIONS] == [7, 12]
    clear = [v.run for v in lost if v.section == "impression" and v.column in ("ROUGE-L", "RadGraph")]
    assert clear == ["Mistral-S-2603 P1"]
    assert {(v.section, v.run, v.column) for v in lost if v.run.endswith("P3")} == {
        ("impression", "Gemini-2.5-FL P3", "CheX-14"),
        ("impression", "Mistral-S-2603 P3", "CheX-14"),
        ("findings", "Gemini-3.1-FL P3", "ROUGE-L"),
        ("findings", "Gemini-3.1-FL P3", "METEOR"),
        ("findings", "Gemini-3.1-FL P3", "RadGraph"),
    }


def test_the_strongest_single_method_is_best_nowhere():
    """Novelty / min, which the appendix calls so, has the largest gain of no headline column for itself."""
    for section in SECTIONS:
        for column in COLUMNS:
            gains = {m: relative(HEADLINE, section, "mean", m, column) for m in TRANSITION_METHODS}
            best = {m for m, gain in gains.items() if gain == max(gains.values())}
            assert best != {"novelty/min"}


def test_losses_of_the_delta_tables():
    """38 of 288 differences carry a minus; in two rows all eight methods do."""
    deltas = [v for v in paper_values() if v.table == DELTA and v.method != "random"]
    minus = Counter((v.section, v.run, v.column) for v in deltas if copysign(1, v.value) < 0)
    assert (len(deltas), minus.total()) == (288, 38)
    assert [row for row, count in minus.items() if count == 8] == [
        ("impression", "Mistral-S-2603 P2", "BERTSc"),
        ("findings", "Gemini-3.1-FL P3", "RadGraph"),
    ]
