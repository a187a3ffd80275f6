"""What lies in a bank file, part by part, read only where it is asked for."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tabon.bank_files import BankFile
from tabon.reports import SECTIONS, Section
from tabon.sentence_sets import Ids, RaggedSets, SentenceTable

BANK_FORMAT = 3
ROWS_AT_ONCE = 8192
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class SetPairs:
    """The prior and current sentence sets of one section; empty where a report lacks it."""

    prior: RaggedSets
    current: RaggedSets

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.prior)

    def present(self) -> Ids:
        """Return the rows that have the section on both sides."""
        return np.flatnonzero((self.prior.lengths > 0) & (self.current.lengths > 0))

    def blocks(self) -> Iterator[tuple[Ids, "SetPairs"]]:
        """Yield the rows that have the section on both sides, with their sets, some thousands at a time."""
        for start in range(0, len(self), ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, len(self))
            part = SetPairs(*(_cut(sets, start, stop) for sets in (self.prior, self.current)))
            rows = part.present()
            yield start + rows, SetPairs(part.prior.take(rows), part.current.take(rows))


class Provenance(Sequence[Mapping[str, Any]]):
    """Where each transition came from: one line of JSON each, read when asked for."""

    def __init__(self, lines: NDArray[np.uint8], offsets: Ids) -> None:
        """Keep the bytes of all lines and where each begins."""
        self.lines, self.offsets = lines, offsets

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> "Provenance":
        """Write rows as lines."""
        lines = [provenance_line(row) for row in rows]
        offsets = np.cumsum([0, *map(len, lines)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(lines), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        """Count the transitions."""
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, row: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[Mapping[str, Any], ...]: ...
    def __getitem__(self, row: int | slice) -> Mapping[str, Any] | tuple[Mapping[str, Any], ...]:
        """Read one row, or some."""
        if isinstance(row, slice):
            return tuple(self[number] for number in range(*row.indices(len(self))))
        number = range(len(self))[row]
        found: Mapping[str, Any] = json.loads(
            self.lines[self.offsets[number] : self.offsets[number + 1]].tobytes()
        )
        return found

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Read all rows, one after another."""
        lines = self.lines.data
        for start in range(0, len(self), ROWS_AT_ONCE):
            for begin, end in pairwise(self.offsets[start : start + ROWS_AT_ONCE + 1].tolist()):
                yield json.loads(bytes(lines[begin:end]))

    def __eq__(self, other: object) -> bool:
        """Tell whether the lines are the same."""
        if not isinstance(other, Provenance):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.lines, other.lines)

    __hash__ = None  # type: ignore[assignment]


class Patients(AbstractSet[str]):
    """The patients whose transitions fill a bank, known by 8-byte hashes.

    A name that is not there is taken for one that is with a chance of one in
    2^64 for each patient. Their names are read from the provenance.
    """

    def __init__(self, hashes: Hashes, provenance: Sequence[Mapping[str, Any]]) -> None:
        """Keep the sorted hashes, and where the names are."""
        self._hashes, self._provenance = hashes, provenance

    def __contains__(self, name: object) -> bool:
        """Tell whether a patient is in the bank."""
        if not isinstance(name, str):
            return False
        wanted = name_hash(name)
        place = int(np.searchsorted(self._hashes, np.uint64(wanted)))
        return place < len(self._hashes) and int(self._hashes[place]) == wanted

    def __len__(self) -> int:
        """Count the patients."""
        return len(self._hashes)

    def __iter__(self) -> Iterator[str]:
        """Yield each name once, in the order of the bank: all rows are read."""
        names = (row.get("patient") for row in self._provenance)
        yield from dict.fromkeys(str(name) for name in names if name is not None)

    @classmethod
    def _from_iterable(cls, names: Iterable[str]) -> frozenset[str]:  # type: ignore[override]
        """Return what `&`, `|` and `-` give."""
        return frozenset(names)


def name_hash(name: str) -> int:
    """Return the hash by which an id or a patient is known.

    >>> name_hash("p1") == name_hash("p1"), name_hash("p1") == name_hash("p2")
    (True, False)
    """
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def provenance_line(row: Mapping[str, Any]) -> bytes:
    """Return one row of provenance as a line of JSON."""
    return json.dumps(row, sort_keys=True).encode() + b"\n"


def bank_arrays(
    table: SentenceTable, pairs: Mapping[Section, SetPairs], provenance: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a bank file."""
    kept = provenance if isinstance(provenance, Provenance) else Provenance.of(provenance)
    names = (row.get("patient") for row in kept)
    hashes = {name_hash(str(name)) for name in names if name is not None}
    yield from array_parts(table, pairs, kept, np.array(sorted(hashes), dtype=np.uint64))


def array_parts(
    table: SentenceTable, pairs: Mapping[Section, SetPairs], provenance: Provenance, patients: Hashes
) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a bank file whose patients are known; what has its type already is not copied."""
    yield "vectors", table.vectors.astype("<f4", copy=False)
    yield "sentences", np.frombuffer(json.dumps(list(table.sentences)).encode(), dtype=np.uint8)
    yield "provenance", provenance.lines
    yield "provenance.offsets", provenance.offsets.astype("<i8", copy=False)
    yield "patients", patients.astype("<u8", copy=False)
    for section, sides in pairs.items():
        for side, sets in (("prior", sides.prior), ("current", sides.current)):
            yield f"{section}.{side}.ids", sets.ids.astype("<i4", copy=False)
            yield f"{section}.{side}.offsets", sets.offsets.astype("<i8", copy=False)
            written = sets.ids if sets.written is None else sets.written
            yield f"{section}.{side}.written", written.astype("<i4", copy=False)


def table_from(file: BankFile) -> SentenceTable:
    """Read the sentence table."""
    return SentenceTable(tuple(json.loads(bytes(file.arrays["sentences"]))), file.arrays["vectors"])


def pairs_from(file: BankFile) -> dict[Section, SetPairs]:
    """Read the two ragged sides of each section; the numbers stay on disk."""
    return {
        section: SetPairs(
            *(
                RaggedSets(
                    *(file.arrays[f"{section}.{side}.{part}"] for part in ("ids", "offsets", "written"))
                )
                for side in ("prior", "current")
            )
        )
        for section in SECTIONS
    }


def _cut(sets: RaggedSets, start: int, stop: int) -> RaggedSets:
    """Return the sets from one row to another."""
    offsets = np.asarray(sets.offsets[start : stop + 1])
    first, last = int(offsets[0]), int(offsets[-1])
    written = None if sets.written is None else np.asarray(sets.written[first:last])
    return RaggedSets(np.asarray(sets.ids[first:last]), offsets - first, written)
