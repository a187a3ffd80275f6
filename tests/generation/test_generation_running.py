"""The runner: retries where they help, caps that hold, limits, stops, and nothing lost."""

import asyncio
from dataclasses import replace

import pytest

from draft_records import KEY
from tabon.errors import BadInputError, GenerationError, TryAgainError
from tabon.generation import runner as running
from tabon.generation.journal import Journal, read_journal
from tabon.generation.protocol import Answer, Parameters, Request
from tabon.generation.runner import FREE, Budget, Limits, Price, Run, Task, read_price
from waiting import until_async

REQUEST = Request(prompt="p" * 400, image=None, seed=1, parameters=Parameters(max_tokens=100))
QUICK = Limits(concurrency=4, first_wait=0.001)


class Scripted:
    """A generator at the edge: answers, or fails, as it was told."""

    model, reach = "openai:m", "local"

    def __init__(self, *script, latency=0.0, gate=0):
        self.script, self.latency, self.calls = list(script), latency, 0
        self.in_flight = self.most_in_flight = 0
        self.gate, self.open = gate, asyncio.Event()  # no answer before so many are in flight at once

    async def generate(self, request):
        """Play the next step; answer well when there is none."""
        self.calls += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if self.in_flight >= self.gate:
            self.open.set()
        try:
            await self.open.wait()
            await asyncio.sleep(self.latency)
            step = self.script.pop(0) if self.script else None
            if isinstance(step, Exception):
                raise step
            return step or Answer(
                outcome="ok", text=f"draft {request.seed}", input_tokens=1000, output_tokens=100
            )
        finally:
            self.in_flight -= 1

    async def close(self):
        """Nothing to let go."""


def tasks(count, request=REQUEST):
    """Some tasks of one study."""
    return (Task(replace(KEY, sample=number), request) for number in range(count))


def generate(path, generator, count, *, price=FREE, cap=None, limits=QUICK, during=None):  # noqa: PLR0913
    """Run a whole run and return its progress."""
    journal = Journal(path)

    async def whole():
        run = Run(generator, journal, Budget(price, spent=journal.cost, cap=cap), limits)
        if during is None:
            return await run.generate(tasks(count))
        running = asyncio.create_task(run.generate(tasks(count)))
        await until_async(during[0], "the run to come so far")
        during[1](run)
        return await running

    try:
        return asyncio.run(whole())
    finally:
        journal.close()


def test_a_finished_run_asks_nothing_again(tmp_path):
    """Every draft is bought once; the second run makes no call."""
    first, second = Scripted(), Scripted()
    assert generate(tmp_path / "d", first, 20).kept == 20
    again = generate(tmp_path / "d", second, 25)
    assert (first.calls, second.calls, again.kept, again.already) == (20, 5, 5, 20)


def test_every_outcome_is_kept_as_what_it_is(tmp_path):
    """Blocked, refused, empty, truncated and malformed answers were bought: never asked again."""
    outcomes = ["ok", "truncated", "blocked", "refused", "empty", "malformed"]
    generator = Scripted(*(Answer(outcome=outcome) for outcome in outcomes))
    progress = generate(tmp_path / "d", generator, 6, limits=Limits(concurrency=1))
    assert dict(progress.outcomes) == dict.fromkeys(outcomes, 1)
    assert [record["outcome"] for record in read_journal(tmp_path / "d")] == outcomes
    assert generate(tmp_path / "d", Scripted(), 6).kept == 0


def test_what_may_pass_is_tried_again(tmp_path):
    """A 429, a 503 and a lost connection are followed by the answer."""
    generator = Scripted(TryAgainError("429", retry_after=0.0), TryAgainError("503"), TryAgainError("lost"))
    assert generate(tmp_path / "d", generator, 1).kept == 1
    assert generator.calls == 4


def test_trying_again_ends(tmp_path):
    """After the last attempt the draft is counted as failed and the run goes on."""
    generator = Scripted(*(TryAgainError("503") for _ in range(6)))
    progress = generate(tmp_path / "d", generator, 3, limits=Limits(concurrency=1, first_wait=0.001))
    assert (progress.failed, progress.kept, generator.calls) == (1, 2, 8)


def test_a_no_for_good_is_not_tried_again(tmp_path):
    """A 400 costs one call; the other drafts are bought."""
    generator = Scripted(GenerationError("400"))
    progress = generate(tmp_path / "d", generator, 3)
    assert (progress.failed, progress.kept, generator.calls) == (1, 2, 3)


def test_many_refusals_in_a_row_end_the_run(tmp_path):
    """A wrong key is told after five calls, not after fifteen thousand."""
    generator = Scripted(*(GenerationError("the key is wrong") for _ in range(50)))
    with pytest.raises(GenerationError, match="the key is wrong"):
        generate(tmp_path / "d", generator, 50, limits=Limits(concurrency=1))
    assert generator.calls == 5


def test_the_asked_wait_is_kept(tmp_path, monkeypatch):
    """Retry-After decides how long to wait; else waits grow, with jitter, up to a limit."""
    waits = []

    async def record(_, seconds):
        waits.append(seconds)

    monkeypatch.setattr(running.Run, "_sleep", record)
    generator = Scripted(TryAgainError("429", retry_after=17.0), TryAgainError("500"))
    generate(tmp_path / "d", generator, 1, limits=Limits(first_wait=8.0))
    asked, grown = waits
    assert asked == 17.0
    assert 8.0 <= grown <= 24.0


def test_the_spend_cap_holds(tmp_path):
    """No draft is started that could pass the cap, whatever is in flight; the sum survives a restart."""
    price = Price(input=100.0, output=1000.0)  # each answer costs 0.2 dollars, at most 0.11 by estimate
    progress = generate(tmp_path / "d", Scripted(latency=0.001), 100, price=price, cap=2.0)
    assert progress.stopped == "the next draft could pass the spend cap"
    assert progress.spent <= 2.0 + 4 * 0.09  # the first four were underestimated
    spent = sum(record["cost"] for record in read_journal(tmp_path / "d"))
    assert spent == pytest.approx(progress.spent)
    again = generate(tmp_path / "d", Scripted(), 100, price=price, cap=2.0)
    assert again.kept == 0


def test_an_answer_of_unknown_length_costs_its_estimate():
    """A provider that does not count tokens is paid by estimate, never as free."""
    budget = Budget(Price(1.0, 1.0), spent=0.0, cap=None)
    reserved = budget.reserve(REQUEST)
    assert budget.settle(reserved, budget.price.cost(Answer(outcome="ok"))) == reserved > 0


def test_no_more_requests_are_in_flight_than_allowed(tmp_path):
    """Concurrency is a limit, and it is used."""
    generator = Scripted(gate=7)
    generate(tmp_path / "d", generator, 21, limits=Limits(concurrency=7))
    assert generator.most_in_flight == 7


def test_the_rate_is_a_limit(tmp_path):
    """At 6,000 a minute, twenty requests start at least a hundredth of a second apart."""
    starts = []

    class Timed(Scripted):
        async def generate(self, request):
            starts.append(asyncio.get_running_loop().time())
            return await super().generate(request)

    generate(tmp_path / "d", Timed(), 20, limits=Limits(concurrency=20, per_minute=6000))
    assert starts[-1] - starts[0] >= 19 * 0.01 - 0.005


def test_a_stop_waits_for_what_is_in_flight(tmp_path):
    """After Ctrl-C nothing new is asked, and everything asked is kept."""
    generator = Scripted(gate=4)
    stop = (lambda: generator.calls == 4, lambda run: run.stop("it was interrupted") or generator.open.set())
    generator.gate = 5  # the four wait until the stop was said
    progress = generate(tmp_path / "d", generator, 500, during=stop)
    assert progress.stopped == "it was interrupted"
    assert generator.calls == progress.kept == 4
    assert len(list(read_journal(tmp_path / "d"))) == progress.kept


def test_a_stop_does_not_wait_out_a_long_pause(tmp_path):
    """A run that waits for a provider ends when it is told to."""
    generator = Scripted(*(TryAgainError("429", retry_after=3600.0) for _ in range(4)))
    stop = (lambda: generator.calls == 4, lambda run: run.stop("it was interrupted"))
    progress = generate(tmp_path / "d", generator, 4, during=stop)
    assert (progress.kept, progress.failed) == (0, 4)


def test_a_full_disk_ends_the_run(tmp_path, monkeypatch):
    """When the journal cannot be written the run stops with that sentence; what was kept stays."""
    import os

    calls = []
    sync = os.fsync

    def full(handle):
        calls.append(handle)
        if len(calls) > 3:
            raise OSError(28, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInputError, match="make room and run again"):
        generate(tmp_path / "d", Scripted(latency=0.001), 200, limits=Limits(concurrency=2))
    monkeypatch.undo()
    assert len(list(read_journal(tmp_path / "d"))) >= 3


def test_a_failing_task_keeps_what_is_in_flight(tmp_path):
    """An error while a task is made is raised once the paid drafts beside it are on disk."""
    generator = Scripted(gate=4)

    def broken():
        yield from tasks(3)
        generator.gate = 3  # the three are in flight now
        generator.open.set()
        raise BadInputError("a file is broken")

    for _ in range(2):
        journal = Journal(tmp_path / "d")
        with pytest.raises(BadInputError, match="a file is broken"):
            asyncio.run(Run(generator, journal, Budget(FREE, cap=None), QUICK).generate(broken()))
        assert generator.calls == len(journal) == 3
        journal.close()


def test_a_fault_in_a_client_keeps_what_is_in_flight(tmp_path):
    """Even an error that nobody foresaw costs no draft that was paid for."""
    generator = Scripted(ZeroDivisionError("a fault"), gate=4)
    with pytest.raises(ZeroDivisionError):
        generate(tmp_path / "d", generator, 50)
    assert len(list(read_journal(tmp_path / "d"))) == generator.calls - 1 == 3


def test_a_wait_that_is_too_long_ends_the_run(tmp_path):
    """A provider that asks for more than an hour is not slept for; the run says what it asked."""
    generator = Scripted(None, TryAgainError("HTTP 429", retry_after=99_999_999.0))
    progress = generate(tmp_path / "d", generator, 50, limits=Limits(concurrency=1))
    assert (progress.kept, generator.calls) == (1, 2)
    assert progress.stopped == "HTTP 429, and not for another 2.78e+04 hours"


@pytest.mark.parametrize(
    "bad",
    [{"concurrency": 0}, {"attempts": 0}, {"per_minute": 0.0}, {"per_minute": float("nan")}],
)
def test_limits_that_let_nothing_through_are_refused(bad):
    """Zero of anything is a sentence."""
    with pytest.raises(BadInputError):
        Limits(**bad)


def test_a_price_is_two_numbers():
    """Anything else is refused with the form."""
    with pytest.raises(BadInputError, match="INPUT,OUTPUT"):
        read_price("cheap")


@pytest.mark.parametrize("money", [float("nan"), float("inf"), -0.01, 1e300])
def test_money_that_would_switch_the_cap_off_is_refused(money):
    """NaN makes every comparison false, a negative price earns: both are a sentence."""
    for price in ((money, 1.0), (1.0, money)):
        with pytest.raises(BadInputError, match="the price is"):
            Price(*price)
    if money != 1e300:
        with pytest.raises(BadInputError, match="the spend cap is"):
            Budget(FREE, cap=money)
