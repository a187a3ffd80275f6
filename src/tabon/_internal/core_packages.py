"""Refuses to import tabon without the packages that every part needs: in one sentence, not in a traceback.

A damaged or half-made environment is the first thing that a newcomer meets, and `tabon doctor`
cannot speak without them either.
"""

import sys
from importlib.util import find_spec
from types import TracebackType

CORE = ("click", "numpy", "scipy", "sentencex", "threadpoolctl")


class MissingCoreError(ImportError):
    """A package that every part of tabon needs is not installed."""


def _say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write an error that nobody caught: this one as a sentence, every other as before."""
    if issubclass(kind, MissingCoreError):
        sys.stderr.write(f"Error: {error}\n")
    else:
        _before(kind, error, trace)


missing = [name for name in CORE if find_spec(name) is None]
if missing:
    _before, sys.excepthook = sys.excepthook, _say
    raise MissingCoreError(
        f"tabon needs {' and '.join(missing)}, which this Python lacks ({sys.executable}); add it with: "
        f"pip install {' '.join(missing)}"
    )
