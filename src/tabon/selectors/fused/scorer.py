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
from tabon.selectors.fused.trust import (
    CONSENSUS,
    EVERY,
    LABELS_DRAFTS,
    LABELS_PRIOR,
    NEXT,
    PARTS,
    PRIOR_MEANING,
    PRIOR_WORDS,
    WORDS_DRAFTS,
    WORDS_PRIOR,
    Trust,
    number_of_drafts,
    trust,
)
from tabon.selectors.fused.typical import Typical, prior_strength, random_pairs, spread
from tabon.selectors.scorer import Batch, Distances, Scores
from tabon.selectors.similarity import TextDistance, load_distance
from tabon.selectors.text_scorers import NearestPrior, NextVisit
from tabon.selectors.weights import FittedWeights, read_weights
from tabon.text.observations import LABELLER
from tabon.text.reports import SECTIONS, Section

WORDS, MEANING = "rouge-l-f", "chamfer"
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
        named = self.fitted.named if self.fitted else "training-free-5"
        metric = self._distances[WORDS].settings["metric"]
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
            drafts[section] = pools(batch, section, self._distances[WORDS])
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
        words, meaning = (NearestPrior(self._distances[name]) for name in (WORDS, MEANING))
        size, (labels, vocabulary) = self._spreads[section], self._expected
        agreed = np.full(len(batch.drafts), np.nan)
        for pool in drafts:
            agreed[pool.rows] = pool.to_others()
        lift = meaning.score(batch, section).distances - self._typical.score(batch, section).distances
        labels_prior, labels_drafts = labels.distances(batch, section)
        words_prior, words_drafts = vocabulary.distances(batch, section)
        return {
            CONSENSUS: agreed / size[WORDS],
            NEXT: self._next.score(batch, section).distances / size[WORDS],
            PRIOR_WORDS: words.score(batch, section).distances / size[WORDS],
            PRIOR_MEANING: lift / size[MEANING],  # less its likeness to all reports
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
        return trust(self._signs(drafts, own), there, self.strengths) if there else ()

    def _signs(
        self, drafts: Mapping[Section, Pool], own: Mapping[Section, Mapping[str, Distances]]
    ) -> dict[str, float]:
        """Return the signs that a query has: `trust.SIGNS` says what they are."""
        far = {section: self._far[section] / self._spreads[section][WORDS] for section in SECTIONS}
        several = [section for section, pool in drafts.items() if len(pool.rows) > 1]
        asked = [section for section in SECTIONS if known(own[section][PRIOR_WORDS])]
        looked_up = [section for section in asked if known(own[section][NEXT])]
        found: dict[str, float | None] = {
            "groups": groups(drafts.values()),
            "votes-next": alongside([(own[each][CONSENSUS], own[each][NEXT]) for each in looked_up]),
            "votes-prior": alongside([(own[each][CONSENSUS], own[each][PRIOR_WORDS]) for each in asked]),
            "drafts": number_of_drafts(max(len(pool.rows) for pool in drafts.values())),
        }
        if several:
            found["nearer"] = mean([far[each] - mean(own[each][CONSENSUS]) for each in several])
        if asked:
            copied = (np.maximum(1.0 - own[each][PRIOR_WORDS] / far[each], 0.0) for each in asked)
            found["copied"] = mean([mean(each) for each in copied])
        if looked_up:
            found["retold"] = mean(
                [mean(own[each][NEXT]) - mean(own[each][PRIOR_WORDS]) for each in looked_up]
            )
        return {name: value for name, value in found.items() if value is not None}

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
        """Return the observations and the words that a report like this should hold, for one draft."""
        labels, words = self._expected
        return labels.expected(batch, section, row), words.expected(batch, section, row)

    @cached_property
    def _typical(self) -> Typical:
        """Return what keeps a sample of training reports at hand."""
        return Typical(self.bank)

    @cached_property
    def _expected(self) -> tuple[ExpectedLabels, ExpectedWords]:
        """Return what keeps the bank's habits at hand."""
        return ExpectedLabels(self.bank), ExpectedWords(self.bank)

    @cached_property
    def _last(self) -> list[tuple[ref[Batch], Evidence]]:
        """Return where the evidence of the last batch is: both sections ask for it."""
        return []

    @cached_property
    def strengths(self) -> dict[Section, float]:
        """Return by how many spreads a patient's consecutive reports are nearer than any two reports."""
        words, sizes = self._distances[WORDS], self._spreads
        return {each: prior_strength(self.bank, words, each) / sizes[each][WORDS] for each in SECTIONS}

    @cached_property
    def _far(self) -> dict[Section, float]:
        """Return how far two training reports are from each other; 1 where there are no two."""
        words = self._distances[WORDS]
        found = {section: random_pairs(self.bank, words, section) for section in SECTIONS}
        return {section: float(each.mean()) if each.any() else 1.0 for section, each in found.items()}

    @cached_property
    def _spreads(self) -> dict[Section, dict[str, float]]:
        """Return the spread of each way of comparing, by section."""
        ways = self._distances.items()
        return {
            section: {name: spread(self.bank, each, section) for name, each in ways} for section in SECTIONS
        }


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
