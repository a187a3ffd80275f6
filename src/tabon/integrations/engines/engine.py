"""What an engine is: something that does pieces of work. This process is one; a URL names another."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from platform import node
from types import MappingProxyType
from typing import Protocol, TypeVar

import numpy as np

from tabon._internal.registry import lookup
from tabon.encoders import Encoder, EncoderFingerprint, load_encoder
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError, EngineError

ENGINES: Mapping[str, str] = MappingProxyType(  # scheme -> a function from the whole URL to an engine
    {
        "local": "tabon.integrations.engines.engine:open_local",
        "ray": "tabon.integrations.engines.ray_engine:open_ray",
    }
)
Shared = TypeVar("Shared")
Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Engine(Protocol):
    """Does pieces of work; `tabon.integrations.engines.open_engine` makes one from a URL."""

    @property
    def slots(self) -> int:
        """Return how many pieces are worked on at once, now."""

    def run(
        self, work: Callable[[Shared, Piece], Result], pieces: Iterable[Piece], *, shared: Shared
    ) -> Iterator[tuple[int, Result]]:
        """Yield each piece's number and what `work(shared, piece)` returned, as pieces are done.

        `work` is a function of a module that every worker can import, and must
        give the same answer when it is asked again. Pieces are read as they are
        needed. A TabonError of a piece is raised here.
        """

    def encoder(self, spec: str | Path) -> Encoder:
        """Return an encoder with the bits of the one that `spec` names, whose work the engine does."""

    def close(self) -> None:
        """Let go of what the engine holds."""


def open_engine(url: str) -> Engine:
    """Return the engine that a URL names, ready to work.

    `local` is this process. `ray://HOST:PORT` asks a Ray cluster from outside
    (Ray's client port, 10001 as a rule); `ray:ADDRESS`, such as `ray:auto` or
    `ray:10.0.0.1:6379`, joins one from a machine that is a node of it.

    >>> open_engine("local").slots
    1
    """
    engine: Engine = lookup("engine", ENGINES, url.partition(":")[0])(url)
    return engine


class LocalEngine:
    """Does one piece after another, here."""

    slots = 1

    def run(
        self, work: Callable[[Shared, Piece], Result], pieces: Iterable[Piece], *, shared: Shared
    ) -> Iterator[tuple[int, Result]]:
        """Yield each piece's number and what `work(shared, piece)` returned."""
        return ((number, work(shared, piece)) for number, piece in enumerate(pieces))

    def encoder(self, spec: str | Path) -> Encoder:
        """Return the encoder itself."""
        return load_encoder(spec)

    def close(self) -> None:
        """Do nothing: it holds nothing."""


def open_local(url: str) -> LocalEngine:
    """Return the local engine; its URL is its name alone."""
    if url != "local":
        raise BadInputError(f"the engine {url!r} is not known; write local alone, or ray://HOST:PORT")
    return LocalEngine()


SENTENCES_A_PIECE = 256
PIECES_A_SLOT = 8  # of one chunk, so that the last pieces leave few workers idle
PROBE = ("new", "small", "right", "pleural", "effusion", "and", "stable", "cardiomegaly")
PROBES = tuple(" ".join((PROBE * 7)[:length]) for length in (1, 2, 3, 5, 8, 13, 21, 34, 55))


@dataclass(frozen=True, slots=True)
class EncodingOrder:
    """What every worker must have, to the bit, before it encodes anything."""

    spec: str
    fingerprint: EncoderFingerprint
    probe: str


def probe_of(encoder: Encoder) -> str:
    """Return the sha256 of an encoder's bits for nine sentences of one to 55 words.

    Equal weights on another kind of processor may give other last bits.
    """
    rows = np.ascontiguousarray(encoder.encode(list(PROBES)), dtype="<f4")
    return sha256(rows.tobytes()).hexdigest()


def encode_piece(order: EncodingOrder, sentences: list[str]) -> Matrix:
    """Encode one piece; a worker loads its encoder once."""
    return _loaded(order).encode(sentences)


@lru_cache(maxsize=1)
def _loaded(order: EncodingOrder) -> Encoder:
    """Load the encoder that is asked for, and refuse one that is not the same."""
    encoder = load_encoder(order.spec)
    here, asked = asdict(encoder.fingerprint), asdict(order.fingerprint)
    for field in [name for name in asked if here[name] != asked[name]]:
        raise EngineError(
            f"the encoder {order.spec} of node {node()} has {field} {here[field]!r}, here it is "
            f"{asked[field]!r}; install the same weights and versions on every node"
        )
    if probe_of(encoder) != order.probe:
        raise EngineError(
            f"the encoder {order.spec} gives other last bits on node {node()} than here; use nodes with the "
            "same processor and library versions, and start tabon on one of them"
        )
    return encoder


class SpreadEncoder:
    """Cuts sentences into pieces of similar length, has them encoded, and puts the rows back in order."""

    def __init__(self, engine: Engine, spec: str | Path) -> None:
        """Load the encoder here as well: it says what every worker's must be."""
        if not isinstance(spec, str | Path):
            raise EngineError("an encoder that is an object cannot be sent to workers; give a name or folder")
        place, mark, options = str(spec).partition("?")
        name = f"{Path(place).resolve() if Path(place).is_dir() else place}{mark}{options}"
        loaded = load_encoder(name)
        self._engine, self.fingerprint = engine, loaded.fingerprint
        self._order = EncodingOrder(name, loaded.fingerprint, probe_of(loaded))

    @property
    def chunk(self) -> int:
        """Return how many sentences keep all workers busy; so many are kept at a time."""
        return SENTENCES_A_PIECE * PIECES_A_SLOT * max(1, self._engine.slots)

    def encode(self, sentences: list[str], /) -> Matrix:
        """Return one unit row per sentence: the bits that the encoder gives here."""
        rows = np.empty((len(sentences), self.fingerprint.dimension), dtype=np.float32)
        by_length = sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))
        starts = range(0, len(by_length), SENTENCES_A_PIECE)
        places = [by_length[start : start + SENTENCES_A_PIECE] for start in starts]
        pieces = ([sentences[place] for place in piece] for piece in places)
        for number, vectors in self._engine.run(encode_piece, pieces, shared=self._order):
            rows[places[number]] = vectors
        return rows
