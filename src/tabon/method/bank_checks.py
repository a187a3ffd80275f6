"""What may lie in a bank file: a right sum says that nothing was changed, not that it is a bank.

Shapes, facts and numbers are looked at whenever a bank is opened, vectors too unless it is
opened without `verify`; the provenance, line by line, by `tabon bank verify`.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import UNIT_TOLERANCE, Matrix
from tabon.errors import BankDamagedError
from tabon.method.bank_arrays import (
    LETTER_FORMAT,
    ROWS_AT_ONCE,
    Provenance,
    cut_sets,
    name_hash,
    patient_hashes,
    side_from,
)
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
)
from tabon.method.sentence_sets import Ids, RaggedSets
from tabon.text.reports import SECTIONS

CACHED_ROWS = 512  # that are measured at once: they stay in the processor's cache
NEWLINE = ord("\n")
SIDES = tuple(f"{section}.{side}" for section in SECTIONS for side in ("prior", "current"))


def _are_shares(value: object) -> bool:
    """Tell whether a JSON value has shares by section and distance."""
    return isinstance(value, dict) and all(
        isinstance(shares, dict) and all(is_number(share) and 0 <= share <= 1 for share in shares.values())
        for shares in value.values()
    )


NAMES = ("encoder", "revision", "weights", "settings", "precision", "batching", "splitter", "parser", "sets")
FACTS: Pattern = {
    "fingerprint": {**dict.fromkeys(NAMES, is_text), "dimension": is_count, "max_tokens": is_count},
    "zero_shares": _are_shares,
}
PARTS: Parts = MappingProxyType(
    {
        "vectors": ("<f4", ("sentences", "dimension")),
        "sentences": ("|u1", ("bytes of sentences",)),
        "provenance": ("|u1", ("bytes of provenance",)),
        "provenance.offsets": ("<i8", ("transitions + 1",)),
        "patients": ("<u8", ("patients",)),
        **{f"{side}.ids": ("<i4", (side,)) for side in SIDES},
        **{f"{side}.offsets": ("<i8", ("transitions + 1",)) for side in SIDES},
        **{f"{side}.written": ("<i4", (side,)) for side in SIDES},
    }
)


def check_bank(file: BankFile, *, contents: bool) -> None:
    """Refuse a file that cannot be a bank, whatever its sums say; with `contents`, look at every vector."""
    if (place := misfit(file.facts, FACTS, "facts")) is not None:
        raise BankDamagedError(file.place, f"its {place} is not what it should be")
    sizes = check_parts(file, PARTS, BANK)
    for what, holds in CHECKS.items():
        if not holds(file, sizes):
            raise BankDamagedError(file.place, what)
    if contents and not are_unit_rows(file.arrays["vectors"], 2 * UNIT_TOLERANCE):
        raise BankDamagedError(file.place, "its vectors are not all of length 1")


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


def _dimension_fits(file: BankFile, sizes: Mapping[str, int]) -> bool:
    """Tell whether the vectors have the encoder's dimension."""
    return bool(sizes["dimension"] == file.facts["fingerprint"]["dimension"])


def _lines_fit(file: BankFile, sizes: Mapping[str, int]) -> bool:
    """Tell whether there is one line of provenance for each transition."""
    lines, offsets = file.arrays["provenance"], file.arrays["provenance.offsets"]
    return ascends(offsets, len(lines)) and bool(
        (offsets[1:] > offsets[:-1]).all()
        and (lines[offsets[1:] - 1] == NEWLINE).all()
        and sizes["transitions"]
    )


def _patients_fit(file: BankFile, _: Mapping[str, int]) -> bool:
    """Tell whether the hashes of patients ascend."""
    hashes = file.arrays["patients"]
    return bool((hashes[1:] > hashes[:-1]).all())


def _sets_fit(file: BankFile, sizes: Mapping[str, int]) -> bool:
    """Tell whether each set names sentences of the table, ascending, and the same ones as written."""
    return all(
        ascends(file.arrays[f"{side}.offsets"], sizes[side])
        and all(_same_sets(block, sizes["sentences"]) for block in _blocks(side_from(file, side)))
        for side in SIDES
    )


CHECKS: Mapping[str, Callable[[BankFile, Mapping[str, int]], bool]] = MappingProxyType(
    {  # what is wrong where it does not hold
        "its vectors have another dimension than its encoder": _dimension_fits,
        "its provenance is not one line for each transition": _lines_fit,
        "its patients are not in order": _patients_fit,
        "its sentence sets do not fit its sentences": _sets_fit,
    }
)


def _blocks(sets: RaggedSets) -> Iterator[RaggedSets]:
    """Cut sets into blocks."""
    starts = range(0, len(sets), ROWS_AT_ONCE)
    return (cut_sets(sets, start, min(start + ROWS_AT_ONCE, len(sets))) for start in starts)


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
