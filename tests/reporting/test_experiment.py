"""An experiment runs once, goes on where it was, and its tables come from its results alone."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from commands import tabon
from draft_records import KEY as DRAFT_KEY
from experiment_text import EXPERIMENT
from tabon.data.cohort.build import write_simulated
from tabon.data.simulate import SimulationSettings, simulate_transitions
from tabon.errors import BadInputError
from tabon.evaluation.results import read_results
from tabon.generation.journal import draft_line
from tabon.generation.protocol import Answer
from tabon.reporting.experiment import Dependencies, read_experiment, reproduce, simulated_experiment
from tabon.reporting.experiment.files import write_report
from tabon.reporting.experiment.runner import JOURNAL, Steps
from tabon.reporting.tables import all_tables
from waiting import until

ROOT = Path(__file__).parents[2]


WRITER = """
import json, pathlib, sys
for line in sys.stdin:
    asked = json.loads(line)
    with pathlib.Path(__file__).with_name("asked").open("a") as file:
        file.write("x ")
    word = ["clear", "hazy", "opaque"][asked["seed"] % 3]
    text = f"FINDINGS: The lungs are {word}. Heart size {asked['seed'] % 7}. IMPRESSION: Lungs {word}."
    print(json.dumps({"id": asked["id"], "text": text, "finish_reason": "stop"}), flush=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return an experiment's folder."""
    folder = tmp_path_factory.mktemp("experiment")
    (folder / "experiment.toml").write_text(EXPERIMENT, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(folder):
    """Run it once."""
    told = []
    results = reproduce(read_experiment(folder), folder / "output", Dependencies(on_progress=told.append))
    write_report(results, folder / "output", every=True)
    steps = [re.match(r"step (\d+) of (\d+): ", line) for line in told if line.startswith("step ")]
    assert [int(step[1]) for step in steps] == list(range(1, int(steps[0][2]) + 1))
    return results


def test_the_grid_is_whole(made):
    """Every run, section, method and score has its cell, and so has the mean."""
    methods = [
        f"{d}/{a}" for d in ("mean-shift", "novelty", "dir-hausdorff", "cost-ot") for a in ("min", "knn")
    ]
    methods += ["fused", "consensus:rouge-l-f"]
    assert list(made.methods) == methods
    for run in ("Hasty P1", "Careful P3", "mean"):
        for section in ("findings", "impression"):
            for method in methods:
                assert made.cell(run=run, section=section, method=method, score="rouge-l-f").value is not None


def test_what_cannot_be_measured_is_named_and_dashed(made, folder):
    """A metric without its weights is a dash with the reason, not 0."""
    assert "chexbert.pth" in made.missing["chexbert"]
    assert "chexbert-14-micro" not in made.scores
    table = (folder / "output" / "tables" / "headline-findings.md").read_text(encoding="utf-8")
    assert "– |" in table
    assert "chexbert.pth" in table


def test_curves_and_map_are_there(made):
    """The K-curve, the k-curve and the map of transition space are drawn from the data."""
    names = {(curve["name"], curve["method"]) for curve in made.facts["curves"]}
    assert ("K-curve", "novelty/min") in names
    assert ("k-curve", "novelty/knn") in names
    [shown] = made.facts["maps"]
    assert len(shown["drafts"]) == 3


def test_a_label_is_what_tables_call_the_model(made, folder):
    """`[[runs]] label` stands in the tables; without one the model does."""
    assert [run.model for run in made.runs] == ["The hasty one", "careful"]
    assert "The hasty one" in (folder / "output" / "tables" / "per-run-findings.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.usefixtures("made")
def test_a_changed_label_changes_the_tables(folder, tmp_path):
    """The results are made again, and nothing before them."""
    shutil.copytree(folder, tmp_path / "copy")
    changed = EXPERIMENT.replace("The hasty one", "Another name")
    (tmp_path / "copy" / "experiment.toml").write_text(changed, encoding="utf-8")
    told = []
    dependencies = Dependencies(on_progress=told.append)
    again = reproduce(read_experiment(tmp_path / "copy"), tmp_path / "copy" / "output", dependencies)
    assert again.runs[0].model == "Another name"
    assert [line.rpartition(" ")[2] for line in told if line.startswith("step ")] == ["results.json"]


def test_the_cohort_has_its_table(made, folder):
    """Patients, visits and transitions of each split, as they are in the files; the paper's beside them."""
    training = [json.loads(line) for line in (folder / "output" / "train.jsonl").read_text().splitlines()]
    patients = len({record["patient"] for record in training})
    assert made.facts["cohort"][0] == {
        "split": "train",
        "patients": patients,
        "visits": patients + len(training),
        "transitions": len(training),
    }
    lines = (folder / "output" / "tables" / "cohort.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "Split,Patients,Visits,Transitions"
    assert [line.partition(",")[0] for line in lines[1:4]] == ["train", "valid", "test"]
    tables = {table.label: table for table in all_tables(made, made.facts["report"]["columns"])}
    texts = [cell.text for cell in tables["tab:paper-cohort"].blocks[0].rows[0].cells]
    assert texts[:4] == ["train", "19,492", f"{patients}", f"{patients - 19492:+,}"]


def test_tables_and_figures_name_no_study_and_no_patient(made, folder):
    """They may be passed on: no id of a study, a patient or a transition stands in them."""
    ids = set()
    for path in [*(folder / "output").rglob("queries.jsonl"), folder / "output" / "train.jsonl"]:
        records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        ids |= {text for record in records for text in (record["id"], record["patient"])}
    [shown] = made.facts["maps"]
    assert shown["query"] in ids
    out = folder / "output"
    written = [*(out / "tables").iterdir(), *(out / "figures").iterdir(), out / "report.html"]
    assert "transition-map-0.svg" in {path.name for path in written}
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert not [name for name in ids if name in text], path.name


def test_the_k_curve_at_the_papers_k_is_the_table(made):
    """Picks with k neighbours taken from a larger search are the picks of a search for k."""
    [curve] = [
        curve
        for curve in made.facts["curves"]
        if (curve["name"], curve["method"], curve["section"]) == ("k-curve", "cost-ot/knn", "findings")
    ]
    [point] = [point for point in curve["points"] if point["x"] == 5]
    cell = made.cell(run="mean", section="findings", method="cost-ot/knn", score="rouge-l-f")
    assert point["gap"] == pytest.approx(cell.gap, abs=1e-12)


@pytest.mark.usefixtures("made")
def test_tables_rebuild_byte_for_byte_from_stored_results(folder, tmp_path):
    """From results.json alone, in another place, every file comes out the same."""
    shutil.copy(folder / "output" / "results.json", tmp_path / "results.json")
    files = write_report(read_results(tmp_path / "results.json"), tmp_path, every=True)
    assert len(files) > 20
    for path in files:
        assert path.read_bytes() == (folder / "output" / path.relative_to(tmp_path)).read_bytes(), path


def test_nothing_is_made_twice(made, folder):
    """A second run writes nothing anew and returns the same results."""
    before = {path: path.stat().st_mtime_ns for path in (folder / "output").rglob("*.jsonl")}
    on_progress = []
    assert (
        reproduce(read_experiment(folder), folder / "output", Dependencies(on_progress=on_progress.append))
        == made
    )
    assert on_progress == []
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "output").rglob("*.jsonl")}


@pytest.mark.usefixtures("made")
def test_only_what_is_missing_or_changed_is_made_again(folder, tmp_path):
    """A lost file comes back the same; a changed setting changes what depends on it and nothing else."""
    shutil.copytree(folder, tmp_path / "copy")
    out = tmp_path / "copy" / "output"
    lost = out / "runs" / "hasty-p1" / "novelty-min.jsonl"
    content = lost.read_bytes()
    lost.unlink()
    on_progress = []
    reproduce(read_experiment(tmp_path / "copy"), out, Dependencies(on_progress=on_progress.append))
    assert len(on_progress) == 1
    assert re.fullmatch(r"step \d+ of \d+, \d+ skipped: runs/hasty-p1/novelty-min.jsonl", on_progress[0])
    assert lost.read_bytes() == content
    changed = EXPERIMENT.replace("noise = 0.8", "noise = 0.7")
    (tmp_path / "copy" / "experiment.toml").write_text(changed, encoding="utf-8")
    on_progress.clear()
    reproduce(read_experiment(tmp_path / "copy"), out, Dependencies(on_progress=on_progress.append))
    assert {line for line in on_progress if "careful" in line} == set()
    assert any("hasty" in line for line in on_progress)


@pytest.mark.usefixtures("made")
def test_a_damaged_file_is_made_again(folder, tmp_path):
    """A file whose bytes are not the ones that were made does not count as made."""
    shutil.copytree(folder, tmp_path / "copy")
    out = tmp_path / "copy" / "output"
    hurt = out / "runs" / "careful-p3" / "queries.jsonl"
    content = hurt.read_bytes()
    hurt.write_bytes(content[:-10])
    reproduce(read_experiment(tmp_path / "copy"), out, Dependencies())
    assert hurt.read_bytes() == content


def test_a_killed_run_goes_on_and_ends_the_same(made, tmp_path):
    """Kill -9 after the first step and after the fifth, then the command again: the same results."""
    (tmp_path / "experiment.toml").write_text(EXPERIMENT, encoding="utf-8")
    command = [Path(sys.executable).with_name("tabon"), "reproduce", str(tmp_path), "--no-store"]
    quick = {**os.environ, "POT_BACKEND_DISABLE_PYTORCH": "1"}  # POT would load torch, which is not used
    for steps in (1, 5):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quick)
        until(lambda: steps_in(tmp_path / "output") >= steps, f"{steps} steps are done")  # noqa: B023
        process.kill()
        assert process.wait() == -signal.SIGKILL
    subprocess.run(command, check=True, capture_output=True, env=quick)
    assert read_results(tmp_path / "output" / "results.json") == made


def steps_in(folder):
    """Return how many steps the ledger of a folder holds."""
    ledger = folder / "steps.json"
    return len(json.loads(ledger.read_bytes())) if ledger.exists() else 0


def test_a_step_that_fails_is_not_remembered(tmp_path):
    """A step counts as done only when its file is there."""
    steps = Steps(tmp_path)
    with pytest.raises(RuntimeError):
        steps.make(tmp_path / "x", 1, lambda: (_ for _ in ()).throw(RuntimeError))
    assert Steps(tmp_path).make(tmp_path / "x", 1, lambda: (tmp_path / "x").write_text("made") and None)
    assert not Steps(tmp_path).make(tmp_path / "x", 1, lambda: None)
    assert Steps(tmp_path).make(tmp_path / "x", 2, lambda: None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[selection]", "[selektion]"), "did you mean 'selection'"),
        (("neighbours = 5", "neighbors = 5"), "did you mean 'neighbours'"),
        (
            ("neighbours = 5", 'neighbours = "5"'),
            "neighbours is a string instead of a whole number",
        ),
        (('title = "Two runs"', "title = "), "not TOML"),
        (('prompt = "p1"\n', ""), "no key 'prompt'"),
        (('prompt = "p1"', 'prompt = "P9"'), "simulated drafts have the prompts"),
        (("patients = 100", 'folder = "cohort"'), "unknown kind of model 'hasty'"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path, change, message):
    """A key, a value or a cohort that is not there is one sentence."""
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.replace(*change, 1), encoding="utf-8")
    with pytest.raises(BadInputError, match=message):
        reproduce(read_experiment(tmp_path), tmp_path / "out", Dependencies(write_drafts=lambda *_: None))


def real(text):
    """Return the experiment with a cohort folder and models that are asked."""
    text = text.replace("patients = 100", 'folder = "cohort"').replace('prompt = "p', 'prompt = "P')
    return text.replace('model = "', 'command = "cat"\nmodel = "command:')


def test_a_cohort_that_is_not_there_is_named(tmp_path):
    """The way out is the command that makes it."""
    (tmp_path / "experiment.toml").write_text(real(EXPERIMENT), encoding="utf-8")
    with pytest.raises(BadInputError, match="make the cohort first"):
        reproduce(read_experiment(tmp_path), tmp_path / "out", Dependencies(write_drafts=lambda *_: None))


WRONG = {
    "deltas": ('deltas = ["ROUGE-L"]', 'deltas = ["ROUGE-9"]', "unknown heading of the columns 'ROUGE-9'"),
    "delta kind": ('deltas = ["ROUGE-L"]', "deltas = [1]", r"report.deltas\[0\] is a whole number"),
    "curve": ('curve = "ROUGE-L"', 'curve = "x"', "unknown heading of the columns 'x'"),
    "column": ('"ROUGE-1" = "rouge-1-f"', '"ROUGE-1" = 3', "report.columns.ROUGE-1 is a whole number"),
    "points": ("neighbours = [1, 2, 5]", "neighbours = [0]", "'neighbours' is 0"),
    "metric": ('"chexbert"]', '"chexbertt"]', "unknown metric 'chexbertt'"),
    "metric kind": ('metrics = ["rouge", "chexbert"]', "metrics = [[]]", r"metrics\[0\] is a list"),
    "metric twice": ('"chexbert"]', '"rouge"]', "names one twice"),
    "no metric": ('metrics = ["rouge", "chexbert"]', "metrics = []", "is empty"),
    "models": ("resamples = 50", 'models = {bleu = "x"}', "unknown metric of this experiment 'bleu'"),
    "model kind": ("resamples = 50", "models = {rouge = 1}", "evaluation.models.rouge is a whole number"),
    "resamples": ("resamples = 50", "resamples = 0", "'resamples' is 0"),
    "seeds": ("resamples = 50", "random_seeds = []", "'random_seeds' is empty"),
    "seed kind": ("resamples = 50", 'random_seeds = ["a"]', r"random_seeds\[0\] is a string"),
    "distance": ("neighbours = 5", 'distances = ["novel"]', "unknown distance 'novel'"),
    "aggregate": ("neighbours = 5", 'aggregates = ["max"]', "unknown aggregation 'max'"),
    "zero": ("neighbours = 5", 'zero = "none"', "unknown zero policy 'none'"),
    "neighbours": ("neighbours = 5", "neighbours = 0", "'neighbours' is 0"),
    "selector": ('"consensus:rouge-l-f"', '"consensuss:x"', "unknown selector 'consensuss'"),
    "selector twice": ('"consensus:rouge-l-f"', '"fused"', "names one twice"),
    "samples": ("samples = 3", "samples = 0", "'samples' is 0"),
    "not a number": ("samples = 3", "temperature = nan", "drafts.temperature is no number"),
    "cap": ("samples = 3", "cap = -1", "'cap' is -1"),
    "split": ("patients = 100", 'folder = "cohort"\nsplit = "x"', "unknown split 'x'"),
    "same name": ('"Careful P3"', '"Hasty P1"', "two runs of one name"),
    "no name": ('"Careful P3"', '"/"', "'name' has no letter"),
    "noise": ("noise = 0.3", "noise = 3", "'noise' is 3"),
    "price": ("noise = 0.3", 'price = "dear"', "--price is 'dear'"),
    "command": ("noise = 0.3", 'command = "sh -c \'x"', "open quotation mark"),
    "runs": ("[drafts]", "[drafts.x]", "unknown key x"),
    "title": ('title = "Two runs"', "title = 3", "title is a whole number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_refused_before_any_step(tmp_path, name):
    """What tables or metrics would stumble over at the end is named at the start, and nothing is asked."""
    old, new, message = WRONG[name]
    assert old in EXPERIMENT
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadInputError, match=message):
        read_experiment(tmp_path)


@pytest.mark.parametrize("content", [b"title = '\xff'", b"a = " + b"[" * 9000, b"a = " + b"1" * 9000])
def test_what_is_no_readable_toml_is_refused(tmp_path, content):
    """Other encodings, endless nesting and endless numbers are one sentence."""
    (tmp_path / "experiment.toml").write_bytes(content)
    with pytest.raises(BadInputError, match=r"experiment\.toml is not "):
        read_experiment(tmp_path)


def test_a_method_that_cannot_work_is_refused_before_drafts_are_paid_for(tmp_path):
    """More neighbours than the bank has, or a variant that no selector has, come to light before drafts."""
    write_simulated(tmp_path / "cohort", SimulationSettings(patients=60, splits=(0.7, 0.0, 0.3)))
    text = real(EXPERIMENT).replace("neighbours = 5", "neighbours = 5000")
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    asked = []
    dependencies = Dependencies(write_drafts=lambda *run: asked.append(run))
    with pytest.raises(BadInputError, match="5000 neighbours were asked for"):
        reproduce(read_experiment(tmp_path), tmp_path / "out", dependencies)
    text = real(EXPERIMENT).replace("consensus:rouge-l-f", "consensus:nonsense")
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    with pytest.raises(LookupError, match="nonsense"):
        reproduce(read_experiment(tmp_path), tmp_path / "out", dependencies)
    assert asked == []


def test_a_folder_without_an_experiment_says_so(tmp_path):
    """The way out is in the message."""
    answer = tabon("reproduce", tmp_path)
    assert answer.exit_code == 1
    assert "experiment.toml" in answer.output


def test_the_papers_experiment_and_the_embedded_one_can_be_read():
    """Nine runs each, the paper's seven columns and another reading of RadGraph, four delta tables."""
    paper = read_experiment(ROOT / "experiments" / "paper")
    assert len(paper.runs) == len(simulated_experiment().runs) == 9
    assert list(paper.report.columns) == [
        "BLEU-1",
        "ROUGE-1",
        "ROUGE-L",
        "METEOR",
        "BERTSc",
        "RadGraph",
        "RadGraph, mean of three",
        "CheX-14",
    ]
    assert paper.report.columns["RadGraph"] == "radgraph-bar"
    assert (paper.drafts.samples, paper.selection.encoder) == (5, "all-mpnet-base-v2")
    assert len(paper.report.deltas) == 2  # in each of two sections


def test_a_dry_run_says_what_is_missing_and_writes_nothing(folder, tmp_path):
    """A metric without its weights is missing; what the run takes is said all the same."""
    out = tmp_path / "out"
    answer = tabon("reproduce", folder, "--out", out, "--dry-run")
    assert answer.exit_code == 1
    assert "missing: metric chexbert" in answer.stderr
    assert [line.split()[0] for line in answer.stdout.splitlines()] == [
        "steps",
        "drafts",
        "cost",
        "time",
        "disk",
    ]
    assert not out.exists()


def test_a_dry_run_of_what_is_whole_succeeds(tmp_path):
    """Nothing is missing, so the exit status is 0, and steps are as many as the run has."""
    text = EXPERIMENT.replace(', "chexbert"', "").replace('"CheX-14" = "chexbert-14-micro"', "")
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    answer = tabon("reproduce", tmp_path, "--dry-run")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout.startswith("steps     34: 2 runs")
    visits = sum(1 for _ in simulate_transitions(SimulationSettings(patients=100), "test"))
    assert f"for {visits} studies\n" in answer.stdout
    assert "for 2 studies\n" in tabon("reproduce", tmp_path, "--dry-run", "--limit", 2).stdout


PAID = 'model = "gemini:gemini-2.5-flash-lite"'
KEY = replace(DRAFT_KEY, study="one of before", model="gemini:gemini-2.5-flash-lite", source=None, seed=0)


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("key", "no key for gemini"),
        ("price", "the price of gemini:gemini-2.5-flash-lite is not known"),
        ("permission", "egress policy is 'none'"),
        ("cohort", "cohort/test/transitions.jsonl is not there"),
        ("training", "cohort/train/transitions.jsonl is not there"),
        ("images", "names no image"),
        ("encoder", "encoder: there is no folder 'no/folder' here"),
        ("weights", "metric chexbert"),
        ("cap", "cap: it may cost"),
        ("spent", "beside the $5.00 that the journal has cost, and `cap` is 5"),
        (None, ""),
    ],
)
def test_the_dry_run_finds_each_thing_that_money_depends_on(tmp_path, monkeypatch, fault, named):
    """One thing is taken away, it alone is named, and the exit status is 1; with all there it is 0."""
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    write_simulated(tmp_path / "cohort", SimulationSettings(patients=30, splits=(0.7, 0.0, 0.3)))
    text = EXPERIMENT.replace("patients = 100", 'folder = "cohort"').replace(', "chexbert"', "")
    text = text.replace('"CheX-14" = "chexbert-14-micro"', "").replace('prompt = "p', 'prompt = "P')
    text = re.sub(r'model = "\w+"', PAID + '\nprice = "0.1,0.4"', text)
    if fault == "key":
        monkeypatch.delenv("GEMINI_API_KEY")
        monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    elif fault == "permission":
        facts = tmp_path / "cohort" / "cohort.json"
        facts.write_text(facts.read_text().replace('"egress": "any"', '"egress": "none"'))
    elif fault in ("cohort", "training"):
        (tmp_path / "cohort" / {"cohort": "test", "training": "train"}[fault] / "transitions.jsonl").unlink()
    elif fault == "spent":
        (tmp_path / "output").mkdir()
        paid = draft_line(KEY, Answer(outcome="ok", text="Clear."), cost=5.0, time="2026-01-01T00:00:00Z")
        (tmp_path / "output" / JOURNAL).write_bytes(paid)
    changes = {
        "price": ('price = "0.1,0.4"', ""),
        "images": ("samples = 3", 'samples = 3\nimages = "images"'),
        "encoder": ('encoder = "hashing"', 'encoder = "no/folder"'),
        "weights": ('["rouge"]', '["rouge", "chexbert"]'),
        "cap": ("samples = 3", "samples = 3\ncap = 0.000001"),
        "spent": ("samples = 3", "samples = 3\ncap = 5"),
    }
    text = text.replace(*changes.get(fault, ("", "")))
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    answer = tabon("reproduce", tmp_path, "--dry-run")
    assert answer.exit_code == (0 if fault is None else 1), answer.output
    missing = [line for line in answer.stderr.splitlines() if line.startswith("missing: ")]
    assert len(missing) == (fault is not None), missing
    assert all(named in line for line in missing)
    assert {path.name for path in (tmp_path / "output").glob("*")} <= {JOURNAL}


def test_a_trial_is_small_and_apart(tmp_path):
    """`--limit` judges the first studies of the split, in a folder of its own, without notes if asked."""
    text = EXPERIMENT.replace("patients = 100", 'patients = 100\nsplit = "valid"')
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    answer = tabon("reproduce", tmp_path, "--limit", 4, "--no-store", "--no-notes")
    assert answer.exit_code == 0, answer.output
    assert "signature" not in answer.stdout
    assert "labeller" not in answer.stdout
    results = read_results(tmp_path / "output" / "trial-4" / "results.json")
    assert [run.studies for run in results.runs] == [4, 4]
    run = tmp_path / "output" / "trial-4" / "runs" / "hasty-p1"
    queries = (run / "queries.jsonl").read_text().splitlines()
    visits = simulate_transitions(SimulationSettings(patients=100), "valid")
    assert [json.loads(line)["id"] for line in queries] == [visit["id"] for visit in islice(visits, 4)]


def test_drafts_are_bought_and_joined_where_the_cohort_is_real(tmp_path):
    """With a cohort folder the drafts come through `tabon generate` and `tabon drafts`, and only once."""
    write_simulated(tmp_path / "cohort", SimulationSettings(patients=60, splits=(0.7, 0.0, 0.3)))
    (tmp_path / "writer.py").write_text(WRITER, encoding="utf-8")
    command = f"{sys.executable} {tmp_path / 'writer.py'}"
    text = EXPERIMENT.replace("patients = 100", 'folder = "cohort"')
    for model, prompt in (("hasty", "p1"), ("careful", "p3")):
        asked = f'model = "command:{model}"\ncommand = "{command}"\nprompt = "{prompt.upper()}"'
        text = text.replace(f'model = "{model}"\nprompt = "{prompt}"', asked)
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    for _ in range(2):
        answer = tabon("reproduce", tmp_path, "--no-store")
        assert answer.exit_code == 0, answer.output
    asked = (tmp_path / "asked").read_text(encoding="utf-8").split()
    drafts = (tmp_path / "output" / "drafts.jsonl").read_text(encoding="utf-8").splitlines()
    studies = (tmp_path / "cohort" / "test" / "transitions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(asked) == len(drafts) == 2 * 3 * len(studies)
    results = read_results(tmp_path / "output" / "results.json")
    assert [(run.model, run.prompt) for run in results.runs] == [
        ("The hasty one", "P1"),
        ("command:careful", "P3"),
    ]


def test_results_that_are_not_whole_are_refused(tmp_path):
    """A cut or foreign file is one sentence."""
    for content in ("", "{", json.dumps({"format": "tabon-results/0"}), json.dumps([1])):
        (tmp_path / "r.json").write_text(content, encoding="utf-8")
        with pytest.raises(BadInputError, match="evaluate again"):
            read_results(tmp_path / "r.json")
    with pytest.raises(BadInputError, match="cannot be read"):
        read_results(tmp_path / "none.json")
