"""BLEU, ROUGE and chrF++ are the numbers of sacrebleu and rouge-score, also when made from sums."""

import re
import sys
from functools import cache
from itertools import pairwise
from math import exp

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF

from openi import openi_reports
from tabon.errors import MissingExtraError
from tabon.metrics import Pair, load_metric, overlap

NAMES = ("bleu", "rouge", "chrf", "nltk_bleu", "stemmed_rouge")
SIGNATURES = {
    "bleu": "bleu|tokenizer:13a|case:mixed|smooth:exp|effective-order:sentence|sacrebleu:2.6.0",
    "rouge": "rouge|tokens:a-z0-9|case:lower|stemmer:no|rouge-score:0.1.2",
    "chrf": "chrf|chars:6|words:2|beta:2|case:mixed|space:no|effective-order:yes|sacrebleu:2.6.0",
    "nltk_bleu": "nltk_bleu|tokenizer:words-and-signs|case:lower|smooth:method1|nltk:3.10.4",
    "stemmed_rouge": "stemmed_rouge|tokens:a-z0-9|case:lower|stemmer:porter|rouge-score:0.1.2",
}
BUILT_IN = [
    Pair(reference=reference, candidate=candidate)
    for reference, candidate in [
        ("The lungs are clear.", "The lungs are clear."),
        ("The lungs are clear. No effusion.", "No effusion. Lungs clear."),
        ("Heart size is normal; no edema.", "Cardiomegaly with mild edema (new)."),
        ("Nodule of 3.5 cm, stable since 2009.", "Nodule of 3.6 cm, stable since 2009-10."),
        ("No acute disease", "no acute disease"),
        ("Normal.", "There is no pneumothorax, no effusion and no focal consolidation."),
        ("There is no pneumothorax, no effusion and no focal consolidation.", "Normal."),
        ("clear clear clear clear", "clear clear"),
        ("Lungs &amp; heart: <skipped>normal.\nNo ef-\nfusion .", "Lungs & heart: normal. No effusion ."),
        ("Stable scar-", "Stable scar-\n"),
        ("Clear.", ""),
        ("", "Clear."),
        ("", ""),
        ("...", "  \n\t "),
        ("\u5fc3\u810f\u6b63\u5e38\u3002", "Herz normal gro\u00df, \u5fc3\u810f."),
    ]
]
words = st.lists(st.sampled_from(["no", "Edema", "edema.", "3.5", "(a)", ".", "x-ray", "clear"]), max_size=12)
texts = words.map(" ".join) | st.text(st.characters(exclude_categories=()), max_size=30)
pairs = st.builds(Pair, reference=texts, candidate=texts)


@cache
def metric(name):
    """The metric, loaded once."""
    return load_metric(name)


@cache
def openi_pairs():
    """Each of 200 reports as a draft of the one before it, both sections."""
    reports = [report for _, report in openi_reports()[:201]]
    return [
        Pair(reference=getattr(one, section), candidate=getattr(other, section))
        for section in ("findings", "impression")
        for one, other in pairwise(reports)
    ]


def rows_by_library(name, some):
    """The sentence scores of pairs by the library that defines them, in the order of `scores`."""
    if name == "bleu":
        scorers = [BLEU(max_ngram_order=n, effective_order=True) for n in (1, 2, 3, 4)]
        return [[s.sentence_score(p.candidate, [p.reference]).score / 100 for s in scorers] for p in some]
    if name == "chrf":
        scorer = CHRF(word_order=2)
        return [[scorer.sentence_score(p.candidate, [p.reference]).score / 100] for p in some]
    if name == "nltk_bleu":
        return [
            bleu_by_nltk(word_or_signs(p.reference.lower()), word_or_signs(p.candidate.lower())) for p in some
        ]
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=name == "stemmed_rouge")
    return [np.ravel(list(scorer.score(p.reference, p.candidate).values())) for p in some]


word_or_signs = re.compile(r"\w+|[^\w\s]+").findall  # wordpunct_tokenize, but for control characters


def bleu_by_nltk(reference, candidate):
    """NLTK's BLEU-1 to BLEU-4 of a text; 0 if it is empty or has nothing to be compared with."""
    smooth = SmoothingFunction().method1
    if not candidate or not reference:
        return [0.0] * 4
    orders = [[1 / order] * order for order in (1, 2, 3, 4)]
    return [sentence_bleu([reference], candidate, weights, smoothing_function=smooth) for weights in orders]


def corpus_by_library(name, some):
    """The corpus scores of pairs by sacrebleu, in the order of `scores`."""
    candidates, references = [p.candidate for p in some], [p.reference for p in some]
    scorers = {
        "bleu": [BLEU(max_ngram_order=n, force=True) for n in (1, 2, 3, 4)],
        "chrf": [CHRF(word_order=2)],
    }
    return [scorer.corpus_score(candidates, [references]).score / 100 for scorer in scorers[name]]


def values(name, sums, counts, *, corpus):
    """The corpus scores, or the others, of sums."""
    scores = [score for score in metric(name).scores if score.name.startswith("corpus-") == corpus]
    return np.stack([score.value(sums, counts) for score in scores], axis=-1)


def alone(name, some):
    """The sentence scores of each pair."""
    return values(name, metric(name).measure(some), np.ones(len(some)), corpus=False)


@pytest.mark.parametrize("name", NAMES)
def test_built_in_sentences_score_as_in_the_library(name):
    """Every score of hand-made pairs is the library's."""
    np.testing.assert_allclose(alone(name, BUILT_IN), rows_by_library(name, BUILT_IN), atol=1e-12)


@pytest.mark.openi
@pytest.mark.parametrize("name", NAMES)
def test_real_reports_score_as_in_the_library(name):
    """Every score of 400 pairs of real sections is the library's."""
    expected = rows_by_library(name, openi_pairs())
    np.testing.assert_allclose(alone(name, openi_pairs()), expected, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(pair=pairs)
def test_any_text_scores_as_in_the_library(name, pair):
    """Odd characters, repeats, signs and lone surrogates too; nothing warns."""
    np.testing.assert_allclose(alone(name, [pair]), rows_by_library(name, [pair]), atol=1e-12)


@pytest.mark.parametrize("name", ["bleu", "chrf"])
@example(some=BUILT_IN)
@given(some=st.lists(pairs, min_size=1, max_size=4))
def test_any_corpus_scores_as_in_sacrebleu(name, some):
    """A corpus score is made from sums of statistics; also of short and empty texts."""
    sums = metric(name).measure(some).sum(axis=0)
    found = values(name, sums, np.array(float(len(some))), corpus=True)
    np.testing.assert_allclose(found, corpus_by_library(name, some), atol=1e-12)


@pytest.mark.openi
@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_sums_of_picks_are_the_corpus_of_the_picks(name):
    """Random picks, some of them twice, give what sacrebleu makes of their texts; all at once."""
    some = openi_pairs()
    picks = np.random.default_rng(0).integers(len(some), size=(3, 2, 60))
    sums = metric(name).measure(some)[picks].sum(axis=2)
    found = values(name, sums, np.full((3, 2), 60.0), corpus=True)
    expected = [[corpus_by_library(name, [some[i] for i in pick]) for pick in block] for block in picks]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_mean_is_the_mean_of_the_drafts(name):
    """The scores that are no corpus scores are plain means over drafts."""
    sums = metric(name).measure(BUILT_IN).sum(axis=0)
    found = values(name, sums, np.array(float(len(BUILT_IN))), corpus=False)
    np.testing.assert_allclose(found, np.mean(rows_by_library(name, BUILT_IN), axis=0), atol=1e-12)


def test_scores_worked_out_by_hand():
    """One word left out: four of four words, two of three pairs, one of two triples, none of one four."""
    pair = Pair(reference="the lungs are not clear", candidate="the lungs are clear")
    short = exp(1 - 5 / 4)
    bleu = [short, short * (2 / 3) ** (1 / 2), short * (1 / 3) ** (1 / 3), short * (1 / 6) ** (1 / 4)]
    np.testing.assert_allclose(alone("bleu", [pair])[0], bleu, atol=1e-15)
    word, bigram = (1, 4 / 5, 8 / 9), (2 / 3, 2 / 4, 4 / 7)
    np.testing.assert_allclose(alone("rouge", [pair])[0], [*word, *bigram, *word], atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_the_committed_ones(name):
    """A change of settings or versions changes the line under the table, so it is made on purpose."""
    assert metric(name).signature == SIGNATURES[name]
    assert metric(name).name == name


def test_the_scores_are_these():
    """The names are those of the tables; each metric names its columns."""
    names = [score.name for name in NAMES for score in metric(name).scores]
    bleu = [f"{kind}bleu-{n}" for kind in ("", "corpus-") for n in (1, 2, 3, 4)]
    rouge = [f"rouge-{kind}-{part}" for kind in "12l" for part in "prf"]
    other = [*(f"nltk_bleu-{n}" for n in (1, 2, 3, 4)), *(f"stemmed_{score}" for score in rouge)]
    assert names == [*bleu, *rouge, "chrf++", "corpus-chrf++", *other]
    for name in NAMES:
        assert metric(name).measure(BUILT_IN).shape == (len(BUILT_IN), len(metric(name).statistics))
        assert metric(name).measure([]).shape == (0, len(metric(name).statistics))


@pytest.mark.parametrize("name", NAMES)
def test_reference_and_candidate_are_not_the_same_thing(name):
    """Exchanging the two texts changes the scores."""
    long, short = "The heart is normal in size. The lungs are clear.", "The lungs are clear."
    one = alone(name, [Pair(reference=long, candidate=short)])
    other = alone(name, [Pair(reference=short, candidate=long)])
    assert np.abs(one - other).max() > 0.05


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("reference", "candidate"), [("Clear lungs.", ""), ("", "Clear lungs."), ("", "")])
def test_nothing_is_worth_nothing(name, reference, candidate):
    """An empty text on either side, or on both, scores 0."""
    row = metric(name).measure([Pair(reference=reference, candidate=candidate)])[0]
    for score in metric(name).scores:
        assert score.value(row, np.array(1.0)) == 0


@pytest.mark.parametrize("name", NAMES)
def test_no_drafts_have_no_score(name):
    """Sums over no drafts give NaN beside real ones, without a warning."""
    sums = np.stack([np.zeros(len(metric(name).statistics)), metric(name).measure(BUILT_IN[:1])[0]])
    for score in metric(name).scores:
        assert np.isnan(score.value(sums, np.array([0.0, 1.0]))).tolist() == [True, False]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(some=st.lists(pairs, min_size=2, max_size=6), seed=st.integers(0, 99))
def test_a_row_does_not_depend_on_its_company(name, some, seed):
    """The bits of a row are the same alone, among others, and in another order."""
    rows = metric(name).measure(some)
    order = np.random.default_rng(seed).permutation(len(some))
    np.testing.assert_array_equal(metric(name).measure([some[i] for i in order]), rows[order])
    np.testing.assert_array_equal(metric(name).measure(some[-1:])[0], rows[-1])


@pytest.mark.parametrize("name", NAMES)
def test_more_texts_than_are_kept_are_measured_too(name):
    """Rows beyond the kept n-grams are those of a fresh call."""
    many = [Pair(reference=f"Nodule of {n} mm.", candidate=f"Nodule of {n // 2} mm.") for n in range(400)]
    rows = metric(name).measure([*many, *many])
    np.testing.assert_array_equal(rows[:400], rows[400:])


@pytest.mark.parametrize("name", NAMES)
def test_long_texts_are_measured(name):
    """Six thousand words on each side take no table of their product."""
    rng = np.random.default_rng(0)
    one, other = (" ".join(f"w{n}" for n in rng.integers(500, size=6_000)) for _ in range(2))
    scores = alone(name, [Pair(reference=one, candidate=other), Pair(reference=one, candidate=one)])
    assert ((scores[0] > 0) & (scores[0] < 1)).all()
    np.testing.assert_allclose(scores[1], 1.0, atol=1e-12)


@given(st.lists(st.sampled_from("abc"), max_size=90), st.lists(st.sampled_from("abcd"), max_size=90))
def test_the_common_subsequence_is_the_table_s(one, other):
    """The bits count what the textbook's table counts."""
    table = np.zeros((len(one) + 1, len(other) + 1), dtype=int)
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            table[i + 1, j + 1] = table[i, j] + 1 if left == right else max(table[i, j + 1], table[i + 1, j])
    tokens = (overlap._tokens(one), overlap._tokens(other))
    assert overlap._common_subsequence(*tokens) == table[-1, -1]


@pytest.mark.parametrize(
    ("name", "package"), [("bleu", "sacrebleu.metrics"), ("chrf", "sacrebleu"), ("rouge", "rouge_score")]
)
def test_a_missing_package_is_named(name, package, monkeypatch):
    """Without its package a metric says which extra to install."""
    for module in [module for module in sys.modules if module.startswith(package)]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"tabon\[metrics\]"):
        load_metric(name)
