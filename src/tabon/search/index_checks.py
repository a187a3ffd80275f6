"""What may lie in an index file, and whether it is what the bank says.

Directions and sketches are measured at each opening: one that is not finite, or not of
length 1, would be missed by a scan without a word. Some directions are compared with the
bank's own; `tabon bank verify --search` compares all.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.protocol import Matrix
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank, bank_transitions
from tabon.method.bank_arrays import are_unit_rows
from tabon.method.bank_file import (
    BankFile,
    FileKind,
    Parts,
    Pattern,
    ascends,
    check_parts,
    is_count,
    is_number,
    misfit,
)
from tabon.search.cell_scan import to_single
from tabon.search.ivf import ALL
from tabon.search.sketch import sketched

INDEX_FORMAT = 2
PRECISION = "float16"
LENGTH_TOLERANCE = 1e-2  # of the square of a row that was rounded to float16
AXES_TOLERANCE = 1e-3
STORED_TOLERANCE = 2.0**-9  # of a stored number: float16, made on another machine
COMPARED = 64  # directions that are compared with the bank's at opening
AT_ONCE = 4096

INDEX = FileKind(
    magic=b"TABONIX1",
    missing=lambda path: BadInputError(f"there is no index at {path}; make one with `tabon bank index`"),
    damaged=lambda path, what: BadInputError(
        f"{path} is not a whole tabon index: {what}; make it again with `tabon bank index`"
    ),
)

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


def check_index(file: BankFile) -> None:
    """Refuse a file that cannot be an index, whatever its sums say."""
    if (place := misfit(file.facts, FACTS, "facts")) is not None:
        raise INDEX.damaged(file.place, f"its {place} is not what it should be")
    ivf = file.facts["ivf"]
    coded = ivf is not None and bool(ivf.get("codes"))
    parts = {**PARTS, **(CELL_PARTS if ivf is not None else {}), **(CODE_PARTS if coded else {})}
    sizes = check_parts(file, parts, INDEX)
    checks = {**CHECKS, **(CELL_CHECKS if ivf is not None else {}), **(CODE_CHECKS if coded else {})}
    for what, holds in checks.items():
        if not holds(file.arrays, sizes, file.facts):
            raise INDEX.damaged(file.place, what)


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


Check = Callable[[Mapping[str, NDArray[Any]], Mapping[str, int], Mapping[str, Any]], bool]


def _copies_fit(arrays: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], _: object) -> bool:
    """Tell whether each row is a copy of one distinct row, and each of these has some."""
    starts, copies = arrays["starts"], arrays["copies"]
    if not ascends(starts, sizes["rows"]) or not (starts[1:] > starts[:-1]).all():
        return False
    return are_numbers(copies, sizes["rows"]) and bool(
        (np.bincount(copies, minlength=sizes["rows"]) == 1).all()
    )


def are_numbers(rows: NDArray[Any], count: int) -> bool:
    """Tell whether all are numbers of so many rows."""
    return not len(rows) or bool(rows.min() >= 0 and rows.max() < count)


def are_axes(basis: Matrix) -> bool:
    """Tell whether the columns are orthonormal."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.abs(basis.T @ basis - np.eye(basis.shape[1])) <= AXES_TOLERANCE).all())


def _are_means(means: Matrix) -> bool:
    """Tell whether none is longer than the unit rows that it is the mean of."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.einsum("cd,cd->c", means, means) <= 1 + LENGTH_TOLERANCE).all())


CHECKS: Mapping[str, Check] = MappingProxyType(
    {  # what is wrong where it does not hold
        "its facts count other rows than it has": lambda _, sizes, facts: all(
            facts[name] == sizes[name] for name in ("dimension", "rows", "zero_rows", "distinct")
        ),
        "its copies are not its rows": _copies_fit,
        "its directions are not all of length 1": lambda arrays, _, __: are_unit_rows(
            arrays["directions"], LENGTH_TOLERANCE, to_single
        ),
    }
)
CELL_CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "its cells do not hold its rows": lambda arrays, sizes, facts: (
            sizes["cells"] == facts["ivf"]["cells"] > 0 and ascends(arrays["cells"], sizes["distinct"])
        ),
        "its means are not those of unit rows": lambda arrays, _, __: _are_means(arrays["means"]),
        "its axes are not at right angles": lambda arrays, _, __: are_axes(arrays["basis"]),
        "its sketches are not all of length 1": lambda arrays, _, __: are_unit_rows(
            arrays["sketches"], LENGTH_TOLERANCE, to_single
        ),
    }
)
CODE_CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "its codes have another size than their axes": lambda _, sizes, __: (
            sizes["axes of a code"] == 4 * sizes["bytes of a code"] == 2 * sizes["pairs of axes"] > 0
        ),
        "the axes of its codes are not at right angles": lambda arrays, _, __: are_axes(arrays["code_basis"]),
        "the points of its codes are not finite": lambda arrays, _, __: bool(
            np.isfinite(arrays["code_points"]).all()
        ),
    }
)
