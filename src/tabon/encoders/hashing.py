"""A deterministic n-gram encoder for tests: no weights, no meaning."""

from hashlib import blake2b

import numpy as np

from tabon.encoders.protocol import EncoderFingerprint, Matrix

DIMENSION = 256


def _row(sentence: str) -> Matrix:
    """Count words and character trigrams into signed columns; unit norm."""
    words = sentence.lower().split()
    padded = f"  {' '.join(words)} "
    row = np.zeros(DIMENSION)
    row[0] = 1e-3  # never the zero vector, whatever the text
    for ngram in [*words, *(padded[i : i + 3] for i in range(len(padded) - 2))]:
        digest = blake2b(ngram.encode("utf-8", "replace"), digest_size=4).digest()
        number = int.from_bytes(digest, "little")
        row[(number >> 1) % DIMENSION] += 1.0 if number & 1 else -1.0
    return (row / np.linalg.norm(row)).astype(np.float32)


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
