"""`tabon flags` and `tabon risk` as a user meets them."""

import json

import pytest
from click.testing import CliRunner

from tabon.cli import main
from tabon.data.simulate import SimulationSettings, simulate_queries

PRIOR = {"findings": "Large left pleural effusion. Stable cardiomegaly.", "impression": "Left effusion."}
SWAPPED = {"findings": "Large right pleural effusion. Stable cardiomegaly.", "impression": "Right effusion."}


def run(*arguments):
    """Run the command."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def queries(tmp_path):
    """Write a query with a good draft and one on the wrong side."""
    path = tmp_path / "queries.jsonl"
    record = {"id": "CANARY-1", "prior": PRIOR, "candidates": [PRIOR, SWAPPED]}
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


def test_a_flag_names_its_sentences_and_holds_no_text(queries):
    """The draft on the wrong side is flagged with the sentences of both reports; no text is printed."""
    answer = run("flags", queries)
    assert answer.exit_code == 0, answer.output
    records = {record["draft"]: record for record in map(json.loads, answer.stdout.splitlines())}
    [flip] = [flag for flag in records[1]["flags"] if flag["kind"] == "side-flip"][:1]
    assert flip["sentences"]
    assert flip["prior_sentences"]
    assert "Large" not in answer.output


def test_only_the_chosen_draft_is_looked_at_where_selections_are_given(queries, tmp_path):
    """`--selections` narrows the flags to the picks."""
    picks = tmp_path / "picks.jsonl"
    picks.write_text(json.dumps({"id": "CANARY-1", "selected": 0, "signature": "s"}), encoding="utf-8")
    answer = run("flags", queries, "--selections", picks)
    assert {json.loads(line)["draft"] for line in answer.stdout.splitlines()} <= {0}


def test_a_bad_line_is_one_sentence(tmp_path):
    """The line is named, the status is 1."""
    (tmp_path / "bad.jsonl").write_text('{"id"', encoding="utf-8")
    answer = run("flags", tmp_path / "bad.jsonl")
    assert answer.exit_code == 1
    assert "line 1" in answer.output


def test_risk_is_printed_for_every_tenth(tmp_path):
    """A table of the risk at ten coverages; the last is the loss of all picks."""
    records = list(simulate_queries(SimulationSettings(patients=250, num_candidates=3)))
    path, picks = tmp_path / "q.jsonl", tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    lines = [
        {"id": record["id"], "selected": 0, "total_distances": [row / 100, 1.0, 1.0], "signature": "s"}
        for row, record in enumerate(records)
    ]
    picks.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for score in ("state-f1", "rouge-l-f"):
        answer = run("risk", path, "--selections", f"mine={picks}", "--score", score)
        assert answer.exit_code == 0, answer.output
        assert len(answer.stdout.splitlines()[-1].split("|")) == 14
    for form, start in (("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        drawn = tmp_path / f"risk.{form}"
        assert run("risk", path, "--selections", f"mine={picks}", "--figure", drawn).exit_code == 0
        assert drawn.read_bytes().startswith(start)
    answer = run("risk", path, "--selections", picks, "--figure", tmp_path / "risk.jpg")
    assert (answer.exit_code, (tmp_path / "risk.jpg").exists()) == (1, False)
    assert "unknown figure form 'jpg'" in answer.output
    answer = run("risk", path, "--selections", picks, "--score", "nonsense")
    assert answer.exit_code == 1
    assert "unknown score" in answer.output
