"""BLEU, ROUGE and chrF++: how far the words and characters of a draft are those of the reference.

Sums of a row's n-grams give corpus BLEU and chrF++, sums of a draft's own scores their
mean. Tokens, smoothing and n-grams are those of sacrebleu and rouge-score.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from string import punctuation
from typing import Any

import numpy as np

from tabon._internal.extras import require
from tabon.metrics.protocol import Counts, Metric, Pair, Score, Statistics, Values, mean_of, measure_texts

ORDERS = (1, 2, 3, 4)  # of BLEU's n-grams
MOST = len(ORDERS)
SYS_LEN, REF_LEN, FIRST_SENTENCE = 2 * MOST, 2 * MOST + 1, 2 * MOST + 2  # columns of BLEU's rows
TOKENIZER, SMOOTH = "13a", "exp"
KINDS = ("1", "2", "l")  # of ROUGE
PARTS = ("p", "r", "f")  # precision, recall, their harmonic mean
CHARACTER_ORDER, WORD_ORDER, BETA = 6, 2, 2  # of chrF++
CHRF_ORDERS = (
    *(f"char{n}" for n in range(1, CHARACTER_ORDER + 1)),
    *(f"word{n}" for n in range(1, WORD_ORDER + 1)),
)

Tables = tuple[Counter[str], ...]  # one table of n-grams for each of CHRF_ORDERS


def _shared(one: Counter[Any], other: Counter[Any]) -> int:
    """Count what two tables have in common."""
    return sum(min(one[key], other[key]) for key in one.keys() & other.keys())


# BLEU


@dataclass(frozen=True, slots=True)
class NGrams:
    """The n-grams of one text, all orders in one table, and the number of its tokens."""

    counts: Counter[tuple[str, ...]]
    length: int


def corpus_bleu(order: int) -> Callable[[Statistics, Counts], Values]:
    """Return the score that is corpus BLEU up to n-grams of this order.

    The k-th order without a match counts as 2**-k matches (smoothing `exp`).

    >>> one_of_two_words = np.array([1.0, 0, 0, 0, 2, 1, 0, 0, 2, 2, 0, 0, 0, 0])
    >>> corpus_bleu(1)(one_of_two_words, np.array(1.0)).item()
    0.5
    """

    def value(sums: Statistics, counts: Counts) -> Values:
        matches, totals = sums[..., :order], sums[..., MOST : MOST + order]
        smoothed = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=-1))
        logs = np.log(smoothed / np.where(totals > 0, totals, 1.0)).mean(axis=-1)
        sys_len, ref_len = sums[..., SYS_LEN], sums[..., REF_LEN]
        ratio = np.divide(ref_len, sys_len, out=np.ones_like(ref_len), where=sys_len > 0)
        scores = np.exp(np.minimum(0.0, 1.0 - ratio)) * np.exp(logs)  # with the penalty for brevity
        possible = (totals > 0).all(axis=-1) & (matches > 0).any(axis=-1)
        return np.where(counts > 0, np.where(possible, scores, 0.0), np.nan)

    return value


@dataclass(frozen=True, slots=True)
class Bleu:
    """Sentence and corpus BLEU-1 to BLEU-4; made by `load_bleu`."""

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
        """Return one row per pair: n-grams, lengths and sentence scores."""

        def ngrams(text: str) -> NGrams:
            return NGrams(*self._extract(self._bleu.tokenizer(text.rstrip()), 1, MOST))

        return measure_texts(pairs, ngrams, self._row, len(self.statistics))

    def _row(self, reference: NGrams, candidate: NGrams) -> list[float]:
        """Return the statistics of one draft; orders that it is too short for do not count in its score."""
        matches = [0] * MOST
        for ngram in candidate.counts.keys() & reference.counts.keys():
            matches[len(ngram) - 1] += min(candidate.counts[ngram], reference.counts[ngram])
        totals = [max(candidate.length - n + 1, 0) for n in ORDERS]
        lengths = [candidate.length, reference.length]
        settings = {"smooth_method": SMOOTH, "effective_order": True}
        sentence = [
            self._bleu.compute_bleu(matches[:n], totals[:n], *lengths, max_ngram_order=n, **settings).score
            for n in ORDERS
        ]
        return [*matches, *totals, *lengths, *(score / 100 for score in sentence)]


def load_bleu(_model: Path | None = None) -> Metric:
    """Return BLEU; it needs no files."""
    metrics = require("sacrebleu.metrics", extra="metrics", feature="BLEU")
    counting = require("sacrebleu.metrics.helpers", extra="metrics", feature="BLEU")
    return Bleu(metrics.BLEU(tokenize=TOKENIZER), counting.extract_all_word_ngrams)


# ROUGE


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text, counted in three ways."""

    words: tuple[str, ...]
    bigrams: Counter[tuple[str, str]]
    places: dict[str, int]  # bit i is set where the word is token i


def _tokens(words: Sequence[str]) -> Tokens:
    """Count words and bigrams and note where the words are."""
    places: dict[str, int] = {}
    for place, word in enumerate(words):
        places[word] = places.get(word, 0) | 1 << place
    return Tokens(tuple(words), Counter(pairwise(words)), places)


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


def _rouge_row(reference: Tokens, candidate: Tokens) -> list[float]:
    """Return precision, recall and F of words, bigrams and the common subsequence; 0 if nothing is shared."""
    ours, theirs = len(candidate.words), len(reference.words)
    same = reference.places.keys() & candidate.places.keys()
    words = sum(min(reference.places[word].bit_count(), candidate.places[word].bit_count()) for word in same)
    row: list[float] = []
    for both, fewer in (
        (words, 0),
        (_shared(reference.bigrams, candidate.bigrams), 1),
        (_common_subsequence(reference, candidate), 0),
    ):
        precision, recall = (both / (ours - fewer), both / (theirs - fewer)) if both else (0.0, 0.0)
        row += [precision, recall, 2 * precision * recall / (precision + recall) if both else 0.0]
    return row


@dataclass(frozen=True, slots=True)
class Rouge:
    """ROUGE as precision, recall and F, each the mean over drafts; by `load_rouge`, `load_stemmed_rouge`.

    rouge-score's table for the longest common subsequence is replaced by one integer whose
    bits are the reference's tokens.
    """

    _tokenize: Callable[[str, Any], list[str]] = field(repr=False)  # rouge-score's
    _stemmer: Any = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Return the metric's name."""
        return "rouge" if self._stemmer is None else "stemmed_rouge"

    @property
    def statistics(self) -> tuple[str, ...]:
        """Return the nine columns."""
        return tuple(f"{self.name}-{kind}-{part}" for kind in KINDS for part in PARTS)

    @property
    def scores(self) -> tuple[Score, ...]:
        """Return a mean of each column."""
        return tuple(Score(column, mean_of(index)) for index, column in enumerate(self.statistics))

    @property
    def signature(self) -> str:
        """Return the tokens, the case and the stemmer, with rouge-score's version."""
        stemmer = "no" if self._stemmer is None else "porter"
        settings = f"tokens:a-z0-9|case:lower|stemmer:{stemmer}"
        return f"{self.name}|{settings}|rouge-score:{version('rouge-score')}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair: the nine scores of the draft."""

        def tokens(text: str) -> Tokens:
            return _tokens(self._tokenize(text, self._stemmer))

        return measure_texts(pairs, tokens, _rouge_row, len(self.statistics))


def load_rouge(_model: Path | None = None) -> Metric:
    """Return ROUGE; it needs no files."""
    return Rouge(require("rouge_score.tokenize", extra="metrics", feature="ROUGE").tokenize)


def load_stemmed_rouge(_model: Path | None = None) -> Metric:
    """Return ROUGE of stems, as rouge-score gives it with `use_stemmer=True`."""
    tokenize = require("rouge_score.tokenize", extra="metrics", feature="ROUGE").tokenize
    stemmer = require("nltk.stem.porter", extra="metrics", feature="ROUGE's stemmer").PorterStemmer()
    return Rouge(tokenize, stemmer)


# chrF++


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


def _chrf_row(reference: Tables, candidate: Tables) -> list[int]:
    """Return for each order how many n-grams the candidate has, the reference has, and both have.

    An order that the reference is too short for is not held against the candidate.
    """
    row: list[int] = []
    for theirs, ours in zip(reference, candidate, strict=True):
        row += [ours.total() if theirs else 0, theirs.total(), _shared(ours, theirs)]
    return row


def _f_score(statistics: Statistics) -> Values:
    """Return F2 of the mean precision and the mean recall over the orders that both sides have."""
    precision, recall, orders = (np.zeros(statistics.shape[:-1]) for _ in range(3))
    for order in range(len(CHRF_ORDERS)):  # one by one: the bits of a row may not hang on its neighbours
        ours, theirs, both = (statistics[..., 3 * order + column] for column in range(3))
        counted = (ours > 0) & (theirs > 0)
        precision += np.divide(both, ours, out=np.zeros_like(precision), where=counted)
        recall += np.divide(both, theirs, out=np.zeros_like(recall), where=counted)
        orders += counted
    precision, recall = (total / np.maximum(orders, 1) for total in (precision, recall))
    weighted = BETA**2 * precision + recall
    return (1 + BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1.0)


@dataclass(frozen=True, slots=True)
class Chrf:
    """Sentence and corpus chrF++; made by `load_chrf`."""

    _characters: Callable[[str, int], list[Counter[str]]] = field(repr=False)  # sacrebleu's counting
    _word_ngrams: Callable[[list[str], int], Counter[str]] = field(repr=False)

    name = "chrf"
    statistics = (
        *(f"{order}-{side}" for order in CHRF_ORDERS for side in ("sys", "ref", "both")),
        "sentence",
    )
    scores = (
        Score("chrf++", mean_of(3 * len(CHRF_ORDERS))),
        Score("corpus-chrf++", lambda sums, counts: np.where(counts > 0, _f_score(sums), np.nan)),
    )

    @property
    def signature(self) -> str:
        """Return the orders, the weight of recall, case and white space, with sacrebleu's version."""
        settings = f"chars:{CHARACTER_ORDER}|words:{WORD_ORDER}|beta:{BETA}|case:mixed|space:no"
        return f"chrf|{settings}|effective-order:yes|sacrebleu:{version('sacrebleu')}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair: n-grams of each order, and the score of the draft alone."""
        counts = measure_texts(pairs, self._tables, _chrf_row, 3 * len(CHRF_ORDERS))
        return np.column_stack([counts, _f_score(counts)])

    def _tables(self, text: str) -> Tables:
        """Count the n-grams of a text."""
        words = [part for word in text.split() for part in _parted(word)]
        return (
            *self._characters(text, CHARACTER_ORDER),
            *(self._word_ngrams(words, n) for n in range(1, WORD_ORDER + 1)),
        )


def load_chrf(_model: Path | None = None) -> Metric:
    """Return chrF++; it needs no files."""
    counting = require("sacrebleu.metrics.helpers", extra="metrics", feature="chrF++")
    return Chrf(counting.extract_all_char_ngrams, counting.extract_word_ngrams)
