"""`tabon calibrate`."""

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
    search_option,
    store_option,
    takes,
)
from tabon.method.bank import TransitionBank
from tabon.selectors.abstention import from_queries, write_calibration
from tabon.selectors.setup import SelectionSettings, make_selector
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
@takes(settings=selection_settings)
def calibrate(queries: IO[bytes], bank: Path, out: Path, settings: SelectionSettings) -> None:
    """Learn from QUERIES how implausible the picks of a method usually are.

    Use queries of the same generator with the same number of drafts, of patients
    that are not selected for later, such as the validation split. Then
    `tabon select --calibration FILE --abstain 0.1` abstains in about a tenth
    of similar cases: the least plausible.
    """
    selector = make_selector(TransitionBank.load(bank), settings)
    asked = [whole_query(query, name=name_of(queries)) for query in read_queries(queries)]
    calibration = from_queries(selector.select_many(asked))
    write_calibration(out, calibration)
    counts = ", ".join(f"{len(values)} with {kind}" for kind, values in calibration.distances.items())
    click.echo(f"calibrated on {counts}: {out}", err=True)
