"""Names that stand for code, looked up in frozen tables."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tabon.errors import UnknownNameError


def lookup(kind: str, table: Mapping[str, str], name: str) -> Callable[..., Any]:
    """Import and return what `name` stands for; nothing is imported before.

    >>> lookup("function", {"root": "math:sqrt"}, "root")(9.0)
    3.0
    """
    if name not in table:
        raise UnknownNameError(kind, name, table)
    module, _, attribute = table[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute)
    return found


def check_name(kind: str, known: tuple[str, ...], name: str) -> str:
    """Return `name` if it is known, or say which one was probably meant."""
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return name
