"""Our numbers beside the ones that the paper prints."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tabon._internal.registry import check_name
from tabon.evaluation.results import MEAN_RUN, RANDOM, Results
from tabon.reporting.tables.places import (
    DASH,
    DELTA,
    DELTA_KEY,
    DELTA_METHODS,
    HEADLINE,
    MEAN_OF_METHODS,
    PER_RUN,
    TRANSITION_METHODS,
    PaperValue,
    Spot,
    grid_of,
    mean_notes,
    method_name,
    name_cell,
    notes_of,
    number,
    paper_value,
    paper_values,
    percent,
    section_name,
    signed,
    slug,
    value_cell,
)
from tabon.reporting.tables.render import Block, Heading, Table, TableCell, TableRow

POINTS = (
    "Difference: ours, unrounded, minus the printed value, in points (hundredths). "
    "The printed values are rounded to 0.1 points."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One place of a comparison: the paper's number and ours."""

    paper: PaperValue | None
    spot: Spot
    is_delta: bool = False  # both are method minus random

    def cells(self) -> tuple[TableCell, ...]:
        """Return the paper's value, ours, and the difference."""
        write = signed if self.is_delta else number
        ours = TableCell(text=signed(self.spot.value)) if self.is_delta else value_cell(self.spot)
        if self.paper is None:
            return TableCell(text=DASH), ours, TableCell(text=DASH)
        printed = TableCell(text=write(self.paper.value), subscript=percent(self.paper.relative))
        if self.spot.value is None:
            return printed, ours, TableCell(text=DASH)
        difference = 100 * (self.spot.value - self.paper.value)
        return printed, ours, TableCell(text=f"{difference:+.1f}")


def comparison_table(results: Results, section: str, columns: Mapping[str, str]) -> Table:
    """Return the paper's headline table of a section with our numbers beside it.

    `columns` names a score for each of the paper's heads ("BLEU-1", …, "CheX-14").
    """
    grid, run = grid_of(results, section), results.main_run()
    lines = [grid.line(columns, run=run, method=method) for method in (*TRANSITION_METHODS, RANDOM)]
    mean = grid.mean_line(columns, run=run)
    if grid.transition_methods() != TRANSITION_METHODS:  # the mean of fewer is another number
        mean = tuple(replace(spot, cell=None) for spot in mean)
    compared = [_compared(HEADLINE, section, MEAN_RUN, line) for line in (*lines, mean)]
    return Table(
        label=f"tab:paper-avg-{slug(section_name(section))}",
        title=section_name(section),
        caption="headline scores, the paper's beside ours.",
        headings=(Heading(text="Method", align="l"), *_headings(columns)),
        blocks=tuple(
            Block(rows=tuple(map(_row, part))) for part in (compared[:-2], compared[-2:-1], compared[-1:])
        ),
        notes=(
            POINTS,
            *_run_notes(results),
            *_paper_notes(compared),
            *mean_notes(grid, mean),
            *notes_of(results, _spots(compared[:-1])),
        ),
    )


def per_run_comparison(
    results: Results, section: str, columns: Mapping[str, str], method: str = "novelty/min"
) -> Table:
    """Return the paper's per-run table of a section with our numbers beside it, run by run of one name."""
    check_name("method of the results", tuple(results.methods), method)
    grid = grid_of(results, section)
    blocks = {
        each: [
            _compared(PER_RUN, section, run, grid.line(columns, run=run, method=each))
            for run in results.run_names()
        ]
        for each in (RANDOM, method)
    }
    every = [line for lines in blocks.values() for line in lines]
    return Table(
        label=f"tab:paper-per-run-{slug(section_name(section))}",
        title=f"Per-run values on {section_name(section)}",
        caption="the paper's beside ours.",
        headings=(Heading(text="Run", align="l"), *_headings(columns)),
        blocks=tuple(
            Block(heading=name_cell(each, italic=True), rows=tuple(_row(line, by_run=True) for line in lines))
            for each, lines in blocks.items()
        ),
        notes=(POINTS, *_run_notes(results), *_paper_notes(every), *notes_of(results, _spots(every))),
    )


def delta_comparison(results: Results, section: str, score: str, column: str) -> Table:
    """Return the paper's table of differences from random with ours beside them, run by run of one name."""
    grid = grid_of(results, section)
    every = []
    for run in results.runs:
        spots = [
            grid.spot(run=run.name, method=method, score=score, column=column)
            for method in (*DELTA_METHODS.values(), RANDOM)
        ]
        deltas = [_as_delta(spot) for spot in spots[:-1]]
        line = _compared(DELTA, section, run.name, [*deltas, spots[-1]])
        every.append((*(replace(each, is_delta=True) for each in line[:-1]), line[-1]))
    return Table(
        label=f"tab:paper-delta-{slug(column)}-{slug(section_name(section))}",
        title=f"Δ {column} vs. random on {section_name(section)}",
        caption="the paper's beside ours.",
        headings=(Heading(text="Run", align="l"), *_headings((*DELTA_METHODS, "rand."))),
        blocks=(Block(rows=tuple(_row(line, by_run=True) for line in every)),),
        notes=(
            DELTA_KEY,
            POINTS,
            *_run_notes(results),
            *_paper_notes(every),
            *notes_of(results, _spots(every)),
        ),
    )


def _as_delta(spot: Spot) -> Spot:
    """Return the place of how far above random a method is."""
    return spot if spot.cell is None else replace(spot, cell=replace(spot.cell, value=spot.cell.delta))


def _compared(table: str, section: str, run: str, line: Sequence[Spot]) -> tuple[Compared, ...]:
    """Put the paper's numbers beside a row of ours."""
    return tuple(
        Compared(
            paper=paper_value(table=table, section=section, run=run, method=spot.method, column=spot.column),
            spot=spot,
        )
        for spot in line
    )


def _headings(columns: Iterable[str]) -> Iterator[Heading]:
    """Yield three heads per column."""
    for column in columns:
        for text in ("paper", "ours", "diff."):
            yield Heading(text=text, group=column)


def _row(line: Sequence[Compared], *, by_run: bool = False) -> TableRow:
    """Return the row of a method, or of a run; the mean over runs is under a line."""
    spot = line[0].spot
    name = name_cell(spot.method, italic=spot.method == RANDOM, bold=spot.method == MEAN_OF_METHODS)
    if by_run:
        name = TableCell(text=spot.run, italic=spot.run == MEAN_RUN)
    ruled = by_run and spot.run == MEAN_RUN
    return TableRow(cells=(name, *(cell for each in line for cell in each.cells())), ruled=ruled)


def _spots(lines: Iterable[Sequence[Compared]]) -> list[Spot]:
    """Return our places of a comparison."""
    return [each.spot for line in lines for each in line]


def _run_notes(results: Results) -> Iterator[str]:
    """Say that two means are of different runs, where they are."""
    theirs = {value.run for value in paper_values() if value.table == PER_RUN} - {MEAN_RUN}
    ours = {run.name for run in results.runs}
    if ours != theirs:
        same = f"{len(ours & theirs)} have the same name"
        yield f"The paper's mean is of its {len(theirs)} runs, ours of {len(ours)}; {same}."


def _paper_notes(lines: Sequence[Sequence[Compared]]) -> Iterator[str]:
    """Say where the paper has no number to compare with: a run, a column or single places."""
    every = [each for line in lines for each in line]
    runs = {each.spot.run for each in every} - {each.spot.run for each in every if each.paper}
    columns = {each.spot.column for each in every} - {each.spot.column for each in every if each.paper}
    named = dict.fromkeys(
        spot.column if spot.column in columns
        else spot.run if spot.run in runs
        else f"{spot.column} of {method_name(spot.method)} in {spot.run}"
        for spot in (each.spot for each in every if each.paper is None)
    )  # fmt: skip
    if named:
        yield f"{DASH} not in the paper: {'; '.join(named)}."
