"""The benchmarks run and agree with their peers; speed itself is never a test."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / "benchmarks" / "run.py"


@pytest.mark.heavy
def test_every_benchmark_runs_small():
    """`--quick` checks that ours and the peer give the same answers, and prints a table."""
    done = subprocess.run([sys.executable, RUN, "--quick"], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 27
