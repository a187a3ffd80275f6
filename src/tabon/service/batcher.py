"""One worker, one bounded queue: requests that come together are answered together.

The worker answers what waits (up to a number of queries and a bound on their time and memory) with one
call. A query that fails does not fail the others. While a heavy query waits, every second batch takes
the oldest queries and the others take the lightest: neither kind can keep the worker from the other.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import Final, Generic, TypeVar

from tabon.errors import ServiceError
from tabon.service.metrics import Metrics

T = TypeVar("T")
R = TypeVar("R")
LIGHT: Final = 0.25  # share of a batch that light requests may fill, so that they do not wait for heavy ones
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How requests are put together."""

    queue: int = 256  # requests that may wait; more are refused
    size: int = 64  # requests in a batch
    wait: float = 0.003  # seconds, from its arrival, that the first of a batch waits for others


@dataclass(frozen=True, slots=True)
class Waiting(Generic[T, R]):
    """One request in the queue."""

    item: T
    load: float  # share of a batch
    future: "Future[R]" = field(default_factory=Future)
    since: float = field(default_factory=monotonic)


class Batcher(Generic[T, R]):
    """Answers items in batches, on a thread of its own."""

    def __init__(
        self, answer: Callable[[Sequence[T]], Sequence[R]], settings: BatchSettings, metrics: Metrics
    ) -> None:
        """Take the function that answers a batch; `start` starts the thread."""
        self._answer, self._settings, self._metrics = answer, settings, metrics
        self._queue: list[Waiting[T, R]] = []
        self._oldest_first = False  # the next batch
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._work, name="tabon-batches", daemon=True)

    def start(self) -> None:
        """Start the worker."""
        self._thread.start()

    def submit(self, item: T, load: float = 0.0) -> "Future[R]":
        """Put one item into the queue; refuse it if the queue is full or the service is ending."""
        waiting: Waiting[T, R] = Waiting(item, load)
        with self._changed:
            if self._closed:
                raise ServiceError(503, "the service is shutting down", "try another one", retry_after=5)
            if len(self._queue) >= self._settings.queue:
                self._metrics.queue_refused.inc()
                raise ServiceError(429, "too many requests are waiting", "try again later", retry_after=1)
            self._queue.append(waiting)
            self._changed.notify()
        return waiting.future

    def close(self, timeout: float | None = None) -> None:
        """Answer what still waits, then end the worker."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def __len__(self) -> int:
        """Count the requests that wait."""
        return len(self._queue)

    def _work(self) -> None:
        """Answer batches until the end."""
        while batch := self._take():
            running = [one for one in batch if one.future.set_running_or_notify_cancel()]
            for one in running:
                self._metrics.queue_seconds.observe(monotonic() - one.since)
            if running:
                start = monotonic()
                self._metrics.batch_size.observe(len(running))  # before a client has its answer
                self._finish(running)
                self._metrics.batch_seconds.observe(monotonic() - start)

    def _take(self) -> list[Waiting[T, R]]:
        """Wait for a batch; an empty one says that the end has come."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            end = (self._queue[0].since if self._queue else 0.0) + self._settings.wait
            while not self._closed and len(self._queue) < self._settings.size:
                if not self._changed.wait(end - monotonic()) or monotonic() >= end:
                    break
            return self._cut()

    def _cut(self) -> list[Waiting[T, R]]:
        """Take the oldest requests that fit together, or in turn the lightest; at least one."""
        none_heavy = all(one.load <= LIGHT for one in self._queue)
        self._oldest_first = none_heavy or not self._oldest_first
        order = self._queue if self._oldest_first else sorted(self._queue, key=lambda one: one.load)
        batch: list[Waiting[T, R]] = []
        room = 1.0 if self._oldest_first else LIGHT
        for one in order[: self._settings.size]:
            room -= one.load
            if batch and room < 0:
                break
            batch.append(one)
        taken = {id(one) for one in batch}
        self._queue = [one for one in self._queue if id(one) not in taken]
        return batch

    def _finish(self, batch: Sequence[Waiting[T, R]]) -> None:
        """Answer a batch at once; if that fails, one by one."""
        try:
            answers = list(zip(batch, self._answer([one.item for one in batch]), strict=True))
        except BaseException as error:  # noqa: BLE001  # whatever it is, the worker lives on
            if len(batch) > 1:
                for one in batch:
                    self._finish([one])
            else:
                log.warning("a query could not be answered: %s", type(error).__name__)  # no message: no text
                batch[0].future.set_exception(error)
        else:
            for one, found in answers:
                one.future.set_result(found)
