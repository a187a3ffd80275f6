"""The metric `labels`: counts of rule-based labels, against a slow count."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.metrics import Pair, load_metric
from tabon.metrics import labels as module
from tabon.text.observations import OBSERVATIONS, label_text

TEXTS = (
    "",
    "No acute disease.",
    "Cardiomegaly. Small left effusion.",
    "Possible pneumonia. No effusion.",
    "Left effusion with atelectasis. PICC line tip in the SVC.",
    "Heart size is normal. Nodule in the right upper lobe, pulmonary edema.",
)
pairs = st.builds(Pair, reference=st.sampled_from(TEXTS), candidate=st.sampled_from(TEXTS))
SCORES = [
    f"labels-{subset}-{average}"
    for subset in (14, 5)
    for average in ("micro", "macro", "weighted", "samples")
]


def held(text):
    """The observations of a text, uncertain ones too."""
    labels = label_text(text)
    return {name for name in OBSERVATIONS if labels[name] in ("positive", "uncertain")}


def value(name, rows):
    """One score of some rows."""
    scores = {score.name: score for score in load_metric("labels").scores}
    return float(scores[name].value(rows.sum(axis=0), np.array(float(len(rows)))))


def test_it_has_eight_scores_and_a_signature():
    """Names and signature say what is counted."""
    metric = load_metric("labels")
    assert [score.name for score in metric.scores] == SCORES
    assert metric.signature.startswith(
        "labels|rules:1|uncertain:positive|empty:no-label|splitter:tabon-sentences-1"
    )


@settings(deadline=None)
@given(st.lists(pairs, min_size=1, max_size=6))
def test_micro_f1_is_the_counted_one(batch):
    """Micro F1 is 2 hits over all labels of both sides, counted with sets."""
    hits = sum(len(held(pair.reference) & held(pair.candidate)) for pair in batch)
    total = sum(len(held(pair.reference)) + len(held(pair.candidate)) for pair in batch)
    expected = 2 * hits / total if total else 0.0
    assert value("labels-14-micro", load_metric("labels").measure(batch)) == pytest.approx(expected)


@settings(deadline=None)
@given(st.lists(pairs, max_size=6))
def test_a_row_is_the_same_in_any_company(batch):
    """The row of a pair does not depend on the other pairs; no pairs give no rows."""
    metric = load_metric("labels")
    rows = metric.measure(batch)
    assert rows.shape == (len(batch), len(metric.statistics))
    for pair, row in zip(batch, rows, strict=True):
        np.testing.assert_array_equal(metric.measure([pair])[0], row)


def test_what_is_uncertain_counts_as_there():
    """A doubt about pneumonia meets pneumonia; a denial does not."""
    sure, doubt, denied = "Pneumonia.", "Possible pneumonia.", "No pneumonia."
    rows = load_metric("labels").measure([Pair(reference=sure, candidate=text) for text in (doubt, denied)])
    assert [value("labels-14-micro", row[None]) for row in rows] == [1.0, 0.0]


def test_an_empty_draft_earns_nothing():
    """A draft without a sentence has no label, so it is not rewarded on a normal chest."""
    rows = load_metric("labels").measure([Pair(reference="No acute disease.", candidate="")])
    assert value("labels-14-micro", rows) == 0.0


def test_each_text_is_labelled_once(monkeypatch):
    """A reference that stands beside many drafts is not labelled again."""
    asked = []
    monkeypatch.setattr(module, "label_text", lambda text: asked.append(text) or label_text(text))
    load_metric("labels").measure([Pair(reference=TEXTS[2], candidate=text) for text in (*TEXTS, *TEXTS)])
    assert sorted(asked) == sorted(set(TEXTS))


def test_a_few_numbers():
    """Cardiomegaly and effusion against effusion, atelectasis and a line, by hand."""
    rows = load_metric("labels").measure([Pair(reference=TEXTS[2], candidate=TEXTS[4])])
    assert value("labels-14-micro", rows) == pytest.approx(2 / 5)
    assert value("labels-14-macro", rows) == pytest.approx(1 / 14)
    assert value("labels-5-micro", rows) == pytest.approx(2 / 4)
