"""Selectors against each other: a table of every pair, and a sentence of each."""

from collections.abc import Mapping

from tabon.evaluation.results import Number, PairedDifference, Results
from tabon.reporting.tables.places import DASH, SECTION_NAMES, method_name, score_name, section_name, slug
from tabon.reporting.tables.render import Block, Heading, Table, TableCell, TableRow
from tabon.reporting.tables.stars import STARS_KEY, stars_of


def pairs_table(results: Results, section: str, columns: Mapping[str, str]) -> Table | None:
    """Return how much more of each score's gap one method closes than another; None without pairs."""
    pairs = {(pair.method, pair.other, pair.score): pair for pair in results.pairs if pair.section == section}
    shown = {column: score for column, score in columns.items() if any(place[2] == score for place in pairs)}
    rows = []
    for method, other in dict.fromkeys((method, other) for method, other, _ in pairs):
        found = [pairs.get((method, other, score)) for score in shown.values()]
        name = TableCell(text=f"{method_name(method)} {DASH} {method_name(other)}")
        rows.append(TableRow(cells=(name, *(TableCell(text=_points(pair)) for pair in found))))
    if not rows or not shown:
        return None
    return Table(
        label=f"tab:pairs-{slug(section_name(section))}",
        title=f"Selectors against each other on {section_name(section)}",
        caption="points of the gap from random to oracle that the first closes more than the second, with "
        "95 % intervals from resampled patients.",
        headings=(Heading(text="Pair", align="l"), *(Heading(text=column) for column in shown)),
        blocks=(Block(rows=tuple(rows)),),
        notes=(f"{STARS_KEY} The family is every pair, headline score and section.",),
    )


def pair_sentence(pair: PairedDifference) -> str:
    """Say in one sentence who is ahead.

    >>> print(pair_sentence(PairedDifference(
    ...     section="findings", score="rouge-l-f", method="fused", other="consensus", n=90,
    ...     delta=0.02, delta_low=0.01, delta_high=0.03, gap=0.12, gap_low=0.04, gap_high=0.2, p=0.001,
    ...     holm=0.003)))
    Findings: fused closes 12 points more of the ROUGE-L gap than consensus (95 % interval 4 to 20, p = .003).
    """
    where = f"{SECTION_NAMES.get(pair.section, pair.section)}: "
    one, other, score = method_name(pair.method), method_name(pair.other), score_name(pair.score)
    if pair.delta is None:
        return f"{where}{one} and {other} cannot be compared by {score}: one has no number."
    if pair.delta == pair.delta_low == pair.delta_high == 0:
        return f"{where}{one} and {other} do not differ in {score} ({_chance(pair.holm)})."
    if pair.gap is None:
        number = Number(value=pair.delta, low=pair.delta_low, high=pair.delta_high)
        what = f"is {{}} points of {score} {{}} {other}"
        words = ("above", "below")
    else:
        number = Number(value=pair.gap, low=pair.gap_low, high=pair.gap_high)
        what = f"closes {{}} points {{}} of the {score} gap than {other}"
        words = ("more", "less")
    value, low, high = (100 * (end or 0.0) for end in (number.value, number.low, number.high))
    said = what.format(abs(round(value)), words[value < 0])
    low, high = (low, high) if value >= 0 else (-high, -low)
    return f"{where}{one} {said} (95 % interval {round(low)} to {round(high)}, {_chance(pair.holm)})."


def _points(pair: PairedDifference | None) -> str:
    """Write a difference of gap closed in points."""
    if pair is None or pair.gap is None or pair.gap_low is None or pair.gap_high is None:
        return DASH
    between = f"[{100 * pair.gap_low:+.0f}, {100 * pair.gap_high:+.0f}]"
    return f"{100 * pair.gap:+.0f}{stars_of(pair.holm)} {between}"


def _chance(p: float | None) -> str:
    """Write Holm's p as sentences do; without one, as in merged results, say so."""
    if p is None:
        return "no p after merging"
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".").replace("1.000", "1")  # noqa: PLR2004
