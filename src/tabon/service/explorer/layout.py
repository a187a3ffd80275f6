"""Where the drafts of one study lie on the maps, and their nearest training transitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tabon.method.bank import bank_transitions
from tabon.method.distances import get_distance
from tabon.method.selection import Neighbour, Selection
from tabon.method.sentence_sets import embed
from tabon.method.transitions import transitions
from tabon.reporting.transition_map import Point
from tabon.selectors import Selector
from tabon.service.explorer.axes import SectionMap
from tabon.text.records import Query
from tabon.text.reports import Section
from tabon.text.sentences import split_sentences


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
        part = selection.sections.get(section)
        found = [()] * len(query.candidates) if part is None else part.nearest
        return tuple(self._place(near, section) for near in found)

    def _place(self, near: Sequence[Neighbour], section: Section) -> Point | None:
        """Place the first of some training transitions."""
        if not near:
            return None
        moves = bank_transitions(self.selector.bank, section, self.distance, np.array([near[0].row]))
        return None if moves.zero[0] else self.maps[section].places(moves.directions)[0]
