"""Methods beside the random pick and the oracle, with intervals and tests.

All from sums by patient: a resample is a row of weights, a swap a row of signs.
The same resample and the same swap serve every run, because the runs share
their patients.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.evaluation.draft_scores import Measured
from tabon.evaluation.results import MEAN_RUN, ORACLE, RANDOM, RANDOM_SEEDS, Cell
from tabon.evaluation.statistics import (
    bootstrap_weights,
    interval,
    randomisation_p,
    sum_by_patient,
    swap_signs,
)
from tabon.metrics.protocol import Counts, Score, Statistics, Values

SAME = 1e-12  # values that differ by less are a tie
NO_VALUE = 1e-9  # to the oracle: a draft that is rightly silent is better than one that is wrong
Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Chance:
    """The draws that all cells share."""

    weights: Array  # (resamples, patients)
    swaps: Array  # (trials, patients)

    @classmethod
    def draw(cls, num_patients: int, resamples: int, seed: int) -> "Chance":
        """Draw resamples and swaps of patients."""
        rng = np.random.default_rng(seed)
        return cls(bootstrap_weights(num_patients, resamples, rng), swap_signs(num_patients, resamples, rng))


@dataclass(frozen=True, slots=True, eq=False)
class RunTable:
    """One run's measured drafts in one part, and who took which."""

    run: str
    measured: Measured
    patients: Indices  # of each study
    picks: Sequence[Indices]  # of each method
    seeded: Sequence[Indices]  # the random baseline's, one for each seed
    distances: Sequence[Array] = ()  # of each method, (studies, K); NaN where there is none


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """Values of the systems (random first, then the methods) and of the oracle, and their draws."""

    values: Values  # (systems, scores)
    oracle: Values  # (scores,)
    seeded: Values  # (scores,)
    resampled: Values  # (resamples, systems, scores)
    resampled_oracle: Values  # (resamples, scores)
    swapped: Values  # (trials, methods, scores): differences to random
    outcomes: NDArray[np.intp]  # (methods, scores, 3): wins, ties, losses
    n: int


def compare(tables: Sequence[RunTable], methods: Sequence[str], chance: Chance) -> Iterator[Cell]:
    """Yield the cells of one metric in one part (its section is the caller's): each run, then the mean."""
    worths = [worth(table, chance) for table in tables]
    names = [score.name for score in tables[0].measured.scores]
    for table, found in zip(tables, worths, strict=True):
        yield from _against_random(found, _cells(table.run, found, names, methods), methods)
    if len(worths) > 1:
        mean = _mean(worths)
        yield from _against_random(mean, _cells(MEAN_RUN, mean, names, methods), methods)


def worth(table: RunTable, chance: Chance) -> Worth:
    """Work out one run."""
    measured, scores = table.measured, table.measured.scores
    studies = np.stack([measured.expected(), *(measured.picked(picks) for picks in table.picks)], axis=1)
    best = np.stack(list(_oracle_rows(measured)), axis=1)
    num_patients = chance.weights.shape[1]
    systems = sum_by_patient(studies, table.patients, num_patients)
    oracle = sum_by_patient(best, table.patients, num_patients)
    counts = np.bincount(table.patients, minlength=num_patients).astype(np.float64)
    n = counts.sum()
    seeded = [_values(scores, measured.picked(picks).sum(axis=0), n) for picks in table.seeded]
    resampled = chance.weights @ counts
    return Worth(
        values=_values(scores, systems.sum(axis=0), n),
        oracle=_oracle_values(scores, oracle.sum(axis=0), n),
        seeded=np.mean(seeded, axis=0),
        resampled=_values(scores, _weighted(chance.weights, systems), resampled[:, None]),
        resampled_oracle=_oracle_values(scores, _weighted(chance.weights, oracle), resampled),
        swapped=_swapped(scores, systems, n, chance.swaps),
        outcomes=_outcomes(measured, table.picks),
        n=int(n),
    )


def _oracle_rows(measured: Measured) -> Iterator[Statistics]:
    """Yield, for each score, the statistics of the draft of each study that is best by itself."""
    per_draft = measured.per_draft()
    silent = np.where(measured.there, NO_VALUE, -np.inf)
    for column in range(per_draft.shape[-1]):
        values = per_draft[..., column]
        yield measured.picked(np.where(np.isnan(values), silent, values).argmax(axis=1))


def _weighted(weights: Array, sums: Array) -> Array:
    """Add up patients' sums under many weightings, (draws, ...)."""
    flat: Array = weights @ sums.reshape(len(sums), -1)
    return flat.reshape(len(weights), *sums.shape[1:])


def _values(scores: Sequence[Score], sums: Statistics, counts: Counts | float) -> Values:
    """Return every score of every sum, (..., scores)."""
    counted = np.broadcast_to(np.asarray(counts, dtype=np.float64), sums.shape[:-1])
    return np.stack([score.value(sums, counted) for score in scores], axis=-1)


def _oracle_values(scores: Sequence[Score], sums: Statistics, counts: Counts | float) -> Values:
    """Return each score of its own oracle's sums: (..., scores, statistics) to (..., scores)."""
    counted = np.broadcast_to(np.asarray(counts, dtype=np.float64), sums.shape[:-2])
    columns = [score.value(sums[..., column, :], counted) for column, score in enumerate(scores)]
    return np.stack(columns, axis=-1)


def _swapped(scores: Sequence[Score], systems: Array, n: float, swaps: Array) -> Values:
    """Return the differences to random with random swaps of patients, (trials, methods, scores)."""
    total = systems.sum(axis=0)
    moved = _weighted(swaps, systems[:, 1:] - systems[:, :1])
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


def _mean(worths: Sequence[Worth]) -> Worth:
    """Take the unweighted mean over runs; counts add up."""
    fields = ("values", "oracle", "seeded", "resampled", "resampled_oracle", "swapped")
    means = {name: sum(getattr(found, name) for found in worths) / len(worths) for name in fields}
    outcomes = np.sum([found.outcomes for found in worths], axis=0)
    return Worth(**means, outcomes=outcomes, n=sum(found.n for found in worths))


def _cells(run: str, found: Worth, scores: Sequence[str], methods: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells of one run: random, its seeds, the oracle, the methods."""
    values = np.vstack([found.values, found.seeded[None], found.oracle[None]])
    unknown = np.full((1, len(scores)), np.nan)
    bounds = zip(interval(found.resampled), interval(found.resampled_oracle), strict=True)
    low, high = (np.vstack([systems, unknown, oracle[None]]) for systems, oracle in bounds)
    for row, method in enumerate([RANDOM, *methods, RANDOM_SEEDS, ORACLE]):
        for column, score in enumerate(scores):
            at = (row, column)
            yield Cell(
                run=run, section="", method=method, score=score, n=found.n,
                value=_number(values[at]), low=_number(low[at]), high=_number(high[at]),
            )  # fmt: skip


def _against_random(found: Worth, cells: Iterable[Cell], methods: Sequence[str]) -> Iterator[Cell]:
    """Add to the methods' cells how they compare with random."""
    random = found.values[0]
    delta = found.values[1:] - random
    deltas = found.resampled[:, 1:] - found.resampled[:, :1]
    gaps = _share(deltas, (found.resampled_oracle - found.resampled[:, 0])[:, None])
    columns = {
        "delta": delta,
        **dict(zip(("delta_low", "delta_high"), interval(deltas), strict=True)),
        "relative": _share(delta, np.abs(random)),
        "gap": _share(delta, found.oracle - random),
        **dict(zip(("gap_low", "gap_high"), interval(gaps), strict=True)),
        "p": randomisation_p(delta, found.swapped),
    }
    rows = {method: row for row, method in enumerate(methods)}
    for number, cell in enumerate(cells):
        if cell.method in rows:
            at = (rows[cell.method], number % len(random))
            counts = dict(zip(("wins", "ties", "losses"), found.outcomes[at].tolist(), strict=True))
            facts: dict[str, Any] = {name: _number(values[at]) for name, values in columns.items()}
            yield replace(cell, **facts, **counts)
        else:
            yield cell


def _share(part: Values, whole: Values) -> Values:
    """Divide, NaN where the whole is nothing, or less: there is no gap to close."""
    nothing = np.full(np.broadcast_shapes(np.shape(part), np.shape(whole)), np.nan)
    shares: Values = np.divide(part, whole, out=nothing, where=whole > SAME)
    return shares


def _number(value: np.float64 | Values) -> float | None:
    """Return a plain number; None where it is not defined."""
    return float(value) if np.isfinite(value) else None
