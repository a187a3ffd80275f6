"""Scores of drafts: metrics of the paper and those that need no weights."""

from tabon.metrics.load import METRICS, WEIGHTLESS, load_metric, load_metrics
from tabon.metrics.protocol import Metric, Pair, Score

__all__ = ["METRICS", "WEIGHTLESS", "Metric", "Pair", "Score", "load_metric", "load_metrics"]
