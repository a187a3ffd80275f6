"""kill -9 against a provider that bills: nothing acknowledged is lost, little is bought twice."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from budgets import budget, seeded
from provider_server import KEY
from tabon.data.cohort.build import write_simulated
from tabon.data.simulate import SimulationSettings
from tabon.generation.journal import read_journal
from waiting import LIMIT, until

SERVER = Path(__file__).parents[1] / "helpers" / "provider_server.py"
CONCURRENCY = 4
KILLS = budget(20, 200)

pytest.importorskip("openai", reason="the openai client is not installed")


@pytest.fixture
def server(tmp_path):
    """A provider on loopback with a billing counter, in its own process."""
    billing = tmp_path / "billing"
    command = [sys.executable, SERVER, "--port", "0", "--latency", "0.03", "--billing", billing, "--no-image"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        port = int(re.search(r"\d+", process.stdout.readline()).group())
        yield f"http://127.0.0.1:{port}/openai/v1", billing
        process.kill()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    """The key that the server asks for, where a user would put it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def cohort(tmp_path):
    """A small simulated cohort."""
    write_simulated(tmp_path / "cohort", SimulationSettings(patients=40, splits=(0.5, 0.0, 0.5)))
    return tmp_path / "cohort"


def arguments(cohort, url, out, samples):
    """The command line of a run against the server."""
    return [
        "generate", cohort, "--model", "openai:m", "--base-url", url, "--prompt", "P1,P3",
        "-n", str(samples), "--concurrency", str(CONCURRENCY), "--out", out,
    ]  # fmt: skip


def generate(cohort, url, out, *, samples=5, **options):
    """Start `tabon generate` as a user would."""
    command = [Path(sys.executable).parent / "tabon", *arguments(cohort, url, out, samples)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def billed(billing):
    """How many calls the provider charged for."""
    return lines(billing)  # a line a call


RUNS = """
    import os, sys
    import openai  # imported once; each run below is a process of its own
    from tabon.cli import main
    for line in sys.stdin:
        run = os.fork()
        if run == 0:
            sys.stdout = open(os.devnull, "w")
            main(sys.argv[1:])
        print(run, flush=True)
        print(os.waitpid(run, 0)[1], flush=True)
"""


def lines(path):
    """How many whole lines a file has."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_kills_lose_nothing_and_buy_little_twice(server, cohort, tmp_path):
    """200 kills: every acknowledged draft is there after each; billed <= distinct + in flight x kills.

    Each kill comes after so many more calls were billed, or drafts written, or at once.
    """
    url, billing = server
    journal, rng, kept, awaited = tmp_path / "drafts.jsonl", seeded("generate kills"), 0, 0
    program = [sys.executable, "-c", textwrap.dedent(RUNS), *map(str, arguments(cohort, url, journal, 4000))]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as runs:
        for kill in range(1, KILLS + 1):
            print(file=runs.stdin, flush=True)
            run = int(runs.stdout.readline())
            event, more = rng.choice([billing, journal]), rng.randrange(9)
            awaited += more if event is journal else 0
            goal = lines(event) + more
            until(lambda: lines(event) >= goal, f"{more} more lines of {event.name}")  # noqa: B023
            before = len(list(read_journal(journal))) if journal.exists() else 0
            os.kill(run, signal.SIGKILL)
            assert int(runs.stdout.readline()) == signal.SIGKILL
            distinct = len({record["key"] for record in read_journal(journal)}) if journal.exists() else 0
            assert distinct >= before >= kept
            assert billed(billing) <= distinct + CONCURRENCY * kill
            kept = distinct
        runs.stdin.close()
    assert kept >= awaited > 0  # the runs did buy


def test_ctrl_c_keeps_all_that_was_billed(server, cohort, tmp_path):
    """SIGINT: what is in flight is waited for and kept; the exit status is 1 with the way on."""
    url, billing = server
    journal = tmp_path / "drafts.jsonl"
    with generate(cohort, url, journal, samples=400) as process:
        until(lambda: lines(journal), "a draft in the journal")
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert "run again to go on" in errors
    assert json.loads(out)["kept"] == len(list(read_journal(journal))) == billed(billing)


def test_resuming_a_finished_run_buys_nothing(server, cohort, tmp_path):
    """The second run of the same command makes no call."""
    url, billing = server
    for _ in range(2):
        with generate(cohort, url, tmp_path / "drafts.jsonl", samples=2) as process:
            out, errors = process.communicate(timeout=LIMIT)
            assert process.returncode == 0, errors
    assert json.loads(out)["kept"] == 0
    assert billed(billing) == len(list(read_journal(tmp_path / "drafts.jsonl"))) > 0
