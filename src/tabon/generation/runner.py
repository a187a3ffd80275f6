"""The runner: many drafts at once, within limits, each on disk before it counts."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf, isfinite
from typing import TypeVar

from tabon._internal.retry import Backoff, retry
from tabon.errors import BadInputError, GenerationError, TryAgainError
from tabon.generation.journal import DraftKey, Journal, draft_line
from tabon.generation.protocol import Answer, Generator, Request

CHARACTERS_PER_TOKEN = 4.0
IMAGE_TOKENS = 1100  # what a large image costs with the paper's providers, rounded up
MILLION = 1_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float

    def __post_init__(self) -> None:
        """Refuse prices that would switch a spend cap off."""
        if not all(0.0 <= dollars <= MILLION for dollars in (self.input, self.output)):
            raise BadInputError(
                f"the price is {self.input},{self.output}; give two numbers from 0 to {MILLION}, "
                "dollars per million tokens"
            )

    def cost(self, answer: Answer) -> float | None:
        """Return what an answer cost; None if the provider did not say how long it was."""
        if answer.input_tokens is None or answer.output_tokens is None:
            return None
        return (answer.input_tokens * self.input + answer.output_tokens * self.output) / MILLION

    def most(self, request: Request) -> float:
        """Return the most that a request may cost, by estimate."""
        tokens = len(request.prompt) / CHARACTERS_PER_TOKEN + (IMAGE_TOKENS if request.image else 0)
        return (tokens * self.input + request.parameters.max_tokens * self.output) / MILLION


FREE = Price(0.0, 0.0)


def read_price(text: str) -> Price:
    """Read a price given as input,output.

    >>> read_price("0.10,0.40")
    Price(input=0.1, output=0.4)
    """
    try:
        given, made = map(float, text.split(","))
    except ValueError:
        raise BadInputError(f"--price is {text!r}; give dollars per million tokens as INPUT,OUTPUT") from None
    return Price(given, made)


class Budget:
    """Money spent and promised, held under a cap."""

    def __init__(self, price: Price, *, cap: float | None, spent: float = 0.0) -> None:
        """Start from what a journal says was spent."""
        if cap is not None and not (isfinite(cap) and cap >= 0.0):
            raise BadInputError(f"the spend cap is {cap}; give dollars, 0 or more, or leave it out")
        self.price, self.spent, self._cap = price, spent, cap
        self._promised = self._dearest = 0.0

    def reserve(self, request: Request) -> float | None:
        """Promise the most that a request may cost; None if the cap would be passed.

        An answer that cost more than its estimate raises all later estimates.
        """
        most = max(self.price.most(request), self._dearest)
        if self._cap is not None and self.spent + self._promised + most > self._cap:
            return None
        self._promised += most
        return most

    def promise(self, amount: float) -> None:
        """Count money that an earlier run promised."""
        self._promised += amount

    def settle(self, reserved: float, cost: float | None) -> float:
        """Turn a promise into money spent; an unknown cost counts as the promise."""
        self._promised -= reserved
        paid = reserved if cost is None else cost
        self.spent += paid
        self._dearest = max(self._dearest, paid)
        return paid

    def release(self, reserved: float) -> None:
        """Take a promise back: nothing was generated."""
        self._promised -= reserved


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience(Backoff):
    """How often a provider is asked for one thing, and how long it may make a run wait."""

    attempts: float = 6
    longest_wait: float = 60.0
    longest_asked: float = 3600.0  # a provider that asks to wait longer ends the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Patience):
    """How hard a provider may be asked."""

    concurrency: int = 8
    per_minute: float | None = None
    refusals_in_a_row: int = 5  # after so many "no"s for good, the run stops

    def __post_init__(self) -> None:
        """Refuse limits that let nothing through."""
        if self.concurrency < 1 or self.attempts < 1:
            raise BadInputError("concurrency and attempts must be 1 or more")
        if self.per_minute is not None and not 0 < self.per_minute < inf:
            raise BadInputError(f"the rate is {self.per_minute} requests a minute; give more than 0")


@dataclass(frozen=True, slots=True)
class Task:
    """One draft to be generated."""

    key: DraftKey
    request: Request


@dataclass
class Progress:
    """What a run has done so far."""

    kept: int = 0
    already: int = 0
    failed: int = 0
    spent: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None  # why the run ended early


class StoppableRun:
    """What every run has: its progress, a way to stop it, and calls that are made again if that helps."""

    def __init__(self, patience: Patience, budget: Budget) -> None:
        """Take the limits; nothing is asked yet."""
        self._patience, self._stopping = patience, asyncio.Event()
        self.progress = Progress(spent=budget.spent)

    def stop(self, why: str) -> None:
        """Ask for no further draft and wait no longer; drafts in flight are waited for, jobs left open."""
        self.progress.stopped = self.progress.stopped or why
        self._stopping.set()

    async def _patiently(self, call: Callable[[int], Awaitable[T]]) -> T:
        """Call, and call again if that helps; a provider that is away for long stops the run."""

        def again(error: Exception) -> bool:
            """Say whether another attempt may help."""
            if not isinstance(error, TryAgainError):
                return False
            if error.retry_after is not None and error.retry_after > self._patience.longest_asked:
                self.stop(f"{error}, and not for another {error.retry_after / 3600:.3g} hours")
            return True

        return await retry(call, self._patience, again, sleep=self._sleep)

    async def _sleep(self, seconds: float) -> None:
        """Wait, but not past a stop, which raises TryAgainError."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), timeout=seconds)
        if self._stopping.is_set():
            raise TryAgainError("the run was stopped while waiting")


class Run(StoppableRun):
    """One run of one generator over tasks."""

    def __init__(self, generator: Generator, journal: Journal, budget: Budget, limits: Limits) -> None:
        """Take the parts; nothing is asked yet."""
        super().__init__(limits, budget)
        self._generator, self._journal, self._budget, self._limits = generator, journal, budget, limits
        self._lines: asyncio.Queue[tuple[bytes, asyncio.Future[None]] | None] = asyncio.Queue()
        self._gap = 0.0 if limits.per_minute is None else 60.0 / limits.per_minute
        self._next_turn = 0.0
        self._refused = 0
        self._turn = asyncio.Lock()

    async def generate(
        self, tasks: Iterator[Task], on_progress: Callable[[Progress], None] | None = None
    ) -> Progress:
        """Generate every draft that the journal lacks."""
        writer = asyncio.create_task(self._write())
        try:
            work = [self._work(tasks, on_progress) for _ in range(self._limits.concurrency)]
            ends = await asyncio.gather(*work, return_exceptions=True)
        finally:
            self._lines.put_nowait(None)
            await writer
        for failure in filter(None, ends):
            raise failure
        return self.progress

    async def _work(self, tasks: Iterator[Task], on_progress: Callable[[Progress], None] | None) -> None:
        """Take tasks one after another until there are none, or the run stops.

        A failure stops the run: the others keep the drafts they have in flight, which are paid for.
        """
        try:
            while not self._stopping.is_set():
                async with self._turn:  # making a task reads files and images, so that is done in a thread
                    task = await asyncio.to_thread(next, tasks, None)
                if task is None:
                    return
                if task.key in self._journal:
                    self.progress.already += 1
                    continue
                await self._one(task)
                if on_progress is not None:
                    on_progress(self.progress)
        except Exception:
            self.stop("it failed")
            raise

    async def _one(self, task: Task) -> None:
        """Generate one draft within the budget and keep it."""
        reserved = self._budget.reserve(task.request)
        if reserved is None:
            self.stop("the next draft could pass the spend cap")
            return

        async def ask(_: int) -> Answer:
            """Ask when it is this request's turn."""
            if self._gap:
                now = asyncio.get_running_loop().time()
                turn = max(now, self._next_turn)
                self._next_turn = turn + self._gap
                await asyncio.sleep(turn - now)
            return await self._generator.generate(task.request)

        try:
            answer = await self._patiently(ask)
        except BaseException as error:
            self._budget.release(reserved)
            if not isinstance(error, GenerationError | TryAgainError):
                raise
            self.progress.failed += 1
            if isinstance(error, GenerationError):
                self._refused += 1
                if self._refused >= self._limits.refusals_in_a_row:
                    raise
            return
        self._refused = 0  # before its line is written, while others are refused
        cost = self._budget.settle(reserved, self._budget.price.cost(answer))
        time = datetime.now(UTC).isoformat(timespec="seconds")
        kept = asyncio.get_running_loop().create_future()
        self._lines.put_nowait((draft_line(task.key, answer, cost=cost, time=time), kept))
        await kept
        self.progress.kept += 1
        self.progress.spent = self._budget.spent
        self.progress.outcomes[answer.outcome] += 1

    async def _write(self) -> None:
        """Write lines that wait together with one sync, and wake those who wait, until None comes."""
        batch: list[tuple[bytes, asyncio.Future[None]] | None] = []
        while None not in batch:
            batch = [await self._lines.get()]
            while not self._lines.empty():
                batch.append(self._lines.get_nowait())
            waiting = [pair for pair in batch if pair is not None]
            failure: Exception | None = None
            try:
                if waiting:
                    await asyncio.to_thread(self._journal.append, [line for line, _ in waiting])
            except Exception as error:  # noqa: BLE001  # whoever waits raises it
                failure = error
            for kept in (kept for _, kept in waiting if not kept.done()):
                if failure is None:
                    kept.set_result(None)
                else:
                    kept.set_exception(failure)
