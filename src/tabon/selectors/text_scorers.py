"""Scorers that compare texts: with the other drafts, with the prior, with what followed similar priors.

`consensus`: minimum Bayes risk with uniform weights; CCS (Zhang et al., 2026) is this with a report
metric. It cannot see an error that most drafts share.
`nearest-prior`: what "copy the last report" would choose.
`next-visit`: the mean distance to the *current* sections of the bank's transitions whose *prior* section
is nearest to the query's, by the cosine of mean sentence embeddings. For a score of texts, drafts and
bank sections are both read as their sentences in the order of the report, joined by blanks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from tabon.method.bank import TransitionBank
from tabon.method.nearest import ExactIndex, aggregate_distances
from tabon.method.selection import Neighbour
from tabon.method.sentence_sets import Ids
from tabon.selectors.scorer import Batch, Distances, Scores
from tabon.selectors.set_distances.distances import unit_means
from tabon.selectors.similarity import (
    Sections,
    TextDistance,
    draft_sections,
    load_distance,
    prior_sections,
    written_sections,
)
from tabon.text.reports import SECTIONS, Section

DEFAULT = "chamfer"
SIMILAR_PRIORS = 20  # fewer where the bank has fewer


class TextScorer:
    """What the scorers below share."""

    measure: TextDistance
    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """Return the selector with its distance."""
        return f"{self.kind}:{self.measure.name}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the distance's settings."""
        return self.measure.settings


@dataclass(frozen=True)
class Consensus(TextScorer):
    """Prefers the draft that is nearest to all others; made by `load_scorer`."""

    measure: TextDistance

    kind = "consensus"
    needs_prior = False
    uses_prior = False

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's mean distance to the others; 0 if it has no others to disagree with.

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


def consensus(_: TransitionBank, variant: str) -> Consensus:
    """Return the consensus under a set distance or a score; Chamfer if none is named."""
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


@dataclass(frozen=True)
class NearestPrior(TextScorer):
    """Prefers the draft that is nearest to the prior; made by `load_scorer`."""

    measure: TextDistance

    kind = "nearest-prior"
    needs_prior = True
    uses_prior = True

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's distance to the prior's section."""
        rows = batch.comparable(section)
        distances = np.full(len(batch.drafts), np.nan)
        distances[rows] = self.measure.between(
            draft_sections(batch, section), rows, prior_sections(batch, section), batch.owner[rows]
        )
        return Scores(distances)


def nearest_prior(_: TransitionBank, variant: str) -> NearestPrior:
    """Return the nearest prior under a set distance or a score; Chamfer if none is named."""
    return NearestPrior(load_distance(variant or DEFAULT))


@dataclass(frozen=True, slots=True, eq=False)
class _NextVisits:
    """One section of a bank: priors to search, and what was written next."""

    index: ExactIndex
    rows: Ids  # bank row of each index row
    current: Sections  # of every bank row


@dataclass(frozen=True)
class NextVisit(TextScorer):
    """Prefers the draft that is like what came after similar priors; made by `load_scorer`."""

    bank: TransitionBank
    measure: TextDistance

    kind = "next-visit"
    needs_prior = True
    uses_prior = True

    @property
    def settings(self) -> Mapping[str, str]:
        """Return how priors are looked up, and the distance's settings."""
        return {"priors": f"mean-cosine/{SIMILAR_PRIORS}", **self.measure.settings}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's mean distance to what came next.

        Parts: `nearest-next`, the least of those distances, and `prior-distance`,
        the mean distance of the looked-up priors, the same for all drafts of a query.
        The transitions are cited with the draft's distance to their current section.
        """
        distances, nearest, priors = np.full((3, len(batch.drafts)), np.nan)
        cited: list[tuple[Neighbour, ...]] = [()] * len(batch.drafts)
        rows = batch.comparable(section)
        bank = self._banks[section]
        if bank is not None and len(rows):
            asked, query = np.unique(batch.owner[rows], return_inverse=True)
            similar = unit_means(batch.table.vectors, batch.prior_sets[section].take(asked))
            found = bank.index.search(similar, min(SIMILAR_PRIORS, len(bank.index)))
            next_rows = bank.rows[found.rows][query]
            drafts = written_sections(batch.table, batch.draft_sets[section])
            repeated = np.repeat(rows, next_rows.shape[1])
            flat = self.measure.between(drafts, repeated, bank.current, next_rows.ravel())
            measured = flat.reshape(next_rows.shape)
            distances[rows] = aggregate_distances(measured, "knn")
            nearest[rows] = measured.min(axis=1)
            priors[rows] = aggregate_distances(found.distances, "knn")[query]
            looked_up = zip(rows.tolist(), next_rows, measured, found.distances[query], strict=True)
            for row, transitions, values, apart in looked_up:
                cited[row] = tuple(  # nearest first, ties by bank row
                    Neighbour(
                        int(transitions[place]),
                        float(values[place]),
                        self.bank.provenance,
                        float(apart[place]),
                    )
                    for place in np.lexsort((transitions, values))
                )
        return Scores(distances, {"nearest-next": nearest, "prior-distance": priors}, tuple(cited))

    @cached_property
    def _banks(self) -> Mapping[Section, _NextVisits | None]:
        """Return each section's bank; None if no transition has it on both sides."""
        banks: dict[Section, _NextVisits | None] = dict.fromkeys(SECTIONS)
        for section, pairs in self.bank.pairs.items():
            present = pairs.present()
            if len(present):
                index = ExactIndex(unit_means(self.bank.table.vectors, pairs.prior.take(present)))
                current = written_sections(self.bank.table, pairs.current)
                banks[section] = _NextVisits(index, present, current)
        return banks


def next_visit(bank: TransitionBank, variant: str) -> NextVisit:
    """Return the next visit under a set distance or a score; Chamfer if none is named."""
    return NextVisit(bank, load_distance(variant or DEFAULT))
