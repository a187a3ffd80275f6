"""Run tabon's commands in this process, and look at how they refuse."""

from click.testing import CliRunner

from tabon import TransitionBank
from tabon.cli import main
from tabon.text.records import transition_from_record


def tabon(*words, stdin=None):
    """Run a command; it ends by itself, never with a traceback."""
    result = CliRunner().invoke(main, list(map(str, words)), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def assert_refused(result, words=""):
    """Check for exit status 1, one sentence on standard error and nothing on standard output."""
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


def bank_file(folder, transitions):
    """Write a bank of some transition records with the `hashing` encoder, and return its path."""
    path = folder / "bank.tabon"
    TransitionBank.build(map(transition_from_record, transitions), encoder="hashing").save(path)
    return path
