"""How far a draft's transition is from those of the bank: the paper's method (eq. 8-10), and both ways.

In `two-sided` the transition is the pair of T(A, B), what is new beside the prior, and T(B, A), what of
the prior is no longer there: one vector of twice the dimension, divided by its own norm
(docs/decisions/two-sided-transition.md).
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np

from tabon._internal.registry import check_name
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.method.distances import distance_name, novelty, transition
from tabon.method.nearest import (
    AGGREGATES,
    EXACT,
    ZERO_POLICIES,
    Aggregate,
    ExactIndex,
    Neighbours,
    SectionBank,
    ZeroPolicy,
    aggregate_distances,
    bank_neighbours,
)
from tabon.method.selection import WORST, Neighbour
from tabon.method.sentence_sets import Ids, RaggedSets
from tabon.method.transitions import Transitions, directions_of, groups_of_one_shape, norms_of
from tabon.method.transport import SOLVER
from tabon.selectors.scorer import Batch, Distances, Scores, Sentences
from tabon.text.reports import SECTIONS, Section

NUM_NEIGHBOURS = 10


@dataclass(frozen=True)
class Nearest:
    """How the nearest transitions of a bank become one distance (eq. 9-10), whatever these are."""

    bank: TransitionBank
    _: KW_ONLY
    aggregate: Aggregate = "min"
    num_neighbours: int = NUM_NEIGHBOURS
    zero: ZeroPolicy

    needs_prior = True
    uses_prior = True

    def __post_init__(self) -> None:
        """Refuse names that are not known, and a k that a section's bank is too small for."""
        check_name("aggregation", AGGREGATES, self.aggregate)
        check_name("zero policy", ZERO_POLICIES, self.zero)
        if self.num_neighbours < 1:
            raise BadInputError(f"k = {self.num_neighbours} neighbours were asked for; give 1 or more")
        for section in SECTIONS if self.aggregate == "knn" else ():
            size = len(self.bank.pairs[section].present())
            if 0 < size < self.num_neighbours:
                raise BadInputError(
                    f"k = {self.num_neighbours} neighbours were asked for, the bank has {size} {section} "
                    "transitions; lower -k or build a larger bank"
                )

    @property
    def settings(self) -> Mapping[str, str]:
        """Return how many neighbours count, and how a zero transition is scored."""
        counted = "min" if self.aggregate == "min" else f"knn{self.num_neighbours}"
        return {"aggregate": counted, "zero": self.zero}

    def scores(self, section: SectionBank, batch: Batch, rows: Ids, moves: Transitions) -> Scores:
        """Return the aggregated distance and the neighbours of these drafts."""
        distances, found = self.nearest(section, batch, rows, moves, self.num_neighbours)
        nearest: list[tuple[Neighbour, ...]] = [()] * len(batch.drafts)
        unchanged = frozenset(rows[moves.zero].tolist()) if len(section) else frozenset()
        if found is not None:
            for draft, near, far in zip(
                rows.tolist(), found.rows.tolist(), found.distances.tolist(), strict=True
            ):
                pairs = zip(near, far, strict=True)
                if draft not in unchanged:  # what does not change is near to no change
                    nearest[draft] = tuple(
                        Neighbour(row, value, self.bank.provenance) for row, value in pairs
                    )
        return Scores(
            distances,
            nearest=tuple(nearest),
            worst=WORST,
            unchanged=unchanged,
            bank_is_empty=len(section) == 0,
        )

    def nearest(
        self, section: SectionBank, batch: Batch, rows: Ids, moves: Transitions, num_neighbours: int
    ) -> tuple[Distances, Neighbours | None]:
        """Return the distance of every draft, NaN but for these, and their neighbours, if there are any."""
        distances = np.full(len(batch.drafts), np.nan)
        k = min(num_neighbours, len(section))
        if not (k and len(rows)):
            return distances, None
        found = bank_neighbours(moves, section, k, self.zero)
        distances[rows] = aggregate_distances(found.distances, self.aggregate)
        return distances, found


@dataclass(frozen=True)
class Transition(Nearest):
    """The paper's method: prefers the draft whose change from the prior is near to changes in the bank."""

    distance: str = "novelty"
    _: KW_ONLY
    zero: ZeroPolicy = "match"

    def __post_init__(self) -> None:
        """Refuse settings that do not fit the bank."""
        distance_name(self.distance)
        super().__post_init__()

    @property
    def name(self) -> str:
        """Return the selector with its distance and aggregation."""
        return f"transition:{self.distance}/{self.aggregate}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Return what changes its distances, for the signature."""
        solver = SOLVER if self.distance == "cost-ot" else "none"
        return {"distance": self.distance, **super().settings, "solver": solver}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's bank distance (eq. 8-10)."""
        rows = batch.comparable(section)
        moves = batch.transitions(section, rows, self.distance)
        return self.scores(self.bank.section(section, self.distance), batch, rows, moves)

    def distances(self, batch: Batch, section: Section) -> Distances:
        """Return the distances of `score` alone, sooner.

        Equal sections beside one prior are compared once, and neighbours that do not count are not found.
        """
        bank, rows = self.bank.section(section, self.distance), batch.comparable(section)
        first: dict[tuple[int, Sentences], int] = {}
        pairs = zip(batch.owner[rows].tolist(), rows.tolist(), strict=True)
        same = [first.setdefault((owner, batch.drafts[row][section]), row) for owner, row in pairs]
        distinct = np.array(list(first.values()), dtype=np.int64)
        moves = batch.transitions(section, distinct, self.distance)
        counted = 1 if self.aggregate == "min" and bank.search == EXACT else self.num_neighbours
        distances, _ = self.nearest(bank, batch, distinct, moves, counted)
        distances[rows] = distances[same]
        return distances


def load(bank: TransitionBank, variant: str) -> Transition:
    """Return the method of DISTANCE/AGGREGATE; novelty/min if nothing is named."""
    distance, _, aggregate = variant.partition("/")
    named = {"distance": distance, "aggregate": aggregate}
    return Transition(bank, **{name: value for name, value in named.items() if value})  # type: ignore[arg-type]


@dataclass(frozen=True)
class TwoSided(Nearest):
    """Prefers the draft that adds and drops as drafts of the bank do; made by `load`."""

    _: KW_ONLY
    zero: ZeroPolicy = "neutral"

    @property
    def name(self) -> str:
        """Return the selector with its aggregation."""
        return f"two-sided:{self.aggregate}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Return what both halves are, and what the paper leaves open."""
        return {"distance": "novelty-both-ways", **super().settings}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's bank distance; the parts are the lengths of `new` and `dropped`."""
        rows = batch.comparable(section)
        prior = batch.prior_sets[section].take(batch.owner[rows])
        current = batch.draft_sets[section].take(rows)
        moves, lengths = two_sided_transitions(batch.table.vectors, prior=prior, current=current)
        parts = np.full((2, len(batch.drafts)), np.nan)
        parts[:, rows] = lengths
        scores = self.scores(self._banks[section], batch, rows, moves)
        return replace(scores, parts=dict(zip(("new", "dropped"), parts, strict=True)))

    @cached_property
    def _banks(self) -> Mapping[Section, SectionBank]:
        """Return each section's bank under this distance; made once."""
        banks = {}
        for section in SECTIONS:
            pairs = self.bank.pairs[section]
            present = pairs.present()
            prior, current = pairs.prior.take(present), pairs.current.take(present)
            moves, _ = two_sided_transitions(self.bank.table.vectors, prior=prior, current=current)
            index = None if moves.zero.all() else ExactIndex(moves.directions[~moves.zero])
            banks[section] = SectionBank(index, present[~moves.zero], present[moves.zero])
        return banks


def two_sided(bank: TransitionBank, variant: str) -> TwoSided:
    """Return the two-sided method under `min` or `knn`; min if nothing is named."""
    return TwoSided(bank, aggregate=variant or "min")  # type: ignore[arg-type]  # checked there


def two_sided_transitions(
    vectors: Matrix, *, prior: RaggedSets, current: RaggedSets
) -> tuple[Transitions, Distances]:
    """Return (T(A, B), T(B, A)) of each pair of sets as one direction, and the norms of both, (2, pairs)."""
    dimension = vectors.shape[1]
    directions = np.empty((len(prior), 2 * dimension), dtype=np.float32)
    zero = np.empty(len(prior), dtype=bool)
    lengths = np.empty((2, len(prior)))
    for n, m, pairs in groups_of_one_shape(prior.lengths, current.lengths, dimension):
        a = vectors[prior.stack(pairs, n)].astype(np.float64)
        b = vectors[current.stack(pairs, m)].astype(np.float64)
        halves = np.stack(
            [transition(novelty, prior=a, current=b), transition(novelty, prior=b, current=a)], axis=1
        )
        lengths[:, pairs] = norms_of(halves).T
        whole = halves.reshape(len(pairs), 2 * dimension)
        directions[pairs], zero[pairs] = directions_of(whole, norms_of(whole))
    return Transitions(directions, zero), lengths
