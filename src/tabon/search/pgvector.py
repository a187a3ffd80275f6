"""A bank searched by PostgreSQL with the pgvector extension.

A table holds the directions of one section under one distance. It is made, filled and entered in
`tabon_searches` in one transaction. A search is a scan of it, ordered by inner product; an
approximate index on the table is not used.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from types import ModuleType
from typing import Any
from weakref import finalize

import numpy as np

from tabon._internal.extras import require
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError, SearchServiceError, ServiceLostError
from tabon.method.sentence_sets import Ids
from tabon.search.remote import PATIENCE_S, Distances, Filled, Parts, RemoteSearch

FEATURE = "the PostgreSQL client"
FILLED_TABLE = "tabon_searches"
DEFAULT_PORT = 5432
FILL_LOCK = 0x7461626F6E  # one fill at a time in a database
PAGE_NUMBERS = 1900  # a longer row does not fit a page of the server
COPY_START = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
COPY_END = b"\xff\xff"
CONNECT = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 5, "keepalives_interval": 2}


class PgvectorSearch(RemoteSearch):
    """The search that `postgresql://[user[:password]@]host[:port]/database` names."""

    def __init__(self, url: str, *, patience_s: float = PATIENCE_S) -> None:
        """Read the URL; the server is not asked anything yet."""
        super().__init__(PgvectorService(url), patience_s=patience_s)


class PgvectorService:
    """One connection to a database, opened when it is needed and again when it was lost."""

    def __init__(self, url: str) -> None:
        """Read the URL, which libpq knows how to read."""
        self._psycopg = require("psycopg", extra="postgres", feature=FEATURE)
        self._url, facts = url, _facts_of(self._psycopg, url)
        self._password = facts.get("password")
        self.place = f"PostgreSQL at {facts.get('host', 'localhost')}:{facts.get('port', DEFAULT_PORT)}"
        self._options = {name: value for name, value in CONNECT.items() if name not in facts}
        self._connection: Any = None
        self._lock = RLock()

    def find(self, name: str) -> Filled | None:
        """Return what was filled under this name; None if nothing was."""
        with self._cursor() as cursor:
            if not _exists(cursor, FILLED_TABLE):
                return None
            row = cursor.execute(f"SELECT facts FROM {FILLED_TABLE} WHERE name = %s", [name]).fetchone()  # noqa: S608
            filled = None if row is None else Filled.from_text(row[0])
            return filled if filled is not None and _exists(cursor, filled.table) else None

    def layout(self, name: str, filled: Filled) -> bytes:
        """Return the bytes of a layout."""
        with self._cursor() as cursor:
            row = cursor.execute(f"SELECT layout FROM {FILLED_TABLE} WHERE name = %s", [name]).fetchone()  # noqa: S608
            if row is None:
                raise ServiceLostError(f"{self.place} no longer holds {filled.table}; run `tabon bank index`")
            return bytes(row[0])

    def fill(self, name: str, parts: Parts) -> None:
        """Make, fill and enter a table in one transaction."""
        with self._cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [FILL_LOCK])
            self._need_extension(cursor)
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            cursor.execute(f"CREATE TABLE {name} (key bigint, direction vector({parts.dimension}) NOT NULL)")
            if parts.dimension <= PAGE_NUMBERS:
                cursor.execute(f"ALTER TABLE {name} ALTER direction SET STORAGE PLAIN")
            with cursor.copy(f"COPY {name} FROM STDIN (FORMAT binary)") as copy:
                copy.write(COPY_START)
                for data in _copied(parts):
                    copy.write(data)
                copy.write(COPY_END)
            cursor.execute(f"ALTER TABLE {name} ADD PRIMARY KEY (key)")
            filled, layout = parts.finished(name)
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {FILLED_TABLE} (name text PRIMARY KEY, facts text, layout bytea)"
            )
            cursor.execute(
                f"INSERT INTO {FILLED_TABLE} VALUES (%s, %s, %s) ON CONFLICT (name) DO UPDATE "  # noqa: S608
                "SET facts = excluded.facts, layout = excluded.layout",
                [name, filled.as_text(), layout],
            )

    def _need_extension(self, cursor: Any) -> None:  # noqa: ANN401
        """Switch pgvector on in this database, or say who can."""
        try:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        except (
            self._psycopg.errors.InsufficientPrivilege,
            self._psycopg.errors.FeatureNotSupported,
        ) as error:
            raise SearchServiceError(
                f"{self.place} has no pgvector in this database; let its administrator install it and run "
                "CREATE EXTENSION vector"
            ) from error

    def count(self, filled: Filled) -> int:
        """Count the rows of a table."""
        with self._cursor() as cursor:
            return int(cursor.execute(f"SELECT count(*) FROM {filled.table}").fetchone()[0])  # noqa: S608

    def nearest(
        self, filled: Filled, queries: Matrix, limit: int
    ) -> tuple[Sequence[Ids], Sequence[Distances]]:
        """Scan the table once for each query."""
        keys, products = [], []
        asked = f"SELECT key, direction <#> %s::vector FROM {filled.table} ORDER BY 2 LIMIT %s"  # noqa: S608
        with self._cursor() as cursor:
            cursor.execute("SET LOCAL enable_indexscan = off")
            for query in queries.tolist():
                rows = cursor.execute(asked, [str(query), limit]).fetchall()
                keys.append(np.array([row[0] for row in rows], dtype=np.int64))
                products.append(np.array([-row[1] for row in rows], dtype=np.float64))
        return keys, products

    def vectors(self, filled: Filled, keys: Ids) -> tuple[Ids, Matrix]:
        """Fetch rows by key, bit for bit."""
        with self._cursor() as cursor:
            rows = cursor.execute(
                f"SELECT key, direction FROM {filled.table} WHERE key = ANY(%s)",  # noqa: S608
                [keys.tolist()],
            ).fetchall()
        found = np.array([row[0] for row in rows], dtype=np.int64)
        numbers = [np.frombuffer(row[1], dtype=">f4", offset=4) for row in rows]
        if not numbers or any(len(row) != filled.dimension for row in numbers):
            raise ServiceLostError(f"{self.place} answered with rows of another length than were filled")
        return found, np.stack(numbers).astype(np.float32)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        """Open a transaction on the open connection, or a new one; what fails in it is an error of ours."""
        errors = self._psycopg
        with self._lock:
            if self._connection is not None and self._connection.closed:
                self._drop()
            if self._connection is None:
                try:
                    self._connection = errors.connect(self._url, autocommit=True, **self._options)
                except errors.Error as error:
                    raise ServiceLostError(
                        f"{self.place} cannot be reached ({self._reason(error)}); start it, or mend --search"
                    ) from None
                self._closing = finalize(self, self._connection.close)
            try:
                with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
                    yield cursor
            except (errors.OperationalError, errors.InterfaceError) as error:
                self._drop()
                raise ServiceLostError(f"{self.place} was lost ({self._reason(error)}); try again") from None
            except errors.Error as error:
                raise SearchServiceError(f"{self.place} refused: {self._reason(error)}") from None

    def _drop(self) -> None:
        """Forget a connection that failed."""
        if self._connection is not None:
            self._closing()
        self._connection = None

    def _reason(self, error: Exception) -> str:
        """Return the first line of the server's or the client's own words, without the password."""
        line = (str(error).splitlines() or [type(error).__name__])[0]
        return line.replace(self._password, "***") if self._password else line


def _facts_of(psycopg: ModuleType, url: str) -> dict[str, Any]:
    """Read a URL as libpq does; its own complaint may hold the password and is not shown."""
    reader = require("psycopg.conninfo", extra="postgres", feature=FEATURE)
    try:
        facts = dict(reader.conninfo_to_dict(url))
    except psycopg.Error:
        facts = {"port": "?"}
    ports = str(facts.get("port", DEFAULT_PORT)).split(",")
    misread = any(
        "@" in str(facts.get(part, "")) for part in ("host", "dbname")
    )  # a bare @ or / in a password
    if misread or not all(port.isdecimal() for port in ports):
        raise BadInputError(
            "the --search URL cannot be read; write postgresql://user:password@host:port/database, "
            "with %-signs for special characters"
        )
    return facts


def _exists(cursor: Any, table: str) -> bool:  # noqa: ANN401
    """Say whether there is a table of this name."""
    return bool(cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [table]).fetchone()[0])


def _copied(parts: Parts) -> Iterator[bytes]:
    """Yield rows as COPY's binary format: two fields, the key and the direction."""
    length = 4 + 4 * parts.dimension
    row = np.dtype(
        [
            ("fields", ">i2"),
            ("key_bytes", ">i4"),
            ("key", ">i8"),
            ("bytes", ">i4"),
            ("dimension", ">i2"),
            ("unused", ">i2"),
            ("numbers", ">f4", (parts.dimension,)),
        ]
    )
    start = 0
    for block in parts.blocks():
        rows = np.zeros(len(block), dtype=row)
        rows["fields"], rows["key_bytes"], rows["bytes"], rows["dimension"] = 2, 8, length, parts.dimension
        rows["key"], rows["numbers"] = np.arange(start, start + len(block)), block
        start += len(block)
        yield rows.tobytes()
