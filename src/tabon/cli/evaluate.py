"""`tabon evaluate`."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

import click

from tabon.cli.shared_options import (
    measurements_option,
    name_of,
    no_measurements_option,
    open_measurements,
    reports_errors,
    takes,
    tell,
)
from tabon.errors import BadInputError, UnknownNameError
from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases, read_picks
from tabon.evaluation.draft_scores import STATE
from tabon.evaluation.inputs import check_picks
from tabon.evaluation.results import write_results
from tabon.metrics import METRICS, Metric, load_metrics
from tabon.metrics.protocol import MeasurementStore
from tabon.reporting.tables import statistics_table
from tabon.reporting.tables.render import render

DEFAULT_METRICS = "bleu,rouge,meteor,chrf,labels,temporal"


def _words(text: str) -> tuple[str, ...]:
    """Read a list of names."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _settings(*, resamples: int, seed: int, random_seeds: str, headline: str) -> EvaluationSettings:
    """Return how to evaluate."""
    try:
        seeds = tuple(int(word) for word in _words(random_seeds))
    except ValueError:
        raise BadInputError(f"{random_seeds!r} is not a list of whole numbers; write 0,1,2") from None
    return EvaluationSettings(resamples=resamples, seed=seed, random_seeds=seeds, headline=_words(headline))


@click.command("evaluate")
@click.argument("queries", type=click.File("rb"))
@click.option(
    "--selections",
    multiple=True,
    help="[NAME=]FILE, what `tabon select` printed for QUERIES; may be given many times.",
)
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The results to write."
)
@click.option("--metrics", default=DEFAULT_METRICS, show_default=True, help=f"Some of {', '.join(METRICS)}.")
@click.option(
    "--model",
    "models",
    multiple=True,
    help="METRIC=FOLDER[@sha256:SUM], the local files of a metric; may be repeated.",
)
@click.option("--resamples", default=10_000, show_default=True, help="Bootstrap resamples and swaps.")
@click.option("--seed", default=0, show_default=True, help="Draws the resamples and the swaps.")
@click.option("--random-seeds", default="0,1,2,3,4", show_default=True, help="Of the random baseline.")
@click.option("--headline", default="", help="Scores of the headline family, for Holm. Default: all.")
@click.option("--show", default="rouge-l-f", show_default=True, help="The score whose table is printed.")
@measurements_option
@no_measurements_option
@reports_errors
@takes(settings=_settings, store=open_measurements)
def evaluate_command(  # noqa: PLR0913  # each is an option
    *,
    queries: IO[bytes],
    selections: tuple[str, ...],
    out: Path,
    metrics: str,
    models: tuple[str, ...],
    show: str,
    settings: EvaluationSettings,
    store: MeasurementStore | None,
) -> None:
    """Say what selections for QUERIES are worth against their references.

    Every draft is measured once; every selector is then an index into that
    table, put beside the expected random pick and the oracle of each score. A
    metric that cannot be measured here is named and left out, never 0.
    """
    names, folders = _words(metrics), dict(_model(text) for text in models)
    if not names or folders.keys() - set(names):
        raise BadInputError(
            "--metrics names no metric, or --model one that is not measured; name it in --metrics"
        )
    cases = read_cases(queries, name=name_of(queries))
    picks = tuple(read_named_picks(text) for text in selections)
    for found, text in zip(picks, selections, strict=True):
        check_picks(found, cases.cases, name=text)
    loaded, missing = load_metrics(names, folders)
    run = RunInput(name=cases.fact("model") or "drafts", cases=cases, picks=picks)
    if not missing:
        check_scores(loaded, (show, *settings.headline))
    results = evaluate([run], loaded, settings, missing=missing, store=store, on_progress=tell)
    write_results(out, results)
    for section in results.sections():
        if any(cell.section == section and cell.score == show for cell in results.cells):
            click.echo(render(statistics_table(results, section, show), "markdown"))
    for name, reason in results.missing.items():
        click.echo(f"{name} is not measured: {reason}", err=True)
    if cases.left_out:
        click.echo(f"{cases.left_out} queries have no reference or no drafts and are left out", err=True)


def check_scores(metrics: Sequence[Metric], scores: Iterable[str]) -> None:
    """Refuse a score that no metric measures."""
    known = [score.name for metric in metrics for score in metric.scores] + [STATE]
    for score in scores:
        if score not in known:
            raise UnknownNameError("score", score, known)


def read_named_picks(text: str) -> Picks:
    """Read [NAME=]FILE."""
    name, equals, path = ("", "", text) if Path(text).exists() else text.partition("=")
    file = Path(path if equals else text)
    if str(file) == "-":
        return read_picks(sys.stdin.buffer, name="standard input", method=name if equals else None)
    try:
        with file.open("rb") as lines:
            return read_picks(lines, name=str(file), method=name if equals else None)
    except OSError as error:
        raise BadInputError(f"{file} cannot be read ({error.strerror}); name a selections file") from None


def _model(text: str) -> tuple[str, Path]:
    """Read METRIC=FOLDER."""
    name, equals, folder = text.partition("=")
    if not equals:
        raise BadInputError(f"--model {text!r} names no folder; write METRIC=FOLDER")
    return name, Path(folder)
