"""`tabon card`: a card of results, or a reporting checklist."""

from pathlib import Path

import click

from tabon.cli.help import Command
from tabon.cli.shared_options import FOLDER, OneOf, reports_errors
from tabon.evaluation.results import read_results
from tabon.reporting.cards import (
    CHECKLISTS,
    cohort_facts,
    journal_facts,
    read_checklist,
    results_card,
    results_facts,
    write_checklist,
)


@click.command(cls=Command, example="tabon card results.json --cohort cohort")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--journal", type=click.Path(path_type=Path), help="The journal of `tabon generate`.")
@click.option("--cohort", type=FOLDER, help="The cohort folder of `tabon cohort` or `tabon import`.")
@click.option(
    "--checklist", type=OneOf(CHECKLISTS), help="Print this reporting checklist instead of the card."
)
@reports_errors
def card(results: Path, journal: Path | None, cohort: Path | None, checklist: str | None) -> None:
    """Print a card of RESULTS as Markdown, or a reporting checklist filled as far as the files know.

    What only you can say is named. Nothing of a report is printed.
    """
    found = read_results(results)
    facts = {
        **results_facts(found),
        **(journal_facts(journal) if journal else {}),
        **(cohort_facts(cohort) if cohort else {}),
    }
    written = write_checklist(read_checklist(checklist), facts) if checklist else results_card(found, facts)
    click.echo(written, nl=False)
