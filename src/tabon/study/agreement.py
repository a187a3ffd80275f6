"""How much readers agree: weighted kappa of two, Krippendorff's alpha of all.

Both are functions of a table of counts that adds up over cases, so cases are resampled by resampling tables.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

import numpy as np

from tabon._internal.registry import check_name
from tabon.evaluation.statistics import Array

Units = Sequence[Mapping[str, int]]  # for each thing that is judged, what each reader says: a category from 0


def confusion(units: Units, one: str, other: str, categories: int) -> Array:
    """Return a table for each unit, (units, categories, categories): what one says by what the other says."""
    found = np.zeros((len(units), categories, categories))
    for row, said in enumerate(units):
        if one in said and other in said:
            found[row, said[one], said[other]] = 1.0
    return found


def weighted_kappa(tables: Array) -> Array:
    """Return Cohen's kappa with quadratic weights of tables (..., categories, categories); NaN if undefined.

    >>> weighted_kappa(np.array([[2.0, 0.0], [0.0, 3.0]])), weighted_kappa(np.array([[1.0, 1.0], [1.0, 1.0]]))
    (array(1.), array(0.))
    """
    places = np.arange(tables.shape[-1])
    weights = (places[:, None] - places) ** 2.0
    total = tables.sum(axis=(-2, -1))
    expected = tables.sum(axis=-1)[..., :, None] * tables.sum(axis=-2)[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = (weights * expected).sum(axis=(-2, -1)) / total
        kappa: Array = np.asarray(1 - (weights * tables).sum(axis=(-2, -1)) / chance)
    return np.where(chance > 0, kappa, np.nan)


def coincidences(units: Units, categories: int) -> Array:
    """Return Krippendorff's table of each unit, (units, categories, categories): the pairs of what is said.

    A unit that m readers judged gives each ordered pair of them 1 / (m - 1); of one reader it gives nothing.
    """
    found = np.zeros((len(units), categories, categories))
    for row, said in enumerate(units):
        for one, other in combinations(said.values(), 2):
            found[row, one, other] += 1.0 / (len(said) - 1)
            found[row, other, one] += 1.0 / (len(said) - 1)
    return found


def alpha(tables: Array, metric: str = "ordinal") -> Array:
    """Return Krippendorff's alpha of coincidences (..., categories, categories); NaN if all say the same.

    >>> alpha(np.array([[4.0, 0.0], [0.0, 6.0]]), "nominal")
    array(1.)
    """
    check_name("metric of alpha", tuple(METRICS), metric)
    counts = tables.sum(axis=-1)
    total = counts.sum(axis=-1)
    distances = METRICS[metric](counts)
    expected = counts[..., :, None] * counts[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = (distances * expected).sum(axis=(-2, -1)) / (total - 1)
        found: Array = np.asarray(1 - (distances * tables).sum(axis=(-2, -1)) / chance)
    return np.where(chance > 0, found, np.nan)


def _nominal(counts: Array) -> Array:
    """Return 1 for different categories."""
    return np.broadcast_to(1.0 - np.eye(counts.shape[-1]), (*counts.shape, counts.shape[-1]))


def _ordinal(counts: Array) -> Array:
    """Return the squared number of values between two categories, the half of each of the two counted."""
    reach = np.cumsum(counts, axis=-1) - counts / 2
    distances: Array = (reach[..., :, None] - reach[..., None, :]) ** 2
    return distances


def _interval(counts: Array) -> Array:
    """Return the squared difference."""
    places = np.arange(counts.shape[-1], dtype=np.float64)
    return np.broadcast_to((places[:, None] - places) ** 2, (*counts.shape, counts.shape[-1]))


METRICS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {"nominal": _nominal, "ordinal": _ordinal, "interval": _interval}
)
