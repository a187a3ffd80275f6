"""Codes: they only pre-select, alike alone and in company, and their recall is measured."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from array_files import Crafted
from tabon.errors import BadInputError
from tabon.method.nearest import pair_distances
from tabon.method.transitions import Transitions
from tabon.search import codes as codes_module
from tabon.search.cell_scan import faiss_scan, numpy_scan
from tabon.search.codes import FEWEST, Codes, can_code, trained_coder
from tabon.search.half_index import Copies, HalfIndex
from tabon.search.index_build import Block, write_index
from tabon.search.index_files import index_from, read_index
from tabon.search.ivf import Cells, nearest_cells, trained_centroids
from unit_rows import unit

faiss = pytest.importorskip("faiss", reason="faiss is not installed")
CELLS, SIZE, DIMENSION = 24, 6000, 48


def crowded(seed, size=SIZE, dimension=DIMENSION):
    """Unit rows in crowds, as directions of change are."""
    rng = np.random.default_rng(seed)
    rows = unit(rng, (80, dimension))[rng.integers(80, size=size)] + 0.5 * unit(rng, (size, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def stored():
    """Rows in the order of their cells, the cells, and the codes."""
    rows = crowded(0)
    centroids = trained_centroids(rows[:2000], CELLS)
    cell = nearest_cells(rows, centroids)
    rows = rows[np.argsort(cell, kind="stable")].astype(np.float16)
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=CELLS))])
    coder = trained_coder(rows[::3].astype(np.float32))
    return rows, Cells(centroids, starts, 0.6), Codes(coder, coder.codes(rows.astype(np.float32)), starts)


def index_of(stored, **parts):
    """Return an index over the stored rows."""
    rows, cells, _ = stored
    return HalfIndex(rows, Copies.of(np.arange(len(rows)), len(rows)), cells=cells, **parts)


def slow_codes(coder, rows):
    """Return the nearest point of every two coordinates, two points a byte, the first in the low half."""
    pairs = (rows @ coder.basis).reshape(len(rows), -1, 1, 2)
    nearest = ((pairs - coder.points) ** 2).sum(axis=-1).argmin(axis=-1)
    return (nearest[:, ::2] + 16 * nearest[:, 1::2]).astype(np.uint8)


def test_a_code_is_the_nearest_point_of_every_two_coordinates(stored):
    """Codes are what the definition says, but for ties within rounding."""
    rows, _, codes = stored
    expected = slow_codes(codes.coder, rows[:500].astype(np.float32))
    assert (codes.codes[:500] == expected).mean() > 0.999
    turned = codes.coder.basis
    np.testing.assert_allclose(turned.T @ turned, np.eye(turned.shape[1]), atol=1e-5)


def test_candidates_are_the_nearest_by_their_points(stored, monkeypatch):
    """The rows that are named are those whose points are nearest, in the cells that are looked at."""
    monkeypatch.setattr(codes_module, "KEPT", 200)
    rows, cells, codes = stored
    asked = crowded(1, 20)
    points = codes.coder.quantizer().decode(np.ascontiguousarray(codes.codes)) @ codes.coder.basis.T
    looked = cells.nearest(asked, 10)
    for query, own, named in zip(asked, looked, codes.candidates(asked, looked, 10), strict=True):
        inside = np.concatenate([np.arange(cells.starts[cell], cells.starts[cell + 1]) for cell in own])
        assert np.isin(named, inside).all()
        similarity = points[inside] @ query
        best = inside[np.argsort(-similarity)[:150]]
        assert np.isin(best, named).mean() > 0.98
        assert 150 <= len(named) <= 200
    assert len(rows) > 200


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 7), st.integers(1, 4), st.sampled_from([16, 64, 300]))
def test_neither_company_nor_threads_change_what_is_found(stored, seed, size, threads, kept):
    """A query finds the same rows alone and with others, with one thread and with several."""
    _, cells, codes = stored
    asked = crowded(seed, size)
    before = faiss.omp_get_max_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes_module, "KEPT", kept)
        try:
            faiss.omp_set_num_threads(threads)
            together = codes.candidates(asked, cells.nearest(asked, 5), 5)
            faiss.omp_set_num_threads(1)
            alone = [codes.candidates(one[None], cells.nearest(one[None], 5), 5)[0] for one in asked]
        finally:
            faiss.omp_set_num_threads(before)
        in_parts = codes.candidates_in_parts(asked, cells.nearest(asked, 5), 5)
    for first, second, third in zip(together, alone, in_parts, strict=True):
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(first, third)


def test_as_many_threads_work_as_are_asked_for(stored):
    """A search keeps to the number of threads, and leaves the number as it was."""
    _, cells, codes = stored
    asked, before = crowded(3, 8), faiss.omp_get_max_threads()
    try:
        for threads in (1, 3, 2):
            faiss.omp_set_num_threads(threads)
            codes.candidates(asked, cells.nearest(asked, 5), 5)
            codes.candidates_in_parts(asked, cells.nearest(asked, 5), 5)
            assert faiss.omp_get_max_threads() == threads
            assert codes_module.workers()._max_workers == threads
    finally:
        faiss.omp_set_num_threads(before)


def test_codes_cost_recall_and_never_a_distance(stored, monkeypatch):
    """With room for every row the result is that of the cells, bit for bit; with less, distances are true."""
    _, _, codes = stored
    asked = crowded(2, 30)
    whole = index_of(stored, scan=faiss_scan).search(asked, 10)
    monkeypatch.setattr(codes_module, "KEPT", SIZE)
    roomy = index_of(stored, scan=faiss_scan, codes=codes).search(asked, 10)
    np.testing.assert_array_equal(roomy.rows, whole.rows)
    np.testing.assert_array_equal(roomy.distances, whole.distances)
    monkeypatch.setattr(codes_module, "KEPT", 64)
    tight = index_of(stored, scan=faiss_scan, codes=codes)
    found = tight.search(asked, 10)
    query = np.repeat(np.arange(30), 10)
    true = pair_distances(asked, tight.vectors[found.rows.ravel()].astype(np.float32), query, np.arange(300))
    np.testing.assert_array_equal(found.distances.ravel(), true)
    assert (found.distances <= whole.distances[:, -1:]).mean() > 0.9


def test_without_faiss_codes_are_not_looked_at(stored):
    """Then numpy looks at the rows of the cells themselves."""
    _, _, codes = stored
    asked = crowded(3, 5)
    ours, plain = index_of(stored, scan=numpy_scan, codes=codes), index_of(stored, scan=numpy_scan)
    assert ours.codes is None
    np.testing.assert_array_equal(ours.search(asked, 10).distances, plain.search(asked, 10).distances)


def test_rows_that_all_have_one_code_are_looked_at_themselves(stored):
    """Where everything ties, codes name nothing, and nothing is lost."""
    rows = np.repeat(crowded(4, 1), 3000, axis=0)
    rows += 1e-3 * np.random.default_rng(0).standard_normal(rows.shape).astype(np.float32)
    half = rows.astype(np.float16)
    centroids = rows[:1] / np.linalg.norm(rows[0])
    starts = np.array([0, len(rows)])
    codes = Codes(stored[2].coder, np.zeros((len(rows), DIMENSION // 4), dtype=np.uint8), starts)
    asked = crowded(5, 4)
    copies = Copies.of(np.arange(len(rows)), len(rows))
    by_codes = HalfIndex(half, copies, cells=Cells(centroids, starts, 0.0), codes=codes)
    expected = HalfIndex(half, copies).search(asked, 10)
    np.testing.assert_array_equal(by_codes.search(asked, 10).rows, expected.rows)


def test_an_index_file_keeps_codes_and_says_what_they_find(tmp_path):
    """Written with the file, used from it, and the measured recall is that of searching."""
    rows = crowded(6, 9000, 64)
    moves = Transitions(rows, np.zeros(len(rows), dtype=bool))
    path = tmp_path / "x.tabonix"
    facts = {"bank": "b", "section": "findings", "distance": "novelty"}
    write_index(path, [Block(np.arange(len(rows)), moves)], dimension=64, facts=facts, ivf_from=0)
    file = read_index(path, verify=True)
    ours, whole = (index_from(file, use_cells=use) for use in (True, False))
    assert ours.codes is not None
    assert whole.codes is None
    asked = rows[:100] + 0.3 * unit(np.random.default_rng(7), (100, 64))
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    found, exact = ours.search(asked, 10), whole.search(asked, 10)
    recall = (found.distances <= exact.distances[:, -1:]).mean()
    assert recall > 0.97
    told = file.facts["ivf"]
    assert 0.98 <= told["codes"]["recall"] <= told["recall"]


@pytest.mark.parametrize("part", ["codes", "code_basis", "code_points"])
def test_codes_that_cannot_be_are_refused(tmp_path, part):
    """Behind right sums, axes that are no axes, points that are no numbers and codes of another size."""
    rows = crowded(6, 4000, 64)
    moves = Transitions(rows, np.zeros(len(rows), dtype=bool))
    write_index(tmp_path / "x", [Block(np.arange(4000), moves)], dimension=64, facts={}, ivf_from=0)
    array = read_index(tmp_path / "x", verify=True).arrays[part]
    made = Crafted.of((tmp_path / "x").read_bytes())
    made.put(part, array[:, :-1].copy() if part == "codes" else np.full_like(array, np.nan))
    (tmp_path / "x").write_bytes(made.data())
    with pytest.raises(BadInputError, match="is not a whole tabon index"):
        read_index(tmp_path / "x", verify=False)


def test_few_rows_have_no_codes(tmp_path):
    """Points are not learnt from a handful."""
    assert not can_code(FEWEST - 1, 64)
    assert can_code(FEWEST, 64)
    rows = crowded(8, 300)
    moves = Transitions(rows, np.zeros(len(rows), dtype=bool))
    write_index(tmp_path / "x", [Block(np.arange(300), moves)], dimension=DIMENSION, facts={}, ivf_from=0)
    file = read_index(tmp_path / "x", verify=True)
    assert file.facts["ivf"]["codes"] is None
    assert index_from(file, use_cells=True).codes is None
