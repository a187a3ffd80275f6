"""Equation 1: distinct sentences once, canonical order, equal text equal bits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.method.sentence_sets import RaggedSets, embed, sentence_set

sentences = st.lists(st.text(max_size=12), min_size=1, max_size=8)
HASHING = load_encoder("hashing")


class CountingEncoder:
    """Counts how often each sentence is encoded."""

    fingerprint = HASHING.fingerprint

    def __init__(self):
        self.seen = []

    def encode(self, texts):
        """Encode and remember."""
        self.seen += texts
        return HASHING.encode(texts)


@given(sentences)
def test_a_set_is_the_embedded_sentences_in_canonical_order(texts):
    """E^S(r) holds one unit row per sentence, repeated ones kept, in the order of the text (eq. 1)."""
    found = sentence_set(texts, HASHING)
    np.testing.assert_array_equal(found, HASHING.encode(sorted(texts)))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)


@given(sentences, st.randoms())
def test_the_order_of_sentences_does_not_matter(texts, random):
    """A shuffled report is the same set, bit for bit."""
    shuffled = random.sample(texts, len(texts))
    np.testing.assert_array_equal(sentence_set(texts, HASHING), sentence_set(shuffled, HASHING))


def test_each_distinct_sentence_is_encoded_once():
    """Repeats and known sentences cost nothing."""
    encoder = CountingEncoder()
    known = {"c": HASHING.encode(["c"])[0]}
    table = embed(["b", "a", "b", "c", "a"], encoder, known=known)
    assert table.sentences == ("a", "b", "c")
    assert encoder.seen == ["a", "b"]


def test_a_store_saves_the_second_encoding(tmp_path):
    """What is in the store is not encoded again, and comes back bit for bit."""
    store = SentenceStore(tmp_path / "store.sqlite")
    first = embed(["a", "b"], CountingEncoder(), store=store)
    encoder = CountingEncoder()
    second = embed(["b", "a", "c"], encoder, store=store)
    assert encoder.seen == ["c"]
    np.testing.assert_array_equal(first.vectors, second.vectors[:2])


@given(st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=8), st.data())
def test_ragged_sets_are_the_lists_they_were_made_of(lists, data):
    """Lengths, single sets and selections of sets all agree with plain lists."""
    ragged = RaggedSets.of(lists)
    assert [ragged[i].tolist() for i in range(len(ragged))] == [sorted(row) for row in lists]
    assert ragged.lengths.tolist() == [len(row) for row in lists]
    if lists:
        rows = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=6))
        taken = ragged.take(np.array(rows, dtype=np.int64))
        assert [taken[i].tolist() for i in range(len(taken))] == [sorted(lists[row]) for row in rows]


def test_progress_reaches_its_total():
    """The last report of progress says that all is done."""
    calls = []
    embed(["a", "b"], HASHING, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (2, 2)


def test_sets_remember_the_order_of_the_report():
    """Rows ascend for the arithmetic; the order in which they were written is kept and taken along."""
    sets = RaggedSets.of([[3, 1], [], [2, 2, 0]])
    assert sets[0].tolist() == [1, 3]
    assert sets.as_written(0).tolist() == [3, 1]
    assert sets.take(np.array([2, 0])).as_written(0).tolist() == [2, 2, 0]
    assert RaggedSets(sets.ids, sets.offsets).as_written(0).tolist() == [1, 3]
