"""What an engine is: something that does pieces of work. This process is one; a URL names another."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeVar

from tabon._internal.registry import lookup
from tabon.encoders import Encoder, load_encoder
from tabon.errors import BadInputError

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
