"""One flat map of a section's transition space, the same for every study, and where drafts lie on it.

Its axes come from a seeded sample of the bank alone, so that studies can be compared, and one study
can be placed without looking at the others; `transition_map.project` chooses them for one query.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.method.bank import TransitionBank, bank_transitions
from tabon.method.selection import Selection
from tabon.reporting.transition_map import ROWS, Point, rounded, widest_axes
from tabon.selectors import Batch
from tabon.text.reports import Section

SEED = 0
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SectionMap:
    """The bank's sample on its two widest axes, and these axes."""

    centre: Array  # (d,)
    axes: Array  # (2, d)
    bank: tuple[Point, ...]
    explained: Point  # share of the sample's variance on each axis
    total: int  # transitions of the section in the bank that have a direction

    def places(self, directions: Matrix) -> list[Point]:
        """Return where unit transitions lie, (n, d)."""
        return [rounded(row) for row in (directions.astype(np.float64) - self.centre) @ self.axes.T]


def section_map(bank: TransitionBank, section: Section, distance: str) -> SectionMap | None:
    """Lay a sample of a section's transitions on its two widest axes; None if there are none."""
    moving = bank.section(section, distance).rows
    if len(moving) == 0:
        return None
    chosen = np.random.default_rng(SEED).choice(len(moving), size=min(ROWS, len(moving)), replace=False)
    directions = bank_transitions(bank, section, distance, np.sort(moving[chosen])).directions
    points = directions.astype(np.float64)
    centre = points.mean(axis=0)
    axes, explained = widest_axes(points - centre)
    flat = tuple(map(rounded, (points - centre) @ axes.T))
    return SectionMap(centre, axes, flat, explained, len(moving))


@dataclass(frozen=True, slots=True)
class Placed:
    """Each draft's place and that of its nearest training transition; None if it has none."""

    drafts: tuple[Point | None, ...]
    nearest: tuple[Point | None, ...]


@dataclass(frozen=True, slots=True)
class Placer:
    """Lays the drafts of a batch of queries on the maps of a selector's bank."""

    bank: TransitionBank
    batch: Batch
    distance: str
    maps: Mapping[Section, SectionMap]

    def places(self, number: int, selection: Selection) -> dict[Section, Placed]:
        """Return the drafts' places of one query, in each section that has a map."""
        drafts = self.batch.rows(self.batch.places[number][-1])
        found = {}
        for section in self.maps:
            part = selection.sections.get(section)
            nearest: list[Point | None] = [None] * len(drafts)
            for draft, near in enumerate(() if part is None else part.nearest):
                if near:
                    moves = bank_transitions(self.bank, section, self.distance, np.array([near[0].row]))
                    [place] = self.maps[section].places(moves.directions)
                    nearest[draft] = None if moves.zero[0] else place
            found[section] = Placed(self._drafts(drafts, section), tuple(nearest))
        return found

    def _drafts(self, drafts: range, section: Section) -> tuple[Point | None, ...]:
        """Place drafts; one without the section, or without a change, has no place."""
        rows = np.intersect1d(self.batch.comparable(section), drafts)
        places: list[Point | None] = [None] * len(drafts)
        if len(rows):
            moves = self.batch.transitions(section, rows, self.distance)
            flat = self.maps[section].places(moves.directions)
            for row, place, zero in zip(rows.tolist(), flat, moves.zero.tolist(), strict=True):
                places[row - drafts.start] = None if zero else place
        return tuple(places)
