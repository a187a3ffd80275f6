"""A learnt directional encoder: which directions of change a target metric rewards.

The transition of a draft is seen from five sides: the unit vectors of the
paper's four distances, and Novelty backwards (what was dropped). The encoder is
one learnt linear map of these; the distance is minus its value. It is small, it
is fitted without chance, and it abstains for patients it was fitted on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES, get_distance
from tabon.method.transitions import transitions
from tabon.selectors.scorer import Batch, Distances, Scores
from tabon.selectors.weights import Array, FittedWeights, read_weights
from tabon.text.reports import Section

SIDES = (*DISTANCES, "dropped")


@dataclass(frozen=True)
class Learnt:
    """Prefers the changes that a metric rewarded; made by `load`."""

    fitted: FittedWeights

    needs_prior = True
    uses_prior = True
    parts_add_up = True

    @property
    def name(self) -> str:
        """Return the selector."""
        return "learnt"

    @property
    def settings(self) -> Mapping[str, str]:
        """Return which weights, and for what."""
        return {"weights": self.fitted.named, "target": self.fitted.target.replace("|", ";")}

    @property
    def trained_on(self) -> frozenset[str]:
        """Return whom it was fitted on."""
        return frozenset(self.fitted.trained_on)

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return minus the learnt value of each draft's change; parts are the sides."""
        seen = sides(batch, section)
        dimension = seen.shape[1] // len(SIDES)
        weights = np.array([self.fitted.weights[section][str(place)] for place in range(seen.shape[1])])
        values = -(seen * weights).reshape(len(seen), len(SIDES), dimension).sum(axis=2)
        parts: dict[str, Distances] = dict(zip(SIDES, values.T, strict=True))
        return Scores(np.sum(list(parts.values()), axis=0), parts)


def sides(batch: Batch, section: Section) -> Array:
    """Return each draft's change from five sides, (drafts, 5 d); NaN where it cannot be compared."""
    dimension = batch.table.vectors.shape[1]
    seen = np.full((len(batch.drafts), len(SIDES) * dimension), np.nan)
    rows = np.flatnonzero(batch.has_draft(section) & batch.has_prior(section))
    if len(rows):
        prior = batch.prior_sets[section].take(batch.owner[rows])
        current = batch.draft_sets[section].take(rows)
        vectors = batch.table.vectors
        forward = transitions(
            [get_distance(name) for name in DISTANCES], vectors, prior=prior, current=current
        )
        backward = transitions([get_distance("novelty")], vectors, prior=current, current=prior)
        seen[rows] = np.concatenate([moves.directions for moves in (*forward, *backward)], axis=1)
    return seen


def load(bank: TransitionBank, variant: str) -> Learnt:
    """Return the encoder in a file that `tabon fit --selector learnt` wrote."""
    if not variant:
        raise BadInputError("learnt needs its weights: --selector learnt:FILE; make one with `tabon fit`")
    names = map(str, range(len(SIDES) * bank.table.vectors.shape[1]))
    return Learnt(read_weights(Path(variant), selector="learnt", names=names, bank=bank.sha256))
