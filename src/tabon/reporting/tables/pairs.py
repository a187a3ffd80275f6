"""Selectors against each other: a table of every pair, and a sentence of each."""

from collections.abc import Mapping
from math import ceil

from scipy.special import ndtri, stdtrit

from tabon.evaluation.results import RANDOM, Number, PairedDifference, Results, Subgroup
from tabon.reporting.tables.places import DASH, SECTION_NAMES, method_name, score_name, section_name, slug
from tabon.reporting.tables.render import Block, Heading, Table, TableCell, TableRow
from tabon.reporting.tables.stars import STARS_KEY, p_value, stars_of

POWER = 0.8
PLANNING_KEY = (
    "Two-sided at 5 %, one comparison; a pilot of few patients knows its spread badly. At Holm's strictest "
    "step the patients are 1.7 times as many for 10 comparisons, and 2.4 times for 100."
)
TARGETS = (0.02, 0.05, 0.1, 0.2)  # differences to plan for, as shares of the gap


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


def subgroups_table(results: Results, section: str, columns: Mapping[str, str]) -> Table | None:
    """Return how much more of each score's gap is closed, group by group, and p of the interaction."""
    rows = [row for row in results.subgroups if row.section == section]
    found = {(row.by, row.method, row.other, row.group, row.score): row for row in rows}
    shown = {column: score for column, score in columns.items() if any(row.score == score for row in rows)}
    if not shown:
        return None
    blocks = []
    for by, method, other in dict.fromkeys((row.by, row.method, row.other) for row in rows):
        groups = dict.fromkeys(row.group for row in rows if row.by == by)
        lines = []
        for group in groups:
            cells = [TableCell(text=group)]
            for score in shown.values():
                row = found.get((by, method, other, group, score))
                cells += [
                    TableCell(text=str(row.n) if row else DASH),
                    TableCell(text=_points(row)),
                    TableCell(text=p_value(row.p) + stars_of(row.holm) if row else DASH),
                ]
            lines.append(TableRow(cells=tuple(cells)))
        heading = f"{by}: {method_name(method)} {DASH} {method_name(other)}"
        blocks.append(Block(heading=TableCell(text=heading, italic=True), rows=tuple(lines)))
    return Table(
        label=f"tab:subgroups-{slug(section_name(section))}",
        title=f"Groups of studies on {section_name(section)}",
        caption="points of the gap from random to oracle that the first closes more than the second, with "
        "95 % intervals from resampled patients; p: the difference is the same in all groups (interaction).",
        headings=(
            Heading(text="Group", align="l"),
            *(
                Heading(text=text, group=column)
                for column in shown
                for text in ("n", "points", "interaction p")
            ),
        ),
        blocks=tuple(blocks),
        notes=(f"{STARS_KEY} The family is every interaction of these results.",),
    )


def planning_table(results: Results, section: str, score: str) -> Table | None:
    """Return how many patients would show which difference in the gap closed, from the spread found here.

    A difference d is found with a power of 80 % where d = (z(0.975) + z(0.8)) standard errors, and the error
    shrinks with the square root of the patients. For the patients that are there t stands in the place of z.
    """
    run = results.main_run()
    patients = max(each.patients for each in results.runs)
    shares = {
        (method, RANDOM): cell.share()
        for method in results.methods
        if (cell := results.cell(run=run, section=section, method=method, score=score)) is not None
    }
    shares |= {
        (pair.method, pair.other): Number(value=pair.gap, low=pair.gap_low, high=pair.gap_high)
        for pair in results.pairs
        if (pair.section, pair.score) == (section, score)
    }
    rows = []
    for (method, other), share in shares.items():
        if share.low is None or share.high is None or share.low == share.high:
            continue
        reach = stdtrit(patients - 1, 0.975)
        error = (share.high - share.low) / 2 / reach
        found = error * (reach + stdtrit(patients - 1, POWER))
        shown = error * (ndtri(0.975) + ndtri(POWER))  # with many
        needed = [f"{ceil(patients * (shown / target) ** 2):,}" for target in TARGETS]
        texts = [f"{method_name(method)} {DASH} {method_name(other)}", f"{100 * found:.1f}", *needed]
        rows.append(TableRow(cells=tuple(TableCell(text=text) for text in texts)))
    if not rows:
        return None
    return Table(
        label=f"tab:planning-{slug(score)}-{slug(section_name(section))}",
        title=f"Patients for a difference in {score_name(score)} on {section_name(section)}",
        caption=f"the difference in points of the gap that {patients} patients show with a power of 80 %, "
        "and the patients that smaller ones take.",
        headings=(
            Heading(text="Pair", align="l"),
            Heading(text=f"found with {patients}", align="r"),
            *(
                Heading(text=f"{100 * target:g} points", group="Patients for", align="r")
                for target in TARGETS
            ),
        ),
        blocks=(Block(rows=tuple(rows)),),
        notes=(PLANNING_KEY,),
    )


def pair_sentence(pair: PairedDifference) -> str:
    """Say in one sentence who is ahead.

    >>> print(pair_sentence(PairedDifference(
    ...     section="findings", score="rouge-l-f", method="fused", other="paper", n=90,
    ...     delta=0.02, delta_low=0.01, delta_high=0.03, gap=0.12, gap_low=0.04, gap_high=0.2, p=0.001,
    ...     holm=0.003)))
    Findings: fused closes 12 points more of the ROUGE-L gap than paper (95 % interval 4 to 20, Holm's p ...).
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


def margin_sentence(pair: PairedDifference, margin: float) -> str:
    """Say which of two selectors is not worse than the other by a margin: non-inferiority, at 2.5 %.

    >>> print(margin_sentence(PairedDifference(
    ...     section="findings", score="rouge-l-f", method="fused", other="consensus", n=90,
    ...     gap=0.02, gap_low=-0.04, gap_high=0.08), 0.05))
    Findings: fused is not worse than consensus by 5 points of the ROUGE-L gap.
    """
    one, other = method_name(pair.method), method_name(pair.other)
    lost = f"by {100 * margin:g} points of the {score_name(pair.score)} gap"
    where = f"{SECTION_NAMES.get(pair.section, pair.section)}: "
    match pair.not_worse(margin):
        case True, True:
            return f"{where}{one} and {other} are equivalent: neither is worse {lost}."
        case True, False:
            return f"{where}{one} is not worse than {other} {lost}."
        case False, True:
            return f"{where}{other} is not worse than {one} {lost}."
    return f"{where}neither of {one} and {other} is shown not to be worse {lost}."


def _points(row: PairedDifference | Subgroup | None) -> str:
    """Write a difference of gap closed in points; the stars of a pair are of the difference."""
    if row is None or row.gap is None or row.gap_low is None or row.gap_high is None:
        return DASH
    stars = stars_of(row.holm) if isinstance(row, PairedDifference) else ""
    return f"{100 * row.gap:+.0f}{stars} [{100 * row.gap_low:+.0f}, {100 * row.gap_high:+.0f}]"


def _chance(p: float | None) -> str:
    """Write Holm's p as sentences do; without one, as in merged results, say so."""
    if p is None:
        return "no p after merging"
    return "Holm's p " + ("< .001" if p < 0.001 else f"= {p:.3f}".replace("0.", ".").replace("1.000", "1"))  # noqa: PLR2004
