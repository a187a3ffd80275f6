"""What radiologists wrote next for priors like this one.

The bank's transitions whose *prior* section is nearest to the query's prior are
looked up, by the cosine of mean sentence embeddings: a quick search, exact for
that measure, whatever distance is then asked for. The distance of a draft is its
mean distance to the *current* sections of those transitions.

Where the distance is a score of texts, drafts and bank sections are both read as
their sentences in the order of the report, joined by blanks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tabon.encoders.protocol import Matrix
from tabon.method.bank import TransitionBank
from tabon.method.nearest import ExactIndex, Neighbours
from tabon.method.scoring import aggregate_distances
from tabon.method.selection import Neighbour
from tabon.method.sentence_sets import Ids
from tabon.selectors.prepared import Batch
from tabon.selectors.scorer import Scores
from tabon.selectors.set_distances.distances import unit_means
from tabon.selectors.similarity import Sections, TextDistance, load_distance, written_sections
from tabon.text.reports import SECTIONS, Section

DEFAULT = "chamfer"
SIMILAR_PRIORS = 20  # fewer where the bank has fewer


@dataclass(frozen=True, slots=True, eq=False)
class _NextVisits:
    """One section of a bank: priors to search, and what was written next."""

    index: ExactIndex
    rows: Ids  # bank row of each index row
    current: Sections  # of every bank row

    def search(self, priors: Matrix) -> Neighbours:
        """Return the transitions with the nearest priors; rows are rows of the whole bank."""
        found = self.index.search(priors, min(SIMILAR_PRIORS, len(self.index)))
        return Neighbours(found.distances, self.rows[found.rows])


@dataclass(frozen=True)
class NextVisit:
    """Prefers the draft that is like what came after similar priors; made by `load`."""

    bank: TransitionBank
    measure: TextDistance

    needs_prior = True
    uses_prior = True

    @property
    def name(self) -> str:
        """Return the selector with its distance."""
        return f"next-visit:{self.measure.name}"

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
            found = bank.search(unit_means(batch.table.vectors, batch.prior_sets[section].take(asked)))
            next_rows = found.rows[query]
            drafts = written_sections(batch.table, batch.draft_sets[section])
            repeated = np.repeat(rows, next_rows.shape[1])
            flat = self.measure.between(drafts, repeated, bank.current, next_rows.ravel())
            measured = flat.reshape(next_rows.shape)
            distances[rows] = aggregate_distances(measured, "knn")
            nearest[rows] = measured.min(axis=1)
            priors[rows] = aggregate_distances(found.distances, "knn")[query]
            for row, transitions, values in zip(rows.tolist(), next_rows, measured, strict=True):
                cited[row] = tuple(  # nearest first, ties by bank row
                    Neighbour(int(transitions[place]), float(values[place]), self.bank.provenance)
                    for place in np.lexsort((transitions, values))
                )
        return Scores(distances, {"nearest-next": nearest, "prior-distance": priors}, tuple(cited))

    @cached_property
    def _banks(self) -> Mapping[Section, _NextVisits | None]:
        """Return each section's bank; None where no transition has it on both sides."""
        banks: dict[Section, _NextVisits | None] = dict.fromkeys(SECTIONS)
        for section, pairs in self.bank.pairs.items():
            present = pairs.present()
            if len(present):
                index = ExactIndex(unit_means(self.bank.table.vectors, pairs.prior.take(present)))
                current = written_sections(self.bank.table, pairs.current)
                banks[section] = _NextVisits(index, present, current)
        return banks


def load(bank: TransitionBank, variant: str) -> NextVisit:
    """Return the next visit under a set distance or a score; Chamfer where none is named."""
    return NextVisit(bank, load_distance(variant or DEFAULT))
