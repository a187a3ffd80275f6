"""The outcome of a condition: the share of the gap it closes, and what the right prior adds to it.

Two or more queries files hold drafts of the same studies: made with and without the prior, chosen with
the right prior, another's, and without one. Studies that all files hold are compared, in pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from tabon.errors import BadInputError
from tabon.evaluation import Case, Cases
from tabon.evaluation.compare import Chance, Estimate, Indices, RunTable, Worth, worth
from tabon.evaluation.controls.conditions import RIGHT, LeftOut, Row
from tabon.evaluation.draft_scores import Measured, measured_parts
from tabon.evaluation.results import ORACLE, RANDOM, Cell, Number
from tabon.evaluation.statistics import adjusted
from tabon.metrics import Metric

SIMILAR_LENGTH = 0.15  # how far a draft's words may differ, as a share of the pick's


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One row of the controls in one part under one score."""

    selector: str
    group: str
    label: str
    x: int | None
    section: str
    score: str
    n: int  # studies
    left_out: int  # studies of the part that do not fit the condition
    value: Number  # of the score
    ahead: Number  # of the baseline, in the score
    gap: Number  # ahead as a share of oracle - random
    difference: Number  # right prior - this, in the score
    gap_difference: Number  # right prior - this, as a share of oracle - random
    p: float | None = None  # of the difference, Student's t
    holm: float | None = None  # p adjusted over all rows, sections and scores of the controls

    @property
    def method(self) -> str:
        """Return the row's name in results."""
        return f"{self.selector} | {self.label}"

    def cell(self, run: str) -> Cell:
        """Return the outcome as a cell of results."""
        value, ahead = self.value.value, self.ahead.value
        random = None if value is None or ahead is None else value - ahead
        return Cell(
            run=run, section=self.section, method=self.method, score=self.score, n=self.n,
            **self.value.named(), **self.ahead.named("delta"), **self.gap.named("gap"),
            relative=ahead / abs(random) if ahead is not None and random else None,
        )  # fmt: skip


def outcomes_of(rows: Sequence[Row], measured: Measured, chance: Chance) -> Iterator[Outcome | LeftOut]:
    """Yield the outcomes of one selector's rows in one part; one of them is the right prior's."""
    right = next(row for row in rows if row.label == RIGHT)
    plain = [row for row in rows if row.comparable]
    found = worth_of([*plain, right], measured, chance)
    compared: list[_Compared | LeftOut] = [
        _Compared(row, measured, value, found.random, found.methods[-1] - value, found.gap)
        for row, value in zip(plain, found.methods[:-1], strict=True)
    ]
    for row in rows:
        if row.like_length:
            compared.append(_beside_like_length(row, measured, chance))
        elif not row.comparable:
            compared.append(_on_its_own(row, right, measured, chance))
    for each in compared:
        yield from [each] if isinstance(each, LeftOut) else each.outcomes(len(measured.cases))


def worth_of(rows: Sequence[Row], measured: Measured, chance: Chance) -> Worth:
    """Work out the scores of rows in some studies, each as the mean over its seeds."""
    picks = [picks.rows(measured.cases) for row in rows for picks in row.picks]
    found = worth(RunTable("", measured, picks), chance)
    each = iter(found.methods)
    return replace(found, methods=tuple(Estimate.mean(list(islice(each, len(row.picks)))) for row in rows))


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """A row beside its baseline and beside the right prior."""

    row: Row
    measured: Measured
    value: Estimate
    baseline: Estimate
    lost: Estimate | None  # None: there is no right prior's row to compare with
    gap: Estimate  # oracle - random

    def outcomes(self, studies: int) -> Iterator[Outcome]:
        """Yield one outcome a score, of so many studies in all."""
        scores, n = self.measured.scores, len(self.measured.cases)
        ahead = self.value - self.baseline
        unknown = [Number()] * len(scores)
        columns = zip(
            scores,
            self.value.numbers(),
            ahead.numbers(),
            (ahead / self.gap).numbers(),
            unknown if self.lost is None else self.lost.numbers(),
            unknown if self.lost is None else (self.lost / self.gap).numbers(),
            [None] * len(scores) if self.lost is None or self.row.label == RIGHT else self.lost.p().tolist(),
            strict=True,
        )
        for score, value, delta, gap, difference, gap_difference, p in columns:
            yield Outcome(
                selector=self.row.selector, group=self.row.group, label=self.row.label, x=self.row.x,
                section=self.measured.part, score=score.name, n=n, left_out=studies - n,
                value=value, ahead=delta, gap=gap, difference=difference, gap_difference=gap_difference,
                p=None if p is None or np.isnan(p) else p,
            )  # fmt: skip


def adjusted_outcomes(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Adjust p over all rows (Holm); one that is not defined is not counted."""
    values = adjusted([outcome.p for outcome in outcomes])
    return [replace(outcome, holm=value) for outcome, value in zip(outcomes, values, strict=True)]


def _on_its_own(row: Row, right: Row, measured: Measured, chance: Chance) -> _Compared | LeftOut:
    """Compare a row that has studies or drafts of its own.

    Among fewer drafts there is no other right prior's row than this one.
    """
    if row.drafts is not None:
        measured = measured.first(row.drafts)
    if row.studies is not None:
        measured = measured.take(
            np.array([case.query.id in row.studies for case in measured.cases], dtype=bool)
        )
    if not measured.cases:
        return row.left_out(f"no study with {measured.part} fits")
    found = worth_of([row, right] if row.drafts is None else [row], measured, chance)
    value, lost = found.methods[0], None
    if row.drafts is None:
        lost = found.methods[1] - value
    return _Compared(row, measured, value, found.random, lost, found.gap)


def _beside_like_length(row: Row, measured: Measured, chance: Chance) -> _Compared | LeftOut:
    """Compare picks with the mean of the study's other drafts of similar length.

    What is lost is what length alone explains: (pick - random) - (pick - like drafts).
    """
    like = like_length(measured.words(), measured.there, row.picks[0].rows(measured.cases))
    keep: NDArray[np.bool_] = np.any(like, axis=1)
    if not keep.any():
        return row.left_out(f"no pick has another draft of like length in {measured.part}")
    table = measured.take(keep)
    found = worth_of([row], table, chance)
    baseline = worth_of([row], replace(table, there=like[keep]), chance).random
    return _Compared(row, table, found.methods[0], baseline, baseline - found.random, found.gap)


def like_length(words: NDArray[np.int64], there: NDArray[np.bool_], picks: Indices) -> NDArray[np.bool_]:
    """Say which other drafts are about as long as the pick, (studies, K); none where nothing was picked.

    >>> like_length(np.array([[10, 11, 12, 9]]), np.ones((1, 4), dtype=bool), np.array([0])).tolist()
    [[False, True, False, True]]
    """
    own = np.take_along_axis(words, np.maximum(picks, 0)[:, None], axis=1)
    near = np.abs(words - own) <= SIMILAR_LENGTH * own
    itself = np.arange(words.shape[1])[None, :] == picks[:, None]
    similar: NDArray[np.bool_] = near & there & ~itself & (own > 0) & (picks >= 0)[:, None]
    return similar


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorialCell:
    """The score of one way of choosing among drafts of one generation."""

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
    """Return each file's prompt, or as much of its path as distinguishes the files."""
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
            yield from _factorial_cells(each, measured, one, found[0])


def _factorial_cells(
    each: Generation, measured: Measured, found: Worth, first: Worth
) -> Iterator[FactorialCell]:
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
