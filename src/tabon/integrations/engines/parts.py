"""Finished parts of a batch, kept until all are there: a folder of files named by what they answer.

    sha256 of the rest | header (JSON, one line: format, queries, complaints) | selections (JSON Lines)

A part's name is the hash of its queries, the bank and the settings, so a part
is found again exactly when it would come out the same. Each is written in one
step; one that is damaged is as if it were not there.
"""

import fcntl
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from tabon._internal.atomic_files import replacing
from tabon.errors import BadInputError
from tabon.selectors.setup import Answered

FORMAT = "tabon-part/1"


class PartsFolder:
    """The parts of one batch on disk."""

    def __init__(self, folder: Path) -> None:
        """Make the folder, for its owner alone: answers may carry what stood beside a query."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def read(self, key: str) -> Answered | None:
        """Return a finished part; None where there is none, or none that is whole."""
        try:
            digest, _, rest = self._path(key).read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        if digest != sha256(rest).hexdigest().encode():
            return None
        head, _, lines = rest.partition(b"\n")
        header = json.loads(head)
        return (
            Answered(lines, tuple(header["complaints"]), header["queries"])
            if header["format"] == FORMAT
            else None
        )

    def write(self, key: str, part: Answered) -> None:
        """Keep a part; when this returns it is on disk."""
        header = {"format": FORMAT, "queries": part.queries, "complaints": part.complaints}
        rest = json.dumps(header).encode() + b"\n" + part.selections
        with replacing(self._path(key)) as file:
            file.write(sha256(rest).hexdigest().encode() + b"\n" + rest)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove these parts, and the folder where nothing else lies in it."""
        for key in keys:
            self._path(key).unlink(missing_ok=True)
        (self.folder / "lock").unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()

    def _path(self, key: str) -> Path:
        """Return where a part lies."""
        return self.folder / f"{key}.part"


@contextmanager
def open_parts(folder: Path) -> Iterator[PartsFolder]:
    """Give the parts of a batch to one run at a time."""
    try:
        parts = PartsFolder(folder)
        with (folder / "lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield parts
    except BlockingIOError:
        raise BadInputError(
            f"another run is writing {folder}; wait for it, or give --out another name"
        ) from None
