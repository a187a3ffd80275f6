"""`tabon generate`."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import click

from tabon.cli.shared_options import reports_errors, takes, tell
from tabon.errors import BadInputError
from tabon.generation.batches import BatchLimits, BatchRun
from tabon.generation.journal import Journal, Kept, RecordFile, read_journal
from tabon.generation.prompts import get_prompt
from tabon.generation.protocol import Endpoint, Parameters
from tabon.generation.providers.command import words_of
from tabon.generation.providers.names import KEY_VARIABLES, ModelOptions, make_batch, make_generator
from tabon.generation.runner import FREE, Budget, Limits, Price, Progress, Run, Task, read_price
from tabon.generation.tasks import Asking, check_egress, count_studies, tasks


def _asking(  # noqa: PLR0913  # each is an option
    *,
    prompts: str,
    samples: int,
    temperature: float,
    top_p: float,
    max_tokens: int,
    seed: int,
    images: Path | None,
) -> Asking:
    """Return what is asked for each study."""
    return Asking(
        prompts=tuple(get_prompt(name) for name in prompts.split(",")),
        samples=samples,
        parameters=Parameters(temperature=temperature, top_p=top_p, max_tokens=max_tokens),
        seed=seed,
        images=images,
    )


def _model_options(model: str, base_url: str | None, command: str | None, timeout: float) -> ModelOptions:
    """Gather what a model needs; its key is read from the environment alone."""
    names = KEY_VARIABLES.get(model.partition(":")[0], ())
    return ModelOptions(
        api_key=next((os.environ[name] for name in names if os.environ.get(name)), None),
        base_url=base_url,
        command=words_of(command or ""),
        timeout=timeout,
    )


def _limits(concurrency: int, rate: float | None) -> Limits:
    """Return how fast to ask."""
    return Limits(concurrency=concurrency, per_minute=rate)


@click.command()
@click.argument("cohort", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--model", required=True, help="KIND:NAME, such as gemini:gemini-2.5-flash-lite, openai:NAME or smollm2."
)
@click.option("--prompt", "prompts", default="P1,P2,P3", show_default=True, help="P1, P2, P3 or P3-hardened.")
@click.option(
    "-n", "--samples", type=click.IntRange(min=1), default=5, show_default=True, help="Drafts a study (K)."
)
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The journal of drafts."
)
@click.option("--split", default="test", show_default=True, help="The split to write drafts for.")
@click.option(
    "--images",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of images; none: text only.",
)
@click.option("--temperature", default=1.0, show_default=True)
@click.option("--top-p", default=1.0, show_default=True)
@click.option("--max-tokens", default=512, show_default=True)
@click.option("--seed", default=0, show_default=True, help="Draws the drafts' seeds and P2's examples.")
@click.option("--concurrency", default=8, show_default=True, help="Requests in flight.")
@click.option("--rate", type=float, help="Requests a minute at most.")
@click.option("--price", help="Dollars per million tokens, INPUT,OUTPUT; a paid model without it is refused.")
@click.option("--cap", type=float, help="Dollars that the whole journal may cost.")
@click.option("--base-url", help="Of an OpenAI-compatible server, or another address of a provider.")
@click.option("--command", help="The command of a command:NAME model.")
@click.option("--timeout", default=120.0, show_default=True, help="Seconds to wait for one answer.")
@click.option("--batch", is_flag=True, help="Use the batch jobs of gemini or mistral; run again to fetch.")
@click.option("--dry-run", is_flag=True, help="Count and estimate; ask nothing.")
@reports_errors
@takes(asking=_asking, model_options=_model_options, limits=_limits)
def generate(  # noqa: PLR0913  # each is an option
    *,
    cohort: Path,
    out: Path,
    model: str,
    split: str,
    price: str | None,
    cap: float | None,
    batch: bool,
    dry_run: bool,
    asking: Asking,
    model_options: ModelOptions,
    limits: Limits,
) -> None:
    """Write drafts for every study of COHORT and keep each in a journal.

    A draft that the journal has is never asked for again, so an interrupted
    run goes on where it was. Keys come from the environment: GEMINI_API_KEY,
    MISTRAL_API_KEY, OPENAI_API_KEY.
    """
    make = make_batch if batch else make_generator
    generator: Endpoint = make(model, model_options)
    check_egress(cohort, generator)
    budget = Budget(price_of(generator, price), cap=cap)
    total = count_studies(cohort, split, asking) * len(asking.prompts) * asking.samples
    left_out: list[str] = []
    wanted = tasks(cohort, split, generator, asking, left_out)
    if dry_run:
        click.echo(json.dumps(estimate(wanted, out, budget.price), indent=2))
        check_left_out(left_out)
        return
    journal = Journal(out)
    say_mended(journal)
    try:
        budget.spent = journal.cost
        run = partial(make_run, generator, journal, budget, None if batch else limits)
        progress = asyncio.run(finished(generator, run, wanted, ProgressLine(total)))
    finally:
        journal.close()
    report(progress, out, left_out)


def say_mended(file: RecordFile) -> None:
    """Say what opening did to a file that a kill had left unfinished."""
    if file.mended is not None:
        click.echo(file.mended, err=True)


def make_run(generator: Any, journal: Journal, budget: Budget, limits: Limits | None) -> Run | BatchRun:  # noqa: ANN401
    """Return a run of single requests, or of a provider's batch jobs where these have no limits."""
    if limits is not None:
        return Run(generator, journal, budget, limits)
    ledger = journal.path.with_name(f"{journal.path.name}.batches")
    run = BatchRun(generator, journal, ledger, budget, BatchLimits())
    say_mended(run.ledger)
    return run


async def finished(
    generator: Endpoint,
    make: Callable[[], Run | BatchRun],
    wanted: Iterator[Task],
    on_progress: Callable[[Progress], None],
) -> Progress:
    """Run until all drafts are there, or until Ctrl-C: those in flight are waited for."""
    run = make()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, run.stop, "it was interrupted")
    try:
        return await run.generate(wanted, on_progress)
    finally:
        await generator.close()


class ProgressLine:
    """Shows how a run goes, where a person is watching."""

    def __init__(self, total: int) -> None:
        """Start the clock."""
        self._start, self._total = monotonic(), total

    def __call__(self, progress: Progress) -> None:
        """Write drafts, drafts a second, money and the time left on one line."""
        rate = max(progress.kept, 1) / max(monotonic() - self._start, 1e-9)
        left = (self._total - progress.kept - progress.already) / rate
        tell(f"{progress.kept} drafts, {rate:.1f}/s, ${progress.spent:.4f}, {left:.0f} s left")


def report(progress: Progress, out: Path, left_out: list[str]) -> None:
    """Print what a run did; what is missing is an error that names the way on."""
    record = {
        "kept": progress.kept,
        "already_there": progress.already,
        "failed": progress.failed,
        "left_out": len(left_out),
        "outcomes": dict(progress.outcomes),
        "spent": progress.spent,
    }
    click.echo(json.dumps(record))
    if progress.stopped is not None:
        raise BadInputError(
            f"the run stopped early: {progress.stopped}; {out} keeps every draft, run again to go on"
        )
    check_left_out(left_out)
    if progress.failed:
        raise BadInputError(f"{progress.failed} drafts could not be had; run again to ask for them")


def check_left_out(left_out: list[str]) -> None:
    """Say which studies got no drafts because of their files."""
    if left_out:
        raise BadInputError(
            f"{len(left_out)} studies were left out, the first because {left_out[0]}; then run again"
        )


def estimate(wanted: Iterator[Task], out: Path, price: Price) -> dict[str, Any]:
    """Count what a run would ask for and the most that it may cost; nothing is written."""
    kept = Kept()
    for record in read_journal(out) if out.exists() else ():
        kept.add(record)
    drafts, already, cost = 0, 0, 0.0
    for task in wanted:
        if task.key in kept:
            already += 1
        else:
            drafts += 1
            cost += price.most(task.request)
    return {
        "drafts": drafts,
        "already_there": already,
        "most_it_may_cost": cost,
        "spent_so_far": kept.cost,
    }


def price_of(generator: Endpoint, given: str | None) -> Price:
    """Return the price; a model that is reached over a network and has none is refused."""
    if given is not None:
        return read_price(given)
    if generator.reach == "local":
        return FREE
    raise BadInputError(
        f"the price of {generator.model} is not known; give --price INPUT,OUTPUT (dollars per million tokens)"
    )
