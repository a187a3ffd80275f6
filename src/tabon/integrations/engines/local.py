"""The engine that is this process."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tabon.encoders import Encoder, load_encoder
from tabon.errors import BadInputError
from tabon.integrations.engines.protocol import Piece, Result, Shared


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
