"""Change words and the metric `temporal`: a table, the laws, and the simulated cohort's known courses."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.data.simulate import PROMPTS, SimulationSettings, simulate_queries
from tabon.metrics import Pair, load_metric
from tabon.text import change_words as module
from tabon.text.change_words import CHANGES, change_words, changes
from tabon.text.sentences import split_sentences

TABLE = [
    ("New left effusion.", {"new"}),
    ("Interval development of edema.", {"new"}),
    ("Opacity that was not evident before.", {"new"}),
    ("Interval placement of a PICC.", {"new"}),
    ("No new consolidation.", set()),
    ("Stable cardiomegaly.", {"stable"}),
    ("Effusion is unchanged.", {"stable"}),
    ("No significant interval change.", {"stable"}),
    ("Effusion is not significantly changed.", {"stable"}),
    ("Again seen is cardiomegaly.", {"stable"}),
    ("Persistent opacity.", {"stable"}),
    ("Effusion has not resolved.", {"stable"}),
    ("Edema has not improved.", {"stable"}),
    ("The tube remains in place.", {"stable"}),
    ("The heart remains normal.", set()),
    ("Improved aeration.", {"improved"}),
    ("Effusion has decreased.", {"improved"}),
    ("Nearly resolved edema.", {"improved"}),
    ("Increased lung volumes.", {"improved"}),
    ("Decreased lung volumes.", {"worse"}),
    ("Worsening edema.", {"worse"}),
    ("Effusion is larger.", {"worse"}),
    ("Right effusion is greater than left.", set()),
    ("The pneumothorax has resolved.", {"resolved"}),
    ("The tube is no longer seen.", {"resolved"}),
    ("Interval removal of the chest tube.", {"resolved"}),
    ("The tube was repositioned.", {"moved"}),
    ("Compared with the prior study, clear lungs.", set()),
    ("Follow-up to resolution is recommended.", set()),
    ("Radiographs are recommended to document improvement.", set()),
    ("Findings are better seen on CT.", set()),
    ("Hyperinflation with increased AP diameter.", set()),
    ("The aorta is unfolded and the hemidiaphragm elevated.", set()),
    ("", set()),
]
sentences = st.sampled_from([text for text, _ in TABLE])
reports = st.lists(sentences, max_size=4).map(" ".join)
pairs = st.builds(Pair, reference=reports, candidate=reports)


def slow_f1(reference, candidate):
    """F1 by precision and recall over the kinds of change; None where neither text tells of one."""
    if not reference and not candidate:
        return None
    hits = sum(kind in candidate for kind in reference)
    if hits == 0:
        return 0.0
    precision, recall = hits / len(candidate), hits / len(reference)
    return 2 * precision * recall / (precision + recall)


def scores(batch):
    """Both scores of some pairs."""
    metric = load_metric("temporal")
    sums, count = metric.measure(batch).sum(axis=0), np.array(float(len(batch)))
    return {score.name: float(score.value(sums, count)) for score in metric.scores}


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_change_words(text, expected):
    """The table's sentences tell of the table's changes."""
    assert changes(text) == expected


def test_a_look_at_the_prior_is_found_but_is_no_change():
    """Flags can see that a draft speaks of a prior that it was not given."""
    found = change_words("No new effusion compared with the prior study.")
    assert {word.change for word in found} == {"compared"}
    assert "compared" not in CHANGES


@settings(deadline=None)
@given(reports)
def test_words_stand_where_they_are_said_to_stand(text):
    """Each word is in its sentence, at its place."""
    split = split_sentences(text)
    for word in change_words(text):
        assert split[word.sentence].lower().startswith(word.text, word.start)


@settings(deadline=None)
@given(st.text(st.characters()))
def test_any_text_may_come(text):
    """Nothing raises, and asking twice gives the same, remembered or not."""
    once = change_words(text)
    module._in_sentence.cache_clear()
    assert change_words(text) == once


def test_the_simulated_courses_are_found():
    """In drafts of every prompt, the changes told are those of the known courses, all and no other."""
    told = 0
    for prompt in PROMPTS:
        for query in simulate_queries(SimulationSettings(patients=900, prompt=prompt, num_candidates=4)):
            for draft in query["candidates"]:
                courses = {fact.rpartition(": ")[2] for fact in draft["state"]} & set(CHANGES)
                assert changes(draft["text"]) - {"stable"} == courses
                told += len(courses)
    assert told > 60


@settings(deadline=None)
@given(st.lists(pairs, min_size=1, max_size=6))
def test_scores_are_means_of_the_slow_f1(batch):
    """One score is the mean where there is an F1, the other counts 1 where there is none."""
    each = [slow_f1(changes(pair.reference), changes(pair.candidate)) for pair in batch]
    told = [value for value in each if value is not None]
    found = scores(batch)
    assert found["temporal-f1-empty-1"] == pytest.approx((sum(told) + len(each) - len(told)) / len(each))
    if told:
        assert found["temporal-f1"] == pytest.approx(sum(told) / len(told))
    else:
        assert math.isnan(found["temporal-f1"])


@settings(deadline=None)
@given(st.lists(pairs, max_size=6))
def test_a_row_is_the_same_in_any_company(batch):
    """The row of a pair does not depend on the other pairs; no pairs give no rows and no score."""
    metric = load_metric("temporal")
    rows = metric.measure(batch)
    assert rows.shape == (len(batch), 2)
    for pair, row in zip(batch, rows, strict=True):
        np.testing.assert_array_equal(metric.measure([pair])[0], row)
    if not batch:
        assert all(math.isnan(value) for value in scores(batch).values())


def test_silence_is_not_rewarded_unless_the_name_says_so():
    """Many pairs without change words leave `temporal-f1` alone and lift the other score."""
    wrong = Pair(reference="New effusion.", candidate="Stable effusion.")
    silent = Pair(reference="Effusion.", candidate="Clear lungs.")
    assert scores([wrong, *[silent] * 9]) == {"temporal-f1": 0.0, "temporal-f1-empty-1": 0.9}


def test_scores_work_on_stacked_sums():
    """Sums of any leading shape give values of that shape."""
    sums = np.arange(24.0).reshape(3, 4, 2)
    for score in load_metric("temporal").scores:
        assert score.value(sums, np.full((3, 4), 30.0)).shape == (3, 4)


def test_the_signature_names_the_lexicon():
    """The version of the words and of the splitter are in it."""
    signature = load_metric("temporal").signature
    assert signature.startswith("temporal|words:1|sets:kinds-of-change|splitter:tabon-sentences-1")
