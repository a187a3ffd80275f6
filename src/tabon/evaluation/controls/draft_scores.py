"""The scores that were asked for, and what every draft of the studies is worth by them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tabon.errors import BadInputError, UnknownNameError
from tabon.evaluation import Case
from tabon.evaluation.cases import PARTS, Part
from tabon.evaluation.draft_scores import STATE, Measured, eligible, measure_section, measure_states
from tabon.metrics import METRICS, Metric, Pair, Score, load_metric
from tabon.metrics.protocol import Statistics
from tabon.metrics.store import MeasurementStore, measure_pairs
from tabon.text.reports import SECTIONS, Section


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


@dataclass(frozen=True, slots=True, eq=False)
class PartTable:
    """Studies that have a part, and what their drafts are worth there."""

    part: Part
    cases: tuple[Case, ...]
    measured: Measured

    def take(self, keep: NDArray[np.bool_]) -> "PartTable":
        """Return some of the studies."""
        found = self.measured
        measured = Measured(found.scores, found.signature, found.statistics[keep], found.there[keep])
        cases = tuple(case for case, kept in zip(self.cases, keep.tolist(), strict=True) if kept)
        return PartTable(self.part, cases, measured)

    def first(self, drafts: int) -> "PartTable":
        """Return the studies with their first drafts alone."""
        found = self.measured
        statistics, there = found.statistics[:, :drafts], found.there[:, :drafts]
        return PartTable(self.part, self.cases, Measured(found.scores, found.signature, statistics, there))

    def words(self) -> NDArray[np.int64]:
        """Count the words of each draft in this part, (studies, K); 0 where there is no draft."""
        width = self.measured.there.shape[-1]
        counts = np.zeros((len(self.cases), width), dtype=np.int64)
        parts: tuple[Section, ...] = SECTIONS if self.part == "report" else (self.part,)
        for row, case in enumerate(self.cases):
            for column, draft in enumerate(case.query.candidates[:width]):
                counts[row, column] = sum(len(draft.section(part).split()) for part in parts)
        return counts


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


def part_tables(cases: Sequence[Case], metrics: Sequence[Metric], *, states: bool) -> Iterator[PartTable]:
    """Yield the studies of each part under each metric; simulated states where they are asked for."""
    for part in PARTS:
        studies = tuple(eligible(cases, part))
        if part == "report" and states:
            yield PartTable(part, studies, _states(studies))
        elif part != "report" and studies:
            for metric in metrics:
                yield PartTable(part, studies, measure_section(metric, studies, part))


def _states(studies: Sequence[Case]) -> Measured:
    """Measure the states of simulated studies."""
    measured = measure_states(studies)
    if measured is None:
        raise BadInputError(f"{STATE} is known only of simulated cohorts; ask for another score")
    return measured
