"""Files of arrays, byte by byte: what is written, what is read, and what is refused behind right sums."""

import json
import os
import sys
from hashlib import sha256

import numpy as np
import pytest

from tabon.errors import BadInputError, BankDamagedError
from tabon.method import bank_file as bank_files
from tabon.method.bank_file import (
    BANK,
    BankFile,
    FileKind,
    array_writer,
    ascends,
    bank_file,
    check_parts,
    is_count,
    is_number,
    is_text,
    misfit,
    read_bank_file,
    write_bank_file,
)

ARRAYS = {
    "halves": np.arange(6, dtype="<f2").reshape(2, 3),
    "empty": np.empty((0, 5), dtype="<f4"),
    "cube": np.arange(64, dtype="<i4").reshape(4, 4, 4),
    "longs": np.arange(7, dtype="<i8"),
    "hashes": np.arange(8, dtype="<u8"),
    "bytes": np.arange(65, dtype="|u1"),
}


def laid_out(header, *blobs):
    """Return a file by hand: any header, with right sums."""
    told = header if isinstance(header, bytes) else json.dumps(header).encode()
    head = b"TABONBK1" + len(told).to_bytes(8, "little") + told
    return b"".join([head, sha256(head).digest(), *blobs])


def entry(blob=b"", **changes):
    """Describe a part of bytes."""
    described = {"name": "x", "dtype": "|u1", "shape": [len(blob)], "length": len(blob)}
    return described | {"sha256": sha256(blob).hexdigest()} | changes


def reading(tmp_path, data, **options):
    """Read a file of these bytes."""
    path = tmp_path / "x.tabon"
    path.write_bytes(data)
    return read_bank_file(path, **options)


def same(found, expected):
    """Whether arrays are the same by name, type, shape and value."""
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)


def test_a_file_is_laid_out_as_the_docs_say(tmp_path):
    """Magic, length, header, its sum; then parts at multiples of 64, zeros between, nothing behind."""
    path = tmp_path / "x.tabon"
    file = bank_file({"note": "é"}, ARRAYS)
    write_bank_file(path, file)
    data = path.read_bytes()
    end = 16 + int.from_bytes(data[8:16], "little")
    assert data[:8] == b"TABONBK1"
    assert sha256(data[:end]).digest() == data[end : end + 32]
    assert file.sha256 == read_bank_file(path).sha256 == data[end : end + 32].hex()
    header, at = json.loads(data[16:end]), end + 32
    assert header["facts"] == {"note": "é"}
    assert data[16:end].startswith(
        b'{"blobs": [{"dtype": '
    )  # keys in order, so that equal banks are equal files
    assert len(data[16:end].rstrip()) > end - 16 - 64
    for told, (name, array) in zip(header["blobs"], ARRAYS.items(), strict=True):
        assert at % 64 == 0
        assert (told["name"], told["dtype"], told["shape"]) == (name, array.dtype.str, list(array.shape))
        blob = data[at : at + told["length"]]
        assert blob[: array.nbytes] == array.tobytes()
        assert blob[array.nbytes :] == bytes(-array.nbytes % 64)
        assert sha256(blob).hexdigest() == told["sha256"]
        at += told["length"]
    assert at == len(data)
    same(read_bank_file(path).arrays, ARRAYS)


@pytest.mark.parametrize("chunk", [1, 64, 100, 1 << 24])
def test_pieces_change_no_byte(tmp_path, monkeypatch, chunk):
    """However many bytes go out at once, at once or block by block, the parts are the same."""
    whole = tmp_path / "whole"
    write_bank_file(whole, bank_file({}, ARRAYS))
    monkeypatch.setattr(bank_files, "CHUNK", chunk)
    write_bank_file(tmp_path / "pieces", bank_file({}, ARRAYS))
    assert (tmp_path / "pieces").read_bytes() == whole.read_bytes()
    with array_writer(tmp_path / "blocks", BANK) as writer:
        for name, array in ARRAYS.items():
            writer.add(name, [array[:0], array[:1], array[1:3], array[3:]])
        writer.finish({"note": 1})
    found = read_bank_file(tmp_path / "blocks")
    same(found.arrays, ARRAYS)
    assert found.facts == {"note": 1}
    data = (tmp_path / "blocks").read_bytes()
    assert len(data) == 16_384 + sum(-(-array.nbytes // 64) * 64 for array in ARRAYS.values())
    assert data[16_384 : 16_384 + 12] == ARRAYS["halves"].tobytes()


def test_a_part_of_no_blocks_is_empty(tmp_path):
    """Nothing to write is written as bytes of no number."""
    with array_writer(tmp_path / "x", BANK) as writer:
        writer.add("none", [])
        writer.finish({})
    assert read_bank_file(tmp_path / "x").arrays["none"].shape == (0,)


def test_a_header_has_the_room_it_was_given_and_no_more(tmp_path):
    """A header that just fits is written; one byte more is an error and leaves no file."""
    with array_writer(tmp_path / "x", BANK) as writer:
        writer.finish({"note": ""})
    taken = len((tmp_path / "x").read_bytes()[16:-32].rstrip())
    free = 16_384 - 16 - 32 - taken
    with array_writer(tmp_path / "x", BANK) as writer:
        writer.finish({"note": "x" * free})
    assert read_bank_file(tmp_path / "x").facts == {"note": "x" * free}
    with (
        pytest.raises(BadInputError, match=r"has 16\d\d\d bytes, there is room for 16384"),
        array_writer(tmp_path / "y", BANK) as writer,
    ):
        writer.finish({"note": "x" * (free + 1)})
    assert not (tmp_path / "y").exists()


def test_a_header_over_16_mb_is_not_read(tmp_path):
    """A header of 16 MiB is read, a longer one is refused before it is summed or parsed."""
    header = json.dumps({"blobs": [], "facts": {}}).encode()
    assert reading(tmp_path, laid_out(header.ljust(1 << 24))).facts == {}
    with pytest.raises(BankDamagedError, match="header is cut off"):
        reading(tmp_path, laid_out(header.ljust((1 << 24) + 1)))


@pytest.mark.parametrize("missing", [1, 32, 33])
def test_a_header_without_its_sum_is_cut_off(tmp_path, missing):
    """The header's sum belongs to the head."""
    with pytest.raises(BankDamagedError, match="header is cut off"):
        reading(tmp_path, laid_out({"blobs": [], "facts": {}})[:-missing])


@pytest.mark.parametrize("place", range(8, 16))
def test_every_byte_of_the_header_s_length_counts(tmp_path, place):
    """A length that leads beyond the file, or past the header, is refused."""
    data = bytearray(laid_out({"blobs": [], "facts": {}}))
    data[place] ^= 1
    beyond = "is cut off" if place > 10 else "(is cut off|was changed)"  # 16 MB and more
    with pytest.raises(BankDamagedError, match=f"header {beyond}"):
        reading(tmp_path, bytes(data))


def test_a_changed_header_is_refused(tmp_path):
    """A header that reads well but is not the one that was summed."""
    data = laid_out({"blobs": [], "facts": {"note": "a"}})
    with pytest.raises(BankDamagedError, match="its header was changed"):
        reading(tmp_path, data.replace(b'"a"', b'"b"'))


@pytest.mark.parametrize(
    ("data", "found"),
    [(b'{"id": 1, "prior": "", "candidates": []}\n{\n', "queries"), (b"patient,date\n" * 9, "a table")],
)
def test_another_file_for_a_bank_is_named_by_its_first_line(tmp_path, data, found):
    """A bank is asked for, queries or a table are given; other files of arrays are not looked at so."""
    path = tmp_path / "x"
    path.write_bytes(data.ljust(64))
    with pytest.raises(BadInputError, match=f"x looks like {found}.*, not a bank"):
        read_bank_file(path)
    with pytest.raises(BankDamagedError, match="does not begin like one"):
        read_bank_file(path, kind=FileKind(b"TABONXY1", BANK.missing, BANK.damaged))


def test_a_file_of_another_kind_is_refused(tmp_path):
    """A whole file that begins otherwise, its sums right for what it is, is not read as a bank."""
    other = FileKind(b"TABONXY1", BANK.missing, BANK.damaged)
    with array_writer(tmp_path / "x", other) as writer:
        writer.finish({})
    assert read_bank_file(tmp_path / "x", kind=other).facts == {}
    with pytest.raises(BankDamagedError, match="does not begin like one"):
        read_bank_file(tmp_path / "x")


ONE = b"x" * 64
GOOD = {"blobs": [entry(ONE)], "facts": {}}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"", "its header is not"),
        (b"{", "its header is not"),
        (b"[" * 100_000, "its header is not"),
        ([], "its header is not"),
        ({"blobs": []}, "header.facts is not"),
        ({"facts": {}}, "header.blobs is not"),
        ({"blobs": {}, "facts": {}}, "header.blobs is not"),
        ({"blobs": [entry(), 7], "facts": {}}, r"header.blobs\[1\] is not"),
        *(
            ({"blobs": [entry(ONE, **change)], "facts": {}}, rf"blobs\[0\].{next(iter(change))} is not")
            for change in (
                {"name": 7}, {"name": None}, {"dtype": "|O"}, {"dtype": 7}, {"shape": 64}, {"shape": [-1]},
                {"shape": [True]}, {"shape": ["x"]}, {"shape": [64, 1, 1, 1]}, {"shape": [0, 2**56]},
                {"shape": [2**28, 2**28]}, {"length": -1}, {"length": 64.0}, {"length": True}, {"sha256": 7},
            )
        ),
        ({"blobs": [entry(ONE, length=128)], "facts": {}}, "speaks of another length"),
        ({"blobs": [entry(ONE, shape=[65])], "facts": {}}, "another length than its shape"),
        ({"blobs": [entry(ONE, shape=[0])], "facts": {}}, "another length than its shape"),
        ({"blobs": [entry(ONE), entry()], "facts": {}}, "two of its parts have one name"),
        ({"blobs": [entry(ONE, sha256="0" * 64)], "facts": {}}, "its part 'x' was changed"),
    ],
)  # fmt: skip
def test_a_header_that_does_not_fit_is_refused(tmp_path, header, message):
    """The place that is wrong is named, whatever the sums say."""
    assert bytes(reading(tmp_path, laid_out(GOOD, ONE)).arrays["x"]) == ONE
    with pytest.raises(BankDamagedError, match=message):
        reading(tmp_path, laid_out(header, ONE))


@pytest.mark.parametrize(
    ("shape", "bytes_"), [([], 1), ([64], 64), ([4, 16], 64), ([1, 2, 3], 6), ([0, 2**55], 0), ([0], 0)]
)
def test_shapes_of_up_to_three_sides_are_read(tmp_path, shape, bytes_):
    """Scalars, lists, tables and stacks; an empty one may have a wide side."""
    blob = (bytes(range(bytes_))).ljust(-(-bytes_ // 64) * 64, b"\0")
    header = {"blobs": [entry(blob, shape=shape)], "facts": {}}
    found = reading(tmp_path, laid_out(header, blob)).arrays["x"]
    assert found.shape == tuple(shape)
    assert found.tobytes() == bytes(range(bytes_))


def test_sums_are_checked_where_they_should_be(tmp_path):
    """A changed part is named, in its place; parts that are left unchecked, or all, pass."""
    blobs = [entry(ONE, name="a"), entry(ONE, name="b"), entry(ONE, name="c")]
    changed = laid_out({"blobs": blobs, "facts": {}}, ONE, b"y" * 64, ONE)
    with pytest.raises(BankDamagedError, match="its part 'b' was changed"):
        reading(tmp_path, changed)
    with pytest.raises(BankDamagedError, match="its part 'b' was changed"):
        reading(tmp_path, changed, unchecked={"a", "c"})
    for options in ({"unchecked": {"b"}}, {"verify": False}):
        assert bytes(reading(tmp_path, changed, **options).arrays["b"]) == b"y" * 64


def test_a_file_in_memory_is_not_reached_by_a_later_change(tmp_path):
    """A copy over a held file changes nothing; the arrays cannot be written to."""
    path = tmp_path / "x.tabon"
    write_bank_file(path, bank_file({}, ARRAYS))
    held, mapped = read_bank_file(path, in_memory=True), read_bank_file(path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"z" * size)
    same(held.arrays, ARRAYS)
    assert bytes(mapped.arrays["bytes"]) == b"z" * 65
    for file in (held, mapped):
        assert not file.arrays["longs"].flags.writeable


def test_a_file_too_large_to_be_held_is_mapped(tmp_path, monkeypatch):
    """The bound is a file that may still be held."""
    path = tmp_path / "x.tabon"
    write_bank_file(path, bank_file({}, ARRAYS))
    size = path.stat().st_size
    for held, is_held in ((size, True), (size - 1, False)):
        monkeypatch.setattr(bank_files, "HELD", held)
        array = read_bank_file(path, in_memory=True).arrays["longs"]
        assert isinstance(array, np.memmap) != is_held


def test_what_is_no_file_is_refused_at_once(tmp_path):
    """A folder, a pipe that nobody writes to, and a place with nothing."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BankDamagedError, match="not a regular file"):
        read_bank_file(tmp_path / "pipe")
    with pytest.raises(BadInputError, match="is a folder, not a bank"):
        read_bank_file(tmp_path / "folder")
    for in_memory in (False, True):
        with pytest.raises(BadInputError, match=r"no bank at .*tabon bank build"):
            read_bank_file(tmp_path / "nothing", in_memory=in_memory)
        (tmp_path / "empty").touch()
        with pytest.raises(BankDamagedError):
            read_bank_file(tmp_path / "empty", in_memory=in_memory)


@pytest.mark.parametrize(
    ("value", "text", "count", "number"),
    [
        ("x", True, False, False),
        (0, False, True, True),
        (7, False, True, True),
        (-1, False, False, True),
        (1.5, False, False, True),
        (-1.7e308, False, False, True),
        (sys.float_info.max, False, False, True),
        (float("nan"), False, False, False),
        (float("-inf"), False, False, False),
        (10**400, False, True, False),
        (True, False, False, False),
        (None, False, False, False),
    ],
)
def test_values_of_json_are_told_apart(value, text, count, number):
    """True is no number, NaN and numbers beyond float64 are not finite ones."""
    assert (is_text(value), is_count(value), is_number(value)) == (text, count, number)


def test_the_first_misfit_is_named():
    """In the order of the pattern; what the pattern does not name may be there."""
    pattern = {"a": [{"b": is_count}], "c": is_text}
    assert misfit({"a": [{"b": 1}, {"b": 2, "z": 0}], "c": "x", "more": 1}, pattern, "p") is None
    assert misfit({"a": [{"b": 1}, {"b": -2}], "c": 7}, pattern, "p") == "p.a[1].b"
    assert misfit({"a": [], "c": 7}, pattern, "p") == "p.c"
    assert misfit({"a": {}, "c": "x"}, pattern, "p") == "p.a"
    assert misfit({"a": [[]], "c": "x"}, pattern, "p") == "p.a[0]"
    assert misfit([], pattern, "p") == "p"


PARTS = {"ids": ("<i8", ("rows",)), "ends": ("<i8", ("rows + 1",)), "table": ("<f4", ("rows", 2))}


def parts(rows=3, **changes):
    """Return a file with the arrays of the table above."""
    arrays = {
        "ids": np.zeros(rows, "<i8"),
        "ends": np.zeros(rows + 1, "<i8"),
        "table": np.zeros((rows, 2), "<f4"),
    }
    return BankFile({}, {name: array for name, array in (arrays | changes).items() if array is not None}, "")


def test_arrays_are_held_against_their_table():
    """Sizes with a name are the same number everywhere, and are told."""
    assert check_parts(parts(), PARTS, BANK) == {"rows": 3}
    assert check_parts(parts(0), PARTS, BANK) == {"rows": 0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": None}, "'ids' is missing, or unknown"),
        ({"other": np.zeros(1)}, "'other' is missing, or unknown"),
        ({"ids": np.zeros(3, "<i4")}, "'ids' has the wrong"),
        ({"ids": np.zeros((3, 1), "<i8")}, "'ids' has the wrong"),
        ({"ends": np.zeros(3, "<i8")}, "'ends' has the wrong"),
        ({"ends": np.zeros(5, "<i8")}, "'ends' has the wrong"),
        ({"table": np.zeros((3, 3), "<f4")}, "'table' has the wrong"),
        ({"table": np.zeros((2, 2), "<f4")}, "'table' has the wrong"),
        ({"table": np.zeros(3, "<f4")}, "'table' has the wrong"),
    ],
)
def test_arrays_that_are_not_in_the_table_are_refused(changes, message):
    """A part missing, unknown, of another type, of other sides or of another length is named."""
    with pytest.raises(BankDamagedError, match=message):
        check_parts(parts(**changes), PARTS, BANK)


def test_offsets_of_nothing_are_one_number():
    """An empty array of offsets has no row, not even none."""
    only = {"ends": ("<i8", ("rows + 1",))}
    file = BankFile({}, {"ends": np.zeros(0, "<i8")}, "")
    with pytest.raises(BankDamagedError, match="'ends' has the wrong"):
        check_parts(file, only, BANK)


@pytest.mark.parametrize(
    ("offsets", "right"),
    [([0], False), ([0, 5], True), ([0, 2, 2, 5], True), ([1, 5], False), ([0, 6], False), ([0, 4], False),
     ([0, 6, 5], False), ([0, 3, 2, 5], False), ([0, -1, 5], False), ([-1, 0, 5], False)],
)  # fmt: skip
def test_offsets_ascend_from_0_to_the_end(offsets, right):
    """They begin at 0, never fall, and end where the rows end."""
    assert ascends(np.array(offsets), 5) == right
