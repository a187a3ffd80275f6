"""`tabon flags`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import IO

import click

from tabon.cli.evaluate import read_named_picks
from tabon.cli.shared_options import name_of, reports_errors
from tabon.errors import BadInputError
from tabon.evaluation.inputs import NOTHING
from tabon.explain.flags import query_flags
from tabon.text.records import read_queries, whole_query


@click.command("flags")
@click.argument("queries", type=click.File("rb"))
@click.option(
    "--selections",
    type=click.Path(dir_okay=False, path_type=Path),
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
