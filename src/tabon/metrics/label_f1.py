"""F1 of the 14 CheXpert observations, from counts that add up over reports.

Shared by every labeller that says which observations a report holds: CheXbert
and the rules of `tabon.metrics.labels`. The averages are those of scikit-learn's
`f1_score` with `zero_division=0`: micro pools the counts, macro is the mean over
observations, weighted the mean by how often the reference has each, samples the
mean over reports.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tabon.errors import BadInputError
from tabon.metrics.protocol import Counts, Score, Statistics, Values, divided
from tabon.text.observations import OBSERVATIONS

Labels = NDArray[np.bool_]  # (reports, 14): is the observation said to be there

FIVE = ("Cardiomegaly", "Edema", "Consolidation", "Atelectasis", "Pleural Effusion")
SUBSETS = {"14": tuple(range(len(OBSERVATIONS))), "5": tuple(OBSERVATIONS.index(name) for name in FIVE)}
COUNTED = ("tp", "fp", "fn")  # 14 columns each, in this order
STATISTICS = (
    *(f"{kind}-{name.lower().replace(' ', '-')}" for kind in COUNTED for name in OBSERVATIONS),
    *(f"samples-f1-{subset}" for subset in SUBSETS),
)


def label_statistics(reference: Labels, candidate: Labels) -> Statistics:
    """Return a row a report: hits, false alarms and misses of each observation, then F1 over 14 and over 5.

    >>> row = label_statistics(np.ones((1, 14), dtype=bool), np.eye(1, 14, dtype=bool))[0]
    >>> row[:14].sum(), row[14:28].sum(), row[28:42].sum(), round(row[42], 3)
    (np.float64(1.0), np.float64(0.0), np.float64(13.0), np.float64(0.133))
    """
    if reference.shape != candidate.shape or reference.shape[1:] != (len(OBSERVATIONS),):
        raise BadInputError(
            f"labels of shape {reference.shape} and {candidate.shape}, expected (n, 14) twice"
        )
    counted = [reference & candidate, ~reference & candidate, reference & ~candidate]
    counts = np.concatenate(counted, axis=1).astype(np.float64)
    samples = [_f1(*_pooled(counts, subset)) for subset in SUBSETS.values()]
    return np.concatenate([counts, np.stack(samples, axis=1)], axis=1)


def label_scores(prefix: str) -> tuple[Score, ...]:
    """Return the eight scores of a labeller: `chexbert-14-micro` … `chexbert-5-samples`."""
    return tuple(
        Score(f"{prefix}-{subset}-{average}", make(subset))
        for subset in SUBSETS
        for average, make in AVERAGES.items()
    )


def _f1(hits: Values, alarms: Values, misses: Values) -> Values:
    """Return 2tp / (2tp + fp + fn), 0 where there is nothing to find and nothing found."""
    total = 2 * hits + alarms + misses
    f1: Values = np.divide(2 * hits, total, out=np.zeros_like(total), where=total > 0)
    return f1


def _counts(sums: Statistics, subset: tuple[int, ...]) -> list[Values]:
    """Return hits, false alarms and misses of the observations of a subset, each (..., observations)."""
    width = len(OBSERVATIONS)
    return [sums[..., [kind * width + i for i in subset]] for kind in range(len(COUNTED))]


def _pooled(sums: Statistics, subset: tuple[int, ...]) -> list[Values]:
    """Return hits, false alarms and misses over all observations of a subset."""
    return [counts.sum(axis=-1) for counts in _counts(sums, subset)]


def _emptied(values: Values, counts: Counts) -> Values:
    """Put NaN where no report was counted."""
    return np.where(np.asarray(counts) > 0, values, np.nan)


def _micro(subset: str) -> Callable[[Statistics, Counts], Values]:
    """Return F1 of the pooled counts."""

    def micro(sums: Statistics, counts: Counts) -> Values:
        return _emptied(_f1(*_pooled(sums, SUBSETS[subset])), counts)

    return micro


def _macro(subset: str) -> Callable[[Statistics, Counts], Values]:
    """Return the plain mean of the observations' F1."""

    def macro(sums: Statistics, counts: Counts) -> Values:
        return _emptied(_f1(*_counts(sums, SUBSETS[subset])).mean(axis=-1), counts)

    return macro


def _weighted(subset: str) -> Callable[[Statistics, Counts], Values]:
    """Return the mean of the observations' F1, weighted by how often the reference has them."""

    def weighted(sums: Statistics, counts: Counts) -> Values:
        hits, alarms, misses = _counts(sums, SUBSETS[subset])
        support = hits + misses
        total = support.sum(axis=-1)
        weighed = (_f1(hits, alarms, misses) * support).sum(axis=-1)
        values = np.divide(weighed, total, out=np.zeros_like(weighed), where=total > 0)
        return _emptied(values, counts)

    return weighted


def _samples(subset: str) -> Callable[[Statistics, Counts], Values]:
    """Return the mean of the reports' F1."""
    column = STATISTICS.index(f"samples-f1-{subset}")

    def samples(sums: Statistics, counts: Counts) -> Values:
        return divided(sums[..., column], counts)

    return samples


AVERAGES = {"micro": _micro, "macro": _macro, "weighted": _weighted, "samples": _samples}
