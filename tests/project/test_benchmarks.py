"""The benchmarks run and agree with their peers; speed itself is never a test."""

import subprocess
import sys
from pathlib import Path

import pytest

from browser import CHROMIUM
from tabon.encoders.protocol import Placement, devices_of
from tabon.errors import EncoderError
from tiny_mpnet_folder import SENTENCES, tiny_mpnet

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RUN = BENCHMARKS / "run.py"


@pytest.mark.heavy
def test_every_benchmark_runs_small():
    """`--quick` checks that ours and the peer give the same answers, and prints a table."""
    done = subprocess.run([sys.executable, RUN, "--quick"], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 65 + has_bfloat16()


def has_bfloat16():
    """Say whether this processor computes in bfloat16: one line more is measured then."""
    try:
        return devices_of(Placement(precision="bfloat16")) == ("cpu",)
    except EncoderError:
        return False


def test_an_unknown_benchmark_is_met_with_the_known_ones():
    """One sentence, and nothing is run."""
    done = subprocess.run([sys.executable, RUN, "encodng"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no benchmark is called encodng; use one of transitions" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_gpu_benchmark_runs_small_and_agrees(tmp_path):
    """Without a GPU too: its search gives the processor's distances and picks, which it asserts itself."""
    (tmp_path / "sentences.txt").write_text("\n".join(SENTENCES))
    model = tiny_mpnet(tmp_path / "model")
    command = [sys.executable, BENCHMARKS / "gpu.py", "--quick", "--model", model]
    command += ["--sentences", tmp_path / "sentences.txt"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "8 methods" in done.stdout
    assert "200 distinct sentences" in done.stdout


@pytest.mark.heavy
def test_the_page_is_measured_by_the_browsers_own_tracing():
    """`explorer_page.py --quick` opens a page from a file and served, scrolls it, and prints four lines."""
    pytest.importorskip("playwright", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; install Debian's chromium")
    command = [sys.executable, BENCHMARKS / "explorer_page.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("| 40 studies")]
    assert len(lines) == 4
    assert all("nan" not in line for line in lines)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("script", "printed", "rows"),
    [("growth", "search of 64 queries", 20), ("paper_pipeline", "`tabon select --selector fused`", 16)],
)
def test_growth_is_measured_and_drawn(script, printed, rows, tmp_path):
    """`--quick` writes the picture and the numbers, and prints the slopes."""
    command = [sys.executable, BENCHMARKS / f"{script}.py", "--quick", "--out", tmp_path / "growth.png"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    assert len((tmp_path / "growth.csv").read_text().splitlines()) > rows
    assert printed in done.stdout


@pytest.mark.heavy
def test_the_benchmark_of_intervals_prints_both_tables():
    """Four kinds for five numbers of patients; two figures for two numbers of drafts and of patients."""
    command = [sys.executable, BENCHMARKS / "intervals.py", "--repetitions", "250"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second = done.stdout.split("\n\n")
    assert [table.count("\n| ") for table in (first, second.strip())] == [4 * 5, 2 * 2 * 2]
