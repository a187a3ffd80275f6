"""A bank searched by Milvus.

A collection holds the directions of one section under one distance, with the index FLAT: every row
is compared. The collection `tabon_searches` holds the layouts, cut into pieces, and last of all one
entry for each collection that is filled, so a collection that is half there is never asked.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from logging import NullHandler, getLogger
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

import numpy as np

from tabon._internal.extras import require
from tabon._internal.secret_files import read_secret
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError, SearchServiceError, ServiceLostError
from tabon.method.sentence_sets import Ids
from tabon.search.remote import BYTES_AT_ONCE, PATIENCE_S, Distances, Filled, Parts, RemoteSearch

FEATURE = "the Milvus client"
FILLED_COLLECTION = "tabon_searches"
PIECE_BYTES = 4096  # the longest binary vector that Milvus takes
PIECES_AT_ONCE = 512
DEFAULT_PORT = 19530
ASK_TIMEOUT_S = 10.0  # the client itself asks again for as long
SEARCH_TIMEOUT_S = 30.0
FILL_TIMEOUT_S = 600.0
STRONG = "Strong"  # sees all that was written before it, and waits for the server's next tick, 0.2 s
EVENTUALLY = "Eventually"  # sees what is loaded: all, once a strong count has said so


class MilvusSearch(RemoteSearch):
    """The search that `milvus://[user[:password]@]host[:port][/database][?passfile=FILE]` names."""

    def __init__(self, url: str, *, patience_s: float = PATIENCE_S) -> None:
        """Read the URL; the server is not asked anything yet."""
        super().__init__(MilvusService(url), patience_s=patience_s)


class MilvusService:
    """One connection to a Milvus server, opened when it is needed and again when it was lost."""

    def __init__(self, url: str) -> None:
        """Read the URL."""
        self._milvus = _client_library()
        self._grpc = require("grpc", extra="milvus", feature=FEATURE)
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or DEFAULT_PORT
            options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        except ValueError:
            host = None
        if host is None or not options.keys() <= {"passfile"} or parts.fragment or "@" in parts.path:
            raise BadInputError(
                "the --search URL cannot be read; write milvus://user:password@host:port/database, "
                "with %-signs for special characters"
            )
        self.place = f"Milvus at {host}:{port}"
        self._address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        self._user = unquote(parts.username or "")
        self._password = unquote(parts.password or "")
        if not self._password and "passfile" in options:
            self._password = read_secret(Path(options["passfile"])).decode("utf-8", "replace")
        self._database = unquote(parts.path.strip("/"))
        self._client: Any = None
        self._counted: set[str] = set()  # collections that this connection found whole
        self._lock = RLock()

    def find(self, name: str) -> Filled | None:
        """Return what was filled under this name, to the end; None if nothing was."""
        with self._connection() as client:
            if not client.has_collection(FILLED_COLLECTION, timeout=ASK_TIMEOUT_S):
                return None
            client.load_collection(FILLED_COLLECTION, timeout=SEARCH_TIMEOUT_S)
            found = self._entries(client, [name])
            filled = Filled.from_text(found[name]["facts"]) if name in found else None
            if filled is None or not filled.rows:
                return filled
            if not client.has_collection(filled.table, timeout=ASK_TIMEOUT_S):
                return None
            index = client.describe_index(filled.table, "direction", timeout=ASK_TIMEOUT_S) or {}
            if (index.get("index_type"), index.get("metric_type")) != ("FLAT", "IP"):
                return None
            client.load_collection(filled.table, timeout=FILL_TIMEOUT_S)
            return filled

    def layout(self, name: str, filled: Filled) -> bytes:
        """Return the bytes of a layout, put together from its pieces."""
        keys = [f"{filled.table}/{number}" for number in range(-(-filled.layout_bytes // PIECE_BYTES))]
        found: dict[str, Any] = {}
        for start in range(0, len(keys), PIECES_AT_ONCE):
            with self._connection() as client:
                found |= self._entries(client, keys[start : start + PIECES_AT_ONCE])
        if len(found) != len(keys):
            raise ServiceLostError(
                f"{self.place} holds a part of the layout of {name}; run `tabon bank index`"
            )
        return b"".join(found[key]["piece"][0] for key in keys)[: filled.layout_bytes]

    def fill(self, name: str, parts: Parts) -> None:
        """Fill a collection of a new name, then enter it; what an earlier fill left behind is dropped."""
        table = f"{name}_{uuid4().hex[:8]}"
        with self._connection() as client:
            for other in client.list_collections(timeout=ASK_TIMEOUT_S):
                if other.startswith(f"{name}_"):
                    client.drop_collection(other, timeout=ASK_TIMEOUT_S)
            sent = self._send(client, table, parts)
            filled, layout = parts.finished(table)
            if sent != filled.rows:
                raise SearchServiceError(f"{self.place} took {sent} of {filled.rows} rows; run it again")
            self._enter(client, name, filled, layout)

    def _send(self, client: Any, table: str, parts: Parts) -> int:  # noqa: ANN401
        """Fill a collection, in blocks, and make it searchable; return the rows that were taken."""
        self._create(client, table, "direction", self._milvus.DataType.FLOAT_VECTOR, parts.dimension)
        sent, at_once = 0, max(1, BYTES_AT_ONCE // (4 * parts.dimension))
        for block in parts.blocks():
            for start in range(0, len(block), at_once):
                rows = block[start : start + at_once]
                data = [{"key": sent + place, "direction": row} for place, row in enumerate(rows)]
                sent += client.insert(table, data, timeout=FILL_TIMEOUT_S)["insert_count"]
        if sent:  # a section without any direction is not searched
            client.flush(table, timeout=FILL_TIMEOUT_S)
            self._index(client, table, "direction", "FLAT", "IP")
            client.load_collection(table, timeout=FILL_TIMEOUT_S)
        return sent

    def _enter(self, client: Any, name: str, filled: Filled, layout: bytes) -> None:  # noqa: ANN401
        """Write the pieces of a layout, and last of all that the collection is whole."""
        if not client.has_collection(FILLED_COLLECTION, timeout=ASK_TIMEOUT_S):
            kind = self._milvus.DataType.BINARY_VECTOR
            self._create(client, FILLED_COLLECTION, "piece", kind, 8 * PIECE_BYTES)
            self._index(client, FILLED_COLLECTION, "piece", "BIN_FLAT", "HAMMING")
        client.load_collection(FILLED_COLLECTION, timeout=FILL_TIMEOUT_S)
        pieces = (layout[start : start + PIECE_BYTES] for start in range(0, len(layout), PIECE_BYTES))
        rows = [
            {"key": f"{filled.table}/{number}", "facts": "", "piece": piece.ljust(PIECE_BYTES, b"\0")}
            for number, piece in enumerate(pieces)
        ]
        for start in range(0, len(rows), PIECES_AT_ONCE):
            client.insert(FILLED_COLLECTION, rows[start : start + PIECES_AT_ONCE], timeout=FILL_TIMEOUT_S)
        entry = {"key": name, "facts": filled.as_text(), "piece": bytes(PIECE_BYTES)}
        client.upsert(FILLED_COLLECTION, [entry], timeout=FILL_TIMEOUT_S)

    def count(self, filled: Filled) -> int:
        """Count the rows that are loaded, not those that are stored; the first time, wait for all writes."""
        if not filled.rows:
            return 0
        level = EVENTUALLY if filled.table in self._counted else STRONG
        with self._connection() as client:
            rows = client.query(
                filled.table, output_fields=["count(*)"], consistency_level=level, timeout=ASK_TIMEOUT_S
            )
            counted = int(rows[0]["count(*)"])
        self._counted.add(filled.table)
        return counted

    def nearest(
        self, filled: Filled, queries: Matrix, limit: int
    ) -> tuple[Sequence[Ids], Sequence[Distances]]:
        """Compare each query with every row."""
        with self._connection() as client:
            hits = client.search(
                filled.table,
                data=list(queries),
                anns_field="direction",
                limit=limit,
                search_params={"metric_type": "IP"},
                consistency_level=EVENTUALLY,
                timeout=SEARCH_TIMEOUT_S,
            )
        keys = [np.array([hit["id"] for hit in one], dtype=np.int64) for one in hits]
        return keys, [np.array([hit["distance"] for hit in one], dtype=np.float64) for one in hits]

    def vectors(self, filled: Filled, keys: Ids) -> tuple[Ids, Matrix]:
        """Fetch rows by key, bit for bit."""
        with self._connection() as client:
            rows = client.query(
                filled.table,
                filter=f"key in {keys.tolist()}",
                output_fields=["key", "direction"],
                consistency_level=EVENTUALLY,
                timeout=SEARCH_TIMEOUT_S,
            )
        found = np.array([row["key"] for row in rows], dtype=np.int64)
        return found, np.array([row["direction"] for row in rows], dtype=np.float32).reshape(len(rows), -1)

    def _create(self, client: Any, table: str, field: str, kind: Any, dimension: int) -> None:  # noqa: ANN401
        """Make a collection of keyed vectors; that of the layouts has text keys and facts."""
        types, layouts = self._milvus.DataType, table == FILLED_COLLECTION
        schema = client.create_schema(auto_id=False)
        if layouts:
            schema.add_field("key", types.VARCHAR, is_primary=True, max_length=255)
            schema.add_field("facts", types.VARCHAR, max_length=65535)
        else:
            schema.add_field("key", types.INT64, is_primary=True)
        schema.add_field(field, kind, dim=dimension)
        client.create_collection(table, schema=schema, consistency_level=STRONG, timeout=FILL_TIMEOUT_S)

    def _index(self, client: Any, table: str, field: str, kind: str, metric: str) -> None:  # noqa: ANN401
        """Choose how a field is compared: with every row."""
        chosen = client.prepare_index_params()
        chosen.add_index(field, index_type=kind, metric_type=metric)
        client.create_index(table, chosen, timeout=FILL_TIMEOUT_S)

    def _entries(self, client: Any, keys: Sequence[str]) -> dict[str, Any]:  # noqa: ANN401
        """Return the entries of these keys."""
        rows = client.query(
            FILLED_COLLECTION,
            filter=f"key in {list(keys)}",
            output_fields=["key", "facts", "piece"],
            consistency_level=STRONG,
            timeout=SEARCH_TIMEOUT_S,
        )
        return {row["key"]: row for row in rows}

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """Give the open connection, or a new one; what fails in it is an error of ours."""
        with self._lock:
            try:
                self._client = self._client or self._milvus.MilvusClient(
                    self._address,
                    user=self._user,
                    password=self._password,
                    db_name=self._database,
                    timeout=ASK_TIMEOUT_S / 2,
                    dedicated=True,
                )
            except self._milvus.MilvusException as error:
                raise ServiceLostError(
                    f"{self.place} cannot be reached ({self._reason(error)}); start it, or mend --search"
                ) from None
            try:
                yield self._client
            except (self._milvus.MilvusException, self._grpc.RpcError) as error:
                self._counted.clear()
                lost, self._client = self._client, None
                lost.close()
                raise ServiceLostError(f"{self.place} was lost ({self._reason(error)}); try again") from None

    def _reason(self, error: Exception) -> str:
        """Return the first line of the server's or the client's own words, without the password."""
        lines = str(getattr(error, "message", "") or type(error).__name__).splitlines()
        return lines[0].replace(self._password, "***") if self._password else lines[0]


def _client_library() -> ModuleType:
    """Import pymilvus, and let what it logs go where the caller's logging says."""
    library = require("pymilvus", extra="milvus", feature=FEATURE)
    for name in ("pymilvus", "pymilvus.milvus_client"):
        logger = getLogger(name)
        logger.handlers[:] = [NullHandler()]  # on import it gives itself one that writes to standard error
        logger.propagate = True
    return library
