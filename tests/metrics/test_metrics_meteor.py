"""METEOR is NLTK's, and the words that it takes for synonyms are those of NLTK's WordNet reader."""

import re
import shutil
import sys
import tarfile
from collections import defaultdict
from contextlib import contextmanager
from functools import cache
from itertools import islice, pairwise
from pathlib import Path

import nltk
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.tokenize import wordpunct_tokenize
from nltk.translate.meteor_score import meteor_score

from openi import openi_reports
from tabon.errors import MetricUnavailableError, MissingExtraError
from tabon.metrics import Pair, load_metric
from tabon.metrics import meteor as meteor_module

ARCHIVE = Path(__file__).resolve().parents[3] / "shared" / "data" / "wordnet30_nltk_layout.tar.xz"
PARAMETERS = "alpha:0.9|beta:3.0|gamma:0.5|tokenizer:words-and-signs|case:lower|stemmer:porter"
TINY = [  # part of speech, the lemmas of one synset
    ("noun", ["lung", "organ"]),
    ("noun", ["heart", "organ", "blood_pump"]),
    ("noun", ["opacity", "shadow"]),
    ("noun", ["foot", "leg"]),
    ("verb", ["rise", "grow", "go_up"]),
    ("adj", ["large", "big"]),
    ("adj", ["dim(p)", "faint(a)"]),
    ("adv", ["slowly"]),
]
EXCEPTIONS = {"noun": "feet foot\n", "verb": "rose rise\nrisen rise\n", "adj": "", "adv": ""}
BUILT_IN = [
    Pair(reference=reference, candidate=candidate)
    for reference, candidate in [
        ("The lung is clear.", "The organ is clear."),
        ("A shadow rose slowly.", "Opacities grow slowly, slowly."),
        ("Large heart.", "Big organ."),
        ("Faint shadow at the feet", "dim opacity at the leg"),
        ("No effusion. No edema. No nodule.", "No nodule, no effusion."),
        ("Clear.", ""),
        ("", "Clear."),
        ("", ""),
    ]
]
VOCABULARY = "lung lungs organ heart opacity shadow shadows foot feet leg rose grows big large dim . no"
words = st.lists(st.sampled_from(VOCABULARY.split(" ")), max_size=12)
texts = words.map(" ".join) | st.text(st.characters(exclude_categories=()), max_size=20)
pairs = st.builds(Pair, reference=texts, candidate=texts)


def write_part(folder, part, letter, synsets):
    """Write the index, the synsets and the exceptions of one part of speech."""
    data, index = "  1 the licence\n", defaultdict(list)
    for lemmas in synsets:
        for lemma in lemmas:
            index[lemma.partition("(")[0]].append(f"{len(data):08d}")
        names = " ".join(f"{lemma} 0" for lemma in lemmas)
        data += f"{len(data):08d} 00 {letter} {len(lemmas):02x} {names} 000 | what it means  \n"
    lines = [f"{lemma} {letter} {len(at)} 0 {len(at)} 0 {' '.join(at)}  \n" for lemma, at in index.items()]
    (folder / f"data.{part}").write_text(data)
    (folder / f"index.{part}").write_text("  1 the licence\n" + "".join(lines))
    (folder / f"{part}.exc").write_text(EXCEPTIONS[part])


def write_wordnet(folder, synsets=TINY):
    """Write a small WordNet that NLTK's reader can read as well, and return its folder."""
    folder.mkdir(parents=True)
    for part, letter in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r")):
        write_part(folder, part, letter, [lemmas for kind, lemmas in synsets if kind == part])
    (folder / "lexnames").write_text("00\tall\t1\n")
    return folder


class Reader(WordNetCorpusReader):
    """NLTK's reader, without its slow map to other languages."""

    def map_wn(self, version="wordnet"):
        """Map nothing."""


@contextmanager
def reader(root):
    """NLTK's own reader of the WordNet under a folder, which must be on NLTK's path while it is read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nltk.data, "path", [*nltk.data.path, str(root)])
        yield Reader(str(root / "corpora" / "wordnet"), omw_reader=object())


@pytest.fixture(scope="module")
def tiny_root(tmp_path_factory):
    """A folder in NLTK's layout with the small WordNet."""
    root = tmp_path_factory.mktemp("tiny")
    write_wordnet(root / "corpora" / "wordnet")
    return root


@pytest.fixture(scope="module")
def tiny(tiny_root):
    """METEOR with the small WordNet."""
    return load_metric("meteor", model=tiny_root)


@pytest.fixture(scope="module")
def tiny_reader(tiny_root):
    """NLTK's reader of the small WordNet."""
    with reader(tiny_root) as found:
        yield found


@pytest.fixture(scope="module")
def whole_root(tmp_path_factory):
    """A folder in NLTK's layout with WordNet 3.0."""
    if not ARCHIVE.exists():
        pytest.skip(f"WordNet is not at {ARCHIVE}")
    root = tmp_path_factory.mktemp("whole")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root / "corpora", filter="data")
    return root


@pytest.fixture(scope="module")
def whole(whole_root):
    """METEOR with WordNet 3.0."""
    return load_metric("meteor", model=whole_root)


@pytest.fixture(scope="module")
def whole_reader(whole_root):
    """NLTK's reader of WordNet 3.0."""
    with reader(whole_root) as found:
        yield found


@cache
def openi_pairs():
    """Each of 150 reports as a draft of the one before it, both sections."""
    reports = [report for _, report in openi_reports()[:151]]
    return [
        Pair(reference=getattr(one, section), candidate=getattr(other, section))
        for section in ("findings", "impression")
        for one, other in pairwise(reports)
    ]


def by_nltk(some, wordnet):
    """METEOR of pairs as NLTK works it out, with NLTK's stemmer and reader."""
    tokens = re.compile(r"\w+|[^\w\s]+").findall
    return [
        meteor_score([tokens(pair.reference.lower())], tokens(pair.candidate.lower()), wordnet=wordnet)
        for pair in some
    ]


def single_words(synsets):
    """The lemmas without a blank in a list of synsets."""
    return {lemma.name() for synset in synsets for lemma in synset.lemmas() if "_" not in lemma.name()}


def score(metric, *, reference, candidate):
    """The score of one pair."""
    return metric.measure([Pair(reference=reference, candidate=candidate)]).item()


def test_built_in_sentences_score_as_in_nltk(tiny, tiny_reader):
    """Hand-made pairs with plurals, exceptions and synonyms score as in NLTK."""
    np.testing.assert_allclose(tiny.measure(BUILT_IN)[:, 0], by_nltk(BUILT_IN, tiny_reader), atol=1e-12)


@given(pair=pairs)
def test_any_text_scores_as_in_nltk(tiny, tiny_reader, pair):
    """So does any text; nothing warns."""
    np.testing.assert_allclose(tiny.measure([pair])[:, 0], by_nltk([pair], tiny_reader), atol=1e-12)


@pytest.mark.openi
def test_real_reports_score_as_in_nltk(whole, whole_reader):
    """300 pairs of real sections score as in NLTK with the whole WordNet 3.0."""
    np.testing.assert_allclose(
        whole.measure(openi_pairs())[:, 0], by_nltk(openi_pairs(), whole_reader), atol=1e-12
    )


@pytest.mark.openi
def test_words_of_reports_have_the_synonyms_of_nltk(whole, whole_reader):
    """Each word of 800 reports, and its stem, has the synonyms that NLTK's reader finds."""
    stem = nltk.stem.porter.PorterStemmer().stem
    read = " ".join(f"{report.findings} {report.impression}" for _, report in openi_reports()[:800])
    seen = set(read.lower().split())
    for word in seen | {stem(word) for word in seen}:
        assert single_words(whole.wordnet.synsets(word)) == single_words(whole_reader.synsets(word))


def test_lemmas_and_exceptions_have_the_synonyms_of_nltk(whole, whole_reader):
    """So have every 97th lemma of WordNet 3.0, its plural, and every 41st exception."""
    lemmas = list(islice(whole_reader.all_lemma_names(), 0, None, 97))
    exceptions = [form for part in whole_reader._exception_map.values() for form in part]
    for word in [*lemmas, *(f"{lemma}s" for lemma in lemmas), *exceptions[::41]]:
        assert single_words(whole.wordnet.synsets(word)) == single_words(whole_reader.synsets(word))


def test_synonyms_match_and_others_do_not(tiny):
    """One word of one: aligned in one chunk, so half; 0 where WordNet knows of nothing in common."""
    assert score(tiny, reference="lung", candidate="organ") == 0.5
    assert score(tiny, reference="leg", candidate="feet") == 0.5
    assert score(tiny, reference="lung", candidate="shadow") == 0


def test_words_that_the_stemmer_changes_have_no_synonyms(tiny):
    """NLTK looks synonyms up after stemming: "large" has become "larg", which WordNet does not know."""
    assert single_words(tiny.wordnet.synsets("large")) == {"large", "big"}
    assert score(tiny, reference="big", candidate="large") == 0


def test_a_text_and_itself_score_by_the_formula(tiny):
    """All of m words in one chunk: 1 - 0.5 / m**3."""
    assert score(tiny, reference="no focal opacity", candidate="No focal opacity") == pytest.approx(
        1 - 0.5 / 27
    )


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_the_tokens_are_wordpunct(text):
    """Of plain text the tokens are those of NLTK's wordpunct_tokenize, lower-cased."""
    assert meteor_module.words_and_signs(text) == wordpunct_tokenize(text.lower())


def test_reference_and_candidate_are_not_the_same_thing(tiny):
    """Recall weighs nine times as much as precision."""
    long, short = "no effusion no edema no nodule", "no nodule"
    assert score(tiny, reference=short, candidate=long) > score(tiny, reference=long, candidate=short) + 0.3


def test_nothing_is_worth_nothing_and_no_drafts_have_no_score(tiny):
    """Empty texts score 0, sums over no drafts NaN, no pairs give no rows."""
    np.testing.assert_array_equal(tiny.measure(BUILT_IN[-3:]), np.zeros((3, 1)))
    (only,) = tiny.scores
    assert only.name == "meteor"
    np.testing.assert_array_equal(only.value(np.array([[0.0], [1.0]]), np.array([0.0, 2.0])), [np.nan, 0.5])
    assert tiny.measure([]).shape == (0, 1)


@settings(max_examples=40)
@given(some=st.lists(pairs, min_size=2, max_size=6))
def test_a_row_does_not_depend_on_its_company(tiny, some):
    """The bits of a row are the same alone, and in the other order."""
    rows = tiny.measure(some)
    np.testing.assert_array_equal(tiny.measure(some[::-1]), rows[::-1])
    np.testing.assert_array_equal(tiny.measure(some[-1:])[0], rows[-1])


def test_long_texts_are_measured(tiny):
    """Twenty thousand words on each side, and one word of a hundred thousand letters."""
    long = " ".join(["lung", "heart", "shadow", "edema"] * 5_000)
    assert 0.4 < score(tiny, reference=long, candidate=long[5:]) < 1
    assert score(tiny, reference="a" * 100_000, candidate="b" * 100_000) == 0


def test_the_signature_is_the_committed_one(tiny):
    """Parameters, tokens and versions are in the line under the table, and so is the WordNet."""
    assert tiny.signature == f"meteor|{PARAMETERS}|wordnet:{tiny.wordnet.sha256[:12]}|nltk:3.10.4"
    assert (tiny.name, tiny.statistics) == ("meteor", ("meteor",))


def test_wordnet_3_0_has_the_committed_digest(whole):
    """The WordNet 3.0 that lies beside the project is the one that was measured with."""
    assert whole.signature == f"meteor|{PARAMETERS}|wordnet:841dfa40450b|nltk:3.10.4"


def test_another_wordnet_is_another_signature(tiny, tmp_path):
    """A synset less changes the digest."""
    other = load_metric("meteor", model=write_wordnet(tmp_path / "wordnet", TINY[1:]))
    assert other.signature != tiny.signature


def zipped(root):
    """Zip a folder's WordNet as NLTK's downloader leaves it, and remove the folder."""
    corpora = root / "corpora"
    shutil.make_archive(str(corpora / "wordnet"), "zip", root_dir=corpora, base_dir="wordnet")
    shutil.rmtree(corpora / "wordnet")


@pytest.mark.parametrize("layout", [".", "wordnet", "corpora/wordnet", "zip", "link"])
def test_wordnet_is_found_in_every_layout(tiny, tmp_path, layout):
    """The folder itself, a folder around it, NLTK's layout, its zip file and a link all do."""
    root = tmp_path / "root"
    write_wordnet(root / {"zip": "corpora/wordnet", "link": "."}.get(layout, layout))
    if layout == "zip":
        zipped(root)
    if layout == "link":
        (tmp_path / "link").symlink_to(root)
        root = tmp_path / "link"
    found = load_metric("meteor", model=root)
    assert found.signature == tiny.signature
    np.testing.assert_array_equal(found.measure(BUILT_IN), tiny.measure(BUILT_IN))


def test_nltk_s_search_path_is_used_and_left_alone(tiny, tiny_root, tmp_path, monkeypatch):
    """Without a folder the first WordNet on NLTK's path is taken; the path stays as it was."""
    path = [str(tmp_path), str(tiny_root)]
    monkeypatch.setattr(nltk.data, "path", list(path))
    assert load_metric("meteor").signature == tiny.signature
    assert nltk.data.path == path


@pytest.mark.parametrize("lost", ["everything", "data.verb"])
def test_without_wordnet_it_says_what_to_do(tiny_root, tmp_path, monkeypatch, lost):
    """An empty folder, and one that lacks a file, are refused; the search path is no way around it."""
    monkeypatch.setattr(nltk.data, "path", [str(tiny_root)])
    if lost != "everything":
        (write_wordnet(tmp_path / "wordnet") / lost).unlink()
    with pytest.raises(MetricUnavailableError, match=r"(?s)no WordNet in .*nltk\.downloader wordnet"):
        load_metric("meteor", model=tmp_path)
    monkeypatch.setattr(nltk.data, "path", [])
    with pytest.raises(MetricUnavailableError, match="empty search path"):
        load_metric("meteor")


def test_a_wordnet_with_changed_line_ends_is_refused(tmp_path):
    """Offsets that lead elsewhere are noticed, not read."""
    data = write_wordnet(tmp_path / "wordnet") / "data.noun"
    data.write_bytes(data.read_bytes().replace(b"\n", b"\r\n"))
    damaged = load_metric("meteor", model=tmp_path)
    with pytest.raises(MetricUnavailableError, match=r"data\.noun does not fit index\.noun"):
        score(damaged, reference="lung", candidate="organ")


def test_a_missing_package_is_named(monkeypatch, tiny_root):
    """Without NLTK METEOR says which extra to install."""
    monkeypatch.setitem(sys.modules, "nltk.translate.meteor_score", None)
    with pytest.raises(MissingExtraError, match=r"tabon\[metrics\]"):
        load_metric("meteor", model=tiny_root)


@given(pair=pairs)
def test_split_words_score_as_in_nltk(tiny_root, tiny_reader, pair):
    """`split_meteor` is NLTK's METEOR of the words between blanks; a sign stays at its word."""
    metric = load_metric("split_meteor", model=tiny_root)
    reference, candidate = pair.reference.lower().split(), pair.candidate.lower().split()
    expected = meteor_score([reference], candidate, wordnet=tiny_reader)
    assert metric.measure([pair]).item() == pytest.approx(expected, abs=1e-12)
    assert metric.signature.startswith("split_meteor|alpha:0.9|beta:3.0|gamma:0.5|tokenizer:white-space|")
    assert [each.name for each in metric.scores] == ["split_meteor"]
