"""`tabon fit`."""

from pathlib import Path
from typing import IO

import click

from tabon.cli.shared_options import (
    bank_option,
    encoder_option,
    name_of,
    no_store_option,
    open_store,
    reports_errors,
    store_option,
    takes,
)
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import UnknownNameError
from tabon.evaluation import read_cases
from tabon.evaluation.fit import FITTED, read_lesson
from tabon.method.bank import TransitionBank
from tabon.metrics import METRICS, Metric, load_metric
from tabon.selectors.selector import bank_encoder
from tabon.selectors.weights import write_weights


@click.command("fit")
@click.argument("queries", type=click.File("rb"))
@bank_option
@click.option("--selector", default="fused", show_default=True, help=f"One of {', '.join(FITTED)}.")
@click.option(
    "--target", default="rouge-l-f", show_default=True, help="The score to agree with; several with commas."
)
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The weights to write."
)
@encoder_option
@store_option
@no_store_option
@reports_errors
@takes(store=open_store)
def fit_command(  # noqa: PLR0913  # each is an option
    *,
    queries: IO[bytes],
    bank: Path,
    out: Path,
    selector: str,
    target: str,
    encoder: str | None,
    store: SentenceStore | None,
) -> None:
    """Learn a selector's weights from QUERIES with references, such as the validation split.

    Use them with `tabon select --selector fused:WEIGHTS` (or learnt:WEIGHTS).
    Patients who were learnt from are refused there. Cross-validation says
    whether they beat `--selector fused`, which needs no weights.
    """
    opened = TransitionBank.load(bank)
    cases = read_cases(queries, name=name_of(queries))
    targets = {name.strip(): metric_of(name.strip()) for name in target.split(",")}
    lesson = read_lesson(
        selector,
        opened,
        cases.cases,
        targets,
        encoder=bank_encoder(opened, encoder),
        store=store,
    )
    fitted = lesson.fit()
    write_weights(out, fitted)
    click.echo(f"learnt from {fitted.queries} queries: {out}", err=True)
    click.echo(lesson.check(), err=True)


def metric_of(score: str) -> Metric:
    """Return the metric that measures a score."""
    family = score.removeprefix("corpus-").partition("-")[0].rstrip("+")
    if family in METRICS:
        metric = load_metric(family)
        if score in {each.name for each in metric.scores}:
            return metric
        raise UnknownNameError("score", score, [each.name for each in metric.scores])
    raise UnknownNameError("score", score, ["rouge-l-f", "labels-14-samples", "bleu-4", "meteor"])
