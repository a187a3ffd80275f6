"""The study × draft × statistic table of one metric in one part of one run."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tabon.evaluation.inputs import PARTS, Case, Part, states
from tabon.metrics.protocol import MeasurementStore, Metric, Pair, Score, Statistics, mean_of, measure_pairs
from tabon.text.reports import SECTIONS, Section

STATE = "state-f1"
STATE_SIGNATURE = "state-f1|facts:simulated"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The statistics of every draft of every study in one part."""

    part: Part
    cases: tuple[Case, ...]
    scores: tuple[Score, ...]
    signature: str
    statistics: Statistics  # (studies, K, statistics)
    there: NDArray[np.bool_]  # which drafts exist, (studies, K)

    def take(self, keep: NDArray[np.bool_]) -> "Measured":
        """Return some of the studies."""
        cases = tuple(case for case, kept in zip(self.cases, keep.tolist(), strict=True) if kept)
        return replace(self, cases=cases, statistics=self.statistics[keep], there=self.there[keep])

    def by(self, scores: Collection[str]) -> "Measured":
        """Return some of the scores."""
        return replace(self, scores=tuple(score for score in self.scores if score.name in scores))

    def first(self, drafts: int) -> "Measured":
        """Return the studies with their first drafts alone."""
        return replace(self, statistics=self.statistics[:, :drafts], there=self.there[:, :drafts])

    def words(self) -> NDArray[np.int64]:
        """Count the words of each draft in this part, (studies, K); 0 where there is no draft."""
        width = self.there.shape[-1]
        counts = np.zeros((len(self.cases), width), dtype=np.int64)
        sections: tuple[Section, ...] = SECTIONS if self.part == "report" else (self.part,)
        for row, case in enumerate(self.cases):
            for column, draft in enumerate(case.query.candidates[:width]):
                counts[row, column] = sum(len(draft.section(section).split()) for section in sections)
        return counts

    def per_draft(self) -> Statistics:
        """Return each score of each single draft, (studies, K, scores); NaN where there is no draft."""
        ones = np.ones(self.there.shape)
        values = np.stack([score.value(self.statistics, ones) for score in self.scores], axis=-1)
        return np.where(self.there[..., None], values, np.nan)

    def expected(self) -> Statistics:
        """Return the statistics of a uniform pick in expectation, (studies, statistics)."""
        return self.weighted(self.there / self.there.sum(axis=1, keepdims=True))

    def weighted(self, chances: Statistics) -> Statistics:
        """Return the statistics of a pick in expectation, from the chance of each draft, (studies, K)."""
        rows: Statistics = np.einsum("sk,skc->sc", chances, self.statistics)
        return rows

    def picked(self, picks: NDArray[np.intp]) -> Statistics:
        """Return the statistics of one draft per study; of the expected random pick where it is -1."""
        rows = np.take_along_axis(self.statistics, np.maximum(picks, 0)[:, None, None], axis=1)
        return np.where((picks < 0)[:, None], self.expected(), rows[:, 0])


def measure_section(
    metric: Metric,
    cases: Sequence[Case],
    section: Section,
    *,
    store: MeasurementStore | None = None,
) -> Measured:
    """Measure one section of every draft of every study."""
    there = drafts_there(cases)
    pairs = [
        Pair(
            reference=case.reference.section(section),
            candidate=draft.section(section),
            prior=case.query.prior.section(section),
        )
        for case in cases
        for draft in case.query.candidates
    ]
    rows = measure_pairs(metric, pairs, store=store)
    return Measured(section, tuple(cases), metric.scores, metric.signature, _spread(rows, there), there)


def state_f1(described: Iterable[str], truth: Iterable[str]) -> float:
    """Return F1 of the facts that a report describes against the true ones; facts count once.

    2 |described ∩ truth| / (|described| + |truth|), in [0, 1]; 1 when both
    are empty (a normal report of a normal chest).

    >>> state_f1(["scoliosis"], ["scoliosis", "scoliosis: mild"])
    0.6666666666666666
    >>> state_f1([], [])
    1.0
    """
    said, true = set(described), set(truth)
    total = len(said) + len(true)
    return 2 * len(said & true) / total if total else 1.0


def measure_states(cases: Sequence[Case]) -> Measured | None:
    """Measure state-F1 where the truth is known, that is on simulated cohorts; None elsewhere."""
    known = [states(case) for case in cases]
    if any(pair is None for pair in known):
        return None
    there = drafts_there(cases)
    rows = np.array([[state_f1(draft, truth)] for truth, drafts in filter(None, known) for draft in drafts])
    score = Score(STATE, mean_of(0))
    return Measured("report", tuple(cases), (score,), STATE_SIGNATURE, _spread(rows, there), there)


def drafts_there(cases: Sequence[Case]) -> NDArray[np.bool_]:
    """Say which drafts exist, (studies, K)."""
    counts = np.array([len(case.query.candidates) for case in cases])
    return np.arange(counts.max(initial=0))[None, :] < counts[:, None]


def _spread(rows: Statistics, there: NDArray[np.bool_]) -> Statistics:
    """Put the rows of the drafts that exist into the table."""
    table = np.zeros((*there.shape, rows.shape[1]))
    table[there] = rows
    return table


def eligible(cases: Sequence[Case], part: Part) -> list[Case]:
    """Return the studies whose reference says something in this part."""
    return [case for case in cases if case.has(part)]


def measured_parts(
    runs: Sequence[Sequence[Case]],
    metrics: Sequence[Metric],
    *,
    with_states: bool = True,
    outside: Sequence[Callable[[Sequence[Case]], Measured]] = (),
    store: MeasurementStore | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Iterator[list[Measured]]:
    """Yield the drafts of every run, one metric in one part at a time, where all runs can be measured.

    `outside` are further measures of the whole report.
    """
    for part in PARTS:
        studies = [eligible(cases, part) for cases in runs]
        measures: list[Callable[[Sequence[Case]], Measured | None]]
        if part == "report":
            measures = [*([measure_states] if with_states else []), *outside]
        else:
            measures = [partial(measure_section, metric, section=part, store=store) for metric in metrics]
        for measure in measures if all(studies) else ():
            on_progress(f"measuring {part}")
            found = [measured for measured in map(measure, studies) if measured is not None]
            if len(found) == len(runs):
                yield found
