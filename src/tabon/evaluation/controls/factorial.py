"""Drafts made with and without the prior, chosen with the right prior, another's, and without one.

Two or more queries files hold drafts of the same studies. Only the studies that
all of them hold are compared, so the differences between files are paired.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from tabon.errors import BadInputError
from tabon.evaluation import Case, Cases
from tabon.evaluation.controls.compare import Array, Judge, Judged, Number, Spread
from tabon.evaluation.controls.conditions import RIGHT, Row
from tabon.evaluation.controls.draft_scores import PartTable, part_tables
from tabon.evaluation.results import ORACLE, RANDOM
from tabon.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorialCell:
    """What one way of choosing among drafts of one generation is worth."""

    generation: str
    selector: str  # or random, or oracle
    selection: str  # "right prior"
    section: str
    score: str
    n: int
    value: Number
    gap: Number
    gap_difference: Number  # right prior - this, as a share of oracle - random
    difference: Number  # this generation - the first, in the score

    def record(self) -> dict[str, Any]:
        """Return what results keep."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "FactorialCell":
        """Read what results keep."""
        names = ("value", "gap", "gap_difference", "difference")
        numbers = {name: Number(**record[name]) for name in names}
        return cls(**{**record, **numbers})


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Drafts of one kind, and what was chosen among them."""

    name: str
    cases: tuple[Case, ...]
    rows: tuple[Row, ...] = ()  # of all selectors, the same ones in every generation


def generations_of(files: Sequence[Cases]) -> list[Generation]:
    """Name the files by their prompts and keep the studies that all hold, in the order of the first.

    Raises:
        BadInputError: two files share no study.
    """
    shared = {case.query.id for case in files[0].cases}
    for other in files[1:]:
        found = {case.query.id for case in other.cases}
        if not shared & found:
            raise BadInputError(
                f"{other.name} shares no query id with the files before it; "
                "give drafts of the same studies, with the same ids"
            )
        shared &= found
    order = [case.query.id for case in files[0].cases if case.query.id in shared]
    return [
        Generation(name=name, cases=_in_order(file, order))
        for name, file in zip(generation_names(files), files, strict=True)
    ]


def generation_names(files: Sequence[Cases]) -> list[str]:
    """Return each file's prompt, or as much of its path as tells the files apart."""
    prompts = [file.fact("prompt") for file in files]
    if all(prompts) and len(set(prompts)) == len(prompts):
        return prompts
    paths = [PurePath(file.name).parts for file in files]
    for length in range(1, 1 + max(map(len, paths))):
        names = ["/".join(parts[-length:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{file.name} ({place})" for place, file in enumerate(files, start=1)]


def factorial_cells(
    generations: Sequence[Generation],
    metrics: Sequence[Metric],
    *,
    states: bool,
    number: Mapping[str, int],
    weights: Array,
) -> Iterator[FactorialCell]:
    """Yield every way of choosing in every generation, each beside the first generation."""
    found = [part_tables(each.cases, metrics, states=states) for each in generations]
    tables = [{(part.part, part.measured.signature): part for part in parts} for parts in found]
    for key in [key for key in tables[0] if all(key in table for table in tables)]:
        parts = [table[key] for table in tables]
        judged = [
            Judge(part, number, weights).judged(part, each.rows)
            for part, each in zip(parts, generations, strict=True)
        ]
        for place, each in enumerate(generations):
            yield from _cells(each, parts[place], judged[place], judged[0])


def _in_order(file: Cases, order: Sequence[str]) -> tuple[Case, ...]:
    """Return some studies in a given order."""
    by_id = {case.query.id: case for case in file.cases}
    return tuple(by_id[name] for name in order)


def _cells(each: Generation, part: PartTable, found: Judged, first: Judged) -> Iterator[FactorialCell]:
    """Yield one generation's cells in one part: random, every row, the oracle."""
    right = {
        row.selector: value for row, value in zip(each.rows, found.groups, strict=True) if row.label == RIGHT
    }
    lines = [
        (RANDOM, "", found.random, first.random),
        *(
            (row.selector, row.label, value, before)
            for row, value, before in zip(each.rows, found.groups, first.groups, strict=True)
        ),
        (ORACLE, "", found.oracle, first.oracle),
    ]
    for selector, selection, value, before in lines:
        lost = right.get(selector, value) - value
        numbers = _numbers(value, found, lost, before)
        for score, worth, gap, gap_difference, difference in zip(part.measured.scores, *numbers, strict=True):
            yield FactorialCell(
                generation=each.name, selector=selector, selection=selection, section=part.part,
                score=score.name, n=len(part.cases), value=worth, gap=gap, gap_difference=gap_difference,
                difference=difference,
            )  # fmt: skip


def _numbers(value: Spread, found: Judged, lost: Spread, before: Spread) -> tuple[list[Number], ...]:
    """Return values, gaps closed, what the right prior adds, and differences to the first generation."""
    gap = (value - found.random) / found.gap
    return value.numbers(), gap.numbers(), (lost / found.gap).numbers(), (value - before).numbers()
