"""Where the numbers of a table come from: the cells of a section, by row and column, and their names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tabon._internal.registry import check_name
from tabon.evaluation.results import ORACLE, RANDOM, RANDOM_SEEDS, Cell, Results
from tabon.reporting.tables.paper_values import DISTANCES, MEAN_OF_METHODS, TRANSITION_METHODS
from tabon.reporting.tables.render import TableCell

DASH = "–"
SECTION_NAMES = {"findings": "Findings", "impression": "Impressions", "report": "Whole report"}
DISTANCE_NAMES = dict(zip(DISTANCES, ("Mean-Shift", "Novelty", "Dir-Hausdorff", "Cost-OT"), strict=True))
ROW_NAMES = {
    RANDOM: "Random baseline (reference)",
    RANDOM_SEEDS: "Random baseline, seeded picks",
    ORACLE: "Oracle (best draft of each study)",
    MEAN_OF_METHODS: "Mean of transition methods",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One place of a table and the cell of the results that belongs there."""

    run: str
    section: str
    method: str
    score: str
    column: str  # how the table calls the score
    cell: Cell | None  # None: the results have none

    @property
    def value(self) -> float | None:
        """Return the number, None where there is none."""
        return self.cell.value if self.cell else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The cells of one section, found by run, method and score."""

    results: Results
    section: str
    cells: Mapping[tuple[str, str, str], Cell]

    def spot(self, *, run: str, method: str, score: str, column: str) -> Spot:
        """Return the place of one number."""
        cell = self.cells.get((run, method, score))
        return Spot(run=run, section=self.section, method=method, score=score, column=column, cell=cell)

    def line(self, columns: Mapping[str, str], *, run: str, method: str) -> tuple[Spot, ...]:
        """Return a row of places, one a column."""
        return tuple(
            self.spot(run=run, method=method, score=score, column=column) for column, score in columns.items()
        )

    def mean_line(self, columns: Mapping[str, str], *, run: str) -> tuple[Spot, ...]:
        """Return the row of means over the paper's transition methods, as many as the results have."""
        return tuple(
            replace(spot, cell=self._mean(run, spot.score))
            for spot in self.line(columns, run=run, method=MEAN_OF_METHODS)
        )

    def transition_methods(self) -> tuple[str, ...]:
        """Return the paper's eight methods, as many as the results have."""
        return tuple(method for method in TRANSITION_METHODS if method in self.results.methods)

    def _mean(self, run: str, score: str) -> Cell | None:
        """Return the mean of the transition methods; None where one of them has no number."""
        found = [self.cells.get((run, method, score)) for method in self.transition_methods()]
        values = [cell.value for cell in found if cell and cell.value is not None]
        if not values or len(values) < len(found):
            return None
        value, random = sum(values) / len(values), self.cells.get((run, RANDOM, score))
        return Cell(
            run=run,
            section=self.section,
            method=MEAN_OF_METHODS,
            score=score,
            value=value,
            n=min(cell.n for cell in found if cell),
            relative=value / random.value - 1 if random and random.value else None,
        )


def grid_of(results: Results, section: str) -> Grid:
    """Index a section of the results; a section they do not have is refused by name."""
    check_name("section of the results", results.sections(), section)
    cells = {(c.run, c.method, c.score): c for c in results.cells if c.section == section}
    return Grid(results=results, section=section, cells=cells)


def section_name(section: str) -> str:
    """Return a section's name as the paper writes it."""
    return SECTION_NAMES.get(section, section)


def slug(name: str) -> str:
    """Return a name as it may stand in a label.

    >>> slug(section_name("report"))
    'whole-report'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"


def method_name(method: str) -> str:
    """Return a method's name as the paper writes it; others stay as they are.

    >>> method_name("cost-ot/knn"), method_name("longest")
    ('Cost-OT / knn', 'longest')
    """
    distance, _, aggregate = method.partition("/")
    if distance in DISTANCE_NAMES and aggregate:
        return f"{DISTANCE_NAMES[distance]} / {aggregate}"
    return ROW_NAMES.get(method, method)


def name_cell(method: str, *, italic: bool = False, bold: bool = False) -> TableCell:
    """Return a method's name as a cell; the paper's methods in small capitals."""
    distance, _, aggregate = method.partition("/")
    small_caps = distance in DISTANCE_NAMES and bool(aggregate)
    return TableCell(text=method_name(method), italic=italic, bold=bold, small_caps=small_caps)


def number(value: float | None) -> str:
    """Write a value as the paper does, a dash where there is none.

    >>> number(0.16349), number(None)
    ('0.163', '–')
    """
    return DASH if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    """Write a relative change as the paper does; nothing where there is none.

    >>> percent(0.0296), percent(-0.0001), percent(None)
    ('+3.0%', '-0.0%', '')
    """
    return "" if value is None else f"{value:+.1%}"


def value_cell(spot: Spot, *, bold: bool = False, italic: bool = False) -> TableCell:
    """Return the value of a place with its relative change; random has none against itself."""
    changed = spot.cell and spot.value is not None and spot.method != RANDOM
    relative = spot.cell.relative if spot.cell and changed else None
    return TableCell(text=number(spot.value), subscript=percent(relative), bold=bold, italic=italic)
