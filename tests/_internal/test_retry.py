"""Calls that are made again."""

import asyncio
import random

import pytest

from tabon._internal import retry as module
from tabon._internal.retry import Backoff, retry, retry_blocking


class LostError(Exception):
    """A failure that passes; it may ask for a wait."""

    def __init__(self, retry_after=None):
        """Keep the wait that is asked for."""
        self.retry_after = retry_after


def lost(error):
    """Say whether another attempt may help."""
    return isinstance(error, LostError)


class Clock:
    """A clock that only moves when someone sleeps."""

    def __init__(self):
        """Start at zero."""
        self.waits = []

    def monotonic(self):
        """Return the seconds that were slept."""
        return sum(self.waits)

    def sleep(self, seconds):
        """Let time pass."""
        self.waits.append(seconds)


@pytest.fixture
def clock(monkeypatch):
    """Put a clock in the place of the real one, and take the jitter away."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(random, "uniform", lambda _low, _high: 1.0)
    return clock


@pytest.fixture(params=["retry", "retry_blocking"])
def run(request, clock):
    """Run failures, then a success, through either function; return what came of it."""

    def run(backoff, *failures):
        script = iter(failures)

        def call(_=None):
            for failure in script:
                raise failure
            return "done"

        async def awaited(attempt):
            return call(attempt)

        async def sleep(seconds):
            clock.sleep(seconds)

        if request.param == "retry":
            return asyncio.run(retry(awaited, backoff, lost, sleep=sleep))
        return retry_blocking(call, backoff, lost)

    return run


def test_waits_double_up_to_the_longest_unless_one_is_asked_for(run, clock):
    """A failure's own wait counts for itself alone."""
    failures = [LostError() for _ in range(3)] + [LostError(retry_after=17), LostError()]
    assert run(Backoff(first_wait=1.0, longest_wait=3.0), *failures) == "done"
    assert clock.waits == [1.0, 2.0, 3.0, 17.0, 3.0]


def test_the_attempts_are_counted(run, clock):
    """Three attempts are two waits; the last failure is raised as it is."""
    last = LostError()
    with pytest.raises(LostError) as raised:
        run(Backoff(attempts=3), LostError(), LostError(), last)
    assert raised.value is last
    assert len(clock.waits) == 2


@pytest.mark.parametrize(("failure", "waits"), [(LostError(), 2), (LostError(retry_after=5), 0)])
def test_no_attempt_begins_too_late(run, clock, failure, waits):
    """A wait that would pass the time for all attempts is not begun."""
    with pytest.raises(LostError):
        run(Backoff(first_wait=1.0, within=5.0), *[failure] * 9)
    assert len(clock.waits) == waits


def test_other_failures_are_raised_at_once(run, clock):
    """What no other attempt mends is not tried again."""
    with pytest.raises(ValueError, match="wrong"):
        run(Backoff(), ValueError("wrong"))
    assert clock.waits == []


def test_a_call_learns_its_attempt():
    """The first attempt is 1."""

    async def call(attempt):
        if attempt < 3:
            raise LostError
        return attempt

    assert asyncio.run(retry(call, Backoff(first_wait=0.0), lost)) == 3
