"""What /openapi.json says of bodies and answers."""

from typing import Any, Final

from tabon.service.parsing import LARGEST, SHORT, Limits

ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message"],
            "properties": {"message": {"type": "string"}, "hint": {"type": "string"}},
        }
    },
}
_NUMBERS: Final[dict[str, Any]] = {"type": "array", "items": {"type": "number"}}
_MAYBE_NUMBER: Final[dict[str, Any]] = {"type": ["number", "null"]}
SELECTION: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "selected", "total_distances", "flags", "abstained", "signature"],
    "properties": {
        "id": {"type": "string"},
        "selected": {"type": ["integer", "null"]},
        "total_distances": _NUMBERS,
        "section_distances": {"type": "object", "additionalProperties": _NUMBERS},
        "nearest": {"type": "object"},
        "parts": {"type": "object"},
        "margin": _MAYBE_NUMBER,
        "tied": {"type": "boolean"},
        "flags": {"type": "array", "items": {"type": "string"}},
        "abstained": {"type": ["string", "null"]},
        "p": _MAYBE_NUMBER,
        "signature": {"type": "string"},
    },
}
EXPLANATION: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "draft", "selected", "drafts", "sections", "signature"],
}
BANK: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["notice", "transitions", "patients", "fingerprint", "sha256", "signature"],
}
STATUS: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string"}},
}


def query_schema(limits: Limits) -> dict[str, Any]:
    """Return the queries contract of docs/reference/file-formats.md, with the limits of this service."""
    section = {"type": ["string", "null"], "maxLength": limits.text}
    text = {"type": "string", "maxLength": limits.text}
    report = {
        "anyOf": [
            text,
            {"type": "object", "required": ["text"], "properties": {"text": text}},
            {"type": "object", "required": ["findings"], "properties": {"findings": section}},
            {"type": "object", "required": ["impression"], "properties": {"impression": section}},
        ]
    }
    number = {"type": "integer", "minimum": -LARGEST, "maximum": LARGEST}
    name = {"anyOf": [{"type": "string", "minLength": 1, "maxLength": SHORT}, number]}
    several = {"type": "array", "items": report, "maxItems": limits.priors}
    drafts = {"type": "array", "items": {"anyOf": [report, {"type": "null"}]}, "maxItems": limits.drafts}
    return {
        "type": "object",
        "required": ["id", "prior", "candidates"],
        "properties": {
            "id": name,
            "patient": {"anyOf": [*name["anyOf"], {"type": "null"}]},
            "prior": {"anyOf": [report, several, {"type": "null"}]},
            "candidates": drafts,
        },
    }


def request_body(limits: Limits) -> dict[str, Any]:
    """Return the request body of the routes that take one query."""
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": query_schema(limits)}}}
    }


def responses(schema: dict[str, Any], *errors: int, media: str = "application/json") -> dict[int | str, Any]:
    """Return what a route may answer: its record, and errors of one form."""
    refused = {"description": "Refused", "content": {"application/json": {"schema": ERROR}}}
    found = {"description": "Answered", "content": {media: {"schema": schema}}}
    return {200: found, **dict.fromkeys((401, 403, 408, 413, 415, 429, 500, 503, *errors), refused)}
