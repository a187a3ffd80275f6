"""Damaged model folders: refused in one sentence, or loaded and good for unit rows; never a traceback."""

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from budgets import budget, seeded
from tabon.encoders import checked_rows, load_encoder
from tabon.errors import TabonError
from tiny_mpnet_folder import SENTENCES, tiny_mpnet

ODD = (None, True, -1, 0, 3, 100, 1.5, float("nan"), "", "x", "evil.Evil", "../x", [], {}, [0], {"a": "b"})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A tiny model with a Dense module."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    folder = tiny_mpnet(tmp_path_factory.mktemp("models") / "mpnet")
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    model.append(modules.Dense(16, 8))
    model.save(str(folder.parent / "whole"))
    return folder.parent / "whole"


def flipped(data, rng):
    """Change some bytes."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 5, 50])):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found)


def cut(data, rng):
    """Lose the end, or get another one."""
    return data[: rng.randrange(len(data))] + rng.randbytes(rng.choice([0, 0, 9]))


def odd_value(data, rng):
    """Change, drop or rename one value of a JSON text, at any depth."""
    content = json.loads(data)
    places = [
        (inner, key)
        for inner in containers(content)
        for key in (list(inner) if isinstance(inner, dict) else range(len(inner)))
    ]
    if not places:
        return b"[]"
    inner, key = rng.choice(places)
    if isinstance(inner, dict) and rng.random() < 0.2:
        del inner[key]
    else:
        inner[key] = rng.choice(ODD)
    return json.dumps(content).encode()


def containers(value):
    """Yield every list and object in a JSON value."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)


def odd_header(data, rng):
    """Change the header of a safetensors file and keep its length right."""
    (length,) = struct.unpack("<Q", data[:8])
    header = rng.choice([odd_value, flipped])(data[8 : 8 + length], rng)
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


def damaged(folder, rng):
    """Damage one file of a folder."""
    path = rng.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"))
    kinds = {".json": (odd_value, odd_value, flipped, cut), ".safetensors": (odd_header, flipped, cut)}
    damage = rng.choice(kinds.get(path.suffix, (flipped, cut)))
    path.write_bytes(damage(path.read_bytes(), rng))
    return f"{damage.__name__} {path.relative_to(folder)}"


def refusal(folder):
    """Load a folder and encode with it; return the message if it is refused."""
    try:
        encoder = load_encoder(folder)
        texts = [*SENTENCES, "word " * 300, "lungs " * 300]
        checked_rows(encoder.encode(texts), len(texts), encoder.fingerprint.dimension)
    except TabonError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore")
def test_a_damaged_model_folder_is_refused_or_whole(whole, tmp_path):
    """Bytes, headers and settings of any file: a `TabonError` of one line, or rows that pass the check."""
    rng, refused = seeded("damaged models"), 0
    for case in range(budget(40, 2000)):
        folder = Path(shutil.copytree(whole, tmp_path / f"model-{case}"))
        what = damaged(folder, rng)
        try:
            message = refusal(folder)
        except BaseException as error:
            raise AssertionError(f"case {case}: {what} ended in {type(error).__name__}") from error
        refused += bool(message)
        assert len(message) < 500, what
        assert "\n" not in message, what
        shutil.rmtree(folder)
    assert refused


@pytest.mark.filterwarnings("ignore")
def test_rows_of_two_loads_of_a_damaged_folder_are_equal(whole, tmp_path):
    """What loads has one fingerprint and one row a sentence: nothing is filled with random numbers."""
    rng = seeded("twice the same model")
    for case in range(budget(10, 300)):
        folder = Path(shutil.copytree(whole, tmp_path / f"model-{case}"))
        what = damaged(folder, rng)
        try:
            first, second = (load_encoder(folder).encode(SENTENCES) for _ in range(2))
        except TabonError:
            continue
        np.testing.assert_array_equal(first, second, err_msg=what)
