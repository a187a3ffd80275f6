"""The strongest: agreement with the other drafts, with the prior, and with what came next elsewhere.

Every part is a distance in units of its spread over random pairs of training
reports, so that parts can be added and weights mean the same on every data set.
How much the prior weighs is read off the bank: by how much a patient's
consecutive reports are alike, beyond any two reports. Parts over embeddings and
over observations are lifts: what every training report shares is taken off,
since looking typical is not being right. A part that a case does not have (no
prior) is left out with its share of the lift.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tabon.bank import TransitionBank
from tabon.reports import SECTIONS, Section
from tabon.selectors.batch import Batch
from tabon.selectors.consensus import Consensus
from tabon.selectors.label_agreement import LabelPrior, LabelTypical
from tabon.selectors.nearest_prior import NearestPrior
from tabon.selectors.next_visit import NextVisit
from tabon.selectors.protocol import Distances, Scorer, Scores
from tabon.selectors.similarity import TextDistance, load_distance
from tabon.selectors.typical import Typical, prior_strength, spread
from tabon.selectors.weights import FittedWeights, read_weights

WORDS, MEANING, LABELS = "rouge-l-f", "chamfer", "labels"
LIFTS = {measure: f"typical:{measure}" for measure in (MEANING, LABELS)}
Weights = Mapping[Section, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Term:
    """One part's weight in the training-free rule, per spread; some are times the prior's strength."""

    part: str
    weight: float
    by_prior: bool = False


# Chosen on development data alone: docs/decisions/fused.md
TERMS = (
    Term(f"consensus:{WORDS}", 0.75),
    Term(f"next-visit:{WORDS}", 0.8),
    Term(f"nearest-prior:{WORDS}", 0.1, by_prior=True),
    Term(f"consensus:{MEANING}", 0.2),
    Term(f"next-visit:{MEANING}", 0.3),
    Term(f"nearest-prior:{MEANING}", 0.25, by_prior=True),
    Term(f"nearest-prior:{LABELS}", 0.85, by_prior=True),
)
PARTS = (*(term.part for term in TERMS), *LIFTS.values())


@dataclass(frozen=True)
class Fused:
    """A weighted sum of calibrated parts; made by `load`."""

    bank: TransitionBank
    fitted: FittedWeights | None = None  # None: training-free

    needs_prior = False

    @property
    def name(self) -> str:
        """Return the selector."""
        return "fused"

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the weights, and how texts are compared."""
        named = self.fitted.named if self.fitted else "training-free-1"
        return {"weights": named, "metric": self._distances[WORDS].settings["metric"]}

    @property
    def trained_on(self) -> frozenset[str]:
        """Return whom the weights were fitted on."""
        return frozenset(self.fitted.trained_on if self.fitted else ())

    @cached_property
    def weights(self) -> Weights:
        """Return what each part weighs in each section."""
        if self.fitted is not None:
            return self.fitted.weights
        return {section: training_free(self.strength(section)) for section in SECTIONS}

    def strength(self, section: Section) -> float:
        """Return by how many spreads a patient's consecutive reports are nearer than any two reports."""
        words = self._distances[WORDS]
        return prior_strength(self.bank, words, section) / self._spreads[section][WORDS]

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's distance and what each part adds to it."""
        measured, weights = self.measured(batch, section), self.weights[section]
        added = {name: np.nan_to_num(weights[name] * values) for name, values in measured.items()}
        for measure, lift in LIFTS.items():
            added[lift] = added[lift] * _present(measure, weights, measured)
        distances: Distances = np.sum(list(added.values()), axis=0)
        distances[~batch.has_draft(section)] = np.nan
        return Scores(distances, added)

    def measured(self, batch: Batch, section: Section) -> dict[str, Distances]:
        """Return every part in units of its spread; NaN where a case does not have it."""
        return {
            name: scorer.score(batch, section).distances / self._spreads[section][name.partition(":")[2]]
            for name, scorer in self._scorers.items()
        }

    @cached_property
    def _distances(self) -> dict[str, TextDistance]:
        """Return the two ways of comparing texts."""
        return {name: load_distance(name) for name in (WORDS, MEANING)}

    @cached_property
    def _scorers(self) -> dict[str, Scorer]:
        """Return the parts by name, in the order of PARTS."""
        words, meaning = self._distances[WORDS], self._distances[MEANING]
        scorers: list[Scorer] = [
            Consensus(words),
            NextVisit(self.bank, words),
            NearestPrior(words),
            Consensus(meaning),
            NextVisit(self.bank, meaning),
            NearestPrior(meaning),
            LabelPrior(),
            Typical(self.bank),
            LabelTypical(self.bank),
        ]
        return {scorer.name: scorer for scorer in scorers}

    @cached_property
    def _spreads(self) -> dict[Section, dict[str, float]]:
        """Return the spread of each way of comparing, by section."""
        labels, known = LabelTypical(self.bank).spread(), self._distances.items()
        return {
            section: {LABELS: labels, **{name: spread(self.bank, each, section) for name, each in known}}
            for section in SECTIONS
        }


def training_free(strength: float) -> dict[str, float]:
    """Return the weights that need no training: a lift takes off what its measure's parts put on.

    >>> round(training_free(0.4)["typical:chamfer"], 3)
    -0.6
    """
    weights = {term.part: term.weight * (strength if term.by_prior else 1.0) for term in TERMS}
    lifts = {
        lift: -sum(weight for part, weight in weights.items() if part.endswith(f":{measure}"))
        for measure, lift in LIFTS.items()
    }
    return {**weights, **lifts}


def _present(measure: str, weights: Mapping[str, float], measured: Mapping[str, Distances]) -> Distances:
    """Return the share of a measure's parts that each draft has, by weight: so much of the lift counts."""
    parts = [name for name in measured if name.endswith(f":{measure}") and name != LIFTS[measure]]
    sizes = np.array([abs(weights[name]) for name in parts])
    there = np.array([~np.isnan(measured[name]) for name in parts])
    total = float(sizes.sum())
    share: Distances = (sizes @ there) / total if total > 0 else np.zeros(there.shape[1])
    return share


def load(bank: TransitionBank, variant: str) -> Fused:
    """Return the training-free selector, or one with the weights of a file that `tabon fit` wrote."""
    if not variant:
        return Fused(bank)
    return Fused(bank, read_weights(Path(variant), selector="fused", names=PARTS, bank=bank.sha256))
