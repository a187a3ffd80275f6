"""Novelty both ways: what is new, and what was dropped.

The novelty of eq. 3 is zero for a draft that only drops sentences. Here the
transition is the pair of T(A, B), what is new beside the prior, and T(B, A),
what of the prior is no longer there: one vector of twice the dimension, divided
by its own norm. It is zero only when each side's sentences stand on the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tabon.encoders.protocol import Matrix
from tabon.method.bank import SectionBank, TransitionBank
from tabon.method.distances import novelty, transition
from tabon.method.nearest import ExactIndex
from tabon.method.sentence_sets import RaggedSets
from tabon.method.transitions import Transitions, directions_of, groups_of_one_shape, norms_of
from tabon.selectors.prepared import Batch
from tabon.selectors.scorer import Distances, Scores
from tabon.selectors.transition import Nearest
from tabon.text.reports import SECTIONS, Section


@dataclass(frozen=True, slots=True, eq=False)
class TwoSidedTransitions:
    """Directions of dimension 2d, and how long their two halves were before."""

    moves: Transitions
    new: Distances  # (pairs,)
    dropped: Distances


@dataclass(frozen=True)
class TwoSided(Nearest):
    """Prefers the draft that adds and drops as drafts of the bank do; made by `load`."""

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
        found = two_sided_transitions(batch.table.vectors, prior=prior, current=current)
        new, dropped = np.full((2, len(batch.drafts)), np.nan)
        new[rows], dropped[rows] = found.new, found.dropped
        scores = self.scores(self._banks[section], batch, rows, found.moves)
        return replace(scores, parts={"new": new, "dropped": dropped})

    @cached_property
    def _banks(self) -> Mapping[Section, SectionBank]:
        """Return each section's bank under this distance; made once."""
        banks = {}
        for section in SECTIONS:
            pairs = self.bank.pairs[section]
            present = pairs.present()
            prior, current = pairs.prior.take(present), pairs.current.take(present)
            moves = two_sided_transitions(self.bank.table.vectors, prior=prior, current=current).moves
            index = None if moves.zero.all() else ExactIndex(moves.directions[~moves.zero])
            banks[section] = SectionBank(index, present[~moves.zero], present[moves.zero])
        return banks


def load(bank: TransitionBank, variant: str) -> TwoSided:
    """Return the two-sided method under `min` or `knn`; min where nothing is named.

    Raises:
        BadInputError: a section's bank is smaller than the k of `knn`.
    """
    return TwoSided(bank, aggregate=variant or "min")  # type: ignore[arg-type]  # checked there


def two_sided_transitions(vectors: Matrix, *, prior: RaggedSets, current: RaggedSets) -> TwoSidedTransitions:
    """Return (T(A, B), T(B, A)) of each pair of sets, as one direction; no set may be empty."""
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
    return TwoSidedTransitions(Transitions(directions, zero), *lengths)
