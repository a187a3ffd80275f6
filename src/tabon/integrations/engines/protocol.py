"""What an engine is: something that does pieces of work, here or elsewhere."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from tabon.encoders import Encoder

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
