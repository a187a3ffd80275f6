"""The product on another device finds the same neighbours, bit for bit."""

import platform

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.errors import TabonError
from tabon.method.nearest import ExactIndex
from tabon.search import open_search
from tabon.search.cuda import TorchIndex, pair_products, split, split_slack
from unit_rows import unit

torch = pytest.importorskip("torch")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def assert_same(rows, queries, k):
    """Both indexes give the same bits."""
    exact = ExactIndex(rows).search(queries, k)
    found = TorchIndex(rows, DEVICE).search(queries, k)
    np.testing.assert_array_equal(found.rows, exact.rows)
    assert found.distances.tobytes() == exact.distances.tobytes()


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([16, 20, 48]),
    st.integers(1, 400),
    st.integers(1, 40),
    st.integers(1, 10),
)
@settings(max_examples=60, deadline=None)
def test_any_bank_and_any_k(seed, dimension, count, queries, k):
    """Copies, ties and small banks included."""
    rng = np.random.default_rng(seed)
    rows = unit(rng, (count, dimension))[rng.integers(0, count, count)]
    rows[rng.random(count) < 0.3] = rows[0]
    asked = np.concatenate([unit(rng, (queries, dimension)), rows[:3]])
    assert_same(rows, asked, min(k, count))


def test_many_blocks_side_by_side(monkeypatch):
    """More queries than fit one block."""
    monkeypatch.setattr("tabon.search.cuda.SIMILARITIES", 1)
    rng = np.random.default_rng(3)
    assert_same(unit(rng, (3000, 32)), unit(rng, (100, 32)), 10)


@pytest.mark.parametrize("dimension", [16, 384, 768])
def test_pairs_are_added_as_numpy_adds(dimension):
    """On a processor of the usual kind the device's products of pairs are numpy's, bit for bit."""
    a, b = np.random.default_rng(5).standard_normal((2, 500, dimension), dtype=np.float32)
    ours = pair_products(torch.from_numpy(a).to(DEVICE), torch.from_numpy(b).to(DEVICE))
    if platform.machine() != "x86_64":
        pytest.skip("numpy adds in another order here, and the processor measures")
    assert ours.cpu().numpy().tobytes() == np.einsum("pd,pd->p", a, b).tobytes()


@pytest.mark.parametrize("dimension", [16, 384, 768])
def test_split_rows_are_off_by_less_than_the_slack(dimension):
    """Also where all numbers of a row are equal, and every addition of the product rounds alike."""
    rng = np.random.default_rng(6)
    rows = np.concatenate([unit(rng, (300, dimension)), np.full((1, dimension), dimension**-0.5, "f4")])
    high, low = split(torch.from_numpy(rows))
    left, right = torch.cat([high, high, low], dim=1).float(), torch.cat([high, low, high], dim=1).float()
    exact = rows.astype(np.float64) @ rows.astype(np.float64).T
    assert 2 * np.abs((left @ right.T).numpy() - exact).max() < split_slack(dimension) < 1e-3
    kept = (high.double() + low.double()).numpy() - rows
    assert (np.abs(kept) <= 2.0**-16 * np.abs(rows)).all()


@pytest.mark.parametrize("alike", [True, False])
def test_whoever_measures_the_bits_are_the_same(alike, monkeypatch):
    """Also where the device adds in another order than the processor."""
    monkeypatch.setattr(TorchIndex, "_same_bits", lambda *_: alike)
    rng = np.random.default_rng(4)
    assert_same(unit(rng, (2000, 64)), unit(rng, (50, 64)), 10)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_named():
    """One sentence, with what to do."""
    with pytest.raises(TabonError, match="leave --search out"):
        open_search("cuda")
