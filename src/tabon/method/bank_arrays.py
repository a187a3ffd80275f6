"""What lies in a bank file, part by part, read only if it is asked for; and what may lie there.

A right sum says that nothing was changed, not that it is a bank: shapes, facts and numbers are checked
whenever a bank is opened, vectors with `verify`, the provenance by `tabon bank verify`.
"""

import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import UNIT_TOLERANCE, Matrix
from tabon.errors import BankDamagedError
from tabon.method.bank_file import (
    BANK,
    BankFile,
    Parts,
    Pattern,
    ascends,
    check_parts,
    is_count,
    is_number,
    is_text,
    misfit,
    parsed,
)
from tabon.method.sentence_sets import Ids, RaggedSets, SentenceTable
from tabon.text.reports import SECTIONS, Section

BANK_FORMAT = 4
LETTER_FORMAT = 3  # the one before: its hashes of patients are of their names as written
ROWS_AT_ONCE = 8192
CACHED_ROWS = 512  # that are measured at once: they stay in the processor's cache
Hashes = NDArray[np.uint64]
SIDES = tuple(f"{section}.{side}" for section in SECTIONS for side in ("prior", "current"))


NAMES = ("encoder", "revision", "weights", "settings", "precision", "batching", "splitter", "parser", "sets")
FACTS: Pattern = {
    "fingerprint": {**dict.fromkeys(NAMES, is_text), "dimension": is_count, "max_tokens": is_count},
    "zero_shares": lambda value: (
        isinstance(value, dict)
        and all(
            isinstance(shares, dict)
            and all(is_number(share) and 0 <= share <= 1 for share in shares.values())
            for shares in value.values()
        )
    ),
}
PARTS: Parts = {
    "vectors": ("<f4", ("sentences", "dimension")),
    "sentences": ("|u1", ("bytes of sentences",)),
    "provenance": ("|u1", ("bytes of provenance",)),
    "provenance.offsets": ("<i8", ("transitions + 1",)),
    "patients": ("<u8", ("patients",)),
    **{f"{side}.ids": ("<i4", (side,)) for side in SIDES},
    **{f"{side}.offsets": ("<i8", ("transitions + 1",)) for side in SIDES},
    **{f"{side}.written": ("<i4", (side,)) for side in SIDES},
}


@dataclass(frozen=True, slots=True, eq=False)
class SetPairs:
    """The prior and current sentence sets of one section; empty if a report lacks it."""

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
            part = SetPairs(*(cut_sets(sets, start, stop) for sets in (self.prior, self.current)))
            rows = part.present()
            yield start + rows, SetPairs(part.prior.take(rows), part.current.take(rows))


class Provenance(Sequence[Mapping[str, Any]]):
    """Where each transition came from: one line of JSON each, read when asked for."""

    def __init__(self, lines: NDArray[np.uint8], offsets: Ids, place: Path = Path("the bank")) -> None:
        """Keep the bytes of all lines and where each begins, and what messages call their file."""
        self.lines, self.offsets, self._place = lines, offsets, place

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
        return self._read(self.lines[self.offsets[number] : self.offsets[number + 1]].tobytes())

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Read all rows, one after another."""
        lines = self.lines.data
        for start in range(0, len(self), ROWS_AT_ONCE):
            for begin, end in pairwise(self.offsets[start : start + ROWS_AT_ONCE + 1].tolist()):
                yield self._read(bytes(lines[begin:end]))

    def _read(self, line: bytes) -> Mapping[str, Any]:
        """Read one line; a transition is cited by its id, so it must have one."""
        row = parsed(line)
        if not isinstance(row, dict) or not is_text(row.get("id")):
            raise BankDamagedError(self._place, "a line of its provenance is no object with an id")
        return row


class Patients(AbstractSet[str]):
    """The patients whose transitions fill a bank, known by 8-byte hashes of their folded names.

    A name that is not there is taken for one that is with a chance of one in
    2^64 for each patient. Their names are read from the provenance.
    """

    def __init__(self, hashes: Hashes | None, provenance: Sequence[Mapping[str, Any]]) -> None:
        """Keep the sorted hashes, and where names are; None: hashes are made from these when asked for."""
        self._given, self._provenance = hashes, provenance

    @cached_property
    def _hashes(self) -> Hashes:
        """Return the sorted hashes."""
        return patient_hashes(self._provenance) if self._given is None else self._given

    def __contains__(self, name: object) -> bool:
        """Tell whether a patient is in the bank, however the name is written."""
        if not isinstance(name, str):
            return False
        wanted = np.uint64(patient_hash(name))
        return bool(wanted in self._hashes[np.searchsorted(self._hashes, wanted) :][:1])

    def __len__(self) -> int:
        """Count the patients."""
        return len(self._hashes)

    def __iter__(self) -> Iterator[str]:
        """Yield each patient's name as it is written first, in the order of the bank: all rows are read."""
        names: dict[str, str] = {}
        for name in _names(self._provenance):
            names.setdefault(folded(name), name)
        yield from names.values()

    @classmethod
    def _from_iterable(cls, names: Iterable[str]) -> frozenset[str]:  # type: ignore[override]
        """Return what `&`, `|` and `-` give."""
        return frozenset(names)


def folded(name: str) -> str:
    r"""Return a patient's name without what people and programs write in two ways: case, width, blanks.

    >>> folded(" P\uff11 ") == folded("p1")
    True
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(plain.split())


def patient_hash(name: str) -> int:
    """Return the hash by which a patient is known."""
    return name_hash(folded(name))


def patient_hashes(provenance: Iterable[Mapping[str, Any]]) -> Hashes:
    """Return the sorted hashes of the patients that rows name."""
    return np.array(sorted(set(map(patient_hash, _names(provenance)))), dtype=np.uint64)


def _names(provenance: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the patient of each row that names one."""
    return (str(row["patient"]) for row in provenance if row.get("patient") is not None)


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
    table: SentenceTable,
    pairs: Mapping[Section, SetPairs],
    provenance: Sequence[Mapping[str, Any]],
    patients: Hashes | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a bank file; what has its type already is not copied."""
    kept = provenance if isinstance(provenance, Provenance) else Provenance.of(provenance)
    known = patient_hashes(kept) if patients is None else patients
    yield "vectors", table.vectors.astype("<f4", copy=False)
    yield "sentences", np.frombuffer(json.dumps(list(table.sentences)).encode(), dtype=np.uint8)
    yield "provenance", kept.lines
    yield "provenance.offsets", kept.offsets.astype("<i8", copy=False)
    yield "patients", known.astype("<u8", copy=False)
    for section, sides in pairs.items():
        for side, sets in (("prior", sides.prior), ("current", sides.current)):
            yield f"{section}.{side}.ids", sets.ids.astype("<i4", copy=False)
            yield f"{section}.{side}.offsets", sets.offsets.astype("<i8", copy=False)
            written = sets.ids if sets.written is None else sets.written
            yield f"{section}.{side}.written", written.astype("<i4", copy=False)


def table_from(file: BankFile) -> SentenceTable:
    """Read the sentence table; sentences are distinct and in the order of the text."""
    sentences, vectors = parsed(bytes(file.arrays["sentences"])), file.arrays["vectors"]
    if (
        misfit(sentences, [is_text], "sentences") is not None
        or len(texts := cast("list[str]", sentences)) != len(vectors)
        or any(one >= after for one, after in pairwise(texts))
    ):
        raise BankDamagedError(
            file.place, "its sentences are not distinct texts in order, one for each vector"
        )
    return SentenceTable(tuple(texts), vectors)


def side_from(file: BankFile, side: str) -> RaggedSets:
    """Read one side of a section."""
    return RaggedSets(*(file.arrays[f"{side}.{part}"] for part in ("ids", "offsets", "written")))


def cut_sets(sets: RaggedSets, start: int, stop: int) -> RaggedSets:
    """Return the sets from one row to another."""
    offsets = np.asarray(sets.offsets[start : stop + 1])
    first, last = int(offsets[0]), int(offsets[-1])
    written = None if sets.written is None else np.asarray(sets.written[first:last])
    return RaggedSets(np.asarray(sets.ids[first:last]), offsets - first, written)


def check_bank(file: BankFile, *, contents: bool) -> None:
    """Refuse a file that cannot be a bank, whatever its sums say; with `contents`, look at every vector."""
    if (place := misfit(file.facts, FACTS, "facts")) is not None:
        raise BankDamagedError(file.place, f"its {place} is not what it should be")
    sizes, arrays = check_parts(file, PARTS, BANK), file.arrays
    lines, offsets, hashes = arrays["provenance"], arrays["provenance.offsets"], arrays["patients"]
    sides = {side: side_from(file, side) for side in SIDES}
    checks = {  # what is wrong if it does not hold
        "its vectors have another dimension than its encoder": sizes["dimension"]
        == file.facts["fingerprint"]["dimension"],
        "its provenance is not one line for each transition": sizes["transitions"] > 0
        and ascends(offsets, len(lines))
        and bool((offsets[1:] > offsets[:-1]).all() and (lines[offsets[1:] - 1] == ord("\n")).all()),
        "its patients are not in order": bool((hashes[1:] > hashes[:-1]).all()),
        "its sentence sets do not fit its sentences": all(
            ascends(sets.offsets, sizes[side])
            and all(
                _same_sets(cut_sets(sets, start, min(start + ROWS_AT_ONCE, len(sets))), sizes["sentences"])
                for start in range(0, len(sets), ROWS_AT_ONCE)
            )
            for side, sets in sides.items()
        ),
        "its vectors are not all of length 1": not contents
        or are_unit_rows(arrays["vectors"], 2 * UNIT_TOLERANCE),
    }
    for what, holds in checks.items():
        if not holds:
            raise BankDamagedError(file.place, what)


def check_provenance(file: BankFile) -> None:
    """Refuse a bank whose transitions share an id, or whose patients are not those of its transitions."""
    arrays = file.arrays
    provenance = Provenance(arrays["provenance"], arrays["provenance.offsets"], file.place)
    ids = np.fromiter((name_hash(row["id"]) for row in provenance), dtype=np.uint64, count=len(provenance))
    if len(np.unique(ids)) != len(ids):
        raise BankDamagedError(file.place, "two of its transitions have one id")
    known = patient_hashes(provenance)
    if file.facts["format"] != LETTER_FORMAT and not np.array_equal(known, arrays["patients"]):
        raise BankDamagedError(file.place, "its patients are not those of its provenance")


def _same_sets(sets: RaggedSets, sentences: int) -> bool:
    """Tell whether sets are ascending rows of a table, and what was written is the same rows."""
    ids, written = sets.ids.astype(np.int64), cast("Ids", sets.written).astype(np.int64)
    if not len(ids):
        return True
    if min(ids.min(), written.min()) < 0 or max(ids.max(), written.max()) >= sentences:
        return False
    own = sentences * np.repeat(np.arange(len(sets)), sets.lengths)
    return bool(np.array_equal(np.sort(own + written), own + ids))


def are_unit_rows(
    rows: NDArray[Any], tolerance: float, single: Callable[[NDArray[Any]], Matrix] = np.asarray
) -> bool:
    """Tell whether the squares of all rows, turned to float32 by `single`, are finite and near 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(rows), CACHED_ROWS):
            block = single(rows[start : start + CACHED_ROWS])
            if not (np.abs(np.einsum("nd,nd->n", block, block) - 1.0) <= tolerance).all():
                return False
    return True
