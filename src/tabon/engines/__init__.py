"""Where the work is done, chosen by a URL: on this machine, or on a Ray cluster. Same bytes either way.

A row of an encoder depends on its sentence alone, and the answer to a query on
that query alone. So work can be cut into pieces, done anywhere and in any
order, and done again where a machine was lost.
"""

from tabon.engines.encoding import SpreadEncoder
from tabon.engines.loading import ENGINES, open_engine
from tabon.engines.protocol import Engine
from tabon.engines.selecting import SelectionSettings, make_chooser, make_selector
from tabon.engines.selection_parts import select_parts

__all__ = [
    "ENGINES",
    "Engine",
    "SelectionSettings",
    "SpreadEncoder",
    "make_chooser",
    "make_selector",
    "open_engine",
    "select_parts",
]
