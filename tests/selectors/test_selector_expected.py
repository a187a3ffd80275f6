"""What a report should hold: naive Bayes over observations and over words."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.method.bank import TransitionBank
from tabon.selectors import make_batch
from tabon.selectors.fused.expectation import expected_distances, f1_distances, habits
from tabon.selectors.fused.expected_labels import FOUND, IMAGINED, PRIOR_COUNTS, ExpectedLabels, held
from tabon.selectors.fused.expected_words import FAITHFUL, KNOWN, ExpectedWords, words_of
from tabon.text.observations import OBSERVATIONS, label_text
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

SETTINGS = SimulationSettings(patients=400, num_candidates=4)
ENCODER = load_encoder("hashing")
TRAINING = [transition_from_record(record) for record in simulate_transitions(SETTINGS, "train")]
LABELS = st.lists(st.booleans(), min_size=14, max_size=14)


@pytest.fixture(scope="module")
def bank():
    """Return a simulated bank."""
    return TransitionBank.build(TRAINING, encoder=ENCODER)


@pytest.fixture(scope="module")
def queries():
    """Return simulated queries."""
    return [query_from_record(record) for record in simulate_queries(SETTINGS, "test")]


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=5))
def test_the_distance_is_one_less_f1(rows):
    """It agrees with F1 written out, and equal reports are at 0."""
    left, right = np.array(rows).swapaxes(0, 1)
    for one, other, found in zip(left, right, f1_distances(left, right), strict=True):
        total = one.sum() + other.sum()
        f1 = 2 * (one & other).sum() / total if total else 1.0
        assert found == pytest.approx(1 - f1)
    np.testing.assert_allclose(f1_distances(left, left), 0.0, atol=1e-12)


@given(LABELS, LABELS)
def test_where_nothing_is_in_doubt_the_expected_distance_is_the_distance(draft, truth):
    """Probabilities of 0 and 1 give 1 - F1."""
    left, right = np.array([draft]), np.array([truth])
    if left.any() or right.any():
        found = expected_distances(left, right.astype(float))
        np.testing.assert_allclose(found, f1_distances(left, right), atol=1e-12)


def test_a_report_holds_what_its_sentences_hold(queries):
    """Labels put together from sentences are the labels of the text; no sentence, no label."""
    texts = [
        draft.section(section) for query in queries for draft in query.candidates for section in SECTIONS
    ]
    found = held(split_sentences(text) for text in texts)
    assert found.tolist() == [list(label_text(text).held()) for text in texts]
    assert not held([()]).any()


def test_what_is_expected_is_bayes_written_out():
    """Odds that the bank gives a prior like this one, times what each draft is worth as a witness."""
    prior = np.zeros((8, len(OBSERVATIONS)), dtype=bool)
    current = prior.copy()
    prior[:4, 0], current[:3, 0], current[4, 0] = True, True, True
    found = habits(prior, current, found=FOUND, imagined=IMAGINED)
    ever = (4 + 1) / (8 + 2)
    after = (3 + 2 * ever) / (4 + 2)
    for trust in (0.0, 0.5, 1.0, 2.0):
        chances = found.expected(
            prior[:1], np.array([trust]), np.array([[2.0] + [0.0] * 13]), np.array([3.0])
        )
        odds = (ever / (1 - ever)) ** (1 - trust) * (after / (1 - after)) ** trust
        odds *= (FOUND / IMAGINED) ** 2 * (1 - FOUND) / (1 - IMAGINED)
        assert chances[0, 0] == pytest.approx(odds / (1 + odds))


def test_more_drafts_and_the_prior_make_an_observation_likelier(bank, queries):
    """A finding of most drafts and the prior puts drafts ahead; a prior that is not there says nothing."""
    ill = Report(findings="There is a large left pleural effusion.", impression="Left pleural effusion.")
    well = Report(findings="The lungs are clear.", impression="No acute disease.")
    query = replace(queries[0], prior=(ill,), candidates=(ill, ill, well), draft_facts=())
    batch = make_batch([query, replace(query, prior=()), replace(query, prior=(well,))], bank, ENCODER)
    for part in (ExpectedLabels(bank), ExpectedWords(bank)):
        by_prior, by_drafts = (found.reshape(3, 3) for found in part.distances(batch, "findings"))
        assert by_drafts[0].tolist() == by_drafts[1].tolist() == by_drafts[2].tolist()
        assert by_drafts[0, 2] > by_drafts[0, 0]
        lead = by_prior[:, 2] - by_prior[:, 0]
        assert lead[0] > lead[1] > lead[2]


def test_the_prior_counts_twice_in_observations(bank, queries):
    """`PRIOR_COUNTS` is the weight of the prior's evidence; drafts are heard apart from it."""
    batch = make_batch(queries[:3], bank, ENCODER)
    part = ExpectedLabels(bank)
    drafts, priors = (
        held(both["findings"] + both["impression"] for both in one) for one in (batch.drafts, batch.priors)
    )
    said = drafts.reshape(3, 4, 14).sum(axis=1).astype(float)
    found = part.distances(batch, "findings")
    for side, counts, votes in zip(found, (PRIOR_COUNTS, 0.0), (0.0, 1.0), strict=True):
        chances = part._habits.expected(priors, np.full(3, counts), votes * said, np.full(3, votes * 4))
        expected = expected_distances(drafts, np.repeat(chances, 4, axis=0)) / part._habits.spread
        np.testing.assert_allclose(side, expected, atol=1e-12)


def words_by_hand(drafts, prior, trust, votes):
    """Expected words as docs/decisions/fused.md writes them, word by word, before the spread."""
    pairs = [
        (words_of(split_sentences(one.prior.findings)), words_of(split_sentences(one.current.findings)))
        for one in TRAINING
        if one.prior.findings and one.current.findings
    ]
    counts = Counter(word for _, current in pairs for word in current)
    chances = {}
    for word, count in counts.items():
        if count >= KNOWN:
            ever = (count + 1) / (len(pairs) + 2)
            alike = [current for before, current in pairs if (word in before) == (word in prior)]
            after = (sum(word in current for current in alike) + 2 * ever) / (len(alike) + 2)
            odds = (ever / (1 - ever)) ** (1 - trust) * (after / (1 - after)) ** trust
            for draft in drafts if votes else ():
                anybodys = (1 - FAITHFUL) * ever
                own = FAITHFUL + anybodys
                odds *= own / anybodys if word in draft else (1 - own) / (1 - anybodys)
            chances[word] = odds / (1 + odds)
    agreed = [2 * sum(chances.get(word, 0) for word in draft) for draft in drafts]
    return [
        1 - both / (len(draft) + sum(chances.values())) for both, draft in zip(agreed, drafts, strict=True)
    ]


@pytest.mark.parametrize("votes", [False, True])
def test_expected_words_are_those_counted_by_hand(bank, queries, votes):
    """Word by word, from the reports: the same distances; strange words make a draft longer."""
    first = queries[0]
    odd = Report(findings=f"{first.candidates[0].findings} Zyzzyva qwertz.")
    query = replace(first, candidates=(*first.candidates, odd), draft_facts=())
    part, batch = ExpectedWords(bank), make_batch([query], bank, ENCODER)
    found = part.distances(batch, "findings")[votes] * part._vocabularies["findings"].habits.spread
    drafts = [words_of(split_sentences(draft.findings)) for draft in query.candidates]
    expected = words_by_hand(drafts, words_of(split_sentences(query.prior.findings)), not votes, votes)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found[-1] > found[0]


def test_words_are_asked_query_by_query(bank, queries):
    """Company and the order of drafts change no bit; a draft without the section has no distance."""
    lacking = replace(queries[1], candidates=(*queries[1].candidates, Report()), draft_facts=())
    part = ExpectedWords(bank)
    turned = replace(queries[0], candidates=queries[0].candidates[::-1], draft_facts=())
    asked = ([queries[0], lacking], [lacking], [turned])
    answers = (part.distances(make_batch(each, bank, ENCODER), "impression") for each in asked)
    for together, alone, back in zip(*answers, strict=True):
        np.testing.assert_array_equal(together[4:], alone)
        assert np.isnan(together[-1])
        np.testing.assert_array_equal(back[::-1], together[:4])


def test_a_bank_that_knows_no_words_prefers_no_draft(queries):
    """Two transitions make no word known: every draft is as far."""
    small = TransitionBank.build(TRAINING[:2], encoder=ENCODER)
    for found in ExpectedWords(small).distances(make_batch(queries[:1], small, ENCODER), "findings"):
        assert len(set(found.tolist())) == 1
