"""How commands print tables, and in which forms they write figures."""

import sys
from dataclasses import dataclass, replace

import click

from tabon._internal.extras import require
from tabon._internal.registry import check_name
from tabon.cli.shared_options import OneOf, names, option_group
from tabon.reporting.plots import FIGURE_FORMS
from tabon.reporting.tables import FORMS, Table, render

table_options = option_group(
    click.option(
        "--format",
        "table_format",
        type=OneOf(tuple(FORMS)),
        help="Of tables.  [default: text on a terminal, else markdown]",
    ),
    click.option("--no-notes", is_flag=True, help="Leave out the notes below tables."),
)
figures_option = click.option(
    "--figures",
    default="",
    help=f"Forms of figures: some of {', '.join(FIGURE_FORMS)}.  [default: svg if matplotlib is installed]",
)


def figure_forms(figures: str) -> tuple[str, ...]:
    """Read the forms that `--figures` names; what cannot be drawn is refused before the work."""
    forms = names(figures)
    for form in forms:
        check_name("figure form", FIGURE_FORMS, form)
        require("matplotlib", extra="plots", feature="matplotlib (for figures)")
    return forms


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """What the options say about tables."""

    table_format: str | None
    no_notes: bool

    def show(self, table: Table | None) -> None:
        """Print a table, if there is one."""
        if table is None:
            return
        form = self.table_format or ("text" if sys.stdout.isatty() else "markdown")
        click.echo(render(replace(table, notes=()) if self.no_notes else table, form))
