"""What a response means that is no answer: a reason to ask again, or a reason to stop.

Messages are written here, from the status and the provider's error code alone:
what a provider says in prose may repeat the prompt or the key.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from tabon.errors import GenerationError, TryAgainError
from tabon.generation.protocol import Answer, Outcome

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
    if OUT_OF_MONEY & set(codes):
        why = f"the account for {provider.model} has no credit left; add credit or use another key"
    elif status in {401, 403} or KEY_CODES & set(codes):
        why = (
            f"the key was not accepted for {provider.model}; set {provider.key_name} to a key that may use it"
        )
    elif status == 404:  # noqa: PLR2004
        why = f"{provider.host} does not know {provider.model}; {provider.missing}"
    elif status in {400, 413, 422}:
        why = f"{provider.model} does not take this request; check the parameters and the size of the image"
    else:
        why = f"{provider.host} gave an answer for {provider.model} that was not expected; check the base URL"
    raise GenerationError(f"{why} ({what})")


def body_of(response: Any) -> Any:  # noqa: ANN401  # an httpx2.Response, and whatever JSON it holds
    """Return the body as JSON, as text if it is not JSON, or None if it was never read."""
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
    """Say what a finish reason makes of an answer; an unknown one counts if there is text.

    >>> outcome_of("stop", " ", {"stop": "ok"}), outcome_of("odd", "", {}), outcome_of("odd", "text", {})
    ('empty', 'malformed', 'ok')
    """
    has_text = bool(text.strip())
    outcome = meanings.get(reason or "", "ok" if has_text else "malformed")
    return "empty" if outcome == "ok" and not has_text else outcome
