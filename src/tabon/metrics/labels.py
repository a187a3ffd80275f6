"""F1 of the 14 CheXpert observations, from counts that add up over reports.

Shared by every labeller: CheXbert, and tabon's own rules (docs/reference/labeller.md), which are no
stand-in for it. The averages are those of scikit-learn's `f1_score` with `zero_division=0`: micro pools
the counts, macro is the mean over observations, weighted the mean by how often the reference has each,
samples the mean over reports.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabon.errors import BadInputError
from tabon.metrics.protocol import Counts, Metric, Pair, Score, Statistics, Values, mean_of
from tabon.text.observations import LABELLER, OBSERVATIONS, label_text
from tabon.text.sentences import SPLITTER

Labels = NDArray[np.bool_]  # (reports, 14): is the observation said to be there

FIVE = ("Cardiomegaly", "Edema", "Consolidation", "Atelectasis", "Pleural Effusion")
SUBSETS = {"14": tuple(range(len(OBSERVATIONS))), "5": tuple(OBSERVATIONS.index(name) for name in FIVE)}
COUNTED = ("tp", "fp", "fn")  # 14 columns each, in this order
STATISTICS = (
    *(f"{kind}-{name.lower().replace(' ', '-')}" for kind in COUNTED for name in OBSERVATIONS),
    *(f"samples-f1-{subset}" for subset in SUBSETS),
)


def label_statistics(reference: Labels, candidate: Labels) -> Statistics:
    """Return one row per report: hits, false alarms and misses of each observation, F1 over 14 and over 5.

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
    samples = [_micro(*_counts(counts, subset)) for subset in SUBSETS.values()]
    return np.concatenate([counts, np.stack(samples, axis=1)], axis=1)


def measure_labels(pairs: Sequence[Pair], label: Callable[[list[str]], Labels]) -> Statistics:
    """Return hits, false alarms and misses of each pair; each distinct text is labelled once."""
    texts = [text for pair in pairs for text in (pair.reference, pair.candidate)]
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    labels = label(list(rows))[[rows[text] for text in texts]]
    return label_statistics(labels[0::2], labels[1::2])


def label_scores(prefix: str) -> tuple[Score, ...]:
    """Return the eight scores of a labeller: `chexbert-14-micro` … `chexbert-5-samples`."""
    scores: list[Score] = []
    for name, subset in SUBSETS.items():
        scores += [Score(f"{prefix}-{name}-{kind}", _over(subset, kind)) for kind in AVERAGES]
        scores.append(Score(f"{prefix}-{name}-samples", mean_of(STATISTICS.index(f"samples-f1-{name}"))))
    return tuple(scores)


def _over(subset: tuple[int, ...], kind: str) -> Callable[[Statistics, Counts], Values]:
    """Return one of AVERAGES over the observations of a subset; NaN where no report was counted."""

    def value(sums: Statistics, counts: Counts) -> Values:
        return np.where(np.asarray(counts) > 0, AVERAGES[kind](*_counts(sums, subset)), np.nan)

    return value


def _f1(hits: Values, alarms: Values, misses: Values) -> Values:
    """Return 2tp / (2tp + fp + fn), 0 where there is nothing to find and nothing found."""
    total = 2 * hits + alarms + misses
    f1: Values = np.divide(2 * hits, total, out=np.zeros_like(total), where=total > 0)
    return f1


def _counts(sums: Statistics, subset: tuple[int, ...]) -> list[Values]:
    """Return hits, false alarms and misses of the observations of a subset, each (..., observations)."""
    width = len(OBSERVATIONS)
    return [sums[..., [kind * width + i for i in subset]] for kind in range(len(COUNTED))]


def _micro(hits: Values, alarms: Values, misses: Values) -> Values:
    """Return F1 of the pooled counts."""
    return _f1(hits.sum(axis=-1), alarms.sum(axis=-1), misses.sum(axis=-1))


def _macro(hits: Values, alarms: Values, misses: Values) -> Values:
    """Return the plain mean of the observations' F1."""
    mean: Values = _f1(hits, alarms, misses).mean(axis=-1)
    return mean


def _weighted(hits: Values, alarms: Values, misses: Values) -> Values:
    """Return the mean of the observations' F1, weighted by how often the reference has them."""
    support = hits + misses
    total = support.sum(axis=-1)
    weighed = (_f1(hits, alarms, misses) * support).sum(axis=-1)
    values: Values = np.divide(weighed, total, out=np.zeros_like(weighed), where=total > 0)
    return values


AVERAGES = {"micro": _micro, "macro": _macro, "weighted": _weighted}


@dataclass(frozen=True, slots=True)
class RuleLabels:
    """Labels by rules, uncertain ones counted as there; made by `load`."""

    name = "labels"
    statistics = STATISTICS
    scores = label_scores("labels")

    @property
    def signature(self) -> str:
        """Return the version of the rules, what uncertain counts as, and the splitter."""
        return f"labels|{LABELLER.replace('-', ':')}|uncertain:positive|empty:no-label|splitter:{SPLITTER}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair: hits, false alarms and misses; each distinct text is labelled once."""
        return measure_labels(pairs, _labelled)


def _labelled(texts: list[str]) -> Labels:
    """Return which observations each text states by the rules, (texts, 14)."""
    rows = [label_text(text).held() for text in texts]
    return np.array(rows, dtype=np.bool_).reshape(len(texts), len(OBSERVATIONS))


def load(_model: Path | None = None) -> Metric:
    """Return the labels; they need no files."""
    return RuleLabels()
