"""Drafts made with and without the prior, chosen with the right prior, another's, and without one.

Two or more queries files hold drafts of the same studies. Only the studies that
all of them hold are compared, so the differences between files are paired.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tabon.errors import BadInputError
from tabon.evaluation import Case, Cases
from tabon.evaluation.compare import Chance, Worth
from tabon.evaluation.controls.conditions import RIGHT, Row
from tabon.evaluation.controls.outcomes import worth_of
from tabon.evaluation.draft_scores import Measured, measured_parts
from tabon.evaluation.results import ORACLE, RANDOM, Number
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
    generations = []
    for name, file in zip(generation_names(files), files, strict=True):
        by_id = {case.query.id: case for case in file.cases}
        order = (case.query.id for case in files[0].cases if case.query.id in shared)
        generations.append(Generation(name=name, cases=tuple(by_id[query] for query in order)))
    return generations


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
    generations: Sequence[Generation], metrics: Sequence[Metric], chance: Chance, *, with_states: bool
) -> Iterator[FactorialCell]:
    """Yield every way of choosing in every generation, each beside the first generation."""
    studies = [each.cases for each in generations]
    for tables in measured_parts(studies, metrics, with_states=with_states):
        found = [
            worth_of(each.rows, measured, chance) for each, measured in zip(generations, tables, strict=True)
        ]
        for each, measured, one in zip(generations, tables, found, strict=True):
            yield from _cells(each, measured, one, found[0])


def _cells(each: Generation, measured: Measured, found: Worth, first: Worth) -> Iterator[FactorialCell]:
    """Yield one generation's cells in one part: random, every row, the oracle."""
    right = {
        row.selector: value for row, value in zip(each.rows, found.methods, strict=True) if row.label == RIGHT
    }
    lines = [
        (RANDOM, "", found.random, first.random),
        *(
            (row.selector, row.label, value, before)
            for row, value, before in zip(each.rows, found.methods, first.methods, strict=True)
        ),
        (ORACLE, "", found.oracle, first.oracle),
    ]
    for selector, selection, value, before in lines:
        columns = zip(
            measured.scores,
            value.numbers(),
            ((value - found.random) / found.gap).numbers(),
            ((right.get(selector, value) - value) / found.gap).numbers(),
            (value - before).numbers(),
            strict=True,
        )
        for score, number, gap, gap_difference, difference in columns:
            yield FactorialCell(
                generation=each.name, selector=selector, selection=selection, section=measured.part,
                score=score.name, n=found.n, value=number, gap=gap, gap_difference=gap_difference,
                difference=difference,
            )  # fmt: skip
