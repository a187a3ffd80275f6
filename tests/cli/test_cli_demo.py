"""`tabon demo`: the whole method on a simulated cohort, and its page."""

import json
import math
import re
from pathlib import Path

import pytest

from commands import tabon
from explorer_cases import data_of
from tabon import TransitionBank
from tabon.cli.demo import Row
from tabon.method.distances import DISTANCES
from tabon.method.nearest import AGGREGATES

FILES = ["bank.tabon", "queries.jsonl", "report.html", "selections.jsonl", "transitions.jsonl"]


def demo(out, *, patients=40, seed=0):
    """Run the demo with the test encoder."""
    return tabon("demo", "--out", out, "--patients", patients, "--seed", seed, "--encoder", "hashing")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return a finished demo run and its folder."""
    folder = tmp_path_factory.mktemp("demo") / "new"
    return demo(folder), folder


def test_the_table_has_a_row_for_each_method_between_random_and_oracle(shown):
    """Stdout shows random, the paper's eight methods, three rivals and the oracle, then what they mean."""
    result, _ = shown
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    methods = [f"{distance} / {aggregate}" for distance in DISTANCES for aggregate in AGGREGATES]
    names = ["method", "random (expected)", *methods, "consensus", "next-visit", "fused", "oracle"]
    assert [line[:22].strip() for line in lines[:14]] == names
    assert "it is no evidence about real reports" in result.stdout
    assert "simulated cohort" in lines[-2]
    assert lines[-1].startswith("selector:fused|")


def test_the_files_are_written_whole_and_named_on_stderr(shown):
    """The folder holds the five files that stderr names, and nothing else."""
    result, folder = shown
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert result.stderr.startswith("wrote ")
    assert all(str(folder / name) in result.stderr for name in FILES)
    assert f"look at {folder / 'report.html'}" in result.stderr


def test_the_written_files_are_the_contracts_of_the_other_commands(shown, tmp_path):
    """Bank and queries of the demo give the demo's selections when `tabon select` is run on them."""
    _, folder = shown
    again = tabon("select", folder / "queries.jsonl", "--bank", folder / "bank.tabon", "--selector", "fused")
    assert again.exit_code == 0
    assert again.stdout == (folder / "selections.jsonl").read_text()
    built = tmp_path / "bank.tabon"
    rebuilt = tabon("bank", "build", folder / "transitions.jsonl", "--out", built, "--encoder", "hashing")
    assert rebuilt.exit_code == 0
    assert built.read_bytes() == (folder / "bank.tabon").read_bytes()


def test_no_test_patient_is_in_the_bank(shown):
    """The demo does not select with the patient's own transitions."""
    _, folder = shown
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    patients = TransitionBank.load(folder / "bank.tabon").patients
    assert queries
    assert not patients & {query["patient"] for query in queries}


def test_a_seed_names_a_cohort(shown, tmp_path):
    """The same seed gives the same bytes, another seed another cohort."""
    result, folder = shown
    assert demo(tmp_path / "same").stdout == result.stdout
    for name in FILES:
        assert (tmp_path / "same" / name).read_bytes() == (folder / name).read_bytes()
    assert demo(tmp_path / "other", seed=1).stdout != result.stdout


def test_the_page_is_the_explorers_with_every_query(shown):
    """The demo opens onto the page of `tabon report`, with the selections that are written beside it."""
    _, folder = shown
    page = data_of((folder / "report.html").read_text(encoding="utf-8"))
    picks = [json.loads(line) for line in (folder / "selections.jsonl").read_text().splitlines()]
    assert [line["id"] for line in page["overview"]["studies"]] == [pick["id"] for pick in picks]
    assert [line["selected"] for line in page["overview"]["studies"]] == [pick["selected"] for pick in picks]


def test_intervals_hold_the_share_of_the_gap(shown):
    """Each method's share lies in its interval, between random and oracle in the table."""
    result, _ = shown
    rows = re.findall(r"^(.{22}) .{8}  (-?\d+)%  \((-?\d+) to (-?\d+)\)$", result.stdout, re.MULTILINE)
    assert len(rows) == 11
    assert all(int(low) <= int(closed) <= int(high) for _, closed, low, high in rows)


def test_a_cohort_without_a_gap_shows_a_dash():
    """If the oracle is no better than chance, no share of the gap is claimed."""
    assert Row("novelty / min", 0.5, math.nan).gap() == "–"
    assert Row("novelty / min", 0.5, -0.25, -0.4, -0.1).gap() == "-25%  (-40 to -10)"


@pytest.mark.parametrize("patients", [0, 1, 8, -1])
def test_too_few_patients_are_refused(patients, tmp_path):
    """A cohort without test queries or bank is one sentence, and no folder appears."""
    result = demo(tmp_path / "out", patients=patients)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    """An --out below a file is one sentence that names the place."""
    (tmp_path / "file").write_text("precious")
    result = demo(tmp_path / "file" / "out")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: cannot write {tmp_path / 'file' / 'out'}")
    assert (tmp_path / "file").read_text() == "precious"


def test_an_unknown_encoder_is_refused_with_the_one_that_was_meant(tmp_path):
    """A typing error in the encoder's name is answered with the right name."""
    result = tabon("demo", "--out", tmp_path / "out", "--patients", 40, "--encoder", "hasing")
    assert result.exit_code == 1
    assert "Did you mean 'hashing'?" in result.stderr


@pytest.mark.parametrize("words", [["--patients", "many"], ["extra"], ["--what"], ["--out", __file__]])
def test_wrong_usage_is_exit_status_2(words):
    """Arguments that the command does not take are answered with the usage."""
    result = tabon("demo", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr
    assert Path(__file__).is_file()
