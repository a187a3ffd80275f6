"""An on-disk store of sentence embeddings: once per sentence and machine.

Vectors can be turned back into text by an attacker, so the file is the owner's
alone. A damaged row is made anew.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from tabon._internal.blob_store import BlobStore
from tabon.encoders import EncoderFingerprint
from tabon.encoders.protocol import Matrix


def sentence_key(fingerprint: EncoderFingerprint, sentence: str) -> bytes:
    """Return the key of one sentence under one encoder."""
    text = repr(fingerprint).encode() + b"\0" + sentence.encode("utf-8", "surrogatepass")
    return sha256(text).digest()


class SentenceStore:
    """Embeddings on disk, found by encoder fingerprint and text."""

    def __init__(self, path: Path) -> None:
        """Open or create the store."""
        self._blobs = BlobStore(path, table="embeddings", what="sentence store", option="--store")

    @property
    def path(self) -> Path:
        """Return where it lies."""
        return self._blobs.path

    def read(self, fingerprint: EncoderFingerprint, sentences: Sequence[str]) -> dict[str, Matrix]:
        """Return the vectors that are there, by sentence."""
        keys = {sentence_key(fingerprint, sentence): sentence for sentence in sentences}
        size = 4 * fingerprint.dimension
        return {
            keys[key]: np.frombuffer(vector, dtype="<f4")
            for key, vector in self._blobs.read(list(keys)).items()
            if len(vector) == size
        }

    def write(self, fingerprint: EncoderFingerprint, sentences: Sequence[str], vectors: Matrix) -> None:
        """Add vectors; when this returns they are on disk."""
        self._blobs.write(
            (sentence_key(fingerprint, sentence), row.astype("<f4").tobytes())
            for sentence, row in zip(sentences, vectors, strict=True)
        )
