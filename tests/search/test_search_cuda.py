"""The product on another device finds the same neighbours, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.errors import TabonError
from tabon.method.nearest import ExactIndex
from tabon.search import open_search
from tabon.search.cuda import TorchIndex
from unit_rows import unit

torch = pytest.importorskip("torch")


def assert_same(rows, queries, k):
    """Both indexes give the same bits."""
    exact = ExactIndex(rows).search(queries, k)
    found = TorchIndex(rows, "cpu").search(queries, k)
    np.testing.assert_array_equal(found.rows, exact.rows)
    assert found.distances.tobytes() == exact.distances.tobytes()


@given(st.integers(0, 2**32 - 1), st.integers(1, 400), st.integers(1, 40), st.integers(1, 10))
@settings(max_examples=60, deadline=None)
def test_any_bank_and_any_k(seed, count, queries, k):
    """Copies, ties and small banks included."""
    rng = np.random.default_rng(seed)
    rows = unit(rng, (count, 16))[rng.integers(0, count, count)]
    rows[rng.random(count) < 0.3] = rows[0]
    asked = np.concatenate([unit(rng, (queries, 16)), rows[:3]])
    assert_same(rows, asked, min(k, count))


def test_many_blocks_side_by_side(monkeypatch):
    """More queries than fit one block."""
    monkeypatch.setattr("tabon.search.cuda.SIMILARITIES", 1)
    rng = np.random.default_rng(3)
    assert_same(unit(rng, (3000, 32)), unit(rng, (100, 32)), 10)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_named():
    """One sentence, with what to do."""
    with pytest.raises(TabonError, match="leave --search out"):
        open_search("cuda")
