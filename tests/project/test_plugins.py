"""Packages of others: found by their entry points, never in the place of a built-in name."""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tabon._internal import registry
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.errors import BadInputError, UnknownNameError
from tabon.metrics import load_metric

ROOT = Path(__file__).parents[2]
SETTINGS = SimulationSettings(patients=100, num_candidates=3)


def python(*arguments, folder, **environment):
    """Run Python in a folder."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tabon(tmp_path_factory):
    """Install the example offline into a folder; return that folder, and a function that runs tabon there."""
    pytest.importorskip("hatchling", reason="the example is built with hatchling: pip install hatchling")
    folder = tmp_path_factory.mktemp("plugin")
    python(
        "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
        "--target", folder / "site", ROOT / "examples/plugin", folder=folder,
    )  # fmt: skip
    for name, records in (
        ("train.jsonl", simulate_transitions(SETTINGS, "train")),
        ("queries.jsonl", simulate_queries(SETTINGS)),
    ):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))

    def run(command):
        program = "from tabon.cli import main; main()"
        return python("-c", program, *command.split(), folder=folder, PYTHONPATH=str(folder / "site"))

    run(
        "compare queries.jsonl --bank train.jsonl --encoder letters --selector middle --selector paper "
        "--selector consensus:length-near --metrics rouge,length --headline length-near "
        "--resamples 20 --out out"
    )
    return folder, run


def measured(path, method):
    """Return the numbers that a method has by the example's score."""
    record = json.loads(path.read_text())
    assert record["scores"]["length-near"] == "length|words:split|version:1"
    return [
        cell["value"]
        for cell in record["cells"]
        if (cell["score"], cell["method"]) == ("length-near", method) and cell["value"] is not None
    ]


def test_an_installed_package_gives_a_metric_a_selector_and_an_encoder(tabon):
    """Its three names work in `compare`; a draft like the others by its score is one of `consensus`."""
    out = tabon[0] / "out"
    signatures = json.loads((out / "results.json").read_text())["methods"]
    assert signatures["middle"].startswith("selector:middle|")
    assert signatures["consensus:length-near"].startswith(
        "selector:consensus:length-near|metric:length;words:"
    )
    assert all(measured(out / "results.json", method) for method in signatures)


def test_scores_of_a_package_have_a_risk_and_controls(tabon):
    """`risk` and `controls` find the metric by its score's name."""
    folder, run = tabon
    assert "| middle |" in run(
        "risk queries.jsonl --selections out/selections/middle.jsonl --score length-near"
    )
    run(
        "controls queries.jsonl --bank out/bank.tabon --encoder letters --selector middle --condition length "
        "--score length-near --resamples 20 --out controls.json"
    )
    assert "length-near" in json.loads((folder / "controls.json").read_text())["scores"]


def test_an_experiment_takes_names_of_packages(tabon):
    """`reproduce` checks and uses a metric, a selector and an encoder of the example."""
    folder, run = tabon
    (folder / "experiment.toml").write_text(
        """
        [cohort]
        patients = 60
        [[runs]]
        name = "one"
        model = "simulated"
        prompt = "p3"
        [drafts]
        samples = 3
        [selection]
        encoder = "letters"
        distances = ["novelty"]
        aggregates = ["min"]
        selectors = ["middle"]
        [evaluation]
        metrics = ["length"]
        resamples = 20
        [report]
        columns = { Length = "length-near" }
        """
    )
    run("reproduce . --dry-run --out reproduced")
    run("reproduce . --out reproduced")
    assert measured(folder / "reproduced/results.json", "middle")


def offers(monkeypatch, **names):
    """Let some package offer names in every group."""
    found = [EntryPoint(name=name, value=value, group="any") for name, value in names.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: found if group else [])


def test_a_built_in_name_cannot_be_replaced(monkeypatch):
    """A package that offers `rouge` or `hashing` is not even imported."""
    offers(monkeypatch, rouge="nowhere:nothing", hashing="nowhere:nothing")
    assert load_metric("rouge").name == "rouge"
    assert load_encoder("hashing").fingerprint.dimension == 256


@pytest.mark.parametrize("value", ["nowhere:nothing", "json:nothing", "json:loads", "math:pi"])
def test_a_broken_package_is_one_sentence(monkeypatch, value):
    """A module that is not there, a name it lacks, a maker that fails, or no maker at all."""
    offers(monkeypatch, mine=value)
    with pytest.raises(BadInputError, match=r"the metric 'mine' of the package .* cannot be loaded"):
        load_metric("mine")
    with pytest.raises(BadInputError, match=r"the encoder 'mine' of the package .* cannot be loaded"):
        load_encoder("mine")


def test_an_unknown_name_is_refused_with_those_of_packages(monkeypatch):
    """The known names are tabon's and those that packages offer."""
    offers(monkeypatch, lengths="nowhere:nothing")
    with pytest.raises(UnknownNameError, match="Did you mean 'lengths'"):
        load_metric("lenghts")
