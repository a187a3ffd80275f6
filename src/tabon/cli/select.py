"""`tabon select`."""

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import click

from tabon.atomic_files import replacing
from tabon.bank import TransitionBank
from tabon.cli.shared_options import encoder_option, no_store_option, open_store, says_no, store_option
from tabon.distances import DISTANCES
from tabon.errors import BadInputError
from tabon.records import BadLine, Query, read_queries
from tabon.scoring import AGGREGATES, ZERO_POLICIES
from tabon.selection import ABSTENTIONS
from tabon.selector import Selector

QUERIES_AT_ONCE = 256


@click.command()
@click.argument("queries", type=click.File("rb"))
@click.option(
    "--bank", required=True, type=click.Path(path_type=Path), help="A bank made by `tabon bank build`."
)
@click.option("--distance", default="novelty", show_default=True, help=f"One of {', '.join(DISTANCES)}.")
@click.option("--aggregate", default="min", show_default=True, help=f"One of {', '.join(AGGREGATES)}.")
@click.option("-k", "--neighbours", type=int, default=10, show_default=True, help="Neighbours of knn.")
@click.option(
    "--zero",
    default="neutral",
    show_default=True,
    help=f"How a draft without change is scored: one of {', '.join(ZERO_POLICIES)}.",
)
@click.option("--allow-bank-patients", is_flag=True, help="Answer queries of patients who are in the bank.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write here instead, in one step."
)
@encoder_option
@store_option
@no_store_option
@says_no
def select(queries: Any, bank: Path, out: Path | None, **options: Any) -> None:  # noqa: ANN401
    """Pick one draft for each query of QUERIES (JSON Lines; `-` reads standard input).

    Prints one JSON object a query, in the order of the file. A query that
    cannot be answered is named on standard error, the others are answered all
    the same, and the exit status is 1.
    """
    selector = Selector(
        TransitionBank.load(bank),
        distance=options["distance"],
        aggregate=options["aggregate"],
        num_neighbours=options["neighbours"],
        zero=options["zero"],
        encoder=options["encoder"],
        store=open_store(options["store"], no_store=options["no_store"]),
        allow_bank_patients=options["allow_bank_patients"],
    )
    if out is None:
        failures = write_selections(selector, queries, sys.stdout.buffer)
    else:
        with replacing(out) as file:
            failures = write_selections(selector, queries, file)
    if failures:
        raise BadInputError(
            f"{failures} of the queries in {queries.name} were not answered; see the lines above"
        )


def write_selections(selector: Selector, lines: Iterable[bytes], out: IO[bytes]) -> int:
    """Answer queries in lots and return how many could not be answered."""
    failures = count = 0
    for lot in _lots(read_queries(lines)):
        bad = [line for line in lot if isinstance(line, BadLine)]
        good = [query for query in lot if isinstance(query, Query)]
        failures += len(bad)
        count += len(lot)
        for line in bad:
            click.echo(f"line {line.number}: {line.message}", err=True)
        for query, selection in zip(good, selector.select_many(good), strict=True):
            record = {**query.facts, **selection.as_record(query.id)}
            out.write(json.dumps(record).encode() + b"\n")
            if selection.abstained is not None:
                failures += 1
                click.echo(f"query {query.id!r}: {ABSTENTIONS[selection.abstained]}", err=True)
        out.flush()
    if count == 0:
        raise BadInputError("the file holds no queries; write one JSON object a line")
    return failures


def _lots(items: Iterator[Query | BadLine]) -> Iterator[list[Query | BadLine]]:
    """Cut a stream into lists."""
    while lot := list(islice(items, QUERIES_AT_ONCE)):
        yield lot
