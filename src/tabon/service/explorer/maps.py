"""One flat map of a section's transition space, the same for every study, and where drafts lie on it.

`transition_map.project` chooses its axes for one query. Here they come from a
seeded sample of the bank alone, so that studies can be compared, and one study
can be placed without looking at the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.method.bank import TransitionBank, bank_transitions
from tabon.method.distances import get_distance
from tabon.method.selection import Selection
from tabon.method.sentence_sets import embed
from tabon.method.transitions import transitions
from tabon.reporting.transition_map import ROWS, Point, rounded, widest_axes
from tabon.selectors import Selector
from tabon.text.records import Query
from tabon.text.reports import Section
from tabon.text.sentences import split_sentences

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
    chosen = np.random.default_rng(SEED).choice(len(moving), size=min(ROWS, len(moving)), replace=False)
    directions = bank_transitions(bank, section, distance, np.sort(moving[chosen])).directions
    points = directions.astype(np.float64)
    centre = points.mean(axis=0)
    axes, explained = widest_axes(points - centre)
    flat = tuple(map(rounded, (points - centre) @ axes.T))
    return SectionMap(centre, axes, flat, explained, len(moving))


@dataclass(frozen=True, slots=True)
class Placed:
    """Each draft's place and that of its nearest training transition; None where it has none."""

    drafts: tuple[Point | None, ...]
    nearest: tuple[Point | None, ...]


@dataclass(frozen=True, slots=True)
class Placer:
    """Lays drafts on the maps of a selector's bank."""

    selector: Selector
    distance: str
    maps: Mapping[Section, SectionMap]

    def places(self, query: Query, selection: Selection) -> dict[Section, Placed]:
        """Return the drafts' places in each section that has a map."""
        return {
            section: Placed(self._drafts(query, section), self._nearest(query, selection, section))
            for section in self.maps
        }

    def _drafts(self, query: Query, section: Section) -> tuple[Point | None, ...]:
        """Place drafts; one without the section, or without a change, has no place."""
        prior = split_sentences(query.prior.section(section))
        drafts = [split_sentences(draft.section(section)) for draft in query.candidates]
        compared = [number for number, draft in enumerate(drafts) if prior and draft]
        places: list[Point | None] = [None] * len(drafts)
        if compared:
            selector = self.selector
            texts = {*prior, *(text for draft in drafts for text in draft)}
            table = embed(texts, selector.encoder, known=selector.bank.known_sentences, store=selector.store)
            [moves] = transitions(
                [get_distance(self.distance)],
                table.vectors,
                prior=table.rows_of([prior] * len(compared)),
                current=table.rows_of([drafts[number] for number in compared]),
            )
            flat = self.maps[section].places(moves.directions)
            for number, place, zero in zip(compared, flat, moves.zero.tolist(), strict=True):
                places[number] = None if zero else place
        return tuple(places)

    def _nearest(self, query: Query, selection: Selection, section: Section) -> tuple[Point | None, ...]:
        """Place the nearest training transition of each draft."""
        places: list[Point | None] = [None] * len(query.candidates)
        part = selection.sections.get(section)
        for number, near in enumerate(() if part is None else part.nearest):
            if near:
                row = np.array([near[0].row])
                moves = bank_transitions(self.selector.bank, section, self.distance, row)
                places[number] = None if moves.zero[0] else self.maps[section].places(moves.directions)[0]
        return tuple(places)
