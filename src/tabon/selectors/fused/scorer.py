"""The strongest: agreement of the drafts, the prior, what came next elsewhere, and what is expected.

Every part is a distance in units of its spread over random pairs of training
reports, so that parts can be added and weights mean the same on every data set.
How much each part counts is read off the query (`trust`). A part that a case
does not have (no prior) is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from weakref import ref

import numpy as np

from tabon.method.bank import TransitionBank
from tabon.method.selection import Neighbour
from tabon.method.sentence_sets import Ids
from tabon.selectors.fused.agreement import Pool, alongside, groups, mean, pools
from tabon.selectors.fused.expectation import Expectations
from tabon.selectors.fused.expected_labels import ExpectedLabels
from tabon.selectors.fused.expected_words import ExpectedWords
from tabon.selectors.fused.likely_next import LikelyNext
from tabon.selectors.fused.samples import Apart, apart
from tabon.selectors.fused.trust import (
    CONSENSUS,
    EVERY,
    LABELS_DRAFTS,
    LABELS_PRIOR,
    LIKELY_NEXT,
    NEAREST_DRAFTS,
    NEAREST_PRIOR,
    NEXT,
    PARTS,
    UNLIKE_DRAFTS,
    UNLIKE_PRIOR,
    WORDS_DRAFTS,
    WORDS_PRIOR,
    Trust,
    number_of_drafts,
    trust,
)
from tabon.selectors.scorer import Batch, Distances, Scores
from tabon.selectors.similarity import TextDistance, load_distance
from tabon.selectors.text_scorers import NearestPrior, NextVisit
from tabon.selectors.weights import FittedWeights, read_weights
from tabon.text.observations import LABELLER
from tabon.text.reports import SECTIONS, Section

WORDS = "rouge-l-f"
DOUBT = (LABELS_PRIOR, LABELS_DRAFTS)  # parts whose level tells how sure one may be


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What is known of a batch: every part in spreads, and how far each query's parts are trusted."""

    parts: Mapping[Section, Mapping[str, Distances]]  # NaN where a draft or a case has none
    trusts: tuple[tuple[Trust, ...], ...]  # of each query


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
        named = self.fitted.named if self.fitted else "training-free-6"
        metric = self._words.settings["metric"]
        return {"weights": named, "metric": metric, "labeller": LABELLER}

    @property
    def trained_on(self) -> frozenset[str]:
        """Return whom the weights were fitted on."""
        return frozenset(self.fitted.trained_on if self.fitted else ())

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's distance and what each part adds to it.

        The expected observations count as they are: how much is in doubt. The others count above the
        least of the query's drafts, since how far all drafts are says more of the case than of doubt.
        """
        times = self.fitted.weights[section] if self.fitted else dict.fromkeys(PARTS, 1.0)
        added = {
            name: np.nan_to_num(
                times[name] * values if name in DOUBT else above_least(times[name] * values, batch.owner)
            )
            for name, values in self.measured(batch, section).items()
        }
        distances: Distances = np.sum(list(added.values()), axis=0)
        distances[~batch.has_draft(section)] = np.nan
        return Scores(distances, added)

    def measured(self, batch: Batch, section: Section) -> dict[str, Distances]:
        """Return every part in spreads, times its trust; NaN where a case has none."""
        evidence = self.evidence(batch)
        weights = {name: np.zeros(len(batch.queries)) for name in PARTS}
        for query, trusts in enumerate(evidence.trusts):
            for each in trusts:
                if each.section == section:
                    weights[each.part][query] = each.weight
        return {name: weights[name][batch.owner] * values for name, values in evidence.parts[section].items()}

    def evidence(self, batch: Batch) -> Evidence:
        """Measure every part and weigh them; that of the last batch is remembered."""
        for known, found in self._last:
            if known() is batch:
                return found
        parts, drafts = {}, {}
        for section in SECTIONS:
            drafts[section] = pools(batch, section, self._words)
            parts[section] = self._parts(batch, section, drafts[section])
        found = Evidence(
            parts,
            tuple(
                self._trust({section: drafts[section][query] for section in SECTIONS}, parts)
                for query in range(len(batch.queries))
            ),
        )
        self._last[:] = [(ref(batch), found)]
        return found

    def _parts(self, batch: Batch, section: Section, drafts: list[Pool]) -> dict[str, Distances]:
        """Measure every part of one section in units of its spread."""
        labels, vocabulary = self._expected
        agreed, fellows = np.full((2, len(batch.drafts)), np.nan)
        for pool in drafts:
            agreed[pool.rows], fellows[pool.rows] = pool.to_others(), pool.to_fellows()
        after, prior = (each.score(batch, section).distances for each in (self._next, self._prior))
        agreed, fellows, after, prior = np.array([agreed, fellows, after, prior]) / self._apart[section].std
        labels_prior, labels_drafts = labels.distances(batch, section)
        words_prior, words_drafts = vocabulary.distances(batch, section)
        return {
            CONSENSUS: agreed,
            UNLIKE_DRAFTS: -agreed,
            NEAREST_DRAFTS: fellows,
            NEXT: after,
            LIKELY_NEXT: self._likely_next.distances(batch, section),
            NEAREST_PRIOR: prior,
            UNLIKE_PRIOR: -prior,
            LABELS_PRIOR: labels_prior,
            LABELS_DRAFTS: labels_drafts,
            WORDS_PRIOR: words_prior,
            WORDS_DRAFTS: words_drafts,
        }

    def _trust(
        self, drafts: Mapping[Section, Pool], parts: Mapping[Section, Mapping[str, Distances]]
    ) -> tuple[Trust, ...]:
        """Read the signs off one query, and weigh the parts that it has."""
        own = {
            section: {name: parts[section][name][pool.rows] for name in PARTS}
            for section, pool in drafts.items()
        }
        there = [(section, name) for section, name in EVERY if (~np.isnan(own[section][name])).any()]
        return trust(self._signs(drafts, own), there) if there else ()

    def _signs(
        self, drafts: Mapping[Section, Pool], own: Mapping[Section, Mapping[str, Distances]]
    ) -> dict[str, float]:
        """Return the signs that a query has: `trust.SIGNS` says what they are."""
        far = {section: each.mean / each.std for section, each in self._apart.items()}
        several = [section for section, pool in drafts.items() if len(pool.rows) > 1]
        asked = [section for section in SECTIONS if known(own[section][NEAREST_PRIOR])]
        looked_up = [section for section in asked if known(own[section][NEXT])]
        found: dict[str, float | None] = {
            "groups": groups(drafts.values()),
            "votes-next": alongside([(own[each][CONSENSUS], own[each][NEXT]) for each in looked_up]),
            "votes-prior": alongside([(own[each][CONSENSUS], own[each][NEAREST_PRIOR]) for each in asked]),
            "drafts": number_of_drafts(max(len(pool.rows) for pool in drafts.values())),
        }
        if several:
            found["nearer"] = mean([far[each] - mean(own[each][CONSENSUS]) for each in several])
        if asked:
            copied = (np.maximum(1.0 - own[each][NEAREST_PRIOR] / far[each], 0.0) for each in asked)
            found["copied"] = mean([mean(each) for each in copied])
        if looked_up:
            found["retold"] = mean(
                [mean(own[each][NEXT]) - mean(own[each][NEAREST_PRIOR]) for each in looked_up]
            )
        return {name: value for name, value in found.items() if value is not None}

    @cached_property
    def _words(self) -> TextDistance:
        """Return how texts are compared."""
        return load_distance(WORDS)

    @cached_property
    def _next(self) -> NextVisit:
        """Return what keeps the bank's priors at hand."""
        return NextVisit(self.bank, self._words)

    def next_visits(self, batch: Batch, section: Section) -> tuple[tuple[Neighbour, ...], ...]:
        """Return what came next for similar priors, for each draft: nearest to the draft first."""
        return self._next.score(batch, section).nearest

    def expected(self, batch: Batch, section: Section, row: int) -> tuple[Expectations, Expectations]:
        """Return the observations and the words that a report like this should hold, for one draft."""
        labels, words = self._expected
        return labels.expected(batch, section, row), words.expected(batch, section, row)

    @cached_property
    def _prior(self) -> NearestPrior:
        """Return what compares drafts with their prior."""
        return NearestPrior(self._words)

    @cached_property
    def _likely_next(self) -> LikelyNext:
        """Return what keeps how consecutive reports of the bank go together."""
        return LikelyNext(self.bank)

    @cached_property
    def _expected(self) -> tuple[ExpectedLabels, ExpectedWords]:
        """Return what keeps the bank's habits at hand."""
        return ExpectedLabels(self.bank), ExpectedWords(self.bank)

    @cached_property
    def _last(self) -> list[tuple[ref[Batch], Evidence]]:
        """Return where the evidence of the last batch is: both sections ask for it."""
        return []

    @cached_property
    def _apart(self) -> dict[Section, Apart]:
        """Return how far any two training reports are from each other, by section."""
        return {section: apart(self.bank, self._words, section) for section in SECTIONS}


def known(values: Distances) -> bool:
    """Say whether there are values and none is missing."""
    return bool(len(values)) and not np.isnan(values).any()


def above_least(values: Distances, owner: Ids) -> Distances:
    """Return by how much each draft is above the least of its query; NaN stays NaN.

    >>> above_least(np.array([3.0, 1.0, 7.0, np.nan]), np.array([0, 0, 1, 1])).tolist()
    [2.0, 0.0, 0.0, nan]
    """
    least = np.full(int(owner.max(initial=-1)) + 1, np.nan)
    np.fmin.at(least, owner, values)
    above: Distances = values - least[owner]
    return above


def load(bank: TransitionBank, variant: str) -> Fused:
    """Return the training-free selector, or one with the weights of a file that `tabon fit` wrote."""
    if not variant:
        return Fused(bank)
    return Fused(bank, read_weights(Path(variant), selector="fused", names=PARTS, bank=bank.sha256))
