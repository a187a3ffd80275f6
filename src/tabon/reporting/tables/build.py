"""The paper's tables, made from results only.

Every dash has its reason in the notes, and the notes carry n, shortfalls,
abstentions and the signature of every score and method shown.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import nan

from tabon._internal.registry import check_name
from tabon.evaluation.results import MEAN_RUN, RANDOM, REFERENCES, Results, Run
from tabon.reporting.tables.cohort import cohort_tables
from tabon.reporting.tables.comparison import comparison_table, delta_comparison, per_run_comparison
from tabon.reporting.tables.pairs import pairs_table, subgroups_table
from tabon.reporting.tables.places import (
    DASH,
    DELTA_KEY,
    DELTA_METHODS,
    MEAN_OF_METHODS,
    Spot,
    grid_of,
    mean_notes,
    name_cell,
    notes_of,
    number,
    paper_values,
    percent,
    section_name,
    signed,
    slug,
    value_cell,
)
from tabon.reporting.tables.render import Block, Heading, Table, TableCell, TableRow
from tabon.reporting.tables.stars import STARS_KEY, p_value, stars_of

PAPER_SECTIONS = ("impression", "findings")  # in the paper's order
DELTA_LABELS = {"BERTSc": "BERTScore-F1", "RadGraph": "RadGraph averaged-F1"}
RUN_HEADINGS = (Heading(text="Model", align="l"), Heading(text="Prompt", align="l"))
STATISTICS_HEADINGS = (
    Heading(text="Method", align="l"),
    *(Heading(text=text, group="Value") for text in ("mean", "95 %")),
    *(Heading(text=text, group="Δ vs. random") for text in ("mean", "95 %", "relative")),
    *(Heading(text=text, group="Gap closed") for text in ("share", "95 %")),
    *(Heading(text=text, group="p") for text in ("raw", "Holm", "BH")),
    Heading(text="W/T/L"),
    Heading(text="n", align="r"),
)
STATISTICS_KEY = (
    "W/T/L: studies where the pick is worth more than, as much as, less than the expected random one. "
    f"{DASH} beside a value: not worked out; reference rows have no tests, and Holm is of the headline's "
    "family only."
)


def all_tables(
    results: Results,
    columns: Mapping[str, str],
    *,
    deltas: Mapping[str, str] | None = None,
    method: str = "novelty/min",
    references: Sequence[str] = (RANDOM,),
) -> tuple[Table, ...]:
    """Return every table: the headline, pairs, run by run, differences, statistics; the cohort, the paper's.

    `columns` are the headline's heads and their scores, {"BLEU-1": "bleu-1", …}, `deltas` the same of the
    delta tables, by default the paper's two. Per-run tables of a method that the results lack are left out.
    """
    if deltas is None:
        deltas = {DELTA_LABELS[label]: score for label, score in columns.items() if label in DELTA_LABELS}
    sections = [section for section in PAPER_SECTIONS if section in results.sections()]
    every = [*sections, *(section for section in results.sections() if section not in sections)]
    measured = {(cell.section, cell.score) for cell in results.cells if cell.value is not None}
    shown = [section for section in every if any((section, score) in measured for score in columns.values())]
    compared = [section for section in shown if section in {value.section for value in paper_values()}]
    by_run = method in results.methods and len(results.runs) > 1
    return (
        *(
            headline_table(results, section, _there(results, section, columns), references=references)
            for section in shown
        ),
        *filter(None, (pairs_table(results, section, columns) for section in shown)),
        *filter(None, (subgroups_table(results, section, columns) for section in shown)),
        *(per_run_table(results, section, columns, method) for section in shown if by_run),
        *(delta_table(results, section, deltas[label], label) for section in shown for label in deltas),
        *(
            statistics_table(results, section, score, label)
            for section, (label, score) in product(shown, columns.items())
            if score in results.scores
        ),
        *cohort_tables(results),
        *(comparison_table(results, section, columns) for section in compared),
        *(per_run_comparison(results, section, columns, method) for section in compared if by_run),
        *(
            delta_comparison(results, section, columns[column], column)
            for section in compared
            for column in DELTA_LABELS
            if column in columns
        ),
    )


def headline_table(
    results: Results, section: str, columns: Mapping[str, str], *, references: Sequence[str] = (RANDOM,)
) -> Table:
    """Return one row per method over all runs: value, relative change, the best of each column in bold.

    The reference rows follow in italics, then the mean of the paper's transition methods.
    """
    grid, run = grid_of(results, section), results.main_run()
    lines = [grid.line(columns, run=run, method=method) for method in _selectors(results)]
    below = [grid.line(columns, run=run, method=method) for method in references]
    means = grid.mean_line(columns, run=run) if grid.transition_methods() else ()
    best = [
        max((spot.value or nan for spot in column if spot.is_above_random), default=nan)
        for column in zip(*lines, strict=True)
    ]
    rows = [
        _row(
            name_cell(line[0].method),
            (value_cell(spot, bold=spot.value == top) for spot, top in zip(line, best, strict=True)),
        )
        for line in lines
    ]
    others = [
        _row(name_cell(line[0].method, italic=True), (value_cell(spot, italic=True) for spot in line))
        for line in below
    ]
    mean = [_row(name_cell(MEAN_OF_METHODS, bold=True), map(value_cell, means))] if means else []
    scope = f"mean of {len(results.runs)} runs" if run == MEAN_RUN else run
    return Table(
        label=f"tab:avg-{slug(section_name(section))}",
        title=section_name(section),
        caption=f"headline scores, {scope}. In brackets: the relative change against the random baseline. "
        "The best method of each column is emphasised where it is above random.",
        headings=(Heading(text="Method", align="l"), *(Heading(text=column) for column in columns)),
        blocks=tuple(Block(rows=tuple(part)) for part in (rows, others, mean) if part),
        notes=(
            *notes_of(results, [spot for line in (*lines, *below) for spot in line]),
            *(mean_notes(grid, means) if means else ()),
        ),
    )


def per_run_table(
    results: Results, section: str, columns: Mapping[str, str], method: str = "novelty/min"
) -> Table:
    """Return one row per run, for random and for one method, each block with its mean over runs."""
    check_name("method of the results", tuple(results.methods), method)
    grid = grid_of(results, section)
    blocks = {
        each: [grid.line(columns, run=run, method=each) for run in results.run_names()]
        for each in (RANDOM, method)
    }
    return Table(
        label=f"tab:per-run-{slug(section_name(section))}",
        title=f"Per-run values on {section_name(section)}",
        caption="one method and the random baseline. Subscripts: relative change against random.",
        headings=(*RUN_HEADINGS, *(Heading(text=column) for column in columns)),
        blocks=tuple(
            Block(heading=name_cell(each, italic=True), rows=tuple(_run_rows(results.runs, lines)))
            for each, lines in blocks.items()
        ),
        notes=notes_of(results, [spot for lines in blocks.values() for line in lines for spot in line]),
    )


def delta_table(results: Results, section: str, score: str, label: str) -> Table:
    """Return one row per run and one column per transition method: how far above random it is."""
    grid = grid_of(results, section)
    methods = (*DELTA_METHODS.values(), RANDOM)
    lines = [
        [grid.spot(run=run.name, method=method, score=score, column=label) for method in methods]
        for run in results.runs
    ]
    rows = []
    for run, line in zip(results.runs, lines, strict=True):
        deltas = [TableCell(text=signed(spot.cell.delta if spot.cell else None)) for spot in line[:-1]]
        names = [TableCell(text=run.model), TableCell(text=run.prompt)]
        rows.append(TableRow(cells=(*names, *deltas, TableCell(text=number(line[-1].value)))))
    spots = [spot for line in lines for spot in line]
    baseless = dict.fromkeys(
        spot.run
        for spot in spots
        if spot.method != RANDOM and spot.cell and spot.value is not None and spot.cell.delta is None
    )
    why = f"{DASH} no difference from random was worked out: {'; '.join(baseless)}."
    return Table(
        label=f"tab:delta-{slug(score)}-{slug(section_name(section))}",
        title=f"Δ {label} vs. random on {section_name(section)}",
        caption="",
        headings=(
            *RUN_HEADINGS,
            *(Heading(text=text) for text in DELTA_METHODS),
            Heading(text="rand.", align="r"),
        ),
        blocks=(Block(rows=tuple(rows)),),
        notes=(DELTA_KEY, *([why] if baseless else []), *notes_of(results, spots)),
    )


def statistics_table(results: Results, section: str, score: str, label: str = "") -> Table:
    """Return all that is known of one score: intervals, gap closed, tests, wins and n, one row per method."""
    grid, run = grid_of(results, section), results.main_run()
    column = label or score
    spots = [
        grid.spot(run=run, method=method, score=score, column=column)
        for method in (*_selectors(results), *REFERENCES)
        if method not in REFERENCES or (run, method, score) in grid.cells
    ]
    blocks = [
        tuple(_statistics_row(spot, italic=italic) for spot in spots if (spot.method in REFERENCES) == italic)
        for italic in (False, True)
    ]
    return Table(
        label=f"tab:statistics-{slug(score)}-{slug(section_name(section))}",
        title=f"{column} on {section_name(section)}",
        caption="95 % intervals from resampled patients; p from paired randomisation against random.",
        headings=STATISTICS_HEADINGS,
        blocks=tuple(Block(rows=rows) for rows in blocks if rows),
        notes=(STARS_KEY, STATISTICS_KEY, *notes_of(results, spots)),
    )


def _there(results: Results, section: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns without those that are measured in other sections alone."""
    here = {cell.score for cell in results.cells if cell.section == section}
    elsewhere = results.scores.keys() - here
    return {column: score for column, score in columns.items() if score not in elsewhere}


def _selectors(results: Results) -> list[str]:
    """Return the methods that choose, in the order of the results."""
    return [method for method in results.methods if method not in REFERENCES]


def _row(name: TableCell, cells: Iterable[TableCell]) -> TableRow:
    """Return a row under its name."""
    return TableRow(cells=(name, *cells))


def _run_rows(runs: Sequence[Run], lines: Sequence[Sequence[Spot]]) -> Iterator[TableRow]:
    """Yield the rows of a block of the per-run table; the mean carries no subscripts."""
    for run, line in zip(runs, lines, strict=False):
        plain = [TableCell(text=run.model), TableCell(text=run.prompt)]
        yield TableRow(cells=(*plain, *map(value_cell, line)))
    for line in lines[len(runs) :]:
        values = [TableCell(text=number(spot.value)) for spot in line]
        yield TableRow(cells=(TableCell(text="mean", italic=True, span=2), *values), ruled=True)


def _statistics_row(spot: Spot, *, italic: bool) -> TableRow:
    """Return all that is known of one method, in the order of the headings."""
    name, cell = name_cell(spot.method, italic=italic), spot.cell
    if cell is None:
        return _row(name, [TableCell(text=DASH, italic=italic)] * (len(STATISTICS_HEADINGS) - 1))
    stars = "" if cell.delta is None else stars_of(cell.holm)
    counts = (cell.wins, cell.ties, cell.losses)
    texts = [
        number(cell.value),
        _interval(cell.low, cell.high, ".3f"),
        signed(cell.delta) + stars,
        _interval(cell.delta_low, cell.delta_high, "+.3f"),
        percent(cell.relative) or DASH,
        DASH if cell.gap is None else f"{cell.gap:.1%}",
        _interval(cell.gap_low, cell.gap_high, ".1%"),
        *(p_value(p) for p in (cell.p, cell.holm, cell.bh)),
        DASH if None in counts else "/".join(map(str, counts)),
        str(cell.n),
    ]
    return _row(name, (TableCell(text=text, italic=italic) for text in texts))


def _interval(low: float | None, high: float | None, form: str) -> str:
    """Write an interval, a dash where an end is missing."""
    return DASH if low is None or high is None else f"[{low:{form}}, {high:{form}}]"
