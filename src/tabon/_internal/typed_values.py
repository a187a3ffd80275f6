"""From what a JSON or TOML file says to dataclasses: every value is of the kind that its field wants.

What does not fit is refused in one sentence that names the file and the field,
never the value. Numbers are finite and below `MAX_NUMBER`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from tabon.errors import BadInputError

MAX_NUMBER = 1e15  # beyond any score, difference, weight or count
MAX_LEVELS = 32  # of lists and objects inside each other
T = TypeVar("T")
KINDS: Mapping[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    Mapping: "an object",
}
HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # JSON can write one alone; nothing can encode it
_PLAIN = re.compile(r"[\w ./+-]{1,60}")  # what may be shown of a file's keys


class MisfitError(ValueError):
    """What a file says does not fit; the text says where, and names no value."""


def read_typed(kind: type[T], path: Path, *, form: str, what: str, hint: str) -> T:
    """Read a dataclass from a JSON file.

    Args:
        kind: the dataclass; its annotations say what fits.
        path: the file.
        form: what its key "format" must say.
        what: the file's name in sentences, "results file".
        hint: what to do if the file is not whole, "evaluate again".
    """
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}); name a {what}") from None
    except (ValueError, RecursionError):  # not UTF-8, no JSON, a number of thousands of digits, too deep
        raise BadInputError(f"{path} is not a whole {what} (no JSON); {hint}") from None
    try:
        record = dict(fitting(Mapping[str, Any], record))
        if record.pop("format", None) != form:
            raise BadInputError(f"{path} is of another format than {form}; {hint}")
        found: T = fitting(kind, record)
    except MisfitError as error:
        raise BadInputError(f"{path} is not a whole {what} ({error}); {hint}") from None
    return found


def fitting(kind: Any, value: object, place: str = "", levels: int = MAX_LEVELS) -> Any:  # noqa: ANN401
    """Return a value as an annotation wants it: objects as dataclasses, lists as tuples.

    >>> fitting(tuple[float, ...], [1, 2.5]), fitting(str | None, None)
    ((1, 2.5), None)

    Raises:
        MisfitError: it cannot be.
    """
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if levels < 0:
        raise MisfitError(f"{place} is nested more than {MAX_LEVELS} levels deep")
    if origin is UnionType:
        [other] = [part for part in parts if part is not NoneType]  # X | None is the only kind in use
        return None if value is None else fitting(other, value, place, levels)
    if is_dataclass(kind):
        return _as_dataclass(kind, value, place, levels)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_items(parts, value, place, levels))
    if origin is Mapping and isinstance(value, Mapping):
        return {
            fitting(parts[0], key, f"a key of {place}", levels): fitting(
                parts[1], inner, _below(place, key), levels - 1
            )
            for key, inner in value.items()
        }
    if kind is Any:
        _check_any(value, place, levels)
        return value
    return _plain(origin, parts, value, place)


def check_keys(table: Mapping[str, object], known: Sequence[str], place: str = "") -> None:
    """Refuse a key that means nothing, with the one that was probably meant."""
    for key in table:
        if key not in known:
            close = get_close_matches(str(key), known, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise MisfitError(_said(place, f"has the unknown key {_shown(key)}: {meant}"))


def _as_dataclass(kind: Any, value: object, place: str, levels: int) -> Any:  # noqa: ANN401  # its instance
    """Build a dataclass from an object: no key too many, none too few."""
    if not isinstance(value, Mapping):
        raise _misfit(place, value, "an object")
    wanted, needed = _fields(kind)
    check_keys(value, tuple(wanted), place)
    for key in needed:
        if key not in value:
            raise MisfitError(_said(place, f"has no key {key!r}"))
    return kind(
        **{key: fitting(wanted[key], inner, _below(place, key), levels - 1) for key, inner in value.items()}
    )


@cache
def _fields(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:  # noqa: ANN401  # a dataclass
    """Return the annotations of a dataclass, and its fields without a default."""
    needed = [
        item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING
    ]
    hints = get_type_hints(kind)
    return {item.name: hints[item.name] for item in fields(kind)}, tuple(needed)


def _items(parts: tuple[Any, ...], values: Sequence[object], place: str, levels: int) -> Iterator[Any]:
    """Yield the items of a list; `tuple[X, ...]` has any number of them, `tuple[X, Y]` two."""
    kinds = parts[:1] * len(values) if parts[-1] is Ellipsis else parts
    if len(kinds) != len(values):
        raise MisfitError(_said(place, f"has {len(values)} items instead of {len(kinds)}"))
    for number, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        yield fitting(kind, value, f"{place}[{number}]", levels - 1)


def _plain(kind: Any, choices: tuple[Any, ...], value: object, place: str) -> object:  # noqa: ANN401
    """Return a value that has no parts."""
    if kind is Literal:
        if value not in choices:
            raise MisfitError(_said(place, f"is none of {', '.join(choices)}"))
        return value
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise _misfit(place, value, KINDS.get(kind, "something else"))
    if isinstance(value, str) and HALF_CHARACTER.search(value):
        raise MisfitError(_said(place, "holds half a character, which no file can hold"))
    if isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:
        raise MisfitError(_said(place, "is no number below 10¹⁵"))
    return value


def _check_any(value: object, place: str, levels: int) -> None:
    """Look at what may be of any kind: its keys, its numbers, its depth."""
    if isinstance(value, dict | list):
        fitting(Mapping[str, Any] if isinstance(value, dict) else tuple[Any, ...], value, place, levels)
    elif value is not None:
        fitting(type(value), value, place, levels)


def _misfit(place: str, value: object, wanted: str) -> MisfitError:
    """Name the kind that was found and the one that was wanted."""
    return MisfitError(_said(place, f"is {KINDS.get(type(value), 'something else')} instead of {wanted}"))


def _said(place: str, what: str) -> str:
    """Begin with the place; the whole file has none."""
    return f"{place} {what}" if place else f"it {what}"


def _below(place: str, key: object) -> str:
    """Return the place of what is under a key."""
    shown = _shown(key)
    return f"{place}.{shown}" if place else shown


def _shown(key: object) -> str:
    """Return a key as a message may show it; one that is no plain name is not shown."""
    return key if isinstance(key, str) and _PLAIN.fullmatch(key) else "(a key)"
