"""`tabon explain` and `tabon flags`."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO

import click

from tabon.cli.evaluate import read_named_picks
from tabon.cli.select import method_options, takes_selection
from tabon.cli.shared_options import (
    FILE,
    bank_option,
    embedding_options,
    name_of,
    no_bank_text_option,
    reports_errors,
)
from tabon.errors import BadInputError
from tabon.evaluation.picks import NOTHING
from tabon.explain.explanation import NEIGHBOURS, explain_many
from tabon.explain.flags import query_flags
from tabon.explain.text import explanations_text
from tabon.method.bank import TransitionBank
from tabon.selectors.setup import SelectionSettings, make_selector
from tabon.service.explorer import ExplorerSettings, explorer_of, write_report
from tabon.text.records import BadLine, Query, read_queries, whole_query

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
@no_bank_text_option
@click.option("--html", type=FILE, help="Write the explorer's page here, in one step.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a query.")
@embedding_options
@reports_errors
@takes_selection()
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
        if as_json:
            for one in explained:
                click.echo(json.dumps(one.as_record()))
        else:
            click.echo(explanations_text(explained))
    if len(shown) < len(found):
        click.echo(f"{len(shown)} of {len(found):,} queries are explained; name others with --id", err=True)


def _asked_for(found: Sequence[Query | BadLine], ids: tuple[str, ...], name: str) -> list[Query]:
    """Return the queries that were asked for, all if none is named; a bad line among them is an error."""
    if not found:
        raise BadInputError("the file holds no queries; write one JSON object a line")
    wanted = [whole_query(line, name=name) for line in found if not ids or line.id in ids]
    known = {query.id for query in wanted}
    for identity in ids:
        if identity not in known:
            raise BadInputError(f"{name} has no query {identity!r}; check --id")
    return wanted


@click.command("flags")
@click.argument("queries", type=click.File("rb"))
@click.option(
    "--selections",
    type=FILE,
    help="Look at the chosen drafts alone: what `tabon select` printed for QUERIES.",
)
@reports_errors
def flags_command(queries: IO[bytes], selections: Path | None) -> None:
    """Print what a reader should look at in each draft of QUERIES.

    One JSON object a draft that has flags: dropped or denied findings, findings
    that few drafts support, change words that contradict the prior, sides that
    flip, copied priors, empty or chatty drafts; each with the sentences
    concerned, counted from 0. No report text is printed.
    """
    picks = None if selections is None else read_named_picks(str(selections))
    chosen = None if picks is None else picks.chosen
    count = answered = 0
    for line in read_queries(queries):
        query = whole_query(line, name=name_of(queries))
        count += 1
        answered += chosen is not None and query.id in chosen
        only = None if chosen is None else chosen.get(query.id, NOTHING)
        for draft in range(len(query.candidates)):
            if only in (None, draft) and (flags := query_flags(query, draft)):
                record = {"id": query.id, "draft": draft, "flags": [asdict(flag) for flag in flags]}
                click.echo(json.dumps(record))
    if count == 0:
        raise BadInputError(f"{name_of(queries)} holds no queries; write one JSON object a line")
    if chosen is not None and answered == 0:
        raise BadInputError(f"{selections} answers none of the queries; give the selections made for them")
