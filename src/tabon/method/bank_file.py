"""The bank's file: one file that is whole or refused (docs/decisions/bank-file.md).

    magic (8) | header length (8, little endian) | header (JSON) | sha256 of all that (32) | blobs

The header names each blob's type, shape, place and sha256. Blobs lie end to end,
each filled up with zeros to a multiple of 64 bytes, fill included in its sum. Arrays
go in and out piece by piece, so a file may be larger than memory. A right sum
says nothing of who made a file: whatever is read is checked before it is used, and no
number of a file is allotted before the file's size bounds it.
"""

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from tabon._internal.atomic_files import replacing
from tabon.errors import BadInputError, BankDamagedError, TabonError
from tabon.text.file_kinds import check_kind

ALIGNMENT = 64
MAX_HEADER = 1 << 24
HEADER_ROOM = 1 << 14  # kept free for a header that is written last
FIRST_LINE = 1 << 20  # bytes that are looked at to say what a file is that is no bank
CHUNK = 1 << 24  # bytes that are summed or written at once
DTYPES = frozenset({"<f2", "<f4", "<i4", "<i8", "<u8", "|u1"})
MOST_AXES = 3  # of one array
MOST_NUMBERS = 1 << 56  # of one array, empty sides counted as 1
HELD = 1 << 31  # bytes of a file that is held in memory if that is asked for; a larger one is mapped

Arrays = Mapping[str, NDArray[Any]]
Test = Callable[[Any], bool]
Pattern = Test | dict[str, "Pattern"] | list["Pattern"]  # of a JSON value; a list has one pattern for all
Parts = Mapping[str, tuple[str, tuple[int | str, ...]]]  # name: type and shape, see `check_parts`


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file of arrays is: how it begins, and how a missing or damaged one is refused."""

    magic: bytes
    missing: Callable[[Path], TabonError]
    damaged: Callable[[Path, str], TabonError]


BANK = FileKind(
    magic=b"TABONBK1",
    missing=lambda path: BadInputError(f"there is no bank at {path}; make one with `tabon bank build`"),
    damaged=BankDamagedError,
)


@dataclass(frozen=True, slots=True, eq=False)
class BankFile:
    """A bank as it lies on disk: facts, arrays (memory-mapped or held), and the sum over both."""

    facts: Mapping[str, Any]
    arrays: Arrays
    sha256: str
    place: Path = Path("the bank")  # what messages call it


def bank_file(facts: Mapping[str, Any], arrays: Arrays) -> BankFile:
    """Return a bank as it would lie on disk, with its sum."""
    return BankFile(facts, arrays, _bank_head(facts, arrays)[-32:].hex())


def write_bank_file(path: Path, file: BankFile) -> None:
    """Write a bank file in one step; on failure the old file stays."""
    with replacing(path) as out:
        out.write(_bank_head(file.facts, file.arrays))
        for array in file.arrays.values():
            for piece in _padded(array):
                out.write(piece)


def read_bank_file(
    path: Path,
    *,
    verify: bool = True,
    kind: FileKind = BANK,
    unchecked: Collection[str] = (),
    in_memory: bool = False,
) -> BankFile:
    """Open a file of arrays.

    With `verify` the sum of every part but the `unchecked` ones, too large to be summed at each opening,
    is checked before use. With `in_memory` a copy is held, which no later change of the file reaches; not
    of a file over `HELD`.
    """
    data = _bytes_of(path, kind, in_memory=in_memory)
    header, start, digest = _read_head(path, data, kind)
    entries, arrays = header["blobs"], {}
    if start + sum(entry["length"] for entry in entries) != len(data):
        raise kind.damaged(path, f"it has {len(data)} bytes, its header speaks of another length")
    if len({entry["name"] for entry in entries}) != len(entries):
        raise kind.damaged(path, "two of its parts have one name")
    for entry in entries:
        name, dtype = entry["name"], np.dtype(entry["dtype"])
        size = prod(entry["shape"]) * dtype.itemsize
        if entry["length"] != size + -size % ALIGNMENT:
            raise kind.damaged(path, f"its part {name!r} has another length than its shape")
        blob = data[start : start + entry["length"]]
        if verify and name not in unchecked and sha256(blob.data).hexdigest() != entry["sha256"]:
            raise kind.damaged(path, f"its part {name!r} was changed")
        arrays[name] = blob[:size].view(dtype).reshape(entry["shape"])
        start += entry["length"]
    return BankFile(header["facts"], arrays, digest, path)


def is_text(value: object) -> bool:
    """Tell whether a JSON value is a string."""
    return isinstance(value, str)


def is_count(value: object) -> bool:
    """Tell whether a JSON value is a whole number from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_number(value: object) -> bool:
    """Tell whether a JSON value is a finite number."""
    finite = isinstance(value, int | float) and abs(value) <= sys.float_info.max
    return finite and not isinstance(value, bool)


HEADER: Pattern = {
    "blobs": [
        {
            "name": is_text,
            "dtype": lambda value: isinstance(value, str) and value in DTYPES,
            "shape": lambda value: (
                isinstance(value, list)
                and len(value) <= MOST_AXES
                and all(map(is_count, value))
                and prod(max(1, size) for size in value) < MOST_NUMBERS
            ),
            "length": is_count,
            "sha256": is_text,
        }
    ],
    "facts": lambda value: isinstance(value, dict),
}


def misfit(value: object, pattern: Pattern, place: str) -> str | None:
    """Return the place where a JSON value is not what a pattern asks for; None if it fits.

    >>> misfit({"a": [1, -1]}, {"a": [is_count]}, "facts")
    'facts.a[1]'
    """
    if isinstance(pattern, dict):
        if not isinstance(value, dict):
            return place
        found = (misfit(value.get(key), inner, f"{place}.{key}") for key, inner in pattern.items())
    elif isinstance(pattern, list):
        if not isinstance(value, list):
            return place
        found = (misfit(one, pattern[0], f"{place}[{number}]") for number, one in enumerate(value))
    else:
        return None if pattern(value) else place
    return next(filter(None, found), None)


def check_parts(file: BankFile, parts: Parts, kind: FileKind) -> dict[str, int]:
    """Refuse a file whose arrays are not those of a table; return the sizes that the table names.

    A size is a number, or a name (`rows`, `rows + 1`) that stands for the same number wherever it occurs.
    """
    sizes: dict[str, int] = {}
    if other := sorted(parts.keys() ^ file.arrays.keys()):
        raise kind.damaged(file.place, f"its part {other[0]!r} is missing, or unknown")
    for name, (dtype, shape) in parts.items():
        array = file.arrays[name]
        fits = array.dtype.str == dtype and array.ndim == len(shape)
        for found, size in zip(array.shape, shape, strict=True) if fits else ():
            key, _, more = str(size).partition(" + ")
            value = found - int(more or 0)
            fits &= value >= 0 and value == (size if isinstance(size, int) else sizes.setdefault(key, value))
        if not fits:
            raise kind.damaged(file.place, f"its part {name!r} has the wrong type or shape")
    return sizes


def ascends(offsets: NDArray[Any], end: int) -> bool:
    """Tell whether offsets begin at 0, never fall, and end where they should.

    >>> ascends(np.array([0, 2, 2, 5]), 5), ascends(np.array([0, 4, 2, 5]), 5)
    (True, False)
    """
    return bool(offsets[0] == 0 and offsets[-1] == end and (offsets[1:] >= offsets[:-1]).all())


def _bytes_of(path: Path, kind: FileKind, *, in_memory: bool) -> NDArray[np.uint8]:
    """Return the bytes of a regular file, mapped or held: a pipe would never end, a device has no size."""
    try:
        if kind is BANK and path.is_dir():
            raise BadInputError(f"{path} is a folder, not a bank; give the file that `tabon bank build` made")
        if path.exists() and not path.is_file():
            raise kind.damaged(path, "it is not a regular file")
        if in_memory and path.stat().st_size <= HELD:
            held = np.fromfile(path, dtype=np.uint8)
            held.flags.writeable = False
            return held
        return np.memmap(path, dtype=np.uint8, mode="r")
    except FileNotFoundError:
        raise kind.missing(path) from None
    except TabonError:
        raise
    except (ValueError, OSError) as error:
        raise kind.damaged(path, f"it cannot be opened ({type(error).__name__})") from error


class ArrayWriter:
    """A file of arrays that is written front to back; its header is filled in at the end."""

    def __init__(self, out: IO[bytes], kind: FileKind) -> None:
        """Leave room for the header."""
        self._out, self._kind = out, kind
        self._entries: list[dict[str, Any]] = []
        out.write(bytes(HEADER_ROOM))

    def add(self, name: str, blocks: Iterable[NDArray[Any]]) -> None:
        """Write one blob, given as blocks of rows; the first may be empty, but has its type and width."""
        total, length, shape, dtype = sha256(), 0, [0], np.dtype("|u1")
        for block in blocks:
            dtype, shape = block.dtype, [shape[0] + len(block), *block.shape[1:]]
            for piece in _pieces(block):
                total.update(piece)
                length += self._out.write(piece)
        fill = bytes(-length % ALIGNMENT)
        total.update(fill)
        self._out.write(fill)
        self._entries.append(_entry(name, dtype, shape, length + len(fill), total.hexdigest()))

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Write the header."""
        head = _head(self._entries, facts, self._kind, room=HEADER_ROOM)
        if len(head) > HEADER_ROOM:
            raise BadInputError(f"the header has {len(head)} bytes, there is room for {HEADER_ROOM}")
        self._out.seek(0)
        self._out.write(head)


@contextmanager
def array_writer(path: Path, kind: FileKind) -> Iterator[ArrayWriter]:
    """Give a writer of a file that takes its name when the block ends well."""
    with replacing(path) as out:
        yield ArrayWriter(out, kind)


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    """Yield an array's bytes, some megabytes at a time."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return (flat[start : start + CHUNK].data for start in range(0, len(flat), CHUNK))


def _padded(array: NDArray[Any]) -> Iterator[memoryview | bytes]:
    """Yield an array's bytes, filled up to the alignment."""
    yield from _pieces(array)
    yield bytes(-array.nbytes % ALIGNMENT)


def _entry(name: str, dtype: np.dtype[Any], shape: list[int], length: int, digest: str) -> dict[str, Any]:
    """Describe one blob."""
    return {"name": name, "dtype": dtype.str, "shape": shape, "length": length, "sha256": digest}


def _bank_head(facts: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Lay out everything before the first blob of a bank."""
    entries = []
    for name, array in arrays.items():
        total = sha256()
        for piece in _padded(array):
            total.update(piece)
        length = array.nbytes + -array.nbytes % ALIGNMENT
        entries.append(_entry(name, array.dtype, list(array.shape), length, total.hexdigest()))
    return _head(entries, facts, BANK)


def _head(entries: list[dict[str, Any]], facts: Mapping[str, Any], kind: FileKind, room: int = 0) -> bytes:
    """Lay out everything before the first blob, filled up with blanks to the room it has."""
    header = json.dumps({"blobs": entries, "facts": facts}, sort_keys=True).encode()
    taken = len(kind.magic) + 8 + len(header) + 32
    header += b" " * max(-taken % ALIGNMENT, room - taken)
    head = kind.magic + len(header).to_bytes(8, "little") + header
    return head + sha256(head).digest()


def _read_head(path: Path, data: NDArray[np.uint8], kind: FileKind) -> tuple[dict[str, Any], int, str]:
    """Return the header, where the blobs start, and the header's sum."""
    if bytes(data[:8]) != kind.magic:
        if kind is BANK:
            check_kind(bytes(data[:FIRST_LINE]).partition(b"\n")[0], "a bank", str(path))
        raise kind.damaged(path, "it does not begin like one")
    length = int.from_bytes(bytes(data[8:16]), "little")
    if length > MAX_HEADER or 16 + length + 32 > len(data):
        raise kind.damaged(path, f"its header is cut off at {len(data)} bytes")
    end = 16 + length
    digest = sha256(data[:end].data).digest()
    if digest != bytes(data[end : end + 32]):
        raise kind.damaged(path, "its header was changed")
    header = parsed(bytes(data[16:end]))
    if (place := misfit(header, HEADER, "header")) is not None:
        raise kind.damaged(path, f"its {place} is not what it should be")
    return cast("dict[str, Any]", header), end + 32, digest.hex()


def parsed(data: bytes) -> object:
    """Return the value of some JSON; None if it is no JSON, or nested too deeply."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
