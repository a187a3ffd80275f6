"""An on-disk store of sentence embeddings: once per sentence and machine.

SQLite in WAL mode keeps it whole through kill -9 and lets several processes
read and write at once. Keys are hashes, so no report text lies in the file;
vectors can be turned back into text by an attacker, so the file is the owner's
alone (0600). Each vector carries a checksum: a damaged row is made anew.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import numpy as np

from tabon.encoders import EncoderFingerprint
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, vector BLOB, crc INTEGER) WITHOUT ROWID"
)
CHUNK = 500
WAIT_SECONDS = 60.0


def sentence_key(fingerprint: EncoderFingerprint, sentence: str) -> bytes:
    """Return the key of one sentence under one encoder."""
    text = repr(fingerprint).encode() + b"\0" + sentence.encode("utf-8", "surrogatepass")
    return sha256(text).digest()


class SentenceStore:
    """Embeddings on disk, found by encoder fingerprint and text."""

    def __init__(self, path: Path) -> None:
        """Open or create the store."""
        self.path = Path(path)
        with self._connection():
            self.path.chmod(0o600)

    def read(self, fingerprint: EncoderFingerprint, sentences: Sequence[str]) -> dict[str, Matrix]:
        """Return the vectors that are there, by sentence."""
        keys = {sentence_key(fingerprint, sentence): sentence for sentence in sentences}
        with self._connection() as connection:
            rows = list(_select(connection, list(keys)))
        size = 4 * fingerprint.dimension
        return {
            keys[key]: np.frombuffer(vector, dtype="<f4")
            for key, vector, crc in rows
            if len(vector) == size and crc32(vector) == crc
        }

    def write(self, fingerprint: EncoderFingerprint, sentences: Sequence[str], vectors: Matrix) -> None:
        """Add vectors; when this returns they are on disk."""
        blobs = [row.astype("<f4").tobytes() for row in vectors]
        rows = [
            (sentence_key(fingerprint, sentence), blob, crc32(blob))
            for sentence, blob in zip(sentences, blobs, strict=True)
        ]
        with self._connection() as connection, connection:
            connection.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)", rows)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one piece of work, or say what is wrong with it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=WAIT_SECONDS)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute(SCHEMA)
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise BadInputError(
                f"the sentence store {self.path} cannot be used ({error}); it is only a cache: "
                "delete it, or name another with --store"
            ) from error


def _select(connection: sqlite3.Connection, keys: list[bytes]) -> Iterator[tuple[bytes, bytes, int]]:
    """Look up keys, some hundreds at a time."""
    for start in range(0, len(keys), CHUNK):
        chunk = keys[start : start + CHUNK]
        marks = ",".join("?" * len(chunk))
        query = f"SELECT key, vector, crc FROM embeddings WHERE key IN ({marks})"  # noqa: S608  # only ? marks
        yield from connection.execute(query, chunk)
