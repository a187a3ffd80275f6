"""Running the application on a port until the process is to end, and the form of its log lines.

A connection that waits for its client for too long is closed: uvicorn itself waits for ever.
"""

import asyncio
import errno
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from typing import TYPE_CHECKING, Any, Final

from tabon._internal.extras import require
from tabon.errors import BadInputError
from tabon.service.app import RouteModule, guarded_app
from tabon.service.guard import App, guard_settings, read_token, request_id
from tabon.service.query_service import QueryService

if TYPE_CHECKING:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol


LOOK_SECONDS: Final = 10.0  # between two looks at a connection; a client may take so long, and not twice
TEXT = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
HEADER_BYTES = 16_384
CONNECTIONS = 1024  # and no more than half of the files that the process may open
KEEP_ALIVE_SECONDS = 5
GRACE_SECONDS = 5  # beyond the longest request
BACKLOG = 2048  # connections that wait while the bank is loaded
NOT_HERE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}  # an address that this machine does not have
log = logging.getLogger(__name__)


def watched_protocol(  # noqa: C901  # a class, whose base is imported here
    seconds: float = LOOK_SECONDS, most: int = 1024
) -> "type[H11Protocol]":
    """Return uvicorn's HTTP/1.1, which closes connections whose client neither sends a head nor reads.

    A connection that two looks find waiting for its client, with nothing sent, read or asked between them,
    is cut off. A body that does not arrive is the guard's. If there are `most` connections already, a new
    one takes the place of the one that has waited for its client longest; if none waits it is cut off.
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
            """Refuse bytes that are no HTTP if nothing was answered yet, and end what the client asked."""
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
    """Return the connection whose client has been silent longest; one that was just made is silent too."""
    silent = (one for one in connections if one.waits() or one.cycle.more_body)
    return min((one for one in silent if not one.transport.is_closing()), key=lambda one: one.since)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the request's id if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record; of an exception only its kind, since its message may hold text."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if found := request_id.get():
            line["request"] = found
        if record.exc_info and record.exc_info[0]:
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line)


FORMATS = {"text": TEXT, "json": JsonFormatter()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Where the service listens, and for whom."""

    host: str = "127.0.0.1"
    port: int = 8765
    token_file: Path | None = None
    allowed_hosts: tuple[str, ...] = field(default=())
    client_seconds: float = LOOK_SECONDS  # that a connection waits for a client that is silent


@contextmanager
def listening(settings: ServeSettings) -> Iterator[list[socket.socket]]:
    """Listen on every address that the host's name has; connections wait until `serve` answers them.

    Raises:
        BadInputError: the port is taken or not allowed, or the host is not this machine.
    """
    require("uvicorn", extra="service", feature="the HTTP service")
    host, port = settings.host.strip("[]"), settings.port
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        problem: Exception | None = None
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except (OSError, UnicodeError):
            raise BadInputError(f"the host {host!r} is unknown; write an address of this machine") from None
        for family, _, _, _, address in dict.fromkeys(addresses):
            try:
                opened = socket.create_server(address, family=family, backlog=BACKLOG)
            except OSError as error:
                if error.errno not in NOT_HERE:
                    raise _refused(host, port, error) from error
                problem = error
            else:
                sockets.append(stack.enter_context(opened))
        if not sockets:
            raise BadInputError(
                f"{host} is not an address of this machine; bind 127.0.0.1, or 0.0.0.0 for all"
            ) from problem
        yield sockets


def address_of(sockets: Sequence[socket.socket]) -> str:
    """Return the address of the first socket as a URL."""
    host, port = sockets[0].getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _refused(host: str, port: int, error: OSError) -> BadInputError:
    """Say why a port cannot be had, and what to do."""
    if error.errno == errno.EADDRINUSE:
        reason, hint = "is in use", "end what listens there, or take another with --port (0: any free one)"
    elif error.errno == errno.EACCES:
        reason, hint = "is not allowed for this user", "take one above 1023 with --port"
    else:
        reason, hint = f"cannot be had ({errno.errorcode.get(error.errno or 0)})", "try another --port"
    return BadInputError(f"port {port} of {host} {reason}; {hint}")


def serve(
    query_service: QueryService,
    settings: ServeSettings,
    route_modules: Sequence[RouteModule] = (),
    *,
    sockets: Sequence[socket.socket],
    patience: float = 0.0,
) -> None:
    """Answer requests until SIGTERM or SIGINT; those in flight are finished first.

    `sockets` are those of `listening`. `patience` is the longest that a request of a route module may
    take, in seconds.
    """
    modules = [*route_modules, announcing(sockets)]
    longest = max(query_service.settings.timeout, patience)
    server_of(guard(query_service, settings, modules), settings, patience=longest).run(list(sockets))


def announcing(sockets: Sequence[socket.socket]) -> RouteModule:
    """Return what says where the service runs, after the modules before it have started."""

    @asynccontextmanager
    async def announced() -> AsyncIterator[None]:
        log.info("running on %s (CTRL+C ends it)", address_of(sockets))
        yield

    return RouteModule(routes=(), running=announced)


def guard(
    query_service: QueryService, settings: ServeSettings, route_modules: Sequence[RouteModule] = ()
) -> App:
    """Return the guarded application; an address that others can reach needs a token."""
    token = None if settings.token_file is None else read_token(settings.token_file)
    return guarded_app(
        query_service,
        guard_settings(
            settings.host,
            token=token,
            allowed=settings.allowed_hosts,
            body=query_service.settings.limits.body,
        ),
        route_modules,
    )


def most_connections() -> int:
    """Return how many connections are taken: files that could not be opened would stop the service."""
    files, _ = getrlimit(RLIMIT_NOFILE)
    return CONNECTIONS if files == RLIM_INFINITY else max(1, min(CONNECTIONS, files // 2))


def server_of(app: App, settings: ServeSettings, *, patience: float) -> "uvicorn.Server":
    """Return a server that is not running yet, to be run on sockets; it sets up no logging."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=watched_protocol(settings.client_seconds, most_connections()),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(patience) + GRACE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
    )
