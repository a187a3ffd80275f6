"""Kappa and alpha equal what others work out: scikit-learn, the package krippendorff, printed examples."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.errors import UnknownNameError
from tabon.study.agreement import METRICS, alpha, coincidences, confusion, weighted_kappa

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/krippendorff.json").read_text())
PRINTED = (  # Krippendorff, Computing Krippendorff's Alpha-Reliability (2011): 4 observers, 12 units
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)


def units_of(rows):
    """Return units of rows of categories from 0, one column a reader, None where one is missing."""
    return [{str(place): one for place, one in enumerate(row) if one is not None} for row in rows]


@given(
    said=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=60), few=st.booleans()
)
def test_kappa_is_that_of_scikit_learn(said, few):
    """Quadratic weights, five categories or three; where all say one thing it is not defined."""
    metrics = pytest.importorskip("sklearn.metrics")
    categories = 3 if few else 5
    pairs = [(one % categories, other % categories) for one, other in said]
    tables = confusion(units_of(pairs), "0", "1", categories)
    found = float(weighted_kappa(tables.sum(axis=0)))
    one, other = zip(*pairs, strict=True)
    if len({*one, *other}) == 1:
        assert np.isnan(found)
    else:
        labels = list(range(categories))
        expected = metrics.cohen_kappa_score(one, other, labels=labels, weights="quadratic")
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("case", GOLDEN["cases"])
@pytest.mark.parametrize("metric", METRICS)
def test_alpha_is_that_of_the_package_krippendorff(case, metric):
    """Two to six readers, two to five categories, up to half of the judgements missing."""
    tables = coincidences(units_of(case["said"]), case["categories"])
    assert float(alpha(tables.sum(axis=0), metric)) == pytest.approx(case["alpha"][metric], abs=1e-12)


@pytest.mark.parametrize(("metric", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_the_printed_one(metric, printed):
    """Krippendorff's own example, to the three places that he prints."""
    rows = [[None if one is None else one - 1 for one in unit] for unit in zip(*PRINTED, strict=True)]
    tables = coincidences(units_of(rows), 5)
    assert tables.sum() == 40  # as printed: 40 pairable values
    assert float(alpha(tables.sum(axis=0), metric)) == pytest.approx(printed, abs=5e-4)


def test_tables_add_up_over_cases():
    """The measures of many tables at once are those of each: what a resampled case needs."""
    rng = np.random.default_rng(1)
    tables = confusion(units_of(rng.integers(0, 3, (40, 2)).tolist()), "0", "1", 3)
    weights = rng.integers(0, 3, (7, 40)).astype(float)
    sums = np.tensordot(weights, tables, axes=1)
    assert weighted_kappa(sums).tolist() == [float(weighted_kappa(one)) for one in sums]
    both = coincidences(units_of(rng.integers(0, 3, (40, 3)).tolist()), 3)
    sums = np.tensordot(weights, both, axes=1)
    assert alpha(sums).tolist() == pytest.approx([float(alpha(one)) for one in sums])


def test_nothing_to_compare_is_no_number():
    """No unit that two have judged, or one category for all: not a number, never 0 or 1."""
    assert np.isnan(alpha(coincidences([{"a": 1}, {"b": 2}], 3).sum(axis=0)))
    assert np.isnan(alpha(coincidences([{"a": 1, "b": 1}], 3).sum(axis=0)))
    assert np.isnan(weighted_kappa(confusion([{"a": 1}], "a", "b", 3).sum(axis=0)))
    with pytest.raises(UnknownNameError, match="unknown metric of alpha 'ratio'"):
        alpha(np.eye(2), "ratio")
