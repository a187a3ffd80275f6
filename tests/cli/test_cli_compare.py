"""`tabon compare` as a user meets it: one command, the numbers of the long way, nothing made twice."""

import json

import pytest
from click.testing import CliRunner

from tabon.cli import main
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.evaluation.results import read_results
from tabon.reporting.experiment.files import OWN_NAME

SETTINGS = SimulationSettings(patients=250, num_candidates=3)
QUICK = ["--resamples", "100", "--no-measurements", "--no-store", "--metrics", "rouge,labels"]
HEADLINE = ["--headline", "rouge-l-f,labels-14-micro"]


def run(*arguments):
    """Run a command that must succeed."""
    answer = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert answer.exit_code == 0, answer.output
    return answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with transitions, queries and a bank."""
    folder = tmp_path_factory.mktemp("compare")
    for name, records in (
        ("train.jsonl", simulate_transitions(SETTINGS, "train")),
        ("queries.jsonl", simulate_queries(SETTINGS)),
    ):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    run(
        "bank", "build", folder / "train.jsonl", "--out", folder / "bank.tabon", "--encoder", "hashing",
        "--no-store",
    )  # fmt: skip
    return folder


def compare(folder, out, *selectors, bank="bank.tabon", options=(*QUICK, *HEADLINE)):
    """Compare selectors."""
    named = [part for selector in selectors for part in ("--selector", selector)]
    return run("compare", folder / "queries.jsonl", "--bank", folder / bank, "--out", out, *named, *options)


@pytest.fixture(scope="module")
def compared(folder):
    """Compare three selectors, two of which are one under two names."""
    answer = compare(folder, folder / "out", "paper", "consensus:rouge-l-f", "transition:novelty/min")
    return answer, folder / "out"


def test_the_numbers_are_those_of_the_long_way(folder, compared, tmp_path):
    """Select, evaluate and table give the same cells, pairs and table."""
    _, out = compared
    picks = []
    for name in ("paper", "consensus:rouge-l-f", "transition:novelty/min"):
        file = tmp_path / f"{len(picks)}.jsonl"
        run(
            "select", folder / "queries.jsonl", "--bank", folder / "bank.tabon", "--selector", name,
            "--out", file, "--no-store",
        )  # fmt: skip
        picks += ["--selections", f"{name}={file}"]
    run(
        "evaluate", folder / "queries.jsonl", *picks, "--out", tmp_path / "results.json",
        *(each for each in QUICK if each != "--no-store"), *HEADLINE,
    )  # fmt: skip
    assert read_results(tmp_path / "results.json") == read_results(out / "results.json")
    long = run("table", tmp_path / "results.json", "--only", "avg-findings")
    assert long.stdout == run("table", out / "results.json", "--only", "avg-findings").stdout


def test_equal_picks_give_no_difference(compared):
    """One selector under two names: difference 0, p = 1, and the sentence says so."""
    answer, out = compared
    pairs = [pair for pair in read_results(out / "results.json").pairs if pair.other.startswith("transition")]
    same = [pair for pair in pairs if pair.method == "paper"]
    assert {(pair.delta, pair.gap, pair.p, pair.holm) for pair in same} == {(0.0, 0.0, 1.0, 1.0)}
    assert "paper and transition:novelty/min do not differ in ROUGE-L (Holm's p = 1)" in answer.stdout


def test_a_table_a_page_and_a_sentence_for_each_pair(compared):
    """The headline tables and the sentences of the shown score are printed, the page is written."""
    answer, out = compared
    assert "Findings" in answer.stdout
    assert "Impressions" in answer.stdout
    assert answer.stdout.count("of the ROUGE-L gap than") == 2 * 2
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Selectors against each other" in page


def test_the_default_is_few_files_and_a_small_family(folder, tmp_path):
    """Three selectors with the default metrics: at most 25 files, and at most 8 headline scores a section."""
    compare(
        folder, tmp_path, "paper", "fused", "longest", bank="train.jsonl",
        options=["--resamples", "20", "--no-measurements", "--no-store", "--encoder", "hashing"],
    )  # fmt: skip
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) <= 25
    assert {"headline-findings.tex", "pairs-impressions.csv"} <= {path.name for path in files}
    results = read_results(tmp_path / "results.json")
    for section in results.sections():
        tested = {cell.score for cell in results.cells if cell.section == section and cell.holm is not None}
        assert 1 <= len(tested) <= 8
    assert results.headline == ("rouge-l-f", "bleu-4", "labels-14-micro", "labels-14-macro", "state-f1")


def stamps(out):
    """Return when each selections file was written, by its inode, which a new file changes."""
    return {path.name: path.stat().st_ino for path in (out / "selections").iterdir()}


def test_a_second_run_makes_what_is_new(folder, tmp_path):
    """Another selector is selected with, those that are there stay; so do results without a change."""
    compare(folder, tmp_path, "first", "longest")
    before, results = stamps(tmp_path), (tmp_path / "results.json").stat().st_ino
    compare(folder, tmp_path, "first", "longest")
    assert (stamps(tmp_path), (tmp_path / "results.json").stat().st_ino) == (before, results)
    compare(folder, tmp_path, "first", "longest", "shortest")
    after = stamps(tmp_path)
    assert {name: after[name] for name in before} == before
    assert set(read_results(tmp_path / "results.json").methods) == {"first", "longest", "shortest"}


def test_files_of_older_results_go(folder, tmp_path):
    """Figures in a form that is not asked for now, and tables of scores that are gone; nobody else's file."""
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    scores = [
        {"id": query["id"], "draft": draft, "name": "green", "value": draft, "direction": "higher"}
        for query in queries
        for draft in range(len(query["candidates"]))
    ]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(score) + "\n" for score in scores))
    out, options = tmp_path / "out", (*QUICK, "--headline", "rouge-l-f")
    outside = (
        "--scores",
        str(tmp_path / "scores.jsonl"),
        "--headline",
        "rouge-l-f,green",
        "--figures",
        "pdf",
    )
    compare(folder, out, "first", "longest", options=(*options, *outside))
    before = {path.name for path in out.rglob("*")}
    assert {"gains-findings.pdf", "headline-whole-report.tex"} <= before
    assert all(OWN_NAME.fullmatch(path.name) for path in (*out.glob("tables/*"), *out.glob("figures/*")))
    (out / "tables/mine.csv").write_text("mine")
    compare(folder, out, "first", "longest", options=options)
    gone = {name for name in before if "whole-report" in name or name.endswith(".pdf")}
    assert {path.name for path in out.rglob("*")} == before - gone | {
        "mine.csv",
        "gains-findings.svg",
        "gains-impressions.svg",
    }


def test_selections_of_another_bank_or_other_queries_are_made_anew(folder, tmp_path):
    """What was made from other inputs, or changed by hand, is not taken for the answer."""
    out, other = tmp_path / "out", tmp_path / "other"
    other.mkdir()
    compare(folder, out, "paper")
    before = (out / "selections/paper.jsonl").read_bytes()
    (out / "selections/paper.jsonl").write_bytes(before.splitlines()[0])
    compare(folder, out, "paper")
    assert (out / "selections/paper.jsonl").read_bytes() == before
    for name in ("train.jsonl", "queries.jsonl"):
        (other / name).write_bytes(b"".join((folder / name).read_bytes().splitlines(keepends=True)[:10]))
    (other / "bank.tabon").write_bytes((folder / "bank.tabon").read_bytes())
    compare(other, out, "paper")
    assert len((out / "selections/paper.jsonl").read_bytes().splitlines()) == 10
    fewer = (out / "selections/paper.jsonl").read_bytes()
    compare(other, out, "paper", bank="train.jsonl", options=(*QUICK, *HEADLINE, "--encoder", "hashing"))
    assert (out / "bank.tabon").exists()
    assert (out / "selections/paper.jsonl").read_bytes() != fewer


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        (["fused", "fused"], "named twice"),
        (["random"], "always in the table"),
        (["fuesd"], "Did you mean 'fused'"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(folder, tmp_path, selectors, message):
    """The way out is in the message and the status is 1."""
    named = [part for selector in selectors for part in ("--selector", selector)]
    answer = CliRunner().invoke(
        main,
        ["compare", str(folder / "queries.jsonl"), "--bank", str(folder / "bank.tabon"), "--out",
         str(tmp_path / "out"), *named, *QUICK],
    )  # fmt: skip
    assert answer.exit_code == 1, answer.output
    assert message in answer.output
