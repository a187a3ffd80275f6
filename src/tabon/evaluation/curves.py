"""What a method is worth with fewer drafts (the K-curve) or other numbers of neighbours (the k-curve).

A draft's distance does not depend on the other drafts in the paper's methods, so
the pick among the first K drafts is read from the distances that are there. The
picks with fewer neighbours are read from one search at the largest number.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.evaluation.compare import Chance, RunTable, compare
from tabon.evaluation.picks import NOTHING, Picks
from tabon.evaluation.results import Cell, Results
from tabon.method.selection import WORST, SectionDistances, Selection
from tabon.selectors import Selector
from tabon.text.records import Query

CURVE_RESAMPLES = 1000


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
