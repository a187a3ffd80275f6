"""The strongest: agreement with the drafts, the prior, what came next elsewhere, and what is expected.

Every part is a distance in units of its spread over random pairs of training
reports, so that parts can be added and weights mean the same on every data set.
How much the prior's wording weighs is read off the bank: by how much a patient's
consecutive reports are alike, beyond any two reports. Where the drafts are near
to the prior already, they have told what it says, and it counts less. A part
that a case does not have (no prior) is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tabon.method.bank import TransitionBank
from tabon.method.sentence_sets import Ids
from tabon.selectors.consensus import Consensus
from tabon.selectors.fused.expected_labels import SCOPES, ExpectedLabels
from tabon.selectors.fused.expected_words import NAME as EXPECTED_WORDS
from tabon.selectors.fused.expected_words import ExpectedWords
from tabon.selectors.fused.typical import Typical, prior_strength, spread
from tabon.selectors.nearest_prior import NearestPrior
from tabon.selectors.next_visit import NextVisit
from tabon.selectors.prepared import Batch
from tabon.selectors.scorer import Distances, Scores
from tabon.selectors.similarity import TextDistance, load_distance
from tabon.selectors.weights import FittedWeights, read_weights
from tabon.text.observations import LABELLER
from tabon.text.reports import SECTIONS, Section

WORDS, MEANING = "rouge-l-f", "chamfer"
AGREED, NEXT = f"consensus:{WORDS}", f"next-visit:{WORDS}"
PRIOR = PRIOR_WORDS, PRIOR_MEANING = f"nearest-prior:{WORDS}", f"nearest-prior:{MEANING}"
REPORT, SECTION = (f"expected-labels:{scope}" for scope in SCOPES)
PARTS = (AGREED, NEXT, *PRIOR, REPORT, SECTION, EXPECTED_WORDS)
DOUBT = (REPORT, SECTION)  # parts whose level tells how sure one may be, not only which draft is nearer
Weights = Mapping[Section, Mapping[str, float]]

# Chosen on development data alone: docs/decisions/fused.md
TRAINING_FREE: Mapping[str, float] = MappingProxyType(
    {
        AGREED: 0.25,
        NEXT: 1.1,
        PRIOR_WORDS: 0.6,
        PRIOR_MEANING: 0.7,
        REPORT: 2.0,
        SECTION: 2.0,
        EXPECTED_WORDS: 1.5,
    }
)  # the two of the prior: times its strength
SECTION_COUNTS: Mapping[Section, float] = MappingProxyType({"findings": 1.0, "impression": 3.0})
RETOLD = 0.7  # how much of the prior's say is gone where the drafts have told it already


@dataclass(frozen=True)
class Fused:
    """A weighted sum of calibrated parts; made by `load`."""

    bank: TransitionBank
    fitted: FittedWeights | None = None  # None: training-free

    name = "fused"
    needs_prior = False
    uses_prior = True

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the weights, and how texts are compared."""
        named = self.fitted.named if self.fitted else "training-free-3"
        metric = self._distances[WORDS].settings["metric"]
        return {"weights": named, "metric": metric, "labeller": LABELLER}

    @property
    def trained_on(self) -> frozenset[str]:
        """Return whom the weights were fitted on."""
        return frozenset(self.fitted.trained_on if self.fitted else ())

    @cached_property
    def weights(self) -> Weights:
        """Return what each part weighs in each section."""
        weights = {}
        for section in SECTIONS:
            fitted = self.fitted
            own = fitted.weights[section] if fitted else training_free(self.strength(section))
            weights[section] = {name: SECTION_COUNTS[section] * weight for name, weight in own.items()}
        return weights

    def strength(self, section: Section) -> float:
        """Return by how many spreads a patient's consecutive reports are nearer than any two reports."""
        words = self._distances[WORDS]
        return prior_strength(self.bank, words, section) / self._spreads[section][WORDS]

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's distance and what each part adds to it.

        The expected observations count as they are: how much is in doubt. The others count above the
        least of the query's drafts, since how far all drafts are says more of the case than of doubt.
        """
        weighed = {
            name: self.weights[section][name] * values
            for name, values in self.measured(batch, section).items()
        }
        added = {
            name: np.nan_to_num(values if name in DOUBT else above_least(values, batch.owner))
            for name, values in weighed.items()
        }
        distances: Distances = np.sum(list(added.values()), axis=0)
        distances[~batch.has_draft(section)] = np.nan
        return Scores(distances, added)

    def measured(self, batch: Batch, section: Section) -> dict[str, Distances]:
        """Return every part in units of its spread; NaN where a case does not have it."""
        words, meaning = self._spreads[section][WORDS], self._spreads[section][MEANING]
        after = self._next.score(batch, section).distances / words
        prior = NearestPrior(self._distances[WORDS]).score(batch, section).distances / words
        meant = NearestPrior(self._distances[MEANING]).score(batch, section).distances
        lift = meant - self._typical.score(batch, section).distances  # less its likeness to all reports
        trust = prior_trust(after - prior, batch.owner, len(batch.queries))
        return {
            AGREED: Consensus(self._distances[WORDS]).score(batch, section).distances / words,
            NEXT: after,
            PRIOR_WORDS: trust[batch.owner] * prior,
            PRIOR_MEANING: trust[batch.owner] * lift / meaning,
            **{part.name: part.distances(batch, section, trust) for part in self._expected},
        }

    @cached_property
    def _distances(self) -> dict[str, TextDistance]:
        """Return the two ways of comparing texts."""
        return {name: load_distance(name) for name in (WORDS, MEANING)}

    @cached_property
    def _next(self) -> NextVisit:
        """Return what keeps the bank's priors at hand."""
        return NextVisit(self.bank, self._distances[WORDS])

    @cached_property
    def _typical(self) -> Typical:
        """Return what keeps a sample of training reports at hand."""
        return Typical(self.bank)

    @cached_property
    def _expected(self) -> tuple[ExpectedLabels | ExpectedWords, ...]:
        """Return what keeps the bank's habits at hand: observations of reports and sections, and words."""
        return (*(ExpectedLabels(self.bank, scope) for scope in SCOPES), ExpectedWords(self.bank))

    @cached_property
    def _spreads(self) -> dict[Section, dict[str, float]]:
        """Return the spread of each way of comparing, by section."""
        known = self._distances.items()
        return {
            section: {name: spread(self.bank, each, section) for name, each in known} for section in SECTIONS
        }


def training_free(strength: float) -> dict[str, float]:
    """Return the weights of a section that need no training, before sections are weighed.

    >>> round(training_free(0.5)["nearest-prior:chamfer"], 3)
    0.35
    """
    return {name: weight * (strength if name in PRIOR else 1.0) for name, weight in TRAINING_FREE.items()}


def above_least(values: Distances, owner: Ids) -> Distances:
    """Return by how much each draft is above the least of its query; NaN stays NaN.

    >>> above_least(np.array([3.0, 1.0, 7.0, np.nan]), np.array([0, 0, 1, 1])).tolist()
    [2.0, 0.0, 0.0, nan]
    """
    least = np.full(int(owner.max(initial=-1)) + 1, np.nan)
    np.fmin.at(least, owner, values)
    above: Distances = values - least[owner]
    return above


def prior_trust(nearer: Distances, owner: Ids, queries: int) -> Distances:
    """Return how much each query's prior still has to say, (queries,): 1 unless its drafts retell it.

    Args:
        nearer: by how many spreads each draft is nearer to the prior than to what came next for like priors.
        owner: the query of each draft.
        queries: how many there are.

    >>> prior_trust(np.array([2.0, 1.0, -1.0, np.nan]), np.array([0, 0, 1, 2]), 3).round(2).tolist()
    [0.3, 1.0, 1.0]
    """
    known = ~np.isnan(nearer)
    order = np.lexsort((nearer[known], owner[known]))  # the order of the drafts has no say in the sums
    owners, values = owner[known][order], nearer[known][order]
    sums = np.bincount(owners, weights=values, minlength=queries)
    means = sums / np.maximum(np.bincount(owners, minlength=queries), 1)
    trust: Distances = 1.0 - RETOLD * np.clip(means, 0.0, 1.0)
    return trust


def load(bank: TransitionBank, variant: str) -> Fused:
    """Return the training-free selector, or one with the weights of a file that `tabon fit` wrote."""
    if not variant:
        return Fused(bank)
    return Fused(bank, read_weights(Path(variant), selector="fused", names=PARTS, bank=bank.sha256))
