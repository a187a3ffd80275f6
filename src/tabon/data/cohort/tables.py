"""Tables on disk, row by row: CSV (plain, gzip, zstd), JSON objects and arrays, JSON Lines, Parquet.

Memory does not grow with the file. A missing column is named, a truncated file
is an error that names the file, a row that does not fit is the reader's to report.
"""

import csv
import gzip
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from io import BufferedReader, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import IO, Any

from tabon._internal.extras import require
from tabon.errors import BadInputError

FIELD_LIMIT = min(sys.maxsize, 2**31 - 1)  # a whole report may be in one field of a CSV file
CHUNK = 2**18  # characters of a JSON text that are read at once
LONGEST_VALUE = 2**24  # characters of one member of a JSON object; a longer one is taken for damage
PACKED = 256  # bytes that are unpacked at once; a repetitive file may hold megabytes in them
ALMOST = 0.8  # how much a column must look like the missing one to be named
DAMAGE = (EOFError, csv.Error, ValueError, OSError, RecursionError, zlib.error)
_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]+")


@dataclass(frozen=True, slots=True)
class Row:
    """One row and where it begins."""

    line: int
    values: Mapping[str, Any]
    whole: bool = True  # has as many fields as the header


def find_file(folder: Path, *names: str) -> Path:
    """Return the first of these files that is there."""
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise BadInputError(f"{folder} has no file {' or '.join(names)}; check the folder and the download")


def read_csv(path: Path, columns: Iterable[str] = (), *, delimiter: str = ",") -> Iterator[Row]:
    """Yield the rows of a CSV file; the columns named must be there."""
    csv.field_size_limit(FIELD_LIMIT)
    with whole(path), open_text(path) as file:
        reader = csv.reader(file, strict=True, delimiter=delimiter)
        header = next(reader, [])
        check_columns(path, header, columns)
        if not header:
            raise EOFError  # the file is empty
        row, line, is_short = None, reader.line_num + 1, False
        for fields in reader:
            begin, line = line, reader.line_num + 1
            if not fields:
                continue  # a blank line
            if row is not None:
                yield row
            row = Row(begin, dict(zip(header, fields, strict=False)), len(fields) == len(header))
            is_short = len(fields) < len(header)
        if is_short:
            raise EOFError  # the last row is cut off
        if row is not None:
            yield row


def read_json_object(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the members of one large JSON object, which may hold NaN as Python writes it."""
    with whole(path), open_text(path) as file:
        text = _JsonText(file)
        for _ in text.items("{", "}"):
            if text.peek() != '"':
                raise ValueError("a key is no string")
            key = str(text.value())
            text.step(":")
            yield key, text.value()


def read_json_array(path: Path) -> Iterator[Any]:
    """Yield the items of one large JSON array, which may hold NaN as Python writes it."""
    with whole(path), open_text(path) as file:
        text = _JsonText(file)
        for _ in text.items("[", "]"):
            yield text.value()


class _JsonText:
    """A JSON text of which only the part at hand is held."""

    def __init__(self, file: IO[str]) -> None:
        """Begin before the first character."""
        self._file, self._held, self._at = file, "", 0

    def _read_on(self) -> bool:
        """Forget what was parsed and hold more; False at the end."""
        chunk = self._file.read(CHUNK)
        self._held, self._at = self._held[self._at :] + chunk, 0
        return bool(chunk)

    def peek(self) -> str:
        """Return the next character that is no blank, or nothing at the end."""
        while True:
            blank = _BLANKS.match(self._held, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._read_on():
                return ""

    def step(self, marks: str) -> str:
        """Step over one of these marks and return it."""
        mark = self.peek()
        if not mark:
            raise EOFError
        if mark not in marks:
            raise ValueError(f"expected one of {marks}")
        self._at += 1
        return mark

    def items(self, opening: str, closing: str) -> Iterator[None]:
        """Step to each item of the one object or array, which is read before the next step."""
        self.step(opening)
        mark = self.step(closing) if self.peek() == closing else ","
        while mark == ",":
            yield
            mark = self.step(f",{closing}")
        if self.peek():
            raise ValueError("more than one JSON value")

    def value(self) -> object:
        """Parse a value; hold more until it is whole and something follows it."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except ValueError:
                end = len(self._held)
            if end < len(self._held):
                self._at = end
                return value
            if end - self._at > LONGEST_VALUE or not self._read_on():
                raise EOFError  # cut off, or damaged


def read_json_lines(path: Path, columns: Iterable[str] = ()) -> Iterator[Row]:
    """Yield the objects of a JSON Lines file."""
    with whole(path), open_bytes(path) as file:
        for line, text in enumerate(file, start=1):
            try:
                values = json.loads(text)
            except (ValueError, RecursionError):
                values = None
            if isinstance(values, dict):
                check_columns(path, values, columns)
                yield Row(line, values)
            elif not text.endswith(b"\n"):
                raise EOFError  # the last line is cut off
            elif text.strip():
                yield Row(line, {}, whole=False)


def read_parquet(path: Path, columns: Iterable[str] = ()) -> Iterator[Row]:
    """Yield the rows of a Parquet file, numbered from 1."""
    parquet = require("pyarrow.parquet", extra="cohort", feature="Parquet files")
    with whole(path):
        file = parquet.ParquetFile(path)
        check_columns(path, file.schema_arrow.names, columns)
        rows = (row for batch in file.iter_batches(batch_size=1024) for row in batch.to_pylist())
        yield from (Row(number, row) for number, row in enumerate(rows, start=1))


def check_columns(path: Path, found: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a table by the name of the first column it lacks.

    A column that looks like it is named; others are not: a table without a head has reports there.
    """
    names = list(map(str, found))
    for column in wanted:
        if column not in names:
            close = get_close_matches(column, names, n=1, cutoff=ALMOST)
            hint = f", but {close[0]!r}" if close else ""
            raise BadInputError(
                f"{path} has no column {column!r} among its {len(names)}{hint}; check its version"
            )


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a file as UTF-8 text, unpacking .gz and .zst."""
    with open_bytes(path) as file, TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        yield text


@contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """Open a file as bytes, unpacking .gz and .zst."""
    if path.suffix in {".gz", ".zst"} and path.stat().st_size == 0:
        raise EOFError  # would be taken for a whole file
    if path.suffix == ".gz":
        with gzip.open(path) as unpacked:
            yield unpacked
    elif path.suffix == ".zst":
        zstandard = require("zstandard", extra="cohort", feature="zstd-compressed files")
        new_frame = zstandard.ZstdDecompressor().decompressobj
        with BufferedReader(_ZstdFile(path.open("rb"), new_frame)) as buffered:
            yield buffered
    else:
        with path.open("rb") as file:
            yield file


class _ZstdFile(RawIOBase):
    """A zstd file as bytes; unlike the package's own reader it refuses a truncated one."""

    def __init__(self, file: IO[bytes], new_frame: Callable[[], Any]) -> None:
        """Begin before the first frame."""
        self._file, self._new_frame = file, new_frame
        self._frame: Any = None
        self._packed, self._ready = b"", memoryview(b"")

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # a writeable buffer has no name
        """Unpack the next bytes."""
        while not self._ready:
            self._packed = self._packed or self._file.read(PACKED)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError
                break
            self._frame = self._frame or self._new_frame()
            self._ready = memoryview(self._frame.decompress(self._packed))
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def close(self) -> None:
        """Close the packed file too."""
        self._file.close()
        super().close()


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Turn what a truncated or foreign file raises, also inside an optional package, into one sentence."""
    try:
        yield
    except BadInputError:
        raise
    except Exception as error:
        foreign = type(error).__module__.partition(".")[0] in {"zstandard", "pyarrow"}
        if not (foreign or isinstance(error, DAMAGE)):
            raise
        raise BadInputError(
            f"{path} is truncated or damaged ({type(error).__name__}); copy it again"
        ) from error
