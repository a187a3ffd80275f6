"""`index:FOLDER`: a bank's directions in float16 on this machine's disk, in cells if there are many.

`index:FOLDER?ivf=always` stores cells however few rows there are, `?ivf=never`
stores none; a search with `?ivf=never` looks at all rows though there are cells.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from tabon._internal.registry import check_name
from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.bank import SectionBank, TransitionBank, bank_transitions
from tabon.method.bank_arrays import are_unit_rows
from tabon.method.bank_file import (
    Arrays,
    BankFile,
    Parts,
    Pattern,
    ascends,
    check_parts,
    is_count,
    is_number,
    misfit,
    read_bank_file,
)
from tabon.method.distances import DISTANCES, get_distance
from tabon.method.sentence_sets import Progress
from tabon.method.transitions import transitions
from tabon.search.cell_scan import to_single
from tabon.search.codes import Coder, Codes, Sketch, sketched
from tabon.search.half_index import LENGTH_TOLERANCE, Copies, HalfIndex
from tabon.search.index_build import INDEX, INDEX_FORMAT, PRECISION, Block, write_index
from tabon.search.ivf import ALL, Cells
from tabon.text.reports import SECTIONS, Section

MANY = 1_000_000  # distinct rows; past this they are stored in cells
LARGE = frozenset({"directions", "sketches", "codes"})  # summed by `tabon bank verify` only
IVF_FROM: Mapping[str, float] = MappingProxyType({"auto": MANY, "always": 0, "never": float("inf")})
AXES_TOLERANCE = 1e-3
STORED_TOLERANCE = 2.0**-9  # of a stored number: float16, made on another machine
COMPARED = 64  # directions that are compared with the bank's at opening
AT_ONCE = 4096

IVF: Pattern = {"cells": is_count, "margin": lambda value: is_number(value) and 0 <= value <= ALL}
FACTS: Pattern = {
    "dimension": is_count,
    "rows": is_count,
    "zero_rows": is_count,
    "distinct": is_count,
    "precision": lambda value: value == PRECISION,
    "ivf": lambda value: value is None or misfit(value, IVF, "ivf") is None,
}
PARTS: Parts = MappingProxyType(
    {
        "directions": ("<f2", ("distinct", "dimension")),
        "copies": ("<i4", ("rows",)),
        "starts": ("<i8", ("distinct + 1",)),
        "rows": ("<i4", ("rows",)),
        "zero_rows": ("<i4", ("zero_rows",)),
    }
)
CELL_PARTS: Parts = MappingProxyType(
    {
        "sketches": ("<f2", ("distinct", "axes + 1")),
        "basis": ("<f4", ("dimension", "axes")),
        "means": ("<f4", ("cells", "dimension")),
        "cells": ("<i8", ("cells + 1",)),
    }
)
CODE_PARTS: Parts = MappingProxyType(
    {
        "codes": ("|u1", ("distinct", "bytes of a code")),
        "code_basis": ("<f4", ("dimension", "axes of a code")),
        "code_points": ("<f4", ("pairs of axes", 16, 2)),
    }
)


class IndexFiles:
    """A folder with one index file for each section and distance."""

    def __init__(self, url: str) -> None:
        """Read the folder and the settings from a URL; nothing is opened yet."""
        folder, _, settings = url.partition(":")[2].partition("?")
        given = dict(parse_qsl(settings, keep_blank_values=True))
        self._ivf = given.pop("ivf", "auto")
        if not folder:
            raise BadInputError(f"{url!r} names no folder; write index:FOLDER")
        for name in given:
            check_name("setting of an index", ("ivf",), name)
        check_name("value of ivf", tuple(IVF_FROM), self._ivf)
        self.folder = Path(folder)

    def prepare(
        self, bank: TransitionBank, distances: Sequence[str], *, progress: Progress | None = None
    ) -> None:
        """Write the directions of a bank under these distances; each file appears whole or not at all."""
        for name in distances:
            get_distance(name)  # an unknown one is refused before anything is written
        total, done = len(distances) * len(SECTIONS) * len(bank), 0
        for distance in distances:
            for section in SECTIONS:
                write_index(
                    self._path(section, distance),
                    direction_blocks(bank, section, distance),
                    dimension=bank.table.vectors.shape[1],
                    facts={"bank": bank.sha256, "section": section, "distance": distance},
                    ivf_from=IVF_FROM[self._ivf],
                )
                done += len(bank)
                if progress is not None:
                    progress(done, total)

    def section(self, bank: TransitionBank, section: Section, distance: str) -> SectionBank:
        """Return one section's bank under one distance (eq. 7), searched in its file."""
        file = self._open(bank, section, distance)
        index = index_from(file, use_cells=self._ivf != "never")
        if self._ivf == "always" and index is not None and index.cells is None:
            raise BadInputError(
                f"{self._path(section, distance)} has no cells; leave ?ivf=always out, or make it again"
            )
        search = str(file.facts["precision"])
        if index is not None and index.cells is not None:
            search += f"-ivf{index.cells.margin}/{len(index.cells.means)}"
            search += "" if index.codes is None else "-codes"
        return SectionBank(index, file.arrays["rows"], file.arrays["zero_rows"], search)

    def describe(self, bank: TransitionBank) -> list[dict[str, Any]]:
        """Return what each file of the folder says of itself."""
        return [dict(file.facts) for _, file in self._files(bank, verify=False)]

    def verify(self, bank: TransitionBank) -> list[str]:
        """Check every byte of every file, and return what was found whole."""
        return [
            f"{path}: whole, {file.facts['distinct']} distinct directions, sha256 {file.sha256}"
            for path, file in self._files(bank, verify=True)
        ]

    def _path(self, section: str, distance: str) -> Path:
        """Return the file of one section and distance."""
        return self.folder / f"{section}.{distance}.tabonix"

    def _files(self, bank: TransitionBank, *, verify: bool) -> Iterator[tuple[Path, BankFile]]:
        """Yield both sections' files of the distances that are there."""
        there = [
            distance
            for distance in DISTANCES
            if any(self._path(section, distance).exists() for section in SECTIONS)
        ]
        if not there:
            raise BadInputError(f"there is no index in {self.folder}; make one with `tabon bank index`")
        places = [(section, distance) for distance in there for section in SECTIONS]
        return ((self._path(*place), self._open(bank, *place, verify=verify)) for place in places)

    def _open(self, bank: TransitionBank, section: str, distance: str, *, verify: bool = False) -> BankFile:
        """Open a file; one of another bank, or under another name, is refused."""
        path = self._path(section, distance)
        file = read_index(path, verify=verify, in_memory=bank.in_memory)
        here = {"bank": bank.sha256, "section": section, "distance": distance}
        for name, value in here.items():
            if (found := file.facts.get(name)) != value:
                raise BadInputError(
                    f"{path} was made for {name} {str(found)[:12]}, here it is {value[:12]}; "
                    "make it again with `tabon bank index`"
                )
        check_against(file, bank, everything=verify)
        return file


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
    """Return what searches a file's rows; None if no row has a direction."""
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


def direction_blocks(bank: TransitionBank, section: Section, distance: str) -> Iterator[Block]:
    """Yield the transitions of a section, some thousands at a time."""
    measure = get_distance(distance)
    for rows, part in bank.pairs[section].blocks():
        [moves] = transitions([measure], bank.table.vectors, prior=part.prior, current=part.current)
        yield Block(rows, moves)


def check_index(file: BankFile) -> None:
    """Refuse a file that cannot be an index, whatever its sums say; scans miss rows not of length 1."""
    if (place := misfit(file.facts, FACTS, "facts")) is not None:
        raise INDEX.damaged(file.place, f"its {place} is not what it should be")
    ivf = file.facts["ivf"]
    coded = ivf is not None and bool(ivf.get("codes"))
    parts = {**PARTS, **(CELL_PARTS if ivf is not None else {}), **(CODE_PARTS if coded else {})}
    sizes = check_parts(file, parts, INDEX)
    faults = _row_faults(file.arrays, sizes, file.facts)
    if ivf is not None:
        faults = chain(faults, _cell_faults(file.arrays, sizes, ivf))
    if coded:
        faults = chain(faults, _code_faults(file.arrays, sizes))
    if (fault := next(faults, None)) is not None:
        raise INDEX.damaged(file.place, fault)


def check_against(file: BankFile, bank: TransitionBank, *, everything: bool) -> None:
    """Refuse an index that does not say what its bank says: in some rows, or in all."""
    section, distance, arrays = file.facts["section"], file.facts["distance"], file.arrays
    present = bank.pairs[section].present()
    if not np.array_equal(np.sort(np.concatenate([arrays["rows"], arrays["zero_rows"]])), present):
        raise INDEX.damaged(file.place, "its rows are not those of the bank")
    count = len(arrays["directions"])
    numbers = (
        np.arange(count) if everything else np.unique(np.linspace(0, count - 1, COMPARED, dtype=np.int64))
    )
    for start in range(0, len(numbers) if count else 0, AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        rows = arrays["rows"][arrays["copies"][arrays["starts"][some]]].astype(np.int64)
        stored = to_single(arrays["directions"][some])
        same = _near(stored, bank_transitions(bank, section, distance, rows).directions)
        if "sketches" in arrays:
            same = same and _near(to_single(arrays["sketches"][some]), sketched(stored, arrays["basis"]))
        if not same:
            raise INDEX.damaged(file.place, "its directions are not those of the bank")


def _near(one: Matrix, other: Matrix) -> bool:
    """Tell whether two arrays are the same but for rounding."""
    return one.shape == other.shape and bool((np.abs(one - other) <= STORED_TOLERANCE).all())


def _row_faults(arrays: Arrays, sizes: Mapping[str, int], facts: Mapping[str, Any]) -> Iterator[str]:
    """Say what is wrong with the directions, and which rows are copies of each."""
    if any(facts[name] != sizes[name] for name in ("dimension", "rows", "zero_rows", "distinct")):
        yield "its facts count other rows than it has"
    starts, copies, rows = arrays["starts"], arrays["copies"], sizes["rows"]
    each_has_some = ascends(starts, rows) and bool((starts[1:] > starts[:-1]).all())
    are_rows = copies.min(initial=0) >= 0 and copies.max(initial=-1) < rows
    if not (each_has_some and are_rows and (np.bincount(copies, minlength=rows) == 1).all()):
        yield "its copies are not its rows"
    if not are_unit_rows(arrays["directions"], LENGTH_TOLERANCE, to_single):
        yield "its directions are not all of length 1"


def _cell_faults(arrays: Arrays, sizes: Mapping[str, int], ivf: Mapping[str, Any]) -> Iterator[str]:
    """Say what is wrong with the cells and the sketches."""
    if not (sizes["cells"] == ivf["cells"] > 0 and ascends(arrays["cells"], sizes["distinct"])):
        yield "its cells do not hold its rows"
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.einsum("cd,cd->c", arrays["means"], arrays["means"])
    if not (lengths <= 1 + LENGTH_TOLERANCE).all():
        yield "its means are not those of unit rows"
    if not _are_axes(arrays["basis"]):
        yield "its axes are not at right angles"
    if not are_unit_rows(arrays["sketches"], LENGTH_TOLERANCE, to_single):
        yield "its sketches are not all of length 1"


def _code_faults(arrays: Arrays, sizes: Mapping[str, int]) -> Iterator[str]:
    """Say what is wrong with the codes."""
    if not sizes["axes of a code"] == 4 * sizes["bytes of a code"] == 2 * sizes["pairs of axes"] > 0:
        yield "its codes have another size than their axes"
    if not _are_axes(arrays["code_basis"]):
        yield "the axes of its codes are not at right angles"
    if not np.isfinite(arrays["code_points"]).all():
        yield "the points of its codes are not finite"


def _are_axes(basis: Matrix) -> bool:
    """Tell whether the columns are orthonormal."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.abs(basis.T @ basis - np.eye(basis.shape[1])) <= AXES_TOLERANCE).all())
