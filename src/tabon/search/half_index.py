"""Top-k over distinct float16 rows that lie on disk.

The distances that count are worked out from the stored rows by
`nearest.pair_distances`, in its fixed order. Over all rows the result is exact
for the rows as they are stored; with cells it is exact over the cells looked at.
"""

from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.nearest import Neighbours, check_neighbours, pair_distances
from tabon.method.sentence_sets import Ids
from tabon.search import cell_scan as scanning
from tabon.search.cell_scan import HalfMatrix, Scan, faiss_scan, numpy_scan, only, runs_of, to_single
from tabon.search.codes import Codes, Sketch, within_reach, workers
from tabon.search.ivf import Cells

QUERIES_AT_ONCE = 64
LENGTH_TOLERANCE = 1e-2  # of the square of a row that was rounded to float16
CHANGED = (
    "rows of the index are not what was written; see which with `tabon bank verify BANK --search`, "
    "and make the index again"
)


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """Which bank rows share a distinct row: those of row i are rows[starts[i] : starts[i + 1]], ascending."""

    rows: Ids
    starts: Ids

    @classmethod
    def of(cls, group: Ids, distinct: int) -> "Copies":
        """Turn the distinct row of each bank row around."""
        rows = np.argsort(group, kind="stable")
        counts = np.bincount(group, minlength=distinct)
        return cls(rows, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]))

    def spread(
        self, query: Ids, distance: NDArray[np.float64], distinct: Ids
    ) -> tuple[Ids, NDArray[np.float64], Ids]:
        """Replace each distinct row by the bank rows that are equal to it."""
        starts = self.starts[distinct]
        counts = self.starts[distinct + 1] - starts
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        row = self.rows[np.repeat(starts, counts) + within]
        return np.repeat(query, counts), np.repeat(distance, counts), row


class HalfIndex:
    """Distinct rows of a bank in float16, searched where they lie."""

    def __init__(  # each is a part of the file
        self,
        rows: HalfMatrix,
        copies: Copies,
        *,
        sketch: Sketch | None = None,
        cells: Cells | None = None,
        codes: Codes | None = None,
        scan: Scan | None = None,
    ) -> None:
        """Take rows that are memory-mapped, or not; numpy has no use for sketches and codes."""
        self.vectors, self.cells, self._copies = rows, cells, copies
        self._scan: Scan = scan or (numpy_scan if find_spec("faiss") is None else faiss_scan)
        self.sketch, self.codes = (sketch, codes) if self._scan is faiss_scan else (None, None)

    def __len__(self) -> int:
        """Count the bank rows, copies included."""
        return len(self._copies.rows)

    def search(self, queries: Matrix, k: int) -> Neighbours:
        """Return the k nearest bank rows of each unit query; ties by row number.

        >>> rows = np.eye(4, dtype=np.float16)
        >>> index = HalfIndex(rows, Copies.of(np.arange(4), 4))
        >>> index.search(np.eye(4, dtype=np.float32)[:1], 2).distances.tolist()
        [[0.0, 0.5]]
        """
        check_neighbours(k, len(self))
        distances = np.empty((len(queries), k))
        rows = np.empty((len(queries), k), dtype=np.int64)
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            batch = slice(start, start + QUERIES_AT_ONCE)
            query, distinct = self._candidates(queries[batch], min(k, len(self.vectors)))
            again = to_single(self.vectors[distinct])
            if not (np.abs(np.einsum("nd,nd->n", again, again) - 1.0) < LENGTH_TOLERANCE).all():
                raise BadInputError(CHANGED)
            distance = pair_distances(queries[batch], again, query, np.arange(len(query)))
            query, distance, row = self._copies.spread(query, distance, distinct)
            order = np.lexsort((row, distance, query))
            first = np.searchsorted(query[order], np.arange(len(queries[batch]) + 1))
            if (np.diff(first) < k).any():  # a scan passes over rows that are no numbers
                raise BadInputError(CHANGED)
            best = order[first[:-1, None] + np.arange(k)]
            distances[batch], rows[batch] = distance[best], row[best]
        return Neighbours(distances, rows)

    def _candidates(self, queries: Matrix, k: int) -> tuple[Ids, Ids]:
        """Return (query, row) of all that can be among the k nearest."""
        if self.codes is not None and self.cells is not None:
            return self._by_codes(self.codes, self.cells, queries, k)
        length = scanning.RUN if self.sketch is None else scanning.SKETCH_RUN
        if self.cells is None:
            runs = list(runs_of(0, len(self.vectors), tuple(range(len(queries))), length))
        else:
            runs = self.cells.runs(queries, k, length)
        if self.sketch is None:
            return self._scan(queries, self.vectors, runs, k)
        return self.sketch.candidates(queries, self.vectors, runs, k)

    def _by_codes(self, codes: Codes, cells: Cells, queries: Matrix, k: int) -> tuple[Ids, Ids]:
        """Measure what codes say is near; a query to which they name too few rows looks at the rows."""
        looked = list(workers().map(partial(cells.near, k=k), queries))
        named = codes.candidates(queries, looked, k)
        near = list(workers().map(partial(within_reach, rows=self.vectors, k=k), queries, named))
        left = frozenset(number for number, rows in enumerate(named) if len(rows) < k)
        found = [(np.full(len(rows), one), rows) for one, rows in enumerate(near) if one not in left]
        if left:
            runs = only(cells.runs(queries, k, scanning.RUN), left)
            found.append(self._scan(queries, self.vectors, runs, k))
        return np.concatenate([one for one, _ in found]), np.concatenate([one for _, one in found])
