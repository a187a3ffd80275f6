"""BLEU as many papers have it: NLTK's sentence score of lower-cased words, the mean over drafts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tabon._internal.extras import require
from tabon.metrics.meteor import words_and_signs
from tabon.metrics.overlap import ORDERS
from tabon.metrics.protocol import Metric, Pair, Score, Statistics, mean_of


@dataclass(frozen=True, slots=True)
class NltkBleu:
    """Sentence BLEU-1 to BLEU-4 by NLTK; made by `load`."""

    _sentence_bleu: Any = field(repr=False)
    _smooth: Any = field(repr=False)

    name = "nltk_bleu"
    statistics = tuple(f"nltk_bleu-{order}" for order in ORDERS)
    scores = tuple(Score(column, mean_of(index)) for index, column in enumerate(statistics))

    @property
    def signature(self) -> str:
        """Return tokens, case and smoothing, with NLTK's version."""
        return f"nltk_bleu|tokenizer:words-and-signs|case:lower|smooth:method1|nltk:{version('nltk')}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair: the scores of the draft, 0 if a text is empty."""
        rows = [self._row(words_and_signs(pair.reference), words_and_signs(pair.candidate)) for pair in pairs]
        return np.array(rows, dtype=np.float64).reshape(len(pairs), len(ORDERS))

    def _row(self, reference: list[str], candidate: list[str]) -> list[float]:
        """Return the score up to each order."""
        if not reference or not candidate:
            return [0.0] * len(ORDERS)
        weights = [(1 / order,) * order for order in ORDERS]
        smooth = self._smooth
        return [
            float(self._sentence_bleu([reference], candidate, each, smoothing_function=smooth))
            for each in weights
        ]


def load(_model: Path | None = None) -> Metric:
    """Return NLTK's BLEU; it needs no files."""
    scoring = require("nltk.translate.bleu_score", extra="metrics", feature="NLTK's BLEU")
    return NltkBleu(scoring.sentence_bleu, scoring.SmoothingFunction().method1)
