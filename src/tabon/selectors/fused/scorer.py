"""The strongest: agreement of the drafts, the prior, what came next elsewhere, and what is expected.

Every part is a distance in units of its spread over random pairs of training
reports, so that parts can be added and weights mean the same on every data set.
How much each counts is read off the bank and the query: how alike a patient's
consecutive reports are, how far the drafts may be trusted where they agree, and
how much of the prior they have told already. A part that a case does not have
(no prior) is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from pathlib import Path
from types import MappingProxyType
from weakref import ref

import numpy as np

from tabon.method.bank import TransitionBank
from tabon.method.selection import Neighbour
from tabon.method.sentence_sets import Ids
from tabon.selectors.fused.agreement import Pool, alongside, groups, pools, vote_strength, vote_trust
from tabon.selectors.fused.expectation import Expectations
from tabon.selectors.fused.expected_labels import NAME as EXPECTED_LABELS
from tabon.selectors.fused.expected_labels import ExpectedLabels
from tabon.selectors.fused.expected_words import NAME as EXPECTED_WORDS
from tabon.selectors.fused.expected_words import ExpectedWords
from tabon.selectors.fused.typical import Typical, prior_strength, random_pairs, spread
from tabon.selectors.scorer import Batch, Distances, Scores
from tabon.selectors.similarity import TextDistance, load_distance
from tabon.selectors.text_scorers import NearestPrior, NextVisit
from tabon.selectors.weights import FittedWeights, read_weights
from tabon.text.observations import LABELLER
from tabon.text.reports import SECTIONS, Section

WORDS, MEANING = "rouge-l-f", "chamfer"
AGREED, NEXT = f"consensus:{WORDS}", f"next-visit:{WORDS}"
PRIOR = f"nearest-prior:{MEANING}"
PARTS = (AGREED, NEXT, PRIOR, EXPECTED_LABELS, EXPECTED_WORDS)
DOUBT = EXPECTED_LABELS  # the part whose level tells how sure one may be, not only which draft is nearer
Weights = Mapping[Section, Mapping[str, float]]

# Chosen on development data alone: docs/decisions/fused.md
TRAINING_FREE: Mapping[str, float] = MappingProxyType(
    {AGREED: 1.1, NEXT: 2.1, PRIOR: 3.5, EXPECTED_LABELS: 8.0, EXPECTED_WORDS: 1.7}
)  # the prior's: times its strength
SECTION_COUNTS: Mapping[Section, float] = MappingProxyType({"findings": 1.0, "impression": 2.5})
RETOLD = 0.9  # how much less everything counts where the drafts retell the prior,
NEWS = 1.5  # and how much more what came next elsewhere


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What is known of one section of a batch before it is weighed; distances in spreads."""

    pools: list[Pool]
    far: float  # two training reports from each other
    agreed: Distances  # to the other drafts, had they not both copied the prior
    after: Distances  # to what came next for similar priors; NaN without a prior
    retold: Distances  # of each query: how far its drafts retell the prior, from 0 to 1


@dataclass(frozen=True)
class Fused:
    """A weighted sum of calibrated parts; made by `load`."""

    bank: TransitionBank
    fitted: FittedWeights | None = None  # None: training-free

    name = "fused"
    needs_prior = False
    uses_prior = True
    parts_add_up = True

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the weights, and how texts are compared."""
        named = self.fitted.named if self.fitted else "training-free-4"
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
            name: np.nan_to_num(values if name == DOUBT else above_least(values, batch.owner))
            for name, values in weighed.items()
        }
        distances: Distances = np.sum(list(added.values()), axis=0)
        distances[~batch.has_draft(section)] = np.nan
        return Scores(distances, added)

    def measured(self, batch: Batch, section: Section) -> dict[str, Distances]:
        """Return every part in units of its spread, as far as it counts; NaN where a case has none."""
        evidence = self._evidence(batch)
        votes = np.array([self._votes(evidence, query) for query in range(len(batch.queries))]).reshape(-1, 2)
        own, owner, (trust, strength) = evidence[section], batch.owner, votes.T
        fresh, (labels, words) = 1.0 - RETOLD * own.retold, self._expected
        counted = (trust * strength * fresh)[owner]
        meant = NearestPrior(self._distances[MEANING]).score(batch, section).distances
        lift = meant - self._typical.score(batch, section).distances  # less its likeness to all reports
        return {
            AGREED: counted * own.agreed,
            NEXT: (1.0 + NEWS * own.retold)[owner] * own.after,
            PRIOR: fresh[owner] * lift / self._spreads[section][MEANING],
            EXPECTED_LABELS: fresh[owner] * labels.distances(batch, section, fresh, trust),
            EXPECTED_WORDS: counted * words.distances(batch, section, fresh),
        }

    def _votes(self, evidence: Mapping[Section, Evidence], query: int) -> tuple[float, float]:
        """Return how far a query's drafts may be trusted where they agree, and how much that counts."""
        both = [(part, part.pools[query]) for part in evidence.values()]
        ranked = [(part.agreed[pool.rows], part.after[pool.rows]) for part, pool in both]
        alike = alongside([pair for pair in ranked if not np.isnan(pair[1]).any()])
        nearer = [
            part.far - fsum(part.agreed[pool.rows]) / len(pool.rows)
            for part, pool in both
            if len(pool.rows) > 1
        ]
        return vote_trust(groups(pool for _, pool in both), alike), vote_strength(nearer)

    def _evidence(self, batch: Batch) -> Mapping[Section, Evidence]:
        """Return what is known of both sections; that of the last batch is remembered."""
        for known, found in self._last:
            if known() is batch:
                return found
        found = {section: self._section_evidence(batch, section) for section in SECTIONS}
        self._last[:] = [(ref(batch), found)]
        return found

    def _section_evidence(self, batch: Batch, section: Section) -> Evidence:
        """Compare the drafts with each other, the prior and what came next elsewhere."""
        words, size, far = self._distances[WORDS], self._spreads[section][WORDS], self._far[section]
        after = self._next.score(batch, section).distances / size
        prior = NearestPrior(words).score(batch, section).distances
        copied = np.maximum(1.0 - np.nan_to_num(prior, nan=far) / far, 0.0)
        found, agreed = pools(batch, section, words), np.full(len(batch.drafts), np.nan)
        for pool in found:
            agreed[pool.rows] = pool.to_others(copied[pool.rows], far) / size
        told = retold(after - prior / size, batch.owner, len(batch.queries))
        return Evidence(found, far / size, agreed, after, told)

    @cached_property
    def _distances(self) -> dict[str, TextDistance]:
        """Return the two ways of comparing texts."""
        return {name: load_distance(name) for name in (WORDS, MEANING)}

    @cached_property
    def _next(self) -> NextVisit:
        """Return what keeps the bank's priors at hand."""
        return NextVisit(self.bank, self._distances[WORDS])

    def next_visits(self, batch: Batch, section: Section) -> tuple[tuple[Neighbour, ...], ...]:
        """Return what came next for similar priors, for each draft: nearest to the draft first."""
        return self._next.score(batch, section).nearest

    def expected(self, batch: Batch, section: Section, row: int) -> tuple[Expectations, Expectations]:
        """Return the observations and the words that count for one draft, as they are weighed."""
        query, evidence = int(batch.owner[row]), self._evidence(batch)
        fresh, (labels, words) = 1.0 - RETOLD * float(evidence[section].retold[query]), self._expected
        trust, _ = self._votes(evidence, query)
        return labels.expected(batch, section, row, fresh, trust), words.expected(batch, section, row, fresh)

    @cached_property
    def _typical(self) -> Typical:
        """Return what keeps a sample of training reports at hand."""
        return Typical(self.bank)

    @cached_property
    def _expected(self) -> tuple[ExpectedLabels, ExpectedWords]:
        """Return what keeps the bank's habits at hand."""
        return ExpectedLabels(self.bank), ExpectedWords(self.bank)

    @cached_property
    def _last(self) -> list[tuple[ref[Batch], Mapping[Section, Evidence]]]:
        """Return where the evidence of the last batch is: both sections ask for it."""
        return []

    @cached_property
    def _far(self) -> dict[Section, float]:
        """Return how far two training reports are from each other; 1 where there are no two."""
        words = self._distances[WORDS]
        found = {section: random_pairs(self.bank, words, section) for section in SECTIONS}
        return {section: float(each.mean()) if each.any() else 1.0 for section, each in found.items()}

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
    1.75
    """
    return {name: weight * (strength if name == PRIOR else 1.0) for name, weight in TRAINING_FREE.items()}


def above_least(values: Distances, owner: Ids) -> Distances:
    """Return by how much each draft is above the least of its query; NaN stays NaN.

    >>> above_least(np.array([3.0, 1.0, 7.0, np.nan]), np.array([0, 0, 1, 1])).tolist()
    [2.0, 0.0, 0.0, nan]
    """
    least = np.full(int(owner.max(initial=-1)) + 1, np.nan)
    np.fmin.at(least, owner, values)
    above: Distances = values - least[owner]
    return above


def retold(nearer: Distances, owner: Ids, queries: int) -> Distances:
    """Return how far each query's drafts retell its prior, from 0 to 1, (queries,).

    Args:
        nearer: by how many spreads each draft is nearer to the prior than to what came next for like priors.
        owner: the query of each draft.
        queries: how many there are.

    >>> retold(np.array([2.0, -1.0, -1.0, np.nan]), np.array([0, 0, 1, 2]), 3).round(2).tolist()
    [0.5, 0.0, 0.0]
    """
    known = ~np.isnan(nearer)
    order = np.lexsort((nearer[known], owner[known]))  # the order of the drafts has no say in the sums
    owners, values = owner[known][order], nearer[known][order]
    sums = np.bincount(owners, weights=values, minlength=queries)
    means: Distances = sums / np.maximum(np.bincount(owners, minlength=queries), 1)
    return np.clip(means, 0.0, 1.0)


def load(bank: TransitionBank, variant: str) -> Fused:
    """Return the training-free selector, or one with the weights of a file that `tabon fit` wrote."""
    if not variant:
        return Fused(bank)
    return Fused(bank, read_weights(Path(variant), selector="fused", names=PARTS, bank=bank.sha256))
