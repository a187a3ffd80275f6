"""What happens to a call over HTTP: an answer, a reason to ask again, or a reason to stop.

Every official client runs on an HTTP client that is made here, so the body,
the status and the headers of a response are seen as they came, whichever
error a client makes of them. Messages are written here, from the status and
the provider's error code alone: what a provider says in prose may repeat the
prompt or the key.
"""

import asyncio
import json
import math
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from tabon._internal.extras import require
from tabon.errors import GenerationError, TryAgainError
from tabon.generation.protocol import Answer, Outcome, answer_of

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)  # odd bodies do this
TRY_AGAIN = {408, 409, 425, 429}  # and every 5xx
FIRST_SERVER_ERROR = 500
KEY_CODES = {"API_KEY_INVALID", "invalid_api_key", "PERMISSION_DENIED", "UNAUTHENTICATED"}
OUT_OF_MONEY = {"insufficient_quota", "billing_hard_limit_reached"}
CODE = re.compile(r"(?=.{1,48}$)[a-z]+(_[a-z]+)+|[0-9]{3,4}")  # no key looks like this
KNOWN_CODES = KEY_CODES | {  # of google.rpc.Code, and single words of others
    "ABORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "FAILED_PRECONDITION",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OUT_OF_RANGE",
    "RATE_LIMIT_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
    "BadRequestError",
    "InternalServerError",
    "NotFoundError",
    "missing",
    "overloaded",
}
MOST_BYTES = 4 * 2**20  # of the answer to one request
KEPT_TEXT = 10_000  # characters of a body that is not JSON
TRANSFER_TIMEOUT = 900.0  # seconds for a file to go up or come down
TRANSFER_BYTES = 2**30  # of a file that comes down

_watched: ContextVar["_Watched"] = ContextVar("tabon_call_watched")


@dataclass(slots=True)
class _Watched:
    """The responses of one call, and how long each may be."""

    most: int  # bytes
    responses: list[Any] = field(default_factory=list)
    cut: bool = False  # one was longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider's address and name, and which errors its client raises."""

    model: str  # as it is journaled
    base_url: str
    key_name: str  # the environment variable the key is read from
    timeout: float  # seconds for one call as a whole
    lost: tuple[type[Exception], ...]  # no response came
    failed: tuple[type[Exception], ...]  # a response came, and it is no answer
    missing: str = "check the model id"  # what to do when there is no such model
    most: int = MOST_BYTES  # of an answer; what is beyond is not read

    @property
    def host(self) -> str:
        """Return the host and port, without what else a URL may carry."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    def for_jobs(self) -> "Provider":
        """Return the provider for calls about batch jobs, which may not be there."""
        return replace(self, missing=f"or no such job or file; {self.missing}")

    def for_files(self) -> "Provider":
        """Return the provider for whole files."""
        return replace(self.for_jobs(), timeout=max(self.timeout, TRANSFER_TIMEOUT), most=TRANSFER_BYTES)


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


def check_address(model: str, base_url: str) -> None:
    """Refuse an address that no request could be sent to."""
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise GenerationError(f"the base URL for {model} is not an http(s) address; write https://HOST/PATH")


def check_key(model: str, api_key: str, key_name: str) -> None:
    """Refuse a key that is missing or cannot stand in a header."""
    if not api_key.strip():
        raise GenerationError(f"{model} needs a key; set {key_name}")
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        raise GenerationError(f"the key for {model} holds characters that no key has; check {key_name}")


async def _ask_for_plain_bytes(request: Any) -> None:  # noqa: ANN401  # httpx2 is an optional import
    """Ask for an answer that is not compressed, whatever an official client would ask for."""
    request.headers["accept-encoding"] = "identity"


async def _remember(response: Any) -> None:  # noqa: ANN401  # httpx2 is an optional import
    """Keep a response for the call that is waiting for it, and let no more of it in than is allowed."""
    watched = _watched.get()
    watched.responses.append(response)
    response.encoding = "utf-8"  # JSON is nothing else, and some encodings that may be named unpack bytes
    response.stream = _bounded(response.stream, watched, 0 if _is_compressed(response) else watched.most)


def _is_compressed(response: Any) -> bool:  # noqa: ANN401  # an httpx2.Response
    """Whether a server compressed its answer, which was not asked for; a few bytes may become gigabytes."""
    return response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


def _bounded(stream: Any, watched: _Watched, most: int) -> Any:  # noqa: ANN401  # an httpx2.AsyncByteStream
    """Return a stream that ends after so many bytes, as if there were no more."""
    httpx2 = require("httpx2", extra="openai", feature="the HTTP client")

    class Bounded(httpx2.AsyncByteStream):  # type: ignore[misc,name-defined]
        """The beginning of another stream."""

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

    return Bounded()


def trusts_no_one() -> ssl.SSLContext:
    """Return TLS settings that accept no server, for what must never reach one over TLS.

    Reading the authorities takes 60 ms, and a plain http address has no use for them.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def unused_client(*, extra: str) -> Any:  # noqa: ANN401  # an httpx2.Client
    """Make the blocking HTTP client that some official clients insist on; no call goes through it."""
    httpx2 = require("httpx2", extra=extra, feature="the HTTP client")
    return httpx2.Client(verify=trusts_no_one(), trust_env=False)


def http_client(base_url: str, *, extra: str) -> Any:  # noqa: ANN401  # an httpx2.AsyncClient
    """Make the HTTP client that an official client runs on.

    It follows no redirect (a key header would travel along), takes a proxy from
    the environment only for addresses off the machine, and sets no limit on
    connections or time: the runner does the first, `ask` the second.
    """
    httpx2 = require("httpx2", extra=extra, feature="the HTTP client")
    return httpx2.AsyncClient(
        follow_redirects=False,
        timeout=None,  # `ask` holds the time of the whole call
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        verify=trusts_no_one() if urlsplit(base_url).scheme == "http" else True,
        trust_env=not is_loopback(base_url),
        event_hooks={"request": [_ask_for_plain_bytes], "response": [_remember]},
    )


async def ask(
    provider: Provider, call: Callable[[], Awaitable[Any]], read: Callable[[Any], Mapping[str, Any]]
) -> Answer:
    """Make one call; return its answer, or raise TryAgainError or GenerationError.

    Args:
        provider: whom the call goes to.
        call: sends the request through the official client.
        read: takes what the client returned apart, into the fields of an answer.

    Raises:
        TryAgainError: nothing came back, or the provider asked to wait.
        GenerationError: the provider will not answer this.
    """
    watched = _Watched(provider.most)
    no_answer: tuple[type[Exception], ...] = (*provider.failed, *UNREADABLE)
    failure: TryAgainError | GenerationError | None = None
    token = _watched.set(watched)
    try:
        async with asyncio.timeout(provider.timeout):
            result = await call()
        if not watched.cut:
            return answer_of(read(result), body_of(watched.responses[-1]))
    except TimeoutError:
        failure = TryAgainError(f"{provider.model} did not answer within {provider.timeout:g} s")
    except provider.lost as error:
        failure = TryAgainError(f"the connection to {provider.host} failed ({type(error).__name__})")
    except no_answer as error:
        failure = (
            None
            if watched.responses
            else GenerationError(
                f"the client for {provider.model} did not send the request ({type(error).__name__}); "
                "check the parameters"
            )
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
    return settle(provider, last)


def settle(provider: Provider, response: Any) -> Answer:  # noqa: ANN401  # an httpx2.Response
    """Say what a response means that is not an answer; a 2xx may have been billed, so it is kept."""
    status, body = response.status_code, body_of(response)
    if response.is_success:
        return Answer(outcome="malformed", raw=body)
    codes = list(dict.fromkeys(error_codes(body)))
    what = f"HTTP {status}{''.join(f', {code}' for code in codes)}"
    if (status in TRY_AGAIN or status >= FIRST_SERVER_ERROR) and not OUT_OF_MONEY & set(codes):
        wait = retry_after(response.headers, body)
        raise TryAgainError(f"{provider.model} cannot answer now ({what})", retry_after=wait)
    raise GenerationError(f"{_refusal(provider, status, set(codes))} ({what})")


def _refusal(provider: Provider, status: int, codes: set[str]) -> str:
    """Say in one sentence why a provider will not answer, and a hint."""
    if OUT_OF_MONEY & codes:
        return f"the account for {provider.model} has no credit left; add credit or use another key"
    if status in {401, 403} or KEY_CODES & codes:
        return (
            f"the key was not accepted for {provider.model}; set {provider.key_name} to a key that may use it"
        )
    if status == 404:  # noqa: PLR2004
        return f"{provider.host} does not know {provider.model}; {provider.missing}"
    if status in {400, 413, 422}:
        return f"{provider.model} does not take this request; check the parameters and the size of the image"
    return f"{provider.host} gave an answer for {provider.model} that was not expected; check the base URL"


def body_of(response: Any) -> Any:  # noqa: ANN401  # an httpx2.Response, and whatever JSON it holds
    """Return the body as JSON, as text where it is not JSON, or None where it was never read."""
    try:
        text = response.text
    except RuntimeError:  # httpx2.ResponseNotRead: the body did not come or could not be decoded
        return None
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text[:KEPT_TEXT]


def _error_parts(body: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401  # any JSON
    """Yield the objects of an error body that carry a code: the error, then its details."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return
    error = body.get("error", body)
    if isinstance(error, dict):
        yield error
        details = error.get("details")
        yield from (part for part in (details if isinstance(details, list) else []) if isinstance(part, dict))


def error_codes(body: Any) -> Iterator[str]:  # noqa: ANN401  # any JSON
    """Yield the provider's machine-readable codes for a failure; never its prose, nor a word like a key.

    >>> list(error_codes({"error": {"message": "about the prompt", "status": "NOT_FOUND", "code": 404}}))
    ['NOT_FOUND']
    """
    for part in _error_parts(body):
        for name in ("status", "type", "code", "reason"):
            code = part.get(name)
            if isinstance(code, str) and (code in KNOWN_CODES or CODE.fullmatch(code)):
                yield code


def retry_after(headers: Mapping[str, str], body: Any) -> float | None:  # noqa: ANN401  # any JSON
    """Return the seconds a provider asks to wait: Retry-After, or RetryInfo in Gemini's body.

    >>> retry_after({}, {"error": {"details": [{"@type": "x/google.rpc.RetryInfo", "retryDelay": "3.5s"}]}})
    3.5
    """
    waits = [_seconds(headers.get("retry-after", ""))]
    waits += [
        _seconds(str(part.get("retryDelay", "")).removesuffix("s"))
        for part in _error_parts(body)
        if str(part.get("@type", "")).endswith("google.rpc.RetryInfo")
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def _seconds(text: str) -> float | None:
    """Read the two forms of Retry-After: a number of seconds that can be waited, or a date."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            then = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        seconds = ((then if then.tzinfo else then.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def outcome_of(reason: str | None, text: str, meanings: Mapping[str, Outcome]) -> Outcome:
    """Say what a finish reason makes of an answer; an unknown one counts where there is text.

    >>> outcome_of("stop", " ", {"stop": "ok"}), outcome_of("odd", "", {}), outcome_of("odd", "text", {})
    ('empty', 'malformed', 'ok')
    """
    has_text = bool(text.strip())
    outcome = meanings.get(reason or "", "ok" if has_text else "malformed")
    return "empty" if outcome == "ok" and not has_text else outcome
