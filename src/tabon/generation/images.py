"""From an image file to the bytes that a model is sent.

Chest films come as PNG, JPEG and DICOM. What is sent holds pixels only: a DICOM
file is read by the tags that say how its pixels look, never by those that say
whose they are, and a PNG or JPEG with anything beside its pixels is written anew.

    8-bit PNG or JPEG that fits and is bare ─▶ as it is
    anything else ─▶ 8-bit gray ─▶ resized if it is too large ─▶ PNG
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tabon._internal.dicom import in_one_sentence, is_dicom, unchecked_values
from tabon._internal.extras import require
from tabon.errors import BadInputError
from tabon.generation.protocol import EncodedImage

MAX_SIDE = 1536  # pixels of the longer side
MAX_PIXELS = 64_000_000  # decoded; the largest chest films have about 25 million
MAX_BYTES = 512 * 2**20
COMPRESSION = 6  # of zlib; fixed, so that the same pixels are the same bytes

Gray = NDArray[np.uint8]
Values = NDArray[Any]
T = TypeVar("T")

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_PNG_PIXEL_CHUNKS = frozenset({b"IHDR", b"IDAT", b"IEND", b"gAMA", b"sRGB", b"cHRM", b"pHYs", b"sBIT"})
_PNG_DEPTH = slice(24, 26)  # bit depth and colour type
_PNG_SENT = frozenset({b"\x08\x00", b"\x08\x02"})  # 8-bit gray and 8-bit RGB
_JPEG_EXTRAS = re.compile(rb"\xff[\xe1-\xed\xef\xfe]")  # EXIF, comments and the like
_JPEG_END = b"\xff\xd9"

_DEFLATED = "1.2.840.10008.1.2.1.99"
_PIXEL_TAGS = (
    "SamplesPerPixel",
    "PhotometricInterpretation",
    "PlanarConfiguration",
    "NumberOfFrames",
    "Rows",
    "Columns",
    "BitsAllocated",
    "BitsStored",
    "HighBit",
    "PixelRepresentation",
    "PixelPaddingValue",
    "PixelPaddingRangeLimit",
    "RescaleIntercept",
    "RescaleSlope",
    "RescaleType",
    "ModalityLUTSequence",
    "WindowCenter",
    "WindowWidth",
    "VOILUTFunction",
    "VOILUTSequence",
    "ExtendedOffsetTable",
    "ExtendedOffsetTableLengths",
    "PixelData",
)


@dataclass(frozen=True, slots=True, eq=False)
class GrayValues:
    """An image's values, (rows, columns), and the window that they are meant to be seen through."""

    values: Values
    low: float  # black
    high: float  # white
    inverted: bool = False  # then the low values are white
    outside: NDArray[np.bool_] | None = None  # the picture: black under any window


def encode_image(path: Path, *, max_side: int = MAX_SIDE) -> EncodedImage:
    """Return what a model is sent of an image file; the same file gives the same bytes each time.

    Args:
        path: a PNG, a JPEG or a DICOM file; its first bytes show which.
        max_side: the longer side in pixels; larger images are made smaller.
    """
    if max_side < 1:
        raise BadInputError(f"max_side is {max_side}; give a number of pixels")
    data = _read(path)
    if is_dicom(data):
        return _encode_gray(_from_dicom(data, path, _shown), max_side)

    def encode(image: Any) -> EncodedImage | Gray:  # noqa: ANN401
        name = "png" if data.startswith(_PNG) else "jpeg"
        if max(image.size) <= max_side and (_is_bare_png(data) or _is_bare_jpeg(data, image)):
            return _encoded(data, f"image/{name}")
        return _upright_gray(image)

    found = _from_picture(data, path, encode)
    return found if isinstance(found, EncodedImage) else _encode_gray(found, max_side)


def gray_values(path: Path) -> GrayValues:
    """Return an image's values with the window that they are meant to be seen through.

    A DICOM file keeps all its values, after a table or a curve in it; other pictures of 8 bits are 0 to 255.
    """
    data = _read(path)
    if is_dicom(data):
        return _from_dicom(data, path, _unwindowed)

    def values(image: Any) -> GrayValues:  # noqa: ANN401
        if image.mode.startswith(("I", "F")):
            return _between_extremes(np.asarray(image))
        return GrayValues(_upright_gray(image), 0.0, 255.0)

    return _from_picture(data, path, values)


def _read(path: Path) -> bytes:
    """Read a file that may be an image."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise BadInputError(f"{path} has {size} bytes, {MAX_BYTES} are allowed; give a smaller image")
        data = path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}); check it") from None
    if data.startswith((_PNG, _JPEG)) or is_dicom(data):
        return data
    raise BadInputError(f"{path} is not a PNG, JPEG or DICOM file; convert it to one of them")


def _check_shape(path: Path, width: int, height: int, frames: int) -> None:
    """Refuse more pixels than any chest film has, and several frames: none of them is the one meant."""
    if frames != 1:
        raise BadInputError(f"{path} has {frames} frames; give one image")
    if width * height > MAX_PIXELS:
        raise BadInputError(
            f"{path} has {width} x {height} pixels, {MAX_PIXELS} in all are allowed; give a smaller image"
        )


def _from_picture(data: bytes, path: Path, use: Callable[[Any], T]) -> T:
    """Decode a PNG or a JPEG, with these two decoders alone, and make something of it."""
    name = "Png" if data.startswith(_PNG) else "Jpeg"
    plugin = require(f"PIL.{name}ImagePlugin", extra="images", feature="reading images")
    with in_one_sentence(f"{path} is broken or cut short; copy it again"):
        image = getattr(plugin, f"{name}ImageFile")(BytesIO(data))
        _check_shape(path, image.width, image.height, getattr(image, "n_frames", 1))
        image.load()
        return use(image)


def _upright_gray(image: Any) -> Gray:  # noqa: ANN401
    """Return a decoded PNG or JPEG as 8-bit gray, turned as its camera says."""
    operations = require("PIL.ImageOps", extra="images", feature="reading images")
    return _picture_gray(operations.exif_transpose(image))


def _is_bare_png(data: bytes) -> bool:
    """Whether it is 8-bit gray or RGB and has no chunk that says more than its pixels."""
    if not data.startswith(_PNG) or data[_PNG_DEPTH] not in _PNG_SENT:
        return False
    place = len(_PNG)
    while place + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        place += 12 + length  # length, kind, body, checksum
        if kind not in _PNG_PIXEL_CHUNKS:
            return False
        if kind == b"IEND":
            break
    return place == len(data)


def _is_bare_jpeg(data: bytes, image: Any) -> bool:  # noqa: ANN401
    """Whether it is gray or RGB and has no segment that says more than its pixels.

    A table may hold the same bytes by chance; then it is written anew, which does no harm.
    """
    return (
        data.startswith(_JPEG)
        and image.mode in {"L", "RGB"}
        and _JPEG_EXTRAS.search(data) is None
        and data.find(_JPEG_END) == len(data) - len(_JPEG_END)
    )


def _picture_gray(image: Any) -> Gray:  # noqa: ANN401
    """Return a decoded PNG or JPEG as 8-bit gray; what is transparent becomes black."""
    if image.mode.startswith(("I", "F")):  # 16-bit
        return _stretched(np.asarray(image))
    if image.has_transparency_data:
        over = image.convert("RGBA")
        below = require("PIL.Image", extra="images", feature="reading images").new("RGBA", over.size, "black")
        below.alpha_composite(over)
        image = below
    if image.mode != "L":
        image = image.convert("RGB").convert("L")
    return np.asarray(image, dtype=np.uint8)


def _from_dicom(data: bytes, path: Path, use: Callable[[Any, Any, Values], T]) -> T:
    """Decode a DICOM file's pixels and make something of them; no other tag is read."""
    pydicom = require("pydicom", extra="images", feature="reading DICOM")
    require("PIL.Image", extra="images", feature="reading images")
    with unchecked_values(pydicom):
        with in_one_sentence(f"{path} is not a whole DICOM image; copy it again", pydicom):
            meta = pydicom.filereader.read_file_meta_info(path)
            if str(meta.TransferSyntaxUID) == _DEFLATED:  # inflating has no limit
                raise BadInputError(
                    f"{path} is a deflated DICOM file; inflate it first, for instance with dcmconv"
                )
            dataset = pydicom.dcmread(BytesIO(data), specific_tags=list(_PIXEL_TAGS))
            if not str(dataset.PhotometricInterpretation).startswith(("MONOCHROME", "RGB", "YBR")):
                raise BadInputError(f"{path} is a DICOM file with a palette; convert it to gray first")
            frames = int(dataset.get("NumberOfFrames") or 1)
            _check_shape(path, int(dataset.Columns), int(dataset.Rows), frames)
        with in_one_sentence(f"{path} holds no pixels that can be decoded; copy it again", pydicom):
            syntax = dataset.file_meta.TransferSyntaxUID
            if syntax.is_compressed and not pydicom.pixels.get_decoder(syntax).is_available:
                raise BadInputError(
                    f"{path} is compressed as {syntax.name}, for which no decoder is installed; "
                    "add one with: pip install 'pylibjpeg[all]', or decompress the file first"
                )
            pixels = pydicom.pixels.pixel_array(dataset)
        with in_one_sentence(
            f"{path} has a window or a table that cannot be applied; repair its header", pydicom
        ):
            return use(pydicom, dataset, pixels)


def _unwindowed(pydicom: Any, dataset: Any, stored: Values) -> GrayValues:  # noqa: ANN401
    """Apply rescale, and a VOI table or curve; leave a linear window open (PS3.3 C.11.2)."""
    if stored.ndim == 3:  # noqa: PLR2004  # rows, columns, colours
        return GrayValues(_shown(pydicom, dataset, stored), 0.0, 255.0)
    outside = _padding(dataset, stored)
    inverted = dataset.PhotometricInterpretation == "MONOCHROME1"
    values = pydicom.pixels.apply_modality_lut(stored, dataset).astype(np.float64)
    centre, width = (_first_value(dataset.get(name)) for name in ("WindowCenter", "WindowWidth"))
    if dataset.get("VOILUTSequence") or str(dataset.get("VOILUTFunction") or "LINEAR").startswith("SIGMOID"):
        gray = _windowed(pydicom, dataset, values, outside)
        return GrayValues(gray, 0.0, 255.0, inverted, outside)
    if centre is None or width is None:
        found = _between_extremes(values, without=outside)
        return replace(found, inverted=inverted, outside=outside)
    middle, half = (centre - 0.5, (width - 1) / 2)
    if dataset.get("VOILUTFunction") == "LINEAR_EXACT":
        middle, half = centre, width / 2
    return GrayValues(values, middle - half, middle + half, inverted, outside)


def _first_value(value: Any) -> float | None:  # noqa: ANN401
    """Return a number, the first of several; None if there is none."""
    first = value if value is None or isinstance(value, str | float | int) else next(iter(value), None)
    return None if first is None else float(first)


def _padding(dataset: Any, stored: Values) -> NDArray[np.bool_]:  # noqa: ANN401
    """Say which pixels are outside the picture."""
    if (value := dataset.get("PixelPaddingValue")) is None:
        return np.zeros(stored.shape, dtype=bool)
    limit = dataset.get("PixelPaddingRangeLimit")
    low, high = sorted((int(value), int(value if limit is None else limit)))
    inside: NDArray[np.bool_] = (stored >= low) & (stored <= high)
    return inside


def _shown(pydicom: Any, dataset: Any, stored: Values) -> Gray:  # noqa: ANN401
    """Apply rescale, then the first VOI table or window, then the polarity (PS3.3 C.11)."""
    if stored.ndim == 3:  # noqa: PLR2004  # rows, columns, colours
        return _picture_gray(require("PIL.Image", extra="images", feature="images").fromarray(stored))
    padding = _padding(dataset, stored)
    gray = _windowed(pydicom, dataset, pydicom.pixels.apply_modality_lut(stored, dataset), padding)
    if dataset.PhotometricInterpretation == "MONOCHROME1":
        gray = 255 - gray
    gray[padding] = 0
    return gray


def _windowed(pydicom: Any, dataset: Any, values: Values, padding: NDArray[np.bool_]) -> Gray:  # noqa: ANN401
    """Apply the first VOI table or window; without one, spread the values."""
    if dataset.get("VOILUTSequence"):
        return _through_table(values, dataset)
    if dataset.get("WindowCenter") is not None and dataset.get("WindowWidth") is not None:
        with np.errstate(over="ignore"):  # of a sigmoid far away, where the window is black or white
            black, white = pydicom.pixels.apply_windowing(np.array([-1e12, 1e12]), dataset)
            return _to_gray(pydicom.pixels.apply_windowing(values, dataset), float(black), float(white))
    return _stretched(values, without=padding)


def _through_table(values: Values, dataset: Any) -> Gray:  # noqa: ANN401
    """Look values up in the first VOI table.

    pydicom 3.0 does this too, but wraps around in tables with 8-bit entries.
    """
    item = dataset.VOILUTSequence[0]
    _, first, bits = (int(part) for part in item.LUTDescriptor)
    entries = item.LUTData
    if isinstance(entries, bytes):
        entries = np.frombuffer(entries, "<u2" if dataset.original_encoding[1] else ">u2")
    table = np.asarray(entries, dtype=np.float64)
    rows = np.clip(np.rint(values).astype(np.int64) - first, 0, len(table) - 1)
    return _to_gray(table[rows], 0.0, float(2**bits - 1))


def _stretched(values: Values, *, without: NDArray[np.bool_] | None = None) -> Gray:
    """Spread values over 0 to 255: files of 16 bits often use 12 or fewer of them."""
    found = _between_extremes(values, without=without)
    return _to_gray(values, found.low, found.high)


def _between_extremes(values: Values, *, without: NDArray[np.bool_] | None = None) -> GrayValues:
    """Return values with a window from the least to the greatest."""
    counted = values if without is None else values[~without]
    low, high = (float(counted.min()), float(counted.max())) if counted.size else (0.0, 0.0)
    return GrayValues(values, low, high)


def _to_gray(values: Values, black: float, white: float) -> Gray:
    """Map black to 0 and white to 255; an image of one value becomes black."""
    if white == black:
        return np.zeros(values.shape, dtype=np.uint8)
    share = (values.astype(np.float64) - black) / (white - black)
    gray: Gray = np.rint(np.clip(share, 0.0, 1.0) * 255.0).astype(np.uint8)
    return gray


def _encode_gray(gray: Gray, max_side: int) -> EncodedImage:
    """Write 8-bit gray as PNG, smaller if it is too large."""
    pillow = require("PIL.Image", extra="images", feature="reading images")
    height, width = gray.shape
    image = pillow.frombytes("L", (width, height), gray.tobytes())  # a new one: it has no metadata
    if max(image.size) > max_side:
        scale = max_side / max(image.size)
        size = tuple(max(1, round(side * scale)) for side in image.size)
        image = image.resize(size, pillow.Resampling.LANCZOS)
    out = BytesIO()
    image.save(out, "PNG", compress_level=COMPRESSION)
    return _encoded(out.getvalue(), "image/png")


def _encoded(data: bytes, media_type: str) -> EncodedImage:
    """Put bytes beside their hash."""
    return EncodedImage(data, media_type, sha256(data).hexdigest())
