"""`index:FOLDER`: a bank's directions in float16 on this machine's disk, in cells where there are many.

`index:FOLDER?ivf=always` stores cells however few rows there are, `?ivf=never`
stores none; a search with `?ivf=never` looks at all rows though there are cells.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from tabon._internal.registry import check_name
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.method.bank_file import BankFile, read_bank_file
from tabon.method.distances import DISTANCES, get_distance
from tabon.method.nearest import SectionBank
from tabon.method.sentence_sets import Progress
from tabon.method.transitions import transitions
from tabon.search.codes import Coder, Codes
from tabon.search.half_index import HalfIndex
from tabon.search.index_build import Block, write_index
from tabon.search.index_checks import INDEX, INDEX_FORMAT, check_against, check_index
from tabon.search.ivf import Cells
from tabon.search.repeats import Copies
from tabon.search.sketch import Sketch
from tabon.text.reports import SECTIONS, Section

MANY = 1_000_000  # distinct rows; past this they are stored in cells
LARGE = frozenset({"directions", "sketches", "codes"})  # summed by `tabon bank verify` only
IVF_FROM: Mapping[str, float] = MappingProxyType({"auto": MANY, "always": 0, "never": float("inf")})


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


def direction_blocks(bank: TransitionBank, section: Section, distance: str) -> Iterator[Block]:
    """Yield the transitions of a section, some thousands at a time."""
    measure = get_distance(distance)
    for rows, part in bank.pairs[section].blocks():
        [moves] = transitions([measure], bank.table.vectors, prior=part.prior, current=part.current)
        yield Block(rows, moves)
