"""Top-k over distinct float16 rows that lie on disk.

The distances that count are worked out from the stored rows by
`nearest.pair_distances`, in its fixed order. Over all rows the result is exact
for the rows as they are stored; with cells it is exact over the cells looked at.
"""

from functools import partial

import numpy as np

from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.nearest import Neighbours, check_neighbours, pair_distances
from tabon.method.sentence_sets import Ids
from tabon.search import cell_scan as scanning
from tabon.search.cell_scan import HalfMatrix, Scan, best_scan, faiss_scan, only, runs_of, to_single
from tabon.search.codes import Codes, workers
from tabon.search.index_checks import LENGTH_TOLERANCE
from tabon.search.ivf import Cells
from tabon.search.repeats import Copies
from tabon.search.sketch import Sketch, within_reach

QUERIES_AT_ONCE = 64
CHANGED = (
    "rows of the index are not what was written; see which with `tabon bank verify BANK --search`, "
    "and make the index again"
)


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
        self._scan = best_scan() if scan is None else scan
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
