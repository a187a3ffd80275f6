"""BLEU of one to four words, of a draft and of a corpus, with sacrebleu's tokens and smoothing.

A row holds the matched and the possible n-grams, both lengths, and the four
scores of the draft alone. Corpus BLEU is made from the sums of the former, the
mean of sentence BLEU from the sums of the latter.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tabon._internal.extras import require
from tabon.metrics.protocol import Counts, Metric, Pair, Score, Statistics, Values, mean_of

ORDERS = (1, 2, 3, 4)
MOST = len(ORDERS)
SYS_LEN, REF_LEN = 2 * MOST, 2 * MOST + 1
FIRST_SENTENCE = 2 * MOST + 2
TOKENIZER, SMOOTH = "13a", "exp"
KEPT_TEXTS = 256  # the n-grams of so many texts are kept in a call; drafts of one study stand together


@dataclass(frozen=True, slots=True)
class NGrams:
    """The n-grams of one text, all orders in one table, and the number of its tokens."""

    counts: Counter[tuple[str, ...]]
    length: int


def _matches(reference: NGrams, candidate: NGrams) -> list[int]:
    """Count the candidate's n-grams that the reference has too, a number for each order."""
    matches = [0] * MOST
    for ngram in candidate.counts.keys() & reference.counts.keys():
        matches[len(ngram) - 1] += min(candidate.counts[ngram], reference.counts[ngram])
    return matches


def _smoothed_precisions(matches: Statistics, totals: Statistics) -> Statistics:
    """Divide; the k-th order without a match counts as 2**-k matches (smoothing `exp`)."""
    without = np.cumsum(matches == 0, axis=-1)
    smoothed = np.where(matches > 0, matches, 0.5**without)
    precisions: Statistics = smoothed / np.where(totals > 0, totals, 1.0)
    return precisions


def _brevity(sys_len: Values, ref_len: Values) -> Values:
    """Return the penalty for texts shorter than their references."""
    ratio = np.divide(ref_len, sys_len, out=np.ones_like(ref_len), where=sys_len > 0)
    penalty: Values = np.exp(np.minimum(0.0, 1.0 - ratio))
    return penalty


def corpus_bleu(order: int) -> Callable[[Statistics, Counts], Values]:
    """Return the score that is corpus BLEU up to n-grams of this order.

    >>> one_of_two_words = np.array([1.0, 0, 0, 0, 2, 1, 0, 0, 2, 2, 0, 0, 0, 0])
    >>> corpus_bleu(1)(one_of_two_words, np.array(1.0)).item()
    0.5
    """

    def value(sums: Statistics, counts: Counts) -> Values:
        matches, totals = sums[..., :order], sums[..., MOST : MOST + order]
        logs = np.log(_smoothed_precisions(matches, totals)).mean(axis=-1)
        scores = _brevity(sums[..., SYS_LEN], sums[..., REF_LEN]) * np.exp(logs)
        possible = (totals > 0).all(axis=-1) & (matches > 0).any(axis=-1)
        return np.where(counts > 0, np.where(possible, scores, 0.0), np.nan)

    return value


@dataclass(frozen=True, slots=True)
class Bleu:
    """Sentence and corpus BLEU-1 to BLEU-4; made by `load`."""

    _bleu: Any = field(repr=False)  # sacrebleu's BLEU: its tokeniser, and its formula for one sentence
    _extract: Callable[[str, int, int], tuple[Counter[tuple[str, ...]], int]] = field(repr=False)

    name = "bleu"
    statistics = (
        *(f"counts{n}" for n in ORDERS),
        *(f"totals{n}" for n in ORDERS),
        "sys_len",
        "ref_len",
        *(f"sentence{n}" for n in ORDERS),
    )
    scores = (
        *(Score(f"bleu-{n}", mean_of(FIRST_SENTENCE + n - 1)) for n in ORDERS),
        *(Score(f"corpus-bleu-{n}", corpus_bleu(n)) for n in ORDERS),
    )

    @property
    def signature(self) -> str:
        """Return tokeniser, case, smoothing, and where short drafts stop, with sacrebleu's version."""
        settings = f"tokenizer:{TOKENIZER}|case:mixed|smooth:{SMOOTH}|effective-order:sentence"
        return f"bleu|{settings}|sacrebleu:{version('sacrebleu')}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return a row a pair: n-grams, lengths and sentence scores."""

        @lru_cache(maxsize=KEPT_TEXTS)
        def ngrams(text: str) -> NGrams:
            return NGrams(*self._extract(self._bleu.tokenizer(text.rstrip()), 1, MOST))

        rows = [self._row(ngrams(pair.reference), ngrams(pair.candidate)) for pair in pairs]
        return np.array(rows, dtype=np.float64).reshape(len(pairs), len(self.statistics))

    def _row(self, reference: NGrams, candidate: NGrams) -> list[float]:
        """Return the statistics of one draft."""
        matches = _matches(reference, candidate)
        totals = [max(candidate.length - n + 1, 0) for n in ORDERS]
        lengths = [candidate.length, reference.length]
        sentence = [self._sentence(matches[:n], totals[:n], lengths) for n in ORDERS]
        return [*matches, *totals, *lengths, *sentence]

    def _sentence(self, matches: list[int], totals: list[int], lengths: list[int]) -> float:
        """Return sacrebleu's score of one draft; orders that it is too short for do not count."""
        scored = self._bleu.compute_bleu(
            matches,
            totals,
            *lengths,
            smooth_method=SMOOTH,
            effective_order=True,
            max_ngram_order=len(matches),
        )
        score: float = scored.score / 100
        return score


def load(model: Path | None = None) -> Metric:
    """Return BLEU; it needs no files, so `model` is not looked at."""
    del model
    metrics = require("sacrebleu.metrics", extra="metrics", feature="BLEU")
    counting = require("sacrebleu.metrics.helpers", extra="metrics", feature="BLEU")
    return Bleu(metrics.BLEU(tokenize=TOKENIZER), counting.extract_all_word_ngrams)
