"""A bank searched by a server: the server pre-selects, the client measures again and proves.

A service holds the distinct directions of one section under one distance, keyed 0, 1, 2, ... in the
order of the bank, and a layout that says which transitions share a direction. A few more than k of
largest inner product are fetched and measured by `nearest.pair_distances`. What was not fetched is
proven to be farther away; if that cannot be proven, more is fetched.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b, sha256
from typing import Protocol, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tabon._internal.retry import Backoff, retry_blocking
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError, SearchServiceError, ServiceLostError
from tabon.method.bank import SectionBank, TransitionBank, bank_transitions
from tabon.method.distances import get_distance
from tabon.method.nearest import ExactIndex, Neighbours, check_neighbours, pair_distances, rounding_slack
from tabon.method.sentence_sets import Ids, Progress
from tabon.search.half_index import Copies
from tabon.text.reports import SECTIONS, Section

FORMAT = 1
PATIENCE_S = 30.0  # how long a lost server is asked again
FILL_ROWS = 4096  # transitions worked out at once while filling
QUERIES_AT_ONCE = 64
EXTRA = 8  # candidates asked for beyond k
MOST_CANDIDATES = 1024  # if this many prove nothing, every row is read
BYTES_AT_ONCE = 8 << 20

Checks = NDArray[np.uint32]
Distances = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Filled:
    """What a service holds for one section of one bank under one distance; written last."""

    bank: str  # sha256 of the bank file
    section: str
    distance: str
    table: str  # where the directions are
    rows: int  # distinct directions
    dimension: int
    layout_bytes: int
    layout_sha256: str
    format: int = FORMAT

    def as_text(self) -> str:
        """Return the facts as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> "Filled | None":
        """Read the facts; None if another version of tabon wrote them."""
        facts = json.loads(text)
        return cls(**facts) if facts.get("format") == FORMAT else None


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Which direction each transition of a section has, and a checksum of each direction."""

    numbers: Ids  # for each transition that has the section; -1 if it is zero
    checks: Checks  # crc32 of each distinct direction

    def as_bytes(self) -> bytes:
        """Return the layout as little-endian bytes."""
        return self.numbers.astype("<i4").tobytes() + self.checks.astype("<u4").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, filled: Filled) -> "Layout":
        """Read a layout; one with other bytes than were written is refused."""
        if len(data) != filled.layout_bytes or sha256(data).hexdigest() != filled.layout_sha256:
            raise ServiceLostError(f"the layout of {filled.table} has other bytes than were written")
        words = np.frombuffer(data, dtype="<i4")
        cut = len(words) - filled.rows
        return cls(words[:cut].astype(np.int64), words[cut:].astype("<i4").view("<u4"))


class Service(Protocol):
    """What a server must be able to do; every call may raise a SearchServiceError."""

    place: str  # the server's kind, host and port, for messages; never a password

    def find(self, name: str) -> Filled | None:
        """Return what was filled under this name, to the end; None if nothing was."""

    def layout(self, name: str, filled: Filled) -> bytes:
        """Return the bytes of a layout."""

    def fill(self, name: str, parts: "Parts") -> None:
        """Put directions and their layout there, whole or not at all for those who read."""

    def count(self, filled: Filled) -> int:
        """Count the directions that are searched right now."""

    def nearest(
        self, filled: Filled, queries: Matrix, limit: int
    ) -> tuple[Sequence[Ids], Sequence[Distances]]:
        """Return keys and inner products of the largest, for each query, largest first."""

    def vectors(self, filled: Filled, keys: Ids) -> tuple[Ids, Matrix]:
        """Return the directions of these keys, in any order, with the keys they have."""


class Parts:
    """The distinct directions of one section under one distance, worked out in blocks."""

    def __init__(
        self, bank: TransitionBank, section: Section, distance: str, on_progress: Callable[[int], None]
    ) -> None:
        """Work out nothing yet; `on_progress` is called with how many transitions each block had."""
        self._bank, self._section, self._distance, self._on_progress = bank, section, distance, on_progress
        self._number: dict[bytes, int] = {}
        self._numbers: list[int] = []
        self._checks: list[int] = []
        self.dimension = int(bank.table.vectors.shape[1])

    def blocks(self) -> Iterator[Matrix]:
        """Yield the distinct directions in the order of the bank; nothing is kept but digests."""
        present = self._bank.pairs[self._section].present()
        for start in range(0, len(present), FILL_ROWS):
            rows = present[start : start + FILL_ROWS]
            found = bank_transitions(self._bank, self._section, self._distance, rows)
            fresh = []
            for place, zero in enumerate(found.zero):
                data, known = found.directions[place].tobytes(), len(self._number)
                digest = blake2b(data, digest_size=16).digest()
                self._numbers.append(-1 if zero else self._number.setdefault(digest, known))
                if self._numbers[-1] == known:
                    self._checks.append(crc32(data))
                    fresh.append(place)
            self._on_progress(len(rows))
            if fresh:
                yield np.ascontiguousarray(found.directions[fresh], dtype="<f4")

    def finished(self, table: str) -> tuple[Filled, bytes]:
        """Return the facts and the layout, after the last block."""
        layout = Layout(np.array(self._numbers, dtype=np.int64), np.array(self._checks, dtype=np.uint32))
        data = layout.as_bytes()
        filled = Filled(
            bank=self._bank.sha256,
            section=self._section,
            distance=self._distance,
            table=table,
            rows=len(self._checks),
            dimension=self.dimension,
            layout_bytes=len(data),
            layout_sha256=sha256(data).hexdigest(),
        )
        return filled, data


class RemoteSearch:
    """The two halves of `PreparedSearch` over any service."""

    def __init__(self, service: Service, *, patience_s: float = PATIENCE_S) -> None:
        """Remember the service; nothing is asked of it yet."""
        self._service, self._patience_s = service, patience_s

    def prepare(
        self, bank: TransitionBank, distances: Sequence[str], *, progress: Progress | None = None
    ) -> None:
        """Put the directions of a bank, under these distances, where they are searched.

        What is there to the end stays; what is there in part is started over.
        """
        for distance in distances:
            get_distance(distance)
        present = sum(len(bank.pairs[section].present()) for section in SECTIONS)
        done, total = 0, present * len(distances)

        def on_progress(count: int) -> None:
            nonlocal done
            done += count
            if progress is not None:
                progress(done, total)

        for distance in distances:
            for section in SECTIONS:
                name = name_of(bank, section, distance)
                if self._is_whole(self._service.find(name), bank):
                    on_progress(len(bank.pairs[section].present()))
                else:
                    self._service.fill(name, Parts(bank, section, distance, on_progress))

    def section(self, bank: TransitionBank, section: Section, distance: str) -> SectionBank:
        """Return one section's bank under one distance (eq. 7), searched by the service."""
        get_distance(distance)
        name = name_of(bank, section, distance)
        filled = self._service.find(name)
        if filled is None or not self._is_whole(filled, bank):
            raise BadInputError(
                f"{self._service.place} does not hold all of the {section} of bank {bank.sha256[:12]} under "
                f"{distance}; fill it with `tabon bank index BANK --search URL --distance {distance}`"
            )
        layout = Layout.from_bytes(self._service.layout(name, filled), filled)
        present = bank.pairs[section].present()
        if len(layout.numbers) != len(present):
            raise SearchServiceError(f"the layout of {filled.table} is not that of bank {bank.sha256[:12]}")
        moving = layout.numbers >= 0
        index = RemoteIndex(self._service, filled, layout, self._patience_s) if moving.any() else None
        return SectionBank(index, present[moving], present[~moving])

    def _is_whole(self, filled: Filled | None, bank: TransitionBank) -> bool:
        """Say whether what is there is all of this bank's."""
        return (
            filled is not None and filled.bank == bank.sha256 and self._service.count(filled) == filled.rows
        )


class RemoteIndex:
    """The directions of one section under one distance, on a server."""

    def __init__(self, service: Service, filled: Filled, layout: Layout, patience_s: float) -> None:
        """Find out which index rows share a direction."""
        self._service, self._filled, self._patience_s = service, filled, patience_s
        numbers = layout.numbers[layout.numbers >= 0]
        self._checks = layout.checks
        self._size = len(numbers)
        self._copies = Copies.of(numbers, filled.rows)
        self._slack = rounding_slack(filled.dimension)

    def __len__(self) -> int:
        """Count the bank rows, copies included."""
        return self._size

    def search(self, queries: Matrix, k: int) -> Neighbours:
        """Return the k nearest bank rows of each unit query, exactly, or raise a SearchServiceError."""
        check_neighbours(k, self._size)
        distances = np.empty((len(queries), k))
        rows = np.empty((len(queries), k), dtype=np.int64)
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            left = np.arange(start, min(start + QUERIES_AT_ONCE, len(queries)))
            limit = min(self._filled.rows, k + EXTRA)
            while len(left):  # ask for more and more until nothing nearer can be left out
                asked = np.ascontiguousarray(queries[left], dtype=np.float32)
                if limit > MOST_CANDIDATES:
                    found, keys = self._read_all(asked, min(k, self._filled.rows))
                    bound = np.full(len(left), np.inf)
                else:
                    found, keys, bound = _patiently(partial(self._candidates, asked, limit), self._patience_s)
                for place, near, of in zip(left, found, keys, strict=True):
                    _, distance, row = self._copies.spread(of, near, of)
                    order = np.lexsort((row, distance))[:k]  # nearest first, ties by row
                    distances[place], rows[place] = distance[order], row[order]
                left = left[bound <= distances[left, -1]]
                limit = min(self._filled.rows, 2 * limit)
        return Neighbours(distances, rows)

    def _candidates(self, queries: Matrix, limit: int) -> tuple[Distances, Ids, Distances]:
        """Return distances and keys of the best, and the least distance that any other row has."""
        self._check_count()
        listed, products = self._service.nearest(self._filled, queries, limit)
        self._check_count()
        if len(listed) != len(queries) or any(len(keys) != limit for keys in listed):
            raise self._incomplete("fewer neighbours than were asked for")
        keys, similarity = np.stack(listed), np.stack(products)
        ordered = np.sort(keys, axis=1)
        if ordered[:, 0].min() < 0 or ordered[:, -1].max() >= self._filled.rows:
            raise self._incomplete("rows that were never filled")
        if (np.diff(ordered, axis=1) == 0).any() or (np.diff(similarity, axis=1) > 0).any():
            raise self._incomplete("a row twice or out of order")
        wanted, place = np.unique(keys, return_inverse=True)
        directions = self._fetch(wanted)
        query = np.repeat(np.arange(len(queries)), limit)
        distances = pair_distances(queries, directions, query, place.ravel()).reshape(keys.shape)
        if (abs(0.5 * (1.0 - similarity) - distances) > self._slack).any():
            raise SearchServiceError(
                f"{self._service.place} measures less exactly than float32; let it search without compression"
            )
        if limit == self._filled.rows:
            return distances, keys, np.full(len(queries), np.inf)
        return distances, keys, 0.5 * (1.0 - similarity[:, -1] - self._slack)

    def _check_count(self) -> None:
        """Refuse an answer while some of the rows are not searched."""
        found = self._service.count(self._filled)
        if found != self._filled.rows:
            raise self._incomplete(f"{found} of {self._filled.rows} rows")

    def _incomplete(self, what: str) -> ServiceLostError:
        """Return the error of an answer that is not whole."""
        return ServiceLostError(
            f"{self._service.place} answered with {what} of {self._filled.table}; try again, and if it stays "
            "so fill it anew with `tabon bank index`"
        )

    def _fetch(self, keys: Ids) -> Matrix:
        """Return the directions of these ascending keys; other bits than were sent are refused."""
        directions = np.empty((len(keys), self._filled.dimension), dtype=np.float32)
        at_once = max(1, BYTES_AT_ONCE // (4 * self._filled.dimension))
        for start in range(0, len(keys), at_once):
            piece = keys[start : start + at_once]
            found, rows = self._service.vectors(self._filled, piece)
            order = np.argsort(found)
            if not np.array_equal(found[order], piece):
                raise self._incomplete("other rows than were asked for")
            directions[start : start + at_once] = rows[order]
        if [crc32(row.tobytes()) for row in directions.astype("<f4")] != self._checks[keys].tolist():
            raise self._incomplete("other bits than were written")
        return directions

    def _read_all(self, queries: Matrix, k: int) -> tuple[Distances, Ids]:
        """Read every row, in blocks, and keep the k nearest distinct ones."""
        distances: Distances = np.empty((len(queries), 0))
        keys: Ids = np.empty((len(queries), 0), dtype=np.int64)
        at_once = max(k, BYTES_AT_ONCE // (4 * self._filled.dimension))
        for start in range(0, self._filled.rows, at_once):
            piece = np.arange(start, min(start + at_once, self._filled.rows))
            rows = _patiently(partial(self._fetch, piece), self._patience_s)
            near = ExactIndex(rows).search(queries, min(k, len(piece)))
            distances = np.concatenate([distances, near.distances], axis=1)
            keys = np.concatenate([keys, start + near.rows], axis=1)
            order = np.lexsort((keys, distances), axis=-1)[:, :k]
            distances = np.take_along_axis(distances, order, axis=1)
            keys = np.take_along_axis(keys, order, axis=1)
        return distances, keys


def name_of(bank: TransitionBank, section: str, distance: str) -> str:
    """Return the name under which a service keeps one section of a bank under one distance."""
    return f"tabon_{bank.sha256[:12]}_{section}_{distance.replace('-', '_')}"


def _patiently(work: Callable[[], T], patience_s: float) -> T:
    """Ask again while the service is lost, a little later each time, and then give up."""
    backoff = Backoff(first_wait=0.1, longest_wait=2.0, within=patience_s)
    return retry_blocking(work, backoff, lambda error: isinstance(error, ServiceLostError))
