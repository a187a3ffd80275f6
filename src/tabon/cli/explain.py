"""`tabon explain`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import click

from tabon.cli.select import method_options, selection_settings
from tabon.cli.shared_options import (
    bank_option,
    encoder_option,
    name_of,
    no_store_option,
    reports_errors,
    store_option,
    takes,
)
from tabon.errors import BadInputError
from tabon.explain.explanation import NEIGHBOURS, explain_many
from tabon.explain.text import explanations_text
from tabon.method.bank import TransitionBank
from tabon.selectors.setup import SelectionSettings, make_selector
from tabon.service.explorer.export import write_report
from tabon.service.explorer.studies import ExplorerSettings, explorer_of
from tabon.text.records import BadLine, Query, read_queries

FEW, PAGEFUL = 5, 100  # queries that are explained on a terminal, and on a page, when none is named


@click.command()
@click.argument("queries", type=click.File("rb"))
@bank_option
@click.option("--id", "ids", multiple=True, help="Explain this query; may be given several times.")
@click.option("--draft", type=int, help="Explain this draft, numbered from 0, instead of the chosen one.")
@method_options
@click.option(
    "--show",
    type=click.IntRange(min=0),
    default=NEIGHBOURS,
    show_default=True,
    help="Training changes to show, at most -k.",
)
@click.option("--no-bank-text", is_flag=True, help="Show ids of training changes, not their text.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the explorer's page here, in one step.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a query.")
@encoder_option
@store_option
@no_store_option
@reports_errors
@takes(settings=selection_settings)
def explain(  # noqa: PLR0913  # each is an option
    *,
    queries: IO[bytes],
    bank: Path,
    ids: tuple[str, ...],
    html: Path | None,
    draft: int | None,
    show: int,
    settings: SelectionSettings,
    as_json: bool,
    no_bank_text: bool,
) -> None:
    """Say why a draft was chosen, for each query of QUERIES (JSON Lines; `-` reads standard input).

    Shows the draft's sentences beside the prior's (= same, ~ reworded, + new,
    - dropped), the share of each in the change that was compared, the nearest
    changes in the bank as text, and the distances of all drafts. Prints text,
    which holds report text, to standard output.
    """
    found = _asked_for(list(read_queries(queries)), ids, name_of(queries))
    shown = found if ids or (as_json and html is None) else found[: PAGEFUL if html else FEW]
    loaded = TransitionBank.load(bank)
    if html is not None:
        if draft is not None and not as_json:
            raise BadInputError("--draft does not count beside --html, which shows every draft; leave it out")
        how = ExplorerSettings(title="Why this draft", neighbours=show, bank_text=not no_bank_text)
        write_report(explorer_of(loaded, settings, shown, how), html)
        click.echo(f"wrote {html}", err=True)
    if as_json or html is None:
        selector = make_selector(loaded, settings)
        explained = explain_many(selector, shown, draft=draft, neighbours=show, bank_text=not no_bank_text)
        lines = (
            [json.dumps(one.as_record()) for one in explained] if as_json else [explanations_text(explained)]
        )
        for line in lines:
            click.echo(line)
    if len(shown) < len(found):
        click.echo(f"{len(shown)} of {len(found):,} queries are explained; name others with --id", err=True)


def _asked_for(found: Sequence[Query | BadLine], ids: tuple[str, ...], name: str) -> list[Query]:
    """Return the queries that were asked for, all where none is named; a bad line among them is an error."""
    if not found:
        raise BadInputError("the file holds no queries; write one JSON object a line")
    wanted = [line for line in found if not ids or line.id in ids]
    for line in wanted:
        if isinstance(line, BadLine):
            raise BadInputError(f"{name} line {line.number}: {line.message}")
    known = {line.id for line in wanted}
    for identity in ids:
        if identity not in known:
            raise BadInputError(f"{name} has no query {identity!r}; check --id")
    return [line for line in wanted if isinstance(line, Query)]
