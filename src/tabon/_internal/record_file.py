"""Append-only files of checked lines: on disk before they count, whatever kills the writer.

A line is one record with a checksum. A last line that was cut off by a kill was never acknowledged and is
dropped on opening; a line damaged later is an error, and so is a file of another kind. A lock keeps other
writers off.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, ClassVar
from zlib import crc32

from tabon.errors import BadInputError

_END = re.compile(rb', "crc": \d+\}')


class RecordFile:
    """An append-only file of checked lines, open for writing."""

    BEGIN: ClassVar[bytes]  # how every record begins
    FIRST: ClassVar[re.Pattern[bytes]]  # how the first one begins, in all that is certain

    def __init__(self, path: Path) -> None:
        """Open or create the file, drop a cut-off end, and remember what is there."""
        self.path = Path(path)
        self.mended: str | None = None  # what opening did to the file
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and not self.path.is_file():
                raise BadInputError(f"{path} is not a plain file; choose another place")
            self._file: IO[bytes] = os.fdopen(
                os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0
            )
        except OSError as error:
            raise BadInputError(f"cannot open {path} ({error.strerror}); choose another place") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise BadInputError(f"{path} is being written by another process; wait for it to end") from None
        try:
            self._end = self._index()
        except BaseException:
            self._file.close()
            raise

    def append(self, lines: list[bytes]) -> None:
        """Write lines; when this returns they are on disk. On failure the file ends where it did."""
        data = b"".join(lines)
        try:
            self._file.seek(self._end)
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            try:
                self._file.truncate(self._end)  # drops what was written, as far as the disk lets us
            except OSError:
                self._file.close()
            raise BadInputError(
                f"cannot write {self.path} ({error.strerror}); make room and run again: what was kept stays"
            ) from error
        self._end += len(data)
        for line in lines:
            self._remember(json.loads(line))

    def close(self) -> None:
        """Let the file and its lock go."""
        self._file.close()

    def _index(self) -> int:
        """Remember every record, mend the end of the last line, and return where it ends."""
        end, line = 0, b"\n"
        for number, line, record in read_records(self.path, type(self)):
            try:
                self._remember(record)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                raise misfit(self.path, number) from None
            end += len(line)
        torn = os.fstat(self._file.fileno()).st_size - end
        if torn:
            self._file.truncate(end)
            self.mended = f"{self.path}: {torn} bytes of a last line that was cut off in writing were dropped"
        if not line.endswith(b"\n"):
            self._file.seek(end)
            end += self._file.write(b"\n")
            self.mended = f"{self.path}: the last line had lost its end and got it back"
        return end

    def _remember(self, record: Mapping[str, Any]) -> None:
        """Index one record; what does not fit raises."""
        raise NotImplementedError


def record_line(record: Mapping[str, Any]) -> bytes:
    """Write a record as a line with its checksum at the end."""
    body = json.dumps(record, default=str)
    return body[:-1].encode() + f', "crc": {crc32(body.encode())}}}\n'.encode()


def read_records(path: Path, kind: type[RecordFile]) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """Yield the number, the line and the record of each whole line; a torn end is left out."""
    with path.open("rb") as file:
        if not kind.BEGIN.startswith(file.read(len(kind.BEGIN))):
            raise BadInputError(f"{path} is another kind of file and stays as it is; choose another place")
        file.seek(0)
        for number, line in enumerate(file, start=1):
            if not _is_whole(line):
                if _is_torn(line, kind, alone=number == 1):
                    return  # cut off by a kill: never acknowledged
                raise BadInputError(
                    f"{path} line {number} was damaged after it was written; restore the file from a copy, "
                    "or remove that line"
                )
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                raise misfit(path, number)
            yield number, line, record


def _is_whole(line: bytes) -> bool:
    """Whether a line has the checksum that it says; its newline may be lost."""
    body, mark, tail = line.removesuffix(b"\n").rpartition(b', "crc": ')
    return bool(mark) and tail == b"%d}" % crc32(body + b"}")


def _is_torn(line: bytes, kind: type[RecordFile], *, alone: bool) -> bool:
    """Whether a line is the beginning of a record, and holds the end of none; alone it must be sure."""
    begins = line[: len(kind.BEGIN)] == kind.BEGIN[: len(line)]
    ours = kind.FIRST.match(line) is not None if alone else begins
    return ours and not line.endswith(b"\n") and _END.search(line) is None


def misfit(path: Path, number: int) -> BadInputError:
    """Return the error of a line that tabon did not write."""
    return BadInputError(
        f"{path} line {number} is no record that tabon writes here; restore the file from a copy, or remove "
        "that line"
    )
