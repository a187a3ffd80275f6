"""Errors in OpenAI's form, and what a failed call to the upstream means for the client.

No message repeats what was sent or what the upstream said in prose: that may hold
report text or a key. Of an upstream's error only a code that is listed here and the
name of a parameter that was sent are passed on.
"""

import re
from collections.abc import Collection, Mapping
from math import ceil
from typing import Any, Final

from tabon.errors import SERVER_ERROR, GatewayError, ServiceError, UpstreamError
from tabon.generation.providers.failures import KEY_CODES, OUT_OF_MONEY, error_codes, retry_after

GONE: Final = 499  # in the log: the client hung up
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


def bad_request(message: str, param: str | None = None) -> GatewayError:
    """Return the refusal of a request that does not fit."""
    return GatewayError(400, message, param=param, code="invalid_value")


def as_gateway_error(error: ServiceError) -> GatewayError:
    """Return an error of the service in OpenAI's form; the hint becomes part of its sentence."""
    if isinstance(error, GatewayError):
        return error
    message = f"{error.message}; {error.hint}" if error.hint else error.message
    return GatewayError(error.status, message, retry_after=error.retry_after)


def refused(
    status: int,
    headers: Mapping[str, str],
    body: Any,  # noqa: ANN401  # any JSON
    *,
    own_key: bool,
    sent: Collection[str] = (),
) -> UpstreamError:
    """Return what an upstream's error means.

    Args:
        status: of the upstream's answer.
        headers: of it.
        body: its JSON, whatever that is.
        own_key: whether the key is the gateway's, so that the client can do nothing about it.
        sent: names of the parameters of the request.
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
