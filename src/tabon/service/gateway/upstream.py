"""Calls to the upstream: one draft or several, with retries, within a deadline and a number of bytes.

No message repeats what was sent or what the upstream said in prose, which may hold report text or a
key: of an upstream's error only a listed code and the name of a parameter that was sent are passed on.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from tabon._internal.extras import require
from tabon._internal.retry import Backoff, retry
from tabon.errors import SERVER_ERROR, UpstreamError
from tabon.generation.providers.failures import KEY_CODES, OUT_OF_MONEY, error_codes, retry_after
from tabon.generation.providers.http_generator import trusts_no_one
from tabon.service.gateway.replies import EventReader, Reply, StreamReader, malformed, read_json, reply_of
from tabon.service.gateway.settings import GatewaySettings
from tabon.service.metrics import Metrics

if TYPE_CHECKING:
    import httpx

TRY_AGAIN: Final = frozenset({408, 409, 425, 429})  # and every 5xx
PASSED_ON: Final = frozenset({400, 404, 413, 422, 429})
KEY_REFUSED: Final = frozenset({401, 403})
LONGEST_WAIT: Final = 86_400  # seconds that a Retry-After may say
CODES: Final = OUT_OF_MONEY | KEY_CODES | {
    "account_deactivated", "authentication_error", "bad_request", "content_filter",
    "content_policy_violation", "context_length_exceeded", "image_parse_error", "image_too_large",
    "internal_error", "invalid_image", "invalid_image_format", "invalid_request_error", "invalid_type",
    "invalid_value", "missing_required_parameter", "model_not_found", "not_found_error",
    "overloaded_error", "permission_denied", "rate_limit_error", "rate_limit_exceeded", "server_error",
    "string_above_max_length", "unknown_parameter", "unknown_url", "unsupported_parameter",
    "unsupported_value", "INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "UNAVAILABLE",
}  # fmt: skip  # that OpenAI and servers of its kind give; any other word might be a key
_FIRST_NAME = re.compile(r"\w+", re.ASCII)
CONNECT_SECONDS: Final = 10.0
ERROR_BYTES: Final = 65_536  # of an error body that are looked at
MODELS_BYTES: Final = 4_000_000
SUCCESS: Final = 200
OnText = Callable[[str], Awaitable[None]]  # gets the text of a draft as it comes


def refused(
    status: int,
    headers: Mapping[str, str],
    body: Any,  # noqa: ANN401  # any JSON
    *,
    own_key: bool,
    sent: Collection[str] = (),
) -> UpstreamError:
    """Return what an upstream's error means; its body may be any JSON.

    With `own_key` the key is the gateway's, so that the client can do nothing about it. `sent` are the
    names of the parameters of the request.
    """
    codes = [code for code in error_codes(body) if code in CODES]
    wait = retry_after(headers, body)
    facts: dict[str, Any] = {"code": codes[-1] if codes else None, "param": _param(body, sent)}
    if wait is not None:
        facts["retry_after"] = min(ceil(wait), LONGEST_WAIT)
    again = (status in TRY_AGAIN or status >= SERVER_ERROR) and not OUT_OF_MONEY & set(codes)
    passed_on = status in PASSED_ON or (status in KEY_REFUSED and not own_key)
    given = status if passed_on else 504 if status in {408, 504} else 502
    return UpstreamError(given, _sentence(status, own_key), again=again, seen=status, **facts)


def _sentence(status: int, own_key: bool) -> str:  # noqa: FBT001
    """Say what happened and a hint."""
    if status in KEY_REFUSED:
        whose = "the gateway's key; check --upstream-key-file" if own_key else "the key; send another one"
        return f"the upstream did not accept {whose} (HTTP {status})"
    if status == 404:  # noqa: PLR2004
        return "the upstream does not know this model or route; ask GET /v1/models"
    if status == 429:  # noqa: PLR2004
        return "the upstream has no room now; try again later"
    if status in PASSED_ON:
        return f"the upstream does not take this request (HTTP {status}); check its parameters"
    if 300 <= status < 400:  # noqa: PLR2004
        return f"the upstream redirects (HTTP {status}); give --upstream the address that it leads to"
    return f"the upstream failed (HTTP {status}); try again later"


def _param(body: Any, sent: Collection[str]) -> str | None:  # noqa: ANN401  # any JSON
    """Return the parameter that an upstream complains about, if it was sent: of `a[0].b` the first name."""
    error = body.get("error") if isinstance(body, dict) else None
    name = error.get("param") if isinstance(error, dict) else None
    first = _FIRST_NAME.match(name) if isinstance(name, str) else None
    return first[0] if first is not None and first[0] in sent else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to the upstream."""

    path: str
    body: Mapping[str, Any] | None = None  # None: GET
    drafts: int = 1
    stream: bool = False
    authorization: str | None = None
    deadline: float  # of the event loop's clock


def no_time() -> UpstreamError:
    """Return the error for an upstream that did not answer in time."""
    return UpstreamError(
        504, "the upstream did not answer in time; try again later or raise --upstream-timeout"
    )


class Upstream:
    """The upstream and the connections to it."""

    def __init__(self, settings: GatewaySettings, metrics: Metrics) -> None:
        """Take the settings; `open` makes the connections possible."""
        require("httpx", extra="gateway", feature="the gateway")
        self._settings, self._metrics = settings, metrics
        self._room = asyncio.Semaphore(settings.calls)
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        """Make the client: no redirects (a key would travel along), no proxy from the environment."""
        import ssl

        import httpx

        plain = self._settings.upstream.startswith("http:")
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            trust_env=False,
            verify=trusts_no_one() if plain else ssl.create_default_context(),
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=self._settings.calls),
            headers={"User-Agent": f"tabon-gateway/{version('tabon')}", "Accept-Encoding": "identity"},
        )

    async def close(self) -> None:
        """Let the connections go."""
        if self._client is not None:
            await self._client.aclose()

    async def ask(self, call: Call, on_text: OnText | None = None) -> Reply:
        """Return the drafts of one call; where it fails for now, ask again within the deadline.

        Only the first attempt goes to `on_text`.
        """

        def again(error: Exception) -> bool:
            """Count a failure and say whether it may pass."""
            if not isinstance(error, UpstreamError):
                return False
            self._metrics.upstream_failures.inc()
            return error.again

        backoff = Backoff(
            attempts=self._settings.retries + 1,
            first_wait=self._settings.first_wait,
            within=call.deadline - asyncio.get_running_loop().time(),
        )
        return await retry(
            lambda attempt: self._once(call, on_text if attempt == 1 else None), backoff, again
        )

    async def models(self, call: Call) -> Mapping[str, Any]:
        """Return what the upstream says of its models."""
        async with self._answer(call) as response:
            found = read_json(await _bounded(response, MODELS_BYTES))
        if not isinstance(found, dict):
            raise malformed()
        return found

    async def _once(self, call: Call, on_text: OnText | None) -> Reply:
        """Make one call; what came of a stream that breaks is kept if a draft is whole."""
        reader = StreamReader(call.drafts)
        try:
            async with self._answer(call) as response:
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    await self._read(response, reader, call, on_text)
                    reply = reader.reply()
                else:
                    data = await _bounded(response, call.drafts * self._settings.draft_bytes)
                    reply = await asyncio.to_thread(reply_of, data, call.drafts)
        except UpstreamError:
            reply = reader.reply()
            if not reply.came:
                raise
        if not reply.came:
            raise malformed()
        return reply

    @asynccontextmanager
    async def _answer(self, call: Call) -> "AsyncIterator[httpx.Response]":
        """Send a request and give its answer to read; every way to fail becomes an UpstreamError."""
        import httpx

        self._metrics.upstream_calls.inc()
        try:
            async with asyncio.timeout_at(call.deadline), self._room:
                with self._metrics.upstream_seconds.time():
                    response = await self._sent(call)
                    try:
                        await self._check(response, call)
                        yield response
                    finally:
                        with suppress(httpx.HTTPError):
                            await response.aclose()
        except TimeoutError:
            raise no_time() from None
        except httpx.HTTPError as error:
            name = type(error).__name__
            raise UpstreamError(502, f"the connection to the upstream failed ({name})", again=True) from None

    async def _sent(self, call: Call) -> "httpx.Response":
        """Send a request; it is written away from the event loop, since an image makes it long."""
        if self._client is None:
            raise UpstreamError(502, "the gateway has not started; start it with the service")
        settings = self._settings
        headers = {} if call.body is None else {"Content-Type": "application/json"}
        secret = call.authorization if settings.pass_key else settings.key and f"Bearer {settings.key}"
        if secret and not (secret.isascii() and secret.isprintable()):
            raise UpstreamError(401, "the Authorization header holds what no key has; send visible ASCII")
        if secret:
            headers["Authorization"] = secret
        content = None if call.body is None else await asyncio.to_thread(_written, call.body)
        method = "GET" if call.body is None else "POST"
        request = self._client.build_request(
            method, settings.url(call.path), headers=headers, content=content
        )
        return await self._client.send(request, stream=True)

    async def _check(self, response: "httpx.Response", call: Call) -> None:
        """Refuse what is not an answer."""
        if response.status_code != SUCCESS:
            data = await _bounded(response, ERROR_BYTES, cut=True)
            raise refused(
                response.status_code,
                response.headers,
                read_json(data),
                own_key=not self._settings.pass_key,
                sent=call.body or (),
            )
        if response.headers.get("content-encoding", "identity") != "identity":
            raise malformed()

    async def _read(
        self, response: "httpx.Response", reader: StreamReader, call: Call, on_text: OnText | None
    ) -> None:
        """Read a stream to its end."""
        found = EventReader()
        async with aclosing(_portions(response, call.drafts * self._settings.draft_bytes)) as portions:
            async for portion in portions:
                for data in found.feed(portion):
                    for _, text in reader.add(data):
                        if on_text is not None and text:
                            await on_text(text)
                if reader.done:
                    return


def _written(body: Mapping[str, Any]) -> bytes:
    """Write a body."""
    return json.dumps(body).encode()


async def _portions(response: "httpx.Response", most: int) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of an answer, up to a number."""
    left = most
    async with aclosing(response.aiter_raw()) as portions:  # type: ignore[type-var]
        async for portion in portions:
            left -= len(portion)
            if left < 0:
                raise UpstreamError(502, "the upstream's answer is too long; ask for fewer tokens")
            yield portion


async def _bounded(response: "httpx.Response", most: int, *, cut: bool = False) -> bytes:
    """Return the whole answer, which is not longer than that; or its beginning."""
    found = bytearray()
    try:
        async for portion in _portions(response, most):
            found += portion
    except UpstreamError:
        if not cut:
            raise
    return bytes(found)
