"""One flat map of a section's transition space, the same for every study.

`transition_map.project` chooses its axes for one query. Here they come from a
seeded sample of the bank alone, so that studies can be compared, and one study
can be placed without looking at the others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.method.bank import TransitionBank, bank_transitions
from tabon.method.sentence_sets import Ids
from tabon.reporting.transition_map import ROWS, Point, rounded, widest_axes
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
    """Lay a sample of a section's transitions on its two widest axes; None where there are none."""
    moving = bank.section(section, distance).rows
    if len(moving) == 0:
        return None
    directions = bank_transitions(bank, section, distance, _sample(moving)).directions
    points = directions.astype(np.float64)
    centre = points.mean(axis=0)
    axes, explained = widest_axes(points - centre)
    flat = tuple(map(rounded, (points - centre) @ axes.T))
    return SectionMap(centre, axes, flat, explained, len(moving))


def _sample(rows: Ids) -> Ids:
    """Return the bank rows that are shown, in order."""
    chosen = np.random.default_rng(SEED).choice(len(rows), size=min(ROWS, len(rows)), replace=False)
    return np.sort(rows[chosen])
