"""How far apart two reports are in what they observe: 1 - F1 of the observations that they hold.

The rule-based labeller reads the whole report, so the two sections of a draft
share one value. A report that could not be labelled has none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tabon.bank import TransitionBank
from tabon.observations import LABELLER, OBSERVATIONS, label_text
from tabon.records import Query
from tabon.reports import SECTIONS, Report, Section
from tabon.selectors.batch import Batch
from tabon.selectors.protocol import Distances, Scores
from tabon.selectors.typical import PAIRS, SEED, sample_rows

KEPT = 8192  # texts whose labels are remembered: sections and parts ask for the same ones
Held = NDArray[np.bool_]  # (reports, 14)


def held(texts: Sequence[str]) -> Held:
    """Return which observations each text holds, (texts, 14)."""
    return np.array([_held(text) for text in texts], dtype=bool).reshape(len(texts), len(OBSERVATIONS))


@lru_cache(maxsize=KEPT)
def _held(text: str) -> tuple[bool, ...]:
    """Return which observations one text holds."""
    return label_text(text).held()


def label_distances(left: Held, right: Held) -> Distances:
    """1 - F1 of every pair, (left, right); 0 where both hold nothing.

    >>> label_distances(np.array([[True, True]]), np.array([[True, False], [False, False]])).round(3).tolist()
    [[0.333, 1.0]]
    """
    both = left.astype(np.float64) @ right.T.astype(np.float64)
    either = left.sum(axis=1)[:, None] + right.sum(axis=1)[None, :]
    return 1.0 - np.where(either > 0, 2.0 * both / np.maximum(either, 1), 1.0)


def whole(report: Report) -> str:
    """Return both sections of a report."""
    return f"{report.findings} {report.impression}"


def bank_texts(bank: TransitionBank, rows: Sequence[int]) -> list[str]:
    """Return training reports as texts, their sentences in the order of the report."""
    texts = []
    for row in rows:
        ids = [place for section in SECTIONS for place in bank.pairs[section].current.as_written(row)]
        texts.append(" ".join(bank.table.sentences[place] for place in ids))
    return texts


@dataclass(frozen=True, slots=True)
class LabelPrior:
    """Prefers the draft that observes what the prior did."""

    name = "nearest-prior:labels"
    needs_prior = True

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the labeller."""
        return {"labeller": LABELLER}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's distance to the newest prior."""
        distances = np.full(len(batch.drafts), np.nan)
        for number, query in enumerate(batch.queries):
            rows = list(batch.rows(number))
            if rows and any(batch.priors[number].values()):
                distances[rows] = label_distances(_drafts(query), held([whole(query.prior)]))[:, 0]
        return _where_there(distances, batch, section)


@dataclass(frozen=True)
class LabelTypical:
    """How far a draft's observations are from those of training reports."""

    bank: TransitionBank

    name = "typical:labels"
    needs_prior = False

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the labeller."""
        return {"labeller": LABELLER}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's mean distance to a fixed sample of training reports."""
        distances = np.full(len(batch.drafts), np.nan)
        if len(self._sample):
            for number, query in enumerate(batch.queries):
                rows = list(batch.rows(number))
                if rows:
                    distances[rows] = label_distances(_drafts(query), self._sample).mean(axis=1)
        return _where_there(distances, batch, section)

    def spread(self) -> float:
        """Return the standard deviation over random pairs of training reports; 1 where none differ."""
        rng, count = np.random.default_rng(SEED), len(self._sample)
        if count < 2:  # noqa: PLR2004  # no pair
            return 1.0
        left, right = (rng.integers(count, size=PAIRS) for _ in range(2))
        found = float(np.std(label_distances(self._sample, self._sample)[left, right][left != right]))
        return found if found > 0 else 1.0

    @cached_property
    def _sample(self) -> Held:
        """Return what a fixed sample of training reports hold."""
        rows = sample_rows(np.arange(len(self.bank), dtype=np.int64))
        return held(bank_texts(self.bank, rows.tolist()))


def _drafts(query: Query) -> Held:
    """Return what each draft of a query holds."""
    return held([whole(draft) for draft in query.candidates])


def _where_there(distances: Distances, batch: Batch, section: Section) -> Scores:
    """Leave out drafts that lack the section."""
    return Scores(np.where(batch.has_draft(section), distances, np.nan))
