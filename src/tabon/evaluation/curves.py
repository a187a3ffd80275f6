"""The K-curve: what best-of-K is worth for every K up to the drafts at hand.

A draft's distance does not depend on the other drafts in the paper's methods,
so the pick among the first K drafts is read from the distances that are there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.evaluation.compare import Chance, RunTable, compare
from tabon.evaluation.draft_scores import Measured
from tabon.evaluation.picks import NOTHING
from tabon.evaluation.results import Cell

CURVE_RESAMPLES = 1000


def candidates_curve(
    tables: Sequence[RunTable], methods: Sequence[str], *, main: str, score: str, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield one curve a method: the share of the gap closed with the first 2, 3, ... K drafts."""
    most = max(table.measured.there.shape[1] for table in tables)
    patients = 1 + max(int(table.patients.max()) for table in tables)
    chance = Chance.draw(patients, CURVE_RESAMPLES, seed)
    points: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
    for count in range(2, most + 1):
        cells = compare([first_drafts(table, count) for table in tables], methods, chance)
        for cell in cells:
            if cell.run == main and cell.score == score and cell.method in points:
                points[cell.method].append(point(count, cell))
    for method in methods:
        yield curve("K-curve", "drafts (K)", score=score, method=method, points=points[method])


def curve(name: str, x: str, *, score: str, method: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a curve as results keep it."""
    return {"name": name, "x": x, "score": score, "method": method, "points": points}


def point(x: int, cell: Cell) -> dict[str, Any]:
    """Return one point of a curve."""
    return {"x": x, "gap": cell.gap, "low": cell.gap_low, "high": cell.gap_high}


def first_drafts(table: RunTable, count: int) -> RunTable:
    """Keep the first drafts of each study, and pick anew among them."""
    there = table.measured.there[:, :count]
    measured = Measured(
        table.measured.scores, table.measured.signature, table.measured.statistics[:, :count], there
    )
    picks = [_nearest(distances[:, :count]) for distances in table.distances]
    seeded = [np.minimum(picks, there.sum(axis=1) - 1) for picks in table.seeded]
    return replace(table, measured=measured, picks=picks, seeded=seeded)


def _nearest(distances: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the draft with the smallest distance, the earliest of equals; NaN is no draft."""
    unknown = np.isnan(distances)
    nearest: NDArray[np.intp] = np.where(unknown, np.inf, distances).argmin(axis=1)
    return np.where(unknown.all(axis=1), NOTHING, nearest)
