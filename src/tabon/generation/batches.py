"""Drafts by the batch, through a provider's batch mode: asked once, found again by name, matched by key.

A batch job may take a day, so the run must be able to die at any moment. A ledger beside the journal
says which drafts were asked for in which job. Its line is on disk before a job is submitted, under a
name that is sent along: a job whose number was never written down is found by that name.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any
from uuid import uuid4

from tabon._internal.record_file import RecordFile, record_line
from tabon.errors import BadInputError, GenerationError, TryAgainError
from tabon.generation.journal import (
    NEW_FIELDS,
    DraftKey,
    Journal,
    can_be_kept,
    draft_line,
)
from tabon.generation.protocol import Answer, BatchProvider, Parameters, Request
from tabon.generation.runner import Budget, Patience, Progress, StoppableRun, Task

GROWTH = 1.5  # of the time between two looks at a job


@dataclass(frozen=True, slots=True)
class Ordered:
    """A draft that was asked for in a job."""

    key: DraftKey
    most: float  # dollars promised for it


@dataclass(slots=True)
class DraftBatch:
    """The drafts of one job."""

    name: str
    model: str
    source: str | None
    drafts: dict[str, Ordered]  # by the digest of their key, which is sent along
    at: float  # when it was written down, in seconds since 1970
    job: str | None = None

    def intent(self) -> dict[str, Any]:
        """Return what is written down before the job is submitted."""
        drafts = [asdict(ordered) for ordered in self.drafts.values()]
        facts = {"name": self.name, "model": self.model, "source": self.source, "at": self.at}
        return {"step": "intent", **facts, "drafts": drafts}


class Ledger(RecordFile):
    """The jobs that are open; an append-only file under the journal's crash rules."""

    BEGIN = b'{"step": "'
    FIRST = re.compile(rb'\{"step": "intent", "name": "tabon-[0-9a-f]{32}"')

    def __init__(self, path: Path) -> None:
        """Open or create a ledger and read which jobs are open."""
        self.open: dict[str, DraftBatch] = {}
        super().__init__(path)

    def __contains__(self, key: DraftKey) -> bool:
        """Whether a draft is being waited for."""
        digests = {key.digest()} | ({key.old_digest()} if key.source is None else set())
        return any(not digests.isdisjoint(batch.drafts) for batch in self.open.values())

    def __len__(self) -> int:
        """Count the open jobs."""
        return len(self.open)

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one line; when this returns it is on disk."""
        self.append([record_line(record)])

    def _remember(self, record: Mapping[str, Any]) -> None:
        """Follow one line: an intent opens a batch, a job numbers it, an end closes it."""
        if record["step"] == "intent":
            by_key = dict(_ordered(draft) for draft in record["drafts"])
            facts = record["name"], record["model"], record.get("source")
            self.open[record["name"]] = DraftBatch(*facts, by_key, float(record["at"]))
        elif record["step"] == "job":
            self.open[record["name"]].job = record["job"]
        else:
            self.open.pop(record["name"], None)


def _ordered(draft: Mapping[str, Any]) -> tuple[str, Ordered]:
    """Read a draft of a batch, and the digest that it was sent under."""
    fields = {"seed": draft.get("seed"), "source": None, **draft["key"]}
    key = DraftKey(**fields | {"parameters": Parameters(**fields["parameters"])})
    if not can_be_kept(key) or not 0 <= draft["most"] < inf:
        raise ValueError("not a draft with its amount of money")
    is_new = draft["key"].keys() >= NEW_FIELDS
    return key.digest() if is_new else key.old_digest(), Ordered(key, float(draft["most"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits(Patience):
    """How large jobs are, how many run, and how often they are looked at."""

    batch: int = 500  # drafts in a job
    batch_bytes: int = 64 * 2**20  # of prompts and images in a job
    jobs: int = 20  # open at once
    first_wait: float = 10.0  # seconds
    longest_wait: float = 300.0
    settling: float = 30.0  # seconds until a job that was accepted is sure to be listed

    def __post_init__(self) -> None:
        """Refuse limits that let nothing through."""
        if min(self.batch, self.batch_bytes, self.jobs, self.attempts) < 1:
            raise BadInputError("the size of a batch, the number of jobs and the attempts must be 1 or more")


class BatchRun(StoppableRun):
    """One run of one provider's batch mode over tasks."""

    def __init__(
        self,
        provider: BatchProvider,
        journal: Journal,
        ledger_path: Path,
        budget: Budget,
        limits: BatchLimits | None = None,
    ) -> None:
        """Take the parts and open the ledger; nothing is asked yet."""
        self._provider, self._journal, self._budget = provider, journal, budget
        self._limits = limits or BatchLimits()
        super().__init__(self._limits, budget)
        self.ledger = Ledger(ledger_path)
        self._spent_out = False
        self._missing: set[str] = set()
        self._on_progress: Callable[[Progress], None] | None = None

    async def generate(
        self, tasks: Iterator[Task], on_progress: Callable[[Progress], None] | None = None
    ) -> Progress:
        """Fetch what open jobs made, then ask for every draft that the journal lacks."""
        self._on_progress = on_progress
        try:
            for batch in self._mine():
                await self._attach(batch)
            await self._look()
            while not (self._spent_out or self._stopping.is_set()):
                batch, requests = await asyncio.to_thread(self._fill, tasks)
                if not requests:
                    break
                await self._submit(batch, requests)
                await self._wait(self._limits.jobs - 1)
            await self._wait(0)
        except TryAgainError:
            if not self._stopping.is_set():  # else the progress says why
                raise
        finally:
            self.ledger.close()
        return self.progress

    def _mine(self) -> list[DraftBatch]:
        """Return the open batches of this model at this address; a ledger may hold others."""
        mine = self._provider.model, self._provider.source
        return [batch for batch in self.ledger.open.values() if (batch.model, batch.source) == mine]

    async def _attach(self, batch: DraftBatch) -> None:
        """Find the job of a batch that an earlier run left open; without one ask for its drafts anew."""
        if batch.job is None:
            job = await self._patiently(lambda _: self._provider.find(batch.name))
            young = min(self._limits.settling - (time.time() - batch.at), self._limits.settling)
            if job is None and young > 0:
                await self._sleep(young)
                job = await self._patiently(lambda _: self._provider.find(batch.name))
            if job is None:
                self.ledger.write({"step": "end", "name": batch.name, "state": "not submitted"})
                return
            self.ledger.write({"step": "job", "name": batch.name, "job": job})
        for ordered in batch.drafts.values():
            self._budget.promise(ordered.most)

    def _fill(self, tasks: Iterator[Task]) -> tuple[DraftBatch, list[tuple[str, Request]]]:
        """Take tasks until a batch is full; making them reads files and images."""
        model, source = self._provider.model, self._provider.source
        batch = DraftBatch(f"tabon-{uuid4().hex}", model, source, {}, time.time())
        requests: list[tuple[str, Request]] = []
        size = 0
        while len(requests) < self._limits.batch and size < self._limits.batch_bytes:
            task = next(tasks, None)
            if task is None:
                break
            if task.key in self._journal:
                self.progress.already += 1
                continue
            digest = task.key.digest()
            if task.key in self.ledger or digest in batch.drafts:
                continue
            most = self._budget.reserve(task.request)
            if most is None:
                self._spent_out = True
                self.progress.stopped = "the next draft could pass the spend cap"
                break
            batch.drafts[digest] = Ordered(task.key, most)
            requests.append((digest, task.request))
            image = task.request.image
            size += len(task.request.prompt) + (0 if image is None else len(image.data) * 4 // 3)  # base64
        return batch, requests

    async def _submit(self, batch: DraftBatch, requests: list[tuple[str, Request]]) -> None:
        """Write down what is about to be asked, submit it, and write the job's number down."""
        self.ledger.write(batch.intent())

        async def submit(attempt: int) -> str:
            """Submit; a second time only if the first did not come through."""
            found = await self._provider.find(batch.name) if attempt > 1 else None
            return found or await self._provider.submit(batch.name, requests)

        job = await self._patiently(submit)
        self.ledger.write({"step": "job", "name": batch.name, "job": job})
        self._count_missing(self._missing - batch.drafts.keys())

    async def _wait(self, most_open: int) -> None:
        """Look at the jobs, less and less often, until few enough are open."""
        wait = self._limits.first_wait
        while len(self._mine()) > most_open:
            if not await self._look():
                await self._sleep(wait)
                wait = min(self._limits.longest_wait, wait * GROWTH)

    async def _look(self) -> bool:
        """Look at each open job once; return whether one had ended."""
        ended = [await self._collect(batch) for batch in self._mine()]
        return any(ended)

    async def _collect(self, batch: DraftBatch) -> bool:
        """Keep what a job made, if it has ended."""
        job = str(batch.job)
        try:
            state = await self._patiently(lambda _: self._provider.state(job))
            if state == "running":
                return False
            rows = await self._patiently(lambda _: self._provider.results(job))
        except GenerationError as error:
            raise GenerationError(
                f"batch job {job} cannot be fetched: {error}; if it is gone for good, remove "
                f"{self.ledger.path} and its drafts are asked for again"
            ) from None
        await asyncio.to_thread(self._keep, batch, rows)
        self.ledger.write({"step": "end", "name": batch.name, "state": state})
        if self._on_progress is not None:
            self._on_progress(self.progress)
        return True

    def _keep(self, batch: DraftBatch, rows: list[tuple[str, Answer]]) -> None:
        """Journal each row under its own key, once; count the drafts that did not come."""
        waiting = {key: it for key, it in batch.drafts.items() if it.key not in self._journal}
        answers = {key: answer for key, answer in reversed(rows) if key in waiting}  # the first of a key wins
        when = datetime.now(UTC).isoformat(timespec="seconds")
        lines = []
        for key, answer in answers.items():
            cost = self._budget.settle(waiting[key].most, self._budget.price.cost(answer))
            lines.append(draft_line(waiting[key].key, answer, cost=cost, time=when))
        if lines:
            self._journal.append(lines)
        for key, ordered in batch.drafts.items():
            if key not in answers:
                self._budget.release(ordered.most)
        self.progress.kept += len(lines)
        self.progress.spent = self._budget.spent
        self.progress.outcomes.update(answer.outcome for answer in answers.values())
        self._count_missing(self._missing | (waiting.keys() - answers.keys()))
        unknown = sum(key not in batch.drafts for key, _ in rows)
        if unknown:
            raise GenerationError(
                f"batch job {batch.job} holds {unknown} results under keys that were not asked for; the "
                "others are kept. Check the job at the provider; to ask for the rest anew, remove "
                f"{self.ledger.path}"
            )

    def _count_missing(self, missing: set[str]) -> None:
        """Remember which drafts were asked for and did not come."""
        self._missing = missing
        self.progress.failed = len(missing)
