"""Models that an official client asks over HTTP.

Every official client runs on an HTTP client that is made here, so the body,
the status and the headers of a response are seen as they came, whichever
error a client makes of them.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tabon._internal.extras import require
from tabon.errors import GenerationError, TryAgainError
from tabon.generation.protocol import Answer, Request, answer_of
from tabon.generation.providers.failures import Provider, body_of, settle

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)  # odd bodies do this
T = TypeVar("T")
R = TypeVar("R")

_watched: ContextVar["_Watched"] = ContextVar("tabon_call_watched")


@dataclass(slots=True)
class _Watched:
    """The responses of one call, and how long each may be."""

    most: int  # bytes
    responses: list[Any] = field(default_factory=list)
    cut: bool = False  # one was longer


def source_of(base_url: str) -> str:
    """Write a server's address in one form, without what may be a secret.

    >>> source_of("HTTPS://user:key@Host.org:443/v1/?key=1")
    'https://host.org/v1'
    """
    parts = urlsplit(base_url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in {None, usual} else f":{parts.port}"
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def is_loopback(base_url: str) -> bool:
    """Tell whether requests to this address stay on the machine.

    >>> is_loopback("http://127.0.0.1:8000/v1"), is_loopback("https://127.0.0.1.example.org")
    (True, False)
    """
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _ask_for_plain_bytes(request: Any) -> None:  # noqa: ANN401  # httpx2 is an optional import
    """Ask for an answer that is not compressed, whatever an official client would ask for."""
    request.headers["accept-encoding"] = "identity"


async def _remember(response: Any) -> None:  # noqa: ANN401  # httpx2 is an optional import
    """Keep a response for the call that is waiting for it, and let no more of it in than is allowed."""
    httpx2 = require("httpx2", extra="openai", feature="the HTTP client")
    watched, stream = _watched.get(), response.stream
    most = 0 if _is_compressed(response) else watched.most

    class Bounded(httpx2.AsyncByteStream):  # type: ignore[misc,name-defined]
        """The beginning of the body, as if there were no more."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            """Yield what is allowed."""
            left = most
            async for portion in stream:
                yield portion[:left]
                left -= len(portion)
                if left < 0:
                    watched.cut = True
                    return

        async def aclose(self) -> None:
            """Let the connection go."""
            await stream.aclose()

    watched.responses.append(response)
    response.encoding = "utf-8"  # JSON is nothing else, and some encodings that may be named unpack bytes
    response.stream = Bounded()


def _is_compressed(response: Any) -> bool:  # noqa: ANN401  # an httpx2.Response
    """Whether a server compressed its answer, which was not asked for; a few bytes may become gigabytes."""
    return response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


def trusts_no_one() -> ssl.SSLContext:
    """Return TLS settings that accept no server, for what must never reach one over TLS.

    Reading the authorities takes 60 ms, and a plain http address has no use for them.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def http_client(base_url: str, *, extra: str) -> Any:  # noqa: ANN401  # an httpx2.AsyncClient
    """Make the HTTP client that an official client runs on.

    It follows no redirect (a key header would travel along), takes a proxy from
    the environment only for addresses off the machine, and sets no limit on
    connections or time: the runner does the first, `exchange` the second.
    """
    httpx2 = require("httpx2", extra=extra, feature="the HTTP client")
    return httpx2.AsyncClient(
        follow_redirects=False,
        timeout=None,  # `exchange` holds the time of the whole call
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        verify=trusts_no_one() if urlsplit(base_url).scheme == "http" else True,
        trust_env=not is_loopback(base_url),
        event_hooks={"request": [_ask_for_plain_bytes], "response": [_remember]},
    )


async def exchange(
    provider: Provider, send: Callable[[], Awaitable[T]], read: Callable[[T, Any], R]
) -> tuple[R | None, Any]:
    """Make one call; return what `read` makes of its result and response, and the response.

    None is a result that cannot be read, or that is no answer.

    Raises:
        TryAgainError: nothing came back in time.
        GenerationError: nothing was sent.
    """
    watched = _Watched(provider.most)
    no_answer: tuple[type[Exception], ...] = (*provider.failed, *UNREADABLE)
    found: R | None = None
    failure: TryAgainError | GenerationError | None = None
    token = _watched.set(watched)
    try:
        async with asyncio.timeout(provider.timeout):
            result = await send()
        if not watched.cut:
            found = read(result, watched.responses[-1])
    except TimeoutError:
        failure = TryAgainError(f"{provider.model} did not answer within {provider.timeout:g} s")
    except provider.lost as error:
        failure = TryAgainError(f"the connection to {provider.host} failed ({type(error).__name__})")
    except no_answer as error:
        if not watched.responses:
            failure = GenerationError(
                f"the client for {provider.model} did not send the request ({type(error).__name__}); "
                "check the parameters"
            )
    finally:
        _watched.reset(token)
    last: Any = watched.responses[-1] if watched.responses else None
    if watched.cut and last.is_success and _is_compressed(last):
        failure = GenerationError(
            f"{provider.host} compresses its answers though it was asked not to; "
            "switch that off in the server"
        )
    if failure is not None:
        raise failure  # out here, so that it carries no trace of what the client said
    return found, last


async def call(provider: Provider, send: Callable[[], Awaitable[T]]) -> T:
    """Make one call that returns no draft; failures are those of drafts."""
    found, response = await exchange(provider, send, lambda result, _: (result,))
    if found is None:
        settle(provider, response)
        raise TryAgainError(
            f"{provider.host} answered a batch call for {provider.model} with what cannot be read"
        )
    return found[0]


class HttpGenerator:
    """A model that an official client asks over HTTP; a subclass makes the client and sends."""

    def __init__(
        self,
        provider: Provider,
        read: Callable[[Any], Mapping[str, Any]],
        *,
        api_key: str,
        extra: str,
        own_address: str | None = None,
    ) -> None:
        """Check the address and the key, and make the HTTP clients.

        `read` takes what the official client returned apart, into the fields of an answer. At the
        provider's own address the model's name says all, so there is no source.
        """
        model, self.model, self._provider, self._read = provider.model, provider.model, provider, read
        try:
            parts = urlsplit(provider.base_url)
            good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good:
            raise GenerationError(
                f"the base URL for {model} is not an http(s) address; write https://HOST/PATH"
            )
        if not api_key.strip():
            raise GenerationError(f"{model} needs a key; set {provider.key_name}")
        if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
            raise GenerationError(
                f"the key for {model} holds characters that no key has; check {provider.key_name}"
            )
        source = source_of(provider.base_url)
        self.source = None if source == own_address else source
        self._http = http_client(provider.base_url, extra=extra)
        httpx2 = require("httpx2", extra=extra, feature="the HTTP client")
        self._unused = httpx2.Client(verify=trusts_no_one(), trust_env=False)  # some clients insist on it

    async def generate(self, request: Request) -> Answer:
        """Write one draft; raises TryAgainError or GenerationError."""
        found, response = await exchange(
            self._provider,
            lambda: self._send(request),
            lambda result, response: answer_of(self._read(result), body_of(response)),
        )
        return settle(self._provider, response) if found is None else found

    async def _send(self, request: Request) -> Any:  # noqa: ANN401  # an optional import's type
        """Send the image, then the prompt."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let the connections go."""
        self._unused.close()
        await self._http.aclose()


def read_rows(provider: Provider, data: bytes) -> list[dict[str, Any]]:
    """Read a batch job's file of results; one that is not whole is to be fetched again."""
    try:
        rows = [json.loads(line, parse_constant=str) for line in data.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        rows = None
    if rows is None or not all(isinstance(row, dict) for row in rows):
        raise TryAgainError(f"a file of results for {provider.model} could not be read whole")
    return rows


def answer_from(body: object, read: Callable[[Any], Mapping[str, Any]]) -> Answer:
    """Return the answer in one row; one that cannot be read was still paid for, so it is kept."""
    try:
        return answer_of(read(body), body)
    except UNREADABLE:
        return Answer(outcome="malformed", raw=body)
