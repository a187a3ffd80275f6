"""Writes the index of one section under one distance, whole or not at all.

It has the layout of a bank file. Directions come in blocks and are spooled to disk; equal ones are
stored once. In memory stay a few numbers per row, a sample for the cells, and a block.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.bank_build import OpenSpool, Spool, spools_beside
from tabon.method.bank_file import ArrayWriter, FileKind, array_writer
from tabon.method.sentence_sets import Ids
from tabon.method.transitions import Transitions
from tabon.search.cell_scan import HalfMatrix, to_single
from tabon.search.codes import KEPT, Codes, Sketch, can_code, principal_basis, sketched, trained_coder
from tabon.search.half_index import Copies, HalfIndex
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

INDEX_FORMAT = 2
PRECISION = "float16"
AXES_SAMPLE = 32_768  # rows that the axes of sketches and codes are taken from
PROBED = 16  # rows of a block whose distances to the block are compared before and after rounding
RECENT = 1 << 19  # hashes that are put in order with the others at once
HASH_SEED = 7

Hashes = NDArray[np.uint64]

INDEX = FileKind(
    magic=b"TABONIX1",
    missing=lambda path: BadInputError(f"there is no index at {path}; make one with `tabon bank index`"),
    damaged=lambda path, what: BadInputError(
        f"{path} is not a whole tabon index: {what}; make it again with `tabon bank index`"
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some transitions of a section, in the order of the bank."""

    rows: Ids  # of the bank
    moves: Transitions


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """In what order the distinct rows are stored, and where the cells begin."""

    order: Ids | None = None  # None: as they came
    sketch: Sketch | None = None  # in the order in which they came
    cells: Cells | None = None
    codes: Codes | None = None  # in the order in which they came
    facts: Mapping[str, Any] | None = None


class _Table:
    """Sorted hashes and the number of the row that has each."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.hashes, self.numbers = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32)

    def find(self, hashes: Hashes) -> NDArray[np.int32]:
        """Return the number of each hash; -1 if it is not there."""
        if not len(self.hashes):
            return np.full(len(hashes), -1, dtype=np.int32)
        place = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[place] == hashes, self.numbers[place], np.int32(-1))

    def insert(self, hashes: Hashes, numbers: NDArray[np.int32]) -> None:
        """Add hashes that are not there, in ascending order."""
        places = np.searchsorted(self.hashes, hashes)
        self.hashes = np.insert(self.hashes, places, hashes)
        self.numbers = np.insert(self.numbers, places, numbers)


class SeenRows:
    """Numbers of distinct rows in the order in which they came: found by hashes, confirmed by their bytes."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._count, self._old, self._recent = 0, _Table(), _Table()

    def numbers_of(self, block: HalfMatrix, stored: HalfMatrix) -> tuple[NDArray[np.int32], Ids]:
        """Return the number of each row of a block, and which rows of it are new, in order.

        `stored` holds all distinct rows before this block.
        """
        hashes = row_hashes(block)
        distinct, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        known = np.maximum(self._old.find(distinct), self._recent.find(distinct))
        number = np.where(known[inverse] >= 0, known[inverse], -1)
        twin = stored[number[number >= 0]] if len(stored) else block[:0]
        same = np.zeros(len(block), dtype=bool)
        same[number >= 0] = _equal(block[number >= 0], twin)
        own = (number < 0) & _equal(block, block[first[inverse]])
        new = np.flatnonzero(~same & ~(own & (first[inverse] != np.arange(len(block)))))
        fresh = np.full(len(block), -1, dtype=np.int32)
        fresh[new] = self._count + np.arange(len(new), dtype=np.int32)
        number = np.where(same, number, np.where(own, fresh[first[inverse]], fresh)).astype(np.int32)
        self._count += len(new)
        self._recent.insert(distinct[known < 0], fresh[first[known < 0]])
        if len(self._recent.hashes) > RECENT:
            self._old.insert(self._recent.hashes, self._recent.numbers)
            self._recent = _Table()
        return number, new


def row_hashes(rows: HalfMatrix) -> Hashes:
    """Return a 64-bit hash of each row's bytes."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 4) * 4), dtype=np.float16)
    padded[:, : rows.shape[1]] = rows
    words = padded.view(np.uint64)
    words ^= words >> np.uint64(29)
    factors = np.random.default_rng(HASH_SEED).integers(
        1, 2**64, size=words.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    words *= factors
    words ^= words >> np.uint64(32)
    words *= factors[::-1]
    found: Hashes = words.sum(axis=1, dtype=np.uint64)
    return found


def _equal(rows: HalfMatrix, others: HalfMatrix) -> NDArray[np.bool_]:
    """Tell which rows have the same bytes."""
    same: NDArray[np.bool_] = (rows.view(np.uint16) == others.view(np.uint16)).all(axis=1)
    return same


def write_index(  # a file has these parts
    path: Path,
    blocks: Iterable[Block],
    *,
    dimension: int,
    facts: Mapping[str, Any],
    ivf_from: float,
) -> None:
    """Write the index of one section under one distance, in one step.

    Args:
        path: the file; whatever was there stays until the new one is whole.
        blocks: the transitions, in the order of the bank.
        dimension: of the directions.
        facts: what the header says beside the counts: bank, section, distance.
        ivf_from: with more distinct rows than this, they are stored in cells.
    """
    with spools_beside(path) as open_spool, array_writer(path, INDEX) as out:
        rows, group, zero_rows = (Spool(open_spool(), "<i4") for _ in range(3))
        spooled, seen, rounding = Spool(open_spool(), "<f2"), SeenRows(), 0.0
        for block in blocks:
            directions = block.moves.directions[~block.moves.zero]
            half = directions.astype(np.float16)
            rows.extend(block.rows[~block.moves.zero])
            zero_rows.extend(block.rows[block.moves.zero])
            numbers, new = seen.numbers_of(half, spooled.array().reshape(-1, dimension))
            group.extend(numbers)
            spooled.extend(half[new])
            if len(directions):
                change = (to_single(half) - directions) @ directions[:: max(1, len(directions) // PROBED)].T
                rounding = max(rounding, float(0.5 * np.abs(change).max()))
        matrix = spooled.array().reshape(-1, dimension)
        layout = _laid_out(matrix, open_spool) if len(matrix) > ivf_from else _Layout()
        by_kind = {"rows": rows.array(), "zero_rows": zero_rows.array()}
        _write_parts(out, matrix, group.array(), by_kind, layout)
        counts = {name: len(numbers) for name, numbers in by_kind.items()} | {"distinct": len(matrix)}
        measured = {"precision": PRECISION, "rounding": rounding, "ivf": layout.facts}
        out.finish({"format": INDEX_FORMAT, "dimension": dimension, **facts, **counts, **measured})


def _laid_out(matrix: HalfMatrix, open_spool: OpenSpool) -> _Layout:
    """Put rows that lie near each other together, and measure how many cells a query needs."""
    number = number_of_cells(len(matrix))
    train, held = sampled_rows(len(matrix), number)
    number = min(number, len(train))
    few = to_single(matrix[train[:: max(1, len(train) // AXES_SAMPLE)]])
    basis, coder = principal_basis(few), trained_coder(few) if can_code(*few.shape) else None
    del few  # 50 MB of 384 columns, not needed while cells are made
    sketch = Sketch(basis, _of_rows(matrix, lambda rows: sketched(rows, basis), Spool(open_spool(), "<f2")))
    cell, means = cells_of(matrix, trained_centroids(to_single(matrix[train]), number))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.bincount(cell, minlength=number))])
    queries = to_single(matrix[held])
    others = _others(matrix, sketch, queries, held)
    measured = enough_margin(Cells(means, starts, ALL), queries, cell[others].astype(np.int64))
    cells, order = Cells(means, starts, measured.margin), np.argsort(cell, kind="stable")
    codes, found = None, None
    if coder is not None:
        codes = Codes(coder, _of_rows(matrix, coder.codes, Spool(open_spool(), "|u1")), starts, order)
        named = codes.candidates_in_parts(queries, cells.nearest(queries, NEIGHBOURS), NEIGHBOURS)
        there = [np.isin(own, rows) for own, rows in zip(others, named, strict=True)]
        found = {"kept": KEPT, "recall": float(np.mean(there))}
    facts = {"cells": number, "neighbours": NEIGHBOURS, "held_out": "bank rows", "seed": SEED}
    return _Layout(order, sketch, cells, codes, {**facts, **asdict(measured), "codes": found})


def _of_rows(matrix: HalfMatrix, make: Callable[[Matrix], NDArray[Any]], spool: Spool) -> NDArray[Any]:
    """Return what is made of each row, spooled to disk."""
    for block in blocks_of(len(matrix)):
        spool.extend(make(to_single(matrix[block])))
    return spool.array().reshape(len(matrix), -1)


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


def _write_parts(
    out: ArrayWriter, matrix: HalfMatrix, group: Ids, rows: Mapping[str, Ids], layout: _Layout
) -> None:
    """Write all arrays: distinct rows, which of them each bank row has, and the bank rows by kind."""
    if layout.order is not None:
        place = np.empty(len(matrix), dtype=np.int64)
        place[layout.order] = np.arange(len(matrix))
        group = place[group]
    copies = Copies.of(group, len(matrix))
    out.add("directions", _stored(matrix, layout.order))
    out.add("copies", [copies.rows.astype("<i4")])
    out.add("starts", [copies.starts.astype("<i8")])
    for name, numbers in rows.items():
        out.add(name, [numbers])
    if layout.sketch is not None and layout.cells is not None:
        out.add("sketches", _stored(layout.sketch.rows, layout.order))
        out.add("basis", [layout.sketch.basis.astype("<f4")])
        out.add("means", [layout.cells.means.astype("<f4")])
        out.add("cells", [layout.cells.starts.astype("<i8")])
    if layout.codes is not None:
        out.add("codes", _stored(layout.codes.codes, layout.order))
        out.add("code_basis", [layout.codes.coder.basis.astype("<f4")])
        out.add("code_points", [layout.codes.coder.points.astype("<f4")])


def _stored(matrix: NDArray[Any], order: Ids | None) -> Iterator[NDArray[Any]]:
    """Yield the distinct rows in the order in which they are stored."""
    yield matrix[:0]
    for block in blocks_of(len(matrix)):
        yield matrix[block] if order is None else matrix[order[block]]
