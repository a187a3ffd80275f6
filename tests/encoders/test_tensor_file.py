"""A safetensors file is read as the library reads it, or refused in one sentence."""

import json
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from budgets import budget, seeded
from tabon.encoders.processor.network import TensorFile
from tabon.errors import EncoderError

TENSORS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.linspace(-3, 3, 7, dtype=np.float16),
    "ids": np.arange(4),
    "none": np.zeros((0, 5), np.float32),
}
PLACE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.fixture
def path(tmp_path):
    """A file that the library wrote."""
    save_file(TENSORS, tmp_path / "model.safetensors", metadata={"format": "np"})
    return tmp_path / "model.safetensors"


def written(path, header, data=bytes(8)):
    """Write a file with this header."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + data)
    return path


def test_tensors_are_those_that_the_library_wrote(path):
    """Floats in float32, whatever they are stored in; whole numbers are no weights."""
    file = TensorFile(path)
    assert file.shapes() == {"a": (2, 3), "b": (7,), "none": (0, 5)}
    for name in file.shapes():
        found = file.read(name)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, TENSORS[name])


def test_bfloat16_is_the_upper_half_of_a_float(tmp_path):
    """As torch writes it."""
    import torch
    from safetensors.torch import save_file as save

    values = torch.tensor([1.0, -2.5, 3.14159, float("inf"), 0.0]).bfloat16()
    save({"x": values}, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        TensorFile(tmp_path / "model.safetensors").read("x"), values.float().numpy()
    )


def test_a_tensor_stays_where_it_is_in_the_file(path):
    """It is mapped, not copied; from a place that is no multiple of four bytes it is copied."""
    mapped = TensorFile(path).read("a")
    assert not mapped.flags.owndata
    assert not mapped.flags.writeable
    header = {"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    odd = written(path, json.dumps(header).encode() + b" ", np.float32(1.5).tobytes())
    if (odd.stat().st_size - 4) % 4 == 0:
        odd = written(path, json.dumps(header).encode() + b"  ", np.float32(1.5).tobytes())
    found = TensorFile(odd).read("x")
    assert (found.tolist(), found.flags.aligned) == ([1.5], True)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "a": {}}',
        {},
        {"a": 3},
        {"a": {**PLACE, "more": 1}},
        {"a": {**PLACE, "dtype": "F31"}},
        {"a": {**PLACE, "dtype": ["F32"]}},
        {"a": {**PLACE, "shape": [3]}},
        {"a": {**PLACE, "shape": 2}},
        {"a": {**PLACE, "shape": [-2]}},
        {"a": {**PLACE, "shape": [2.0]}},
        {"a": {**PLACE, "shape": [True, 2]}},
        {"a": {**PLACE, "shape": [1 << 62, 4]}},
        {"a": {**PLACE, "data_offsets": [0]}},
        {"a": {**PLACE, "data_offsets": [8, 0]}},
        {"a": {**PLACE, "data_offsets": [-8, 0]}},
        {"a": {**PLACE, "data_offsets": [4, 12]}},
        {"a": {**PLACE, "data_offsets": ["0", "8"]}},
        {"a": PLACE, "b": PLACE},
        {"a": {**PLACE, "shape": [1], "data_offsets": [0, 4]}},
        {"a": {**PLACE, "shape": [1], "data_offsets": [4, 8]}},
    ],
    ids=str,
)
def test_a_header_that_does_not_describe_its_file_is_refused(tmp_path, header):
    """Every field is checked; nothing outside of the file is read."""
    with pytest.raises(EncoderError, match="check that the folder is whole"):
        TensorFile(written(tmp_path / "model.safetensors", header))


@pytest.mark.parametrize("data", [b"", b"1234567", struct.pack("<Q", 1 << 63), struct.pack("<Q", 99) + b"{}"])
def test_a_file_that_is_cut_is_refused(tmp_path, data):
    """In its length, or in its header; a length of exabytes is not asked for."""
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(EncoderError, match="check that the folder is whole"):
        TensorFile(tmp_path / "model.safetensors")


def test_damaged_files_are_refused_or_hold_what_the_library_finds(path):
    """Some hundred headers with other bytes: one sentence, or the library's own tensors."""
    rng, whole = seeded("tensor file"), path.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    refused = 0
    for _ in range(budget(300, 3000)):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 1, 3])):
            damaged[rng.randrange(8 + length)] = rng.choice([rng.randrange(256), *b'{}[]",:0123456789FB'])
        cut = rng.randrange(len(damaged)) if rng.random() < 0.1 else len(damaged)
        path.write_bytes(damaged[:cut])
        try:
            file = TensorFile(path)
        except EncoderError:
            refused += 1
            continue
        theirs = load_file(path)
        for name in file.shapes():
            np.testing.assert_array_equal(file.read(name), theirs[name].astype(np.float32))
    assert refused > budget(100, 1000)
