"""A deterministic n-gram encoder for tests: no weights, no meaning."""

from functools import lru_cache
from hashlib import blake2b
from itertools import chain

import numpy as np

from tabon.encoders.protocol import EncoderFingerprint, Matrix

DIMENSION = 256
LONGEST = 24  # characters of a word whose place is remembered
START = 2 * DIMENSION  # the place of what every sentence has, so that no row is the zero vector
SHARES = np.array([-1.0, 1.0] * DIMENSION + [1e-3])  # of each place, in column place // 2


def _places(sentence: str) -> list[int]:
    """Return the place of each word and character trigram."""
    words = sentence.lower().split()
    padded = f"  {' '.join(words)} "
    place = _place if max(map(len, words), default=0) > LONGEST else _known_place
    return [START, *map(place, words), *map(_known_place, padded, padded[1:], padded[2:])]


def _place(*parts: str) -> int:
    """Return the column of an n-gram and its sign there, as one number."""
    digest = blake2b("".join(parts).encode("utf-8", "replace"), digest_size=4).digest()
    return int.from_bytes(digest, "little") % START


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
        found = [_places(sentence) for sentence in sentences]
        places = np.fromiter(chain.from_iterable(found), dtype=np.int64)
        begins = np.repeat(np.arange(len(found)) * DIMENSION, list(map(len, found)))
        columns = begins + places // 2 % DIMENSION
        rows = np.bincount(columns, SHARES[places], len(found) * DIMENSION).reshape(-1, DIMENSION)
        units: Matrix = (rows / np.sqrt(np.vecdot(rows, rows))[:, None]).astype(np.float32)
        return units
