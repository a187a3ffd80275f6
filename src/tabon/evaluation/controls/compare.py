"""What a condition is worth: the share of the gap it closes, and what the right prior adds to it.

All from one set of resampled patients, so differences are paired.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.evaluation.compare import SAME, Chance, RunTable, worth
from tabon.evaluation.controls.conditions import RIGHT, LeftOut, Row
from tabon.evaluation.controls.draft_scores import PartTable
from tabon.evaluation.draft_scores import Measured
from tabon.evaluation.results import Cell
from tabon.evaluation.statistics import interval

LIKE = 0.15  # how far a draft of like length may differ, as a share of the pick's words

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number and its 95 % interval; None where it is not defined."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What something is worth by each score, and its draws."""

    value: Array  # (scores,)
    draws: Array  # (resamples, scores)

    def __sub__(self, other: "Spread") -> "Spread":
        """Subtract draw by draw: a paired difference."""
        return Spread(_subtracted(self.value, other.value), _subtracted(self.draws, other.draws))

    def __truediv__(self, other: "Spread") -> "Spread":
        """Divide draw by draw; NaN where there is nothing to divide by."""
        return Spread(_divided(self.value, other.value), _divided(self.draws, other.draws))

    def numbers(self) -> list[Number]:
        """Return each score's number with its interval."""
        ends = zip(self.value, *interval(self.draws), strict=True)
        return [Number(value=_plain(value), low=_plain(low), high=_plain(high)) for value, low, high in ends]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What the expected random pick, the oracle and groups of picks are worth."""

    random: Spread
    oracle: Spread
    groups: tuple[Spread, ...]  # of each group the mean over its picks

    @property
    def gap(self) -> Spread:
        """Return what lies between random and oracle."""
        return self.oracle - self.random


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

    @property
    def method(self) -> str:
        """Return the row's name in results."""
        return f"{self.selector} | {self.label}"

    def record(self) -> dict[str, Any]:
        """Return what results keep."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Outcome":
        """Read what results keep."""
        numbers = ("value", "ahead", "gap", "difference", "gap_difference")
        return cls(**{**record, **{name: Number(**record[name]) for name in numbers}})


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """A row beside its baseline and beside the right prior."""

    row: Row
    table: PartTable
    value: Spread
    ahead: Spread
    lost: Spread | None  # None: there is no right prior's row to compare with
    gap: Spread  # oracle - random

    def outcomes(self, studies: int) -> Iterator[Outcome]:
        """Yield one outcome a score, of so many studies in all."""
        scores = self.table.measured.scores
        unknown = [Number()] * len(scores)
        columns = zip(
            scores,
            self.value.numbers(),
            self.ahead.numbers(),
            (self.ahead / self.gap).numbers(),
            unknown if self.lost is None else self.lost.numbers(),
            unknown if self.lost is None else (self.lost / self.gap).numbers(),
            strict=True,
        )
        for score, value, ahead, gap, difference, gap_difference in columns:
            yield Outcome(
                selector=self.row.selector, group=self.row.group, label=self.row.label, x=self.row.x,
                section=self.table.part, score=score.name,
                n=len(self.table.cases), left_out=studies - len(self.table.cases),
                value=value, ahead=ahead, gap=gap, difference=difference, gap_difference=gap_difference,
            )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """One part under one metric, and the resamples that all rows share."""

    table: PartTable
    number: Mapping[str, int]  # of each patient
    weights: Array  # (resamples, patients)

    def outcomes(self, rows: Sequence[Row]) -> Iterator[Outcome | LeftOut]:
        """Yield the outcomes of one selector's rows; one of them is the right prior's."""
        right = next(row for row in rows if row.label == RIGHT)
        plain = [row for row in rows if row.comparable]
        found = self.judged(self.table, [*plain, right])
        for row, value in zip(plain, found.groups[:-1], strict=True):
            compared = _Compared(
                row, self.table, value, value - found.random, found.groups[-1] - value, found.gap
            )
            yield from compared.outcomes(len(self.table.cases))
        for row in rows:
            if not row.comparable:
                apart = self._like_length(row) if row.like_length else self._apart(row, right)
                yield from apart.outcomes(len(self.table.cases)) if isinstance(apart, _Compared) else [apart]

    def judged(self, table: PartTable, rows: Sequence[Row]) -> Judged:
        """Work out what rows are worth in some studies."""
        groups = [[picks.rows(table.cases) for picks in row.picks] for row in rows]
        return judged(table.measured, self._patients(table), groups, self.weights)

    def _apart(self, row: Row, right: Row) -> _Compared | LeftOut:
        """Compare a row that has studies or drafts of its own.

        Among fewer drafts there is no other right prior's row than this one.
        """
        table = self.table if row.drafts is None else self.table.first(row.drafts)
        if row.studies is not None:
            table = table.take(np.array([case.query.id in row.studies for case in table.cases], dtype=bool))
        if not table.cases:
            return _nothing_left(row, f"no study with {table.part} fits")
        found = self.judged(table, [row, right] if row.drafts is None else [row])
        value = found.groups[0]
        lost = None if row.drafts is not None else found.groups[1] - value
        return _Compared(row, table, value, value - found.random, lost, found.gap)

    def _like_length(self, row: Row) -> _Compared | LeftOut:
        """Compare picks with the mean of the study's other drafts of like length.

        What is lost is what length alone explains: (pick - random) - (pick - like drafts).
        """
        picks = row.picks[0].rows(self.table.cases)
        like = like_length(self.table.words(), self.table.measured.there, picks)
        keep: NDArray[np.bool_] = np.any(like, axis=1)
        if not keep.any():
            return _nothing_left(row, f"no pick has another draft of like length in {self.table.part}")
        table, groups = self.table.take(keep), [[picks[keep]]]
        found = judged(table.measured, self._patients(table), groups, self.weights)
        alike = replace(table.measured, there=like[keep])
        baseline = judged(alike, self._patients(table), groups, self.weights).random
        value = found.groups[0]
        return _Compared(row, table, value, value - baseline, baseline - found.random, found.gap)

    def _patients(self, table: PartTable) -> Indices:
        """Return the patient of each study."""
        return np.array([self.number[case.patient] for case in table.cases], dtype=np.intp)


def judged(
    measured: Measured, patients: Indices, groups: Sequence[Sequence[Indices]], weights: Array
) -> Judged:
    """Work out what groups of picks are worth, each as the mean over its picks."""
    flat = [picks for group in groups for picks in group]
    nobody = np.zeros(len(patients), dtype=np.intp)
    chance = Chance(weights, np.empty((0, weights.shape[1])))  # no swaps: there are no tests here
    found = worth(RunTable("", measured, patients, flat, [nobody]), chance)
    places = [slice(*ends) for ends in pairwise(np.cumsum([1, *map(len, groups)]).tolist())]
    return Judged(
        random=Spread(found.values[0], found.resampled[:, 0]),
        oracle=Spread(found.oracle, found.resampled_oracle),
        groups=tuple(
            Spread(found.values[place].mean(axis=0), found.resampled[:, place].mean(axis=1))
            for place in places
        ),
    )


def like_length(words: NDArray[np.int64], there: NDArray[np.bool_], picks: Indices) -> NDArray[np.bool_]:
    """Say which other drafts are about as long as the pick, (studies, K); none where nothing was picked.

    >>> like_length(np.array([[10, 11, 12, 9]]), np.ones((1, 4), dtype=bool), np.array([0])).tolist()
    [[False, True, False, True]]
    """
    own = np.take_along_axis(words, np.maximum(picks, 0)[:, None], axis=1)
    near = np.abs(words - own) <= LIKE * own
    itself = np.arange(words.shape[1])[None, :] == picks[:, None]
    alike: NDArray[np.bool_] = near & there & ~itself & (own > 0) & (picks >= 0)[:, None]
    return alike


def cell_of(outcome: Outcome, run: str) -> Cell:
    """Return an outcome as a cell of results."""
    value, ahead, gap = outcome.value, outcome.ahead, outcome.gap
    random = None if value.value is None or ahead.value is None else value.value - ahead.value
    return Cell(
        run=run, section=outcome.section, method=outcome.method, score=outcome.score, n=outcome.n,
        value=value.value, low=value.low, high=value.high,
        delta=ahead.value, delta_low=ahead.low, delta_high=ahead.high,
        relative=ahead.value / abs(random) if ahead.value is not None and random else None,
        gap=gap.value, gap_low=gap.low, gap_high=gap.high,
    )  # fmt: skip


def _subtracted(one: Array, other: Array) -> Array:
    """Subtract; what differs by rounding alone is equal."""
    difference: Array = one - other
    difference[np.abs(difference) < SAME] = 0.0
    return difference


def _divided(part: Array, whole: Array) -> Array:
    """Divide, NaN where the whole is nothing, or less."""
    nothing = np.full(part.shape, np.nan)
    shares: Array = np.divide(part, whole, out=nothing, where=whole > SAME)
    return shares


def _nothing_left(row: Row, reason: str) -> LeftOut:
    """Say that a row has no study."""
    return LeftOut(selector=row.selector, group=row.group, label=row.label, reason=reason)


def _plain(value: np.float64) -> float | None:
    """Return a plain number; None where it is not defined."""
    return float(value) if np.isfinite(value) else None
