"""What the report should hold, as naive Bayes has it, and how far a draft is from that.

Things (observations, words) are in a report or not. Three witnesses are heard for
each: how often training reports hold it, what the bank says comes after a prior
that holds it or does not, and how many drafts say it. A draft's distance is 1 -
the F1 that is to be expected of it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tabon.selectors.fused.samples import random_pairs, spread_of
from tabon.selectors.scorer import Batch, Distances
from tabon.text.reports import Section

LONGEST: Final = 1000  # characters of a sentence that is remembered
KEPT: Final = 1 << 16  # sentences that are remembered: sections and parts ask for the same ones
LEAN: Final = 2.0  # what was seen in few priors leans this much on what is seen at all
Held = NDArray[np.bool_]  # (reports, things)
Odds = NDArray[np.float64]  # log-odds, probabilities or counts of things
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Expectation:
    """Something that a report may hold, how likely that is, and whether a draft holds it."""

    name: str
    probability: float
    held: bool


Expectations = tuple[Expectation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Habits:
    """Log-odds that a training report holds each thing, what a draft's word adds to them, and the spread."""

    ever: Odds
    after: Odds  # the prior held it
    without: Odds  # the prior did not
    says: Odds  # added for a draft that holds it
    omits: Odds  # and for one that does not
    spread: float  # standard deviation of 1 - F1 over random pairs of training reports; 1 where none differ

    def expected(self, priors: Held, trust: Odds, said: Odds, drafts: Odds) -> Odds:
        """Return the probability of each thing for each query, (queries, things).

        Args:
            priors: what each query's prior holds.
            trust: how much each query's prior counts, (queries,); 0 where there is none.
            said: how many drafts hold each thing, (queries, things).
            drafts: how many drafts there are, (queries,).
        """
        told = np.where(priors, self.after, self.without) - self.ever
        witnessed = said * self.says + (drafts[:, None] - said) * self.omits
        chances: Odds = 1.0 / (1.0 + np.exp(-(self.ever + trust[:, None] * told + witnessed)))
        return chances

    def distances(
        self, drafts: Held, prior: Held, trust: float, unexpected: Odds | float = 0.0, votes: float = 1.0
    ) -> Distances:
        """Return how far one query's drafts are from what is to be expected, in spreads.

        Args:
            drafts: what each draft holds.
            prior: what the prior holds, (1, things).
            trust: how much the prior counts; 0 where there is none.
            unexpected: how many more things each draft holds that are never expected.
            votes: how much a draft's word counts.
        """
        chances = self.chances(drafts, prior, trust, votes)
        return expected_distances(drafts, chances, unexpected) / self.spread

    def chances(self, drafts: Held, prior: Held, trust: float, votes: float = 1.0) -> Odds:
        """Return the probability of each thing for one query, (1, things); see `distances`."""
        said, count = votes * drafts.sum(axis=0, keepdims=True), np.array([votes * len(drafts)])
        return self.expected(prior, np.array([trust]), said, count)


def habits(prior: Held, current: Held, *, found: float | Odds, imagined: float | Odds) -> Habits:
    """Count how often things stay, come and are there at all; rare ones lean on the last.

    Args:
        prior: what training priors hold.
        current: what came after them.
        found: how often a draft names what is there.
        imagined: how often it names what is not.
    """
    ever = how_often(current)
    after, without = (
        ((side & current).sum(axis=0) + LEAN * ever) / (side.sum(axis=0) + LEAN) for side in (prior, ~prior)
    )
    says, omits = np.log(found / imagined), np.log((1.0 - found) / (1.0 - imagined))
    return Habits(_log_odds(ever), _log_odds(after), _log_odds(without), says, omits, _spread(current))


def how_often(reports: Held) -> Odds:
    """Return the share of reports that hold each thing, never quite 0 or 1."""
    share: Odds = (reports.sum(axis=0) + 1.0) / (len(reports) + 2.0)
    return share


def _log_odds(chances: Odds) -> Odds:
    """Return ln p / (1 - p)."""
    odds: Odds = np.log(chances / (1.0 - chances))
    return odds


def _spread(reports: Held) -> float:
    """Return the standard deviation of the distance over random pairs; 1 where none differ."""
    left, right = random_pairs(len(reports))
    return spread_of(f1_distances(reports[left], reports[right]))


def f1_distances(left: Held, right: Held) -> Distances:
    """1 - F1 of each pair of rows, (pairs,); 0 where both hold nothing.

    >>> f1_distances(np.array([[True, True]]), np.array([[True, False]])).round(3).tolist()
    [0.333]
    """
    both, either = (left & right).sum(axis=1), left.sum(axis=1) + right.sum(axis=1)
    return 1.0 - np.where(either > 0, 2.0 * both / np.maximum(either, 1), 1.0)


def expected_distances(drafts: Held, expected: Odds, unexpected: Odds | float = 0.0) -> Distances:
    """1 - the F1 of each draft that is to be expected under probabilities, (drafts,).

    Args:
        drafts: what each draft holds.
        expected: the probability of each thing, (drafts, things).
        unexpected: how many more things each draft holds that are never expected.

    >>> expected_distances(np.array([[True, False]]), np.array([[0.5, 0.5]])).tolist()
    [0.5]
    """
    total = drafts.sum(axis=1) + unexpected + expected.sum(axis=1)
    agreed: Distances = 2.0 * (drafts * expected).sum(axis=1) / np.maximum(total, np.finfo(np.float64).tiny)
    return 1.0 - agreed


def asked(batch: Batch, section: Section) -> Iterator[tuple[int, list[int]]]:
    """Yield each query that has drafts with the section, and their places."""
    there = batch.has_draft(section)
    for query in range(len(batch.queries)):
        rows = [row for row in batch.rows(query) if there[row]]
        if rows:
            yield query, rows


def remembered(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return a reader of sentences that remembers what it read in those of the usual length."""
    known = lru_cache(maxsize=KEPT)(read)
    return lambda sentence: known(sentence) if len(sentence) <= LONGEST else read(sentence)
