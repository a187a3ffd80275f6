"""How likely a draft is the report that follows a prior, by the meaning of their sentences.

Prior and current report of a training transition are taken as draws of one Gaussian: each
is the direction of the mean of its sentence embeddings, turned and scaled so that reports have unit
covariance and the two sides correlate axis by axis (probabilistic linear discriminant
analysis, PLDA). With u and v of prior and draft and the correlations r,

    ln p(u, v) / (p(u) p(v)) = sum over axes of  (2ruv - r²(u² + v²)) / (2 (1 - r²)) - ½ ln(1 - r²)

says how much more likely they are one patient's consecutive reports than any two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.method.bank import TransitionBank
from tabon.method.nearest import alone_on_one_thread
from tabon.selectors.fused.samples import random_pairs, sample_rows, spread_of
from tabon.selectors.scorer import Batch, Distances
from tabon.selectors.set_distances.distances import unit_means
from tabon.text.reports import SECTIONS, Section

AXES: Final = 120  # the widest of the reports' axes, and
TRANSITIONS_AN_AXIS: Final = 8  # no more axes than the bank has transitions for
SAMPLE: Final = 8192  # training transitions that stand for all
FLOOR: Final = 1e-4  # added to a variance: below, an axis is noise
STRONGEST: Final = 0.98  # correlation
Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Gaussian:
    """The joint distribution of consecutive reports of one section."""

    middle: Rows  # (d,)
    turn: Rows  # (d, axes)
    correlation: Rows  # (axes,)
    spread: float = 1.0  # of the log ratio, over random pairs of training reports

    def axes(self, reports: Matrix) -> Rows:
        """Return reports along the axes, each by itself: no bit depends on the others."""
        found: Rows = np.empty((len(reports), len(self.correlation)))
        for row, report in zip(found, reports - self.middle, strict=True):
            np.einsum("d,da->a", report, self.turn, out=row)
        return found

    def log_ratio(self, prior: Rows, current: Rows) -> Distances:
        """Return ln p(u, v) / (p(u) p(v)) of each pair of rows along the axes, (pairs,)."""
        r = self.correlation
        shared = 2 * r * prior * current - r**2 * (prior**2 + current**2)
        ratio: Distances = (shared / (2 * (1 - r**2)) - np.log(1 - r**2) / 2).sum(axis=1)
        return ratio


def fit(prior: Matrix, current: Matrix) -> Gaussian:
    """Return the distribution of pairs of reports, (pairs, d) each.

    >>> reports = np.random.default_rng(0).normal(size=(64, 2))
    >>> float(fit(reports, reports).correlation.min().round(2))
    0.98
    """
    both = np.concatenate([prior, current]).astype(np.float64)
    middle = both.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((both - middle).T))
    kept = slice(len(values) - min(AXES, len(prior) // TRANSITIONS_AN_AXIS, len(values)), None)
    white = vectors[:, kept] / np.sqrt(values[kept] + FLOOR)
    u, v = (prior - middle) @ white, (current - middle) @ white
    correlation, turn = np.linalg.eigh((u.T @ v + v.T @ u) / (2 * len(u)))
    found = Gaussian(middle, np.ascontiguousarray(white @ turn), np.clip(correlation, 0.0, STRONGEST))
    left, right = (v @ turn)[np.array(random_pairs(len(current)))]
    return replace(found, spread=spread_of(found.log_ratio(left, right)))


@dataclass(frozen=True)
class LikelyNext:
    """Minus the log ratio of prior and draft, in spreads."""

    bank: TransitionBank

    def distances(self, batch: Batch, section: Section) -> Distances:
        """Return each draft's distance; NaN where it or the prior lacks the section, or the bank does."""
        found = np.full(len(batch.drafts), np.nan)
        rows, gaussian = batch.comparable(section), self._fitted[section]
        if gaussian is not None and len(rows):
            asked, query = np.unique(batch.owner[rows], return_inverse=True)
            prior = gaussian.axes(unit_means(batch.table.vectors, batch.prior_sets[section].take(asked)))
            drafts = gaussian.axes(unit_means(batch.table.vectors, batch.draft_sets[section].take(rows)))
            found[rows] = -gaussian.log_ratio(prior[query], drafts) / gaussian.spread
        return found

    @cached_property
    def _fitted(self) -> Mapping[Section, Gaussian | None]:
        """Return each section's distribution; None if the bank has too few transitions."""
        vectors = self.bank.table.vectors
        fitted: dict[Section, Gaussian | None] = dict.fromkeys(SECTIONS)
        for section, pairs in self.bank.pairs.items():
            rows = sample_rows(pairs.present(), SAMPLE)
            if len(rows) >= TRANSITIONS_AN_AXIS:
                sides = (unit_means(vectors, sets.take(rows)) for sets in (pairs.prior, pairs.current))
                with alone_on_one_thread():
                    fitted[section] = fit(*sides)
        return fitted
