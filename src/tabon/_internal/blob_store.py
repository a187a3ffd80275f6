"""An on-disk store of small numbers by hash: measured once per machine.

SQLite in WAL mode keeps it whole through kill -9 and lets several processes
read and write at once. Each row carries a checksum of its key and its blob: a
damaged one is as if it were not there. Keys are hashes, so no report text lies
in the file, which is the owner's alone (0600).
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from tabon.errors import BadInputError

CHUNK = 500
WAIT_SECONDS = 60.0
OWNER_ONLY = 0o600


class BlobStore:
    """Blobs on disk, found by key. `what` and `option` name it in messages."""

    def __init__(self, path: Path, *, table: str, what: str, option: str) -> None:
        """Open or create the store."""
        self.path, self._table, self._what, self._option = Path(path), table, what, option
        with self._connection():
            pass

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the blobs that are there and whole, by key."""
        rows: list[tuple[Any, Any, Any]] = []
        with self._connection() as connection:
            for start in range(0, len(keys), CHUNK):
                chunk = keys[start : start + CHUNK]
                marks = ",".join("?" * len(chunk))
                query = f"SELECT key, vector, crc FROM {self._table} WHERE key IN ({marks})"  # noqa: S608
                rows += connection.execute(query, chunk)
        wanted = set(keys)  # a damaged file may give other rows, and values of other types
        return {
            key: blob
            for key, blob, crc in rows
            if key in wanted and isinstance(blob, bytes) and _checksum(key, blob) == crc
        }

    def write(self, blobs: Iterable[tuple[bytes, bytes]]) -> None:
        """Add blobs; when this returns they are on disk."""
        rows = [(key, blob, _checksum(key, blob)) for key, blob in blobs]
        with self._connection() as connection, connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?, ?)",  # noqa: S608  # our own name
                rows,
            )

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one piece of work, or say what is wrong with it."""
        try:
            self._make_private()
            with closing(sqlite3.connect(self.path, timeout=WAIT_SECONDS)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {self._table} "
                    "(key BLOB PRIMARY KEY, vector BLOB, crc INTEGER) WITHOUT ROWID"
                )
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise BadInputError(
                f"the {self._what} {self.path} cannot be used ({error}); it is only a cache: delete it, name "
                f"another with {self._option}, or do without by {self._option.replace('--', '--no-')}"
            ) from error

    def _make_private(self) -> None:
        """Create the file for its owner alone; SQLite gives the files beside it the same mode.

        A file that is there is not opened: closing it would end the locks of other connections.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(os.path.realpath(self.path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
        if not self.path.is_file():  # SQLite would wait for the other end of a pipe
            raise OSError("it is no plain file")
        if self.path.stat().st_mode & 0o777 != OWNER_ONLY:
            self.path.chmod(OWNER_ONLY)


def _checksum(key: bytes, blob: bytes) -> int:
    """Return the sum that tells whether a row is whole."""
    return crc32(blob, crc32(key))
