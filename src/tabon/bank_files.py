"""The bank's file: one file that is whole or refused.

    magic (8) | header length (8, little endian) | header (JSON) | sha256 of all that (32) | blobs

The header names each blob's type, shape, place and sha256. Blobs lie end to end,
each filled up with zeros to a multiple of 64 bytes, fill included in its sum; the
file ends where the last one ends. So every byte is covered by some check.
Writing goes to a temporary name, is synced, and takes its name in one step: a
reader sees the old file or the new one. Nothing in it is ever executed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.atomic_files import replacing
from tabon.errors import BadInputError, BankDamagedError

MAGIC = b"TABONBK1"
ALIGNMENT = 64
MAX_HEADER = 1 << 24
DTYPES = frozenset({"<f4", "<i8", "|u1"})

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class BankFile:
    """A bank as it lies on disk: facts, arrays (memory-mapped), and the sum over both."""

    facts: Mapping[str, Any]
    arrays: Arrays
    sha256: str


def bank_file(facts: Mapping[str, Any], arrays: Arrays) -> BankFile:
    """Return a bank as it would lie on disk, with its sum."""
    return BankFile(facts, arrays, _head(facts, arrays)[-32:].hex())


def write_bank_file(path: Path, file: BankFile) -> None:
    """Write a bank file in one step; on failure the old file stays."""
    with replacing(path) as out:
        out.write(_head(file.facts, file.arrays))
        for array in file.arrays.values():
            out.write(_padded(array))


def read_bank_file(path: Path, *, verify: bool = True) -> BankFile:
    """Open a bank file; with `verify`, every byte is checked before anything is used."""
    try:
        data = np.memmap(path, dtype=np.uint8, mode="r")
    except FileNotFoundError:
        raise BadInputError(f"there is no bank at {path}; make one with `tabon bank build`") from None
    except (ValueError, OSError) as error:
        raise BankDamagedError(path, f"it cannot be opened ({type(error).__name__})") from error
    header, start, digest = _read_head(path, data)
    arrays = _read_blobs(path, data, header, start, verify=verify)
    return BankFile(header["facts"], arrays, digest)


def _padded(array: NDArray[Any]) -> bytes:
    """Return an array's bytes, filled up to the alignment."""
    data = np.ascontiguousarray(array).tobytes()
    return data + bytes(-len(data) % ALIGNMENT)


def _entry(name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Describe one blob."""
    data = _padded(array)
    digest = sha256(data).hexdigest()
    return {
        "name": name,
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "length": len(data),
        "sha256": digest,
    }


def _head(facts: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Lay out everything before the first blob."""
    entries = [_entry(name, array) for name, array in arrays.items()]
    header = json.dumps({"blobs": entries, "facts": facts}, sort_keys=True).encode()
    header += b" " * (-(len(MAGIC) + 8 + len(header) + 32) % ALIGNMENT)
    head = MAGIC + len(header).to_bytes(8, "little") + header
    return head + sha256(head).digest()


def _read_head(path: Path, data: NDArray[np.uint8]) -> tuple[dict[str, Any], int, str]:
    """Return the header, where the blobs start, and the header's sum."""
    if bytes(data[:8]) != MAGIC:
        raise BankDamagedError(path, "it does not begin like one")
    length = int.from_bytes(bytes(data[8:16]), "little")
    if length > MAX_HEADER or 16 + length + 32 > len(data):
        raise BankDamagedError(path, f"its header is cut off at {len(data)} bytes")
    end = 16 + length
    digest = sha256(data[:end].data).digest()
    if digest != bytes(data[end : end + 32]):
        raise BankDamagedError(path, "its header was changed")
    return json.loads(bytes(data[16:end])), end + 32, digest.hex()


def _read_blobs(
    path: Path, data: NDArray[np.uint8], header: dict[str, Any], start: int, *, verify: bool
) -> Arrays:
    """Return the arrays as views of the file."""
    if start + sum(entry["length"] for entry in header["blobs"]) != len(data):
        raise BankDamagedError(path, f"it has {len(data)} bytes, its header speaks of another length")
    arrays: dict[str, NDArray[Any]] = {}
    for entry in header["blobs"]:
        blob = data[start : start + entry["length"]]
        if verify and sha256(blob.data).hexdigest() != entry["sha256"]:
            raise BankDamagedError(path, f"its part {entry['name']!r} was changed")
        if entry["dtype"] not in DTYPES:
            raise BankDamagedError(path, f"its part {entry['name']!r} has an unknown type")
        dtype = np.dtype(entry["dtype"])
        size = int(np.prod(entry["shape"], dtype=np.int64)) * dtype.itemsize
        arrays[entry["name"]] = blob[:size].view(dtype).reshape(entry["shape"])
        start += entry["length"]
    return arrays
