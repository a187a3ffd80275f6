"""`tabon table`."""

from pathlib import Path

import click

from tabon.cli.shared_options import reports_errors
from tabon.errors import BadInputError
from tabon.reporting.experiment.files import plan_of, read_whole_results, tables_of, write_report
from tabon.reporting.tables import FORMS, merge_results, render


@click.command("table")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(tuple(FORMS)), default="markdown", show_default=True)
@click.option("--only", help="Print only the tables whose label holds this, such as avg-findings.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write all tables in all forms, the pictures and report.html to this folder instead.",
)
@reports_errors
def table(results: tuple[Path, ...], form: str, only: str | None, out: Path | None) -> None:
    """Make tables from stored RESULTS; nothing is measured again.

    Several files are put together; scores or selectors with two signatures are
    refused.
    """
    found = [read_whole_results(path) for path in results]
    merged = merge_results(found) if len(found) > 1 else found[0]
    if out is not None:
        files = write_report(merged, out)
        click.echo(f"wrote {len(files)} files, {out / 'report.html'}", err=True)
        return
    plan, _ = plan_of(merged)
    shown = [each for each in tables_of(merged, plan) if only is None or only in each.label]
    if not shown:
        labels = ", ".join(each.label for each in tables_of(merged, plan))
        raise BadInputError(f"no table's label holds {only!r}; there are {labels}")
    for each in shown:
        click.echo(render(each, form))
