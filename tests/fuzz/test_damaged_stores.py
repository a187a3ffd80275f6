"""Damaged stores: what is read is right or missing, or the store is refused; nothing else happens."""

import numpy as np

from budgets import budget, seeded
from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError

HASHING = load_encoder("hashing")
PRINT = HASHING.fingerprint
TEXTS = [f"sentence {number}" for number in range(60)]
KINDS = ("flips", "cut", "zeros", "noise", "copied", "pages")


def damaged(data, rng):
    """Return the bytes of a store with one damage; its first bytes, which SQLite checks, are spared."""
    data, kind = bytearray(data), rng.choice(KINDS)
    at, length = rng.randrange(100, len(data)), rng.choice((1, 4, 60, 600))
    if kind == "flips":
        for _ in range(rng.choice((1, 1, 1, 20))):
            data[rng.randrange(100, len(data))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[at:]
    elif kind == "copied":
        start = rng.randrange(100, len(data))
        data[at : at + length] = data[start : start + length]
    elif kind == "pages":
        one, two = (4096 * rng.randrange(1, len(data) // 4096) for _ in range(2))
        data[one : one + 4096] = data[two : two + 4096]
    else:
        data[at : at + length] = bytes(length) if kind == "zeros" else rng.randbytes(length)
    return bytes(data)


def test_a_damaged_store_gives_right_vectors_or_none(tmp_path):
    """Each vector that is read is the right one; what is missing can be written, or the store is refused."""
    rng, path, vectors = seeded("damaged stores"), tmp_path / "s.sqlite", HASHING.encode(TEXTS)
    SentenceStore(path).write(PRINT, TEXTS, vectors)
    whole, expected = path.read_bytes(), dict(zip(TEXTS, vectors, strict=True))
    refused = short = 0
    for _ in range(budget(60, 5000)):
        for left in tmp_path.iterdir():
            left.unlink()
        path.write_bytes(damaged(whole, rng))
        try:
            store = SentenceStore(path)
            found = store.read(PRINT, TEXTS)
            for text, vector in found.items():
                np.testing.assert_array_equal(vector, expected[text])
            short += len(found) < len(TEXTS)
            store.write(PRINT, TEXTS, vectors)
        except BadInputError as error:
            assert "it is only a cache: delete it" in str(error)  # noqa: PT017
            refused += 1
    assert refused > 0
    assert short > 0
