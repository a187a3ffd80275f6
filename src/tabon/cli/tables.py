"""How commands print tables."""

import sys
from dataclasses import dataclass, replace

import click

from tabon.cli.shared_options import option_group
from tabon.reporting.tables import FORMS, Table, render

table_options = option_group(
    click.option(
        "--format",
        "table_format",
        type=click.Choice(tuple(FORMS)),
        help="Of tables.  [default: text on a terminal, else markdown]",
    ),
    click.option("--no-notes", is_flag=True, help="Leave out the notes below tables."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """What the options say about tables."""

    table_format: str | None
    no_notes: bool

    def show(self, table: Table) -> None:
        """Print a table."""
        form = self.table_format or ("text" if sys.stdout.isatty() else "markdown")
        click.echo(render(replace(table, notes=()) if self.no_notes else table, form))
