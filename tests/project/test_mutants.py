"""The mutation test itself: what it changes, that it runs, and that what it excuses is still there."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "mutants.py"


@pytest.fixture(scope="module")
def tool():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("mutants", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


def test_each_mutant_is_another_program(tool):
    """A mutant compiles, and is not the source."""
    for part in tool.PARTS:
        original = tool.source_path(ROOT / "src", part).read_text()
        assert len(tool.mutants(part)) > 20
        assert original not in [mutant.source for mutant in tool.mutants(part)]
        program = ast.dump(ast.parse(original))
        assert program not in [ast.dump(ast.parse(mutant.source)) for mutant in tool.sample(part, 20, 0)]


def test_each_excused_mutant_is_still_made(tool):
    """An entry whose line has changed is out of date: look again whether a test can tell."""
    made = {
        (mutant.part, mutant.line, mutant.changed) for part in tool.PARTS for mutant in tool.mutants(part)
    }
    named = [(entry["part"], entry["line"], entry["changed"]) for entry in tool.equivalents()]
    assert [entry for entry in named if entry not in made] == []
    assert len(set(named)) == len(named)
    assert all(entry["reason"] for entry in tool.equivalents())


def test_a_sample_is_drawn_from_its_seed(tool):
    """The same seed draws the same mutants, another seed others."""
    assert (
        tool.sample("method.transport", 9, 1)
        == tool.sample("method.transport", 9, 1)
        != tool.sample("method.transport", 9, 2)
    )
    assert tool.sample("method.transport", None, 1) == tool.mutants("method.transport")


def test_the_command_tries_mutants_and_leaves_the_source_alone(tool):
    """Two mutants of one part: a row of the table, and not a byte of the tree is changed."""
    path = tool.source_path(ROOT / "src", "method.selection")
    before = path.read_bytes()
    command = [sys.executable, TOOL, "--module", "method.selection", "--sample", "2", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "| method.selection | 2 | 2 | 0 | 0 | 100% |" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
    assert path.read_bytes() == before
