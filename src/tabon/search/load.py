"""From a URL to a search engine."""

from collections.abc import Mapping
from types import MappingProxyType

from tabon._internal.registry import lookup
from tabon.search.protocol import PreparedSearch

SEARCHES: Mapping[str, str] = MappingProxyType(  # scheme: what is made from the whole URL
    {
        "cuda": "tabon.search.cuda:CudaSearch",
        "index": "tabon.search.files:IndexFiles",
        "milvus": "tabon.search.milvus:MilvusSearch",
        "postgresql": "tabon.search.pgvector:PgvectorSearch",
    }
)


def open_search(url: str) -> PreparedSearch:
    """Return the engine that a URL names; nothing is asked of it yet."""
    search: PreparedSearch = lookup("search", SEARCHES, url.partition(":")[0])(url)
    return search
