"""`tabon calibrate` and `tabon fit`."""

from pathlib import Path
from typing import IO

import click

from tabon.cli.help import Command
from tabon.cli.select import method_options, takes_selection
from tabon.cli.shared_options import (
    NAMES,
    bank_option,
    embedding_options,
    name_of,
    open_store,
    out_option,
    reports_errors,
    search_option,
    takes,
)
from tabon.encoders.sentence_store import SentenceStore
from tabon.evaluation import read_cases
from tabon.evaluation.fit import FITTED, read_lesson
from tabon.method.bank import TransitionBank
from tabon.metrics import load_scores
from tabon.selectors.abstention import from_queries, write_calibration
from tabon.selectors.selector import bank_encoder
from tabon.selectors.setup import SelectionSettings, make_selector
from tabon.selectors.weights import write_weights
from tabon.text.records import read_query_lines, whole_query


@click.command(cls=Command, example="tabon calibrate queries.jsonl --bank bank.tabon --out calibration.json")
@click.argument("queries", type=click.File("rb"))
@bank_option
@method_options
@out_option("The calibration to write.")
@search_option
@embedding_options
@reports_errors
@takes_selection()
def calibrate(queries: IO[bytes], bank: Path, out: Path, settings: SelectionSettings) -> None:
    """Learn from QUERIES how implausible the picks of a method usually are.

    Use queries of the same generator with the same number of drafts, of patients
    that are not selected for later, such as the validation split. Then
    `tabon select --calibration FILE --abstain 0.1` abstains in about a tenth
    of similar cases: the least plausible.
    """
    selector = make_selector(TransitionBank.load(bank), settings)
    name = name_of(queries)
    asked = [whole_query(query, name=name) for query in read_query_lines(queries, name=name)]
    calibration = from_queries(selector.select_many(asked))
    write_calibration(out, calibration)
    counts = ", ".join(f"{len(values)} with {kind}" for kind, values in calibration.distances.items())
    click.echo(f"calibrated on {counts}: {out}", err=True)


@click.command(
    "fit",
    cls=Command,
    example="tabon fit queries.jsonl --bank bank.tabon --target rouge-l-f --out weights.json",
)
@click.argument("queries", type=click.File("rb"))
@bank_option
@click.option("--selector", default="fused", show_default=True, help=f"One of {', '.join(FITTED)}.")
@click.option(
    "--target",
    type=NAMES,
    default="rouge-l-f",
    show_default=True,
    help="The score to agree with; several with commas.",
)
@out_option("The weights to write.")
@embedding_options
@reports_errors
@takes(store=open_store)
def fit_command(  # noqa: PLR0913  # each is an option
    *,
    queries: IO[bytes],
    bank: Path,
    out: Path,
    selector: str,
    target: tuple[str, ...],
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
    targets = {name: metric for name, (metric, _) in load_scores(target).items()}
    embedder = bank_encoder(opened, encoder)
    lesson = read_lesson(selector, opened, cases.cases, targets, encoder=embedder, store=store)
    fitted = lesson.fit()
    write_weights(out, fitted)
    click.echo(f"learnt from {fitted.queries} queries: {out}", err=True)
    click.echo(lesson.check(), err=True)
