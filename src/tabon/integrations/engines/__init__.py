"""Where the work is done, chosen by a URL: on this machine, or on a Ray cluster. Same bytes either way.

A row of an encoder depends on its sentence alone, and the answer to a query on
that query alone. So work can be cut into pieces, done anywhere and in any
order, and done again where a machine was lost.
"""

from tabon.integrations.engines.engine import ENGINES, Engine, SpreadEncoder, open_engine
from tabon.integrations.engines.selection_parts import select_parts

__all__ = [
    "ENGINES",
    "Engine",
    "SpreadEncoder",
    "open_engine",
    "select_parts",
]
