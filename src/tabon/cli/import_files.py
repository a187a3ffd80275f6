"""`tabon import`."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from tabon.cli.cohort import folder_option, priors_option, read_shares, sections_option
from tabon.cli.help import Command
from tabon.cli.shared_options import dry_run_option, json_option, reports_errors, takes
from tabon.data.cohort.build import audit_table
from tabon.data.cohort.link import Rules
from tabon.data.imports.columns import VISIT_SPELLINGS, role_map
from tabon.data.imports.dates import Order
from tabon.data.imports.draft_table import DRAFT_ROLES, read_draft_rows
from tabon.data.imports.import_cohort import ImportedCohort, import_cohort
from tabon.data.imports.visit_table import read_visit_rows
from tabon.errors import BadInputError
from tabon.text.file_kinds import BANK, RECORDS, first_line, kind_of

SHOWN_ROWS = 10  # of those that are left out; all are in excluded.jsonl
USUAL_SHARES = ",".join(map(str, Rules().shares))


def _rules(seed: int, sections: Literal["any", "both"], history: int, shares: str | None) -> Rules:
    """Return how visits are linked and splits drawn."""
    return Rules(seed=seed, sections=sections, history=history, shares=read_shares(shares or USUAL_SHARES))


@click.command(
    "import",
    cls=Command,
    example="tabon import visits.csv --drafts drafts.csv --out cohort --dry-run",
)
@click.argument("visits", type=click.Path(exists=True, path_type=Path))
@folder_option
@click.option(
    "--drafts",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of drafts; repeat it for one file per sample.",
)
@click.option(
    "--columns", default="", help="Which column is which, where names do not tell: patient=PID,date=When."
)
@click.option("--draft-columns", default="", help="The same for the drafts: study=Acc,text=Output.")
@click.option("--day-first", "order", flag_value="day-first", help="3/4/2019 is the 3rd of April.")
@click.option("--month-first", "order", flag_value="month-first", help="3/4/2019 is March the 4th.")
@click.option("--encoding", help="Of files that are neither UTF-8 nor UTF-16 with its mark.")
@click.option(
    "--shares", help=f"Train, valid and test shares if splits are drawn.  [default: {USUAL_SHARES}]"
)
@click.option(
    "--seed", default=0, show_default=True, help="Draws splits, and the view of a patient with both."
)
@sections_option
@priors_option
@dry_run_option
@json_option
@reports_errors
@takes(rules=_rules)
def import_command(  # noqa: PLR0913  # each is an option
    *,
    visits: Path,
    out: Path,
    drafts: tuple[Path, ...],
    columns: str,
    draft_columns: str,
    order: Order | None,
    encoding: str | None,
    shares: str | None,
    rules: Rules,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a cohort, and queries if there are drafts, of your own files.

    VISITS is a table with a row per report: patient, date, and findings and
    impression or the whole report: CSV, TSV, JSON, JSON Lines, Parquet or a
    spreadsheet. Columns are found by their names; what was guessed is printed.
    """
    _check_visits(visits)
    if any(file.samefile(visits) for file in drafts):
        raise click.UsageError("visits and drafts are one file; give --drafts what a model wrote")
    table = read_visit_rows(
        visits, columns=role_map(columns, VISIT_SPELLINGS), order=order, encoding=encoding
    )
    if shares and (drafts or table.has_splits):
        raise click.UsageError("--shares draws splits; here the split column or the drafts say them")
    given = role_map(draft_columns, DRAFT_ROLES)
    found = read_draft_rows(drafts, columns=given, order=order, visits_order=table.order, encoding=encoding)
    imported = import_cohort(table, found, None if dry_run else out, rules)
    click.echo(_json(imported) if as_json else "\n".join(_table(imported)))
    for line in _next_steps(imported, out, dry_run=dry_run):
        click.echo(line, err=True)


def _check_visits(path: Path) -> None:
    """Refuse a file that is past an import already."""
    if path.is_file():
        kind = kind_of(first_line(path), "visits")
        if kind in RECORDS or kind == BANK:
            raise BadInputError(
                f"{path} looks like {kind}, not visits; that needs no import, give a table of reports"
            )


def _table(imported: ImportedCohort) -> Iterator[str]:
    """Yield what was guessed, the audit, and the rows that were left out."""
    width = max(len(guess.what) for guess in imported.guesses) + 2
    yield from (f"{guess.what:<{width}}{guess.found}" for guess in imported.guesses)
    yield ""
    yield from audit_table(imported.audit, paper=False)
    yield from (f"queries, {split}: {count:,}" for split, count in imported.queries.items())
    if imported.drafts:
        yield f"drafts that are word for word the report: {imported.copies:,} of {imported.drafts:,}"
    for row in imported.excluded[:SHOWN_ROWS]:
        yield f"  {row.source.file}:{row.source.line} {row.reason}"
    if len(imported.excluded) > SHOWN_ROWS:
        yield f"  and {len(imported.excluded) - SHOWN_ROWS:,} more, all in excluded.jsonl"


def _json(imported: ImportedCohort) -> str:
    """Return everything as JSON."""
    record = {
        "guesses": [guess._asdict() for guess in imported.guesses],
        "audit": imported.audit,
        "excluded": [asdict(row) for row in imported.excluded],
    }
    return json.dumps(record, indent=2)


def _next_steps(imported: ImportedCohort, out: Path, *, dry_run: bool) -> Iterator[str]:
    """Yield what a user must know, and the command that comes next."""
    if imported.copies > imported.drafts / 2:
        yield (
            "note: most drafts are word for word what was really written; check which column the drafts' "
            "text is, and name it with --draft-columns text=NAME"
        )
    if not imported.audit["splits"]["train"]["transitions"]:
        yield "note: the training split is empty, so no bank can be built of it; add patients without drafts"
    elif dry_run:
        yield "nothing was written; leave out --dry-run to write it"
    elif imported.queries:
        queries = out / ("test" if "test" in imported.queries else "valid") / "queries.jsonl"
        bank = out / "train/transitions.jsonl"
        yield f"next: tabon compare {queries} --bank {bank} --selector fused --selector paper --out compared"
    else:
        yield f"next: tabon bank build {out / 'train/transitions.jsonl'} --out {out / 'bank.tabon'}"
