"""ROUGE-1, ROUGE-2 and ROUGE-L of a draft, equal to rouge-score's.

The tokens are rouge-score's own. Its table for the longest common subsequence
is replaced by one integer whose bits are the reference's tokens.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np

from tabon._internal.extras import require
from tabon.metrics.protocol import Metric, Pair, Score, Statistics, mean_of

KINDS = ("1", "2", "l")
PARTS = ("p", "r", "f")  # precision, recall, their harmonic mean
KEPT_TEXTS = 256  # the tokens of so many texts are kept in a call; drafts of one study stand together


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text, counted in three ways."""

    words: tuple[str, ...]
    bigrams: Counter[tuple[str, str]]
    places: dict[str, int]  # bit i is set where the word is token i


def _tokens(words: Sequence[str]) -> Tokens:
    """Count words and bigrams and note where the words stand."""
    places: dict[str, int] = {}
    for place, word in enumerate(words):
        places[word] = places.get(word, 0) | 1 << place
    return Tokens(tuple(words), Counter(pairwise(words)), places)


def _common_words(reference: Tokens, candidate: Tokens) -> int:
    """Count the words of the candidate that the reference has too."""
    both = reference.places.keys() & candidate.places.keys()
    return sum(min(reference.places[word].bit_count(), candidate.places[word].bit_count()) for word in both)


def _common_bigrams(reference: Tokens, candidate: Tokens) -> int:
    """Count the bigrams of the candidate that the reference has too."""
    both = reference.bigrams.keys() & candidate.bigrams.keys()
    return sum(min(reference.bigrams[pair], candidate.bigrams[pair]) for pair in both)


def _common_subsequence(reference: Tokens, candidate: Tokens) -> int:
    """Return the length of the longest common subsequence, by Hyyrö's bit-parallel rule.

    A cleared bit at token i says: one more with token i than without it.

    >>> _common_subsequence(_tokens("the left lung is clear".split()), _tokens("lung the is clear".split()))
    3
    """
    whole = (1 << len(reference.words)) - 1
    row = whole
    for word in candidate.words:
        matches = row & reference.places.get(word, 0)
        row = (row + matches | row - matches) & whole
    return len(reference.words) - row.bit_count()


def _parts(both: int, *, candidate: int, reference: int) -> tuple[float, float, float]:
    """Return precision, recall and F of a count; 0 where a side has nothing."""
    if both == 0:
        return 0.0, 0.0, 0.0
    precision, recall = both / candidate, both / reference
    return precision, recall, 2 * precision * recall / (precision + recall)


def _row(reference: Tokens, candidate: Tokens) -> list[float]:
    """Return the nine scores of one draft."""
    ours, theirs = len(candidate.words), len(reference.words)
    return [
        *_parts(_common_words(reference, candidate), candidate=ours, reference=theirs),
        *_parts(_common_bigrams(reference, candidate), candidate=ours - 1, reference=theirs - 1),
        *_parts(_common_subsequence(reference, candidate), candidate=ours, reference=theirs),
    ]


@dataclass(frozen=True, slots=True)
class Rouge:
    """ROUGE as precision, recall and F, each the mean over drafts; made by `load`."""

    _tokenize: Callable[[str, None], list[str]] = field(repr=False)  # rouge-score's; None is "no stemmer"

    name = "rouge"
    statistics = tuple(f"rouge-{kind}-{part}" for kind in KINDS for part in PARTS)
    scores = tuple(Score(column, mean_of(index)) for index, column in enumerate(statistics))

    @property
    def signature(self) -> str:
        """Return the tokens, the case and the stemmer, with rouge-score's version."""
        return f"rouge|tokens:a-z0-9|case:lower|stemmer:no|rouge-score:{version('rouge-score')}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return a row a pair: the nine scores of the draft."""
        tokens = lru_cache(maxsize=KEPT_TEXTS)(lambda text: _tokens(self._tokenize(text, None)))
        rows = [_row(tokens(pair.reference), tokens(pair.candidate)) for pair in pairs]
        return np.array(rows, dtype=np.float64).reshape(len(pairs), len(self.statistics))


def load(model: Path | None = None) -> Metric:
    """Return ROUGE; it needs no files, so `model` is not looked at."""
    del model
    return Rouge(require("rouge_score.tokenize", extra="metrics", feature="ROUGE").tokenize)
