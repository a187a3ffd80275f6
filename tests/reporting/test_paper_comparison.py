"""Our numbers beside the paper's, and the paper's own numbers through our tables."""

import re
from dataclasses import replace
from functools import cache

import pytest

from made_up_results import COLUMNS, METHODS, RUNS, made_up, with_values
from paper_tex import PAPER
from tabon.evaluation.results import MEAN_RUN, RANDOM, Cell, Results, Run
from tabon.reporting.tables import (
    all_tables,
    comparison_table,
    delta_comparison,
    delta_table,
    headline_table,
    per_run_comparison,
    per_run_table,
    render,
)
from tabon.reporting.tables.places import DELTA, PER_RUN, TRANSITION_METHODS, paper_values


def rows(table):
    """The texts of a table's rows, by the text of the first cell; of equal ones the last."""
    every = [row for block in table.blocks for row in block.rows]
    return {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in every}


def test_the_comparison_is_in_points():
    """Paper's value, ours, and a hundred times our unrounded value minus the paper's."""
    table = comparison_table(with_values({"novelty/min": 0.2754}), "findings", COLUMNS)
    assert rows(table)["Novelty / min"][:3] == ["0.270", "0.275", "+0.5"]
    assert rows(table)["Novelty / min"][6:] == ["0.104", "–", "–"]
    assert "The paper's mean is of its 9 runs, ours of 3; 2 have the same name." in table.notes


def test_a_mean_of_other_methods_is_not_compared():
    """The paper's mean is of eight; a mean of two has no place beside it."""
    table = comparison_table(made_up(methods=METHODS[:2]), "findings", COLUMNS)
    assert rows(table)["Mean of transition methods"][:3] == ["0.269", "–", "–"]
    assert "The results have 2 of the paper's 8 transition methods." in table.notes


def test_runs_and_columns_that_the_paper_lacks_are_named():
    """They stand with a dash on the paper's side."""
    table = per_run_comparison(made_up(), "findings", {"BLEU-1": "bleu-1", "Ours": "bertscore-f1"})
    assert rows(table)[RUNS[2]][0] == "–"
    assert f"– not in the paper: Ours; {RUNS[2]}." in table.notes


@cache
def of_the_paper():
    """Results whose cells are the numbers that the paper prints."""
    values = paper_values()
    deltas = {(v.section, v.run, v.method, v.column): v.value for v in values if v.table == DELTA}
    cells = {}
    for v in values:
        place = (v.section, v.run, v.method, v.column)
        delta = None if v.method == RANDOM else deltas.get(place)
        value = v.value if v.table != DELTA or v.method == RANDOM else 0.0
        known = Cell(section=v.section, run=v.run, method=v.method, score=v.column, value=value, n=1)
        cells.setdefault(place, replace(known, delta=delta, relative=v.relative))
    names = dict.fromkeys(v.run for v in values if v.table == PER_RUN and v.run != MEAN_RUN)
    some = {"queries": "", "studies": 1, "patients": 1, "drafts": 5, "short": 0}
    return Results(
        cells=tuple(cells.values()),
        runs=tuple(Run(name=name, model=name[:-3], prompt=name[-2:], **some) for name in names),
        scores={v.column: "printed" for v in values},
        missing={},
        methods=dict.fromkeys(TRANSITION_METHODS, "printed"),
        headline=(),
        settings={},
    )


def without_bold(line):
    """A line of LaTeX without the bold around a value and its subscript."""
    return re.sub(r"\\textbf\{(0[^{}]*\\textsubscript\{[^{}]*\})\}", r"\1", line)


@pytest.mark.parametrize("section", ["impression", "findings"])
def test_the_paper_s_numbers_give_the_paper_s_lines(section):
    """From the printed numbers come the lines of the paper's source, but for bold: its digits are lost."""
    if not PAPER.exists():
        pytest.skip("the paper's source does not lie beside the project")
    printed = set(map(without_bold, PAPER.read_text().splitlines()))
    results = of_the_paper()
    columns = {column: column for column in results.scores}
    tables = [
        headline_table(results, section, columns),
        per_run_table(results, section, columns),
        *(delta_table(results, section, column, column) for column in ("BERTSc", "RadGraph")),
    ]
    for table, expected in zip(tables, (1 + 8 + 1, 1 + 18 + 2, 1 + 9, 1 + 9), strict=True):
        lines = [line for line in render(table, "latex").splitlines() if " & " in line]
        assert sum(without_bold(line) in printed for line in lines) == expected


def test_all_744_printed_values_are_compared():
    """A difference for each printed number, and nought where our number is the paper's own."""
    results = of_the_paper()
    columns = {column: column for column in results.scores}
    tables = [table for table in all_tables(results, columns) if table.label.startswith("tab:paper-")]
    differences = []
    for table in tables:
        places = [place for place, head in enumerate(table.headings) if head.text == "diff."]
        lines = [row.cells for block in table.blocks for row in block.rows]
        differences += [line[place].text for line in lines for place in places]
    assert len(differences) == len(paper_values()) == 744
    assert sum(text in {"+0.0", "-0.0"} for text in differences) >= 744 - 14  # the mean of rounded methods


def test_a_difference_is_compared_with_a_difference():
    """The paper's gain over random, ours with its sign, ours minus theirs in points; random by its value."""
    cells = [
        Cell(
            section="findings",
            run=RUNS[0],
            method=method,
            score="bertscore-f1",
            value=value,
            n=9,
            delta=delta,
        )
        for method, value, delta in (("mean-shift/min", 0.2, 0.0123), (RANDOM, 0.1877, None))
    ]
    table = delta_comparison(replace(made_up(), cells=tuple(cells)), "findings", "bertscore-f1", "BERTSc")
    line = rows(table)[RUNS[0]]
    printed = {
        v.method: v.value
        for v in paper_values()
        if (v.table, v.section, v.run, v.column) == (DELTA, "findings", RUNS[0], "BERTSc")
    }
    gain = printed["mean-shift/min"]
    assert line[:3] == [f"{gain:+.3f}", "+0.012", f"{100 * (0.0123 - gain):+.1f}"]
    assert line[-3:-1] == [f"{printed[RANDOM]:.3f}", "0.188"]
    assert line[3:6][1:] == ["–", "–"]
