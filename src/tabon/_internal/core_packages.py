"""Refuses to import tabon without the packages that every part needs: in one sentence, not in a traceback.

A damaged or half-made environment is the first thing that a newcomer meets, and `tabon doctor`
cannot speak without them either.
"""

import sys
from importlib.util import find_spec
from types import TracebackType

CORE = ("click", "numpy", "scipy", "sentencex", "threadpoolctl")

missing = [name for name in CORE if find_spec(name) is None]
if missing:
    refusal = ImportError(
        f"tabon needs {' and '.join(missing)}, which this Python lacks ({sys.executable}); add it with: "
        f"pip install {' '.join(missing)}"
    )
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Show an error that nobody caught: the refusal without a traceback, every other as before."""
        if error is refusal:
            before(kind, error.with_traceback(None), None)
        else:
            before(kind, error, trace)

    sys.excepthook = show
    raise refusal
