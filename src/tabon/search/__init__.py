"""Other ways to search a bank, chosen by a URL: same neighbours, another engine.

Every one of them only pre-selects; the distances that count are worked out
again by `nearest.pair_distances`, so their bits are those of the exact search.
"""

from tabon.search.loading import SEARCHES, open_search
from tabon.search.protocol import PreparedSearch

__all__ = ["SEARCHES", "PreparedSearch", "open_search"]
