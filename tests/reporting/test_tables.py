"""The paper's tables from results: frozen forms, dashes with reasons, bold, statistics, comparison.

`write_goldens()` writes the frozen forms anew.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_up_results import COLUMNS, METHODS, RUNS, made_up, with_values
from tabon.errors import UnknownNameError
from tabon.evaluation.results import MEAN_RUN, ORACLE, RANDOM, RANDOM_SEEDS, read_results, write_results
from tabon.reporting.tables import (
    FORMS,
    all_tables,
    comparison_table,
    delta_table,
    headline_table,
    per_run_comparison,
    per_run_table,
    render,
    statistics_table,
)
from tabon.reporting.tables.places import TRANSITION_METHODS

GOLDEN = Path(__file__).parents[1] / "golden"
ENDINGS = {"md": "markdown", "tex": "latex", "csv": "csv", "html": "html"}
ALL_REFERENCES = (RANDOM, RANDOM_SEEDS, ORACLE)
FROZEN = {
    "headline": lambda results: headline_table(results, "findings", COLUMNS, references=ALL_REFERENCES),
    "per-run": lambda results: per_run_table(results, "impression", COLUMNS),
    "delta": lambda results: delta_table(results, "impression", "bertscore-f1", "BERTScore-F1"),
    "statistics": lambda results: statistics_table(results, "findings", "bleu-1", "BLEU-1"),
    "comparison": lambda results: comparison_table(results, "findings", COLUMNS),
    "per-run-comparison": lambda results: per_run_comparison(results, "impression", COLUMNS),
}
FILES = [
    *(f"headline.{ending}" for ending in ENDINGS),
    *(f"per-run.{ending}" for ending in ENDINGS),
    "delta.tex",
    "statistics.md",
    "statistics.tex",
    "comparison.md",
    "per-run-comparison.html",
]


def frozen(file):
    """The text of one frozen form, made anew."""
    name, _, ending = file.rpartition(".")
    return render(FROZEN[name](made_up()), ENDINGS[ending])


def write_goldens():
    """Freeze what the tables look like now; look at the difference before it is kept."""
    for file in FILES:
        (GOLDEN / f"table-{file}").write_text(frozen(file))


def rows(table):
    """The texts of a table's rows, by the text of the first cell; of equal ones the last."""
    every = [row for block in table.blocks for row in block.rows]
    return {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in every}


@pytest.mark.parametrize("file", FILES)
def test_a_frozen_form_is_byte_for_byte_the_same(file):
    """What a table looks like changes only on purpose."""
    assert frozen(file) == (GOLDEN / f"table-{file}").read_text()


def test_tables_of_a_file_are_the_tables_of_the_evaluation(tmp_path):
    """Written and read back, results give the same bytes in every form."""
    write_results(tmp_path / "results.json", made_up())
    again = read_results(tmp_path / "results.json")
    for before, after in zip(all_tables(made_up(), COLUMNS), all_tables(again, COLUMNS), strict=True):
        assert [render(before, form) for form in FORMS] == [render(after, form) for form in FORMS]


def test_all_tables_stand_in_the_paper_s_order():
    """Headline, per run, delta; Impressions before Findings; then ours: statistics and comparison."""
    labels = [table.label.removeprefix("tab:") for table in all_tables(made_up(), COLUMNS)]
    both = ("impressions", "findings")
    scores = ("bertscore-f1", "radgraph-average")
    assert labels == [
        *(f"avg-{section}" for section in both),
        *(f"per-run-{section}" for section in both),
        *(f"delta-{score}-{section}" for section in both for score in scores),
        *(f"statistics-{score}-{section}" for section in both for score in ("bleu-1", "bertscore-f1")),
        *(f"paper-avg-{section}" for section in both),
        *(f"paper-per-run-{section}" for section in both),
        *(f"paper-delta-{column}-{section}" for section in both for column in ("bertsc", "radgraph")),
    ]


def test_all_tables_leave_out_what_is_not_there():
    """Without Novelty / min there is no per-run table; deltas are those asked for."""
    tables = all_tables(made_up(methods=METHODS[:2]), COLUMNS, deltas={"BLEU-1": "bleu-1"})
    labels = [table.label for table in tables]
    assert not [label for label in labels if "per-run" in label]
    assert [label for label in labels if label.startswith("tab:delta")] == [
        "tab:delta-bleu-1-impressions",
        "tab:delta-bleu-1-findings",
    ]


def test_a_single_run_needs_no_mean():
    """One run is its own headline and has no row of means."""
    results = made_up(runs=(1,))
    headline = headline_table(results, "findings", COLUMNS)
    assert RUNS[1] in headline.caption
    assert rows(headline)["Random baseline (reference)"][0] == "0.230"
    assert "mean" not in rows(per_run_table(results, "findings", COLUMNS))


close = st.sampled_from([0.1, 0.10001, 0.10002, 0.1004, None])


@settings(max_examples=60)
@given(st.lists(close, min_size=len(METHODS), max_size=len(METHODS)))
def test_bold_is_every_method_with_the_largest_unrounded_value(values):
    """Numbers that print alike are not ties; equal ones are all bold; no value is never bold."""
    table = headline_table(with_values(dict(zip(METHODS, values, strict=True))), "findings", COLUMNS)
    bold = [row.cells[1].bold for row in table.blocks[0].rows]
    known = [value for value in values if value is not None]
    assert bold == [value is not None and value == max(known) for value in values]
    assert not any(cell.bold for row in table.blocks[1].rows for cell in row.cells)


def test_what_is_not_above_random_is_never_bold():
    """The best of methods that all lose to chance is not praised."""
    values = dict.fromkeys(METHODS, 0.1) | {METHODS[0]: 0.15}
    table = headline_table(with_values(values, random=0.15), "findings", COLUMNS)
    assert not any(row.cells[1].bold for row in table.blocks[0].rows)


def test_a_column_of_another_section_is_left_out():
    """A score that is measured elsewhere alone makes no column of dashes; one that is missing does."""
    columns = {**COLUMNS, "Comparisons": "comparisons-f1"}
    headline = next(table for table in all_tables(made_up(), columns) if table.label == "tab:avg-findings")
    assert [head.text for head in headline.headings] == ["Method", *COLUMNS]


def test_columns_are_aligned_on_a_terminal():
    """In the text form every line of a column ends at the same place, and the best has a mark."""
    table = headline_table(made_up(), "findings", COLUMNS)
    _, _, heads, rule, *lines = render(replace(table, notes=()), "text").splitlines()
    assert {len(line) for line in lines} == {len(heads)} == {len(rule)}
    assert "*0." in "".join(lines)


def test_the_headline_s_numbers_are_the_cells():
    """Value to three decimals, relative change to a tenth of a percent, random in italics without one."""
    results = made_up()
    table = headline_table(results, "findings", COLUMNS)
    cell = results.cell(run=MEAN_RUN, section="findings", method="cost-ot/min", score="bleu-1")
    shown = table.blocks[0].rows[6].cells
    assert (shown[0].text, shown[0].small_caps) == ("Cost-OT / min", True)
    assert (shown[1].text, shown[1].subscript) == (f"{cell.value:.3f}", f"{100 * cell.relative:+.1f}%")
    random = table.blocks[1].rows[0].cells
    assert all(cell.italic and not cell.subscript for cell in random)


def test_the_last_row_is_the_mean_of_the_paper_s_eight():
    """The rival does not count; the change is against random."""
    values = {method: 0.2 + 0.01 * place for place, method in enumerate(METHODS)}
    mean = headline_table(with_values(values), "findings", COLUMNS).blocks[-1].rows[0].cells
    assert (mean[0].text, mean[1].text) == ("Mean of transition methods", "0.235")
    assert mean[1].subscript == "+2.2%"  # 0.235 against random's 0.23


def test_a_mean_over_methods_needs_every_one_of_them():
    """Where one of them has no value the mean is a dash with its reason."""
    table = headline_table(with_values({"novelty/knn": None}), "findings", COLUMNS)
    assert rows(table)["Mean of transition methods"] == ["–", "0.133", "–"]
    assert "– no mean of the transition methods, as one has no value: BLEU-1, RadGraph." in table.notes


def test_fewer_than_eight_methods_are_counted_in_a_note():
    """A mean of two methods says so; without any there is no such row."""
    two = headline_table(made_up(methods=METHODS[:2]), "findings", COLUMNS)
    assert "The results have 2 of the paper's 8 transition methods." in two.notes
    none = headline_table(made_up(methods=METHODS[-1:]), "findings", COLUMNS)
    assert "Mean of transition methods" not in rows(none)


def test_a_missing_metric_is_a_dash_with_its_reason():
    """Every cell of its column is a dash, and the note gives the reason of the results."""
    table = headline_table(made_up(), "findings", COLUMNS)
    assert {cells[2] for cells in rows(table).values()} == {"–"}
    assert "– RadGraph (radgraph-average) is not measured: radgraph: the weights are not here; " in " ".join(
        table.notes
    )


def test_a_score_of_no_known_metric_gets_every_reason_there_is():
    """Nobody is left to guess: an unknown score lists what is missing, or that nothing is."""
    unknown = {"X": "no-such-score"}
    [note] = [note for note in headline_table(made_up(), "findings", unknown).notes if "no-such" in note]
    assert "radgraph: the weights" in note
    whole = replace(made_up(), missing={})
    [note] = [note for note in headline_table(whole, "findings", unknown).notes if "no-such" in note]
    assert note.endswith("the results have no score of this name.")


def test_an_empty_cell_is_named_with_its_reason():
    """Nothing to measure on, not in the results, measured elsewhere: three different notes."""
    empty = per_run_table(made_up(), "impression", COLUMNS)
    assert f"– no study to measure it on: BERTSc of Novelty / min in {RUNS[0]}." in empty.notes
    results = made_up()
    kept = tuple(c for c in results.cells if (c.run, c.method) != (RUNS[1], "cost-ot/min"))
    absent = delta_table(replace(results, cells=kept), "findings", "bleu-1", "BLEU-1")
    assert f"– not in the results: BLEU-1 of Cost-OT / min in {RUNS[1]}." in absent.notes
    fewer = delta_table(made_up(methods=METHODS[:7]), "findings", "bleu-1", "BLEU-1")
    assert "– not in the results: BLEU-1 of Cost-OT / knn in every run." in fewer.notes
    elsewhere = headline_table(results, "findings", {"BLEU-1": "bleu-1", "F1": "comparisons-f1"})
    assert "– measured only on report: F1." in elsewhere.notes


def test_a_difference_that_was_not_worked_out_is_a_dash_with_its_reason():
    """A value without a random baseline has no delta."""
    results = made_up()
    cells = tuple(replace(c, delta=None) if c.run == RUNS[1] else c for c in results.cells)
    table = delta_table(replace(results, cells=cells), "findings", "bleu-1", "BLEU-1")
    assert [cell.text for cell in table.blocks[0].rows[1].cells[2:10]] == ["–"] * 8
    assert f"– no difference from random was worked out: {RUNS[1]}." in table.notes


@pytest.mark.parametrize("name", FROZEN)
def test_every_dash_has_a_reason_and_every_number_its_n(name):
    """A table with dashes has a note that begins with one, or says what a dash beside a value is."""
    table = FROZEN[name](made_up())
    notes = " ".join(table.notes)
    if any("–" in cells for cells in rows(table).values()):
        assert "– " in notes
    assert re.search(r"\bn = 116 studies of 3 runs|\bn, studies: .* 40; .* 36", notes)


@pytest.mark.parametrize("name", FROZEN)
def test_shortfalls_abstentions_and_signatures_are_in_the_notes(name):
    """They stand under every table that they change."""
    notes = FROZEN[name](made_up()).notes
    assert f"Studies with fewer drafts than asked for: {RUNS[2]} 3 of 36." in notes
    assert "Abstentions, worth the expected random pick: Novelty / min 2." in notes
    methods = {note for note in notes if note.startswith(("All methods: ", "Novelty / min: "))}
    shared, own = "All methods: bank:0123456789ab", "Novelty / min: distance:novelty/min"
    assert methods in ({shared, own}, {f"{own}|bank:0123456789ab"})
    assert any(
        note.endswith((": bleu|tokenizer:13a|v:1", ": bertscore|model:roberta-large|v:1")) for note in notes
    )


def test_n_is_listed_by_column_where_it_differs():
    """A score that some studies lack shows its own n."""
    results = made_up()
    cells = tuple(
        replace(c, n=c.n - 5) if (c.score, c.method) == ("bertscore-f1", "novelty/min") else c
        for c in results.cells
    )
    table = headline_table(replace(results, cells=cells), "findings", COLUMNS)
    assert table.notes[0] == "n, studies of 3 runs: BLEU-1 116; BERTSc 111 to 116."


def test_the_per_run_table_has_the_paper_s_blocks():
    """Random, then the method with its changes; each ends with its mean, which has none."""
    table = per_run_table(made_up(), "findings", COLUMNS, "cost-ot/knn")
    assert [block.heading.text for block in table.blocks] == ["Random baseline (reference)", "Cost-OT / knn"]
    for block in table.blocks:
        assert [row.ruled for row in block.rows] == [False, False, False, True]
        assert not any(cell.subscript for cell in block.rows[-1].cells)
    assert [bool(row.cells[2].subscript) for row in table.blocks[1].rows] == [True, True, True, False]
    assert not any(cell.subscript for row in table.blocks[0].rows for cell in row.cells)


def test_the_delta_table_has_the_paper_s_columns():
    """Min before kNN, the paper's abbreviations, random last; cells are signed differences."""
    results = made_up()
    table = delta_table(results, "findings", "bleu-1", "BLEU-1")
    names = ["MS / m", "Nov / m", "DH / m", "OT / m", "MS / k", "Nov / k", "DH / k", "OT / k", "rand."]
    assert [heading.text for heading in table.headings] == ["Model", "Prompt", *names]
    first = [cell.text for cell in table.blocks[0].rows[0].cells]
    methods = [m for aggregate in ("min", "knn") for m in TRANSITION_METHODS if m.endswith(aggregate)]
    cells = [results.cell(run=RUNS[0], section="findings", method=m, score="bleu-1") for m in methods]
    assert first == ["Gemini-2.5-FL", "P1", *(f"{cell.delta:+.3f}" for cell in cells), "0.200"]


@pytest.mark.parametrize(
    ("holm", "shown"),
    [(None, ""), (0.05, ""), (0.0499, "*"), (0.01, "*"), (0.0099, "**"), (0.001, "**"), (0.0009, "***")],
)
def test_stars_are_holm_s_bounds(holm, shown):
    """Strictly below 0.05, 0.01 and 0.001."""
    results = made_up()
    cells = tuple(replace(cell, holm=holm) for cell in results.cells)
    table = statistics_table(replace(results, cells=cells), "findings", "bleu-1")
    assert table.blocks[0].rows[0].cells[3].text == f"-0.008{shown}"


def test_the_statistics_of_a_method_are_its_cell():
    """All of them, in order, at the tables' rounding."""
    cells = rows(statistics_table(made_up(), "findings", "bleu-1"))["Cost-OT / min"]
    assert cells == [
        "0.240",
        "[0.230, 0.250]",
        "+0.010**",
        "[+0.006, +0.014]",
        "+4.5%",
        "34.7%",
        "[24.7%, 44.7%]",
        "<0.001",
        "0.004",
        "<0.001",
        "20/10/10",
        "116",
    ]


def test_unknown_sections_and_methods_are_named():
    """A typing error is not a table of dashes."""
    with pytest.raises(UnknownNameError, match="unknown section of the results 'finding'"):
        headline_table(made_up(), "finding", COLUMNS)
    for table in (per_run_table, per_run_comparison):
        with pytest.raises(UnknownNameError, match="unknown method of the results 'novelty'"):
            table(made_up(), "findings", COLUMNS, "novelty")


@settings(max_examples=30)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_any_name_of_a_method_and_a_run_makes_a_table(name):
    """No name breaks a builder or a form."""
    results = made_up(methods=METHODS[-1:], runs=(0, 1))
    renamed = replace(
        results,
        cells=tuple(replace(c, method=name) if c.method == METHODS[-1] else c for c in results.cells),
        methods={name: "x"},
        runs=(replace(results.runs[0], model=name, prompt=name), results.runs[1]),
    )
    for table in all_tables(renamed, COLUMNS, method=name):
        for form in FORMS:
            assert render(table, form)
