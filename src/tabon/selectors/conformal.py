"""How implausible is the pick? Conformal p-values, and what is kept at what risk.

A p-value is the share of calibration cases at least as implausible as the case at
hand. For a case that is exchangeable with them, P(p ≤ a) ≤ a, so abstaining
where p ≤ a happens in a share a of such cases. It says nothing of other data.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def conformal_p(distances: Array, calibration: Array) -> Array:
    """P = (1 + #{calibration ≥ d}) / (n + 1), ties counted as at least as implausible.

    >>> conformal_p(np.array([0.5, 9.0]), np.array([0.1, 0.5, 0.7])).tolist()
    [0.75, 0.25]
    """
    ordered = np.sort(calibration)
    at_least = len(ordered) - np.searchsorted(ordered, distances, side="left")
    return (1.0 + at_least.astype(np.float64)) / (len(ordered) + 1.0)


def best_of_p(p: Array, num_candidates: NDArray[np.intp]) -> Array:
    """P of the best of K drafts from the p of that draft alone.

    The pick is the most plausible of K, so its p is the largest of K. Were the
    drafts independent real transitions, P(largest ≤ x) = x^K. Drafts of one
    generator are alike, so this abstains too seldom rather than too often.

    >>> best_of_p(np.array([0.5]), np.array([3])).tolist()
    [0.125]
    """
    best: Array = p**num_candidates
    return best


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The mean loss of what is kept when the least plausible cases are left out."""

    coverage: tuple[float, ...]  # ascending, up to 1
    risk: tuple[float, ...]

    @property
    def area(self) -> float:
        """Return the area under the curve (AURC); lower is better."""
        return float(np.mean(self.risk))


def risk_coverage(distances: Array, losses: Array, *, points: int | None = None) -> RiskCoverage:
    """Keep the most plausible cases first; equally plausible ones stand or fall together.

    Args:
        distances: how implausible each pick is.
        losses: what each pick costs, such as 1 - F1.
        points: how many coverages to report, evenly spaced; all of them where it is left out.

    >>> risk_coverage(np.array([0.2, 0.1, 0.9]), np.array([0.5, 0.0, 1.0])).risk
    (0.0, 0.25, 0.5)
    """
    order = np.argsort(distances, kind="stable")
    kept = np.arange(1, len(order) + 1)
    risk = np.cumsum(losses[order]) / kept
    last = np.r_[np.flatnonzero(np.diff(distances[order]) > 0), len(order) - 1]
    if points is not None:
        wanted = np.ceil(len(order) * np.arange(1, points + 1) / points)
        last = last[np.minimum(np.searchsorted(kept[last], wanted), len(last) - 1)]
    return RiskCoverage(tuple((kept[last] / len(order)).tolist()), tuple(risk[last].tolist()))
