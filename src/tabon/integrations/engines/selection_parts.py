"""Batch selection in parts: done by any worker in any order, kept as they finish, joined in one step.

The bank is a path that every node can read (a shared folder, or a copy at the
same place): it is memory-mapped there, and each worker checks all of its bytes
once against the sum that is read here.

A finished part is a file named by the hash of its queries, the bank and the settings, so it is
found again exactly when it would come out the same. One that is damaged counts as missing:

    sha256 of the rest | header (JSON, one line: format, queries, complaints) | selections (JSON Lines)
"""

import fcntl
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from platform import node

from tabon._internal.atomic_files import replacing
from tabon.errors import BadInputError, BankDamagedError, EngineError
from tabon.integrations.engines.engine import Engine, probe_of
from tabon.method.bank import TransitionBank
from tabon.selectors.scorer import AnySelector
from tabon.selectors.setup import (
    Answered,
    Complaint,
    SelectionSettings,
    answer,
    in_batches,
    make_selector,
    may_abstain,
)
from tabon.text.records import BadLine, Query, read_query_lines

FORMAT = "tabon-part/2"


class PartsFolder:
    """The parts of one batch on disk."""

    def __init__(self, folder: Path) -> None:
        """Make the folder, for its owner alone: answers may carry what stood beside a query."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def read(self, key: str) -> Answered | None:
        """Return a finished part; None where there is none, or none that is whole."""
        try:
            digest, _, rest = self._path(key).read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if digest != sha256(rest).hexdigest().encode():
            return None
        head, _, lines = rest.partition(b"\n")
        header = json.loads(head)
        if header["format"] != FORMAT:
            return None
        return Answered(lines, tuple(Complaint(*one) for one in header["complaints"]), header["queries"])

    def write(self, key: str, part: Answered) -> None:
        """Keep a part; when this returns it is on disk."""
        header = {"format": FORMAT, "queries": part.queries, "complaints": part.complaints}
        rest = json.dumps(header).encode() + b"\n" + part.selections
        with replacing(self._path(key)) as file:
            file.write(sha256(rest).hexdigest().encode() + b"\n" + rest)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove these parts, and the folder where nothing else lies in it."""
        for key in keys:
            self._path(key).unlink(missing_ok=True)
        (self.folder / "lock").unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _path(self, key: str) -> Path:
        """Return where a part lies."""
        return self.folder / f"{key}.part"


@contextmanager
def open_parts(folder: Path) -> Iterator[PartsFolder]:
    """Give the parts of a batch to one run at a time."""
    try:
        parts = PartsFolder(folder)
        with (folder / "lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield parts
    except BlockingIOError:
        raise BadInputError(
            f"another run is writing {folder}; wait for it, or give --out another name"
        ) from None


QUERIES_A_PART = 256
QueryBatch = list[Query | BadLine]


@dataclass(frozen=True, slots=True)
class SelectionJob:
    """Which bank, and what to do with it."""

    bank: Path
    bank_sha256: str
    settings: SelectionSettings


@dataclass(frozen=True, slots=True)
class Likeness:
    """What must be the same on every worker, or parts would not fit together."""

    signature: str
    probe: str  # of the encoder's bits


@dataclass(frozen=True, slots=True)
class SelectionOrder:
    """A job, and what the first worker that was ready for it is like."""

    job: SelectionJob
    likeness: Likeness

    def key(self, batch: QueryBatch) -> str:
        """Return the name of a part: the hash of all that its answers depend on."""
        settings = {**asdict(self.job.settings), "store": None}
        asked = [asdict(line) for line in batch]  # a value's own repr has no report text
        about = repr((self.job.bank_sha256, settings, self.likeness, asked))
        return sha256(about.encode("utf-8", "surrogatepass")).hexdigest()


def select_parts(  # noqa: PLR0913  # each is a place or a number
    engine: Engine,
    bank: Path,
    settings: SelectionSettings,
    queries: Iterable[bytes],
    out: Path,
    *,
    parts: Path | None = None,
    queries_a_part: int = QUERIES_A_PART,
    complain: Callable[[Complaint], object] = lambda _: None,
    progress: Callable[[int], object] = lambda _: None,
) -> int:
    """Answer the lines of a queries file on an engine, and return how many could not be answered.

    Every worker reads the bank at the same path. `out` is written in one step when all parts are there;
    until then finished ones are kept in `parts`, by default beside it, for a run that is killed. `complain`
    gets why each query without an answer has none, `progress` the number of queries answered.
    """
    order = selection_order(engine, bank, settings)
    with open_parts(parts or out.with_name(f"{out.name}.parts")) as kept:
        batch = _Batch(order, kept, in_batches(read_query_lines(queries), queries_a_part))
        for number, answered in engine.run(answer_part, batch.missing(), shared=order):
            batch.keep(number, answered)
            progress(batch.answered)
        if not batch.keys:
            kept.remove(())
            raise BadInputError("the file holds no queries; write one JSON object a line")
        complaints = batch.join(out)
        for complaint in complaints:
            complain(complaint)
        kept.remove(batch.keys)
    return len(complaints)


def selection_order(engine: Engine, bank: Path, settings: SelectionSettings) -> SelectionOrder:
    """Let one worker make itself ready, so that settings that do not fit are refused before any part.

    Paths are written out in full, since workers run elsewhere.
    """
    store, search = settings.store, settings.search
    if search is not None and search.startswith("index:"):
        folder, mark, rest = search.removeprefix("index:").partition("?")
        search = f"index:{Path(folder).resolve()}{mark}{rest}"
    settings = replace(settings, store=None if store is None else store.resolve(), search=search)
    job = SelectionJob(bank.resolve(), TransitionBank.load(bank, verify=False).sha256, settings)
    [(_, likeness)] = engine.run(likeness_of, [job], shared=None)
    return SelectionOrder(job, likeness)


def likeness_of(_: None, job: SelectionJob) -> Likeness:
    """Return what a worker is like once it is ready for a job."""
    return _ready(job)[1]


def answer_part(order: SelectionOrder, batch: QueryBatch) -> Answered:
    """Answer one part on a worker."""
    selector, likeness = _ready(order.job)
    if likeness.signature != order.likeness.signature:
        raise EngineError(
            f"node {node()} would answer as {likeness.signature}, another one as {order.likeness.signature}; "
            "install the same tabon and weights on every node"
        )
    if likeness.probe != order.likeness.probe:
        raise EngineError(
            f"the encoder gives other last bits on node {node()} than on another one; use nodes with the "
            "same processor and library versions"
        )
    return answer(selector, batch)


@lru_cache(maxsize=1)
def _ready(job: SelectionJob) -> tuple[AnySelector, Likeness]:
    """Load the bank and the encoder, once for each worker."""
    try:
        bank = TransitionBank.load(job.bank)
    except (BadInputError, BankDamagedError, OSError) as error:
        raise EngineError(f"node {node()} cannot use the bank: {error}") from error
    if bank.sha256 != job.bank_sha256:
        raise EngineError(
            f"the bank {job.bank} has sha256 {bank.sha256[:12]}… on node {node()}, here it is "
            f"{job.bank_sha256[:12]}…; put the same file on every node"
        )
    selector = make_selector(bank, job.settings)
    return may_abstain(selector, job.settings), Likeness(selector.signature, probe_of(selector.encoder))


@dataclass(slots=True)
class _Batch:
    """What is known of a batch while it is worked on."""

    order: SelectionOrder
    kept: PartsFolder
    batches: Iterator[QueryBatch]
    keys: list[str] = field(default_factory=list)  # of every part, in the order of the file
    sent: list[str] = field(default_factory=list)  # of those that an engine was asked for
    answered: int = 0

    def missing(self) -> Iterator[QueryBatch]:
        """Yield the parts that are not there yet."""
        for batch in self.batches:
            key = self.order.key(batch)
            self.keys.append(key)
            if self.kept.read(key) is None:
                self.sent.append(key)
                yield batch
            else:
                self.answered += len(batch)

    def keep(self, number: int, answered: Answered) -> None:
        """Write a part that came back."""
        self.kept.write(self.sent[number], answered)
        self.answered += answered.queries

    def join(self, out: Path) -> list[Complaint]:
        """Write all parts in their order, in one step; return why queries have no answer."""
        complaints: list[Complaint] = []
        with replacing(out) as file:
            for key in self.keys:
                part = self.kept.read(key)
                if part is None:
                    raise BadInputError(
                        f"a part in {self.kept.folder} was damaged; run the same command again"
                    )
                file.write(part.selections)
                complaints += part.complaints
        return complaints
