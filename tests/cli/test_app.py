"""`tabon --help`: every command is listed and found, and none is imported for it."""

import json
import subprocess
import sys

import pytest

from commands import tabon
from tabon.cli import main
from tabon.cli.app import COMMANDS

LOADED = """
import json, sys
from click.testing import CliRunner
from tabon.cli import main
assert CliRunner().invoke(main, ["--help"]).exit_code == 0
print(json.dumps([name for name in sys.modules if name.startswith("tabon.cli.") or name == "scipy"]))
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_listed_command_is_found_under_its_name(name):
    """The table leads to a command that calls itself the same."""
    assert main.get_command(None, name).name == name
    assert f"{name} " in tabon("--help").stdout
    assert tabon(name, "--help").exit_code == 0


def test_help_imports_no_command():
    """What `tabon --help` costs does not grow with the commands."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["tabon.cli.app"]


def test_a_command_that_is_not_there_is_refused():
    """The exit status is that of wrong usage."""
    result = tabon("bnak")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "No such command 'bnak'" in result.stderr
