"""The service under fifty clients, beside one call a request and the encoder alone; is its memory flat."""

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from service_clients import CLIENTS, Load
from service_server import Running, program
from tabon import TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.method.sentence_sets import embed
from tabon.text.records import Query, query_from_record, transition_from_record
from tabon.text.reports import SECTIONS
from tabon.text.sentences import split_sentences
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
    alone: float  # seconds that the encoder alone takes for the sentences of these queries


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
        bank, queries = written(folder, size)
        with served(folder, "batched", BATCHED) as ours, served(folder, "one-by-one", ONE_BY_ONE) as other:
            asked(ours, folder, 0, count=size.warm)
            asked(other, folder, 0, count=CLIENTS)
            before = asked(other, folder, size.warm, seconds=size.seconds / 4)
            found = measured(ours, folder, size, bank)
            after = asked(other, folder, size.warm, seconds=size.seconds / 4)
            renew(folder)
            asked(ours, folder, 0, count=CLIENTS)
            new = measured(ours, folder, replace(size, warm=CLIENTS), bank)
    errors = found.load.errors + before.errors + after.errors + new.load.errors
    if errors:
        raise AssertionError(f"{errors} requests were not answered with 200")
    yield from lines(found, [before, after], f"bank of {len(bank)}, {queries} queries")
    yield limit_line(found, "simulated queries")
    yield limit_line(new, "queries of new sentences alone")


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


def limit_line(found: Measured, what: str) -> Line:
    """Yield the share of the encoder's own limit that the service reaches."""
    load = found.load
    return faster(
        f"a request of {CLIENTS} HTTP clients, {what}: {load.rate:.0f}/s, p99 {load.p99 * 1000:.0f} ms",
        1 / load.rate,
        found.alone / load.answered,
        "the encoder alone, both processors, all their sentences at once",
        "≥ 0.75",
    )


def written(folder: Path, size: Size) -> tuple[TransitionBank, int]:
    """Write a bank, and bodies of other patients' queries, no two the same; return it and their number."""
    cohort = SimulationSettings(patients=size.patients)
    training = map(transition_from_record, simulate_transitions(cohort, "train"))
    bank = TransitionBank.build(training, encoder=load_encoder("minilm"))
    bank.save(folder / "bank")
    asking = SimulationSettings(seed=1, patients=size.asking, splits=(0.0, 0.0, 1.0))
    bodies = sorted({json.dumps(query) for query in simulate_queries(asking, "test")})
    np.random.default_rng(0).shuffle(bodies)
    (folder / "bodies").write_text("\n".join(bodies))
    return bank, len(bodies)


def renew(folder: Path) -> None:
    """Write the queries anew, the words of every sentence in another order, so that none is remembered."""
    rng = random.Random(0)  # noqa: S311

    def mixed(report: Any) -> Any:  # noqa: ANN401  # a report, as a record
        texts = {name: split_sentences(report.get(name, "")) for name in SECTIONS}
        words = {name: [one.rstrip(".").split() for one in each] for name, each in texts.items()}
        return {
            name: " ".join(" ".join(rng.sample(w, len(w))) + "." for w in each)
            for name, each in words.items()
        }

    queries = [json.loads(line) for line in (folder / "bodies").read_text().splitlines()]
    for query in queries:
        query["candidates"] = [mixed(draft) for draft in query["candidates"]]
    (folder / "bodies").write_text("\n".join(map(json.dumps, queries)))


def encoder_alone(folder: Path, size: Size, answered: int, bank: TransitionBank) -> float:
    """Time the encoder on the sentences that the service did not know when these queries came."""
    bodies = (folder / "bodies").read_text().splitlines()
    sentences = [sentences_of(query_from_record(json.loads(body))) for body in bodies]
    known = set(bank.table.sentences).union(*sentences[: size.warm])
    new = sorted(set().union(*sentences[size.warm : size.warm + answered]) - known)
    encoder = load_encoder("minilm")
    encoder.encode(new[:50])
    start = perf_counter()
    embed(new, encoder)
    return perf_counter() - start


def sentences_of(query: Query) -> set[str]:
    """Return the sentences of a query."""
    texts = (report.section(name) for report in (query.prior, *query.candidates) for name in SECTIONS)
    return {sentence for text in texts for sentence in split_sentences(text)}


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


def measured(service: Running, folder: Path, size: Size, bank: TransitionBank) -> Measured:
    """Let fifty clients ask, and look at the memory of the service meanwhile; then time the encoder alone."""
    with clients(service, folder, size.warm, size.seconds, 0) as process:
        sleep(size.seconds / 3)
        third = megabytes(service.process.pid)
        load = load_of(process)
    end = megabytes(service.process.pid)
    return Measured(load, third, end, encoder_alone(folder, size, load.answered, bank))


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
