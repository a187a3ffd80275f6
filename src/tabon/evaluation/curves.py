"""How a method does with fewer drafts (K-curve), other numbers of neighbours (k-curve), or fewer picks.

A draft's distance does not depend on the other drafts in the paper's methods, so the pick among the
first K drafts is read from the distances that are there, and the picks with fewer neighbours from one
search at the largest number. Risk and coverage: the least plausible picks are left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.errors import BadInputError
from tabon.evaluation.compare import Chance, RunTable, compare
from tabon.evaluation.draft_scores import STATE, Measured, eligible, measure_section, measure_states
from tabon.evaluation.inputs import NOTHING, Case, Part, Picks
from tabon.evaluation.results import Cell, Results
from tabon.method.selection import WORST, SectionDistances, Selection
from tabon.metrics.protocol import Metric
from tabon.selectors import Selector
from tabon.selectors.conformal import RiskCoverage, risk_coverage
from tabon.text.records import Query

CURVE_RESAMPLES = 1000
POINTS = 10  # of a risk-coverage curve


def candidates_curve(
    tables: Sequence[RunTable], methods: Sequence[str], chance: Chance, *, main: str, score: str
) -> Iterator[dict[str, Any]]:
    """Yield one curve a method: the share of the gap closed with the first 2, 3, ... K drafts."""
    most = max(table.measured.there.shape[1] for table in tables)
    points: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
    for count in range(2, most + 1):
        for cell in compare([first_drafts(table, count) for table in tables], methods, chance):
            if cell.run == main and cell.score == score and cell.method in points:
                points[cell.method].append(point(count, cell))
    for method in methods:
        part = tables[0].measured.part
        yield curve("K-curve", "drafts (K)", section=part, score=score, method=method, points=points[method])


def curve(
    name: str, x: str, *, section: str, score: str, method: str, points: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a curve as results keep it."""
    return {"name": name, "x": x, "score": score, "method": method, "points": points, "section": section}


def point(x: int, cell: Cell) -> dict[str, Any]:
    """Return one point of a curve."""
    return {"x": x, "gap": cell.gap, "low": cell.gap_low, "high": cell.gap_high}


def first_drafts(table: RunTable, count: int) -> RunTable:
    """Keep the first drafts of each study, and pick anew among them."""
    picks = []
    for distances in (every[:, :count] for every in table.distances):
        unknown = np.isnan(distances)  # no draft
        nearest = np.where(unknown, np.inf, distances).argmin(axis=1)
        picks.append(np.where(unknown.all(axis=1), NOTHING, nearest))
    return replace(table, measured=table.measured.first(count), picks=picks, seeded=())


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
    for query, selection in zip(queries, selector.select_many(queries), strict=True):
        picks = {str(k): pick_with(selection, k) for k in counts}
        yield {"id": query.id, "selected": picks, "signature": selector.signature}


def pick_with(selection: Selection, neighbours: int) -> int | None:
    """Return the draft that kNN with fewer neighbours takes (eq. 10-12); None where nothing is chosen."""
    if selection.selected is None:
        return None

    def distances(part: SectionDistances) -> NDArray[np.float64]:
        near = (found[:neighbours] for found in part.nearest)
        return np.array([np.mean([each.distance for each in few]) if few else WORST for few in near])

    totals = np.sum([distances(part) for part in selection.sections.values()], axis=0)
    eligible = [any(part.nearest[j] for part in selection.sections.values()) for j in range(len(totals))]
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
                points.append(point(each.neighbours, cell))
        if points:
            method = f"{distance}/knn"
            yield curve(
                "k-curve", "neighbours (k)", section=section, score=score, method=method, points=points
            )


def risk_of(picks: Picks, measured: Measured, score: str) -> RiskCoverage:
    """Return the mean loss (1 - score) of the most plausible picks, for each tenth of the cases.

    How implausible a case is, is the distance of its pick, per section; cases without a pick are left out.
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
    return risk_coverage(distances[known], 1.0 - worth[known], points=POINTS)


def measured_for_risk(cases: Sequence[Case], part: Part, metric: Metric | None) -> Measured:
    """Measure one part: a metric in a section, or state-F1 of the whole report."""
    studies = eligible(cases, part)
    if part != "report" and metric is not None:
        return measure_section(metric, studies, part)
    measured = measure_states(studies)
    if measured is None:
        raise BadInputError(f"{STATE} is known on simulated cohorts only; name another --score")
    return measured
