"""A flat map of the transition space: where the drafts of one query lie among the bank's transitions.

Nearness is measured in the whole space, on directions, as selection does (eq. 9).
Only the drawing is flat: the two widest axes of the bank, and how much of its
spread they hold stands beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.typed_values import MisfitError, fitting
from tabon.errors import BadInputError

Array = NDArray[np.float64]
Point = tuple[float, float]

ROWS = 600  # bank transitions on a map; more would be one grey blot
NO_SPREAD = 1e-12  # less variance than this is rounding
DIGITS = 4  # of a coordinate; finer than a pixel, coarser than what threads change


@dataclass(frozen=True, slots=True)
class Map2D:
    """Coordinates of some bank transitions and of all drafts."""

    bank: tuple[Point, ...]
    drafts: tuple[Point | None, ...]  # None: the draft has no direction of change
    nearest: tuple[int | None, ...]  # for each draft, the place in `bank` of its nearest transition
    explained: Point  # share of the shown bank's variance on each axis
    total: int  # transitions in the whole bank


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRecord:
    """A map as results keep it."""

    query: str
    section: str
    distance: str
    bank: tuple[Point, ...]
    drafts: tuple[Point | None, ...]
    picked: int | None
    nearest: tuple[int | None, ...]
    explained: Point
    total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionMap:
    """The map of one query in one section, and the draft that was chosen there."""

    query: str
    section: str
    distance: str
    points: Map2D
    picked: int | None

    def as_record(self) -> dict[str, Any]:
        """Return what a results file keeps under `maps`."""
        points = self.points
        return {
            "query": self.query,
            "section": self.section,
            "distance": self.distance,
            "bank": [list(point) for point in points.bank],
            "drafts": [None if point is None else list(point) for point in points.drafts],
            "picked": self.picked,
            "nearest": list(points.nearest),
            "explained": list(points.explained),
            "total": points.total,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "TransitionMap":
        """Read a map back; what does not fit together is refused."""
        try:
            found: MapRecord = fitting(MapRecord, record, "maps")
        except MisfitError as error:
            raise BadInputError(f"a transition map is not whole ({error}); evaluate again") from None
        points = Map2D(
            bank=tuple(map(rounded, found.bank)),
            drafts=tuple(None if point is None else rounded(point) for point in found.drafts),
            nearest=found.nearest,
            explained=rounded(found.explained),
            total=len(found.bank) if found.total is None else found.total,
        )
        bank, drafts = range(len(points.bank)), range(len(points.drafts))
        known = all(row is None or row in bank for row in points.nearest)
        whole = bank and known and len(points.nearest) == len(drafts)
        if not whole or (found.picked is not None and found.picked not in drafts):
            raise BadInputError("a transition map is not whole (it points at nothing); evaluate again")
        return cls(
            query=found.query,
            section=found.section,
            distance=found.distance,
            points=points,
            picked=found.picked,
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
    directions = _directions(drafts)
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


def _directions(drafts: NDArray[np.float32]) -> Array:
    """Return unit rows; rows without a direction become NaN."""
    rows = drafts.astype(np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    usable = np.isfinite(norms) & (norms > 0)
    return np.where(usable, rows / np.where(usable, norms, 1.0), np.nan)


def widest_axes(centred: Array) -> tuple[Array, Point]:
    """Return the two first right singular vectors, (2, d), and their shares of the variance.

    The sign of an axis is free: its largest coordinate is made positive.
    """
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    axes, spread = np.zeros((2, centred.shape[1])) + _padded(axes), _padded(singular**2)
    largest = np.abs(axes).argmax(axis=1)
    signs = np.where(axes[[0, 1], largest] < 0, -1.0, 1.0)
    total = float((singular**2).sum())
    shares = spread / total if total > NO_SPREAD else np.zeros(2)
    return axes * signs[:, None], rounded(shares)


def _padded(rows: Array) -> Array:
    """Return the first two rows, or zeros where there are fewer."""
    missing = max(0, 2 - len(rows))
    return np.concatenate([rows[:2], np.zeros((missing, *rows.shape[1:]))])


def rounded(row: Any) -> Point:  # noqa: ANN401 - two numbers of an array or of a file
    """Return a rounded place."""
    first, second = row
    return round(float(first), DIGITS) + 0.0, round(float(second), DIGITS) + 0.0
