"""Intervals and tests that respect patients, from sums of statistics.

A patient's studies are resampled and swapped together, as a matrix product of (resamples, patients)
weights with (patients, columns) sums (docs/decisions/evaluation-statistics.md). Weights are kept as small
whole numbers, and become float64 some rows at a time.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

Array = NDArray[np.float64]
Weights = NDArray[np.int16]
CONFIDENCE = 0.95
NUMBERS_AT_ONCE = 4_000_000  # 32 MB as float64


def patient_rows(patients: Sequence[str]) -> NDArray[np.intp]:
    """Number the patients in the order of their first study.

    >>> patient_rows(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(patient, len(numbers)) for patient in patients], dtype=np.intp)


def sum_by_patient(values: Array, rows: NDArray[np.intp], num_patients: int) -> Array:
    """Add up (studies, ...) to (patients, ...)."""
    sums = np.zeros((num_patients, *values.shape[1:]))
    np.add.at(sums, rows, values)
    return sums


def bootstrap_weights(num_patients: int, resamples: int, rng: np.random.Generator) -> Weights:
    """How often each patient is drawn, (resamples, patients); each row adds up to the patients."""
    weights = np.empty((resamples, num_patients), dtype=np.int16)
    for rows in row_blocks(resamples, num_patients):
        drawn = rng.integers(num_patients, size=weights[rows].shape)
        drawn += np.arange(len(drawn))[:, None] * num_patients
        weights[rows] = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
    return weights


def swap_signs(num_patients: int, trials: int, rng: np.random.Generator) -> Weights:
    """Which patients are swapped between two methods, (trials, patients), 0 or 1."""
    signs = np.empty((trials, num_patients), dtype=np.int16)
    for rows in row_blocks(trials, num_patients):
        signs[rows] = rng.integers(2, size=signs[rows].shape)
    return signs


def weighted(weights: Weights, sums: Array) -> Array:
    """Add up patients' sums under many weightings, (draws, ...)."""
    flat = sums.reshape(len(sums), -1)
    found = np.empty((len(weights), flat.shape[1]))
    for rows in row_blocks(*weights.shape):
        found[rows] = weights[rows].astype(np.float64) @ flat
    return found.reshape(len(weights), *sums.shape[1:])


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Cut the rows of a matrix into blocks of some million numbers.

    >>> list(row_blocks(5, 2_000_000))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    >>> list(row_blocks(2, 10**9))
    [slice(0, 1, None), slice(1, 2, None)]
    """
    size = max(1, NUMBERS_AT_ONCE // columns)
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def effective_number(studies: Array) -> float:
    """Return how many patients with equally many studies would tell as much: (sum)^2 / sum of squares.

    >>> effective_number(np.array([2.0, 2.0, 2.0])), effective_number(np.array([5.0, 1.0, 0.0]))
    (3.0, 1.3846153846153846)
    """
    return float(studies.sum() ** 2 / (studies**2).sum())


def spread(resampled: Array) -> Array:
    """Return the standard deviation over the first axis, of what is defined."""
    defined = ~np.isnan(resampled)
    count = np.maximum(defined.sum(axis=0), 1)
    mean = np.where(defined, resampled, 0.0).sum(axis=0) / count
    found: Array = np.sqrt((np.where(defined, resampled - mean, 0.0) ** 2).sum(axis=0) / count)
    return found


def interval(resampled: Array, patients: float) -> tuple[Array, Array]:
    """Percentile interval over the first axis, expanded for few patients; NaN where nothing is defined.

    Resamples of n patients spread sqrt((n - 1) / n) too little, and a normal tail is thinner than Student's.
    Both are made up for by percentiles further out (Hesterberg 2015, section 5.3); one patient has none.
    """
    tail = percentile_tail(patients)
    flat = resampled.reshape(len(resampled), -1)
    ordered = np.sort(flat, axis=0)  # NaN last
    defined = (~np.isnan(flat)).sum(axis=0)
    low, high = (_quantile(ordered, defined, share) for share in (tail, 1 - tail))
    return low.reshape(resampled.shape[1:]), high.reshape(resampled.shape[1:])


def percentile_tail(patients: float) -> float:
    """Return the share of resamples of n patients below a 95 % interval: Phi(-sqrt(n / (n - 1)) t).

    t is the quantile of Student's distribution with n - 1 degrees of freedom.

    >>> [round(percentile_tail(patients), 4) for patients in (10, 100, 1_000_000)]
    [0.0086, 0.0231, 0.025]
    """
    if patients < 2:  # noqa: PLR2004  # nothing to resample
        return np.nan
    reach = np.sqrt(patients / (patients - 1)) * stdtrit(patients - 1, (1 + CONFIDENCE) / 2)
    return float(ndtr(-reach))


def _quantile(ordered: Array, defined: NDArray[np.intp], share: float) -> Array:
    """Take the quantile of each sorted column among its defined values, by linear interpolation."""
    if np.isnan(share):
        return np.full(ordered.shape[1], np.nan)
    position = share * np.maximum(defined - 1, 0)
    below = np.floor(position).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(defined - 1, 0))
    columns = np.arange(ordered.shape[1])
    step = position - below
    values: Array = ordered[below, columns] * (1 - step) + ordered[above, columns] * step
    return values


def randomisation_p(observed: Array, swapped: Array) -> Array:
    """Two-sided p = (c + 1) / (n + 1), c of the n defined swapped differences at least as far from 0.

    >>> float(randomisation_p(np.array(2.0), np.array([1.0, -2.0, 0.5])))
    0.5
    """
    defined = ~np.isnan(swapped)
    at_least = np.abs(np.where(defined, swapped, 0.0)) >= np.abs(observed) * (1 - 1e-12)
    p: Array = ((at_least & defined).sum(axis=0) + 1.0) / (defined.sum(axis=0) + 1.0)
    return np.where(np.isnan(observed), np.nan, p)


def holm(p: Array) -> Array:
    """Adjust for the family-wise error rate (Holm, step down).

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    return _back(np.minimum(stepped, 1.0), order)


def benjamini_hochberg(p: Array) -> Array:
    """Adjust for the false discovery rate (Benjamini-Hochberg, step up).

    >>> [round(value, 4) for value in benjamini_hochberg(np.array([0.01, 0.04, 0.03])).tolist()]
    [0.03, 0.04, 0.04]
    """
    order = np.argsort(p, kind="stable")
    stepped = p[order] * len(p) / np.arange(1, len(p) + 1)
    falling = np.minimum.accumulate(stepped[::-1])[::-1]
    return _back(np.minimum(falling, 1.0), order)


def adjusted(p: Sequence[float | None], adjust: Callable[[Array], Array] = holm) -> list[float | None]:
    """Adjust those that are defined; None stays None and is not counted.

    >>> adjusted([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    values = iter(adjust(np.array([each for each in p if each is not None], dtype=np.float64)).tolist())
    return [None if each is None else next(values) for each in p]


def _back(adjusted: Array, order: NDArray[np.intp]) -> Array:
    """Put sorted values back to where they came from."""
    values = np.empty_like(adjusted)
    values[order] = adjusted
    return values
