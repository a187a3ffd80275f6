"""Every number that the paper prints in its result tables.

Parsed once from the paper's source into `paper_values.csv`; the numbers are as
printed, so a value is rounded to 0.001 and a relative change to 0.001 (0.1 %).
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

HEADLINE, PER_RUN, DELTA = "headline", "per-run", "delta"
MEAN_OF_METHODS = "mean-of-methods"  # the last row of the headline tables
DISTANCES = ("mean-shift", "novelty", "dir-hausdorff", "cost-ot")
AGGREGATES = ("min", "knn")
TRANSITION_METHODS = tuple(f"{distance}/{aggregate}" for distance in DISTANCES for aggregate in AGGREGATES)


@dataclass(frozen=True, slots=True)
class PaperValue:
    """One printed number."""

    table: str  # HEADLINE, PER_RUN or DELTA
    section: str  # "findings" or "impression"
    run: str  # "Gemini-2.5-FL P1", or "mean"
    method: str  # one of TRANSITION_METHODS, "random" or MEAN_OF_METHODS
    column: str  # the headline's head: "BLEU-1", ..., "CheX-14"
    value: float  # of DELTA tables method minus random, but of "random" its value
    relative: float | None  # change against random, where it is printed


@cache
def paper_values() -> tuple[PaperValue, ...]:
    """Return the numbers in the order of the paper.

    >>> paper_values()[0]  # doctest: +NORMALIZE_WHITESPACE
    PaperValue(table='headline', section='impression', run='mean', method='mean-shift/min',
               column='BLEU-1', value=0.163, relative=0.03)
    """
    text = files("tabon.reporting.tables").joinpath("paper_values.csv").read_text(encoding="utf-8")
    rows = csv.reader(text.splitlines()[1:])
    return tuple(
        PaperValue(table, section, run, method, column, float(value), float(change) if change else None)
        for table, section, run, method, column, value, change in rows
    )


def paper_value(*, table: str, section: str, run: str, method: str, column: str) -> PaperValue | None:
    """Return one printed number, or None where the paper prints none."""
    return _by_place().get((table, section, run, method, column))


@cache
def _by_place() -> dict[tuple[str, ...], PaperValue]:
    """Return the numbers by where they stand."""
    return {(v.table, v.section, v.run, v.method, v.column): v for v in paper_values()}
