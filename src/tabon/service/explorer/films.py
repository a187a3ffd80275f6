"""X-rays for the page: values that a reader can window, of the study and of the one before.

    file ─▶ gray values ─▶ at most 1,024 pixels a side ─▶ 8 or 16 bits ─▶ differences along a row ─▶ zlib

A browser unpacks them by itself: nothing in a file from outside reaches its decoders of images.
"""

import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.errors import BadInputError
from tabon.generation.images import GrayValues, gray_values
from tabon.text.records import Query

MAX_SIDE: Final = 1024  # pixels of the longer side
MOST: Final = 2**16 - 2  # steps between the least and the greatest value of 16 bits; 0 is outside the picture
LEAST: Final = 1e-3  # of a window
FEW: Final = 255  # a smaller span is no whole numbers of a detector
LONGEST_NAME: Final = 1024
FILMS: Final = {"prior": "prior_image", "current": "image"}  # and the key of a query that names the file


@dataclass(frozen=True, slots=True)
class Film:
    """An image as a page unpacks it; a stored value v stands for first + step * v."""

    width: int
    height: int
    bits: int  # 8 or 16; of 16, the value 0 is outside the picture
    low: float  # the stored value that is black at first
    high: float  # and the one that is white
    first: float
    step: float
    data: bytes  # zlib: low bytes of all pixels, then high bytes; each a difference from its left neighbour

    def record(self) -> dict[str, Any]:
        """Return the film as JSON."""
        return {**asdict(self), "data": b64encode(self.data).decode()}


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """The folder that the images of a query are relative to."""

    root: Path

    def path_of(self, query: Query, key: str = "image") -> Path | None:
        """Return an image file of a study; None if it names none, or none that lies in the folder.

        Links are followed only where they stay inside.
        """
        name = query.facts.get(key)
        if not isinstance(name, str) or not _is_plain(name):
            return None
        try:
            path = (self.root / name).resolve(strict=True)
            inside = path.is_relative_to(self.root.resolve(strict=True))
            return path if inside and path.is_file() else None
        except (OSError, RuntimeError, ValueError):  # not there, a circle of links
            return None

    def has_any(self, query: Query) -> bool:
        """Say whether a study, or the one before, has an image."""
        return any(self.path_of(query, key) is not None for key in FILMS.values())

    def read(self, query: Query, note: Callable[[str], None] = lambda _: None) -> dict[str, Film]:
        """Return the images of a study, `prior` and `current`; a broken one is a sentence for `note`."""
        found: dict[str, Film] = {}
        for name, key in FILMS.items():
            path = self.path_of(query, key)
            try:
                found |= {} if path is None else {name: read_film(path)}
            except BadInputError as error:
                note(f"study {query.id!r}: {error}")
        return found


def open_folder(root: Path) -> ImageFolder:
    """Return a folder of images that is there."""
    if not root.is_dir():
        raise BadInputError(f"{root} is not a folder; give --images the folder of the images")
    return ImageFolder(root)


def read_film(path: Path, *, max_side: int = MAX_SIDE) -> Film:
    """Read a PNG, JPEG or DICOM file as a film; larger ones are made smaller."""
    found = gray_values(path)
    values = _smaller(found.values, max_side)
    height, width = values.shape
    outside = found.outside is not None and bool(found.outside.any())
    if found.values.dtype == np.uint8 and not found.inverted and not outside:
        return Film(width, height, 8, found.low, found.high, 0.0, 1.0, _packed(values.astype(np.uint8)))
    stored, low, high, first, step = _in_16_bits(found, values, max_side)
    return Film(width, height, 16, low, high, first, step, _packed(stored))


def _in_16_bits(
    found: GrayValues, values: NDArray[Any], max_side: int
) -> tuple[NDArray[np.uint16], float, float, float, float]:
    """Return values as 1 to 65,535, the window among them, and what they stand for; low is black."""
    outside = None if found.outside is None else _smaller(found.outside.astype(np.float64), max_side) > 0.5  # noqa: PLR2004
    inside = values if outside is None else values[~outside]
    least, greatest = (float(inside.min()), float(inside.max())) if inside.size else (0.0, 0.0)
    span = greatest - least
    step = 1.0 if FEW <= span <= MOST else (span / MOST or 1.0)
    if found.inverted:
        least, step = greatest, -step
    stored = np.rint(np.clip((values - least) / step, 0, MOST)).astype(np.uint16) + np.uint16(1)
    if outside is not None:
        stored[outside] = 0
    first = least - step
    low, high = sorted(((found.low - first) / step, (found.high - first) / step))
    return stored, low, max(high, low + LEAST), first, step  # of a window of width 1 there is nothing between


def _smaller(values: NDArray[Any], max_side: int) -> NDArray[Any]:
    """Return values at most so many pixels wide and high."""
    scale = max_side / max(values.shape)
    if scale >= 1:
        return values
    pillow = require("PIL.Image", extra="images", feature="reading images")
    size = tuple(max(1, round(side * scale)) for side in reversed(values.shape))
    image = pillow.fromarray(values.astype(np.float32)).resize(size, pillow.Resampling.LANCZOS)
    found: NDArray[Any] = np.clip(np.asarray(image), values.min(), values.max())
    return np.rint(found) if values.dtype == np.uint8 else found


def _packed(stored: NDArray[Any]) -> bytes:
    """Pack 8 or 16 bits: the low bytes of all pixels, then the high ones, as differences along each row."""
    wide = stored.astype(np.uint16)
    moved = np.diff(wide, axis=1, prepend=np.zeros((len(wide), 1), np.uint16))  # modulo 65,536
    planes = [(moved & 255).astype(np.uint8).tobytes(), (moved >> 8).astype(np.uint8).tobytes()]
    return zlib.compress(b"".join(planes[: stored.itemsize]), 6)


def _is_plain(name: str) -> bool:
    """Whether a name is a relative path that goes down only.

    >>> [_is_plain(name) for name in ("a/b.png", "../b.png", "/b.png", "a/../../b", "C:/b.png", "")]
    [True, False, False, False, False, False]
    """
    places = PurePosixPath(name), PureWindowsPath(name)
    return (
        0 < len(name) <= LONGEST_NAME
        and "\0" not in name
        and not any(path.is_absolute() or path.drive or ".." in path.parts for path in places)
    )
