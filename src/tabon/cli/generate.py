"""`tabon generate` and `tabon drafts`: drafts of a model into a journal, and from there into queries."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import click

from tabon._internal.atomic_files import replacing
from tabon._internal.record_file import RecordFile
from tabon.cli.help import Command
from tabon.cli.shared_options import (
    FOLDER,
    POSITIVE,
    SECONDS,
    num_drafts_option,
    out_option,
    reports_errors,
    show_progress,
    takes,
)
from tabon.errors import BadInputError
from tabon.generation.batches import BatchLimits, BatchRun
from tabon.generation.journal import Journal, Kept, read_journal
from tabon.generation.prompts import Prompt, get_prompt
from tabon.generation.protocol import Endpoint, Parameters
from tabon.generation.providers.command import words_of
from tabon.generation.providers.names import (
    KEY_VARIABLES,
    ModelOptions,
    make_batch,
    make_generator,
    missing_key,
)
from tabon.generation.queries import JoinCounts, queries_from
from tabon.generation.runner import FREE, Budget, Limits, Price, Progress, Run, Task, read_price
from tabon.generation.tasks import Asking, check_egress, count_studies, read_split, tasks
from tabon.text.file_kinds import JOURNAL, check_kind, first_line

COHORT = click.Path(exists=True, file_okay=False, path_type=Path)
split_option = click.option("--split", default="test", show_default=True, help="The split with drafts.")


limit_option = click.option("--limit", type=POSITIVE, help="The first studies of the split alone: a trial.")
NO_KEY = "none"  # where nothing is asked


def _prompts(prompts: str) -> tuple[Prompt, ...]:
    """Look the prompts up."""
    return tuple(map(get_prompt, prompts.split(",")))


def model_options_of(
    model: str, base_url: str | None, command: str | None, timeout: float = 120.0
) -> ModelOptions:
    """Gather what a model needs; its key is read from the environment alone."""
    names = KEY_VARIABLES.get(model.partition(":")[0], ())
    return ModelOptions(
        api_key=next((os.environ[name] for name in names if os.environ.get(name)), None),
        base_url=base_url,
        command=words_of(command or ""),
        timeout=timeout,
    )


@click.command(
    cls=Command,
    example="tabon generate cohort --model smollm2 --prompt P3 -n 5 --out journal.jsonl --dry-run",
)
@click.argument("cohort", type=COHORT)
@click.option(
    "--model", required=True, help="KIND:NAME, such as gemini:gemini-2.5-flash-lite, openai:NAME or smollm2."
)
@click.option("--prompt", "prompts", default="P1,P2,P3", show_default=True, help="P1, P2, P3 or P3-hardened.")
@num_drafts_option("samples")
@out_option("The journal of drafts.")
@split_option
@click.option("--images", type=FOLDER, help="The folder of images; none: text only.")
@click.option("--temperature", default=1.0, show_default=True, help="Of sampling; 0: the likeliest words.")
@click.option("--top-p", default=1.0, show_default=True, help="Share of likely words to sample from.")
@click.option("--max-tokens", default=512, show_default=True, help="Of one draft.")
@click.option("--seed", default=0, show_default=True, help="Draws the drafts' seeds and P2's examples.")
@click.option("--concurrency", default=8, show_default=True, help="Requests in flight.")
@click.option("--rate", "per_minute", type=float, help="Requests a minute at most.")
@click.option("--price", help="Dollars per million tokens, INPUT,OUTPUT; a paid model without it is refused.")
@click.option("--cap", type=float, help="Dollars that the whole journal may cost.")
@click.option("--base-url", help="Of an OpenAI-compatible server, or another address of a provider.")
@click.option("--command", help="The command of a command:NAME model.")
@click.option(
    "--timeout", type=SECONDS, default=120.0, show_default=True, help="Seconds to wait for one answer."
)
@click.option("--batch", is_flag=True, help="Use the batch jobs of gemini or mistral; run again to fetch.")
@limit_option
@click.option("--dry-run", is_flag=True, help="Count and estimate; needs no key and no permission.")
@reports_errors
@takes(model_options=model_options_of, prompts=_prompts, parameters=Parameters, asking=Asking, limits=Limits)
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
    given = replace(model_options, api_key=model_options.api_key or NO_KEY) if dry_run else model_options
    generator: Any = make(model, given)
    lacking = list(what_lacks(cohort, model, model_options, generator, price))
    if lacking and not dry_run:
        raise BadInputError(lacking[0])
    budget = Budget(FREE if price is None else read_price(price), cap=cap)
    total = count_studies(cohort, split, asking) * len(asking.prompts) * asking.samples
    left_out: list[str] = []
    wanted = tasks(cohort, split, generator, asking, left_out)
    if dry_run:
        found = estimate(wanted, out, None if price is None else budget.price, generator)
        click.echo(json.dumps({**found, "needs": lacking}, indent=2))
        check_left_out(left_out)
        return
    journal = Journal(out)
    say_mended(journal)
    try:
        budget.spent = journal.cost
        run: Run | BatchRun
        if batch:
            ledger = journal.path.with_name(f"{journal.path.name}.batches")
            run = BatchRun(generator, journal, ledger, budget, BatchLimits())
            say_mended(run.ledger)
        else:
            run = Run(generator, journal, budget, limits)
        progress = asyncio.run(finished(generator, run, wanted, total))
    finally:
        journal.close()
    report(progress, out, left_out)


def what_lacks(
    cohort: Path, model: str, options: ModelOptions, generator: Endpoint, price: str | None
) -> Iterator[str]:
    """Say what a run needs beside its files: a key, permission to send the reports, a price."""
    if (key := missing_key(model, options)) is not None:
        yield key
    try:
        check_egress(cohort, generator)
    except BadInputError as error:
        yield str(error)
    if price is None and generator.reach != "local":
        yield (
            f"the price of {generator.model} is not known; give --price INPUT,OUTPUT (dollars per million "
            "tokens)"
        )


def say_mended(file: RecordFile) -> None:
    """Say what opening did to a file that a kill had left unfinished."""
    if file.mended is not None:
        click.echo(file.mended, err=True)


async def finished(generator: Endpoint, run: Run | BatchRun, wanted: Iterator[Task], total: int) -> Progress:
    """Run until all drafts are there, or until Ctrl-C: those in flight are waited for."""
    start, loop = monotonic(), asyncio.get_running_loop()

    def on_progress(progress: Progress) -> None:
        """Show drafts, drafts a second, money and the time left on one line."""
        rate = max(progress.kept, 1) / max(monotonic() - start, 1e-9)
        left = (total - progress.kept - progress.already) / rate
        show_progress(f"{progress.kept} drafts, {rate:.1f}/s, ${progress.spent:.4f}, {left:.0f} s left")

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, run.stop, "it was interrupted")
    try:
        return await run.generate(wanted, on_progress)
    finally:
        await generator.close()


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


def estimate(wanted: Iterator[Task], out: Path, price: Price | None, generator: Endpoint) -> dict[str, Any]:
    """Count what a run would ask for and the most that it may cost, if that is known; nothing is written."""
    kept = Kept()
    for record in read_journal(out) if out.exists() else ():
        kept.add(record)
    at_most = price or FREE
    estimated = {"drafts": 0, "already_there": 0, "most_it_may_cost": 0.0, "spent_so_far": kept.cost}
    for task in wanted:
        if task.key in kept:
            estimated["already_there"] += 1
        else:
            estimated["drafts"] += 1
            estimated["most_it_may_cost"] += at_most.most(task.request)
    unknown = price is None and generator.reach != "local"
    return {**estimated, "most_it_may_cost": None} if unknown else estimated


@click.command(cls=Command, example="tabon drafts journal.jsonl --cohort cohort --out queries.jsonl")
@click.argument("journal", type=click.Path(path_type=Path))
@click.option("--cohort", required=True, type=COHORT, help="The folder that drafts were generated for.")
@click.option("--model", help="Of which model, where the journal has several.")
@click.option("--prompt", help="Under which prompt, where the journal has several.")
@num_drafts_option("samples")
@split_option
@limit_option
@out_option("The queries to write.")
@reports_errors
def drafts(  # noqa: PLR0913  # each is an option
    *,
    journal: Path,
    cohort: Path,
    out: Path,
    model: str | None,
    prompt: str | None,
    samples: int,
    split: str,
    limit: int | None,
) -> None:
    """Join a JOURNAL of drafts with its cohort into queries for `tabon select`."""
    chosen = choose(journal, model, prompt)
    by_study: dict[str, list[dict[str, Any]]] = {}
    for record in read_journal(journal):
        if (record["model"], record["prompt"]) == chosen:
            kept = {name: record[name] for name in ("model", "prompt", "sample", "outcome", "text")}
            by_study.setdefault(str(record["study"]), []).append(kept)
    counts = JoinCounts()
    with replacing(out) as file:
        for query in queries_from(
            islice(read_split(cohort, split), limit),
            lambda study: by_study.get(study, []),
            expected=samples,
            counts=counts,
            model=chosen[0],
            prompt=chosen[1],
        ):
            file.write(json.dumps(query).encode() + b"\n")
    click.echo(json.dumps(counts.record()))


def choose(journal: Path, model: str | None, prompt: str | None) -> tuple[str, str]:
    """Return the one configuration that is meant."""
    if journal.is_file():
        check_kind(first_line(journal), JOURNAL, str(journal))
    found = Counter((record["model"], record["prompt"]) for record in read_journal(journal))
    meant = [pair for pair in found if model in (None, pair[0]) and prompt in (None, pair[1])]
    if len(meant) != 1:
        shown = "; ".join(f"--model {name} --prompt {text}" for name, text in sorted(found)) or "nothing"
        raise BadInputError(f"{journal} holds {shown}; choose one of them")
    return meant[0]
