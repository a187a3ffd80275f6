"""Picks beside the random pick and the oracle, with intervals and tests.

All from sums by patient: a resample is a row of weights, a swap a row of signs, the same for every run
and pick, so differences are paired (docs/decisions/evaluation-statistics.md).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from tabon.evaluation.draft_scores import Measured
from tabon.evaluation.inputs import Case
from tabon.evaluation.results import MEAN_RUN, ORACLE, RANDOM, RANDOM_SEEDS, Cell, Number
from tabon.evaluation.statistics import (
    Weights,
    bootstrap_weights,
    effective_number,
    interval,
    randomisation_p,
    spread,
    sum_by_patient,
    swap_signs,
    weighted,
)
from tabon.metrics.protocol import Counts, Score, Statistics, Values

SAME = 1e-12  # values that differ by less are a tie
NO_VALUE = 1e-9  # to the oracle: a draft that is rightly silent is better than one that is wrong
Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Chance:
    """The patients, and the draws of them that all comparisons share."""

    patients: Mapping[str, int]  # the column of each
    weights: Weights  # (resamples, patients)
    swaps: Weights  # (trials, patients)

    @classmethod
    def draw(cls, cases: Iterable[Case], *, resamples: int, swaps: int, seed: int) -> "Chance":
        """Draw resamples and swaps of the patients of some studies."""
        rng = np.random.default_rng(seed)
        patients = {name: row for row, name in enumerate(dict.fromkeys(case.patient for case in cases))}
        weights = bootstrap_weights(len(patients), resamples, rng)
        return cls(patients, weights, swap_signs(len(patients), swaps, rng))

    def sums(self, cases: Sequence[Case], values: Array) -> Array:
        """Add up (studies, ...) to (patients, ...)."""
        rows = np.array([self.patients[case.patient] for case in cases], dtype=np.intp)
        return sum_by_patient(values, rows, len(self.patients))


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A value by each score, and its draws."""

    value: Array  # (scores,)
    draws: Array  # (resamples, scores)
    patients: float  # effective number

    @classmethod
    def mean(cls, many: Sequence["Estimate"]) -> "Estimate":
        """Return the unweighted mean, draw by draw."""
        value = np.mean([each.value for each in many], axis=0)
        draws = np.mean([each.draws for each in many], axis=0)
        return cls(value, draws, min(each.patients for each in many))

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Subtract draw by draw: a paired difference."""
        value, draws = _difference(self.value, other.value), _difference(self.draws, other.draws)
        return Estimate(value, draws, min(self.patients, other.patients))

    def __truediv__(self, other: "Estimate") -> "Estimate":
        """Divide draw by draw; NaN where there is nothing to divide by."""
        value, draws = _share(self.value, other.value), _share(self.draws, other.draws)
        return Estimate(value, draws, min(self.patients, other.patients))

    def p(self) -> Array:
        """Return two-sided p of each score's value being 0: Student's t, from the spread of the draws."""
        if self.patients < 2:  # noqa: PLR2004  # no spread
            return np.full(self.value.shape, np.nan)
        wide = np.sqrt(self.patients / (self.patients - 1)) * spread(self.draws)
        ratio = np.divide(-np.abs(self.value), wide, out=np.full(wide.shape, np.nan), where=wide > 0)
        p: Array = 2 * stdtr(self.patients - 1, ratio)
        return np.where(self.value == 0, 1.0, p)

    def numbers(self) -> list[Number]:
        """Return each score's number with its 95 % interval."""
        ends = zip(self.value, *interval(self.draws, self.patients), strict=True)
        return [Number(value=_plain(value), low=_plain(low), high=_plain(high)) for value, low, high in ends]


@dataclass(frozen=True, slots=True, eq=False)
class RunTable:
    """One run's measured drafts in one part, and who took which."""

    run: str
    measured: Measured
    picks: Sequence[Indices]  # of each method
    seeded: Sequence[Indices] = ()  # the random baseline's, one for each seed
    distances: Sequence[Array] = ()  # of the methods that K-curves are drawn of, (studies, K); or NaN

    def by(self, scores: Collection[str]) -> "RunTable":
        """Return some of the scores."""
        return replace(self, measured=self.measured.by(scores))

    def take(self, keep: NDArray[np.bool_]) -> "RunTable":
        """Return some of the studies."""
        return replace(
            self,
            measured=self.measured.take(keep),
            picks=[picks[keep] for picks in self.picks],
            seeded=[picks[keep] for picks in self.seeded],
            distances=[distances[keep] for distances in self.distances],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """The scores of the expected random pick, of the oracle and of the picks of some methods."""

    random: Estimate
    oracle: Estimate
    methods: tuple[Estimate, ...]
    seeded: Values  # (scores,)
    swapped: Values  # (trials, methods, scores): differences to random
    outcomes: NDArray[np.intp]  # (methods, scores, 3): wins, ties, losses
    n: int

    @property
    def gap(self) -> Estimate:
        """Return what lies between random and oracle."""
        return self.oracle - self.random


def compare(tables: Sequence[RunTable], methods: Sequence[str], chance: Chance) -> Iterator[Cell]:
    """Yield the cells of one metric in one part: each run, then the mean."""
    worths = [worth(table, chance) for table in tables]
    for table, found in zip(tables, worths, strict=True):
        yield from _cells(table.run, found, table.measured, methods)
    if len(worths) > 1:
        yield from _cells(MEAN_RUN, mean_worth(worths), tables[0].measured, methods)


def worth(table: RunTable, chance: Chance) -> Worth:
    """Work out one run."""
    measured, scores = table.measured, table.measured.scores
    studies = np.stack([measured.expected(), *(measured.picked(picks) for picks in table.picks)], axis=1)
    systems = chance.sums(measured.cases, studies)
    best = chance.sums(measured.cases, np.stack(list(_oracle_rows(measured)), axis=1))
    counts = chance.sums(measured.cases, np.ones(len(measured.cases)))
    random, *methods = estimates(scores, systems, counts, chance)
    n, drawn = counts.sum(), weighted(chance.weights, counts)
    seeded = [_values(scores, measured.picked(picks).sum(axis=0), n) for picks in table.seeded]
    return Worth(
        random=random,
        oracle=Estimate(
            _oracle_values(scores, best.sum(axis=0), n),
            _oracle_values(scores, weighted(chance.weights, best), drawn),
            random.patients,
        ),
        methods=tuple(methods),
        seeded=np.mean(seeded, axis=0) if seeded else np.full(len(scores), np.nan),
        swapped=_swapped(scores, systems, n, chance.swaps),
        outcomes=_outcomes(measured, table.picks),
        n=int(n),
    )


def estimates(scores: Sequence[Score], systems: Array, counts: Array, chance: Chance) -> list[Estimate]:
    """Return the scores of systems, from patients' sums (patients, systems, statistics) and counts."""
    values = _values(scores, systems.sum(axis=0), counts.sum())
    draws = _values(scores, weighted(chance.weights, systems), (weighted(chance.weights, counts))[:, None])
    patients = effective_number(counts)
    return [Estimate(values[row], draws[:, row], patients) for row in range(len(values))]


def swapped_differences(table: RunTable, chance: Chance) -> Values:
    """Return how far the second method is ahead of the first with patients swapped, (trials, scores)."""
    measured = table.measured
    systems = chance.sums(measured.cases, np.stack([measured.picked(picks) for picks in table.picks], axis=1))
    return _swapped(measured.scores, systems, len(measured.cases), chance.swaps)[:, 0]


def _oracle_rows(measured: Measured) -> Iterator[Statistics]:
    """Yield, for each score, the statistics of the draft of each study that is best by itself."""
    for values in np.moveaxis(worth_to_oracle(measured), -1, 0):
        yield measured.picked(values.argmax(axis=1))


def worth_to_oracle(measured: Measured) -> Values:
    """Return what each draft is worth by itself, (studies, K, scores); -inf where there is none."""
    per_draft = measured.per_draft()
    silent = np.where(measured.there, NO_VALUE, -np.inf)[..., None]
    return np.where(np.isnan(per_draft), silent, per_draft)


def _values(scores: Sequence[Score], sums: Statistics, counts: Counts | float) -> Values:
    """Return every score of every sum, (..., scores)."""
    counted = np.broadcast_to(np.asarray(counts, dtype=np.float64), sums.shape[:-1])
    return np.stack([score.value(sums, counted) for score in scores], axis=-1)


def _oracle_values(scores: Sequence[Score], sums: Statistics, counts: Counts | float) -> Values:
    """Return each score of its own oracle's sums: (..., scores, statistics) to (..., scores)."""
    counted = np.broadcast_to(np.asarray(counts, dtype=np.float64), sums.shape[:-2])
    columns = [score.value(sums[..., column, :], counted) for column, score in enumerate(scores)]
    return np.stack(columns, axis=-1)


def _swapped(scores: Sequence[Score], systems: Array, n: float, swaps: Weights) -> Values:
    """Return the differences to the first system with patients swapped, (trials, systems - 1, scores)."""
    total = systems.sum(axis=0)
    moved = weighted(swaps, systems[:, 1:] - systems[:, :1])
    return _values(scores, total[1:] - moved, n) - _values(scores, total[:1] + moved, n)


def _outcomes(measured: Measured, picks: Sequence[Indices]) -> NDArray[np.intp]:
    """Count wins, ties and losses against the expected random pick, (methods, scores, 3)."""
    per_draft = measured.per_draft()
    defined = ~np.isnan(per_draft)
    random = np.nansum(per_draft, axis=1) / np.maximum(defined.sum(axis=1), 1)
    counts = []
    for pick in picks:
        chosen = np.take_along_axis(per_draft, np.maximum(pick, 0)[:, None, None], axis=1)[:, 0]
        ahead = np.where((pick < 0)[:, None] | np.isnan(chosen), 0.0, chosen - random)
        counts.append([(ahead > SAME).sum(0), (np.abs(ahead) <= SAME).sum(0), (ahead < -SAME).sum(0)])
    shape = (0, 3, per_draft.shape[-1])
    return np.swapaxes(np.array(counts or np.empty(shape), dtype=np.intp), 1, 2)


def mean_worth(worths: Sequence[Worth]) -> Worth:
    """Take the unweighted mean over runs; counts add up."""
    return Worth(
        random=Estimate.mean([found.random for found in worths]),
        oracle=Estimate.mean([found.oracle for found in worths]),
        methods=tuple(map(Estimate.mean, zip(*(found.methods for found in worths), strict=True))),
        seeded=np.mean([found.seeded for found in worths], axis=0),
        swapped=np.mean([found.swapped for found in worths], axis=0),
        outcomes=np.sum([found.outcomes for found in worths], axis=0),
        n=sum(found.n for found in worths),
    )


def _cells(run: str, found: Worth, measured: Measured, methods: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells of one run: random, the methods beside it, its seeds, the oracle."""
    cell = partial(Cell, run=run, section=measured.part, n=found.n)
    scores = [score.name for score in measured.scores]
    for score, value in zip(scores, found.random.numbers(), strict=True):
        yield cell(method=RANDOM, score=score, **value.named())
    for row, (method, picked) in enumerate(zip(methods, found.methods, strict=True)):
        ahead = picked - found.random
        columns = zip(
            scores,
            picked.numbers(),
            ahead.numbers(),
            (ahead / found.gap).numbers(),
            _share(ahead.value, np.abs(found.random.value)),
            randomisation_p(ahead.value, found.swapped[:, row]),
            found.outcomes[row].tolist(),
            strict=True,
        )
        for score, value, delta, gap, relative, p, (wins, ties, losses) in columns:
            yield cell(
                method=method, score=score, **value.named(), **delta.named("delta"), **gap.named("gap"),
                relative=_plain(relative), p=_plain(p), wins=wins, ties=ties, losses=losses,
            )  # fmt: skip
    for score, mean in zip(scores, found.seeded, strict=True):
        yield cell(method=RANDOM_SEEDS, score=score, value=_plain(mean))
    for score, value in zip(scores, found.oracle.numbers(), strict=True):
        yield cell(method=ORACLE, score=score, **value.named())


def _difference(one: Array, other: Array) -> Array:
    """Subtract; what differs by rounding alone is equal."""
    difference: Array = one - other
    difference[np.abs(difference) < SAME] = 0.0
    return difference


def _share(part: Values, whole: Values) -> Values:
    """Divide, NaN where the whole is nothing, or less: there is no gap to close."""
    nothing = np.full(part.shape, np.nan)
    shares: Values = np.divide(part, whole, out=nothing, where=whole > SAME)
    return shares


def _plain(value: np.float64) -> float | None:
    """Return a plain number; None where it is not defined."""
    return float(value) if np.isfinite(value) else None
