"""`tabon select`."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

import click

from tabon._internal.atomic_files import replacing
from tabon.cli.help import Command
from tabon.cli.shared_options import (
    SELECTOR,
    abstain_option,
    bank_option,
    calibration_option,
    embedding_options,
    engine_option,
    name_of,
    option_group,
    reports_errors,
    search_option,
    show_progress,
    store_path,
    takes,
)
from tabon.errors import BadInputError
from tabon.integrations.engines import open_engine, select_parts
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES
from tabon.method.nearest import AGGREGATES, ZERO_POLICIES
from tabon.selectors import SELECTORS
from tabon.selectors.abstention import Calibration, read_calibration
from tabon.selectors.scorer import ALIASES, PAPER, AnySelector
from tabon.selectors.setup import (
    Complaint,
    SelectionSettings,
    answer,
    in_batches,
    make_selector,
    may_abstain,
)
from tabon.text.records import read_query_lines

QUERIES_AT_ONCE = 256
SAME_REASONS = 10  # queries that are named for one reason


method_options = option_group(
    click.option(
        "--selector",
        type=SELECTOR,
        default=PAPER,
        show_default=True,
        help=f"{PAPER} or one of {', '.join(SELECTORS)}, with a variant after a colon; "
        f"{', '.join(f'{name} is {own}' for name, own in ALIASES.items())}.",
    ),
    click.option("--distance", help=f"One of {', '.join(DISTANCES)}.  [default: novelty]"),
    click.option("--aggregate", help=f"One of {', '.join(AGGREGATES)}.  [default: min]"),
    click.option("-k", "--neighbours", type=int, help="Neighbours of knn.  [default: 10]"),
    click.option(
        "--zero",
        help=f"How a draft without change is scored: one of {', '.join(ZERO_POLICIES)}.  "
        "[default: match; neutral for two-sided]",
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


def _calibration(calibration: Path | None = None) -> Calibration | None:
    """Read the file that `--calibration` names."""
    return None if calibration is None else read_calibration(calibration)


takes_selection = partial(takes, store=store_path, calibration=_calibration, settings=SelectionSettings)


@click.command(
    cls=Command,
    example="tabon select queries.jsonl --bank bank.tabon --selector fused --out chosen.jsonl",
)
@click.argument("queries", type=click.File("rb"))
@bank_option
@method_options
@abstain_option
@calibration_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Write here instead, in one step.",
)
@search_option
@engine_option
@embedding_options
@reports_errors
@takes_selection()
def select(
    queries: IO[bytes], bank: Path, out: Path | None, engine: str, settings: SelectionSettings
) -> None:
    """Pick one draft for each query of QUERIES (JSON Lines; `-` reads standard input).

    Prints one JSON object a query, in the order of the file. A query that
    cannot be answered is named on standard error, the others are answered all
    the same, and the exit status is 1.
    """
    if engine != "local":
        failures = _elsewhere(queries, bank, out, settings, engine)
    else:
        selector = may_abstain(make_selector(TransitionBank.load(bank), settings), settings)
        if out is None or str(out) == "-":
            failures = write_selections(selector, queries, sys.stdout.buffer, name_of(queries))
        else:
            with replacing(out) as file:
                failures = write_selections(selector, queries, file, name_of(queries))
    if failures:
        raise BadInputError(
            f"{failures} of the queries in {name_of(queries)} were not answered; see the lines above"
        )


def _elsewhere(
    queries: IO[bytes], bank: Path, out: Path | None, settings: SelectionSettings, engine: str
) -> int:
    """Answer on an engine, and return how many queries could not be answered."""
    if out is None or str(out) == "-":
        raise BadInputError("--engine keeps finished parts beside the output; give --out the name of a file")
    source = click.get_current_context().get_parameter_source("store")
    if source != click.core.ParameterSource.COMMANDLINE:
        settings = replace(settings, store=None)  # the default is a place of this machine
    with closing(open_engine(engine)) as where, saying_complaints() as say:
        return select_parts(where, bank, settings, queries, out, complain=say, progress=_show_count)


@contextmanager
def saying_complaints() -> Iterator[Callable[[Complaint], None]]:
    """Give a function that says why a query has no answer; of the same reason ten times, then a count."""
    counts: Counter[str] = Counter()

    def say(complaint: Complaint) -> None:
        counts[complaint.reason] += 1
        if counts[complaint.reason] <= SAME_REASONS:
            click.echo(complaint, err=True)

    yield say
    for reason, count in counts.items():
        if count > SAME_REASONS:
            click.echo(f"and {count - SAME_REASONS:,} more queries: {reason}", err=True)


def _show_count(count: int) -> None:
    """Show how many queries are answered."""
    show_progress(f"{count:,} queries")


def write_selections(selector: AnySelector, lines: Iterable[bytes], out: IO[bytes], name: str) -> int:
    """Answer queries in batches and return how many could not be answered."""
    failures = count = 0
    with saying_complaints() as say:
        for batch in in_batches(read_query_lines(lines, name=name), QUERIES_AT_ONCE):
            answered = answer(selector, batch)
            for complaint in answered.complaints:
                say(complaint)
            out.write(answered.selections)
            out.flush()
            count += answered.queries
            failures += len(answered.complaints)
            _show_count(count)
    if count == 0:
        raise BadInputError("the file holds no queries; write one JSON object a line")
    return failures
