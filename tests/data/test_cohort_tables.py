"""Tables on disk: kinds and packings, lines, bad rows, and files that were cut anywhere."""

import gzip
import json
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tabon.data.cohort import tables
from tabon.data.cohort.tables import (
    Row,
    check_columns,
    find_file,
    read_csv,
    read_json_array,
    read_json_lines,
    read_json_object,
    read_parquet,
)
from tabon.errors import BadInputError

PACK = {
    "": bytes,
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".zst": zstandard.compress,
}
CSV = b'a,b\n1,one\n2,"two\nlines, ""quoted"""\n3,three\n'
CSV_ROWS = [
    Row(2, {"a": "1", "b": "one"}),
    Row(3, {"a": "2", "b": 'two\nlines, "quoted"'}),
    Row(5, {"a": "3", "b": "three"}),
]
OBJECTS = [{"a": n, "b": f"text {n} é"} for n in range(40)]
LINES = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in OBJECTS).encode()
LINE_ROWS = [Row(line, values) for line, values in enumerate(OBJECTS, start=1)]
ARRAY = json.dumps(OBJECTS, indent=1).encode()
OBJECT = json.dumps({f"k{n}": each for n, each in enumerate(OBJECTS)}).encode()
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def put(folder, name, data):
    """Write bytes, packed as the name says."""
    path = folder / name
    suffix = path.suffix if path.suffix in PACK else ""
    path.write_bytes(PACK[suffix](data))
    return path


def read_cut(read, path, data, keep):
    """Read the first bytes of a file; None where it is refused by its name."""
    path.write_bytes(data[:keep])
    try:
        return list(read(path))
    except BadInputError as error:
        assert path.name in str(error)  # noqa: PT017  # both outcomes are looked at
        return None


# --- CSV ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
def test_csv_is_read_packed_or_not(tmp_path, suffix):
    """Plain, gzip and zstd files have the same rows; a quoted line break counts as a line."""
    assert list(read_csv(put(tmp_path, f"x.csv{suffix}", CSV), ["a", "b"])) == CSV_ROWS


@pytest.mark.parametrize("suffix", PACK)
def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path, suffix):
    """What Excel writes before the header is passed over."""
    path = put(tmp_path, f"x.csv{suffix}", b"\xef\xbb\xbf" + CSV)
    assert list(read_csv(path, ["a"])) == CSV_ROWS


def test_line_ends_of_windows(tmp_path):
    """Rows that end with two characters are the same rows."""
    rows = list(read_csv(put(tmp_path, "x.csv", b"a,b\r\n1,2\r\n3,4\r\n")))
    assert rows == [Row(2, {"a": "1", "b": "2"}), Row(3, {"a": "3", "b": "4"})]


def test_a_file_may_end_without_a_line_break(tmp_path):
    """A whole last row counts, whatever follows it."""
    assert list(read_csv(put(tmp_path, "x.csv", CSV[:-1]))) == CSV_ROWS


def test_blank_lines_are_no_rows(tmp_path):
    """Blank lines, also at the end, are passed over, and the lines are counted right."""
    rows = list(read_csv(put(tmp_path, "x.csv", b"a,b\n\n1,2\n\n\n3,4\n\n")))
    assert [row.line for row in rows] == [3, 6]
    assert all(row.whole for row in rows)


def test_rows_with_a_wrong_field_count_say_so(tmp_path):
    """Short and long rows are not whole; the others are not touched by them."""
    rows = list(read_csv(put(tmp_path, "x.csv", b"a,b\n1\n1,2\n1,2,3\n1,2\n")))
    assert [(row.line, row.whole) for row in rows] == [(2, False), (3, True), (4, False), (5, True)]


def test_a_short_last_row_is_a_cut_file(tmp_path):
    """Where the last row lacks fields, the file lacks bytes."""
    with pytest.raises(BadInputError, match=r"x\.csv is truncated"):
        list(read_csv(put(tmp_path, "x.csv", b"a,b\n1,2\n3")))


def test_a_long_last_row_is_a_bad_row(tmp_path):
    """A last row with too many fields is not for want of bytes."""
    rows = list(read_csv(put(tmp_path, "x.csv", b"a,b\n1,2\n3,4,5\n")))
    assert [row.whole for row in rows] == [True, False]


def test_a_file_cut_within_quotes_is_refused(tmp_path):
    """An open quote at the end is a cut file."""
    with pytest.raises(BadInputError, match=r"x\.csv is truncated"):
        list(read_csv(put(tmp_path, "x.csv", CSV[:22])))


def test_a_report_may_be_long(tmp_path):
    """A field of a megabyte is no error."""
    path = put(tmp_path, "x.csv", b"a\n" + b"x" * 2**20 + b"\n")
    assert [len(row.values["a"]) for row in read_csv(path)] == [2**20]


def test_tabs(tmp_path):
    """Another delimiter may be asked for."""
    path = put(tmp_path, "x.tsv", b"a\tb\n1\t2,3\n")
    assert list(read_csv(path, ["b"], delimiter="\t")) == [Row(2, {"a": "1", "b": "2,3"})]


def test_text_of_another_encoding_is_refused(tmp_path):
    """Latin-1 is refused with the file's name, not read as something else."""
    with pytest.raises(BadInputError, match=r"x\.csv is truncated or damaged \(UnicodeDecodeError\)"):
        list(read_csv(put(tmp_path, "x.csv", "a\nÄrzte\n".encode("latin-1"))))


@pytest.mark.parametrize("suffix", PACK)
def test_an_empty_csv_file_is_refused(tmp_path, suffix):
    """No header is an error, with and without columns that one asks for; a header alone has no rows."""
    for columns in ([], ["a"]):
        with pytest.raises(BadInputError, match=r"x\.csv"):
            list(read_csv(put(tmp_path, f"x.csv{suffix}", b""), columns))
    assert list(read_csv(put(tmp_path, f"x.csv{suffix}", b"a,b\n"))) == []


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv.zst"])
def test_no_byte_at_all_is_no_packed_file(tmp_path, name):
    """A packed file of length zero is a cut one."""
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(BadInputError, match=name):
        list(read_json_lines(tmp_path / name))


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv.zst"])
def test_what_is_not_packed_is_refused(tmp_path, name):
    """A plain file under a packed one's name is refused by its name."""
    (tmp_path / name).write_bytes(CSV)
    with pytest.raises(BadInputError, match=name):
        list(read_csv(tmp_path / name))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_parts_packed_one_after_the_other(tmp_path, suffix):
    """Files that were packed in parts and joined are read to their end."""
    path = tmp_path / f"x.csv{suffix}"
    path.write_bytes(PACK[suffix](CSV[:20]) + PACK[suffix](CSV[20:]))
    assert list(read_csv(path)) == CSV_ROWS


# --- cut anywhere ---------------------------------------------------------------------

PACKED_KINDS = {
    "csv": (read_csv, b"a,b\n" + b"".join(b"%d,text %d\n" % (n, n * n) for n in range(200))),
    "jsonl": (read_json_lines, LINES),
    "json-array": (read_json_array, ARRAY),
    "json-object": (read_json_object, OBJECT),
}


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("kind", PACKED_KINDS)
@same_folder
@given(data=st.data())
def test_a_packed_file_cut_anywhere_is_refused(tmp_path, kind, suffix, data):
    """Whatever was lost, the file is an error with its name and never a shorter table."""
    read, content = PACKED_KINDS[kind]
    packed = PACK[suffix](content)
    keep = data.draw(st.integers(0, len(packed) - 1))
    assert read_cut(read, tmp_path / f"x.{kind}{suffix}", packed, keep) is None


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("kind", PACKED_KINDS)
def test_a_packed_file_without_its_last_bytes_is_refused(tmp_path, kind, suffix):
    """Every cut within the last bytes, where the check sums are, is noticed too."""
    read, content = PACKED_KINDS[kind]
    packed = PACK[suffix](content)
    for keep in range(len(packed) - 16, len(packed)):
        assert read_cut(read, tmp_path / f"x.{kind}{suffix}", packed, keep) is None
    assert read_cut(read, tmp_path / f"x.{kind}{suffix}", packed, len(packed))


@same_folder
@given(keep=st.integers(0, len(LINES) - 1))
@example(len(LINES) - 1)
def test_json_lines_cut_anywhere(tmp_path, keep):
    """A cut within a line is refused; only a cut between lines cannot be seen."""
    rows = read_cut(read_json_lines, tmp_path / "x.jsonl", LINES, keep)
    between = LINES[:keep].endswith(b"}\n") or LINES[:keep].endswith(b"}") or keep == 0
    assert (rows is not None) == between
    assert rows is None or rows == LINE_ROWS[: len(rows)]


@pytest.mark.parametrize(("read", "data"), [(read_json_array, ARRAY), (read_json_object, OBJECT)])
def test_json_cut_anywhere_is_refused(tmp_path, read, data):
    """An array or object that does not end is an error at whatever byte it was cut."""
    for keep in range(0, len(data), 7):
        assert read_cut(read, tmp_path / "x.json", data, keep) is None
    assert read_cut(read, tmp_path / "x.json", data, len(data) - 1) is None


def test_parquet_cut_anywhere_is_refused(tmp_path):
    """A Parquet file that does not end is an error at whatever byte it was cut."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist(OBJECTS), path)
    data = path.read_bytes()
    for keep in [*range(0, len(data), 11), len(data) - 1]:
        assert read_cut(read_parquet, path, data, keep) is None


def test_bytes_that_were_changed_in_a_packed_file(tmp_path):
    """A gzip file whose bytes were changed does not give other rows without a word."""
    data = bytearray(PACK[".gz"](PACKED_KINDS["csv"][1]))
    data[len(data) // 2] ^= 0xFF
    assert read_cut(read_csv, tmp_path / "x.csv.gz", bytes(data), len(data)) is None


# --- JSON -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", PACK)
def test_json_objects_and_arrays_are_read(tmp_path, suffix):
    """Members and items come one by one, in their order, packed or not."""
    members = list(read_json_object(put(tmp_path, f"o.json{suffix}", OBJECT)))
    assert members == [(f"k{n}", each) for n, each in enumerate(OBJECTS)]
    assert list(read_json_array(put(tmp_path, f"a.json{suffix}", ARRAY))) == OBJECTS


@pytest.mark.parametrize("text", [b"{}", b" {\n} \n"])
def test_an_empty_json_object(tmp_path, text):
    """An object without members has none."""
    assert list(read_json_object(put(tmp_path, "x.json", text))) == []


@pytest.mark.parametrize("text", [b"[]", b" [\n] \n"])
def test_an_empty_json_array(tmp_path, text):
    """An array without items has none."""
    assert list(read_json_array(put(tmp_path, "x.json", text))) == []


@pytest.mark.parametrize("text", [b"", b"[1]", b'"text"', b"{} {}", b'{"a": 1, }', b"{1: 2}", b'{"a" 1}'])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    """Another value, two values and broken ones are errors, never an empty table."""
    with pytest.raises(BadInputError, match=r"x\.json"):
        list(read_json_object(put(tmp_path, "x.json", text)))


@pytest.mark.parametrize("text", [b"", b'{"item": [1]}', b"1", b"[1] [2]", b"[1, ]", b"[1 2]", b"[tru]"])
def test_what_is_no_json_array_is_refused(tmp_path, text):
    """Another value, two values and broken ones are errors, never an empty table."""
    with pytest.raises(BadInputError, match=r"x\.json"):
        list(read_json_array(put(tmp_path, "x.json", text)))


@same_folder
@given(
    items=st.lists(
        st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=3))
    ),
    chunk=st.integers(1, 9),
)
def test_the_size_of_what_is_read_at_once_does_not_matter(tmp_path, items, chunk):
    """However the text is cut into chunks, the items are those that json.loads finds."""
    path = put(tmp_path, "x.json", json.dumps(items).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "CHUNK", chunk)
        assert list(read_json_array(path)) == items


def test_memory_does_not_grow_with_a_json_array(tmp_path):
    """An array of twenty megabytes is read in two."""
    path = tmp_path / "x.json"
    with path.open("w") as file:
        file.write("[0")
        file.writelines(f', "{"x" * 1000}"' for _ in range(20_000))
        file.write("]")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_json_array(path)) == 20_001
        assert tracemalloc.get_traced_memory()[1] < 2 * 2**20
    finally:
        tracemalloc.stop()


def test_json_lines_are_read(tmp_path):
    """Objects come with their line; blank lines are passed over but counted."""
    path = put(tmp_path, "x.jsonl", b'{"a": 1}\n\n  \n{"a": 2}')
    assert list(read_json_lines(path, ["a"])) == [Row(1, {"a": 1}), Row(4, {"a": 2})]


def test_bad_json_lines_are_named_by_number(tmp_path):
    """Lines that are no JSON, or no object, are rows that are not whole."""
    path = put(tmp_path, "x.jsonl", b'{"a": 1}\n{"a"\n[1]\nnull\n\xff\n{"a": 2}\n')
    rows = list(read_json_lines(path))
    assert [(row.line, row.whole) for row in rows] == [
        (1, True),
        (2, False),
        (3, False),
        (4, False),
        (5, False),
        (6, True),
    ]


# --- Parquet --------------------------------------------------------------------------


def test_parquet_is_read(tmp_path):
    """Rows are numbered from one, over all batches."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": range(3000)}), path)
    rows = list(read_parquet(path, ["a"]))
    assert [(row.line, row.values["a"]) for row in rows] == [(n + 1, n) for n in range(3000)]


def test_what_is_no_parquet_is_refused(tmp_path):
    """Another file under that name is refused by its name."""
    with pytest.raises(BadInputError, match=r"x\.parquet"):
        list(read_parquet(put(tmp_path, "x.parquet", CSV)))


# --- columns and files ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_missing_column_is_named(tmp_path, kind):
    """The first column that a table lacks is named."""
    path = tmp_path / f"x.{kind}"
    pq.write_table(pa.Table.from_pylist(OBJECTS), path)
    if kind != "parquet":
        path.write_bytes(CSV if kind == "csv" else LINES)
    read = {"csv": read_csv, "jsonl": read_json_lines, "parquet": read_parquet}[kind]
    with pytest.raises(BadInputError, match="no column 'Report' among its 2; check its version"):
        list(read(path, ["a", "Report", "View"]))


def test_a_table_without_a_head_shows_no_report(tmp_path):
    """Where the first line is a patient's row, no cell of it is repeated; a column that is meant is."""
    path = tmp_path / "x.csv"
    path.write_text("p1,The lungs are clear.\np2,New effusion.\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="no column 'Report' among its 2; ") as caught:
        list(read_csv(path, ["Report"]))
    assert "lungs" not in str(caught.value)
    path.write_text("Patient,report\np1,Clear.\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="no column 'Report' among its 2, but 'report'; "):
        list(read_csv(path, ["Report"]))


def test_columns_that_are_there(tmp_path):
    """Nothing is said where nothing is missing."""
    check_columns(tmp_path, ["a", "b"], ["b"])


def test_the_first_file_that_is_there(tmp_path):
    """Of several names the first that exists counts; a folder of that name is no file."""
    (tmp_path / "a.csv").mkdir()
    (tmp_path / "b.csv").write_bytes(b"")
    assert find_file(tmp_path, "a.csv", "b.csv") == tmp_path / "b.csv"


def test_missing_files_are_named(tmp_path):
    """All names that would have done are said."""
    with pytest.raises(BadInputError, match=r"no file a\.csv or a\.csv\.gz"):
        find_file(tmp_path, "a.csv", "a.csv.gz")


def test_no_text_of_a_table_is_in_a_message(tmp_path):
    """What stands in a damaged file is not repeated."""
    path = put(tmp_path, "x.csv", b'a,b\n"secret" finding,2\n')
    with pytest.raises(BadInputError) as error:
        list(read_csv(path))
    assert "secret" not in str(error.value)
