"""Names that stand for code: looked up in frozen tables, then among the entry points of other packages."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tabon.errors import BadInputError, TabonError, UnknownNameError


def lookup(
    kind: str, table: Mapping[str, str], name: str, *, group: str = "", also: Sequence[str] = ()
) -> Callable[..., Any]:
    """Import and return what `name` stands for; nothing is imported before.

    What the table lacks is looked for among the entry points of a group, if there is one; `also` is what
    else a name may be, for the message.

    >>> lookup("function", {"root": "math:sqrt"}, "root")(9.0)
    3.0
    """
    if name in table:
        module, _, attribute = table[name].partition(":")
        found: Callable[..., Any] = getattr(import_module(module), attribute)
        return found
    others = {entry.name: entry for entry in entry_points(group=group)} if group else {}
    if name not in others:
        raise UnknownNameError(kind, name, dict.fromkeys([*table, *others, *also]))
    return _guarded(kind, others[name])


def names_of(table: Mapping[str, str], group: str) -> tuple[str, ...]:
    """Return the names of a table, then those that other packages add; nothing of them is imported."""
    return tuple(dict.fromkeys([*table, *(entry.name for entry in entry_points(group=group))]))


def _guarded(kind: str, entry: EntryPoint) -> Callable[..., Any]:
    """Return a maker of another package; what goes wrong in it is one sentence."""

    def make(*arguments: object) -> object:
        try:
            return entry.load()(*arguments)
        except TabonError:
            raise
        except Exception as error:
            package = entry.dist.name if entry.dist else entry.value
            raise BadInputError(
                f"the {kind} {entry.name!r} of the package {package} cannot be loaded "
                f"({type(error).__name__}); mend or remove that package"
            ) from error

    return make


def check_name(kind: str, known: tuple[str, ...], name: str) -> str:
    """Return `name` if it is known, or say which one was probably meant."""
    if name not in known:
        raise UnknownNameError(kind, name, known)
    return name
