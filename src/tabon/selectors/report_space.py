"""Distance of a draft to the nearest training reports themselves, without any prior.

This is best-of-N as Set-Distance Rewards (SDR) has it: D(E(draft), E(report)) by section, the least over
the *current* reports of the bank's transitions, or the mean of the ten least. Each row of the bank
counts once: a section that a hundred rows share, word for word, is a hundred neighbours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tabon._internal.registry import check_name
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.method.nearest import AGGREGATES, Aggregate, aggregate_distances
from tabon.method.selection import WORST, Neighbour
from tabon.method.sentence_sets import Ids
from tabon.selectors.scorer import Batch, Scores
from tabon.selectors.set_distances.distances import SET_DISTANCES, UNMATCHED
from tabon.selectors.set_distances.nearest_sets import SetIndex
from tabon.text.reports import SECTIONS, Section


@dataclass(frozen=True)
class ReportSpace:
    """Prefers drafts that look like a training report; made by `load`."""

    bank: TransitionBank
    set_distance: str = "chamfer"
    aggregate: Aggregate = "min"
    num_neighbours: int = 10

    needs_prior = False
    uses_prior = False

    def __post_init__(self) -> None:
        """Refuse names that are not known."""
        check_name("set distance", tuple(SET_DISTANCES), self.set_distance)
        check_name("aggregation", AGGREGATES, self.aggregate)
        if self.num_neighbours < 1:
            raise BadInputError(f"k = {self.num_neighbours} neighbours were asked for; give 1 or more")

    @property
    def name(self) -> str:
        """Return what `--selector` calls it."""
        return f"report-space:{self.set_distance}/{self.aggregate}"

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Return what changes its distances, for the signature."""
        unmatched = {"unmatched": f"{UNMATCHED:g}"} if self.set_distance == "hungarian" else {}
        return {"reports": "current", "k": str(self._k), **unmatched}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's distance to the nearest training report sections."""
        sets = batch.draft_sets[section]
        distances = np.full(len(sets), np.nan)
        nearest: list[tuple[Neighbour, ...]] = [()] * len(sets)
        index, asked = self._indexes[section], np.flatnonzero(sets.lengths > 0)
        if index is not None and len(asked):
            found = index.search(batch.table.vectors, sets.take(asked), min(self._k, len(index)))
            distances[asked] = aggregate_distances(found.distances, self.aggregate)
            rows = self._rows(section)[found.rows]
            for draft, row, distance in zip(asked.tolist(), rows, found.distances, strict=True):
                pairs = zip(row.tolist(), distance.tolist(), strict=True)
                nearest[draft] = tuple(Neighbour(*pair, self.bank.provenance) for pair in pairs)
        return Scores(distances=distances, nearest=tuple(nearest), worst=WORST)

    @property
    def _k(self) -> int:
        """Return how many neighbours count."""
        return 1 if self.aggregate == "min" else self.num_neighbours

    def _rows(self, section: Section) -> Ids:
        """Return the bank rows whose current report has the section."""
        return np.flatnonzero(self.bank.pairs[section].current.lengths > 0)

    @cached_property
    def _indexes(self) -> Mapping[Section, SetIndex | None]:
        """Return each section's training reports, laid out once; None if no report has the section."""
        sets = {name: self.bank.pairs[name].current.take(self._rows(name)) for name in SECTIONS}
        vectors = self.bank.table.vectors
        return {
            name: SetIndex(self.set_distance, vectors, found) if len(found) else None
            for name, found in sets.items()
        }


def load(bank: TransitionBank, variant: str) -> ReportSpace:
    """Return the scorer of a variant such as `chamfer/min` or `transport/knn`."""
    distance, _, aggregate = variant.partition("/")
    if not variant:
        return ReportSpace(bank)
    return ReportSpace(bank, distance, aggregate)  # type: ignore[arg-type]  # checked there
