"""`tabon reproduce` and `tabon table`."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from tabon.cli.generate import drafts, generate, limit_option
from tabon.cli.help import Command
from tabon.cli.preflight import preflight
from tabon.cli.shared_options import (
    FOLDER,
    open_store,
    progress_bar,
    reports_errors,
    show_progress,
    store_options,
    takes,
)
from tabon.cli.tables import TableForm, figure_forms, figures_option, table_options
from tabon.errors import BadInputError
from tabon.reporting.experiment import (
    Dependencies,
    Experiment,
    read_experiment,
    reproduce,
    simulated_experiment,
)
from tabon.reporting.experiment.evaluation import metrics_of
from tabon.reporting.experiment.files import is_first, plan_of, read_whole_results, tables_of, write_report
from tabon.reporting.experiment.plan import RunPlan
from tabon.reporting.experiment.runner import JOURNAL
from tabon.reporting.tables import merge_results, render


@click.command("reproduce", cls=Command, example="tabon reproduce --dry-run")
@click.argument("experiment", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=FOLDER,
    help="Default: EXPERIMENT/output, or reproduction.",
)
@limit_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Say what it takes and check that nothing lacks: cohort, images, models, keys, prices, encoder, "
    "weights. Exit status 1 if something does.",
)
@click.option("--no-notes", is_flag=True, help="Leave out the notes below tables.")
@figures_option
@store_options
@reports_errors
@takes(figures=figure_forms)
def reproduce_command(  # noqa: PLR0913  # each is an option
    experiment: Path | None,
    out: Path | None,
    *,
    figures: tuple[str, ...],
    limit: int | None,
    dry_run: bool,
    no_notes: bool,
    store: Path | None,
    no_store: bool,
) -> None:
    """Run, or go on with, the experiment of a folder and write all its tables.

    EXPERIMENT is a folder with experiment.toml; without one the paper's grid is
    run on a simulated cohort, offline. What is there already, made from the
    same inputs, is not made again. With --limit the tables are in OUT/trial-N,
    and the drafts in the same journal as always: they are not paid for twice.
    """
    plan = simulated_experiment() if experiment is None else read_experiment(experiment)
    folder = out or (Path("reproduction") if experiment is None else plan.root / "output")
    _, missing = metrics_of(plan)
    if dry_run:
        found = preflight(plan, folder, missing, limit=limit)
        click.echo("\n".join(found.lines))
        for lack in found.lacking:
            click.echo(f"missing: {lack}", err=True)
        if found.lacking:
            raise BadInputError("not everything is there, see above; nothing was paid for")
        return
    for name, reason in missing.items():
        click.echo(f"{name} is not measured: {reason}", err=True)
    journal = folder / JOURNAL
    folder = folder / f"trial-{limit}" if limit else folder
    with progress_bar("embedding sentences") as progress:
        dependencies = Dependencies(
            write_drafts=None if plan.cohort.patients else partial(generate_drafts, plan, journal, limit),
            store=open_store(store, no_store=no_store),
            progress=progress,
            on_progress=show_progress,
            limit=limit,
        )
        results = reproduce(plan, folder, dependencies)
    files = write_report(results, folder, every=True, notes=not no_notes, figures=figures)
    for table in tables_of(results, plan_of(results)[0]):
        if table.label.startswith("tab:avg"):
            click.echo(render(replace(table, notes=()) if no_notes else table, "markdown"))
    click.echo(f"wrote {len(files)} files, {folder / 'report.html'}", err=True)


def generate_drafts(plan: Experiment, journal: Path, limit: int | None, run: RunPlan, queries: Path) -> None:
    """Write the drafts that the journal lacks, then the queries, through the commands that do so."""
    context, cohort = click.get_current_context(), plan.root / plan.cohort.folder
    shared = {"cohort": cohort, "samples": plan.drafts.samples, "split": plan.cohort.split, "limit": limit}
    context.invoke(
        generate,
        **shared,
        out=journal,
        model=run.model,
        prompts=run.prompt,
        images=plan.root / plan.drafts.images if plan.drafts.images else None,
        temperature=plan.drafts.temperature,
        max_tokens=plan.drafts.max_tokens,
        seed=plan.drafts.seed,
        price=run.price or None,
        cap=plan.drafts.cap or None,
        base_url=run.base_url or None,
        command=run.command or None,
    )
    context.invoke(drafts, **shared, journal=journal, model=run.model, prompt=run.prompt, out=queries)


@click.command("table", cls=Command, example="tabon table results.json --out tables")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@table_options
@click.option("--only", help="Print only the tables whose label holds this, such as avg-findings.")
@click.option("--all", "every", is_flag=True, help="All tables, as the paper has them; files in all forms.")
@click.option("--out", type=FOLDER, help="Write the tables, the figures and report.html to this folder.")
@figures_option
@reports_errors
@takes(form=TableForm, figures=figure_forms)
def table(
    results: tuple[Path, ...],
    form: TableForm,
    only: str | None,
    out: Path | None,
    figures: tuple[str, ...],
    *,
    every: bool,
) -> None:
    """Make tables from stored RESULTS; nothing is measured again.

    Shows the headline and selectors against each other. Several files are put
    together; scores or selectors with two signatures are refused.
    """
    if figures and out is None:
        raise click.UsageError("--figures writes files; name a folder with --out")
    found = [read_whole_results(path) for path in results]
    merged = merge_results(found) if len(found) > 1 else found[0]
    if out is not None:
        files = write_report(merged, out, every=every, notes=not form.no_notes, figures=figures)
        click.echo(f"wrote {len(files)} files, {out / 'report.html'}", err=True)
        return
    plan, _ = plan_of(merged)
    tables = tables_of(merged, plan)
    shown = [each for each in tables if (only in each.label if only else every or is_first(each))]
    if not shown:
        labels = ", ".join(each.label for each in tables)
        raise BadInputError(f"no table's label holds {only!r}; there are {labels}")
    for each in shown:
        form.show(each)
