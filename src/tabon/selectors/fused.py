"""The strongest: agreement with the other drafts, with the prior, and with what came next elsewhere.

Every part is a distance in units of its spread over random pairs of training
reports, so that parts can be added and weights mean the same on every data set.
Parts over embeddings are lifts: what every training report shares is taken off,
since looking typical is not being right. A part that a case does not have (no
prior, one draft) is left out with its share of the lift.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tabon.bank import TransitionBank
from tabon.reports import SECTIONS, Section
from tabon.selectors.batch import Batch
from tabon.selectors.consensus import Consensus
from tabon.selectors.nearest_prior import NearestPrior
from tabon.selectors.next_visit import NextVisit
from tabon.selectors.protocol import Distances, Scorer, Scores
from tabon.selectors.similarity import TextDistance, load_distance
from tabon.selectors.typical import Typical, spread
from tabon.selectors.weights import FittedWeights, read_weights

WORDS, MEANING = "rouge-l-f", "chamfer"
LIFT = f"typical:{MEANING}"
Weights = Mapping[Section, Mapping[str, float]]

# Chosen on development data alone (docs/decisions/fused.md); per spread, the same for both sections
TRAINING_FREE: Mapping[str, float] = MappingProxyType(
    {
        f"consensus:{WORDS}": 1.0,
        f"next-visit:{WORDS}": 0.6,
        f"consensus:{MEANING}": 0.3,
        f"nearest-prior:{MEANING}": 0.3,
        f"next-visit:{MEANING}": 0.3,
    }
)
PARTS = (*TRAINING_FREE, LIFT)


@dataclass(frozen=True)
class Fused:
    """A weighted sum of calibrated parts; made by `load`."""

    bank: TransitionBank
    weights: Weights
    fitted: FittedWeights | None = None  # where the weights come from; None: training-free

    needs_prior = False

    @property
    def name(self) -> str:
        """Return the selector."""
        return "fused"

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the weights, and how the parts are measured."""
        metric = self._distances[WORDS].settings["metric"]
        return {"weights": self.fitted.named if self.fitted else "training-free", "metric": metric}

    @property
    def trained_on(self) -> frozenset[str]:
        """Return whom the weights were fitted on."""
        return frozenset(self.fitted.trained_on if self.fitted else ())

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's distance and what each part adds to it."""
        measured = self.measured(batch, section)
        weights = self.weights[section]
        there = {name: ~np.isnan(values) for name, values in measured.items()}
        added = {
            name: np.where(there[name], weights[name] * np.nan_to_num(values), 0.0)
            for name, values in measured.items()
        }
        added[LIFT] = self._lifted(measured[LIFT], weights, there)
        distances: Distances = np.sum(list(added.values()), axis=0)
        distances[~batch.has_draft(section)] = np.nan
        return Scores(distances, added)

    def measured(self, batch: Batch, section: Section) -> dict[str, Distances]:
        """Return every part in units of its spread; NaN where a case does not have it."""
        return {
            name: scorer.score(batch, section).distances / self._spreads[section][name.partition(":")[2]]
            for name, scorer in self._scorers.items()
        }

    def _lifted(
        self, typical: Distances, weights: Mapping[str, float], there: Mapping[str, Distances]
    ) -> Distances:
        """Take off what is typical, for the embedding parts that are there."""
        sizes = {name: abs(weights[name]) for name in weights if name.endswith(MEANING) and name != LIFT}
        whole = sum(sizes.values())
        present = np.sum([size * there[name] for name, size in sizes.items()], axis=0)
        share = present / whole if whole else np.zeros(len(typical))
        lifted: Distances = np.nan_to_num(weights[LIFT] * share * typical)
        return lifted

    @cached_property
    def _distances(self) -> dict[str, TextDistance]:
        """Return the two ways of comparing texts."""
        return {name: load_distance(name) for name in (WORDS, MEANING)}

    @cached_property
    def _scorers(self) -> dict[str, Scorer]:
        """Return the parts."""
        words, meaning = self._distances[WORDS], self._distances[MEANING]
        return {
            f"consensus:{WORDS}": Consensus(words),
            f"next-visit:{WORDS}": NextVisit(self.bank, words),
            f"consensus:{MEANING}": Consensus(meaning),
            f"nearest-prior:{MEANING}": NearestPrior(meaning),
            f"next-visit:{MEANING}": NextVisit(self.bank, meaning),
            LIFT: Typical(self.bank),
        }

    @cached_property
    def _spreads(self) -> dict[Section, dict[str, float]]:
        """Return the spread of each way of comparing, by section."""
        return {
            section: {
                name: spread(self.bank, distance, section) for name, distance in self._distances.items()
            }
            for section in SECTIONS
        }


def training_free() -> Weights:
    """Return the weights that need no training: the lift is the sum of the embedding parts, taken off."""
    lift = sum(weight for name, weight in TRAINING_FREE.items() if name.endswith(MEANING))
    weights = {**TRAINING_FREE, LIFT: -lift}
    return dict.fromkeys(SECTIONS, weights)


def load(bank: TransitionBank, variant: str) -> Fused:
    """Return the training-free selector, or one with the weights of a file that `tabon fit` wrote."""
    if not variant:
        return Fused(bank, training_free())
    fitted = read_weights(Path(variant), selector="fused", names=PARTS, bank=bank.sha256)
    return Fused(bank, fitted.weights, fitted)
