"""Running the application on a port until the process is told to end."""

import errno
import logging
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from typing import TYPE_CHECKING

from tabon._internal.extras import require
from tabon.errors import BadInputError
from tabon.service.app import RouteModule, guarded_app
from tabon.service.connections import LOOK_SECONDS, watched_protocol
from tabon.service.guard import App, guard_settings, read_token
from tabon.service.query_service import QueryService

if TYPE_CHECKING:
    import uvicorn

HEADER_BYTES = 16_384
CONNECTIONS = 1024  # and no more than half of the files that the process may open
KEEP_ALIVE_SECONDS = 5
GRACE_SECONDS = 5  # beyond the longest request
BACKLOG = 2048  # connections that wait while the bank is loaded
NOT_HERE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}  # an address that this machine does not have
log = logging.getLogger(__name__)


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

    @asynccontextmanager
    async def announced() -> AsyncIterator[None]:
        """Say where, after all modules have started."""
        log.info("running on %s (CTRL+C ends it)", address_of(sockets))
        yield

    modules = [*route_modules, RouteModule(routes=(), running=announced)]
    longest = max(query_service.settings.timeout, patience)
    server_of(guard(query_service, settings, modules), settings, patience=longest).run(list(sockets))


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
