"""A metric, a selector and an encoder that tabon finds by name once this package is installed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tabon.encoders.protocol import Placement, SentenceEncoder
from tabon.method.bank import TransitionBank
from tabon.metrics.protocol import Pair, Score, Statistics, mean_of
from tabon.selectors import Batch, Scores
from tabon.text.reports import Section


class Length:
    """How near a draft's number of words is to the reference's."""

    name = "length"
    signature = "length|words:split|version:1"
    statistics = ("nearness",)
    scores = (Score("length-near", mean_of(0)),)

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return the shorter length over the longer one, for each pair."""
        words = [(len(pair.reference.split()), len(pair.candidate.split())) for pair in pairs]
        return np.array([[min(two) / max(*two, 1)] for two in words], dtype=np.float64).reshape(-1, 1)


def length(_: Path | None) -> Length:
    """Return the metric; the argument is the folder that `--metric-files length=FOLDER` names."""
    return Length()


@dataclass(frozen=True)
class Middle:
    """Prefers the draft whose length is nearest to the median of its query's drafts."""

    name: str = "middle"
    needs_prior = False
    uses_prior = False

    @property
    def settings(self) -> Mapping[str, str]:
        """Return what changes its distances, for the signature."""
        return {"version": "1"}

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return a distance for each draft, NaN for one without the section; lower is better."""
        drafts = range(len(batch.drafts))
        words = np.array([float(len(batch.draft_text(draft, section).split())) for draft in drafts])
        words[~batch.has_draft(section)] = np.nan
        distances = words.copy()
        for query in range(len(batch.queries)):
            rows = list(batch.rows(query))
            known = words[rows][~np.isnan(words[rows])]
            distances[rows] = np.abs(words[rows] - (np.median(known) if len(known) else 0.0))
        return Scores(distances)


def middle(_bank: TransitionBank, _variant: str) -> Middle:
    """Return the selector; the arguments are the bank and what follows the colon of its name."""
    return Middle()


class Letters:
    """Counts the letters of a sentence."""

    def encode(self, sentences: list[str], /) -> list[list[float]]:
        """Return one row per sentence."""
        return [
            [1.0, *(float(sentence.lower().count(chr(ord("a") + letter))) for letter in range(26))]
            for sentence in sentences
        ]


def letters(_: Placement) -> SentenceEncoder:
    """Return the encoder; the argument is what follows `?` of its name."""
    return Letters()
