"""F1 from label counts is scikit-learn's F1, for any set of reports and any resample of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import f1_score

from tabon.errors import BadInputError
from tabon.metrics.labels import FIVE, STATISTICS, label_scores, label_statistics
from tabon.text.observations import OBSERVATIONS

SCORES = {score.name: score.value for score in label_scores("x")}
FIVE_COLUMNS = [OBSERVATIONS.index(name) for name in FIVE]


@st.composite
def label_pairs(draw):
    """Draw the labels of a few references and drafts, rare or common."""
    shape = (draw(st.integers(1, 6)), 14)
    matrices = arrays(bool, shape, elements=st.booleans(), fill=st.just(draw(st.booleans())))
    return draw(matrices), draw(matrices)


def as_sklearn(reference, candidate, name):
    """Return scikit-learn's answer for a score's name."""
    _, observations, average = name.split("-")
    columns = FIVE_COLUMNS if observations == "5" else slice(None)
    return f1_score(reference[:, columns], candidate[:, columns], average=average, zero_division=0)


def test_the_scores_are_these():
    """Fourteen and five observations, four averages each."""
    averages = ("micro", "macro", "weighted", "samples")
    assert set(SCORES) == {f"x-{n}-{average}" for n in (14, 5) for average in averages}


@pytest.mark.parametrize("name", SCORES)
@settings(max_examples=30)
@given(labels=label_pairs())
def test_equals_scikit_learn(name, labels):
    """Each average of each subset agrees, where nothing is there to find too."""
    rows = label_statistics(*labels)
    assert rows.shape == (len(labels[0]), len(STATISTICS))
    found = SCORES[name](rows.sum(axis=0), np.array(float(len(rows))))
    np.testing.assert_allclose(found, as_sklearn(*labels, name), atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_resamples_are_scored_at_once(name):
    """Sums over leading axes give what each resample gives alone."""
    rng = np.random.default_rng(5)
    reference, candidate = rng.random((2, 30, 14)) < 0.3
    rows = label_statistics(reference, candidate)
    picks = rng.integers(30, size=(4, 3, 30))
    together = SCORES[name](rows[picks].sum(axis=2), np.full((4, 3), 30.0))
    for place in np.ndindex(4, 3):
        expected = as_sklearn(reference[picks[place]], candidate[picks[place]], name)
        np.testing.assert_allclose(together[place], expected, atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_no_report_has_no_score(name):
    """Nothing counted is NaN, without a warning."""
    assert np.isnan(SCORES[name](np.zeros(len(STATISTICS)), np.array(0.0)))


def test_other_shapes_are_refused():
    """Thirteen columns are not the observations."""
    with pytest.raises(BadInputError, match="expected"):
        label_statistics(np.zeros((2, 13), dtype=bool), np.zeros((2, 13), dtype=bool))
