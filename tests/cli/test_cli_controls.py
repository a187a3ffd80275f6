"""`tabon controls` as a user meets it."""

import json

import pytest
from click.testing import CliRunner

from tabon.cli.bank import bank as bank_command
from tabon.cli.evaluate import controls_command
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.evaluation.results import read_results

SETTINGS = SimulationSettings(patients=50, num_candidates=3, splits=(0.5, 0.1, 0.4))
QUICK = ["--resamples", "20", "--shuffles", "1", "--no-store", "--no-measurements", "--score", "rouge-l-f"]
FEW = ["--selector", "transition:novelty/min", "--selector", "consensus:chamfer"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with queries, other drafts of them, and a bank."""
    folder = tmp_path_factory.mktemp("controls")
    queries = list(simulate_queries(SETTINGS))
    for name, records in (
        ("train.jsonl", simulate_transitions(SETTINGS, "train")),
        ("p3.jsonl", [{**record, "prompt": "P3"} for record in queries]),
        ("p1.jsonl", [{**record, "prompt": "P1"} for record in queries[1:]]),
        ("others.jsonl", [{**record, "id": f"x{record['id']}"} for record in queries]),
        ("bare.jsonl", [{**record, "reference": None} for record in queries]),
        ("alone.jsonl", [{**record, "patient": "p"} for record in queries]),
    ):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    arguments = ["build", folder / "train.jsonl", "--out", folder / "bank", "--encoder", "hashing"]
    assert CliRunner().invoke(bank_command, [*map(str, arguments), "--no-store"]).exit_code == 0
    return folder


def run(folder, *arguments, queries="p3.jsonl", out="out.json"):
    """Run the command on a file of the folder."""
    given = [folder / queries, "--bank", folder / "bank", "--out", folder / out, *QUICK, *arguments]
    return CliRunner().invoke(controls_command, list(map(str, given)))


@pytest.fixture(scope="module")
def answer(folder):
    """Run everything but the encoder swap, with drafts under another prompt."""
    conditions = ("prior", "section", "length", "splitter", "history", "bank-size", "drafts", "neighbours")
    chosen = [word for name in conditions for word in ("--condition", name)]
    return run(folder, *FEW, *chosen, "--against", folder / "p1.jsonl", "--selector", "longest")


def test_one_command_prints_one_table_of_everything(answer, folder):
    """All conditions stand in the table, the factorial one below it, and the results are on disk."""
    assert answer.exit_code == 0, answer.output
    blocks = ("Prior", "Section of the bank", "Length", "Splitter", "Bank size", "Drafts (K)")
    for name in (*blocks, "Neighbours (k)"):
        assert f"| *{name}* |" in answer.stdout
    assert "novelty/min \\| other patient's prior" in answer.stdout
    assert "drafts: P1" in answer.stdout
    results = read_results(folder / "out.json")
    assert "longest | right prior" in results.methods
    assert {cell["n"] for cell in results.facts["factorial"]} == {results.runs[0].studies - 1}


def test_the_same_inputs_give_the_same_bytes(folder):
    """Twice the same command is twice the same file and text."""
    first, again = (run(folder, *FEW, "--condition", "prior", out=name) for name in ("a.json", "b.json"))
    assert first.stdout == again.stdout
    assert (folder / "a.json").read_bytes() == (folder / "b.json").read_bytes()
    other = run(folder, *FEW, "--condition", "prior", "--seed", "1", out="b.json")
    assert other.stdout != first.stdout


def test_the_table_comes_in_other_forms(folder):
    """LaTeX for a paper."""
    answer = run(folder, "--selector", "first", "--condition", "length", "--format", "latex")
    assert r"\label{tab:controls}" in answer.stdout


@pytest.mark.parametrize(
    ("queries", "arguments", "message"),
    [
        ("p3.jsonl", ["--selector", "consensis"], "Did you mean 'consensus'"),
        ("p3.jsonl", ["--condition", "priors"], "Did you mean 'prior'"),
        ("p3.jsonl", ["--score", "rouge-l"], "unknown score 'rouge-l'"),
        ("p3.jsonl", ["--score", "rogue"], "unknown score"),
        ("p3.jsonl", ["--score", ","], "no score was named"),
        ("p3.jsonl", ["--resamples", "0"], "at least 1"),
        ("p3.jsonl", ["--encoder", "hushing"], "Did you mean 'hashing'"),
        ("p3.jsonl", ["--against", "others.jsonl"], "shares no query id"),
        ("bare.jsonl", [], "holds no query with a 'reference'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(folder, tmp_path, queries, arguments, message):
    """The way out is in the message, the status is 1, and nothing is written."""
    named = [folder / word if word.endswith(".jsonl") else word for word in arguments]
    answer = run(folder, *named, queries=queries, out=tmp_path / "no.json")
    assert answer.exit_code == 1, answer.output
    assert message in answer.output
    assert len(answer.output.strip().splitlines()) == 1
    assert not (tmp_path / "no.json").exists()


def test_one_patient_has_no_other_patients_priors(folder):
    """The row is left out with the reason; the others are there."""
    answer = run(folder, *FEW, "--condition", "prior", queries="alone.jsonl")
    assert answer.exit_code == 0, answer.output
    assert "Not tried: novelty/min" in answer.stdout
    assert "give queries of more patients" in answer.stdout


def test_a_bank_that_is_not_there_and_a_wrong_form_are_named(folder):
    """A missing bank is status 1, a form that does not exist is usage."""
    missing = ["--bank", folder / "nothing"]
    assert run(folder, *missing).exit_code == 1
    assert run(folder, "--format", "word").exit_code == 2
