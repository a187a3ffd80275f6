"""DICOM files in and out of pydicom, without its warnings about values."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from tabon._internal.dicom import in_one_sentence, is_dicom, unchecked_values
from tabon._internal.extras import require
from tabon.data.formats.received import check_file_size
from tabon.errors import BadInputError

DEFLATED = b"1.2.840.10008.1.2.1.99"
_META_END = 1024  # the file meta information is far shorter


def pydicom() -> Any:  # noqa: ANN401
    """Return the package, or say which extra to install."""
    return require("pydicom", extra="images", feature="reading and writing DICOM")


@contextmanager
def dicom_values(message: str) -> Iterator[None]:
    """Let pydicom work on values unchecked; what it raises becomes one sentence."""
    with unchecked_values(pydicom()), in_one_sentence(message, pydicom()):
        yield


def parse_dicom(data: bytes, name: str) -> Any:  # noqa: ANN401
    """Return the dataset of a whole DICOM file.

    Raises:
        BadInputError: the bytes are too many, not DICOM, deflated or cut off.
    """
    check_file_size(data, name)
    if not is_dicom(data):
        raise BadInputError(f"{name} is not a DICOM file; give one that begins with a preamble and DICM")
    if DEFLATED in data[:_META_END]:  # inflating has no limit
        raise BadInputError(f"{name} is a deflated DICOM file; inflate it first, for instance with dcmconv")
    stream = BytesIO(data)
    broken = f"{name} is not a whole DICOM file, or its meta values or character set are not valid"
    with dicom_values(f"{broken}; copy or export it again"):
        with pydicom().config.strict_reading():  # else an unknown character set would be shown in a warning
            dataset = pydicom().dcmread(stream)
        _check_whole(dataset, stream, name)
    return dataset


def _check_whole(dataset: Any, stream: BytesIO, name: str) -> None:  # noqa: ANN401
    """Refuse a file that ends inside a value: pydicom takes what is there."""
    cut = stream.read(1) != b""
    for element in dataset.values():
        length, value = getattr(element, "length", None), element.value
        if isinstance(value, bytes) and length not in (None, 0xFFFFFFFF):
            cut = cut or len(value) < length
    if cut:
        raise BadInputError(f"{name} ends inside a value; copy it again")


def sequence(dataset: Any, keyword: str) -> Any:  # noqa: ANN401
    """Return the items of a sequence, none where there is none."""
    with pydicom().config.strict_reading():  # as above; the items' values are not looked at yet
        return dataset.get(keyword) or ()


def value_text(dataset: Any, keyword: str) -> str:  # noqa: ANN401
    """Return a value as text, the first of several, nothing where there is none."""
    value = dataset.get(keyword)
    if isinstance(value, list | tuple | pydicom().multival.MultiValue):
        value = value[0] if value else None
    return "" if value is None else str(value).strip()
