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


def test_an_installed_package_gives_a_metric_a_selector_and_an_encoder(tmp_path):
    """The example is installed offline into a folder; its three names work on the command line."""
    pytest.importorskip("hatchling", reason="the example is built with hatchling: pip install hatchling")
    place = tmp_path / "site"
    python(
        "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
        "--target", place, ROOT / "examples/plugin", folder=tmp_path,
    )  # fmt: skip
    for name, records in (
        ("train.jsonl", simulate_transitions(SETTINGS, "train")),
        ("queries.jsonl", simulate_queries(SETTINGS)),
    ):
        (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    program = "from tabon.cli import main; main()"
    shown = python(
        "-c", program, "compare", "queries.jsonl", "--bank", "train.jsonl", "--encoder", "letters",
        "--selector", "middle", "--selector", "paper", "--metrics", "rouge,length", "--resamples", "20",
        "--headline", "length-near", "--out", "out", folder=tmp_path, PYTHONPATH=str(place),
    )  # fmt: skip
    assert "length-near" in shown
    record = json.loads((tmp_path / "out/results.json").read_text())
    assert record["scores"]["length-near"] == "length|words:split|version:1"
    assert record["methods"]["middle"].startswith("selector:middle|")
    assert [cell for cell in record["cells"] if cell["score"] == "length-near" and cell["value"] is not None]


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
