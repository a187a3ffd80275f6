"""What batching and remembered sentences bring the service under fifty clients; is its memory flat."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from time import sleep

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from service_clients import CLIENTS, Load
from service_server import Running, program
from tabon import TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.text.records import transition_from_record
from timing import Line, faster, share

BATCHED: tuple[str, ...] = ()
ONE_BY_ONE = ("--batch-size", "1", "--cache", "0", "--timeout", "600")
ASKING = Path(__file__).parent / "service_clients.py"
PATIENCE = 600.0  # seconds for a service to start
TABON = "from tabon.cli import main; main()"


@dataclass(frozen=True)
class Size:
    """How large and how long."""

    patients: int  # of the bank's cohort
    asking: int  # patients of the cohort that asks
    warm: int  # queries before anything is measured
    seconds: float


@dataclass(frozen=True)
class Measured:
    """A load, with the service's megabytes at a third of it and at its end."""

    load: Load
    third: float
    end: float


def service_lines(*, quick: bool) -> Iterator[Line]:
    """Time fifty clients of the service, and of one that calls the library once for each request.

    The other is the same program with `--batch-size 1 --cache 0`: one call of the
    selector a request, whose sentences are embedded for that request, but for
    those that the bank has, which the library never embeds again. It is asked
    before and after, over the same HTTP, with the same queries.
    """
    size = Size(150, 150, 20, 2.0) if quick else Size(3000, 6000, 1000, 60.0)
    with TemporaryDirectory() as name:
        folder = Path(name)
        transitions, queries = written(folder, size)
        with served(folder, "batched", BATCHED) as ours, served(folder, "one-by-one", ONE_BY_ONE) as other:
            asked(ours, folder, 0, count=size.warm)
            asked(other, folder, 0, count=CLIENTS)
            before = asked(other, folder, size.warm, seconds=size.seconds / 4)
            found = measured(ours, folder, size)
            after = asked(other, folder, size.warm, seconds=size.seconds / 4)
    errors = found.load.errors + before.errors + after.errors
    if errors:
        raise AssertionError(f"{errors} requests were not answered with 200")
    yield from lines(found, [before, after], f"bank of {transitions}, {queries} queries")


def lines(found: Measured, others: list[Load], what: str) -> Iterator[Line]:
    """Yield throughput, the slowest requests and memory."""
    load = found.load
    rate = sum(one.answered for one in others) / sum(one.seconds for one in others)
    yield faster(
        f"a request of {CLIENTS} HTTP clients for {load.seconds:.0f} s, {what}: {load.rate:.0f}/s, "
        f"0 errors of {load.answered}, p50 {load.p50 * 1000:.0f} ms, p99 {load.p99 * 1000:.0f} ms",
        1 / load.rate,
        1 / rate,
        f"one call of the library a request, {rate:.0f}/s, p50 {others[0].p50 * 1000:.0f} ms",
        "≥ 5",
    )
    yield share("its p99", load.p99, others[0].p99, "p99 of one call a request", "≤ 1")
    yield share("its memory at the end, MB", found.end, found.third, "at a third of the run", "≤ 1.1")


def written(folder: Path, size: Size) -> tuple[int, int]:
    """Write a bank, and the bodies of queries of other patients, no two the same; return how many of each."""
    cohort = SimulationSettings(patients=size.patients)
    training = map(transition_from_record, simulate_transitions(cohort, "train"))
    bank = TransitionBank.build(training, encoder=load_encoder("minilm"))
    bank.save(folder / "bank")
    asking = SimulationSettings(seed=1, patients=size.asking, splits=(0.0, 0.0, 1.0))
    bodies = sorted({json.dumps(query) for query in simulate_queries(asking, "test")})
    np.random.default_rng(0).shuffle(bodies)
    (folder / "bodies").write_text("\n".join(bodies))
    return len(bank), len(bodies)


@contextmanager
def served(folder: Path, name: str, options: tuple[str, ...]) -> Iterator[Running]:
    """Run `tabon serve` in a process of its own."""
    own = folder / name
    own.mkdir()
    command = ["-c", TABON, "serve", "--bank", str(folder / "bank"), "--port", "0", *options]
    with program(command, own, PATIENCE) as one:
        yield one


def asked(service: Running, folder: Path, start: int, *, seconds: float = 0.0, count: int = 0) -> Load:
    """Let fifty clients ask, for so long or so often."""
    with clients(service, folder, start, seconds, count) as process:
        return load_of(process)


def measured(service: Running, folder: Path, size: Size) -> Measured:
    """Let fifty clients ask, and look at the memory of the service meanwhile."""
    with clients(service, folder, size.warm, size.seconds, 0) as process:
        sleep(size.seconds / 3)
        third = megabytes(service.process.pid)
        load = load_of(process)
    return Measured(load, third, megabytes(service.process.pid))


@contextmanager
def clients(service: Running, folder: Path, start: int, seconds: float, count: int) -> Iterator[Popen[str]]:
    """Start the clients in a process of their own."""
    numbers = (str(start), str(seconds), str(count))
    command = [sys.executable, str(ASKING), service.address, str(folder / "bodies"), *numbers]
    with Popen(command, stdout=PIPE, text=True) as process:  # noqa: S603
        yield process


def load_of(process: "Popen[str]") -> Load:
    """Wait for what the clients saw."""
    said, _ = process.communicate()
    return Load(**json.loads(said))


def megabytes(pid: int) -> float:
    """Return the memory that a process holds now."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000
