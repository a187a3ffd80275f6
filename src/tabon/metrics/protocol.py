"""What a metric is: statistics of one draft, and scores that are functions of their sums.

A metric looks at a draft once and returns a row of statistics. Any score of any
set of picks is then a function of the summed rows: a mean over drafts, corpus
BLEU, micro F1. So a selector is an index, a bootstrap resample a weighted sum.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Statistics = NDArray[np.float64]  # (..., statistics) of one metric
Counts = NDArray[np.float64]  # (...) how many drafts are in a sum
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One section of a draft beside what the radiologist wrote; "" where it has none."""

    reference: str
    candidate: str
    prior: str = ""  # the same section of the prior report


@dataclass(frozen=True, slots=True)
class Score:
    """A named number in [0, 1] or so, higher is better, made from sums of statistics.

    `value(sums, counts)` takes sums of shape (..., statistics) over any number
    of drafts and how many drafts those were, and returns shape (...). It must
    work for one draft (counts = 1) and may not warn for counts = 0 (NaN there).
    """

    name: str  # its own in the whole suite: "bleu-1", "corpus-bleu-4", "rouge-l-f"
    value: Callable[[Statistics, Counts], Values]


class Metric(Protocol):
    """Measures drafts; loaded by `tabon.metrics.load_metric`."""

    @property
    def name(self) -> str:
        """Return the family's name: "bleu"."""

    @property
    def signature(self) -> str:
        """Return all that changes its numbers: "bleu|tokenizer:13a|…", joined by bars."""

    @property
    def statistics(self) -> tuple[str, ...]:
        """Name the columns of `measure`."""

    @property
    def scores(self) -> tuple[Score, ...]:
        """Return the scores made from these statistics."""

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return a row a pair, float64; the same row for the same pair in any company."""


def divided(sums: Statistics, counts: Counts) -> Values:
    """Divide, NaN where there is nothing to divide by."""
    nothing = np.full(np.broadcast_shapes(sums.shape, counts.shape), np.nan)
    values: Values = np.divide(sums, counts, out=nothing, where=counts != 0)
    return values


def mean_of(column: int) -> Callable[[Statistics, Counts], Values]:
    """Return the score that is the mean of one statistic over drafts.

    >>> mean_of(0)(np.array([[3.0, 9.0]]), np.array([2.0])).tolist()
    [1.5]
    """

    def mean(sums: Statistics, counts: Counts) -> Values:
        return divided(sums[..., column], counts)

    return mean
