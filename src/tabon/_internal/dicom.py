"""Decoders of images and DICOM files, without their words.

pydicom warns about values that do not fit their type, or logs them, and shows
them: in a broken file such a value may run over the report or the patient's
name. So it does not check them here. That is a setting of the whole process,
hence one lock for all who switch it. What a decoder raises may show them too.
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

from tabon.errors import BadInputError, TabonError

UNREADABLE: tuple[type[Exception], ...] = (  # what decoders raise on bytes that they cannot read
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    Warning,  # where warnings are errors
    struct.error,
    zlib.error,
)
_LOCK = RLock()


def is_dicom(data: bytes) -> bool:
    """Whether the bytes begin as a DICOM file does: a preamble of 128 bytes and four letters."""
    return data[128:132] == b"DICM"


@contextmanager
def unchecked_values(pydicom: Any) -> Iterator[None]:  # noqa: ANN401
    """Switch the package's checks of values off, for one thread at a time."""
    with _LOCK, pydicom.config.disable_value_validation():
        yield


@contextmanager
def in_one_sentence(message: str, pydicom: Any = None) -> Iterator[None]:  # noqa: ANN401
    """Say in one sentence what a decoder, or pydicom, raises on bytes that it cannot read."""
    own = () if pydicom is None else (pydicom.errors.BytesLengthException, pydicom.errors.InvalidDicomError)
    try:
        yield
    except TabonError:
        raise
    except UNREADABLE + own:
        raise BadInputError(message) from None
