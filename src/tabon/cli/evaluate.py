"""`tabon evaluate`."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from tabon.cli.shared_options import default_cache, name_of, reports_errors, tell
from tabon.errors import BadInputError, UnknownNameError
from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases, read_picks
from tabon.evaluation.draft_scores import STATE
from tabon.evaluation.picks import check_picks
from tabon.evaluation.results import Results, write_results
from tabon.metrics import METRICS, Metric, load_metrics
from tabon.metrics.store import MeasurementStore
from tabon.reporting.tables import statistics_table
from tabon.reporting.tables.render import render

DEFAULT_METRICS = "bleu,rouge,meteor,chrf,labels,temporal"


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
@click.option(
    "--measurements",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where statistics are kept between runs. Default: the user's cache folder.",
)
@click.option("--no-measurements", is_flag=True, help="Keep no statistics between runs.")
@reports_errors
def evaluate_command(queries: Any, selections: tuple[str, ...], out: Path, **options: Any) -> None:  # noqa: ANN401
    """Say what selections for QUERIES are worth against their references.

    Every draft is measured once; every selector is then an index into that
    table, put beside the expected random pick and the oracle of each score. A
    metric that cannot be measured here is named and left out, never 0.
    """
    names = _words(options["metrics"])
    models = dict(_model(text) for text in options["models"])
    if not names or models.keys() - set(names):
        raise BadInputError(
            "--metrics names no metric, or --model one that is not measured; name it in --metrics"
        )
    cases = read_cases(queries, name=name_of(queries))
    picks = tuple(read_named_picks(text) for text in selections)
    for found, text in zip(picks, selections, strict=True):
        check_picks(found, cases.cases, name=text)
    metrics, missing = load_metrics(names, models)
    settings = EvaluationSettings(
        resamples=options["resamples"],
        seed=options["seed"],
        random_seeds=_numbers(options["random_seeds"]),
        headline=_words(options["headline"]),
    )
    store = None
    if not options["no_measurements"]:
        store = MeasurementStore(options["measurements"] or default_cache() / "measurements.sqlite")
    run = RunInput(name=cases.fact("model") or "drafts", cases=cases, picks=picks)
    if not missing:
        check_scores(metrics, (options["show"], *settings.headline))
    results = evaluate([run], metrics, settings, missing=missing, store=store, on_progress=tell)
    write_results(out, results)
    _show(results, options["show"])
    if cases.left_out:
        click.echo(f"{cases.left_out} queries have no reference or no drafts and are left out", err=True)


def _show(results: Results, score: str) -> None:
    """Print the statistics of one score in every section that has it, and name what is not measured."""
    for section in results.sections():
        if any(cell.section == section and cell.score == score for cell in results.cells):
            click.echo(render(statistics_table(results, section, score), "markdown"))
    for name, reason in results.missing.items():
        click.echo(f"{name} is not measured: {reason}", err=True)


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


def _words(text: str) -> tuple[str, ...]:
    """Read a list of names."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _numbers(text: str) -> tuple[int, ...]:
    """Read a list of whole numbers."""
    try:
        return tuple(int(word) for word in _words(text))
    except ValueError:
        raise BadInputError(f"{text!r} is not a list of whole numbers; write 0,1,2") from None
