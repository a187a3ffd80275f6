"""How typical a draft is: its mean Chamfer distance to what the training reports say.

Most of any likeness is likeness to everything. Taking this off leaves the part
of an agreement that is about the case (a lift). A fixed sample of training
reports stands for all; their sentences are compared once with each distinct
sentence of the drafts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tabon.encoders.protocol import Matrix
from tabon.method.bank import TransitionBank
from tabon.method.distances import Stack
from tabon.method.sentence_sets import Ids, RaggedSets
from tabon.selectors.scorer import Batch, Distances, Scores
from tabon.selectors.set_distances.distances import grid_cost
from tabon.selectors.similarity import TextDistance, written_sections
from tabon.text.reports import SECTIONS, Section

SAMPLE = 256  # training reports that stand for all
PAIRS = 2000  # random pairs of training reports that a spread is taken over
SEED = 0
SENTENCES_AT_ONCE = 64


@dataclass(frozen=True)
class Typical:
    """The mean Chamfer distance of a draft to a sample of training reports."""

    bank: TransitionBank

    name = "typical:chamfer"
    needs_prior = False
    uses_prior = False

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the size of the sample."""
        return {"sample": str(SAMPLE)}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's mean distance to the sample; NaN where either side is empty."""
        distances = np.full(len(batch.drafts), np.nan)
        rows, sample = np.flatnonzero(batch.has_draft(section)), self._samples[section]
        if len(rows) and len(sample):
            sets = batch.draft_sets[section].take(rows)
            used, places = np.unique(sets.ids, return_inverse=True)
            costs = self._costs(batch.table.vectors[used], sample)
            for row, start, stop in zip(rows, sets.offsets[:-1], sets.offsets[1:], strict=True):
                distances[row] = mean_chamfer(costs[places[start:stop]], sample)
        return Scores(distances)

    def _costs(self, sentences: Matrix, sample: RaggedSets) -> Stack:
        """Return the cost of each sentence to each sentence of the sample, repeats included."""
        used, places = np.unique(sample.ids, return_inverse=True)
        right = self.bank.table.vectors[used].astype(np.float64)
        blocks = [
            grid_cost(sentences[start : start + SENTENCES_AT_ONCE].astype(np.float64), right)
            for start in range(0, len(sentences), SENTENCES_AT_ONCE)
        ]
        costs: Stack = np.concatenate(blocks)[:, places]
        return costs

    @cached_property
    def _samples(self) -> dict[Section, RaggedSets]:
        """Return the sample's sentence sets, by section."""
        return {
            section: self.bank.pairs[section].current.take(sample_rows(present(self.bank, section)))
            for section in SECTIONS
        }


def mean_chamfer(costs: Stack, sets: RaggedSets) -> float:
    """Return the mean of D(A, B) over many sets B, from the costs of A's sentences to all of theirs.

    >>> mean_chamfer(np.array([[0.0, 0.5]]), RaggedSets.of([[0, 1]]))
    0.125
    """
    starts = sets.offsets[:-1]
    there = np.minimum.reduceat(costs, starts, axis=1).sum(axis=0) / len(costs)
    back = np.add.reduceat(costs.min(axis=0), starts) / sets.lengths
    return float((0.5 * (there + back)).sum() / len(sets))


def spread(bank: TransitionBank, distance: TextDistance, section: Section) -> float:
    """Return the standard deviation of a distance over random training pairs; 1 where none differ."""
    pairs = random_pairs(bank, distance, section)
    found = float(np.std(pairs)) if len(pairs) else 0.0
    return found if found > 0 else 1.0


def random_pairs(bank: TransitionBank, distance: TextDistance, section: Section) -> Distances:
    """Return the distances of random pairs of different training reports; none where there are no two."""
    rows, rng = present(bank, section), np.random.default_rng(SEED)
    left, right = (rows[rng.integers(max(len(rows), 1), size=PAIRS * (len(rows) > 1))] for _ in range(2))
    reports = written_sections(bank.table, bank.pairs[section].current)
    apart = left != right
    return distance.between(reports, left[apart], reports, right[apart])


def prior_strength(bank: TransitionBank, distance: TextDistance, section: Section) -> float:
    """Return how much nearer a patient's consecutive reports are than any two reports; at least 0."""
    rows, pairs = bank.pairs[section].present(), bank.pairs[section]
    if len(rows) < 2:  # noqa: PLR2004  # nothing to compare with
        return 0.0
    taken = rows if len(rows) <= PAIRS else np.sort(np.random.default_rng(SEED).permutation(rows)[:PAIRS])
    current = written_sections(bank.table, pairs.current)
    own = distance.between(current, taken, written_sections(bank.table, pairs.prior), taken)
    return max(0.0, float(random_pairs(bank, distance, section).mean() - own.mean()))


def present(bank: TransitionBank, section: Section) -> Ids:
    """Return the rows of training reports that have the section."""
    return np.flatnonzero(bank.pairs[section].current.lengths > 0)


def sample_rows(rows: Ids, size: int = SAMPLE) -> Ids:
    """Draw a sample; all rows where there are few."""
    if len(rows) <= size:
        return rows
    return np.sort(np.random.default_rng(SEED).permutation(rows)[:size])
