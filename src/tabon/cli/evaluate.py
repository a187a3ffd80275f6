"""`tabon evaluate`, `tabon risk` and `tabon controls`."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import IO

import click

from tabon.cli.help import Command
from tabon.cli.shared_options import (
    FILE,
    NAMES,
    SELECTOR,
    bank_option,
    embedding_options,
    measurements_options,
    name_of,
    names,
    open_measurements,
    open_store,
    option_group,
    out_option,
    reports_errors,
    show_progress,
    takes,
)
from tabon.cli.tables import TableForm, table_options
from tabon.data.imports.source_rows import read_rows
from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases, read_picks
from tabon.evaluation.controls import (
    CONDITIONS,
    DEFAULT_SCORES,
    DEFAULT_SELECTORS,
    ControlSettings,
    Dependencies,
    run_controls,
)
from tabon.evaluation.evaluate import HEADLINE, check_scores
from tabon.evaluation.inputs import Cases, check_picks
from tabon.evaluation.outside_scores import OutsideScore, read_scores
from tabon.evaluation.results import Results, write_results
from tabon.evaluation.subgroups import GROUPINGS
from tabon.method.bank import TransitionBank
from tabon.metrics import DEFAULT_METRICS, METRICS, Metric, load_metrics
from tabon.metrics.protocol import MeasurementStore
from tabon.reporting.controls_table import controls_table, factorial_table
from tabon.reporting.tables import (
    margin_sentence,
    pair_sentence,
    planning_table,
    statistics_table,
    subgroups_table,
)
from tabon.reporting.tables.places import plan_notes, score_name


def read_outside(score_files: tuple[Path, ...]) -> tuple[OutsideScore, ...]:
    """Read the files that `--scores` names."""
    tables = map(read_rows, score_files)
    return tuple(score for table in tables for score in read_scores(table.name, table.placed()))


def _seeds(random_seeds: str) -> tuple[int, ...]:
    """Read the seeds of the random baseline."""
    try:
        return tuple(map(int, names(random_seeds)))
    except ValueError:
        raise BadInputError(f"{random_seeds!r} is not a list of whole numbers; write 0,1,2") from None


scores_option = click.option(
    "--scores",
    "score_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A table of scores from elsewhere: id, draft, name, value, direction (higher or lower).",
)
scoring_options = option_group(
    click.option(
        "--metrics",
        default=",".join(DEFAULT_METRICS),
        show_default=True,
        help=f"Some of {', '.join(METRICS)}.",
    ),
    click.option(
        "--metric-files",
        "models",
        multiple=True,
        help="METRIC=FOLDER[@sha256:SUM], the local files of a metric; may be repeated.",
    ),
    scores_option,
    click.option(
        "--resamples", default=10_000, show_default=True, help="Bootstrap resamples, swaps of tests."
    ),
    click.option("--seed", default=0, show_default=True, help="Draws the resamples and the swaps."),
    click.option("--random-seeds", default="0,1,2,3,4", show_default=True, help="Of the random baseline."),
    click.option(
        "--headline",
        type=NAMES,
        default="",
        help=f"Scores of the headline family, for Holm. Default: {', '.join(HEADLINE)} where measured.",
    ),
    click.option(
        "--by",
        multiple=True,
        help=f"Groups of studies: {', '.join(GROUPINGS)}, or any key of the queries; may be repeated.",
    ),
    click.option(
        "--analysis-plan",
        "plan_file",
        type=FILE,
        help="Written before anything is scored: what is compared; if it is there, what differs is named.",
    ),
    click.option(
        "--margin", type=float, help="Say who is not worse by this share of the gap (non-inferiority): 0.05."
    ),
    click.option(
        "--plan",
        is_flag=True,
        help="Say how many patients would show which difference, from the spread found here.",
    ),
    click.option(
        "--curves",
        type=NAMES,
        default="",
        help="Scores to draw K-curves and over-optimisation of (the paper's methods).",
    ),
    click.option("--show", help="The score to look at.  [default: the first of the headline]"),
    table_options,
    measurements_options,
)
takes_scoring = partial(
    takes,
    outside=read_outside,
    random_seeds=_seeds,
    settings=EvaluationSettings,
    measurements=open_measurements,
    form=TableForm,
)


@click.command(
    "evaluate",
    cls=Command,
    example="tabon evaluate queries.jsonl --selections fused=chosen.jsonl --out results.json",
)
@click.argument("queries", type=click.File("rb"))
@click.option(
    "--selections",
    multiple=True,
    help="[NAME=]FILE, what `tabon select` printed for QUERIES; may be given many times.",
)
@out_option("The results to write.")
@scoring_options
@reports_errors
@takes_scoring()
def evaluate_command(  # noqa: PLR0913  # each is an option
    *,
    queries: IO[bytes],
    selections: tuple[str, ...],
    out: Path,
    metrics: str,
    models: tuple[str, ...],
    show: str | None,
    plan: bool,
    plan_file: Path | None,
    form: TableForm,
    settings: EvaluationSettings,
    outside: tuple[OutsideScore, ...],
    measurements: MeasurementStore | None,
) -> None:
    """Say what selections for QUERIES are worth against their references.

    Every draft is measured once; every selector is then an index into that
    table, put beside the expected random pick and the oracle of each score. A
    metric that cannot be measured here is named and left out, never 0.
    """
    loaded, missing = load_wanted(metrics, models, outside, (*filter(None, [show]), *settings.headline))
    cases = read_cases(queries, name=name_of(queries))
    picks = tuple(read_named_picks(text) for text in selections)
    for found, text in zip(picks, selections, strict=True):
        check_picks(found, cases.cases, name=text)
    run = RunInput(name=cases.fact("model") or "drafts", cases=cases, picks=picks)
    results = evaluate(
        [run],
        loaded,
        settings,
        missing=missing,
        outside=outside,
        plan=plan_file,
        store=measurements,
        on_progress=show_progress,
    )
    write_results(out, results)
    shown = shown_score(results, show)
    for section in results.sections():
        if any(cell.section == section and cell.score == shown for cell in results.cells):
            form.show(statistics_table(results, section, shown, score_name(shown)))
    show_comparison(results, shown, form, plan=plan)
    say_what_is_left_out(results, cases)


def load_wanted(
    metrics: str, models: Sequence[str], outside: Sequence[OutsideScore], scores: Sequence[str]
) -> tuple[list[Metric], dict[str, str]]:
    """Load the metrics that options name; refuse scores that nothing has, or two things have."""
    wanted, folders = names(metrics), dict(_model(text) for text in models)
    if not wanted or folders.keys() - set(wanted):
        raise BadInputError(
            "--metrics names no metric, or --metric-files one that is not measured; name it in --metrics"
        )
    loaded, missing = load_metrics(wanted, folders)
    check_scores(scores, loaded, missing, outside)
    return loaded, missing


def shown_score(results: Results, show: str | None) -> str:
    """Return the score to look at: what was asked for if it is measured, else the first that is."""
    wanted = (*filter(None, [show]), *results.headline, *results.scores)
    return next(score for score in wanted if score in results.scores)


def show_comparison(results: Results, score: str, form: TableForm, *, plan: bool) -> None:
    """Print who is ahead by a score in groups of studies and in all, and how many patients would show it."""
    for section in results.sections():
        form.show(subgroups_table(results, section, {score_name(score): score}))
    margin = results.settings.get("margin")
    for pair in results.pairs:
        if pair.score == score:
            click.echo(pair_sentence(pair))
            if margin is not None:
                click.echo(margin_sentence(pair, margin))
    for section in results.sections() if plan else ():
        form.show(planning_table(results, section, score))


def say_what_is_left_out(results: Results, cases: Cases) -> None:
    """Name departures from the plan and metrics that are not measured; count queries that are left out."""
    for note in plan_notes(results):
        click.echo(note, err=True)
    for name, reason in results.missing.items():
        click.echo(f"{name} is not measured: {reason}", err=True)
    if cases.left_out:
        click.echo(f"{cases.left_out} queries have no reference or no drafts and are left out", err=True)


def read_named_picks(text: str) -> Picks:
    """Read [NAME=]FILE."""
    method, equals, path = ("", "", text) if Path(text).exists() else text.partition("=")
    file, name = Path(path if equals else text), method if equals else None
    if str(file) == "-":
        return read_picks(sys.stdin.buffer, name="standard input", method=name)
    try:
        with file.open("rb") as lines:
            return read_picks(lines, name=str(file), method=name)
    except OSError as error:
        raise BadInputError(f"{file} cannot be read ({error.strerror}); name a selections file") from None


def _model(text: str) -> tuple[str, Path]:
    """Read METRIC=FOLDER."""
    name, equals, folder = text.partition("=")
    if not equals:
        raise BadInputError(f"--metric-files {text!r} names no folder; write METRIC=FOLDER")
    return name, Path(folder)


@click.command(
    "controls",
    cls=Command,
    example="tabon controls queries.jsonl --bank bank.tabon --condition prior --out controls.json",
)
@click.argument("queries", type=click.File("rb"))
@bank_option
@out_option("The results to write.")
@click.option(
    "--selector",
    "selectors",
    type=SELECTOR,
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
    type=NAMES,
    default=",".join(DEFAULT_SCORES),
    show_default=True,
    help="Scores to compare by.",
)
@click.option("--seed", default=0, show_default=True, help="Draws resamples, exchanges of priors, patients.")
@click.option("--resamples", default=10_000, show_default=True, help="Bootstrap resamples, swaps of tests.")
@click.option("--shuffles", default=5, show_default=True, help="Exchanges of priors that are averaged.")
@click.option(
    "--other-encoder", default="", help="For the swap. Default: hashing, or minilm if the bank's is hashing."
)
@click.option("--allow-bank-patients", is_flag=True, help="Answer queries of patients who are in the bank.")
@table_options
@embedding_options
@measurements_options
@reports_errors
@takes(settings=ControlSettings, store=open_store, measurements=open_measurements, form=TableForm)
def controls_command(  # noqa: PLR0913  # each is an option
    *,
    queries: IO[bytes],
    bank: Path,
    out: Path,
    against: tuple[IO[bytes], ...],
    form: TableForm,
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
    form.show(controls_table(results))
    form.show(factorial_table(results))
    for file in files:
        if file.left_out:
            click.echo(
                f"{file.left_out} queries of {file.name} have no reference or no drafts and are left out",
                err=True,
            )
