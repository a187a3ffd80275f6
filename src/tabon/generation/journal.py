"""The journal of drafts: append-only, on disk before it counts, found again by key.

Drafts cost money and models are retired, so the journal is the artefact. One
line is one response, with a checksum. A line that was cut off by a kill was
never acknowledged and is dropped on opening; a line damaged later is an error.
One process writes at a time; a lock holds the others off.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from zlib import crc32

from tabon.errors import BadInputError
from tabon.generation.protocol import Answer, Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftKey:
    """What makes a draft the draft that was asked for; any change is another draft."""

    study: str
    model: str
    prompt: str  # its name
    prompt_sha256: str  # of the prompt as sent
    image_sha256: str | None
    parameters: Parameters
    sample: int

    def digest(self) -> str:
        """Return the key under which the draft is kept."""
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


class Journal:
    """An open journal: what is in it, and the end where more is written."""

    def __init__(self, path: Path) -> None:
        """Open or create a journal, drop a cut-off end, and index what is there."""
        self.path = Path(path)
        self._keys: set[bytes] = set()
        self.cost = 0.0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = os.fdopen(
                os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0
            )
        except OSError as error:
            raise BadInputError(f"cannot open {path} ({error.strerror}); choose another place") from error
        self._lock()
        self._end = self._index()

    def __contains__(self, key: DraftKey) -> bool:
        """Whether this draft was bought already."""
        return bytes.fromhex(key.digest()) in self._keys

    def __len__(self) -> int:
        """Count the drafts."""
        return len(self._keys)

    def append(self, lines: list[bytes]) -> None:
        """Write lines; when this returns they are on disk. On failure the journal ends where it did."""
        data = b"".join(lines)
        try:
            self._file.seek(self._end)
            written = 0
            while written < len(data):
                written += self._file.write(data[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            self._cut_off()
            raise BadInputError(
                f"cannot write {self.path} ({error.strerror}); make room and run again: what was kept stays"
            ) from error
        self._end += len(data)
        for line in lines:
            self._remember(json.loads(line))

    def close(self) -> None:
        """Let the file and its lock go."""
        self._file.close()

    def _lock(self) -> None:
        """Hold other writers off."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise BadInputError(
                f"{self.path} is being written by another process; wait for it to end"
            ) from None

    def _index(self) -> int:
        """Remember every record; return where the last whole line ends."""
        end = 0
        try:
            for record, end in _records(self.path):  # noqa: B007  # the last end is used
                self._remember(record)
        except BadInputError:
            self._file.close()
            raise
        self._file.truncate(end)
        return end

    def _remember(self, record: Mapping[str, Any]) -> None:
        """Index one record."""
        self._keys.add(bytes.fromhex(record["key"]))
        self.cost += record.get("cost") or 0.0

    def _cut_off(self) -> None:
        """Drop what a failed write left behind, as far as the disk lets us."""
        try:
            self._file.truncate(self._end)
        except OSError:
            self._file.close()


def draft_line(key: DraftKey, answer: Answer, *, seed: int, cost: float | None, time: str) -> bytes:
    """Return the line of one response."""
    record = {
        "key": key.digest(),
        **asdict(key),
        "seed": seed,
        "outcome": answer.outcome,
        "text": answer.text,
        "finish_reason": answer.finish_reason,
        "model_version": answer.model_version,
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "cost": cost,
        "time": time,
        "raw": answer.raw,
    }
    body = json.dumps(record, default=str)
    return body[:-1].encode() + f', "crc": {crc32(body.encode())}}}\n'.encode()


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal, oldest first; a cut-off end is left out."""
    if not Path(path).is_file():
        raise BadInputError(f"there is no journal at {path}; make one with `tabon generate`")
    for record, _ in _records(Path(path)):
        yield record


def _records(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each whole record and where its line ends."""
    end = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return  # cut off by a kill: never acknowledged
            end += len(line)
            yield _checked(path, number, line), end


def _checked(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """Parse one line and compare its checksum."""
    body, mark, tail = line.rpartition(b', "crc": ')
    if not mark or tail != b"%d}\n" % crc32(body + b"}"):
        raise BadInputError(
            f"{path} line {number} was damaged after it was written; restore the file from a copy, "
            "or remove that line and buy its draft again"
        )
    record: dict[str, Any] = json.loads(line)
    return record
