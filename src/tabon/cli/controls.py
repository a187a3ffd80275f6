"""`tabon controls`."""

from pathlib import Path
from typing import IO

import click

from tabon.cli.shared_options import (
    bank_option,
    embedding_options,
    measurements_options,
    name_of,
    names,
    open_measurements,
    open_store,
    out_option,
    reports_errors,
    show_progress,
    takes,
)
from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.evaluation import read_cases
from tabon.evaluation.controls import (
    CONDITIONS,
    DEFAULT_SCORES,
    DEFAULT_SELECTORS,
    ControlSettings,
    Dependencies,
    run_controls,
)
from tabon.evaluation.results import write_results
from tabon.method.bank import TransitionBank
from tabon.metrics.store import MeasurementStore
from tabon.reporting.controls_table import controls_table, factorial_table
from tabon.reporting.tables import FORMS, render


@click.command("controls")
@click.argument("queries", type=click.File("rb"))
@bank_option
@out_option("The results to write.")
@click.option(
    "--selector",
    "selectors",
    multiple=True,
    help=f"As in `tabon select`; may be repeated. Default: {', '.join(DEFAULT_SELECTORS)}.",
)
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    default=tuple(CONDITIONS),
    help=f"What is changed: some of {', '.join(CONDITIONS)}. Default: all.",
)
@click.option(
    "--against",
    multiple=True,
    type=click.File("rb"),
    help="Other drafts of the same studies, such as made without the prior; may be repeated.",
)
@click.option(
    "--score",
    "scores",
    type=names,
    metavar="TEXT",
    default=",".join(DEFAULT_SCORES),
    show_default=True,
    help="Scores to compare by.",
)
@click.option("--seed", default=0, show_default=True, help="Draws resamples, exchanges of priors, patients.")
@click.option("--resamples", default=10_000, show_default=True, help="Bootstrap resamples of patients.")
@click.option("--shuffles", default=5, show_default=True, help="Exchanges of priors that are averaged.")
@click.option(
    "--other-encoder", default="", help="For the swap. Default: hashing, or minilm if the bank's is hashing."
)
@click.option("--allow-bank-patients", is_flag=True, help="Answer queries of patients who are in the bank.")
@click.option("--format", "form", type=click.Choice(tuple(FORMS)), default="markdown", show_default=True)
@embedding_options
@measurements_options
@reports_errors
@takes(settings=ControlSettings, store=open_store, measurements=open_measurements)
def controls_command(  # noqa: PLR0913  # each is an option
    *,
    queries: IO[bytes],
    bank: Path,
    out: Path,
    against: tuple[IO[bytes], ...],
    form: str,
    encoder: str | None,
    store: SentenceStore | None,
    measurements: MeasurementStore | None,
    settings: ControlSettings,
) -> None:
    """Try selectors on QUERIES with one thing changed at a time.

    Does the prior matter, or would another patient's do? Does the section, the
    encoder, the splitter, the length of the pick? How much bank, how many
    drafts, how many neighbours does it take? All in one table with intervals.
    QUERIES must carry references.
    """
    dependencies = Dependencies(
        encoder=None if encoder is None else load_encoder(encoder),
        store=store,
        measurements=measurements,
        on_progress=show_progress,
    )
    files = [read_cases(lines, name=name_of(lines)) for lines in (queries, *against)]
    results = run_controls(files, TransitionBank.load(bank), settings, dependencies)
    write_results(out, results)
    click.echo(render(controls_table(results), form))
    factorial = factorial_table(results)
    if factorial is not None:
        click.echo(render(factorial, form))
    for file in files:
        if file.left_out:
            click.echo(
                f"{file.left_out} queries of {file.name} have no reference or no drafts and are left out",
                err=True,
            )
