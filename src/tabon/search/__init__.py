"""Other ways to search a bank, chosen by a URL.

Every one of them only pre-selects; the distances that count are worked out again
by `nearest.pair_distances`. So their bits are those of the exact search, but for
`index:`, which stores rows in float16 and says so in the signature.
"""

from tabon.search.load import SEARCHES, PreparedSearch, StoredSearch, open_search

__all__ = ["SEARCHES", "PreparedSearch", "StoredSearch", "open_search"]
