"""A flat map of the transition space: where the drafts of one query lie among the bank's transitions.

Nearness is measured in the whole space, on directions, as selection does (eq. 9).
Only the drawing is flat: the two widest axes of the bank, and how much of its
spread they hold.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.typed_values import MisfitError, fitting
from tabon.errors import BadInputError

Array = NDArray[np.float64]
Point = tuple[float, float]

ROWS = 600  # bank transitions on a map; more would be one grey blot
NO_SPREAD = 1e-12  # less variance than this is rounding
RECORD = ("query", "section", "distance", "bank", "drafts", "picked", "nearest", "explained", "total")
DIGITS = 4  # of a coordinate; finer than a pixel, coarser than what threads change


@dataclass(frozen=True, slots=True)
class Map2D:
    """Coordinates of some bank transitions and of all drafts."""

    bank: tuple[Point, ...]
    drafts: tuple[Point | None, ...]  # None: the draft has no direction of change
    nearest: tuple[int | None, ...]  # for each draft, the place in `bank` of its nearest transition
    explained: Point  # share of the shown bank's variance on each axis
    total: int | None = None  # transitions in the whole bank; None: of an old file, which does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionMap(Map2D):
    """The map of one query in one section, and the draft that was chosen there."""

    query: str
    section: str
    distance: str
    picked: int | None

    def as_record(self) -> dict[str, Any]:
        """Return what a results file keeps under `maps`."""
        record = asdict(self)
        return {name: record[name] for name in RECORD}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "TransitionMap":
        """Read a map back; what does not fit together is refused."""
        try:
            found: TransitionMap = fitting(cls, record, "maps")
        except MisfitError as error:
            raise BadInputError(f"a transition map is not whole ({error}); evaluate again") from None
        bank, drafts = range(len(found.bank)), range(len(found.drafts))
        known = all(row is None or row in bank for row in found.nearest)
        whole = bank and known and len(found.nearest) == len(drafts)
        if not whole or (found.picked is not None and found.picked not in drafts):
            raise BadInputError("a transition map is not whole (it points at nothing); evaluate again")
        return replace(
            found,
            bank=tuple(map(rounded, found.bank)),
            drafts=tuple(None if point is None else rounded(point) for point in found.drafts),
            explained=rounded(found.explained),
            total=len(bank) if found.total is None else found.total,
        )


def project(
    bank: NDArray[np.float32], drafts: NDArray[np.float32], *, rows: int = ROWS, seed: int = 0
) -> Map2D:
    """Lay bank transitions and drafts on the two widest axes of the bank.

    Args:
        bank: unit transitions, (n, d), n >= 1.
        drafts: the transitions of a query's drafts, (m, d), of any length; a
            zero or not finite row has no direction and no place.
        rows: how many bank transitions are shown at most, besides the nearest ones.
        seed: which ones.

    >>> square = np.array([[1, 0], [-1, 0], [0, 0.5], [0, -0.5]], dtype=np.float32)
    >>> flat = project(square, np.array([[3, 0.1], [0, 0]], dtype=np.float32))
    >>> flat.nearest, flat.explained, flat.drafts[1]
    ((0, None), (0.8, 0.2), None)
    """
    if bank.ndim != 2 or len(bank) == 0 or drafts.ndim != 2 or drafts.shape[1] != bank.shape[1]:  # noqa: PLR2004
        raise BadInputError(f"a map needs (n, d) and (m, d), n >= 1, got {bank.shape} and {drafts.shape}")
    norms = np.linalg.norm(drafts.astype(np.float64), axis=1, keepdims=True)
    usable = np.isfinite(norms) & (norms > 0)
    directions = np.where(usable, drafts / np.where(usable, norms, 1.0), np.nan)  # unit rows
    placed = [bool(np.isfinite(row).all()) for row in directions]
    nearest = [  # the largest cosine, the first of equals
        int(np.argmax(bank @ row.astype(np.float32))) if has else None
        for row, has in zip(directions, placed, strict=True)
    ]
    sample = np.random.default_rng(seed).choice(len(bank), size=min(rows, len(bank)), replace=False)
    shown = np.union1d(sample, [row for row in nearest if row is not None]).astype(np.int64)
    points = bank[shown].astype(np.float64)
    centre = points.mean(axis=0)
    axes, explained = widest_axes(points - centre)
    place = {row: index for index, row in enumerate(shown.tolist())}
    flat = (directions - centre) @ axes.T
    return Map2D(
        bank=tuple(map(rounded, (points - centre) @ axes.T)),
        drafts=tuple(rounded(row) if has else None for row, has in zip(flat, placed, strict=True)),
        nearest=tuple(None if row is None else place[row] for row in nearest),
        explained=explained,
        total=len(bank),
    )


def widest_axes(centred: Array) -> tuple[Array, Point]:
    """Return the two first right singular vectors, (2, d), and their shares of the variance.

    The sign of an axis is free: its largest coordinate is made positive.
    """
    _, singular, found = np.linalg.svd(centred, full_matrices=False)
    axes, spread = np.zeros((2, centred.shape[1])), np.zeros(2)  # zeros where there are fewer than two
    axes[: len(found)], spread[: len(found)] = found[:2], singular[:2] ** 2
    largest = np.abs(axes).argmax(axis=1)
    signs = np.where(axes[[0, 1], largest] < 0, -1.0, 1.0)
    total = float((singular**2).sum())
    shares = spread / total if total > NO_SPREAD else np.zeros(2)
    return axes * signs[:, None], rounded(shares)


def rounded(row: Any) -> Point:  # noqa: ANN401 - two numbers of an array or of a file
    """Return a rounded place."""
    first, second = row
    return round(float(first), DIGITS) + 0.0, round(float(second), DIGITS) + 0.0
