"""A deterministic n-gram encoder for tests: no weights, no meaning."""

from collections import defaultdict
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from tabon.encoders.protocol import EncoderFingerprint, Matrix

DIMENSION = 256
LONGEST = 24  # characters of a word whose place is remembered


def _row(sentence: str) -> Matrix:
    """Count words and character trigrams into signed columns; unit norm."""
    words = sentence.lower().split()
    padded = f"  {' '.join(words)} "
    counts = defaultdict(float, {0: 1e-3})  # never the zero vector, whatever the text
    place = _place if max(map(len, words), default=0) > LONGEST else _known_place
    for column, sign in map(place, [*words, *(padded[i : i + 3] for i in range(len(padded) - 2))]):
        counts[column] += sign
    row = np.zeros(DIMENSION)
    row[list(counts)] = list(counts.values())
    return (row / np.linalg.norm(row)).astype(np.float32)


def _place(ngram: str) -> tuple[int, float]:
    """Return the column of an n-gram and its sign there."""
    digest = blake2b(ngram.encode("utf-8", "replace"), digest_size=4).digest()
    number = int.from_bytes(digest, "little")
    return (number >> 1) % DIMENSION, 1.0 if number & 1 else -1.0


_known_place = lru_cache(maxsize=1 << 16)(_place)


class HashingEncoder:
    """Signed feature hashing of words and character trigrams."""

    fingerprint = EncoderFingerprint(
        encoder="hashing",
        revision="1",
        weights="none",
        settings="none",
        dimension=DIMENSION,
        max_tokens=0,
        precision="float32",
        batching="one by one",
    )

    def encode(self, sentences: list[str], /) -> Matrix:
        """Return one unit row per sentence.

        >>> HashingEncoder().encode(["Clear lungs.", "Clear lungs."]).shape
        (2, 256)
        """
        return np.stack([_row(sentence) for sentence in sentences])
