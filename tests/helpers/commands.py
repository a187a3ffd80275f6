"""Run tabon's commands in this process, and look at how they refuse."""

import os
import shlex
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import NamedTuple

import pytest
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


class Finished(NamedTuple):
    """What a command printed and how it ended."""

    exit_code: int
    stdout: str
    stderr: str


def finished(command):
    """Run a command line in this process, in a form that another process can be handed."""
    result = CliRunner().invoke(main, shlex.split(command))
    return Finished(result.exit_code, result.stdout, result.stderr)


@contextmanager
def one_arithmetic(folder) -> Iterator[ProcessPoolExecutor]:
    """Yield a process in a folder whose sums are added up alike on every x86-64 processor.

    OpenBLAS adds in another order on another processor. Texts that are equally near to a third then
    change places under the `hashing` encoder, whose rows are counts of letters.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_CORETYPE", "Haswell")
        with ProcessPoolExecutor(1, get_context("spawn"), os.chdir, (folder,)) as process:
            yield process


def bank_file(folder, transitions):
    """Write a bank of some transition records with the `hashing` encoder, and return its path."""
    path = folder / "bank.tabon"
    TransitionBank.build(map(transition_from_record, transitions), encoder="hashing").save(path)
    return path
