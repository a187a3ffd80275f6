"""Tensors of a safetensors file, mapped into memory: a length, a JSON header, raw numbers.

The header says where each tensor lies. Every field of it is checked before a
tensor is read, so a damaged file is refused and nothing outside of it is read.
"""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from tabon.encoders.protocol import Matrix
from tabon.errors import EncoderError

LENGTH = struct.Struct("<Q")
LONGEST_HEADER = 100_000_000  # bytes, as the format says
SIZES: Mapping[str, int] = MappingProxyType(  # bytes of a number
    {
        **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"), 1),
        **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
        **dict.fromkeys(("U32", "I32", "F32"), 4),
        **dict.fromkeys(("U64", "I64", "F64"), 8),
    }
)
READ = MappingProxyType({"F32": "<f4", "F16": "<f2", "BF16": "<u2"})  # kinds that weights may have


@dataclass(frozen=True, slots=True)
class Entry:
    """What the header says of one tensor."""

    kind: str
    shape: tuple[int, ...]
    start: int
    stop: int


class TensorFile:
    """A safetensors file whose header is whole."""

    def __init__(self, path: Path) -> None:
        """Map the file and check its header.

        Raises:
            EncoderError: it is cut, or its header does not describe it.
        """
        try:
            with path.open("rb") as file:
                (length,) = LENGTH.unpack(file.read(LENGTH.size))
                header = file.read(length) if length <= LONGEST_HEADER else b""
            if len(header) != length or header[:1] != b"{":
                raise ValueError("the header is cut")  # noqa: TRY301
            entries = _entries(json.loads(header.decode(), object_pairs_hook=_once))
            self._data = np.memmap(path, np.uint8, "r")[LENGTH.size + length :]
            _check_places(entries, len(self._data))
        except (OSError, ValueError, TypeError, RecursionError, struct.error) as error:
            raise EncoderError(
                f"{path.name} in {path.parent.name} is no whole safetensors file ({type(error).__name__}); "
                "check that the folder is whole"
            ) from error
        self._entries = entries

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all tensors of floating-point numbers that can be read."""
        return {name: entry.shape for name, entry in self._entries.items() if entry.kind in READ}

    def read(self, name: str) -> Matrix:
        """Return a tensor in float32; one that is stored so stays where it is in the file."""
        entry = self._entries[name]
        raw = self._data[entry.start : entry.stop]
        if entry.kind == "BF16":  # the upper half of a float32
            halves = np.frombuffer(raw, "<u2").astype(np.uint32) << 16
            return halves.view(np.float32).reshape(entry.shape)
        return np.require(np.frombuffer(raw, READ[entry.kind]), np.float32, ["C", "A"]).reshape(entry.shape)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; a name that comes twice would hide a tensor."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _entries(header: dict[str, Any]) -> dict[str, Entry]:
    """Return what a header says, without the notes that may be in it."""
    notes = header.pop("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
        raise ValueError("the notes are no texts")
    return {name: _entry(value) for name, value in header.items()}


def _entry(value: object) -> Entry:
    """Return one tensor's place if kind, shape and place fit each other."""
    match value:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [start, stop], **rest} if not rest:
            numbers = (*shape, start, stop)
            counts = all(type(number) is int and number >= 0 for number in numbers)
            if counts and kind in SIZES and stop - start == SIZES[kind] * math.prod(shape):
                return Entry(kind, tuple(shape), start, stop)
    raise ValueError("a tensor's kind, shape and place do not fit each other")


def _check_places(entries: Mapping[str, Entry], size: int) -> None:
    """Refuse tensors that overlap, leave holes or do not end where the file does."""
    end = 0
    for entry in sorted(entries.values(), key=lambda entry: (entry.start, entry.stop)):
        if entry.start != end:
            raise ValueError("tensors overlap or leave holes")
        end = entry.stop
    if end != size:
        raise ValueError("the tensors are not as long as the file")
