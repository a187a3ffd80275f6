"""ModeX: its graph, its cuts and its mode, against loops and cases that can be checked by hand."""

import random
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import eigh, helmert

from tabon import Query, Report, Transition, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries
from tabon.errors import BadInputError
from tabon.selectors import Selector, load_scorer
from tabon.selectors.modex import (
    conductance,
    dominant_cluster,
    fiedler_vector,
    grams,
    mode_distances,
    similarity_graph,
)
from tabon.text.records import query_from_record

QUERIES = [
    query_from_record(record)
    for record in simulate_queries(SimulationSettings(patients=30, splits=(0.8, 0.0, 0.2)), "test")
][:6]
CLEAR, EFFUSION = Report("Clear lungs.", "Normal."), Report("New right effusion.", "Effusion.")


@pytest.fixture(scope="module")
def bank():
    """A bank of one transition, without impressions."""
    only = Transition(id="t", prior=Report("Clear.", ""), current=Report("New effusion.", ""))
    return TransitionBank.build([only], encoder="hashing")


def chosen(bank, *queries):
    """Return the selections of ModeX."""
    return Selector(bank, load_scorer("modex", bank)).select_many(queries)


def query(*drafts, prior=()):
    """Return a query of these drafts."""
    return Query(id="q", prior=prior, candidates=drafts)


def words_of(text):
    """The words of a text, small, without punctuation."""
    return "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()


def similarity_as_loops(one, other):
    """Jaccard of 1-, 2- and 3-grams, summed."""
    total = 0.0
    for order in (1, 2, 3):
        left, right = (
            {" ".join(words[i : i + order]) for i in range(len(words)) if i + order <= len(words)}
            or {" ".join(words)}
            for words in (words_of(one), words_of(other))
        )
        total += len(left & right) / len(left | right)
    return total


def cluster_as_loops(weights, members):
    """Split by the sign of the Fiedler vector until a cut's conductance is over 0.8; None if ambiguous."""
    if len(members) <= 2:
        return members
    laplacian = np.array(
        [
            [sum(weights[i][k] for k in members if k != i) if i == j else -weights[i][j] for j in members]
            for i in members
        ]
    )
    upright = helmert(len(members)).T  # columns at a right angle to the constant
    values, vectors = eigh(upright.T @ laplacian @ upright)
    if values[1] - values[0] < 1e-9:
        return None  # any vector of a plane would do
    vector = upright @ vectors[:, 0]
    one = [member for member, value in zip(members, vector, strict=True) if value >= 0]
    other = [member for member in members if member not in one]
    across = sum(weights[i][j] for i in one for j in other)
    volumes = [sum(weights[i][j] for i in side for j in members if j != i) for side in (one, other)]
    if min(volumes) > 0 and across / min(volumes) > 0.8:
        return members
    inner = [sum(weights[i][j] for i in side for j in side if i != j) for side in (one, other)]
    return cluster_as_loops(weights, one if (len(one), inner[0]) > (len(other), inner[1]) else other)


def test_the_mode_is_that_of_the_loops(bank):
    """On simulated drafts: the same cluster, the same centre, the same distances to it."""
    compared = 0
    for asked, selection in zip(QUERIES, chosen(bank, *QUERIES), strict=True):
        for section, part in selection.sections.items():
            texts = [draft.section(section) for draft in asked.candidates]
            weights = [[similarity_as_loops(one, other) for other in texts] for one in texts]
            cluster = cluster_as_loops(weights, list(range(len(texts))))
            if cluster is None:
                continue
            compared += 1
            degrees = {i: sum(weights[i][j] for j in cluster if j != i) for i in cluster}
            centres = [i for i in cluster if degrees[i] > max(degrees.values()) - 1e-12]
            expected = [min(1 - row[centre] / 3 for centre in centres) for row in weights]
            np.testing.assert_allclose(part.distances, expected, atol=1e-12)
            inside = {tuple(words_of(texts[i])) for i in cluster}
            assert part.parts["in-mode"] == tuple(float(tuple(words_of(text)) in inside) for text in texts)
    assert compared >= len(QUERIES)


def test_the_larger_family_wins():
    """Five drafts of one kind and three of another: the mode is one of the five."""
    many = [f"The heart is large and the {side} lung base is hazy." for side in ("left", "right", "far")]
    many += [f"The heart is large and the lung base is {kind}." for kind in ("hazy", "clear")]
    few = [f"Interval removal of a {kind} tube, no pneumothorax." for kind in ("chest", "feeding", "small")]
    distances, inside = mode_distances([*few, *many])
    assert int(np.argmin(distances)) >= 3
    assert inside[:3].tolist() == [0.0, 0.0, 0.0]
    assert (distances[:3] > distances[3:].max()).all()


def test_a_planted_cut_is_found():
    """Two cliques with a weak bridge: the Fiedler vector parts them, the larger one stays."""
    graph = np.zeros((7, 7))
    graph[:4, :4], graph[4:, 4:] = 1.0, 1.0
    np.fill_diagonal(graph, 0.0)
    graph[3, 4] = graph[4, 3] = 0.1
    signs = fiedler_vector(graph) >= 0
    assert len(set(signs[:4])) == len(set(signs[4:])) == 1
    assert conductance(graph, signs) == pytest.approx(0.1 / 6.1)
    assert set(dominant_cluster(graph, np.arange(7))) <= {0, 1, 2, 3}


def test_a_graph_in_pieces_is_parted_along_them():
    """Without any bridge the Laplacian has two constant vectors; the cut still runs between the pieces."""
    graph = np.zeros((5, 5))
    graph[:2, :2], graph[2:, 2:] = 1.0, 1.0
    np.fill_diagonal(graph, 0.0)
    signs = fiedler_vector(graph) >= 0
    assert signs.tolist() in ([True, True, False, False, False], [False, False, True, True, True])
    assert conductance(graph, signs) == 0.0


def test_the_sign_of_the_fiedler_vector_is_fixed():
    """Its largest entry is positive, whatever the solver returns."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        graph = np.triu(rng.random((6, 6)), 1)
        vector = fiedler_vector(graph + graph.T)
        assert vector[np.abs(vector).argmax()] > 0
        assert abs(vector.sum()) < 1e-9


def test_grams_of_short_texts_are_the_whole_text():
    """One word is like itself in all three orders, and like no other word in any."""
    one, other = grams(("normal",)), grams(("clear",))
    assert similarity_graph([one, one, other]).tolist() == [[0, 3, 0], [3, 0, 0], [0, 0, 0]]


SENTENCES = ("clear lungs", "no effusion", "new right effusion", "large heart", "stable lines")


@given(st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4), min_size=1, max_size=9))
def test_distances_go_with_the_text_and_not_with_its_place(drafts):
    """Shuffled drafts keep their distances to the last bit; equal drafts have equal ones; one is 0."""
    texts = [". ".join(draft) for draft in drafts]
    distances, inside = mode_distances(texts)
    order = random.Random(len(texts)).sample(range(len(texts)), len(texts))
    turned, turned_inside = mode_distances([texts[j] for j in order])
    assert turned.tolist() == distances[order].tolist()
    assert turned_inside.tolist() == inside[order].tolist()
    assert distances.min() == 0.0
    assert ((distances >= 0) & (distances <= 1)).all()
    for text in set(texts):
        assert len({float(value) for value, one in zip(distances, texts, strict=True) if one == text}) == 1


def test_neither_batch_nor_prior_matters(bank):
    """Alone, among others, with other priors or with none: the same distances."""
    together = chosen(bank, *QUERIES)
    for asked, selection in zip(QUERIES, together, strict=True):
        assert chosen(bank, asked) == [selection]
        [without] = chosen(bank, replace(asked, prior=()))
        [older] = chosen(bank, replace(asked, prior=(EFFUSION, CLEAR)))
        assert without.total_distances == older.total_distances == selection.total_distances


def test_one_and_two_drafts(bank):
    """One draft is its own mode; two are one cluster with two centres, and the first is taken."""
    [one] = chosen(bank, query(EFFUSION))
    assert (one.selected, one.total_distances) == (0, (0.0,))
    [two] = chosen(bank, query(EFFUSION, CLEAR))
    assert (two.selected, two.tied, two.total_distances) == (0, True, (0.0, 0.0))


def test_bad_drafts(bank):
    """Copies tie; empty drafts and missing sections stand behind; all empty is an abstention."""
    [copies] = chosen(bank, query(EFFUSION, EFFUSION, EFFUSION, EFFUSION))
    assert (copies.selected, copies.tied, set(copies.total_distances)) == (0, True, {0.0})
    [selection] = chosen(bank, query(Report(), Report("", "Normal."), CLEAR, CLEAR, EFFUSION))
    assert selection.selected == 2
    assert selection.sections["findings"].distances == (2.0, 2.0, 0.0, 0.0, 1.0)
    [nothing] = chosen(bank, query(Report(), Report("None.", "")))
    assert nothing.abstained == "all-drafts-empty"


def test_drafts_without_a_common_word_keep_their_distances_in_any_order():
    """A graph without edges can be cut anywhere; where it is cut goes by the texts, not by their places."""
    texts = ["Normal.", "Effusion.", "Edema.", "Mass."]
    found = [dict(zip(order, mode_distances(list(order))[0], strict=True)) for order in permutations(texts)]
    assert all(one == found[0] for one in found)
    assert set(found[0].values()) == {0.0, 1.0}


def test_modex_has_no_variants(bank):
    """What stands after the colon is refused; the signature names the threshold."""
    with pytest.raises(BadInputError, match="modex has no variants"):
        load_scorer("modex:rouge", bank)
    signature = Selector(bank, load_scorer("modex", bank)).signature
    assert signature.startswith("selector:modex|grams:lower-words-1-2-3|conductance:0.8|")
