"""Scores of another program share the oracle, the gap, the intervals and the tests."""

import csv
import gzip
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import tabon
from tabon import Selection
from tabon.cli import main
from tabon.data.imports.source_rows import read_rows
from tabon.data.simulate import SimulationSettings, simulate_queries
from tabon.errors import BadInputError
from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases
from tabon.evaluation.draft_scores import state_f1
from tabon.evaluation.outside_scores import read_scores
from tabon.text.records import query_from_record

SETTINGS = SimulationSettings(patients=150, num_candidates=3)
QUERIES = list(simulate_queries(SETTINGS))
LINES = [json.dumps(query).encode() + b"\n" for query in QUERIES]


def rows(
    *, name="judge", direction="higher", worth=lambda query, draft: state_f1(draft["state"], query["state"])
):
    """Return a row for each draft."""
    sign = 1 if direction == "higher" else -1
    return [
        {"id": query["id"], "draft": number, "name": name, "value": sign * worth(query, draft),
         "direction": direction}
        for query in QUERIES
        for number, draft in enumerate(query["candidates"])
    ]  # fmt: skip


def written(path, records):
    """Write rows as CSV or JSON Lines, by the file's name."""
    with path.open("w", newline="", encoding="utf-8") as file:
        if path.suffix == ".csv":
            writer = csv.DictWriter(file, ["id", "draft", "name", "value", "direction"])
            writer.writeheader()
            writer.writerows(records)
        else:
            file.writelines(json.dumps(record) + "\n" for record in records)
    return path


def read(path):
    """Read a file of scores, as commands do."""
    table = read_rows(path)
    return read_scores(table.name, table.placed())


def evaluated(*outside):
    """Evaluate the first draft with scores from outside and no metric."""
    cases = read_cases(LINES, name="simulated")
    chosen = {case.query.id: 0 for case in cases.cases}
    picks = Picks(method="first", signature="selector:first", chosen=chosen, distances={})
    run = RunInput(name="run", cases=cases, picks=(picks,))
    return evaluate([run], [], EvaluationSettings(resamples=100), outside=outside)


def test_risk_knows_scores_from_outside(tmp_path):
    """State-F1 from a file gives the risk of state-F1; a name that the file lacks is refused."""
    queries, picks = tmp_path / "q.jsonl", tmp_path / "picks.jsonl"
    queries.write_bytes(b"".join(LINES))
    records = [
        {"id": query["id"], "selected": 0, "total_distances": [row / 99, 1.0, 1.0], "signature": "s"}
        for row, query in enumerate(QUERIES)
    ]
    picks.write_text("".join(json.dumps(record) + "\n" for record in records))
    scores = written(tmp_path / "scores.csv", rows())

    def risk(*options):
        """Print the risk of the picks."""
        command = ["risk", str(queries), "--selections", f"mine={picks}", *map(str, options)]
        return CliRunner().invoke(main, command)

    found = risk("--scores", scores, "--score", "judge")
    assert found.exit_code == 0, found.output
    assert found.stdout == risk("--score", "state-f1").stdout
    refused = risk("--scores", scores, "--score", "jugde")
    assert refused.exit_code == 1
    assert "unknown score of --scores 'jugde'. Did you mean 'judge'" in refused.output


@pytest.mark.parametrize("file", ["scores.csv", "scores.jsonl"])
@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_a_score_from_outside_is_treated_as_one_from_inside(tmp_path, file, direction):
    """State-F1 from a file gives the numbers of state-F1, whichever way its values point."""
    [score] = read(written(tmp_path / file, rows(direction=direction)))
    results = evaluated(score)
    for method in ("random", "first", "oracle"):
        place = {"run": "run", "section": "report", "method": method}
        inside, outside = (results.cell(score=name, **place) for name in ("state-f1", "judge"))
        for field in ("value", "low", "high", "delta", "gap", "gap_low", "gap_high", "p", "wins"):
            expected, found = getattr(inside, field), getattr(outside, field)
            assert found == (expected if expected is None else pytest.approx(expected, abs=1e-12)), field
    assert set(results.headline) == {"state-f1", "judge"}
    assert ("sign:turned" in results.scores["judge"]) == (direction == "lower")


@pytest.mark.parametrize("kind", ["semicolons", "packed", "tabs", "frame"])
def test_a_table_of_any_kind_has_the_same_scores(tmp_path, kind):
    """What `tabon import` reads is read here too."""
    plain = written(tmp_path / "scores.csv", rows())
    text = plain.read_text(encoding="utf-8")
    other = {
        "semicolons": ("other.csv", f"sep=;\n{text}".replace(",", ";").encode()),
        "packed": ("other.csv.gz", gzip.compress(text.encode())),
        "tabs": ("other.tsv", text.replace(",", "\t").encode("utf-16")),
        "frame": ("frame", b""),
    }[kind]
    (tmp_path / other[0]).write_bytes(other[1])
    found = read(pd.DataFrame(rows()) if kind == "frame" else tmp_path / other[0])
    assert [score.signature for score in found] == [score.signature for score in read(plain)]


def test_python_takes_a_table_of_scores():
    """`tabon.evaluate(scores=)` has them beside the metrics; a headline may name them, a name counts once."""
    queries = [query_from_record(query) for query in QUERIES]
    picks = {"first": [Selection(selected=0) for _ in queries]}
    options = {"metrics": ["labels"], "resamples": 50}
    found = tabon.evaluate(queries, picks, scores=rows(), headline=["judge"], **options)
    cell = found.results.cell(run=found.results.main_run(), section="report", method="first", score="judge")
    mean = np.mean([state_f1(query["candidates"][0]["state"], query["state"]) for query in QUERIES])
    assert cell.value == pytest.approx(mean)
    assert found.results.headline == ("judge",)
    with pytest.raises(BadInputError, match="name it otherwise"):
        tabon.evaluate(queries, picks, scores=rows(name="labels-14-micro"), **options)


def test_the_order_of_rows_does_not_matter_and_the_values_do(tmp_path):
    """The signature is that of the values."""
    records = rows()
    shuffled = [records[row] for row in np.random.default_rng(0).permutation(len(records))]
    other = [{**records[0], "value": 0.123}, *records[1:]]
    found = [
        read(written(tmp_path / f"{number}.csv", each))[0].signature
        for number, each in enumerate((records, shuffled, other))
    ]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda all_rows: all_rows[1:], "1 without a row"),
        (lambda all_rows: [*all_rows, {**all_rows[0], "id": "nobody"}], "no draft of the queries ('nobody')"),
        (lambda all_rows: [*all_rows, {**all_rows[0], "draft": 9}], "draft 9"),
        (lambda all_rows: [*all_rows, all_rows[0]], "is there twice"),
        (
            lambda all_rows: [{**all_rows[0], "value": "nan"}, *all_rows[1:]],
            "line 1: the value is not finite",
        ),
        (lambda all_rows: [{**all_rows[0], "value": None}, *all_rows[1:]], "line 1 is no score"),
        (lambda all_rows: [{**all_rows[0], "direction": "up"}, *all_rows[1:]], "higher or lower"),
        (lambda all_rows: [{**all_rows[0], "direction": "lower"}, *all_rows[1:]], "two directions"),
        (lambda _: [], "is empty"),
        (lambda all_rows: [{**all_rows[0], "draft": "first"}], "line 1 is no score"),
    ],
)
def test_rows_that_do_not_fit_are_named(tmp_path, change, message):
    """What is missing, unknown, twice or no number is refused with its place."""
    path = written(tmp_path / "scores.jsonl", change(rows()))
    with pytest.raises(BadInputError) as error:
        evaluated(*read(path))
    assert message in str(error.value)


def test_the_command_takes_a_file_of_scores(tmp_path):
    """`tabon evaluate --scores` prints the table of such a score and refuses a name that is taken."""
    (tmp_path / "queries.jsonl").write_bytes(b"".join(LINES))
    picks = [{"id": query["id"], "selected": 0, "signature": "selector:first"} for query in QUERIES]
    (tmp_path / "first.jsonl").write_text("".join(json.dumps(pick) + "\n" for pick in picks))

    def command(name):
        scores = written(tmp_path / "scores.csv", rows(name=name))
        return CliRunner().invoke(main, [
            "evaluate", str(tmp_path / "queries.jsonl"), "--selections", str(tmp_path / "first.jsonl"),
            "--scores", str(scores), "--metrics", "rouge", "--show", name, "--resamples", "50",
            "--no-measurements", "--out", str(tmp_path / "results.json"),
        ])  # fmt: skip

    answer = command("green")
    assert answer.exit_code == 0, answer.output
    assert "**green on Whole report**" in answer.stdout
    answer = command("rouge-l-f")
    assert answer.exit_code == 1
    assert "name it otherwise" in answer.output
