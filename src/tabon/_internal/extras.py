"""Optional dependencies, asked for in one place."""

from importlib import import_module
from types import ModuleType

from tabon.errors import MissingExtraError


def require(module: str, *, extra: str, feature: str) -> ModuleType:
    """Import an optional dependency, or say which extra to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the package is there but broken inside: do not hide that
        raise MissingExtraError(feature, extra) from None
