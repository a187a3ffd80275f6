"""A connection that waits for its client for too long is closed: uvicorn itself waits for ever."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from tabon._internal.extras import require

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

LOOK_SECONDS: Final = 10.0  # between two looks at a connection; a client may take so long, and not twice


def watched_protocol(  # noqa: C901  # a class, whose base is imported here
    seconds: float = LOOK_SECONDS, most: int = 1024
) -> "type[H11Protocol]":
    """Return uvicorn's HTTP/1.1, which closes connections whose client neither sends a head nor reads.

    Where two looks at a connection find it waiting for its client, with nothing sent, nothing read and
    no new request between them, it is cut off. A body that does not arrive is the guard's. Where there
    are `most` connections already, a new one takes the place of the one that has waited for its client
    longest; where none waits it is cut off.
    """
    require("uvicorn", extra="service", feature="the HTTP service")
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class WatchedProtocol(H11Protocol):
        """Looks at its connection from time to time."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Begin to look."""
            super().connection_made(transport)
            self.access_log = False  # it would hold paths, and so text
            self.since = self.loop.time()
            self._look((None, -1))
            if len(self.connections) > most:
                _longest_silent(self.connections).transport.abort()

        def on_response_complete(self) -> None:
            """Note when it became the client's turn."""
            self.since = self.loop.time()
            super().on_response_complete()

        def send_400_response(self, msg: str) -> None:
            """Refuse bytes that are no HTTP where nothing was answered yet, and end what the client asked."""
            if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                super().send_400_response(msg)
            self.transport.close()
            if self.cycle is not None:
                self.cycle.disconnected = True
                self.cycle.message_event.set()

        def connection_lost(self, exc: Exception | None) -> None:
            """Look no more."""
            self._watch.cancel()
            super().connection_lost(exc)

        def _look(self, before: tuple[Any, int]) -> None:
            """Cut the connection off where nothing has changed since the last look."""
            now = (self.cycle, self.transport.get_write_buffer_size())
            if self.waits() and now == before:
                self.transport.abort()
            else:
                left = now if self.waits() else (None, -1)
                self._watch = self.loop.call_later(seconds, self._look, left)

        def waits(self) -> bool:
            """Whether it is the client's turn: to send a head, to read, or to learn of the end."""
            idle = self.cycle is None or self.cycle.response_complete
            return idle or self.flow.write_paused or self.transport.is_closing()

    return WatchedProtocol


def _longest_silent(connections: Iterable[Any]) -> Any:  # noqa: ANN401  # a WatchedProtocol
    """Return the connection whose client has been silent longest; one that was just made is silent too.

    Nothing is lost with it but an unfinished request: the client is to send a head or a body, or to read.
    """
    silent = (one for one in connections if one.waits() or one.cycle.more_body)
    return min((one for one in silent if not one.transport.is_closing()), key=lambda one: one.since)
