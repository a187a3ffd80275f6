"""Waiting for events: a condition is looked at until it holds, with a limit that no busy machine reaches."""

import asyncio
import time

LIMIT = 120.0  # seconds; only a fault reaches it
PAUSE = 0.01


def until(condition, what, limit=LIMIT, pause=PAUSE):
    """Return the first true value of `condition()`; fail with `what` if it never comes."""
    end = time.monotonic() + limit
    while True:
        if value := condition():
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit:.0f} s in vain: {what}")
        time.sleep(pause)


async def until_async(condition, what, limit=LIMIT):
    """Return the first true value of `condition()` while the event loop goes on."""
    end = time.monotonic() + limit
    while True:
        if value := condition():
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit:.0f} s in vain: {what}")
        await asyncio.sleep(PAUSE)
