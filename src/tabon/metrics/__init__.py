"""Scores of drafts: metrics of the paper and those that need no weights."""

from tabon.metrics.load import DEFAULT_METRICS, METRICS, WEIGHTLESS, load_metric, load_metrics, load_scores
from tabon.metrics.protocol import Metric, Pair, Score

__all__ = [
    "DEFAULT_METRICS",
    "METRICS",
    "WEIGHTLESS",
    "Metric",
    "Pair",
    "Score",
    "load_metric",
    "load_metrics",
    "load_scores",
]
