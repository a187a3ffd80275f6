"""How a method does with fewer drafts (K-curve), other numbers of neighbours (k-curve), or fewer picks.

A draft's distance does not depend on the other drafts in the paper's methods, so the picks among all sets of
fewer drafts are read from the ranks that are there, and the picks with fewer neighbours from one search at
the largest number. Risk and coverage: the least plausible picks are left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from tabon.errors import BadInputError
from tabon.evaluation.compare import Chance, Estimate, RunTable, estimates, worth_to_oracle
from tabon.evaluation.draft_scores import STATE, Measured, eligible, measure_section, measure_states
from tabon.evaluation.inputs import NOTHING, Case, Part, Picks
from tabon.evaluation.results import Number, Results
from tabon.evaluation.statistics import bootstrap_weights, effective_number, interval, patient_rows
from tabon.method.nearest import bank_neighbours
from tabon.method.selection import WORST, SectionDistances, Selection
from tabon.method.transitions import Transitions
from tabon.metrics.protocol import Metric
from tabon.selectors import Selector
from tabon.selectors.abstention import RiskCoverage, risk_coverage
from tabon.selectors.transition import Transition
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Section

Array = NDArray[np.float64]
CURVE_RESAMPLES = 1000
OVER = "over-optimisation"
POINTS = 10  # of a risk-coverage curve


def candidates_curves(
    tables: Sequence[RunTable], methods: Sequence[str], chance: Chance
) -> Iterator[dict[str, Any]]:
    """Yield two curves a method by the tables' one score: each point is the mean over all sets of k drafts.

    The K-curve is the share of the gap closed, of the gap that k drafts have. Over-optimisation is the score
    itself, on the scale of the gap of all drafts, against how far the best of k leaves a random pick.
    """
    most = max(table.measured.there.shape[1] for table in tables)
    found = [best_of_fewer(tables, drafts, chance) for drafts in range(2, most + 1)]
    section, [score] = tables[0].measured.part, tables[0].measured.scores
    for row, method in enumerate(methods):
        fewer, against = [], []
        for drafts, (random, oracle, *best) in enumerate(found, start=2):
            ahead = best[row] - random
            fewer.append(point(drafts, (ahead / (oracle - random)).numbers()[0]))
            against.append(point(divergence(drafts), (ahead / (found[-1][1] - random)).numbers()[0]))
        for name, x, points in (("K-curve", "drafts (K)", fewer), (OVER, "KL from a random pick", against)):
            yield curve(name, x, section=section, score=score.name, method=method, points=points)


def best_of_fewer(tables: Sequence[RunTable], drafts: int, chance: Chance) -> list[Estimate]:
    """Return random, the oracle and each method in expectation over all sets of so many drafts a study."""
    runs = []
    for table in tables:
        measured = table.measured
        merits = [worth_to_oracle(measured)[..., 0], *(-distances for distances in table.distances)]
        picked = [measured.weighted(best_of(each, measured.there, drafts)) for each in merits]
        systems = chance.sums(measured.cases, np.stack([measured.expected(), *picked], axis=1))
        counts = chance.sums(measured.cases, np.ones(len(measured.cases)))
        runs.append(estimates(measured.scores, systems, counts, chance))
    return [Estimate.mean(each) for each in zip(*runs, strict=True)]


def best_of(merits: Array, there: NDArray[np.bool_], drafts: int) -> Array:
    """Return each draft's chance to be the best of some of its study's drafts, drawn at random.

    The draft of rank r of K is the best of k with C(K - r, k - 1) / C(K, k); equal ones go to the first, a
    study with fewer drafts than k gives all, and drafts without merit (NaN) share what is left to them.

    >>> best_of(np.array([[0.1, 0.9, 0.5]]), np.ones((1, 3), dtype=bool), 2).round(4).tolist()
    [[0.0, 0.6667, 0.3333]]
    """
    unknown = np.isnan(merits) & there
    order = np.argsort(np.where(there & ~unknown, -merits, np.inf), axis=1, kind="stable")
    count = there.sum(axis=1, keepdims=True)
    k = np.minimum(drafts, count)
    chances = np.zeros(merits.shape)
    ranks = np.arange(1, merits.shape[1] + 1)
    np.put_along_axis(chances, order, comb(count - ranks, k - 1) / comb(count, k), axis=1)
    shared = (chances * unknown).sum(axis=1, keepdims=True) / np.maximum(
        unknown.sum(axis=1, keepdims=True), 1
    )
    return np.where(unknown, shared, chances)


def divergence(drafts: int) -> float:
    """Return how far the best of k is from a random pick: KL = log k - (k - 1) / k, in nats."""
    return float(np.log(drafts) - (drafts - 1) / drafts)


def curve(
    name: str, x: str, *, section: str, score: str, method: str, points: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a curve as results keep it."""
    return {"name": name, "x": x, "score": score, "method": method, "points": points, "section": section}


def point(x: float, gap: Number) -> dict[str, Any]:
    """Return one point of a curve."""
    return {"x": x, "gap": gap.value, "low": gap.low, "high": gap.high}


@dataclass(frozen=True, slots=True)
class NeighbourPicks:
    """The picks of kNN under one distance with some number of neighbours."""

    distance: str
    neighbours: int
    picks: Picks


def picks_by_neighbours(
    selector: Selector, queries: Sequence[Query], counts: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield, for each query, the pick under each number of neighbours."""
    still = {k: unchanged_distances(selector, k) for k in counts}
    for query, selection in zip(queries, selector.select_many(queries), strict=True):
        picks = {str(k): pick_with(selection, k, still[k]) for k in counts}
        yield {"id": query.id, "selected": picks, "signature": selector.signature}


def unchanged_distances(selector: Selector, neighbours: int) -> dict[Section, float]:
    """Return the distance of a draft without change in each section: that of its k nearest (eq. 10)."""
    bank, scorer = selector.bank, selector.scorer
    if not isinstance(scorer, Transition):
        raise BadInputError(f"{scorer.name} has no k-curve: its distance is no mean over transitions")
    still = Transitions(np.zeros((1, bank.table.vectors.shape[1]), dtype=np.float32), np.ones(1, dtype=bool))
    parts = {section: bank.section(section, scorer.distance) for section in SECTIONS}
    return {
        section: float(bank_neighbours(still, part, neighbours, scorer.zero).distances.mean())
        for section, part in parts.items()
        if len(part) >= neighbours
    }


def pick_with(selection: Selection, neighbours: int, still: Mapping[Section, float]) -> int | None:
    """Return the draft that kNN with fewer neighbours takes (eq. 10-12); None where nothing is chosen.

    `still` is what a draft without change, which has no list of neighbours, is away.
    """
    if selection.selected is None:
        return None

    def distances(section: Section, part: SectionDistances) -> NDArray[np.float64]:
        near = [[each.distance for each in found[:neighbours]] for found in part.nearest]
        known = zip(near, part.compared, strict=True)
        return np.array([np.mean(few or still[section]) if there else WORST for few, there in known])

    totals = np.sum([distances(*each) for each in selection.sections.items()], axis=0)
    eligible = np.any([part.compared for part in selection.sections.values()], axis=0)
    return int(np.where(eligible, totals, np.inf).argmin())


def read_neighbour_picks(files: Mapping[str, Path]) -> Iterator[NeighbourPicks]:
    """Yield the picks of every distance and number of neighbours."""
    for distance, path in files.items():
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        for k in records[0]["selected"]:
            chosen = {record["id"]: record["selected"][k] for record in records}
            picks = Picks(
                method=f"{distance}/knn@{k}",
                signature=f"neighbours:{k}|{records[0]['signature']}",
                chosen={query: NOTHING if pick is None else pick for query, pick in chosen.items()},
                distances={},
            )
            yield NeighbourPicks(distance, int(k), picks)


def neighbour_curves(
    results: Results, shown: Sequence[NeighbourPicks], score: str
) -> Iterator[dict[str, Any]]:
    """Yield the k-curves: the share of the gap closed against the number of neighbours."""
    distances = dict.fromkeys(each.distance for each in shown)
    for section, distance in product(results.sections(), distances):
        points = []
        for each in shown:
            method = each.picks.method
            cell = results.cell(run=results.main_run(), section=section, method=method, score=score)
            if each.distance == distance and cell is not None:
                points.append(point(each.neighbours, cell.share()))
        if points:
            method = f"{distance}/knn"
            yield curve(
                "k-curve", "neighbours (k)", section=section, score=score, method=method, points=points
            )


@dataclass(frozen=True, slots=True)
class Risk:
    """A risk-coverage curve, and the area under it with its interval."""

    curve: RiskCoverage
    area: Number


def risk_of(picks: Picks, measured: Measured, score: str, *, seed: int = 0) -> Risk:
    """Return the mean loss (1 - score) of the most plausible picks, for each tenth of the cases.

    How implausible a case is, is the distance of its pick, per section; cases without a pick are left out.
    The interval of the area is over patients, the cases ordered as they are.
    """
    cases, every = measured.cases, np.arange(len(measured.cases))
    column = [each.name for each in measured.scores].index(score)
    rows = picks.rows(cases)
    taken = np.maximum(rows, 0)
    totals = np.where(rows == NOTHING, np.nan, picks.distance_rows(cases)[every, taken])
    counts = np.array([max(picks.sections.get(case.query.id, 1), 1) for case in cases])
    distances = totals / counts  # a total over two sections is not less plausible for that
    worth = measured.per_draft()[every, taken, column]
    known = ~(np.isnan(distances) | np.isnan(worth))
    if not known.any():
        raise BadInputError("no pick has a distance and a value; give selections with distances and a score")
    distances, losses = distances[known], 1.0 - worth[known]
    rows = patient_rows([case.patient for case, there in zip(cases, known, strict=True) if there])
    drawn = bootstrap_weights(rows.max() + 1, CURVE_RESAMPLES, np.random.default_rng(seed))
    weights = drawn[:, rows].astype(np.float64)
    curve = risk_coverage(distances, losses, points=POINTS)
    ends = interval(areas(distances, losses, weights), effective_number(np.bincount(rows).astype(np.float64)))
    low, high = (None if np.isnan(end) else float(end) for end in ends)
    return Risk(curve, Number(value=curve.area, low=low, high=high))


def areas(distances: Array, losses: Array, weights: Array) -> Array:
    """Return the area under the risk-coverage curve under each weighting of the cases, (resamples,).

    The weights are whole numbers: how often each case is there. With ones it is `risk_coverage`'s.
    """
    order = np.argsort(distances, kind="stable")
    last = np.r_[np.flatnonzero(np.diff(distances[order]) > 0), len(order) - 1]
    kept = np.cumsum(weights[:, order], axis=1)[:, last]
    lost = np.cumsum(weights[:, order] * losses[order], axis=1)[:, last]
    risks = []
    for tenth in range(1, POINTS + 1):
        wanted = np.ceil(kept[:, -1:] * tenth / POINTS)
        first = (kept < wanted).sum(axis=1, keepdims=True)
        risks.append(np.take_along_axis(lost, first, axis=1) / np.take_along_axis(kept, first, axis=1))
    found: Array = np.mean(risks, axis=0)[:, 0]
    return found


def measured_for_risk(cases: Sequence[Case], part: Part, metric: Metric | None) -> Measured:
    """Measure one part: a metric in a section, or state-F1 of the whole report."""
    studies = eligible(cases, part)
    if part != "report" and metric is not None:
        return measure_section(metric, studies, part)
    measured = measure_states(studies)
    if measured is None:
        raise BadInputError(f"{STATE} is known on simulated cohorts only; name another --score")
    return measured
