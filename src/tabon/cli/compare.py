"""`tabon compare`."""

from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

import click

from tabon._internal.atomic_files import replacing
from tabon.cli.evaluate import (
    load_wanted,
    say_what_is_left_out,
    scoring_options,
    show_comparison,
    shown_score,
    takes_scoring,
)
from tabon.cli.help import Command
from tabon.cli.select import write_selections
from tabon.cli.shared_options import (
    FOLDER,
    SELECTOR,
    embedding_options,
    progress_bar,
    reports_errors,
    show_progress,
    store_path,
)
from tabon.cli.tables import TableForm, figure_forms, figures_option
from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases, read_picks
from tabon.evaluation.outside_scores import OutsideScore
from tabon.evaluation.results import REFERENCES, Results, read_results, write_results
from tabon.method.bank import TransitionBank, build_bank_file
from tabon.metrics.protocol import MeasurementStore
from tabon.reporting.experiment.files import group_of, plan_of, tables_of, write_report
from tabon.reporting.experiment.runner import RESULTS, Steps, file_digest
from tabon.reporting.tables.places import slug
from tabon.selectors import SELECTORS
from tabon.selectors.scorer import PAPER
from tabon.selectors.setup import SelectionSettings, make_selector
from tabon.text.file_kinds import check_kind, first_line
from tabon.text.records import read_transitions


@click.command(
    "compare",
    cls=Command,
    example="tabon compare queries.jsonl --bank bank.tabon --selector fused --selector paper --out compared",
)
@click.argument("queries", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--bank",
    required=True,
    type=click.Path(path_type=Path),
    help="A bank made by `tabon bank build`, or transitions (.jsonl) to build one from, in OUT.",
)
@click.option(
    "--selector",
    "selectors",
    type=SELECTOR,
    multiple=True,
    required=True,
    help=f"As in `tabon select`: {PAPER} or one of {', '.join(SELECTORS)}; may be repeated.",
)
@click.option("--out", required=True, type=FOLDER, help="The folder to write to, or to go on with.")
@click.option("--allow-bank-patients", is_flag=True, help="Answer queries of patients who are in the bank.")
@scoring_options
@figures_option
@embedding_options
@reports_errors
@takes_scoring(store=store_path, selection=SelectionSettings, figures=figure_forms)
def compare_command(  # noqa: PLR0913  # each is an option
    *,
    queries: Path,
    bank: Path,
    selectors: tuple[str, ...],
    out: Path,
    form: TableForm,
    metrics: str,
    models: tuple[str, ...],
    show: str | None,
    figures: tuple[str, ...],
    plan: bool,
    plan_file: Path | None,
    settings: EvaluationSettings,
    outside: tuple[OutsideScore, ...],
    selection: SelectionSettings,
    measurements: MeasurementStore | None,
) -> None:
    """Say which of some selectors does best on QUERIES, and whether that is more than chance.

    Each selector picks once into OUT/selections; results.json, report.html and
    the tables are written beside them. Run it again with another selector: what
    is there already, made from the same queries and bank, is not made again.
    """
    files = {name: out / "selections" / f"{slug(name)}.jsonl" for name in selectors}
    if len(set(files.values())) < len(selectors) or {*REFERENCES} & {*selectors}:
        raise BadInputError(
            "a selector is named twice, or is the random pick, which is always in the table; leave it out"
        )
    loaded, missing = load_wanted(metrics, models, outside, (*filter(None, [show]), *settings.headline))
    with queries.open("rb") as lines:
        cases = read_cases(lines, name=str(queries))
    steps = _steps(out, bank, len(files))
    transitions = _bank(bank, out / "bank.tabon", selection, steps)
    picks = tuple(
        _picks(path, replace(selection, selector=name), transitions, queries, steps)
        for name, path in files.items()
    )
    signatures = [metric.signature for metric in loaded] + [score.signature for score in outside]
    inputs = {
        "picks": {name: file_digest(path) for name, path in files.items()},
        "measured": [cases.sha256, signatures, missing],
        "settings": [asdict(settings), version("tabon"), None if plan_file is None else str(plan_file)],
    }

    def judge() -> None:
        run = RunInput(name=cases.fact("model") or "drafts", cases=cases, picks=picks)
        found = evaluate(
            [run], loaded, settings, missing=missing, outside=outside, plan=plan_file, store=measurements,
            on_progress=show_progress,
        )  # fmt: skip
        write_results(out / RESULTS, found)

    steps.make(out / RESULTS, inputs, judge)
    results = read_results(out / RESULTS)
    written = write_report(results, out, notes=not form.no_notes, figures=figures)
    _show(results, shown_score(results, show), form, plan=plan)
    say_what_is_left_out(results, cases)
    click.echo(f"wrote {len(written)} files, {out / 'report.html'}", err=True)


def _steps(out: Path, bank: Path, selectors: int) -> Steps:
    """Begin in OUT, or go on there; a bank that is to be built must be of transitions."""
    is_built = bank.suffix == ".jsonl"
    if is_built:
        check_kind(first_line(bank), "transitions", str(bank))
    out.mkdir(parents=True, exist_ok=True)
    return Steps(out, total=selectors + 1 + is_built, on_progress=show_progress)


def _show(results: Results, score: str, form: TableForm, *, plan: bool) -> None:
    """Print the headline tables, who is ahead by a score, and the plan; count the studies without a pick."""
    for table in tables_of(results, plan_of(results)[0]):
        if group_of(table) == "headline":
            form.show(table)
    show_comparison(results, score, form, plan=plan)
    for name, count in results.runs[0].abstained.items():
        if count:
            click.echo(f"{name} picks nothing for {count} of {results.runs[0].studies} studies", err=True)


def _bank(path: Path, built: Path, settings: SelectionSettings, steps: Steps) -> TransitionBank:
    """Load a bank, or build one from transitions."""
    if path.suffix != ".jsonl":
        return TransitionBank.load(path)
    encoder = settings.encoder or "minilm"
    store = None if settings.store is None else SentenceStore(settings.store)

    def build() -> None:
        with path.open("rb") as lines, progress_bar("embedding sentences") as progress:
            found = read_transitions(lines, name=str(path))
            build_bank_file(found, built, encoder=load_encoder(encoder), store=store, progress=progress)

    steps.make(built, [file_digest(path), encoder], build)
    return TransitionBank.load(built)


def _picks(
    path: Path, settings: SelectionSettings, bank: TransitionBank, queries: Path, steps: Steps
) -> Picks:
    """Read a selector's picks; make them where they are not there, or of other queries or another bank."""
    selector = make_selector(bank, settings)

    def choose() -> None:
        with queries.open("rb") as lines, replacing(path) as file:
            write_selections(selector, lines, file, str(queries))

    inputs = [file_digest(queries), bank.sha256, selector.signature, settings.allow_bank_patients]
    steps.make(path, inputs, choose)
    return read_picks(path.read_bytes().splitlines(), name=str(path), method=settings.selector)
