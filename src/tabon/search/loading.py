"""From a URL to a search engine."""

from collections.abc import Mapping
from types import MappingProxyType

from tabon._registry import lookup
from tabon.search.protocol import PreparedSearch

SEARCHES: Mapping[str, str] = MappingProxyType({})  # scheme -> module:class, made from the whole URL


def open_search(url: str) -> PreparedSearch:
    """Return the engine that a URL names; nothing is asked of it yet."""
    search: PreparedSearch = lookup("search", SEARCHES, url.partition(":")[0])(url)
    return search
