"""The scores that were asked for, each measured by its metric."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tabon.errors import BadInputError, UnknownNameError
from tabon.evaluation.draft_scores import STATE
from tabon.metrics import METRICS, Metric, Pair, Score, load_metric
from tabon.metrics.protocol import MeasurementStore, Statistics, measure_pairs


@dataclass(frozen=True)
class SomeScores:
    """A metric with some of its scores, which measures no pair twice."""

    metric: Metric
    scores: tuple[Score, ...]
    store: MeasurementStore | None = None
    rows: dict[Pair, Statistics] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Return the metric's name."""
        return self.metric.name

    @property
    def signature(self) -> str:
        """Return the metric's signature."""
        return self.metric.signature

    @property
    def statistics(self) -> tuple[str, ...]:
        """Return the metric's columns."""
        return self.metric.statistics

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return a row a pair."""
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self.rows]
        self.rows.update(zip(missing, measure_pairs(self.metric, missing, store=self.store), strict=True))
        return np.array([self.rows[pair] for pair in pairs]).reshape(len(pairs), len(self.statistics))


def load_scores(names: Sequence[str], store: MeasurementStore | None = None) -> list[SomeScores]:
    """Load the metrics of some scores, each with those scores alone.

    Raises:
        UnknownNameError: no metric has such a score.
        MetricUnavailableError: its metric cannot be measured here.
    """
    if not names:
        raise BadInputError("no score was named; give one, such as rouge-l-f")
    families = {name: name.removeprefix("corpus-").partition("-")[0].rstrip("+") for name in names}
    loaded = []
    for family in dict.fromkeys(families[name] for name in names if name != STATE):
        wanted = [name for name in dict.fromkeys(names) if families[name] == family and name != STATE]
        if family not in METRICS:
            raise UnknownNameError("score", wanted[0], [STATE, *METRICS])
        metric = load_metric(family)
        scores = {score.name: score for score in metric.scores}
        for name in wanted:
            if name not in scores:
                raise UnknownNameError("score", name, scores)
        loaded.append(SomeScores(metric, tuple(scores[name] for name in wanted), store))
    return loaded
