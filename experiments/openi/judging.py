"""What the selections of all seeds are worth: text, labels and MeSH facts, joint and section by section."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from plan import EvaluationPlan
from selecting import Method

from tabon.evaluation import Case, Cases, EvaluationSettings, Picks, RunInput, evaluate, read_picks
from tabon.evaluation.compare import Chance, RunTable, compare
from tabon.evaluation.draft_scores import Measured, drafts_there, state_f1
from tabon.evaluation.evaluate import seeded_picks
from tabon.evaluation.inputs import NOTHING
from tabon.evaluation.results import Cell, Results
from tabon.metrics import Metric, load_scores
from tabon.metrics.protocol import MeasurementStore, Pair, Score, Statistics, mean_of
from tabon.text.reports import SECTIONS, Section

FACTS = "facts-f1"
FACTS_SIGNATURE = "facts-f1|facts:mesh-head,head/qualifier|empty:1"


@dataclass(frozen=True, slots=True)
class OneScore:
    """A metric of which only one score is asked for."""

    metric: Metric
    score: str

    @property
    def name(self) -> str:
        """Return the metric's name."""
        return self.metric.name

    @property
    def signature(self) -> str:
        """Return the metric's signature: the statistics are the same."""
        return self.metric.signature

    @property
    def statistics(self) -> tuple[str, ...]:
        """Name the metric's columns."""
        return self.metric.statistics

    @property
    def scores(self) -> tuple[Score, ...]:
        """Return the one score."""
        return tuple(score for score in self.metric.scores if score.name == self.score)

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Measure as the metric does."""
        return self.metric.measure(pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One seed's cases and the selections files of every method."""

    seed: int
    cases: Cases
    files: Mapping[Method, Path]


def section_name(method: str, section: Section) -> str:
    """Name the method that picks by one section's distances alone."""
    return f"{method} @{section}"


def judge(seeds: Sequence[Judged], plan: EvaluationPlan, store: MeasurementStore) -> Results:
    """Compare every method with the random pick and the oracle; the runs are the seeds."""
    picks = [tuple(all_picks(seed.files)) for seed in seeds]
    signatures = [shared_signature([one.signature for one in ones]) for ones in zip(*picks, strict=True)]
    runs = [
        RunInput(
            name=str(seed.seed),
            cases=seed.cases,
            picks=tuple(replace(one, signature=text) for one, text in zip(ones, signatures, strict=True)),
        )
        for seed, ones in zip(seeds, picks, strict=True)
    ]
    metrics = [OneScore(load_scores([score])[score][0], score) for score in plan.scores]
    settings = EvaluationSettings(resamples=plan.resamples, seed=plan.seed)
    results = evaluate(runs, metrics, settings, store=store)
    facts = tuple(fact_cells(runs, settings))
    return replace(results, cells=(*results.cells, *facts), scores={**results.scores, FACTS: FACTS_SIGNATURE})


def all_picks(files: Mapping[Method, Path]) -> Iterator[Picks]:
    """Yield the joint picks (eq. 11) of each method, then those by each section's own distances."""
    for method, path in files.items():
        lines = path.read_bytes().splitlines()
        joint = read_picks(lines, name=str(path), method=method.name)
        yield joint
        distances = {str(record["id"]): record["section_distances"] for record in map(json.loads, lines)}
        for section in SECTIONS:
            chosen = {query: _nearest(found.get(section, [])) for query, found in distances.items()}
            yield replace(joint, method=section_name(method.name, section), chosen=chosen, distances={})


def _nearest(distances: Sequence[float]) -> int:
    """Return the draft with the smallest distance, the earliest of equals."""
    return int(np.argmin(distances)) if len(distances) else NOTHING


def shared_signature(signatures: Sequence[str]) -> str:
    """Return what seeds agree on; what differs, such as the bank, is `by-seed`.

    >>> shared_signature(["selector:first|bank:12", "selector:first|bank:34"])
    'selector:first|bank:by-seed'
    """
    columns = zip(*(text.split("|") for text in signatures), strict=True)
    return "|".join(
        parts[0] if len(set(parts)) == 1 else f"{parts[0].partition(':')[0]}:by-seed" for parts in columns
    )


def fact_cells(runs: Sequence[RunInput], settings: EvaluationSettings) -> Iterator[Cell]:
    """Yield the cells of the MeSH facts: of the whole report, whatever section was picked by."""
    everyone = [case for run in runs for case in run.cases.cases]
    chance = Chance.draw(everyone, resamples=settings.resamples, swaps=settings.resamples, seed=settings.seed)
    tables = [
        RunTable(
            run=run.name,
            measured=measure_facts(run.cases.cases),
            picks=[picks.rows(run.cases.cases) for picks in run.picks],
            seeded=[seeded_picks(run.cases.cases, seed) for seed in settings.random_seeds],
        )
        for run in runs
    ]
    return compare(tables, [picks.method for picks in runs[0].picks], chance)


def measure_facts(cases: Sequence[Case]) -> Measured:
    """Measure F1 of the MeSH facts of each draft's source against the reference's."""
    there = drafts_there(cases)
    table = np.zeros((*there.shape, 1))
    table[there, 0] = [
        state_f1(draft["facts"], case.query.facts["facts"])
        for case in cases
        for draft in case.query.draft_facts
    ]
    score = Score(FACTS, mean_of(0))
    return Measured("report", tuple(cases), (score,), FACTS_SIGNATURE, table, there)
