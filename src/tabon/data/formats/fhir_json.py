"""FHIR's JSON with its types checked: a value of another type is named, never shown."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tabon.data.formats.received import check_file_size
from tabon.errors import BadInputError

Resource = Mapping[str, Any]

_ID = re.compile(r"[A-Za-z0-9.-]{1,64}")


def parse_resource(data: bytes, name: str) -> Resource:
    """Return the one JSON object of a file.

    Raises:
        BadInputError: the bytes are too many, not UTF-8, not JSON or not an object with a resourceType.
    """
    check_file_size(data, name)
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadInputError(f"{name} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadInputError(
            f"{name} is not whole JSON (line {error.lineno}, column {error.colno}); copy it again"
        ) from None
    except (ValueError, RecursionError):
        raise BadInputError(f"{name} is nested too deeply or has too long a number; repair it") from None
    if not isinstance(value, dict) or not isinstance(value.get("resourceType"), str):
        raise BadInputError(f"{name} is not a FHIR resource; give JSON with a resourceType")
    return value


def called(resource: Resource, name: str) -> str:
    """Return what a message calls a resource: the file, and its id where that is one."""
    identity = resource.get("id")
    is_id = isinstance(identity, str) and _ID.fullmatch(identity)
    return f"{name}, DiagnosticReport {identity}" if is_id else name


def text_at(resource: Resource, key: str, name: str) -> str | None:
    """Return the string under a key, None where there is none."""
    value = resource.get(key)
    if value is not None and not isinstance(value, str):
        raise BadInputError(f"{name}: {key!r} is not a string; FHIR wants one there")
    return value


def object_at(resource: Resource, key: str, name: str) -> Resource:
    """Return the object under a key, an empty one where there is none."""
    value = resource.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInputError(f"{name}: {key!r} is not an object; FHIR wants one there")
    return value


def objects_at(resource: Resource, key: str, name: str) -> tuple[Resource, ...]:
    """Return the objects of the list under a key, none where there is no list."""
    value = resource.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadInputError(f"{name}: {key!r} is not a list of objects; FHIR wants one there")
    return tuple(value)


def bundled(resource: Resource, name: str) -> Iterator[tuple[str | None, Resource]]:
    """Yield the resources of a Bundle with their addresses; any other resource is alone."""
    if resource["resourceType"] != "Bundle":
        yield None, resource
        return
    for entry in objects_at(resource, "entry", name):
        inner = object_at(entry, "resource", name)
        if inner:
            yield text_at(entry, "fullUrl", name), inner
