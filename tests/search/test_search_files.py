"""`index:FOLDER`: exact over float16 rows, cells with measured recall, files whole or refused."""

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon import Selector, TransitionBank
from tabon.cli import main
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import BadInputError, UnknownNameError
from tabon.method.transitions import Transitions
from tabon.search import PreparedSearch, index_build, open_search
from tabon.search import cell_scan as scanning
from tabon.search import codes as codes_module
from tabon.search.cell_scan import Run, faiss_scan, numpy_scan, to_single
from tabon.search.codes import Sketch, principal_basis, sketched
from tabon.search.half_index import Copies, HalfIndex
from tabon.search.index_build import Block, SeenRows, write_index
from tabon.search.index_files import IndexFiles, index_from, read_index
from tabon.search.ivf import Cells, cells_of, enough_margin, number_of_cells, sampled_rows, trained_centroids
from tabon.text.records import query_from_record, transition_from_record
from unit_rows import slow_top_k, unit

SETTINGS = SimulationSettings(patients=150)
HALF_ROUNDING = 2.0**-12  # no distance changes by more when a unit row is stored in float16
SCANS = [pytest.param(numpy_scan, id="numpy"), pytest.param(faiss_scan, id="faiss")]


@pytest.fixture(scope="module", autouse=True)
def _faiss():
    pytest.importorskip("faiss", reason="FAISS is not installed")


@pytest.fixture(scope="module")
def bank_path(tmp_path_factory):
    """A small bank on disk."""
    path = tmp_path_factory.mktemp("bank") / "bank.tabon"
    records = simulate_transitions(SETTINGS, "train")
    TransitionBank.build(map(transition_from_record, records), encoder="hashing").save(path)
    return path


@pytest.fixture
def bank(bank_path):
    """The small bank, opened anew: its search may be changed."""
    return TransitionBank.load(bank_path)


@pytest.fixture(scope="module")
def folder(bank_path, tmp_path_factory):
    """An index with cells under two distances."""
    place = tmp_path_factory.mktemp("index")
    IndexFiles(f"index:{place}?ivf=always").prepare(TransitionBank.load(bank_path), ["novelty", "cost-ot"])
    return place


def index_of(group, distinct, scan, sketch=None):
    """An index of rows that share distinct ones."""
    return HalfIndex(distinct, Copies.of(group, len(distinct)), scan=scan, sketch=sketch)


def sketch_of(rows):
    """The sketches of float16 rows."""
    basis = principal_basis(to_single(rows))
    return Sketch(basis, sketched(to_single(rows), basis).astype(np.float16))


def test_every_float16_becomes_its_float32():
    """All finite values of float16, subnormal ones too, are converted exactly."""
    values = np.arange(2**16, dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)]
    np.testing.assert_array_equal(to_single(values), values.astype(np.float32))


@pytest.mark.parametrize("scan", SCANS)
@given(st.integers(1, 300), st.integers(1, 30), st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_top_k_is_exact_for_the_stored_rows(scan, size, queries, k, seed):
    """With copies, the k nearest and their distances are those of a full float64 sort over stored rows."""
    rng = np.random.default_rng(seed)
    distinct = unit(rng, (int(rng.integers(1, size + 1)), 16)).astype(np.float16)
    group = np.concatenate([np.arange(len(distinct)), rng.integers(len(distinct), size=size - len(distinct))])
    asked, k = unit(rng, (queries, 16)), min(k, size)
    found = index_of(group, distinct, scan).search(asked, k)
    distances, _ = slow_top_k(asked, distinct[group], k)
    np.testing.assert_allclose(found.distances, distances, atol=2e-7)
    stored = np.clip(0.5 * (1.0 - asked.astype(float) @ distinct[group].astype(float).T), 0.0, 1.0)
    np.testing.assert_allclose(np.take_along_axis(stored, found.rows, 1), distances, atol=2e-7)
    assert all(len(set(rows)) == k for rows in found.rows.tolist())


@pytest.mark.parametrize("scan", SCANS)
def test_ties_go_to_the_lowest_row(scan):
    """Copies of a row are all found, lowest row numbers first."""
    rng = np.random.default_rng(3)
    group = rng.integers(4, size=50)
    found = index_of(group, np.eye(8, dtype=np.float16)[:4], scan).search(np.eye(8, dtype=np.float32), 20)
    distances, order = slow_top_k(np.eye(8), np.eye(8)[group], 20)
    np.testing.assert_array_equal(found.rows, order)
    np.testing.assert_array_equal(found.distances, distances)


@pytest.mark.parametrize("scan", SCANS)
def test_rows_longer_than_one_tie_at_distance_0(scan):
    """Rounding makes rows longer than 1; all that would be nearer than 0 are at 0, lowest row first."""
    rows = (np.eye(8)[0] + np.linspace(1e-3, 4e-3, 40)[:, None] * np.eye(8)[0]).astype(np.float16)
    asked = np.eye(8, dtype=np.float32)[:1]
    for sketch in (None, sketch_of(rows)):
        found = index_of(np.arange(40), rows, scan, sketch).search(asked, 3)
        assert found.rows.tolist() == [[0, 1, 2]]
        assert found.distances.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("run", [1, 7, 1024])
@pytest.mark.parametrize("extra", [0, 64])
def test_faiss_and_numpy_agree_to_the_bit(monkeypatch, run, extra):
    """Any length of runs, any number of spare rows, crowds within rounding, sketches: the same bytes."""
    rng = np.random.default_rng(5)
    crowd = unit(rng, (1, 48)) + rng.standard_normal((400, 48)).astype(np.float32) * np.float32(2e-4)
    rows = np.concatenate([crowd, unit(rng, (600, 48))]).astype(np.float16)
    asked = np.concatenate([unit(rng, (20, 48)), to_single(rows[:3])])
    each = np.arange(len(rows))
    expected = index_of(each, rows, numpy_scan).search(asked, 10)
    monkeypatch.setattr(scanning, "RUN", run)
    monkeypatch.setattr(scanning, "EXTRA", extra)
    monkeypatch.setattr(scanning, "PRUNE", 5 * run)
    monkeypatch.setattr(scanning, "SKETCH_RUN", 8 * run)
    monkeypatch.setattr(codes_module, "SKETCHES_KEPT", 10 + extra)
    sketch = sketch_of(rows)
    for scan, used in ((numpy_scan, None), (numpy_scan, sketch), (faiss_scan, None), (faiss_scan, sketch)):
        found = index_of(each, rows, scan, used).search(asked, 10)
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_array_equal(found.distances, expected.distances)


@given(st.integers(1, 200), st.integers(2, 70), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_a_sketch_bounds_every_similarity_from_above(size, dimension, seed):
    """No row is nearer than its sketch says, but for the margin; also rows that lie in the axes."""
    rng = np.random.default_rng(seed)
    rows = (
        unit(rng, (size, dimension)) if seed % 2 else unit(rng, (size, 2)) @ np.eye(2, dimension, dtype="f4")
    )
    rows, asked = rows.astype(np.float16), unit(rng, (5, dimension))
    sketch = sketch_of(rows)
    bounds = sketch.of(asked).astype(float) @ sketch.rows.astype(float).T
    assert (bounds >= asked.astype(float) @ rows.astype(float).T - codes_module.FLOAT16_MARGIN).all()


@pytest.mark.parametrize("kept", [1, 20, 2048])
def test_what_sketches_leave_out_is_not_near(monkeypatch, kept):
    """However few rows a scan keeps at first, the neighbours are those of a look at all rows."""
    monkeypatch.setattr(codes_module, "SKETCHES_KEPT", kept)
    monkeypatch.setattr(codes_module, "MEASURED_FIRST", 2)
    rng = np.random.default_rng(11)
    rows = unit(rng, (3000, 96)).astype(np.float16)
    asked, each = unit(rng, (7, 96)), np.arange(3000)
    found = index_of(each, rows, faiss_scan, sketch_of(rows)).search(asked, 10)
    expected = index_of(each, rows, numpy_scan).search(asked, 10)
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.distances, expected.distances)


@pytest.mark.parametrize("scan", SCANS)
def test_all_that_is_within_the_slack_is_returned(scan, monkeypatch):
    """A scan keeps every row whose similarity is within the slack, however few FAISS keeps at first."""
    monkeypatch.setattr(scanning, "EXTRA", 0)
    rng = np.random.default_rng(8)
    rows = (unit(rng, (1, 64)) + 1e-4 * rng.standard_normal((900, 64))).astype(np.float16)
    asked = unit(rng, (1, 64))
    query, row = scan(asked, rows, [Run(0, 900, (0,))], 3)
    similarity = (asked.astype(float) @ rows.astype(float).T)[0]
    wanted = np.flatnonzero(similarity >= np.sort(similarity)[-3] - 0.5 * scanning.slack_of(64))
    assert set(wanted.tolist()) <= set(row.tolist())
    assert len(wanted) > 3
    assert not query.any()


@given(st.integers(1, 60), st.integers(1, 30), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=50)
def test_rows_seen_before_are_found(size, kinds, seed, meet):
    """Every row gets the number of an equal stored row; without collisions each is stored once."""
    rng = np.random.default_rng(seed)
    rows = unit(rng, (kinds, 6)).astype(np.float16)[rng.integers(kinds, size=size)]
    cuts = np.sort(rng.integers(0, size + 1, size=3))
    stored, numbers, seen = rows[:0], [], SeenRows()
    with pytest.MonkeyPatch.context() as patch:
        if meet:
            patch.setattr(index_build, "row_hashes", lambda block: np.zeros(len(block), dtype=np.uint64))
        patch.setattr(index_build, "RECENT", 4)
        for start, stop in pairwise([0, *cuts, size]):
            number, new = seen.numbers_of(rows[start:stop], stored)
            stored = np.concatenate([stored, rows[start:stop][new]])
            numbers.extend(number.tolist())
    np.testing.assert_array_equal(stored[numbers], rows)
    if not meet:
        assert len(stored) == len(np.unique(rows, axis=0))


@pytest.mark.parametrize("section", ["findings", "impression"])
@pytest.mark.parametrize("distance", ["novelty", "cost-ot"])
def test_an_index_finds_what_the_bank_finds(bank, folder, section, distance):
    """Over all rows: the bank's rows, and its distances but for the rounding of float16."""
    ours = IndexFiles(f"index:{folder}?ivf=never").section(bank, section, distance)
    exact = bank.section(section, distance)
    np.testing.assert_array_equal(ours.rows, exact.rows)
    np.testing.assert_array_equal(ours.zero_rows, exact.zero_rows)
    asked = unit(np.random.default_rng(0), (30, 256)) * np.float32(0.3) + exact.index.rows()[:30]
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    found, expected = ours.index.search(asked, 10), exact.index.search(asked, 10)
    np.testing.assert_allclose(found.distances, expected.distances, atol=HALF_ROUNDING)
    assert (found.rows == expected.rows).mean() > 0.9


def test_selections_say_that_the_bank_was_searched_otherwise(bank, folder):
    """The picks are the bank's where the margin is above the rounding, and its name tells the search."""
    queries = [query_from_record(record) for record in simulate_queries(SETTINGS, "test")]
    plain = Selector(bank).select_many(queries)
    assert bank.name_under("novelty") == bank.sha256[:12]
    bank = bank.with_search(IndexFiles(f"index:{folder}?ivf=never"))
    assert bank.name_under("novelty") == f"{bank.sha256[:12]}+float16"
    ours = Selector(bank).select_many(queries)
    clear = [(a, b) for a, b in zip(plain, ours, strict=True) if a.margin and a.margin > 4 * HALF_ROUNDING]
    assert len(clear) >= 5
    assert all(a.selected == b.selected for a, b in clear)
    bank = bank.with_search(IndexFiles(f"index:{folder}"))
    assert "+float16-ivf" in bank.name_under("novelty")


def test_cells_give_exact_distances_of_real_rows(bank, folder):
    """With cells a neighbour may be missed, but each distance is that of the row it names."""
    ours = IndexFiles(f"index:{folder}").section(bank, "findings", "novelty").index
    whole = IndexFiles(f"index:{folder}?ivf=never").section(bank, "findings", "novelty").index
    asked = unit(np.random.default_rng(1), (40, 256))
    found, everything = ours.search(asked, 10), whole.search(asked, len(whole))
    places = np.argmax(everything.rows[:, None, :] == found.rows[:, :, None], axis=2)
    np.testing.assert_array_equal(np.take_along_axis(everything.distances, places, 1), found.distances)
    alone = [ours.search(asked[number : number + 1], 10) for number in range(len(asked))]
    np.testing.assert_array_equal(np.concatenate([one.rows for one in alone]), found.rows)
    np.testing.assert_array_equal(np.concatenate([one.distances for one in alone]), found.distances)


def test_a_query_that_wants_more_than_its_cells_hold_looks_further(bank, folder):
    """All rows can be asked for, however few the cells hold."""
    ours = IndexFiles(f"index:{folder}").section(bank, "findings", "novelty").index
    cells = Cells(ours.cells.means, ours.cells.starts, 0.0)
    narrow = HalfIndex(ours.vectors, ours._copies, sketch=ours.sketch, cells=cells)
    found = narrow.search(unit(np.random.default_rng(2), (3, 256)), len(narrow))
    assert [sorted(rows) for rows in found.rows.tolist()] == [list(range(len(narrow)))] * 3


def test_measured_recall_is_the_recall(tmp_path):
    """The header's recall of held-out rows is what searching with that many cells finds."""
    rng = np.random.default_rng(4)
    rows = unit(rng, (60, 32))[rng.integers(60, size=3000)] + 0.2 * unit(rng, (3000, 32))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    blocks = [Block(np.arange(3000), Transitions(rows, np.zeros(3000, dtype=bool)))]
    write_index(tmp_path / "i", blocks, dimension=32, facts={}, ivf_from=0)
    file = read_index(tmp_path / "i", verify=True)
    told = file.facts["ivf"]
    _, held = sampled_rows(3000, number_of_cells(3000))
    exact, cells = (index_from(file, use_cells=use_cells) for use_cells in (False, True))
    asked = to_single(rows[held].astype(np.float16))
    truth, found = exact.search(asked, 11).rows, cells.search(asked, 11).rows
    shared = [
        len(({*a} - {own}) & ({*b} - {own}))
        for a, b, own in zip(truth.tolist(), found.tolist(), held, strict=True)
    ]
    assert told["recall"] == pytest.approx(np.sum(shared) / 10 / len(held), abs=1e-3)
    assert told["recall"] >= 0.99
    assert 1 <= told["probes"] < told["cells"] == 64


def test_the_least_margin_that_reaches_the_goal_is_taken():
    """A neighbour in a cell that is 0.4 less like the query than its nearest needs a margin of 0.4."""
    cells = Cells(np.eye(4, dtype=np.float32), np.arange(5), 0.0)
    query = np.array([[0.9, 0.5, 0.3, 0.1]], dtype=np.float32)
    told = enough_margin(cells, query, np.array([[0, 0, 1, 0]]))
    assert told.margin == pytest.approx(0.4, abs=2e-4)
    assert (told.probes, told.recall) == (2.0, 1.0)
    assert enough_margin(cells, query, np.array([[0, 0, 0]])).margin == 0.0
    assert enough_margin(cells, query, np.zeros((1, 0), dtype=np.int64)).recall == 1.0


def test_a_query_far_from_all_cells_looks_at_more_of_them():
    """The margin is of similarity, so that few cells are near for a near query and many for a far one."""
    cells = Cells(np.eye(4, dtype=np.float32), np.array([0, 5, 5, 9, 12]), 0.2)
    near, far = np.array([[0.9, 0.3, 0.2, 0.2], [0.5, 0.5, 0.5, 0.45]], dtype=np.float32)
    [[alone], several] = cells.nearest(np.stack([near, far]), 3)
    assert (alone, several.tolist()) == (0, [0, 1, 2, 3])
    [more] = cells.nearest(near[None], 6)  # one cell has five rows only, the next has none
    assert more.tolist() == [0, 1, 2]


def test_a_query_near_one_cell_alone_looks_at_others_too():
    """One of 32 cells at least, the nearest ones, and the share that is told counts them."""
    centroids = unit(np.random.default_rng(3), (128, 16))
    cells = Cells(centroids, np.arange(129), 0.0)
    query = centroids[5]
    order = np.argsort(-(centroids @ query))
    assert {*cells.near(query, 1).tolist()} == {*order[:4].tolist()}
    told = enough_margin(cells, query[None], np.array([[5, order[1], order[3], order[9]] + [5] * 996]))
    assert (told.probes, told.recall) == (4.0, 0.999)


def test_a_cell_of_spread_rows_comes_before_one_that_is_as_like():
    """Rows around a short mean differ more, so the nearest of them may be nearer; an empty cell has none."""
    means = np.array([[0.5, np.sqrt(0.75)], [0.5, 0.0], [0.0, 0.0]], dtype=np.float32)
    behind = Cells(means, np.array([0, 4, 9, 9]), 0.0).behind(np.array([1.0, 0.0], dtype=np.float32))
    np.testing.assert_allclose(behind, np.array([0.3, 0.0, 0.3]) * np.sqrt(0.75) + [0, 0, 0.5], atol=1e-6)


def test_most_rows_are_in_their_nearest_cell():
    """Looking at some groups of cells only, nearly every row still gets the nearest cell."""
    rng = np.random.default_rng(7)
    rows = unit(rng, (40, 24))[rng.integers(40, size=4000)] + 0.15 * rng.standard_normal((4000, 24))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    centroids = trained_centroids(to_single(rows), 64)
    near, means = cells_of(rows, centroids)
    assert (near == (to_single(rows) @ centroids.T).argmax(axis=1)).mean() > 0.9
    np.testing.assert_allclose(means[3], to_single(rows)[near == 3].mean(axis=0), atol=1e-5)


def test_centroids_are_the_same_for_the_same_sample():
    """Training is seeded, and centroids are unit rows."""
    sample = unit(np.random.default_rng(0), (500, 8))
    made = trained_centroids(sample, 16)
    np.testing.assert_array_equal(made, trained_centroids(sample, 16))
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1.0, atol=1e-5)


def test_an_index_of_zero_transitions_is_empty(tmp_path):
    """Where no row has a direction there is nothing to search, and the zero rows are kept."""
    blocks = [Block(np.arange(3), Transitions(np.zeros((3, 8), np.float32), np.ones(3, dtype=bool)))]
    write_index(tmp_path / "i", blocks, dimension=8, facts={}, ivf_from=0)
    file = read_index(tmp_path / "i", verify=True)
    assert index_from(file, use_cells=True) is None
    assert file.arrays["zero_rows"].tolist() == [0, 1, 2]
    assert file.arrays["directions"].shape == (0, 8)


def test_the_same_bank_gives_the_same_index(bank, folder, tmp_path):
    """Two fillings are the same files, byte for byte."""
    IndexFiles(f"index:{tmp_path}?ivf=always").prepare(bank, ["novelty"])
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert names == ["findings.novelty.tabonix", "impression.novelty.tabonix"]
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_failed_filling_leaves_the_old_file(tmp_path):
    """When the work breaks off, the old index stays and nothing lies beside it."""
    path = tmp_path / "i"
    path.write_bytes(b"old")

    def blocks():
        yield Block(np.arange(2), Transitions(np.eye(8, dtype=np.float32)[:2], np.zeros(2, dtype=bool)))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_index(path, blocks(), dimension=8, facts={}, ivf_from=0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["i"]
    assert path.read_bytes() == b"old"


DAMAGES = {
    "cut": lambda data: data[:-64],
    "cut head": lambda data: data[:100],
    "empty": lambda _: b"",
    "text": lambda _: b"hello\n" * 99,
    "flipped head": lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    "flipped end": lambda data: data[:-80] + bytes([data[-80] ^ 1]) + data[-79:],
    "extended": lambda data: data + b"x",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_refused(bank, folder, tmp_path, damage):
    """Cut, changed or foreign files give one sentence with the way out."""
    path = tmp_path / "findings.novelty.tabonix"
    path.write_bytes(DAMAGES[damage]((folder / path.name).read_bytes()))
    with pytest.raises(BadInputError, match=r"not a whole tabon index: .*; make it again"):
        IndexFiles(f"index:{tmp_path}").section(bank, "findings", "novelty")


def test_a_changed_direction_is_found_by_verify(bank, folder, tmp_path):
    """The large matrix is not read at opening; verifying reads it and names it."""
    data = bytearray((folder / "findings.novelty.tabonix").read_bytes())
    data[scanning.RUN + (1 << 14)] ^= 1
    (tmp_path / "findings.novelty.tabonix").write_bytes(data)
    ours = IndexFiles(f"index:{tmp_path}")
    ours.section(bank, "findings", "novelty")
    with pytest.raises(BadInputError, match="its part 'directions' was changed"):
        ours.verify(bank)


def test_an_index_of_something_else_is_refused(bank, folder, tmp_path):
    """Another bank's index, another section's file and a missing distance are refused by name."""
    records = list(simulate_transitions(SETTINGS, "train"))[:9]
    other = TransitionBank.build(map(transition_from_record, records), encoder="hashing")
    with pytest.raises(
        BadInputError, match=f"made for bank {bank.sha256[:12]}, here it is {other.sha256[:12]}"
    ):
        IndexFiles(f"index:{folder}").section(other, "findings", "novelty")
    with pytest.raises(BadInputError, match=r"there is no index at .*findings\.mean-shift"):
        IndexFiles(f"index:{folder}").section(bank, "findings", "mean-shift")
    (tmp_path / "findings.novelty.tabonix").write_bytes((folder / "impression.novelty.tabonix").read_bytes())
    with pytest.raises(BadInputError, match="made for section impression, here it is findings"):
        IndexFiles(f"index:{tmp_path}").section(bank, "findings", "novelty")
    with pytest.raises(BadInputError, match="there is no index in"):
        IndexFiles(f"index:{tmp_path / 'none'}").describe(bank)
    with pytest.raises(UnknownNameError):
        IndexFiles(f"index:{tmp_path / 'none'}").prepare(bank, ["novelty", "cost_ot"])
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("url", ["index:", "index:x?ivf=maybe", "index:x?speed=1", "index:?ivf=never"])
def test_a_url_that_names_no_index_is_refused(url):
    """A missing folder or an unknown setting gives one sentence."""
    with pytest.raises((BadInputError, UnknownNameError), match=r"write index:FOLDER|Known: (ivf|always)"):
        IndexFiles(url)


def test_the_command_line_fills_shows_and_checks_an_index(bank_path, tmp_path):
    """`bank index` fills, `bank info` shows cells and recall, `bank verify` finds a changed byte."""

    def tabon(*arguments):
        return CliRunner().invoke(main, ["bank", *map(str, arguments)])

    url = f"index:{tmp_path}/i?ivf=always"
    assert tabon("index", bank_path, "--search", url).exit_code == 0
    told = json.loads(tabon("info", bank_path, "--search", url).stdout)["search"]
    assert [(one["section"], one["distance"]) for one in told] == [
        ("findings", "novelty"),
        ("impression", "novelty"),
    ]
    assert all(one["ivf"]["recall"] >= 0.99 for one in told)
    assert all(0 < one["rounding"] <= HALF_ROUNDING for one in told)
    assert tabon("verify", bank_path, "--search", url).stdout.count("whole") == 3
    path = tmp_path / "i" / "findings.novelty.tabonix"
    data = bytearray(path.read_bytes())
    data[20_000] ^= 1
    path.write_bytes(data)
    result = tabon("verify", bank_path, "--search", url)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_an_engine_without_files_has_nothing_to_show(bank_path, monkeypatch):
    """`--search` of `bank info` takes only a search that keeps files."""

    class Elsewhere(PreparedSearch):
        def prepare(self, bank, distances, *, progress=None):
            raise NotImplementedError

        def section(self, bank, section, distance):
            raise NotImplementedError

    monkeypatch.setattr("tabon.cli.bank.open_search", lambda _: Elsewhere())
    result = CliRunner().invoke(main, ["bank", "info", str(bank_path), "--search", "milvus://x"])
    assert result.exit_code == 1
    assert "milvus keeps no files to look at" in result.stderr


def test_the_url_opens_this_search(tmp_path):
    """`index:` is in the table of searches."""
    assert isinstance(open_search(f"index:{tmp_path}"), IndexFiles)


WITHOUT = """
import sys, json
sys.modules["faiss"] = None
import numpy as np
from tabon import TransitionBank
from tabon.search.index_files import IndexFiles
bank = TransitionBank.load(sys.argv[1])
IndexFiles(f"index:{sys.argv[3]}?ivf=always").prepare(bank, ["novelty"])
rows = np.load(sys.argv[4])
found = IndexFiles(f"index:{sys.argv[2]}").section(bank, "findings", "novelty").index.search(rows, 10)
print(json.dumps([found.rows.tolist(), found.distances.tolist()]))
"""


def test_without_faiss_the_results_are_the_same(bank, bank_path, folder, tmp_path):
    """A process that has no FAISS writes the same index and finds the same neighbours, to the bit."""
    asked = unit(np.random.default_rng(6), (25, 256))
    np.save(tmp_path / "asked.npy", asked)
    command = [sys.executable, "-c", WITHOUT, bank_path, folder, tmp_path / "i", tmp_path / "asked.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows, distances = json.loads(done.stdout)
    ours = IndexFiles(f"index:{folder}").section(bank, "findings", "novelty").index.search(asked, 10)
    assert ours.rows.tolist() == rows
    assert ours.distances.tolist() == distances
    for path in sorted((tmp_path / "i").iterdir()):
        assert path.read_bytes() == (folder / path.name).read_bytes()
