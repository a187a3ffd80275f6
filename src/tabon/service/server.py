"""Running the application on a port until the process is told to end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from typing import TYPE_CHECKING

from tabon._internal.extras import require
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Where the service listens, and for whom."""

    host: str = "127.0.0.1"
    port: int = 8765
    token_file: Path | None = None
    allowed_hosts: tuple[str, ...] = field(default=())
    client_seconds: float = LOOK_SECONDS  # that a connection waits for a client that is silent


def serve(
    query_service: QueryService,
    settings: ServeSettings,
    route_modules: Sequence[RouteModule] = (),
    *,
    patience: float = 0.0,
) -> None:
    """Answer requests until SIGTERM or SIGINT; those in flight are finished first.

    `patience` is the longest that a request of a route module may take, in seconds.
    """
    longest = max(query_service.settings.timeout, patience)
    server_of(guard(query_service, settings, route_modules), settings, patience=longest).run()


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
    """Return a server that is not running yet; it sets up no logging."""
    require("uvicorn", extra="service", feature="the HTTP service")
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
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
