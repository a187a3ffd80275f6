"""`tabon evaluate` and `tabon table` as a user meets them."""

import json

import pytest
from click.testing import CliRunner

from tabon._internal import extras
from tabon.cli import main
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions

SETTINGS = SimulationSettings(patients=250, num_candidates=3)
QUICK = ["--resamples", "50", "--no-measurements"]


def run(*arguments):
    """Run the command."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with queries and the selections of two methods."""
    folder = tmp_path_factory.mktemp("evaluate")
    for name, records in (
        ("train.jsonl", simulate_transitions(SETTINGS, "train")),
        ("queries.jsonl", simulate_queries(SETTINGS)),
    ):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    bank = folder / "bank.tabon"
    assert run("bank", "build", folder / "train.jsonl", "--out", bank, "--encoder", "hashing").exit_code == 0
    for distance in ("novelty", "mean-shift"):
        out = folder / f"{distance}.jsonl"
        done = run("select", folder / "queries.jsonl", "--bank", bank, "--distance", distance, "--out", out)
        assert done.exit_code == 0
    return folder


@pytest.fixture(scope="module")
def results(folder):
    """Evaluate both methods."""
    out = folder / "results.json"
    answer = run(
        "evaluate", folder / "queries.jsonl", "--selections", folder / "novelty.jsonl",
        "--selections", f"moved={folder / 'mean-shift.jsonl'}", "--metrics", "rouge,labels,chexbert",
        "--out", out, *QUICK,
    )  # fmt: skip
    assert answer.exit_code == 0, answer.output
    return answer, out


def test_a_run_prints_the_table_and_names_what_is_missing(results):
    """The statistics of the shown score stand on standard output, the missing metric on standard error."""
    answer, _ = results
    assert "Novelty / min" in answer.stdout
    assert "moved" in answer.stdout
    assert "chexbert is not measured" in answer.stderr
    assert "chexbert.pth" in answer.stderr


def test_tables_come_in_four_forms_from_the_stored_results(results):
    """`tabon table` needs the results file and nothing else."""
    _, out = results
    for form, mark in (
        ("markdown", "| Method"),
        ("latex", r"\toprule"),
        ("csv", "Method,"),
        ("html", "<table"),
    ):
        answer = run("table", out, "--format", form, "--only", "avg-findings")
        assert answer.exit_code == 0, answer.output
        assert mark in answer.stdout


def test_everything_is_written_to_a_folder(results, tmp_path):
    """`--out` writes tables, figures and a page."""
    _, out = results
    assert run("table", out, "--out", tmp_path).exit_code == 0
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(list((tmp_path / "tables").glob("*.tex"))) >= 2
    assert list((tmp_path / "figures").glob("*.svg"))


def test_figures_come_in_the_forms_that_are_named(results, tmp_path):
    """The same figures as PDF and PNG, and none as SVG; the page has them all the same."""
    _, out = results
    assert run("table", out, "--out", tmp_path / "svg").exit_code == 0
    answer = run("table", out, "--out", tmp_path / "both", "--figures", "pdf, png")
    assert answer.exit_code == 0, answer.output
    names = {path.stem for path in (tmp_path / "svg/figures").iterdir()}
    found = [path.name for path in (tmp_path / "both/figures").iterdir()]
    assert sorted(found) == sorted(f"{name}.{form}" for name in names for form in ("pdf", "png"))
    pages = [(tmp_path / folder / "report.html").read_bytes() for folder in ("svg", "both")]
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--out", "made", "--figures", "pfd"], 1, "unknown figure form 'pfd'. Did you mean 'pdf'"),
        (["--figures", "pdf"], 2, "--figures writes files; name a folder with --out"),
    ],
)
def test_figures_that_cannot_be_written_are_refused(results, tmp_path, monkeypatch, options, status, message):
    """One sentence, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    answer = run("table", results[1], *options)
    assert (answer.exit_code, list(tmp_path.iterdir())) == (status, [])
    assert message in answer.output


def test_without_matplotlib_named_forms_are_refused(results, tmp_path, monkeypatch):
    """The page can do without figures; somebody who asks for PDF cannot."""
    _, out = results

    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="matplotlib")

    monkeypatch.setattr(extras, "import_module", missing)
    answer = run("table", out, "--out", tmp_path / "named", "--figures", "pdf")
    assert answer.exit_code == 1
    assert "pip install 'tabon[plots]'" in answer.output
    assert not (tmp_path / "named").exists()
    assert run("table", out, "--out", tmp_path / "plain").exit_code == 0
    assert not (tmp_path / "plain/figures").exists()


def test_results_of_two_signatures_are_refused(results, tmp_path):
    """Tables do not mix the same method made in two ways."""
    _, out = results
    record = json.loads(out.read_text(encoding="utf-8"))
    record["scores"] = {name: f"{text}|other" for name, text in record["scores"].items()}
    (tmp_path / "other.json").write_text(json.dumps(record), encoding="utf-8")
    answer = run("table", out, tmp_path / "other.json")
    assert answer.exit_code == 1
    assert "signature" in answer.output


def test_a_second_evaluation_measures_nothing_anew(folder, tmp_path):
    """Statistics are kept between runs; the results are the same bytes."""
    store = tmp_path / "store.sqlite"
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for out in files:
        answer = run(
            "evaluate", folder / "queries.jsonl", "--selections", folder / "novelty.jsonl",
            "--metrics", "rouge", "--out", out, "--resamples", "50", "--measurements", store,
        )  # fmt: skip
        assert answer.exit_code == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    assert store.stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metrics", "rogue"], "Did you mean 'rouge'"),
        (["--selections", "nothing.jsonl"], "cannot be read"),
        (["--metric-files", "radgraph"], "METRIC=FOLDER"),
        (["--random-seeds", "one"], "whole numbers"),
        (["--resamples", "0"], "at least 1"),
        (["--metrics", ""], "names no metric"),
        (["--metrics", "rouge", "--show", "nope"], "unknown score"),
        (["--metrics", "rouge", "--headline", "nope"], "unknown score"),
        (["--metrics", "rouge", "--metric-files", "bleu=x"], "not measured"),
        (["--metrics", "rouge,rouge"], "is there twice"),
        (["--metrics", "rouge,chexbert", "--show", "rouge-l"], "unknown score 'rouge-l'"),
        (["--metrics", "rouge,chexbert", "--headline", "rouge-l"], "unknown score 'rouge-l'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(folder, tmp_path, arguments, message):
    """The way out is in the message, the status is 1, and nothing is written."""
    out = tmp_path / "r.json"
    answer = run("evaluate", folder / "queries.jsonl", "--out", out, *arguments, "--no-measurements")
    assert answer.exit_code == 1, answer.output
    assert message in answer.output
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "heading"),
    [
        (["--metrics", "temporal"], "Temporal F1"),
        (["--metrics", "rouge,chexbert", "--show", "chexbert-14-micro"], "ROUGE-L"),
        (["--metrics", "rouge,labels", "--headline", "labels-5-micro"], "Labels-5 micro F1"),
    ],
)
def test_a_table_is_always_printed(folder, tmp_path, options, heading):
    """Without the usual score, or one that cannot be measured, it is of the first headline score."""
    answer = run(
        "evaluate", folder / "queries.jsonl", "--selections", folder / "novelty.jsonl", *options, "--out",
        tmp_path / "r.json", *QUICK,
    )  # fmt: skip
    assert answer.exit_code == 0, answer.output
    assert f"**{heading} on Findings**" in answer.stdout


def test_tables_without_notes_and_as_text(results):
    """`--no-notes` leaves the notes out, `--format text` aligns; `--all` adds the other tables."""
    _, out = results
    whole, bare = (run("table", out, *options).stdout for options in ((), ("--no-notes",)))
    assert "\n- n = " in whole
    assert "\n- " not in bare
    assert "|" not in run("table", out, "--format", "text", "--no-notes").stdout
    assert "on Findings" not in whole.replace("each other on Findings", "")
    assert "**ROUGE-L on Findings**" in run("table", out, "--all").stdout


def test_a_table_that_is_not_there_names_those_that_are(results):
    """`--only` with a wrong word lists the labels."""
    answer = run("table", results[1], "--only", "nonsense")
    assert answer.exit_code == 1
    assert "tab:avg-findings" in answer.output


def test_groups_a_margin_a_plan_and_curves_are_printed_and_kept(folder):
    """One command says for whom, who is not worse, how many patients it takes, and keeps the curves."""
    out = folder / "groups.json"
    picks = [f"--selections={folder / name}.jsonl" for name in ("novelty", "mean-shift")]
    asked = ["--metrics", "rouge", "--by", "prior", "--margin", "0.1", "--plan", "--curves", "rouge-l-f"]
    done = run("evaluate", folder / "queries.jsonl", *picks, *asked, *QUICK, "--out", out)
    assert done.exit_code == 0, done.output
    for text in ("interaction p", "abnormal", "by 10 points of the ROUGE-L gap", "20 points"):
        assert text in done.stdout
    kept = json.loads(out.read_text())
    assert {row["group"] for row in kept["subgroups"]} == {"normal", "abnormal"}
    assert {curve["name"] for curve in kept["facts"]["curves"]} == {"K-curve", "over-optimisation"}
    page = run("table", out, "--out", folder / "tables")
    assert page.exit_code == 0, page.output
    assert "Groups of studies" in (folder / "tables/report.html").read_text()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--by", "colour"], "--by colour: the studies have 0 values of it"),
        (["--margin", "5"], "the margin is 5.0"),
    ],
)
def test_groups_and_margins_that_cannot_be_are_refused(folder, option, message):
    """One sentence, exit 1, nothing written."""
    out = folder / "refused.json"
    done = run("evaluate", folder / "queries.jsonl", "--metrics", "rouge", *option, *QUICK, "--out", out)
    assert (done.exit_code, out.exists()) == (1, False)
    assert message in done.stderr
