"""Numbers with intervals for new cases and new readers, from sums over answers.

Every number is a function of sums over answers. Cases, readers and single answers are resampled in turn; the
spreads add up as in two-way clustering, V(cases) + V(readers) - V(answers), since the first two both hold the
noise of single answers (Cameron, Gelbach and Miller 2011). Readers are few: their part is weighed with
Student's t of as many readers, the rest with that of as many cases (Cochran's answer to Behrens and Fisher).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tabon.evaluation.results import Number
from tabon.evaluation.statistics import CONFIDENCE, Array, bootstrap_weights, sum_by_patient, weighted

Rows = NDArray[np.intp]
MOST_WEIGHTS = 2_000_000  # at once
Function = Callable[[Array], Array]  # sums (resamples, columns) to numbers (resamples, numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Number):
    """A number with two intervals: for new cases and new readers, and for new cases of these readers."""

    these_low: float | None = None
    these_high: float | None = None

    def fields(self) -> dict[str, Any]:
        """Return its fields by name, for a record that holds it beside other things."""
        return {**self.named(), "these_low": self.these_low, "these_high": self.these_high}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed:
    """Answers, each with the case and the reader that it is of, counted from 0."""

    cases: Rows
    readers: Rows
    resamples: int = 2_000
    seed: int = 0

    def spreads(self, columns: Array, function: Function) -> "Spreads":
        """Return the value of each number, and how far it spreads over cases, readers and answers."""
        rng = np.random.default_rng(self.seed)

        def variance(rows: Rows) -> Array | None:
            units = int(rows.max(initial=-1)) + 1
            if units < 2:  # noqa: PLR2004  # nothing to resample
                return None
            sums = sum_by_patient(columns, rows, units)
            part = max(1, MOST_WEIGHTS // units)
            sizes = [min(part, self.resamples - start) for start in range(0, self.resamples, part)]
            found = [function(weighted(bootstrap_weights(units, size, rng), sums)) for size in sizes]
            return _variance(np.concatenate(found)) * units / (units - 1)

        return Spreads(
            value=function(columns.sum(axis=0, keepdims=True))[0],
            cases=variance(self.cases),
            readers=variance(self.readers),
            each=variance(np.arange(len(columns))),
            degrees=(int(self.cases.max(initial=0)), int(self.readers.max(initial=0))),
            answers=len(columns),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreads:
    """Numbers with the variances that two-way clustering adds up; None where there is one unit."""

    value: Array
    cases: Array | None
    readers: Array | None
    each: Array | None  # single answers
    degrees: tuple[int, int]  # cases and readers, less one
    answers: int

    def new_readers(self) -> tuple[Array, Array]:
        """Return the variance of each number for new cases and new readers, and its quantile of t."""
        if self.cases is None or self.readers is None or self.each is None:
            return self.these_readers()  # of one reader: nothing is known of others
        both = self.cases + self.readers - self.each
        variance = np.maximum(both, np.maximum(self.cases, self.readers))
        cases, readers = (quantile(degrees) for degrees in self.degrees)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(variance > 0, self.readers / variance, 0.0)
        return variance, share * readers + (1 - share) * cases

    def these_readers(self) -> tuple[Array, Array]:
        """Return the same for new cases of these readers."""
        variance = np.full(len(self.value), np.nan) if self.cases is None else self.cases
        return variance, np.full(len(self.value), quantile(self.degrees[0]))


def quantile(degrees: int) -> float:
    """Return how many standard errors reach to the end of a 95 % interval.

    >>> [round(quantile(degrees), 2) for degrees in (1, 2, 100)]
    [12.71, 4.3, 1.98]
    """
    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2)) if degrees > 0 else np.nan


def numbers(spreads: Spreads) -> list[Estimate]:
    """Return estimates as value ± t standard errors."""
    return _estimates(
        spreads, lambda value, variance, t: (value - t * variance**0.5, value + t * variance**0.5)
    )


def shares(spreads: Spreads, units: int) -> list[Estimate]:
    """Return estimates of shares: Wilson's interval with the effective number of answers (Korn and Graubard).

    A share of 0 or 1 shows no spread; as many answers count as there are cases.
    """

    def ends(value: float, variance: float, t: float) -> tuple[float, float]:
        within = value * (1 - value)
        effective = min(within / variance, spreads.answers) if within > 0 and variance > 0 else units
        middle = (value + t**2 / (2 * effective)) / (1 + t**2 / effective)
        half = t * np.sqrt(within / effective + (t / (2 * effective)) ** 2) / (1 + t**2 / effective)
        return middle - half, middle + half

    return _estimates(spreads, ends)


def _estimates(
    spreads: Spreads, ends: Callable[[float, float, float], tuple[float, float]]
) -> list[Estimate]:
    """Return each number with both intervals; what is not defined has none."""
    found = []
    new, these = spreads.new_readers(), spreads.these_readers()
    for place, value in enumerate(spreads.value.tolist()):
        low, high = _interval(value, new, place, ends)
        these_low, these_high = _interval(value, these, place, ends)
        known = None if np.isnan(value) else value
        found.append(Estimate(value=known, low=low, high=high, these_low=these_low, these_high=these_high))
    return found


def _interval(
    value: float,
    spread: tuple[Array, Array],
    place: int,
    ends: Callable[[float, float, float], tuple[float, float]],
) -> tuple[float | None, float | None]:
    """Return the ends of one interval."""
    variance, t = (float(part[place]) for part in spread)
    if np.isnan(value) or np.isnan(variance) or np.isnan(t):
        return None, None
    low, high = ends(value, variance, t)
    return float(low), float(high)


def _variance(found: Array) -> Array:
    """Return the variance of each number over the resamples in which it is defined."""
    defined = np.isfinite(found)
    count = np.maximum(defined.sum(axis=0), 1)
    mean = np.where(defined, found, 0.0).sum(axis=0) / count
    variance: Array = (np.where(defined, found - mean, 0.0) ** 2).sum(axis=0) / count
    return variance
