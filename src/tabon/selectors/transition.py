"""The paper's own method as a scorer: the same bits as `tabon.selector.Selector`."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tabon._registry import check_name
from tabon.bank import SectionBank, TransitionBank
from tabon.distances import DISTANCES, get_distance
from tabon.errors import BadInputError
from tabon.reports import SECTIONS, Section
from tabon.scoring import (
    AGGREGATES,
    Aggregate,
    BankNeighbours,
    ZeroPolicy,
    aggregate_distances,
    bank_neighbours,
)
from tabon.selection import WORST, Neighbour
from tabon.selectors.batch import Batch
from tabon.selectors.protocol import Scores
from tabon.sentence_sets import Ids
from tabon.transitions import Transitions, transitions
from tabon.transport import SOLVER

DEFAULT_DISTANCE = "novelty"
DEFAULT_AGGREGATE: Aggregate = "min"
NUM_NEIGHBOURS = 10
ZERO: ZeroPolicy = "neutral"


@dataclass(frozen=True, slots=True)
class Transition:
    """Prefers the draft whose change from the prior is near to changes in the bank; made by `load`."""

    bank: TransitionBank
    distance: str
    aggregate: Aggregate

    needs_prior = True

    @property
    def name(self) -> str:
        """Return the selector with its distance and aggregation."""
        return f"transition:{self.distance}/{self.aggregate}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Return what the paper leaves open."""
        solver = {"solver": SOLVER} if self.distance == "cost-ot" else {}
        return {**aggregate_settings(self.aggregate), **solver}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's bank distance (eq. 8-10)."""
        rows = comparable(batch, section)
        prior, current = batch.prior_sets[section], batch.draft_sets[section]
        [moves] = transitions(
            [get_distance(self.distance)],
            batch.table.vectors,
            prior=prior.take(batch.owner[rows]),
            current=current.take(rows),
        )
        near = NearTransitions(self.bank, self.bank.section(section, self.distance), self.aggregate)
        return near.scores(batch, rows, moves)


@dataclass(frozen=True, slots=True, eq=False)
class NearTransitions:
    """The nearest transitions of a bank's section, as scores of drafts."""

    bank: TransitionBank
    section: SectionBank
    aggregate: Aggregate

    def scores(self, batch: Batch, rows: Ids, moves: Transitions) -> Scores:
        """Return the aggregated distance and the neighbours of these drafts (eq. 9-10)."""
        distances = np.full(len(batch.drafts), np.nan)
        nearest: list[tuple[Neighbour, ...]] = [()] * len(batch.drafts)
        k = min(NUM_NEIGHBOURS, len(self.section))
        if k and len(rows):
            found = bank_neighbours(moves, self.section, k, ZERO)
            distances[rows] = aggregate_distances(found.distances, self.aggregate)
            for place, row in enumerate(rows.tolist()):
                nearest[row] = self._cited(found, place)
        return Scores(distances, nearest=tuple(nearest), worst=WORST)

    def _cited(self, found: BankNeighbours, place: int) -> tuple[Neighbour, ...]:
        """Return one draft's neighbours by their ids."""
        pairs = zip(found.rows[place], found.distances[place], strict=True)
        return tuple(
            Neighbour(str(self.bank.provenance[row]["id"]), float(distance)) for row, distance in pairs
        )


def load(bank: TransitionBank, variant: str) -> Transition:
    """Return the method of DISTANCE/AGGREGATE; novelty/min where nothing is named.

    Raises:
        BadInputError: a section's bank is smaller than the k of `knn`.
    """
    distance, _, aggregate = variant.partition("/")
    checked = check_name("distance", tuple(DISTANCES), distance or DEFAULT_DISTANCE)
    return Transition(bank, checked, load_aggregate(bank, aggregate))


def load_aggregate(bank: TransitionBank, name: str) -> Aggregate:
    """Return the aggregation of that name, if the bank is large enough for it."""
    known = dict(zip(AGGREGATES, AGGREGATES, strict=True))
    aggregate = known[check_name("aggregation", AGGREGATES, name or DEFAULT_AGGREGATE)]  # type: ignore[index]
    for section in SECTIONS:
        size = len(bank.pairs[section].present())
        if aggregate == "knn" and 0 < size < NUM_NEIGHBOURS:
            raise BadInputError(
                f"knn looks at {NUM_NEIGHBOURS} transitions, the bank has {size} with {section}; "
                "build a larger bank or use min"
            )
    return aggregate


def aggregate_settings(aggregate: Aggregate) -> dict[str, str]:
    """Return how many neighbours count, and what a zero transition is worth."""
    return {"aggregate": "min" if aggregate == "min" else f"knn{NUM_NEIGHBOURS}", "zero": ZERO}


def comparable(batch: Batch, section: Section) -> Ids:
    """Return the drafts that have the section and whose prior has it too."""
    return np.flatnonzero(batch.has_draft(section) & batch.has_prior(section))
