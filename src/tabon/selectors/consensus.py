"""Agreement with the other drafts: minimum Bayes risk with uniform weights.

The distance of a draft is its mean distance to the other drafts of its query
that have the section. CCS (Zhang et al., 2026) is this with a report metric. It
needs neither prior nor bank, and it cannot see an error that most drafts share.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tabon.method.bank import TransitionBank
from tabon.method.sentence_sets import Ids
from tabon.selectors.prepared import Batch
from tabon.selectors.scorer import Distances, Scores
from tabon.selectors.similarity import TextDistance, draft_sections, load_distance
from tabon.text.reports import Section

DEFAULT = "chamfer"


@dataclass(frozen=True, slots=True)
class Consensus:
    """Prefers the draft that is nearest to all others; made by `load`."""

    measure: TextDistance

    needs_prior = False
    uses_prior = False

    @property
    def name(self) -> str:
        """Return the selector with its distance."""
        return f"consensus:{self.measure.name}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the distance's settings."""
        return self.measure.settings

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's mean distance to the others; 0 where it has no others to disagree with.

        The part `agreement` is 1 - the distance; a draft alone has none.
        """
        there = batch.has_draft(section)
        queries = (np.arange(*batch.starts[query : query + 2]) for query in range(len(batch.queries)))
        groups = [drafts[there[drafts]] for drafts in queries]
        pairs = [_pairs(group, symmetric=self.measure.symmetric) for group in groups]
        none = np.zeros(0, dtype=np.int64)
        rows, columns = (np.concatenate([none, *(pair[side] for pair in pairs)]) for side in (0, 1))
        drafts = draft_sections(batch, section)
        found = self.measure.between(drafts, rows, drafts, columns)
        distances, agreement = np.full((2, len(batch.drafts)), np.nan)
        ends = np.cumsum([0, *(len(pair[0]) for pair in pairs)])
        for group, (start, stop) in zip(groups, pairwise(ends), strict=True):
            distances[group] = mean_to_others(_square(found[start:stop], len(group)))
            if len(group) > 1:
                agreement[group] = 1.0 - distances[group]
        return Scores(distances, {"agreement": agreement})


def load(bank: TransitionBank, variant: str) -> Consensus:
    """Return the consensus under a set distance or a score; Chamfer where none is named."""
    del bank
    return Consensus(load_distance(variant or DEFAULT))


def mean_to_others(square: Distances) -> Distances:
    """Return the mean of each row without its own column; 0 for a single row.

    The others are added from near to far: the order of the drafts has no say.

    >>> mean_to_others(np.array([[0.0, 0.5, 1.0], [0.5, 0.0, 0.0], [1.0, 0.0, 0.0]])).tolist()
    [0.75, 0.25, 0.5]
    """
    count = len(square)
    if count <= 1:
        return np.zeros(count)
    others = square[~np.eye(count, dtype=bool)].reshape(count, count - 1)
    means: Distances = np.sort(others, axis=1).sum(axis=1) / (count - 1)
    return means


def _pairs(group: Ids, *, symmetric: bool) -> tuple[Ids, Ids]:
    """Return the ordered pairs of different drafts, row by row; only j > i where both ways are the same."""
    apart = ~np.eye(len(group), dtype=bool)
    rows, columns = np.nonzero(np.triu(apart) if symmetric else apart)
    return group[rows], group[columns]


def _square(found: Distances, count: int) -> Distances:
    """Lay the distances of `_pairs` out as (count, count), 0 on the diagonal."""
    square = np.zeros((count, count))
    apart = ~np.eye(count, dtype=bool)
    if len(found) == count * (count - 1):
        square[apart] = found
        return square
    square[np.triu(apart)] = found
    return square + square.T
