"""An on-disk store of small numbers by hash: measured once per machine.

SQLite in WAL mode keeps it whole through kill -9 and lets several processes
read and write at once. Each row carries a checksum: a damaged one is as if it
were not there. Keys are hashes, so no report text lies in the file, which is
the owner's alone (0600).
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from zlib import crc32

from tabon.errors import BadInputError

CHUNK = 500
WAIT_SECONDS = 60.0


class BlobStore:
    """Blobs on disk, found by key. `what` and `option` name it in messages."""

    def __init__(self, path: Path, *, table: str, what: str, option: str) -> None:
        """Open or create the store."""
        self.path, self._table, self._what, self._option = Path(path), table, what, option
        with self._connection():
            self.path.chmod(0o600)

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the blobs that are there and whole, by key."""
        with self._connection() as connection:
            rows = list(self._select(connection, keys))
        return {key: blob for key, blob, crc in rows if crc32(blob) == crc}

    def write(self, blobs: Iterable[tuple[bytes, bytes]]) -> None:
        """Add blobs; when this returns they are on disk."""
        rows = [(key, blob, crc32(blob)) for key, blob in blobs]
        with self._connection() as connection, connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?, ?)",  # noqa: S608  # our own name
                rows,
            )

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one piece of work, or say what is wrong with it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
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
                f"the {self._what} {self.path} cannot be used ({error}); it is only a cache: "
                f"delete it, or name another with {self._option}"
            ) from error

    def _select(
        self, connection: sqlite3.Connection, keys: Sequence[bytes]
    ) -> Iterator[tuple[bytes, bytes, int]]:
        """Look up keys, some hundreds at a time."""
        for start in range(0, len(keys), CHUNK):
            chunk = keys[start : start + CHUNK]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT key, vector, crc FROM {self._table} WHERE key IN ({marks})"  # noqa: S608
            yield from connection.execute(query, chunk)
