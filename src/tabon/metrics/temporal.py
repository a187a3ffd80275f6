"""F1 of the kinds of change (new, stable, improved, …) that a draft and its reference mention.

Two texts without any change have no F1: `temporal-f1` leaves such pairs out, `temporal-f1-empty-1`
counts them as 1 (see docs/decisions/temporal-f1.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabon.metrics.protocol import Counts, Metric, Pair, Score, Statistics, Values, divided, measure_texts
from tabon.text.change_words import WORDS, Change, changes
from tabon.text.sentences import SPLITTER

F1, ELIGIBLE = 0, 1


def pair_row(reference: frozenset[Change], candidate: frozenset[Change]) -> tuple[float, float]:
    """Return F1 of two sets of changes and 1.0, or twice 0.0 where both are empty.

    >>> pair_row(frozenset({"new", "stable"}), frozenset({"new"}))
    (0.6666666666666666, 1.0)
    >>> pair_row(frozenset(), frozenset())
    (0.0, 0.0)
    """
    total = len(reference) + len(candidate)
    return (2 * len(reference & candidate) / total, 1.0) if total else (0.0, 0.0)


def where_mentioned(sums: Statistics, _counts: Counts) -> Values:
    """Return mean F1 over the pairs where reference or draft mentions a change; NaN if none does."""
    return divided(sums[..., F1], sums[..., ELIGIBLE])


def empty_is_one(sums: Statistics, counts: Counts) -> Values:
    """Return mean F1 over all pairs, 1 where neither mentions a change."""
    return divided(sums[..., F1] + (counts - sums[..., ELIGIBLE]), counts)


@dataclass(frozen=True, slots=True)
class TemporalF1:
    """F1 over sets of changes; made by `load`."""

    name = "temporal"
    statistics = ("f1", "eligible")
    scores = (Score("temporal-f1", where_mentioned), Score("temporal-f1-empty-1", empty_is_one))

    @property
    def signature(self) -> str:
        """Return the version of the lexicon, what is compared, and the splitter."""
        return f"temporal|words:{WORDS.rpartition('-')[2]}|sets:kinds-of-change|splitter:{SPLITTER}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair: its F1, and whether it has one."""
        return measure_texts(pairs, changes, pair_row, len(self.statistics))


def load(_model: Path | None = None) -> Metric:
    """Return temporal F1; it needs no files."""
    return TemporalF1()
