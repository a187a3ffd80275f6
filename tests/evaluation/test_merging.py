"""Several results files in one table: only where they belong together."""

from dataclasses import replace

import pytest

from made_up_results import COLUMNS, METHODS, RUNS, made_up
from tabon.errors import BadInputError
from tabon.evaluation.results import MEAN_RUN, RANDOM, read_results, write_results
from tabon.reporting.tables import headline_table, merge_results


def by_place(results):
    """The cells of results by where they stand."""
    return {(c.run, c.section, c.method, c.score): c for c in results.cells}


def halves():
    """The made-up evaluation in two files: five methods and four."""
    return made_up(methods=METHODS[:5]), made_up(methods=METHODS[5:])


def test_one_file_is_itself():
    """Nothing is lost that need not be."""
    assert merge_results([made_up()]) == made_up()


def test_no_file_is_refused():
    """There is nothing to show."""
    with pytest.raises(BadInputError, match="no results to merge"):
        merge_results([])


def test_methods_of_two_files_are_the_methods_of_one():
    """Merged halves are the whole, but for p-values adjusted within a half."""
    merged, whole = merge_results(halves()), made_up()
    expected = {place: replace(cell, holm=None, bh=None) for place, cell in by_place(whole).items()}
    found = by_place(merged)
    extra = found.keys() - expected.keys()
    assert {place: found[place] for place in expected} == expected
    assert {place[1] for place in extra} == {"report"}  # each half has its first method there
    assert list(merged.methods) == list(METHODS)
    assert merged.runs == whole.runs
    assert (merged.scores, merged.missing, merged.facts) == (whole.scores, whole.missing, whole.facts)


def test_the_order_of_the_rows_is_the_order_of_the_files():
    """The second file's methods come first if it is named first."""
    first, second = halves()
    table = headline_table(merge_results([second, first]), "findings", COLUMNS)
    assert table.blocks[0].rows[0].cells[0].text == "Dir-Hausdorff / knn"


def test_runs_of_two_files_get_a_mean():
    """Value, delta and relative change are the whole's; what needs the studies is not there."""
    merged = merge_results([made_up(runs=(0, 1)), made_up(runs=(2,))])
    whole = by_place(made_up())
    assert [run.name for run in merged.runs] == list(RUNS)
    means = [cell for cell in merged.cells if cell.run == MEAN_RUN]
    hollow = ("impression", "novelty/min", "bertscore-f1")
    assert len(means) == sum(place[0] == MEAN_RUN for place in whole) - 1
    for cell in means:
        place = (cell.section, cell.method, cell.score)
        expected = whole[(MEAN_RUN, *place)]
        assert place != hollow  # one run has no number there, so the mean of all has none
        assert cell.n == expected.n
        assert cell.value == pytest.approx(expected.value, rel=1e-12)
        assert cell.low is cell.p is cell.gap is None
        if cell.method == RANDOM:
            assert cell.delta is None
        else:
            assert cell.relative == pytest.approx(expected.relative, rel=1e-9)


def test_a_file_read_back_merges_with_one_in_memory(tmp_path):
    """A tuple among the settings is the list that it is read back as."""
    first, second = (
        replace(results, settings={**results.settings, "random_seeds": (0, 1)}) for results in halves()
    )
    write_results(tmp_path / "first.json", first)
    merged = merge_results([read_results(tmp_path / "first.json"), second])
    assert merged.cells == merge_results([first, second]).cells


def test_a_score_under_two_signatures_is_refused():
    """The message names the score and both signatures."""
    first, second = halves()
    other = replace(second, scores={**second.scores, "bleu-1": "bleu|tokenizer:zh|v:1"})
    with pytest.raises(BadInputError) as caught:
        merge_results([first, other])
    for word in ("score 'bleu-1'", "bleu|tokenizer:13a|v:1", "bleu|tokenizer:zh|v:1"):
        assert word in str(caught.value)


def test_a_method_under_two_signatures_is_refused():
    """The message names the method and both signatures."""
    other = replace(made_up(), methods={**made_up().methods, "novelty/min": "distance:novelty|bank:other"})
    with pytest.raises(BadInputError) as caught:
        merge_results([made_up(), other])
    for word in ("method 'novelty/min'", "bank:0123456789ab", "bank:other"):
        assert word in str(caught.value)


@pytest.mark.parametrize("setting", ["seed", "resamples", "versions"])
def test_other_settings_are_refused(setting):
    """The message names the setting and both values."""
    first, second = halves()
    other = replace(second, settings={**second.settings, setting: 77})
    with pytest.raises(BadInputError, match=f"the setting '{setting}' is .* and 77 in another"):
        merge_results([first, other])
    fewer = {name: value for name, value in second.settings.items() if name != setting}
    with pytest.raises(BadInputError, match=f"the setting '{setting}' is .* and null in another"):
        merge_results([first, replace(second, settings=fewer)])


def test_a_run_of_other_drafts_is_refused():
    """One name for two queries files is no run."""
    first, second = halves()
    run = replace(second.runs[0], queries="f" * 64)
    with pytest.raises(BadInputError, match=f"the run '{RUNS[0]}' is of other drafts"):
        merge_results([first, replace(second, runs=(run, *second.runs[1:]))])


def test_two_numbers_for_one_place_are_refused():
    """Random must be worth the same in both files."""
    first, second = halves()
    cells = tuple(
        replace(c, value=c.value + 1e-12) if c.method == RANDOM and c.run == RUNS[0] else c
        for c in second.cells
    )
    with pytest.raises(BadInputError, match=r"of random in Gemini-2\.5-FL P1 .* differs between two"):
        merge_results([first, replace(second, cells=cells)])


def test_abstentions_and_reasons_of_both_files_are_kept():
    """Each file knows its own methods and its own missing metrics."""
    first, second = halves()
    on_progress = replace(second.runs[0], abstained={"cost-ot/min": 4})
    second = replace(second, runs=(on_progress, *second.runs[1:]), missing={"comet": "no weights"})
    merged = merge_results([first, second])
    assert merged.runs[0].abstained == {"novelty/min": 2, "cost-ot/min": 4}
    assert merged.missing.keys() == {"radgraph", "comet"}


def test_facts_that_differ_are_left_out():
    """A picture is drawn from one file's facts, or from none."""
    first, second = halves()
    merged = merge_results([first, replace(second, facts={**second.facts, "curves": [1]})])
    assert merged.facts == {"report": {"title": "Made up"}}
