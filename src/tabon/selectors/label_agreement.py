"""Which observations the report should hold, and how far a draft is from them.

Three witnesses are heard for each of the 14 observations, as in naive Bayes: how
often training reports hold it, what the bank says comes after a prior that holds
it or does not, and how many drafts say it. A draft's distance is 1 - its expected
F1. The scope is the whole report, or one section of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from tabon.bank import TransitionBank
from tabon.observations import NO_FINDING, NOT_A_FINDING, OBSERVATIONS, label_text
from tabon.reports import SECTIONS, Section
from tabon.selectors.batch import Batch
from tabon.selectors.protocol import Distances
from tabon.selectors.typical import PAIRS, SEED, sample_rows
from tabon.sentence_sets import RaggedSets

LONGEST: Final = 1000  # characters of a sentence that is remembered
KEPT: Final = 1 << 16  # sentences whose labels are remembered: sections and parts ask for the same ones
TRANSITIONS: Final = 1024  # training transitions that stand for all
FOUND, IMAGINED = 0.7, 0.1  # how often a draft names what is there, and what is not
PRIOR_COUNTS: Final = 2.0  # what the prior says weighs this much against one draft's word
Scope = Literal["report", "section"]
SCOPES: tuple[Scope, ...] = ("report", "section")
Held = NDArray[np.bool_]  # (reports, 14)
Odds = NDArray[np.float64]  # log-odds, or probabilities, of the 14 observations

_SICK = np.array([name not in NOT_A_FINDING for name in OBSERVATIONS])
_NOTHING = OBSERVATIONS.index(NO_FINDING)


def held(reports: Iterable[Sequence[str]]) -> Held:
    """Return which observations each report holds, from its sentences, (reports, 14)."""
    rows = [_held(tuple(sentences)) for sentences in reports]
    return np.array(rows, dtype=bool).reshape(len(rows), len(OBSERVATIONS))


def _held(sentences: tuple[str, ...]) -> Held:
    """Return what one report holds: all that its sentences do, and "No Finding" where nothing is ill."""
    found: Held = np.zeros(len(OBSERVATIONS), dtype=bool)
    for sentence in sentences:
        found |= _in_sentence(sentence)
    found[_NOTHING] = bool(sentences) and not found[_SICK].any()
    return found


def _in_sentence(sentence: str) -> tuple[bool, ...]:
    """Return which observations one sentence holds."""
    return _looked_up(sentence) if len(sentence) <= LONGEST else label_text(sentence).held()


@lru_cache(maxsize=KEPT)
def _looked_up(sentence: str) -> tuple[bool, ...]:
    """Return the same, from memory where it was found before."""
    return label_text(sentence).held()


def label_distances(left: Held, right: Held) -> Distances:
    """1 - F1 of every pair, (left, right); 0 where both hold nothing.

    >>> label_distances(np.array([[True, True]]), np.array([[True, False], [False, False]])).round(3).tolist()
    [[0.333, 1.0]]
    """
    both = left.astype(np.float64) @ right.T.astype(np.float64)
    either = left.sum(axis=1)[:, None] + right.sum(axis=1)[None, :]
    return 1.0 - np.where(either > 0, 2.0 * both / np.maximum(either, 1), 1.0)


def expected_distances(drafts: Held, expected: Odds) -> Distances:
    """1 - the F1 of each draft that is to be expected under probabilities, (drafts,).

    >>> expected_distances(np.array([[True, False]]), np.array([[0.5, 0.5]])).tolist()
    [0.5]
    """
    total = drafts.sum(axis=1) + expected.sum(axis=1)
    agreed: Distances = 2.0 * (drafts * expected).sum(axis=1) / np.maximum(total, np.finfo(np.float64).tiny)
    return 1.0 - agreed


@dataclass(frozen=True, slots=True, eq=False)
class Habits:
    """Log-odds that a training report holds each observation: any report, and by what its prior held."""

    ever: Odds
    after: Odds  # the prior held it
    without: Odds  # the prior did not
    spread: float  # standard deviation of 1 - F1 over random pairs of training reports; 1 where none differ

    def expected(self, priors: Held, trust: Odds, said: Odds, drafts: Odds) -> Odds:
        """Return the probability of each observation for each query, (queries, 14).

        Args:
            priors: what each query's prior holds.
            trust: how much each query's prior counts, (queries,); 0 where there is none.
            said: how many drafts hold each observation, (queries, 14).
            drafts: how many drafts there are, (queries,).
        """
        told = np.where(priors, self.after, self.without) - self.ever
        for_it, against = np.log(FOUND / IMAGINED), np.log((1 - FOUND) / (1 - IMAGINED))
        witnessed = said * for_it + (drafts[:, None] - said) * against
        odds = self.ever + PRIOR_COUNTS * trust[:, None] * told + witnessed
        chances: Odds = 1.0 / (1.0 + np.exp(-odds))
        return chances


def habits(prior: Held, current: Held) -> Habits:
    """Count how often observations stay, come and are there at all; rare ones lean on the last."""
    ever = (current.sum(axis=0) + 1.0) / (len(current) + 2.0)
    after, without = (
        ((side & current).sum(axis=0) + 2.0 * ever) / (side.sum(axis=0) + 2.0) for side in (prior, ~prior)
    )
    return Habits(_log_odds(ever), _log_odds(after), _log_odds(without), _spread(current))


def _log_odds(chances: Odds) -> Odds:
    """Return ln p / (1 - p)."""
    odds: Odds = np.log(chances / (1.0 - chances))
    return odds


def _spread(reports: Held) -> float:
    """Return the standard deviation of the distance over random pairs; 1 where none differ."""
    rng, count = np.random.default_rng(SEED), len(reports)
    if count < 2:  # noqa: PLR2004  # no pair
        return 1.0
    left, right = (rng.integers(count, size=PAIRS) for _ in range(2))
    found = float(np.std(label_distances(reports, reports)[left, right][left != right]))
    return found if found > 0 else 1.0


@dataclass(frozen=True)
class ExpectedLabels:
    """How far each draft's observations are from those that are to be expected, in spreads."""

    bank: TransitionBank
    scope: Scope

    @property
    def name(self) -> str:
        """Return what the part is called."""
        return f"expected-labels:{self.scope}"

    def distances(self, batch: Batch, section: Section, trust: Odds) -> Distances:
        """Return each draft's distance; NaN where it lacks the section.

        Args:
            batch: the queries.
            section: whose drafts are looked at.
            trust: how much each query's prior counts, (queries,).
        """
        parts, found = self._parts(section), self._habits[section]
        drafts = held(sum((draft[part] for part in parts), ()) for draft in batch.drafts)
        priors = held(sum((prior[part] for part in parts), ()) for prior in batch.priors)
        there = batch.has_draft(section)
        said = np.zeros(priors.shape)
        np.add.at(said, batch.owner[there], drafts[there])
        counts = np.bincount(batch.owner[there], minlength=len(priors)).astype(np.float64)
        known = priors.any(axis=1)  # a report with a sentence holds something, if only "No Finding"
        chances = found.expected(priors, np.where(known, trust, 0.0), said, counts)
        distances = expected_distances(drafts, chances[batch.owner]) / found.spread
        return np.where(there, distances, np.nan)

    def _parts(self, section: Section) -> tuple[Section, ...]:
        """Return the sections that are read."""
        return SECTIONS if self.scope == "report" else (section,)

    @cached_property
    def _habits(self) -> dict[Section, Habits]:
        """Return what a sample of the bank's transitions tells, by section."""
        if self.scope == "report":
            whole = self._counted(SECTIONS)
            return dict.fromkeys(SECTIONS, whole)
        return {section: self._counted((section,)) for section in SECTIONS}

    def _counted(self, parts: tuple[Section, ...]) -> Habits:
        """Count over the transitions that have these sections, or one of them, on both sides."""
        pairs = [self.bank.pairs[part] for part in parts]
        rows = np.unique(np.concatenate([pair.present() for pair in pairs]))
        sample = sample_rows(rows, TRANSITIONS).tolist()
        prior = held(self._sentences([pair.prior for pair in pairs], row) for row in sample)
        return habits(prior, held(self._sentences([pair.current for pair in pairs], row) for row in sample))

    def _sentences(self, sets: Sequence[RaggedSets], row: int) -> list[str]:
        """Return the sentences of one training report."""
        return [self.bank.table.sentences[place] for part in sets for place in part[row]]
