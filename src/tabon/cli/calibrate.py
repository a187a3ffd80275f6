"""`tabon calibrate`."""

from pathlib import Path
from typing import Any

import click

from tabon.cli.select import method_options, selector_of
from tabon.cli.shared_options import (
    bank_option,
    encoder_option,
    name_of,
    no_store_option,
    reports_errors,
    search_option,
    store_option,
)
from tabon.method.bank import TransitionBank
from tabon.selectors.abstention import from_queries, write_calibration
from tabon.text.records import read_queries, whole_query


@click.command()
@click.argument("queries", type=click.File("rb"))
@bank_option
@method_options
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The calibration to write."
)
@search_option
@encoder_option
@store_option
@no_store_option
@reports_errors
def calibrate(queries: Any, bank: Path, out: Path, **options: Any) -> None:  # noqa: ANN401
    """Learn from QUERIES how implausible the picks of a method usually are.

    Use queries of the same generator with the same number of drafts, of patients
    that are not selected for later, such as the validation split. Then
    `tabon select --calibration FILE --abstain 0.1` abstains in about a tenth
    of similar cases: the least plausible.
    """
    selector = selector_of(TransitionBank.load(bank), options)
    asked = [whole_query(query, name=name_of(queries)) for query in read_queries(queries)]
    calibration = from_queries(selector.select_many(asked))
    write_calibration(out, calibration)
    counts = ", ".join(f"{len(values)} with {kind}" for kind, values in calibration.distances.items())
    click.echo(f"calibrated on {counts}: {out}", err=True)
