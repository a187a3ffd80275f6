"""The files of an index: one for each section and distance, whole or refused.

They have the layout of a bank file. Directions come in blocks and are spooled
to disk; in memory stay some numbers for each row (hashes, row numbers, cells),
a sample for the cells, and a block.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.bank_build import OpenSpool, Spool, spools_beside
from tabon.method.bank_file import ArrayWriter, BankFile, array_writer, read_bank_file
from tabon.method.sentence_sets import Ids, Progress
from tabon.method.transitions import Transitions
from tabon.search.cell_scan import HalfMatrix, to_single
from tabon.search.codes import KEPT, Coder, Codes, can_code, trained_coder
from tabon.search.half_index import Copies, HalfIndex
from tabon.search.index_checks import INDEX, PRECISION, check_index
from tabon.search.ivf import (
    ALL,
    NEIGHBOURS,
    SEED,
    Cells,
    blocks_of,
    cells_of,
    enough_margin,
    number_of_cells,
    sampled_rows,
    trained_centroids,
)
from tabon.search.repeats import SeenRows
from tabon.search.sketch import Sketch, principal_basis, sketched

INDEX_FORMAT = 2
LARGE = frozenset({"directions", "sketches", "codes"})  # summed by `tabon bank verify` only
AXES_SAMPLE = 32_768  # rows that the axes of sketches and codes are taken from
PROBED = 16  # rows of a block whose distances to the block are compared before and after rounding


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some transitions of a section, in the order of the bank."""

    rows: Ids  # of the bank
    moves: Transitions


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """In what order the distinct rows are stored, and where the cells begin."""

    order: Ids | None  # None: as they came
    sketch: Sketch | None  # in the order in which they came
    cells: Cells | None
    codes: Codes | None  # in the order in which they came
    facts: Mapping[str, Any] | None


class _Collected:
    """Directions as they stream by: distinct ones in float16, and which bank rows have them."""

    def __init__(self, open_spool: OpenSpool, dimension: int) -> None:
        """Begin with nothing."""
        self._dimension, self.rounding = dimension, 0.0
        self._matrix, self._seen = Spool(open_spool(), "<f2"), SeenRows()
        self._group, self._rows, self._zero = (Spool(open_spool(), "<i4") for _ in range(3))

    def add(self, block: Block) -> None:
        """Take one block."""
        moving = ~block.moves.zero
        directions = block.moves.directions[moving]
        half = directions.astype(np.float16)
        self._rows.extend(block.rows[moving])
        self._zero.extend(block.rows[~moving])
        group, new = self._seen.numbers_of(half, self.matrix())
        self._group.extend(group)
        self._matrix.extend(half[new])
        self.rounding = max(self.rounding, _rounding(directions, half))

    def matrix(self) -> HalfMatrix:
        """Return the distinct rows so far."""
        return self._matrix.array().reshape(-1, self._dimension)

    def maps(self) -> tuple[Ids, Ids, Ids]:
        """Return the bank row and the distinct row of each row with a direction, and the zero rows."""
        return self._rows.array(), self._group.array(), self._zero.array()


def _rounding(directions: Matrix, half: HalfMatrix) -> float:
    """Return the largest change of a distance between these rows by storing one side in float16."""
    if not len(directions):
        return 0.0
    change = (to_single(half) - directions) @ directions[:: max(1, len(directions) // PROBED)].T
    return float(0.5 * np.abs(change).max())


def write_index(  # a file has these parts
    path: Path,
    blocks: Iterable[Block],
    *,
    dimension: int,
    facts: Mapping[str, Any],
    ivf_from: float,
    progress: Progress | None = None,
) -> None:
    """Write the index of one section under one distance, in one step.

    Args:
        path: the file; whatever was there stays until the new one is whole.
        blocks: the transitions, in the order of the bank.
        dimension: of the directions.
        facts: what the header says beside the counts: bank, section, distance.
        ivf_from: with more distinct rows than this, they are stored in cells.
        progress: told of the rows that have found their cell.
    """
    with spools_beside(path) as open_spool, array_writer(path, INDEX) as out:
        kept = _Collected(open_spool, dimension)
        for block in blocks:
            kept.add(block)
        matrix = kept.matrix()
        layout = (
            _laid_out(matrix, open_spool, progress)
            if len(matrix) > ivf_from
            else _Layout(None, None, None, None, None)
        )
        counts = _write_blobs(out, kept, layout)
        measured = {"precision": PRECISION, "rounding": kept.rounding, "ivf": layout.facts}
        out.finish({"format": INDEX_FORMAT, "dimension": dimension, **facts, **counts, **measured})


def _thinned(matrix: HalfMatrix, sample: Ids) -> Matrix:
    """Return some rows of a sample: enough for axes and points."""
    return to_single(matrix[sample[:: max(1, len(sample) // AXES_SAMPLE)]])


def _sketched(matrix: HalfMatrix, sample: Ids, open_spool: OpenSpool) -> Sketch:
    """Return the sketches of all rows, along the axes of a sample of them."""
    basis = principal_basis(_thinned(matrix, sample))
    rows = Spool(open_spool(), "<f2")
    for block in blocks_of(len(matrix)):
        rows.extend(sketched(to_single(matrix[block]), basis).astype(np.float16))
    return Sketch(basis, rows.array().reshape(len(matrix), -1))


def _coded(matrix: HalfMatrix, sample: Ids, open_spool: OpenSpool, cells: Cells, order: Ids) -> Codes | None:
    """Return the codes of all rows, in their cells; None where they cannot be made."""
    rows = _thinned(matrix, sample)
    if not can_code(*rows.shape):
        return None
    coder, codes = trained_coder(rows), Spool(open_spool(), "|u1")
    for block in blocks_of(len(matrix)):
        codes.extend(coder.codes(to_single(matrix[block])))
    return Codes(coder, codes.array().reshape(len(matrix), -1), cells.starts, order)


def _laid_out(matrix: HalfMatrix, open_spool: OpenSpool, progress: Progress | None) -> _Layout:
    """Put rows that lie near each other together, and measure how many cells a query needs."""
    number = number_of_cells(len(matrix))
    train, held = sampled_rows(len(matrix), number)
    number = min(number, len(train))
    sketch = _sketched(matrix, train, open_spool)
    centroids = trained_centroids(to_single(matrix[train]), number)
    cell, means = cells_of(matrix, centroids, progress)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.bincount(cell, minlength=number))])
    cells = Cells(means, starts, ALL)
    queries = to_single(matrix[held])
    others = _others(matrix, sketch, queries, held)
    measured = enough_margin(cells, queries, cell[others].astype(np.int64))
    cells, order = replace(cells, margin=measured.margin), np.argsort(cell, kind="stable")
    codes = _coded(matrix, train, open_spool, cells, order)
    facts = {
        "cells": number,
        "neighbours": NEIGHBOURS,
        "held_out": "bank rows",
        "seed": SEED,
        **asdict(measured),
        "codes": None if codes is None else {"kept": KEPT, "recall": _found(codes, cells, queries, others)},
    }
    return _Layout(order, sketch, cells, codes, facts)


def _found(codes: Codes, cells: Cells, queries: Matrix, others: Ids) -> float:
    """Return what share of the true neighbours codes find in the cells that are looked at."""
    if not others.size:
        return 1.0
    named = codes.candidates_in_parts(queries, cells.nearest(queries, NEIGHBOURS), NEIGHBOURS)
    there = [np.isin(own, rows) for own, rows in zip(others, named, strict=True)]
    return float(np.mean(there))


def _others(matrix: HalfMatrix, sketch: Sketch, queries: Matrix, held: Ids) -> Ids:
    """Return the true nearest rows of held-out rows, themselves left out."""
    k = min(NEIGHBOURS + 1, len(matrix))
    if k == 1 or not len(held):
        return np.zeros((len(held), 0), dtype=np.int64)
    each = np.arange(len(matrix) + 1)
    whole = HalfIndex(matrix, Copies(each[:-1], each), sketch=sketch)
    found = whole.search(queries, k).rows
    own = found == held[:, None]
    own[~own.any(axis=1), -1] = True  # rows that are even nearer, by rounding: leave out the last instead
    others: Ids = found[~own].reshape(len(held), k - 1)
    return others


def _write_blobs(out: ArrayWriter, kept: _Collected, layout: _Layout) -> dict[str, int]:
    """Write all arrays and return their counts."""
    matrix, (rows, group, zero) = kept.matrix(), kept.maps()
    if layout.order is not None:
        place = np.empty(len(matrix), dtype=np.int64)
        place[layout.order] = np.arange(len(matrix))
        group = place[group]
    copies = Copies.of(group, len(matrix))
    out.add("directions", _stored(matrix, layout.order))
    out.add("copies", [copies.rows.astype("<i4")])
    out.add("starts", [copies.starts.astype("<i8")])
    out.add("rows", [rows])
    out.add("zero_rows", [zero])
    if layout.sketch is not None and layout.cells is not None:
        out.add("sketches", _stored(layout.sketch.rows, layout.order))
        out.add("basis", [layout.sketch.basis.astype("<f4")])
        out.add("means", [layout.cells.means.astype("<f4")])
        out.add("cells", [layout.cells.starts.astype("<i8")])
    if layout.codes is not None:
        out.add("codes", _stored(layout.codes.codes, layout.order))
        out.add("code_basis", [layout.codes.coder.basis.astype("<f4")])
        out.add("code_points", [layout.codes.coder.points.astype("<f4")])
    return {"rows": len(rows), "zero_rows": len(zero), "distinct": len(matrix)}


def _stored(matrix: NDArray[Any], order: Ids | None) -> Iterator[NDArray[Any]]:
    """Yield the distinct rows in the order in which they are stored."""
    yield matrix[:0]
    for block in blocks_of(len(matrix)):
        yield matrix[block] if order is None else matrix[order[block]]


def read_index(path: Path, *, verify: bool, in_memory: bool = False) -> BankFile:
    """Open an index file; with `verify` the sums of its large parts are checked too."""
    file = read_bank_file(path, kind=INDEX, unchecked=() if verify else LARGE, in_memory=in_memory)
    if file.facts.get("format") != INDEX_FORMAT:
        raise BadInputError(
            f"{path} has index format {str(file.facts.get('format'))[:20]}, this tabon reads {INDEX_FORMAT}; "
            "make it again with `tabon bank index`"
        )
    check_index(file)
    return file


def index_from(file: BankFile, *, use_cells: bool) -> HalfIndex | None:
    """Return what searches a file's rows; None where no row has a direction."""
    arrays, ivf = file.arrays, file.facts["ivf"]
    if not len(arrays["directions"]):
        return None
    copies = Copies(arrays["copies"], arrays["starts"])
    if not ivf:
        return HalfIndex(arrays["directions"], copies)
    sketch = Sketch(arrays["basis"], arrays["sketches"])
    if not use_cells:
        return HalfIndex(arrays["directions"], copies, sketch=sketch)
    cells = Cells(np.array(arrays["means"]), arrays["cells"], ivf["margin"])  # in memory: all are read
    codes = None
    if ivf.get("codes"):
        coder = Coder(arrays["code_basis"], arrays["code_points"])
        codes = Codes(coder, arrays["codes"], cells.starts)
    return HalfIndex(arrays["directions"], copies, sketch=sketch, cells=cells, codes=codes)
