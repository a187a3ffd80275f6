"""chrF++: n-grams of characters and words, of a draft and of a corpus, as sacrebleu defines it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from string import punctuation

import numpy as np

from tabon._internal.extras import require
from tabon.metrics.protocol import Counts, Metric, Pair, Score, Statistics, Values, mean_of

CHARACTER_ORDER, WORD_ORDER, BETA = 6, 2, 2
ORDERS = (
    *(f"char{n}" for n in range(1, CHARACTER_ORDER + 1)),
    *(f"word{n}" for n in range(1, WORD_ORDER + 1)),
)
KEPT_TEXTS = 256  # the n-grams of so many texts are kept in a call; drafts of one study stand together

Tables = tuple[Counter[str], ...]  # one table of n-grams for each of ORDERS


def _parted(word: str) -> list[str]:
    """Part one sign from a word: its last one, else its first.

    >>> _parted("clear."), _parted("(XXXX"), _parted("."), _parted("(a)")
    (['clear', '.'], ['(', 'XXXX'], ['.'], ['(a', ')'])
    """
    if len(word) > 1 and word[-1] in punctuation:
        return [word[:-1], word[-1]]
    if len(word) > 1 and word[0] in punctuation:
        return [word[0], word[1:]]
    return [word]


def _row(reference: Tables, candidate: Tables) -> list[int]:
    """Return for each order how many n-grams the candidate has, the reference has, and both have.

    An order that the reference is too short for is not held against the candidate.
    """
    row: list[int] = []
    for theirs, ours in zip(reference, candidate, strict=True):
        both = sum(min(ours[ngram], theirs[ngram]) for ngram in ours.keys() & theirs.keys())
        row += [ours.total() if theirs else 0, theirs.total(), both]
    return row


def _f_score(statistics: Statistics) -> Values:
    """Return F2 of the mean precision and the mean recall over the orders that both sides have."""
    precision, recall, orders = (np.zeros(statistics.shape[:-1]) for _ in range(3))
    for order in range(len(ORDERS)):  # one by one: the bits of a row may not hang on its neighbours
        ours, theirs, both = (statistics[..., 3 * order + column] for column in range(3))
        counted = (ours > 0) & (theirs > 0)
        precision += np.divide(both, ours, out=np.zeros_like(precision), where=counted)
        recall += np.divide(both, theirs, out=np.zeros_like(recall), where=counted)
        orders += counted
    precision, recall = (total / np.maximum(orders, 1) for total in (precision, recall))
    weighted = BETA**2 * precision + recall
    return (1 + BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1.0)


def _corpus_chrf(sums: Statistics, counts: Counts) -> Values:
    """Return chrF++ of the summed n-grams, NaN where there is no draft."""
    return np.where(counts > 0, _f_score(sums), np.nan)


@dataclass(frozen=True, slots=True)
class Chrf:
    """Sentence and corpus chrF++; made by `load`."""

    _characters: Callable[[str, int], list[Counter[str]]] = field(repr=False)  # sacrebleu's counting
    _word_ngrams: Callable[[list[str], int], Counter[str]] = field(repr=False)

    name = "chrf"
    statistics = (*(f"{order}-{side}" for order in ORDERS for side in ("sys", "ref", "both")), "sentence")
    scores = (
        Score("chrf++", mean_of(3 * len(ORDERS))),
        Score("corpus-chrf++", _corpus_chrf),
    )

    @property
    def signature(self) -> str:
        """Return the orders, the weight of recall, case and white space, with sacrebleu's version."""
        settings = f"chars:{CHARACTER_ORDER}|words:{WORD_ORDER}|beta:{BETA}|case:mixed|space:no"
        return f"chrf|{settings}|effective-order:yes|sacrebleu:{version('sacrebleu')}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return a row a pair: n-grams of each order, and the score of the draft alone."""
        tables = lru_cache(maxsize=KEPT_TEXTS)(self._tables)
        rows = [_row(tables(pair.reference), tables(pair.candidate)) for pair in pairs]
        counts = np.array(rows, dtype=np.float64).reshape(len(pairs), 3 * len(ORDERS))
        return np.column_stack([counts, _f_score(counts)])

    def _tables(self, text: str) -> Tables:
        """Count the n-grams of a text."""
        words = [part for word in text.split() for part in _parted(word)]
        return (
            *self._characters(text, CHARACTER_ORDER),
            *(self._word_ngrams(words, n) for n in range(1, WORD_ORDER + 1)),
        )


def load(model: Path | None = None) -> Metric:
    """Return chrF++; it needs no files, so `model` is not looked at."""
    del model
    counting = require("sacrebleu.metrics.helpers", extra="metrics", feature="chrF++")
    return Chrf(counting.extract_all_char_ngrams, counting.extract_word_ngrams)
