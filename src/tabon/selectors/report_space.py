"""Distance of a draft to the nearest training reports themselves, without any prior.

This is best-of-N as Set-Distance Rewards (SDR) has it: D(E(draft), E(report)) by
section, the least over the training reports or the mean of the ten least. The
training reports are the *current* reports of the bank's transitions. Each row of
the bank counts once: a report section that a hundred rows share, word for word,
is a hundred neighbours.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from tabon._registry import check_name
from tabon.bank import TransitionBank
from tabon.reports import Section
from tabon.scoring import AGGREGATES, Aggregate, aggregate_distances
from tabon.selection import WORST, Neighbour
from tabon.selectors.batch import Batch
from tabon.selectors.nearest_sets import SetIndex
from tabon.selectors.protocol import Scores
from tabon.selectors.set_distances import SET_DISTANCES, UNMATCHED
from tabon.sentence_sets import Ids

DEFAULT = "chamfer/min"
NUM_NEIGHBOURS = 10


class ReportSpace:
    """Prefers drafts that look like a training report."""

    needs_prior = False

    def __init__(self, bank: TransitionBank, distance: str, aggregate: Aggregate) -> None:
        """Keep the settings; a section's reports are laid out on first use."""
        self.bank, self.distance, self.aggregate = bank, distance, aggregate
        self._indexes: dict[Section, SetIndex | None] = {}

    @property
    def name(self) -> str:
        """Return what `--selector` calls it."""
        return f"report-space:{self.distance}/{self.aggregate}"

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """Return what changes its distances, for the signature."""
        unmatched = {"unmatched": f"{UNMATCHED:g}"} if self.distance == "hungarian" else {}
        return {"reports": "current", "k": str(self._k), **unmatched}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's distance to the nearest training report sections."""
        sets = batch.draft_sets[section]
        distances = np.full(len(sets), np.nan)
        nearest: list[tuple[Neighbour, ...]] = [()] * len(sets)
        index, asked = self._index(section), np.flatnonzero(sets.lengths > 0)
        if index is not None and len(asked):
            found = index.search(batch.table.vectors, sets.take(asked), min(self._k, len(index)))
            distances[asked] = aggregate_distances(found.distances, self.aggregate)
            rows = self._rows(section)[found.rows]
            for draft, row, distance in zip(asked.tolist(), rows, found.distances, strict=True):
                nearest[draft] = self._neighbours(row, distance)
        return Scores(distances=distances, nearest=tuple(nearest), worst=WORST)

    @property
    def _k(self) -> int:
        """Return how many neighbours count."""
        return 1 if self.aggregate == "min" else NUM_NEIGHBOURS

    def _rows(self, section: Section) -> Ids:
        """Return the bank rows whose current report has the section."""
        return np.flatnonzero(self.bank.pairs[section].current.lengths > 0)

    def _index(self, section: Section) -> SetIndex | None:
        """Return a section's training reports; None where no report has the section."""
        if section not in self._indexes:
            sets = self.bank.pairs[section].current.take(self._rows(section))
            index = SetIndex(self.distance, self.bank.table.vectors, sets) if len(sets) else None
            self._indexes[section] = index
        return self._indexes[section]

    def _neighbours(self, rows: Ids, distances: np.ndarray) -> tuple[Neighbour, ...]:
        """Name the transitions whose current reports are nearest."""
        return tuple(
            Neighbour(str(self.bank.provenance[row]["id"]), float(distance))
            for row, distance in zip(rows.tolist(), distances.tolist(), strict=True)
        )


def load(bank: TransitionBank, variant: str) -> ReportSpace:
    """Return the scorer of a variant such as `chamfer/min` or `transport/knn`.

    Raises:
        UnknownNameError: there is no such set distance or aggregation.
    """
    distance, _, aggregate = (variant or DEFAULT).partition("/")
    check_name("set distance", tuple(SET_DISTANCES), distance)
    check_name("aggregation", AGGREGATES, aggregate)
    return ReportSpace(bank, distance, aggregate)  # type: ignore[arg-type]
