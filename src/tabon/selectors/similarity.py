"""How far apart two sections are: in embeddings, or by a score of the metric suite.

A set distance (`chamfer`, …) looks at the sentence embeddings. A score (`rouge-l-f`, `bleu-4`, …)
measures the draft against the other text as its reference, and the distance is 1 - score.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.sentence_sets import Ids, RaggedSets, SentenceTable
from tabon.metrics.load import load_scores
from tabon.metrics.protocol import Metric, Pair, Score
from tabon.selectors.scorer import Batch, Distances
from tabon.selectors.set_distances.distances import SET_DISTANCES, paired_distances
from tabon.text.reports import Section

PAIRS_AT_ONCE = 8192  # more than the pairs of 64 drafts among themselves
SYMMETRIC = frozenset({"rouge-1-f", "rouge-2-f", "rouge-l-f"})  # the same bits with the sides exchanged
PROBE = Pair(reference="Normal.", candidate="Normal.")


@dataclass(frozen=True, slots=True, eq=False)
class Sections:
    """Many sections: as sentence sets, and as texts that are asked for one by one."""

    vectors: Matrix  # of the sentence table
    sets: RaggedSets
    text: Callable[[int], str]


class TextDistance(Protocol):
    """Says how far apart sections are; made by `load_distance`."""

    @property
    def name(self) -> str:
        """Return what the user calls it."""

    @property
    def symmetric(self) -> bool:
        """Say whether both ways are the same, bit for bit."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Return what changes its numbers beside its name, for the signature."""

    def between(self, drafts: Sections, rows: Ids, others: Sections, columns: Ids) -> Distances:
        """Return the distance of draft `rows[i]` to `others[columns[i]]`, (pairs,); none may be empty."""


@dataclass(frozen=True, slots=True)
class EmbeddingDistance:
    """A set distance of sentence embeddings."""

    name: str

    symmetric = True

    @property
    def settings(self) -> Mapping[str, str]:
        """Return nothing: the name says it all."""
        return {}

    def between(self, drafts: Sections, rows: Ids, others: Sections, columns: Ids) -> Distances:
        """Return the set distance of each pair."""
        batches = [
            paired_distances(
                self.name, drafts.vectors, drafts.sets.take(left), others.vectors, others.sets.take(right)
            )
            for left, right in _batches(rows, columns)
        ]
        return np.concatenate([np.zeros(0), *batches])


@dataclass(frozen=True, slots=True)
class ScoreDistance:
    """1 - a score of the metric suite, with the draft as candidate and the other text as reference."""

    metric: Metric
    measured: Score

    @property
    def name(self) -> str:
        """Return the score's name."""
        return self.measured.name

    @property
    def symmetric(self) -> bool:
        """Say whether it is known to be the same both ways."""
        return self.name in SYMMETRIC

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the metric's signature; its bars would end the field, so they are semicolons here."""
        return {"metric": self.metric.signature.replace("|", ";")}

    def between(self, drafts: Sections, rows: Ids, others: Sections, columns: Ids) -> Distances:
        """Return 1 - score of each pair; a distinct pair is measured once in a batch."""
        distances = [np.zeros(0)]
        for left, right in _batches(rows, columns):
            candidates = {row: drafts.text(row) for row in set(left.tolist())}
            references = {column: others.text(column) for column in set(right.tolist())}
            place: dict[Pair, int] = {}
            places = [
                place.setdefault(Pair(reference=references[column], candidate=candidates[row]), len(place))
                for row, column in zip(left.tolist(), right.tolist(), strict=True)
            ]
            measured = self.metric.measure(list(place))  # in one call: a metric reads each text once
            distances.append(1.0 - self.measured.value(measured, np.ones(len(place)))[places])
        return np.concatenate(distances)


def load_distance(name: str) -> TextDistance:
    """Return the set distance, or 1 - the score, of that name.

    Raises:
        BadInputError: the score has no value for some pairs.
        MetricUnavailableError: the score's metric cannot be measured here.

    >>> load_distance("chamfer").name
    'chamfer'
    """
    if name in SET_DISTANCES:
        return EmbeddingDistance(name)
    metric, score = load_scores([name], kind="set distance or score", also=tuple(SET_DISTANCES))[name]
    if np.isnan(score.value(metric.measure([PROBE]), np.ones(1))).any():
        raise BadInputError(f"{name} has no value for some pairs of texts; choose another score")
    return ScoreDistance(metric, score)


def draft_sections(batch: Batch, section: Section) -> Sections:
    """Return every draft's section, texts as their generator wrote them."""
    return Sections(
        batch.table.vectors, batch.draft_sets[section], lambda row: batch.draft_text(row, section)
    )


def prior_sections(batch: Batch, section: Section) -> Sections:
    """Return the section of every query's newest prior, texts as they were written."""
    return Sections(
        batch.table.vectors, batch.prior_sets[section], lambda row: batch.queries[row].prior.section(section)
    )


def written_sections(table: SentenceTable, sets: RaggedSets) -> Sections:
    """Return sections whose texts are their sentences in the order of the report, joined by blanks."""
    return Sections(
        table.vectors, sets, lambda row: " ".join(table.sentences[one] for one in sets.as_written(row))
    )


def _batches(rows: Ids, columns: Ids) -> Iterator[tuple[Ids, Ids]]:
    """Cut pairs into batches of bounded size."""
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        yield rows[start : start + PAIRS_AT_ONCE], columns[start : start + PAIRS_AT_ONCE]
