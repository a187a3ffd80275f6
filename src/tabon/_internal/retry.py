"""Calls that are made again if that may help, after waits that grow."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from typing import TypeVar

T = TypeVar("T")
Again = Callable[[Exception], bool]  # whether another attempt may help


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How often a call is made, and how long to wait after one that failed."""

    attempts: float = inf
    first_wait: float = 1.0  # seconds; doubles with each attempt
    longest_wait: float = inf
    within: float = inf  # seconds for all attempts: none begins later

    def wait(self, attempt: int, error: Exception, *, began: float) -> float:
        """Return the seconds until the next attempt; raise the error if there is none.

        The error's own `retry_after` decides, else the wait doubles with each attempt, with jitter.
        """
        grown = min(self.longest_wait, self.first_wait * 2.0 ** min(attempt - 1, 100))
        asked = getattr(error, "retry_after", None)
        wait = grown * random.uniform(0.5, 1.5) if asked is None else float(asked)  # noqa: S311  # jitter
        if attempt >= self.attempts or time.monotonic() + wait >= began + self.within:
            raise error
        return wait


async def retry(
    call: Callable[[int], Awaitable[T]],
    backoff: Backoff,
    again: Again,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Return what a call gives, which gets the number of its attempt, from 1."""
    began, attempt = time.monotonic(), 0
    while True:
        attempt += 1
        try:
            return await call(attempt)
        except Exception as error:
            if not again(error):
                raise
            wait = backoff.wait(attempt, error, began=began)
        await sleep(wait)


def retry_blocking(call: Callable[[], T], backoff: Backoff, again: Again) -> T:
    """Return what a call gives, like `retry`, from a thread that may wait."""
    began, attempt = time.monotonic(), 0
    while True:
        attempt += 1
        try:
            return call()
        except Exception as error:
            if not again(error):
                raise
            wait = backoff.wait(attempt, error, began=began)
        time.sleep(wait)
