"""The journal of drafts: append-only, on disk before it counts, found again by key.

Drafts cost money and models are retired, so the journal is the artefact. One line is one response,
with a checksum. A last line that was cut off by a kill was never acknowledged and is dropped on
opening; a line damaged later is an error, and so is a file that is no journal. A lock keeps other
writers off.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, ClassVar
from zlib import crc32

from tabon.errors import BadInputError
from tabon.generation.protocol import Answer, Parameters

MAX_LEVELS = 100  # of lists and objects inside each other in a body that is kept
MOST_DOLLARS = 1e12  # a cost beyond it, below 0 or not a number counts as unknown
NEW_FIELDS = frozenset({"seed", "source"})  # of a key; records of the first version were keyed without them
_END = re.compile(rb', "crc": \d+\}')


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftKey:
    """What makes a draft the draft that was asked for; any change is another draft."""

    study: str
    model: str
    source: str | None  # the server, revision or command behind the model's name; None: its only one
    prompt: str  # its name
    prompt_sha256: str  # of the prompt as sent
    image_sha256: str | None
    parameters: Parameters
    sample: int
    seed: int

    def digest(self) -> str:
        """Return the key under which the draft is kept."""
        return _digest(asdict(self))

    def old_digest(self) -> str:
        """Return the key that the first version gave to this draft, whatever its seed and source."""
        return _digest({name: value for name, value in asdict(self).items() if name not in NEW_FIELDS})


def _digest(key: Mapping[str, Any]) -> str:
    """Hash the fields of a key."""
    return sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


class Kept:
    """Which drafts a journal holds, and what they cost."""

    def __init__(self) -> None:
        """Start with none."""
        self._keys: set[bytes] = set()
        self._unnamed: set[bytes] = set()  # of records that do not say which server wrote them
        self.cost = 0.0

    def __contains__(self, key: DraftKey) -> bool:
        """Whether this draft is there.

        Raises:
            BadInputError: it may be there, by a version of tabon that did not note its server.
        """
        if bytes.fromhex(key.digest()) in self._keys:
            return True
        if (
            self._unnamed
            and key.source is not None
            and bytes.fromhex(replace(key, source=None).digest()) in self._unnamed
        ):
            raise BadInputError(
                f"the journal holds drafts of {key.model} by a version of tabon that did not note which "
                "server, revision or command wrote them; write to another --out"
            )
        return False

    def __len__(self) -> int:
        """Count the drafts."""
        return len(self._keys)

    def add(self, record: Mapping[str, Any]) -> None:
        """Index one record; one of the first version by its fields, with the seed it was drawn with."""
        if "source" in record:
            self._keys.add(bytes.fromhex(record["key"]))
        else:
            names = [field.name for field in fields(DraftKey) if field.name != "source"]
            known = {name: record[name] for name in names} | {"study": str(record["study"]), "source": None}
            digest = bytes.fromhex(_digest(known))
            self._keys.add(digest)
            self._unnamed.add(digest)
        cost = record.get("cost")
        if isinstance(cost, int | float) and 0 <= cost <= MOST_DOLLARS:
            self.cost += cost


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
        for number, line, record in _records(self.path, type(self)):
            try:
                self._remember(record)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                raise _misfit(self.path, number) from None
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


class Journal(Kept, RecordFile):
    """An open journal: what is in it, and the end where more is written."""

    BEGIN = b'{"key": "'
    FIRST = re.compile(rb'\{"key": "[0-9a-f]{64}", "study": ')

    def __init__(self, path: Path) -> None:
        """Open or create a journal, drop a cut-off end, and index what is there."""
        Kept.__init__(self)
        RecordFile.__init__(self, path)

    def _remember(self, record: Mapping[str, Any]) -> None:
        """Index one record."""
        if not _fits(record):
            raise ValueError("not the record of a draft")
        self.add(record)


def draft_line(key: DraftKey, answer: Answer, *, cost: float | None, time: str) -> bytes:
    """Return the line of one response."""
    return record_line(
        {
            "key": key.digest(),
            **asdict(key),
            "outcome": answer.outcome,
            "text": answer.text,
            "finish_reason": answer.finish_reason,
            "model_version": answer.model_version,
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "cost": cost,
            "time": time,
            "raw": answer.raw if _is_shallow(answer.raw, MAX_LEVELS) else "nested too deeply to be kept",
        }
    )


def can_be_kept(key: DraftKey) -> bool:
    """Whether a draft under this key could be read again."""
    return _fits(json.loads(draft_line(key, Answer(outcome="malformed"), cost=None, time="")))


def record_line(record: Mapping[str, Any]) -> bytes:
    """Write a record as a line with its checksum at the end."""
    body = json.dumps(record, default=str)
    return body[:-1].encode() + f', "crc": {crc32(body.encode())}}}\n'.encode()


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal, oldest first; a cut-off end is left out."""
    if not Path(path).is_file():
        raise BadInputError(f"there is no journal at {path}; make one with `tabon generate`")
    for number, _, record in _records(Path(path), Journal):
        if not _fits(record):
            raise _misfit(path, number)
        yield record


def _records(path: Path, kind: type[RecordFile]) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
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
                    "or remove that line and generate its draft again"
                )
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                raise _misfit(path, number)
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


def _fits(record: Mapping[str, Any]) -> bool:
    """Whether a record has the fields of a draft; its cost is looked at where costs are added up."""
    names = ("finish_reason", "model_version", "input_tokens", "output_tokens", "cost", "raw", "parameters")
    texts = ("key", "model", "prompt", "prompt_sha256", "outcome", "text")
    image, source, sample = (record.get(name) for name in ("image_sha256", "source", "sample"))
    return (
        all(name in record for name in names)
        and all(isinstance(record.get(name), str) for name in texts)
        and re.fullmatch("[0-9a-f]{64}", record["key"]) is not None
        and isinstance(record.get("study"), str | int)
        and isinstance(record.get("seed"), int)
        and isinstance(image, str | None)
        and isinstance(source, str | None)
        and isinstance(sample, int)
        and sample >= 0
    )


def _misfit(path: Path, number: int) -> BadInputError:
    """Return the error of a line that tabon did not write."""
    return BadInputError(
        f"{path} line {number} is no record that tabon writes here; restore the file from a copy, or remove "
        "that line"
    )


def _is_shallow(value: object, levels: int) -> bool:
    """Whether a JSON value can be written and read again, however deep the stack is."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(part, levels - 1) for part in parts)
