"""Other ways to search a bank, chosen by a URL.

Every one of them only pre-selects; the distances that count are worked out again
by `nearest.pair_distances`. So their bits are those of the exact search, but for
`index:`, which stores rows in float16 and says so in the signature.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from tabon._internal.registry import lookup
from tabon.method.bank import SectionBank, TransitionBank
from tabon.method.sentence_sets import Progress
from tabon.text.reports import Section

SEARCHES: Mapping[str, str] = MappingProxyType(  # scheme: what is made from the whole URL
    {
        "cuda": "tabon.search.cuda:CudaSearch",
        "index": "tabon.search.index_files:IndexFiles",
        "milvus": "tabon.search.milvus:MilvusSearch",
        "postgresql": "tabon.search.pgvector:PgvectorSearch",
    }
)


class PreparedSearch(Protocol):
    """A search that is filled once from a bank and asked many times."""

    def prepare(
        self, bank: TransitionBank, distances: Sequence[str], *, progress: Progress | None = None
    ) -> None:
        """Put the directions of a bank, under these distances, where they are searched."""

    def section(self, bank: TransitionBank, section: Section, distance: str) -> SectionBank:
        """Return one section's bank under one distance (eq. 7), searched by this engine."""


@runtime_checkable
class StoredSearch(PreparedSearch, Protocol):
    """A search whose files can tell what they hold and be checked."""

    def describe(self, bank: TransitionBank) -> list[dict[str, Any]]:
        """Return what is stored for a bank: one object for each section and distance."""

    def verify(self, bank: TransitionBank) -> list[str]:
        """Check every byte that is stored for a bank, and say what was found whole."""


def open_search(url: str) -> PreparedSearch:
    """Return the engine that a URL names; nothing is asked of it yet."""
    search: PreparedSearch = lookup("search", SEARCHES, url.partition(":")[0])(url)
    return search
