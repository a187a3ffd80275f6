"""`tabon select`."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

import click

from tabon.atomic_files import replacing
from tabon.bank import TransitionBank
from tabon.calibration import Calibration, abstaining, from_bank, read_calibration
from tabon.cli.shared_options import (
    bank_option,
    encoder_option,
    name_of,
    no_store_option,
    open_bank,
    open_store,
    says_no,
    search_option,
    store_option,
    tell,
)
from tabon.distances import DISTANCES
from tabon.errors import BadInputError, EncoderError, TransportError
from tabon.records import BadLine, Query, read_queries
from tabon.scoring import AGGREGATES, ZERO_POLICIES
from tabon.selection import ABSTENTIONS, Selection
from tabon.selector import Selector
from tabon.selectors import SELECTORS, PoolSelector, load_scorer
from tabon.sentence_store import SentenceStore

QUERIES_AT_ONCE = 256
PAPER = "paper"


class Chooser(Protocol):
    """Anything that answers queries."""

    def select_many(self, queries: list[Query]) -> list[Selection]:
        """Choose for many queries."""


METHOD_OPTIONS = (
    click.option(
        "--selector",
        default=PAPER,
        show_default=True,
        help=f"{PAPER} (the options below), or one of {', '.join(SELECTORS)}, with a variant after a colon.",
    ),
    click.option("--distance", default="novelty", show_default=True, help=f"One of {', '.join(DISTANCES)}."),
    click.option("--aggregate", default="min", show_default=True, help=f"One of {', '.join(AGGREGATES)}."),
    click.option("-k", "--neighbours", type=int, default=10, show_default=True, help="Neighbours of knn."),
    click.option(
        "--zero",
        default="neutral",
        show_default=True,
        help=f"How a draft without change is scored: one of {', '.join(ZERO_POLICIES)}.",
    ),
    click.option(
        "--history",
        type=float,
        default=0.0,
        show_default=True,
        help="Weight of each prior against the next newer one; 0 looks at the newest alone.",
    ),
    click.option(
        "--allow-bank-patients", is_flag=True, help="Answer queries of patients who are in the bank."
    ),
)


def method_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a selector."""
    for option in reversed(METHOD_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("queries", type=click.File("rb"))
@bank_option
@method_options
@click.option(
    "--abstain",
    type=float,
    help="Choose nothing where the pick's p is at most this: about the share of like cases left out.",
)
@click.option(
    "--calibration",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Made by `tabon calibrate`; without it the bank's own transitions calibrate (paper only).",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Write here instead, in one step.",
)
@search_option
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
    store = open_store(options["store"], no_store=options["no_store"])
    selector: Chooser = selector_of(open_bank(bank, options["search"]), options, store)
    if options["abstain"] is not None or options["calibration"] is not None:
        selector = _Abstaining(selector, options["calibration"], options["abstain"] or 0.0)
    if out is None or str(out) == "-":
        failures = write_selections(selector, queries, sys.stdout.buffer)
    else:
        with replacing(out) as file:
            failures = write_selections(selector, queries, file)
    if failures:
        raise BadInputError(
            f"{failures} of the queries in {name_of(queries)} were not answered; see the lines above"
        )


def selector_of(
    bank: TransitionBank, options: Mapping[str, Any], store: SentenceStore | None
) -> Selector | PoolSelector:
    """Return the selector that the options name."""
    name, history = options["selector"], options["history"]
    shared = {
        "encoder": options["encoder"],
        "store": store,
        "allow_bank_patients": options["allow_bank_patients"],
    }
    if name == PAPER and not history:
        return Selector(
            bank,
            distance=options["distance"],
            aggregate=options["aggregate"],
            num_neighbours=options["neighbours"],
            zero=options["zero"],
            **shared,
        )
    if name == PAPER:
        name = f"transition:{options['distance']}/{options['aggregate']}"
        _refuse(("neighbours", "zero"), "--history")
    else:
        _refuse(("distance", "aggregate", "neighbours", "zero"), f"--selector {name}")
    return PoolSelector(bank, load_scorer(name, bank), history=history, **shared)


def _refuse(options: Iterable[str], beside: str) -> None:
    """Refuse options of the paper's method that would not count here."""
    context = click.get_current_context()
    for option in options:
        if context.get_parameter_source(option) == click.core.ParameterSource.COMMANDLINE:
            shown = "-k" if option == "neighbours" else f"--{option}"
            raise BadInputError(f"{shown} does not count beside {beside}; leave one of them out")


class _Abstaining:
    """A selector that says nothing where the pick is too strange."""

    def __init__(self, selector: Chooser, calibration: Path | None, rate: float) -> None:
        """Read the calibration, or make one from the bank."""
        self._selector, self._rate = selector, rate
        self._calibration = self._calibrated(calibration)

    def select_many(self, queries: list[Query]) -> list[Selection]:
        """Choose, or abstain."""
        return abstaining(self._selector.select_many(queries), self._calibration, self._rate)

    def _calibrated(self, path: Path | None) -> Calibration:
        """Return what is usual."""
        if path is not None:
            return read_calibration(path)
        if isinstance(self._selector, Selector):
            return from_bank(self._selector)
        raise BadInputError(
            "only the paper's method without --history calibrates on the bank; give --calibration FILE, made "
            "with `tabon calibrate`"
        )


def write_selections(selector: Chooser, lines: Iterable[bytes], out: IO[bytes]) -> int:
    """Answer queries in lots and return how many could not be answered."""
    failures = count = 0
    for lot in _lots(read_queries(lines)):
        count += len(lot)
        for line in lot:
            if isinstance(line, BadLine):
                failures += _refused(line)
        for query, answer in _answers(selector, [query for query in lot if isinstance(query, Query)]):
            if isinstance(answer, Selection):
                record = {**query.facts, **answer.as_record(query.id)}
                out.write(json.dumps(record).encode() + b"\n")
            failures += _unanswered(query, answer)
        out.flush()
        tell(f"{count:,} queries")
    if count == 0:
        raise BadInputError("the file holds no queries; write one JSON object a line")
    return failures


def _answers(
    selector: Chooser, queries: list[Query]
) -> Iterator[tuple[Query, Selection | EncoderError | TransportError]]:
    """Answer a lot at once; where that fails, one by one, so that one query cannot stop the others."""
    try:
        selections = selector.select_many(queries)
    except (EncoderError, TransportError) as error:
        if len(queries) == 1:
            yield queries[0], error
            return
        for query in queries:
            yield from _answers(selector, [query])
    else:
        yield from zip(queries, selections, strict=True)


def _refused(line: BadLine) -> int:
    """Name a line that could not be read, and count it."""
    query = "" if line.id is None else f", query {line.id!r}"
    click.echo(f"line {line.number}{query}: {line.message}", err=True)
    return 1


def _unanswered(query: Query, answer: Selection | EncoderError | TransportError) -> int:
    """Name a query that has no answer, and count it; saying nothing on purpose is an answer."""
    if isinstance(answer, Selection) and answer.abstained in (None, "implausible"):
        return 0
    reason = ABSTENTIONS[answer.abstained or ""] if isinstance(answer, Selection) else answer
    click.echo(f"query {query.id!r}: {reason}", err=True)
    return 1


def _lots(items: Iterator[Query | BadLine]) -> Iterator[list[Query | BadLine]]:
    """Cut a stream into lists."""
    while lot := list(islice(items, QUERIES_AT_ONCE)):
        yield lot
