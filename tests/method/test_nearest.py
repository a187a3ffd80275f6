"""Exact top-k: against a sorted list, with ties, in any blocks."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.errors import BadInputError
from tabon.method import nearest as module
from tabon.method import transitions
from tabon.method.nearest import ExactIndex, SectionBank, rounding_slack
from unit_rows import slow_top_k, unit


@given(st.integers(1, 700), st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_top_k_is_exact(size, queries, k, seed):
    """The k nearest rows and their distances are those of a full float64 sort."""
    rng = np.random.default_rng(seed)
    rows, asked = unit(rng, (size, 16)), unit(rng, (queries, 16))
    k = min(k, size)
    found = ExactIndex(rows).search(asked, k)
    distances, _ = slow_top_k(asked, rows, k)
    np.testing.assert_allclose(found.distances, distances, atol=2e-7)
    exact = np.clip(0.5 * (1.0 - asked.astype(float) @ rows.astype(float).T), 0.0, 1.0)
    np.testing.assert_allclose(np.take_along_axis(exact, found.rows, 1), distances, atol=2e-7)


@given(st.integers(1, 400), st.integers(1, 6), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_ties_go_to_the_lowest_row(size, kinds, k, seed):
    """Copies of a row are all found, lowest row numbers first."""
    rng = np.random.default_rng(seed)
    rows = np.eye(8, dtype=np.float32)[rng.integers(kinds, size=size)]
    asked = np.eye(8, dtype=np.float32)
    k = min(k, size)
    found = ExactIndex(rows).search(asked, k)
    distances, order = slow_top_k(asked, rows, k)
    np.testing.assert_array_equal(found.rows, order)
    np.testing.assert_array_equal(found.distances, distances)


@pytest.mark.parametrize("block", [1, 7, 256])
@pytest.mark.parametrize("fold", [1, 8, 32])
def test_blocks_do_not_change_a_bit(monkeypatch, block, fold):
    """Any block of queries, any folding of columns: the same bytes."""
    rng = np.random.default_rng(5)
    rows, asked = unit(rng, (3000, 48)), unit(rng, (70, 48))
    expected = ExactIndex(rows).search(asked, 10)
    monkeypatch.setattr(module, "QUERY_BLOCK", block)
    monkeypatch.setattr(module, "FOLD", fold)
    found = ExactIndex(rows).search(asked, 10)
    assert found.distances.tobytes() == expected.distances.tobytes()
    assert found.rows.tobytes() == expected.rows.tobytes()


def test_a_query_alone_is_a_query_in_company():
    """Asking one by one gives the bytes of asking all at once."""
    rng = np.random.default_rng(6)
    rows, asked = unit(rng, (2000, 32)), unit(rng, (30, 32))
    index = ExactIndex(rows)
    together = index.search(asked, 5)
    alone = [index.search(asked[i : i + 1], 5) for i in range(len(asked))]
    np.testing.assert_array_equal(np.concatenate([one.distances for one in alone]), together.distances)
    np.testing.assert_array_equal(np.concatenate([one.rows for one in alone]), together.rows)


def test_near_ties_within_rounding_are_all_measured_again():
    """Rows that the product cannot tell apart are ranked by their own fixed-order sum."""
    rng = np.random.default_rng(8)
    centre = unit(rng, (1, 64))
    rows = centre + rng.standard_normal((500, 64)).astype(np.float32) * np.float32(1e-7)
    found = ExactIndex(rows.astype(np.float32)).search(centre, 500)
    assert sorted(found.rows[0].tolist()) == list(range(500))
    assert (np.diff(found.distances[0]) >= 0).all()


@given(st.integers(0, 2**32 - 1))
def test_distances_stay_in_the_unit_interval(seed):
    """Rounding can give no cosine above 1: distances are in [0, 1]."""
    rows = unit(np.random.default_rng(seed), (50, 5))
    found = ExactIndex(rows).search(np.concatenate([rows, -rows]), 50)
    assert found.distances.min() >= 0.0
    assert found.distances.max() <= 1.0


@given(st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_a_row_of_the_bank_is_exactly_0_away(size, seed):
    """Rows are unit only to float32, yet each is nearest to itself, at 0 and not at its rounding."""
    rows = unit(np.random.default_rng(seed), (size, 384))
    found = ExactIndex(rows).search(rows, 1)
    assert (found.distances == 0.0).all()
    np.testing.assert_array_equal(found.rows[:, 0], np.arange(size))


@pytest.mark.parametrize("k", [0, -1, 4])
def test_k_outside_the_bank_is_refused(k):
    """K must be between 1 and the number of rows."""
    with pytest.raises(BadInputError, match="the bank has 3 rows"):
        ExactIndex(np.eye(3, dtype=np.float32)).search(np.eye(3, dtype=np.float32), k)


def test_searches_side_by_side_leave_the_threads_as_they_were():
    """Several searches at once: right answers, and BLAS has its threads again afterwards."""
    from threadpoolctl import threadpool_info

    rng = np.random.default_rng(5)
    rows = unit(rng, (2000, 32))
    index, queries = ExactIndex(rows), rows[:1500]
    wanted = index.search(queries, 3)

    def blas_threads():
        return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]

    before = blas_threads()
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: index.search(queries, 3), range(12)):
            np.testing.assert_array_equal(found.rows, wanted.rows)
    assert blas_threads() == before


def test_an_index_gives_its_rows_back():
    """All rows in the bank's order, and the distinct ones once each, in the order of their first."""
    rows = unit(np.random.default_rng(9), (50, 6))[np.r_[0:40, 3:13, 0:5, 40:50]]
    index, other = ExactIndex(rows), ExactIndex(rows[::-1])
    assert len(index) == 65
    np.testing.assert_array_equal(other.rows(), rows[::-1])
    np.testing.assert_array_equal(index.rows(), rows)
    np.testing.assert_array_equal(index.vectors, rows[np.r_[0:40, 55:65]])


def test_a_section_s_bank_counts_its_zero_rows():
    """A training transition without change is one of the bank's N."""
    index = ExactIndex(np.eye(3, dtype=np.float32))
    assert len(SectionBank(index, rows=np.array([0, 2, 3]), zero_rows=np.array([1, 4]))) == 5


def test_no_query_has_no_neighbours():
    """An empty file of queries is an empty answer."""
    found = ExactIndex(np.eye(3, dtype=np.float32)).search(np.empty((0, 3), dtype=np.float32), 2)
    assert found.distances.shape == found.rows.shape == (0, 2)


def test_few_rows_are_measured_again(monkeypatch):
    """The product leaves few pairs to measure one by one: less than one in twenty here."""
    measured = []

    def counted(queries, rows, query, row):
        measured.append(len(query))
        return distances(queries, rows, query, row)

    distances = module.pair_distances
    monkeypatch.setattr(module, "pair_distances", counted)
    rng = np.random.default_rng(10)
    ExactIndex(unit(rng, (4000, 48))).search(unit(rng, (100, 48)), 10)
    assert 100 * 10 <= sum(measured) < 100 * 4000 / 20


def test_the_slack_is_of_the_dimension_however_many_rows_there_are(monkeypatch):
    """Rounding grows with the length of a product's sums, not with the number of products."""
    asked = []
    monkeypatch.setattr(module, "rounding_slack", lambda dimension: asked.append(dimension) or 1e-6)
    for count in (5, 500):
        ExactIndex(unit(np.random.default_rng(11), (count, 48))).search(np.eye(1, 48, dtype=np.float32), 1)
    assert asked == [48, 48]


def test_the_slack_is_four_times_the_error_of_a_product():
    """As docs/decisions/exact-search.md derives it: 4 · d · 2⁻²⁴, here for 384 dimensions."""
    assert rounding_slack(384) == pytest.approx(9.1552734375e-05, rel=1e-12)


def test_a_row_that_only_looks_equal_is_measured():
    """Two rows a thousandth apart share most components, and are not 0 apart."""
    row, twin = np.zeros((2, 8), dtype=np.float32)
    row[0], twin[:2] = 1.0, (np.cos(1e-3), np.sin(1e-3))
    found = ExactIndex(twin[None]).search(row[None], 1)
    assert found.distances[0, 0] == pytest.approx(2.5e-7, rel=0.2)


@pytest.mark.parametrize(("sign", "distance"), [(1, 0.0), (-1, 1.0)])
def test_rows_a_rounding_too_long_stay_in_the_unit_interval(sign, distance):
    """A cosine of 1.0000001, or of its negative, is that of rows at distance 0, or 1."""
    row = np.array([[1.0, 0.0]], dtype=np.float32)
    found = ExactIndex(row * np.float32(sign * (1 + 2**-23))).search(row, 1)
    assert found.distances.tolist() == [[distance]]


class Blas:
    """A library with some threads, and the limits that were put on them."""

    def __init__(self, *threads):
        self.threads, self.limits = threads, []

    def info(self):
        """Return what threadpoolctl says of each library."""
        return [{"num_threads": count} for count in self.threads]

    @contextmanager
    def limit(self, *, limits):
        """Note the limit."""
        self.limits.append(limits)
        yield


@pytest.mark.parametrize(
    ("threads", "blocks", "most", "alone"),
    [
        ((4,), 1, 9, True),  # one block: the library may use all its threads
        ((4,), 2, 9, False),  # several blocks: one a core
        ((2,), 2, 9, False),
        ((1, 4), 2, 9, False),
        ((4,), 2, 1, True),  # an index that wants one at a time
        ((1,), 2, 9, True),
        ((), 2, 9, True),  # no library that threadpoolctl knows
        ((4,), 0, 9, True),
    ],
)
def test_blocks_share_the_cores(monkeypatch, threads, blocks, most, alone):
    """Several blocks run beside each other with one BLAS thread each; one block keeps them all."""
    blas, done = Blas(*threads), []
    for place in (module, transitions):
        monkeypatch.setattr(place, "blas", lambda: blas)
    module._each(lambda start: done.append((start, threading.current_thread())), range(blocks), most)
    assert sorted(start for start, _ in done) == list(range(blocks))
    assert all((thread is threading.current_thread()) == alone for _, thread in done)
    assert blas.limits == ([] if alone else [1])


@pytest.mark.parametrize(
    ("multiplications", "limits"),
    [
        (1 << 10, []),
        (module.SHARED_OUT + 1, [1]),
        (module.SMALL_PRODUCT - 1, [1]),
        (module.SMALL_PRODUCT, []),
    ],
)
def test_a_small_product_is_made_on_one_thread(monkeypatch, multiplications, limits):
    """One that BLAS would share out, though it takes milliseconds; unless a search has set the limit."""
    blas = Blas(4)
    monkeypatch.setattr(module, "blas", lambda: blas)
    with module._one_thread(multiplications):
        assert blas.limits == limits
        with module._one_thread(multiplications):
            assert blas.limits == limits
    with module._ALONE, module._one_thread(multiplications):
        assert blas.limits == limits


def test_no_more_blocks_at_once_than_cores_or_allowed(monkeypatch):
    """Three blocks with two threads, or two workers allowed: two at once, never three."""
    for threads, most in ((2, 9), (9, 2)):
        names = set()
        both = threading.Barrier(2)

        def work(start, names=names, both=both):
            names.add(threading.current_thread().name)
            if start < 2:
                both.wait(timeout=60)

        for place in (module, transitions):
            monkeypatch.setattr(place, "blas", lambda threads=threads: Blas(threads))
        module._each(work, range(40), most)
        assert len(names) == 2
