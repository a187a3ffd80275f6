"""The notebooks as scripts: those that say so need no more than the light environment holds."""

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import packages  # noqa: E402

NOTEBOOKS = sorted(ROOT.glob("examples/notebooks/*.py"))
CLAIM = "It runs in the light environment"
LIGHT = [path for path in NOTEBOOKS if CLAIM in path.read_text(encoding="utf-8")]
REFUSAL = """
import sys
class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {forbidden!r}:
            raise ModuleNotFoundError(f"{{name}} is not in the light environment", name=name)
sys.meta_path.insert(0, Refusal())
"""


@pytest.fixture
def light(tmp_path):
    """Return a function that runs a script, and what it starts, with the packages of the light lock alone."""
    lines = (ROOT / "locks/light.txt").read_text(encoding="utf-8").splitlines()[1:]
    names = {packages.normal(line.partition("==")[0]) for line in lines} | {"tabon"}
    forbidden = {
        module
        for module, owners in packages_distributions().items()
        if not names & set(map(packages.normal, owners))
    }
    (tmp_path / "sitecustomize.py").write_text(REFUSAL.format(forbidden=forbidden))
    there = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run(*command):
        command = [sys.executable, *command]
        return subprocess.run(command, cwd=tmp_path, env=there, capture_output=True, text=True, check=False)

    return run


def test_most_notebooks_are_light():
    """Both notebooks of a newcomer, the one with drafts and the one with the service, make the claim."""
    assert [path.stem for path in LIGHT] == ["own_drafts", "service"]


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_a_light_notebook_runs_as_a_script(light, path):
    """With nothing but the light environment's packages it runs to its end."""
    done = light(path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["torch", "pandas", "matplotlib", "httpx"])
def test_what_is_not_light_is_refused(light, module):
    """The stand-in for the light environment does without what that one lacks."""
    done = light("-c", f"import {module}")
    assert f"{module} is not in the light environment" in done.stderr
