"""What /openapi.json says of the gateway's bodies and answers."""

from typing import Any, Final

from tabon.service.gateway.settings import GatewaySettings
from tabon.service.parsing import SHORT, Limits
from tabon.service.schemas import query_schema, responses

STATUSES: Final = (400, 404, 413, 422, 429, 502, 504)
_TEXT_OR_NULL: Final[dict[str, Any]] = {"type": ["string", "null"]}
_NUMBERS: Final[dict[str, Any]] = {"type": "array", "items": {"type": "integer"}}
ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": _TEXT_OR_NULL,
                "code": _TEXT_OR_NULL,
                "hint": {"type": "string"},
            },
        }
    },
}
EXTENSION: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["selected", "returned", "drafts", "distances", "abstained", "flags", "stopped", "failed"],
    "properties": {
        "selected": {"type": ["integer", "null"]},
        "returned": _NUMBERS,
        "drafts": {"type": "integer"},
        "distances": {"type": "array", "items": {"type": ["number", "null"]}},
        "margin": {"type": ["number", "null"]},
        "tied": {"type": "boolean"},
        "abstained": _TEXT_OR_NULL,
        "p": {"type": ["number", "null"]},
        "flags": {"type": "array", "items": {"type": "string"}},
        "stopped": _NUMBERS,
        "failed": {"type": "object", "additionalProperties": {"type": "integer"}},
        "signature": {"type": "string"},
        "notice": {"type": "string"},
    },
}
COMPLETION: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "object", "created", "model", "choices", "tabon"],
    "properties": {
        "object": {"const": "chat.completion"},
        "choices": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "required": ["index", "message", "finish_reason"]},
        },
        "usage": {"type": "object"},
        "tabon": EXTENSION,
    },
}
MODELS: Final[dict[str, Any]] = {"type": "object"}
EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One event of the stream; its data is a chat.completion.chunk, an error, or [DONE].",
    "required": ["data"],
    "properties": {"data": {"type": "string"}},
}


def chat_request(limits: Limits, settings: GatewaySettings) -> dict[str, Any]:
    """Return the request body of a chat completion; fields that are not named are passed on."""
    properties = query_schema(limits)["properties"]
    most = min(settings.most_drafts, limits.drafts)
    count = {"type": ["integer", "null"], "minimum": 1, "maximum": most}
    message = {"type": "object", "required": ["role"], "properties": {"role": {"type": "string"}}}
    own = {
        "type": ["object", "null"],
        "properties": {"prior": properties["prior"], "patient": properties["patient"], "drafts": count},
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "required": ["model", "messages"],
        "properties": {
            "model": {"type": "string", "minLength": 1, "maxLength": SHORT},
            "messages": {"type": "array", "minItems": 1, "items": message},
            "n": count,
            "stream": {"type": ["boolean", "null"]},
            "stream_options": {
                "type": ["object", "null"],
                "properties": {"include_usage": {"type": ["boolean", "null"]}},
            },
            "tabon": own,
        },
    }
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def answers(schema: dict[str, Any], *, stream: bool = False) -> dict[int | str, Any]:
    """Return what a route of the gateway may answer."""
    found = responses(schema, *STATUSES)
    for status, answer in found.items():
        if status != 200:  # noqa: PLR2004
            found[status] = {**answer, "content": {"application/json": {"schema": ERROR}}}
        elif stream:
            answer["content"]["text/event-stream"] = {"schema": EVENT}
    return found
