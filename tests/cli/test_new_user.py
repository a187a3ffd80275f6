"""The new user: a table of four columns, a file of drafts, and three commands to a table and a figure."""

import csv
import json
import re
import shlex

import pytest
from click.testing import CliRunner

from tabon.cli import main
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load as loading
from tabon.evaluation.results import read_results
from tabon.text.reports import SECTIONS

SETTINGS = SimulationSettings(patients=120, num_candidates=3)
SELECTORS = ("paper", "consensus:rouge-l-f", "longest")
MEASURED = "--metrics rouge,labels --resamples 50"
NAMED = " ".join(f"--selector {name}" for name in SELECTORS)
QUERIES, TRANSITIONS = "cohort/test/queries.jsonl", "cohort/train/transitions.jsonl"
SHORT = (
    "import visits.csv --drafts drafts.csv --out cohort",
    f"compare {QUERIES} --bank {TRANSITIONS} {NAMED} {MEASURED} --figures pdf,png --out compared",
    "table compared/results.json --format latex",
)


def run(command):
    """Run a command that must succeed, and return what it prints."""
    answer = CliRunner().invoke(main, shlex.split(command))
    assert answer.exit_code == 0, (command, answer.output)
    return answer.stdout


def write_table(path, rows):
    """Write a table of patient, date and the sections, as a spreadsheet would."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def visits_and_drafts():
    """Return the rows of simulated patients' two visits, and of the drafts of those who are tested."""
    queries = list(simulate_queries(SETTINGS))
    tested = {query["patient"] for query in queries}
    pairs = {}
    for record in (*queries, *simulate_transitions(SETTINGS, "train")):
        pairs.setdefault(record["patient"], (record["prior"], record.get("reference") or record["current"]))
    visits = [
        {"patient": patient, "date": day, **{section: report[section] for section in SECTIONS}}
        for patient, pair in pairs.items()
        for day, report in zip(("2019-03-14", "2019-06-20"), pair, strict=True)
    ]
    drafts = {query["patient"]: query["candidates"] for query in reversed(queries)}
    assert len(drafts) > 5
    assert len(pairs) - len(tested) > 30
    return visits, [
        {"patient": patient, "date": "2019-06-20", "text": draft["text"]}
        for patient, found in drafts.items()
        for draft in found
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Run the three commands, and then the long way; return the folder and what each printed."""
    folder = tmp_path_factory.mktemp("new-user")
    visits, drafts = visits_and_drafts()
    write_table(folder / "visits.csv", visits)
    write_table(folder / "drafts.csv", drafts)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("XDG_CACHE_HOME", str(folder))
        patch.setattr(loading, "ENCODERS", {**loading.ENCODERS, "minilm": loading.ENCODERS["hashing"]})
        short = [run(command) for command in SHORT]
        long = long_way(folder, visits, drafts)
    return folder, short, long


def long_way(folder, visits, drafts):
    """Do the same without `import` and `compare`: with a map, splits and ids of one's own, and a script."""
    tested = {draft["patient"] for draft in drafts}
    rows = [
        {
            **visit,
            "study": f"{visit['patient']}-{visit['date']}",
            "split": "test" if visit["patient"] in tested else "train",
        }
        for visit in visits
    ]
    write_table(folder / "table.csv", rows)
    columns = ",".join(f"{name}={name}" for name in ("patient", "study", "date", *SECTIONS, "split"))
    run(f"cohort generic table.csv --columns {columns} --out long")
    queries = []
    for line in (folder / "long/test/transitions.jsonl").read_text().splitlines():
        record = json.loads(line)
        record["reference"] = record.pop("current")
        mine = [draft for draft in drafts if draft["patient"] == record["patient"]]
        record["candidates"] = [{"text": draft["text"]} for draft in mine]
        queries.append(json.dumps(record) + "\n")
    (folder / "queries.jsonl").write_text("".join(queries))
    run("bank build long/train/transitions.jsonl --out long.tabon")
    picks = []
    for number, name in enumerate(SELECTORS):
        run(f"select queries.jsonl --bank long.tabon --selector {name} --out picks-{number}.jsonl")
        picks.append(f"--selections {name}=picks-{number}.jsonl")
    run(f"evaluate queries.jsonl {' '.join(picks)} {MEASURED} --out long.json")
    return run("table long.json --format latex")


def test_three_commands_give_the_numbers_of_the_long_way(made):
    """Every cell, every pair of selectors and every signature is the same, and so is the printed table."""
    folder, short, long = made
    mine, theirs = (read_results(folder / name) for name in ("compared/results.json", "long.json"))
    assert mine.cells == theirs.cells
    assert mine.pairs == theirs.pairs
    assert len(mine.pairs) >= 2 * 3
    assert (mine.methods, mine.scores, mine.headline) == (theirs.methods, theirs.scores, theirs.headline)
    assert short[2] == long


def test_the_table_is_latex_of_the_numbers(made):
    """Two sections, a row for each selector, and each ROUGE-L to three places."""
    folder, (*_, printed), _ = made
    results = read_results(folder / "compared/results.json")
    assert printed.count(r"\begin{table") == printed.count(r"\end{table")
    for section in SECTIONS:
        for name in SELECTORS:
            cell = results.cell(run=results.main_run(), section=section, method=name, score="rouge-l-f")
            assert f"{cell.value:.3f}" in printed


def test_the_figures_are_there_and_the_page_names_the_selectors(made):
    """A PDF for the paper, a PNG for the slides, one page for the screen."""
    folder, _, _ = made
    figures = sorted(path.name for path in (folder / "compared/figures").iterdir())
    assert figures == [
        f"gains-{section}.{form}" for section in ("findings", "impressions") for form in ("pdf", "png")
    ]
    for path in (folder / "compared/figures").iterdir():
        assert path.read_bytes().startswith({".pdf": b"%PDF-", ".png": b"\x89PNG\r\n"}[path.suffix])
    page = (folder / "compared/report.html").read_text(encoding="utf-8")
    assert all(name in page for name in SELECTORS)
    assert not re.search(r"<section[^>]*><h2>[^<]*</h2>\s*</section>", page)
