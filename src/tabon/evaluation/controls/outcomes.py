"""What a condition is worth: the share of the gap it closes, and what the right prior adds to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.evaluation.compare import Chance, Estimate, Indices, RunTable, Worth, worth
from tabon.evaluation.controls.conditions import RIGHT, LeftOut, Row
from tabon.evaluation.draft_scores import Measured
from tabon.evaluation.results import Cell, Number

LIKE = 0.15  # how far a draft of like length may differ, as a share of the pick's words


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

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Outcome":
        """Read what results keep."""
        numbers = ("value", "ahead", "gap", "difference", "gap_difference")
        return cls(**{**record, **{name: Number(**record[name]) for name in numbers}})

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
    """Work out what rows are worth in some studies, each as the mean over its seeds."""
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
            strict=True,
        )
        for score, value, delta, gap, difference, gap_difference in columns:
            yield Outcome(
                selector=self.row.selector, group=self.row.group, label=self.row.label, x=self.row.x,
                section=self.measured.part, score=score.name, n=n, left_out=studies - n,
                value=value, ahead=delta, gap=gap, difference=difference, gap_difference=gap_difference,
            )  # fmt: skip


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
    """Compare picks with the mean of the study's other drafts of like length.

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
    near = np.abs(words - own) <= LIKE * own
    itself = np.arange(words.shape[1])[None, :] == picks[:, None]
    alike: NDArray[np.bool_] = near & there & ~itself & (own > 0) & (picks >= 0)[:, None]
    return alike
