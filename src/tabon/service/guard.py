"""The request guard around every route: who may ask, how much, for how long, and what is logged.

Order: Host, Origin, token, number of requests, type and size of the body. Only
then is a route called. The access log holds method, route, status,
milliseconds, body bytes and an id made here; never a path that no route has.
"""

import asyncio
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from typing import Any, Final
from uuid import uuid4

from tabon._internal.secret_files import LONGEST, read_secret
from tabon.errors import BadInputError, ServiceError
from tabon.service.metrics import Metrics
from tabon.service.parsing import NOTICE

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
OTHER_SITES: Final = frozenset(
    {"cross-site", "same-site"}
)  # as browsers say; a link to / may come from there
OPEN_ROUTES: Final = frozenset(  # asked without a token: probes, and a page that holds no data
    {"/healthz", "/readyz", "/", "/explorer.css", "/explorer.js", "/study.css", "/study.js"}
)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
SECURITY_HEADERS: Final = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-tabon-notice", NOTICE.encode()),
)
SHORTEST_TOKEN: Final = 16
DRAINED: Final = 8  # bodies' worth of refused bytes that are read away, so that the answer arrives
DRAIN_SECONDS: Final = 2.0
_HOST: Final = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[\w.-]+))(?::[0-9]{0,5})?", re.ASCII | re.IGNORECASE
)
access = logging.getLogger("tabon.service.access")
log = logging.getLogger(__name__)
request_id: ContextVar[str] = ContextVar("request_id", default="")  # of the request that is worked on


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSettings:
    """Who may ask, and how much."""

    token: bytes | None = field(default=None, repr=False)
    readers: Mapping[str, str] = field(default_factory=dict, repr=False)  # by the sha256 of their tokens
    hosts: frozenset[str] = LOOPBACK_NAMES  # names that the Host header may have, lower case
    body: int = 1_000_000  # bytes
    body_seconds: float = 10.0  # for a body to arrive
    requests: int = 512  # whose body has arrived, at the same time
    bodies: int = 64_000_000  # bytes of all bodies at the same time


def guard_settings(
    host: str, *, token: bytes | None, allowed: Iterable[str], body: int, has_readers: bool = False
) -> GuardSettings:
    """Return the request guard of a bind address; one that others can reach needs a token, or readers'."""
    if token is None and not has_readers and not is_loopback(host):
        raise BadInputError(
            f"{host} can be reached from other machines and no token is set; give --token-file FILE, "
            "or bind 127.0.0.1"
        )
    names = {*LOOPBACK_NAMES, host.lower().strip("[]"), *(name.lower().strip("[]") for name in allowed)}
    return GuardSettings(token=token, hosts=frozenset(names), body=body)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "")]
    [True, True, True, False, False]
    """
    try:
        return host.lower() == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def read_token(path: Path) -> bytes:
    """Return the token in a file: one line of 16 characters or more."""
    token = read_secret(path)
    plain = all(33 <= byte <= 126 for byte in token)  # noqa: PLR2004  # visible ASCII
    if not SHORTEST_TOKEN <= len(token) <= LONGEST or not plain:
        raise BadInputError(
            f"{path} does not hold a token; write one line of {SHORTEST_TOKEN} to {LONGEST} letters "
            "and digits into it"
        )
    return token


@dataclass(slots=True)
class _Seen:
    """What the log says of one request."""

    id: str = field(default_factory=lambda: uuid4().hex)
    start: float = field(default_factory=monotonic)
    status: int = 0
    bytes: int = 0
    whole: bool = False  # the body has arrived to its end


class RequestGuard:
    """Stands before an application."""

    def __init__(self, app: App, settings: GuardSettings, metrics: Metrics) -> None:
        """Put a request guard around an application."""
        self._app, self._settings, self._metrics = app, settings, metrics
        self._working = self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens inside, and log it."""
        seen = _Seen()
        request_id.set(seen.id)
        answer = _marked(send, seen)
        self._metrics.requests_running.inc()
        try:
            await self._guarded(scope, receive, answer, seen)
        except ServiceError as error:
            await _refuse(answer, seen, error)
        except Exception as error:  # noqa: BLE001  # its message may hold text: only its kind is logged
            log.error("request %s failed: %s", seen.id, type(error).__name__)  # noqa: TRY400
            await _refuse(answer, seen, ServiceError(500, "the service failed", "the log has the request id"))
        finally:
            self._metrics.requests_running.dec()
            self._bytes -= seen.bytes
            method = scope["method"] if scope["method"] in METHODS else "other"
            route, seconds = getattr(scope.get("route"), "path", "unknown"), monotonic() - seen.start
            self._metrics.requests.labels(method, route, seen.status).inc()
            self._metrics.request_seconds.labels(route).observe(seconds)
            access.info(
                "%s %s %d %.1fms %dB %s", method, route, seen.status, 1000 * seconds, seen.bytes, seen.id
            )

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, seen: _Seen) -> None:
        """Check, read the body, call the application."""
        headers = scope["headers"]
        self._check_host(scope["path"], headers)
        self._check_token(scope)
        try:
            body = await self._body(headers, receive, seen)
        except ServiceError:
            if not seen.whole:
                await self._drain(receive)
            raise
        types = [value.partition(";")[0].strip().lower() for value in _values(headers, b"content-type")]
        if body and types != ["application/json"]:  # what a form on a web page could send
            raise ServiceError(415, "the body is not said to be JSON", "send Content-Type: application/json")
        if self._working >= self._settings.requests:
            raise ServiceError(429, "too many requests at the same time", "try again later", retry_after=1)
        self._working += 1
        try:
            waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

            async def replay() -> Message:  # the body that was read, and then what comes after
                return waiting.pop() if waiting else await receive()

            await self._app(scope, replay, send)
        finally:
            self._working -= 1

    def _check_host(self, path: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Refuse a page of another site, and a name that was bent to this address."""
        hosts, origins = _values(headers, b"host"), _values(headers, b"origin")
        if path != "/" and set(_values(headers, b"sec-fetch-site")) & OTHER_SITES:
            raise ServiceError(403, "the request comes from a page of another site", "open / itself")
        if len(hosts) != 1 or _name(hosts[0]) not in self._settings.hosts:
            raise ServiceError(403, "the Host header names another service", "add the name with --allow-host")
        for origin in origins:
            if origin.lower() not in (f"{scheme}://{hosts[0].lower()}" for scheme in ("http", "https")):
                raise ServiceError(
                    403, "the request comes from a page of another site", "ask without a browser"
                )

    def _check_token(self, scope: Scope) -> None:
        """Refuse a request without the token, in constant time; note which reader a token is of."""
        token, readers = self._settings.token, self._settings.readers
        if (token is None and not readers) or scope["path"] in OPEN_ROUTES:
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, secret = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        scope["reader"] = readers.get(sha256(secret.strip()).hexdigest())
        known = scope["reader"] is not None if token is None else hmac.compare_digest(secret.strip(), token)
        if not known or scheme.lower() != b"bearer":
            raise ServiceError(401, "the token is missing or wrong", "send Authorization: Bearer TOKEN")

    async def _body(self, headers: Iterable[tuple[bytes, bytes]], receive: Receive, seen: _Seen) -> bytes:
        """Read the whole body, which is neither too long nor too slow."""
        if _values(headers, b"transfer-encoding") and _values(headers, b"content-length"):
            raise ServiceError(400, "the body has two lengths", "send Content-Length or chunks", closes=True)
        for length in _values(headers, b"content-length"):
            if not length.isdecimal() or int(length[:20]) > self._settings.body:
                raise self._too_long()
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ServiceError(400, "the body was cut off", "send all of it")
                    parts.append(message.get("body", b""))
                    seen.whole = not message.get("more_body", False)
                    self._hold(len(parts[-1]), seen)
                    if seen.whole:
                        return b"".join(parts)
        except TimeoutError:
            raise ServiceError(
                408,
                f"the body did not arrive within {self._settings.body_seconds:g} seconds",
                "send it faster",
            ) from None

    def _hold(self, more: int, seen: _Seen) -> None:
        """Count bytes that are held until their request ends; refuse those beyond the bounds."""
        seen.bytes += more
        self._bytes += more
        if seen.bytes > self._settings.body:
            raise self._too_long()
        if self._bytes > self._settings.bodies:
            raise ServiceError(
                429, "the requests at the same time are too large together", "try again later", retry_after=1
            )

    def _too_long(self) -> ServiceError:
        """Return the refusal of a long body."""
        return ServiceError(413, f"the body is longer than {self._settings.body} bytes", "send less")

    async def _drain(self, receive: Receive) -> None:
        """Read some of a refused body away, so that a client that is still sending sees the answer."""
        left = DRAINED * self._settings.body
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while left > 0:
                    message = await receive()  # a disconnect has no more body
                    left -= len(message.get("body", b"")) + 1
                    if not message.get("more_body", False):
                        return


def _values(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    """Return all values of one header."""
    return [value.decode("latin-1").strip() for name, value in headers if name == wanted]


def _name(host: str) -> str:
    """Return the name in a Host header, without its port; empty if it is not a host.

    >>> [_name(host) for host in ("LocalHost:80", "[::1]:80", "[::1]x", "a@localhost", "localhost/x", "")]
    ['localhost', '::1', '', '', '', '']
    """
    found = _HOST.fullmatch(host)
    return "" if found is None else (found["address"] or found["name"]).lower()


def _marked(send: Send, seen: _Seen) -> Send:
    """Return a `send` that adds the headers which every answer has; a route's own ones win."""

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            seen.status = message["status"]
            present = {name.lower() for name, _ in message["headers"]}
            extra = [(name, value) for name, value in SECURITY_HEADERS if name not in present]
            id_header = (b"x-request-id", seen.id.encode())
            message = {**message, "headers": [*message["headers"], *extra, id_header]}
        await send(message)
        if message.get("more_body", False):
            await asyncio.sleep(0)  # a stream that never waits lets others run, and learns of its end

    return marked


async def _refuse(send: Send, seen: _Seen, error: ServiceError) -> None:
    """Send an error; if an answer has begun, nothing can be added."""
    if seen.status:
        return
    body = error.body()
    headers = [(name.lower().encode(), value.encode()) for name, value in error.headers().items()]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
