"""Sentence embeddings that are kept: on disk, once per sentence and machine, and in memory.

Vectors can be turned back into text by an attacker, so the file is the owner's
alone. A damaged row is made anew.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from tabon._internal.blob_store import BlobStore
from tabon.encoders.protocol import Encoder, EncoderFingerprint, Matrix

LONGEST: Final = 1000  # characters of a sentence that is remembered: rows bound the memory only so


def sentence_key(fingerprint: EncoderFingerprint, sentence: str) -> bytes:
    """Return the key of one sentence under one encoder."""
    text = repr(fingerprint).encode() + b"\0" + sentence.encode("utf-8", "surrogatepass")
    return sha256(text).digest()


class SentenceStore:
    """Embeddings on disk, found by encoder fingerprint and text; what is embedded once is not again.

    Args:
        path: the file, which is made where there is none; it holds vectors that can be turned back into text.

    >>> from tempfile import TemporaryDirectory
    >>> from tabon.encoders import load_encoder
    >>> encoder = load_encoder("hashing")
    >>> with TemporaryDirectory() as folder:
    ...     store = SentenceStore(Path(folder) / "sentences.sqlite")
    ...     store.write(encoder.fingerprint, ["Clear."], encoder.encode(["Clear."]))
    ...     list(store.read(encoder.fingerprint, ["Clear.", "Mass."]))
    ['Clear.']
    """

    def __init__(self, path: str | Path) -> None:
        """Open or create the store."""
        self._blobs = BlobStore(Path(path), table="embeddings", what="sentence store", option="--store")

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


class CachingEncoder:
    """An encoder that remembers; the oldest sentences are forgotten first."""

    def __init__(self, encoder: Encoder, rows: int | None = None) -> None:
        """Remember up to `rows` sentences; all where no number is given."""
        self._encoder, self._rows, self._lock = encoder, rows, Lock()
        self._known: OrderedDict[str, Matrix] = OrderedDict()
        self.hits = self.misses = 0
        if hasattr(encoder, "chunk"):
            self.chunk = encoder.chunk

    @property
    def fingerprint(self) -> EncoderFingerprint:
        """Return the fingerprint of the encoder inside."""
        return self._encoder.fingerprint

    def __len__(self) -> int:
        """Count the sentences that are remembered."""
        return len(self._known)

    def encode(self, sentences: list[str], /) -> Matrix:
        """Return one row per sentence; only those not remembered are encoded."""
        with self._lock:
            known = {text: self._known[text] for text in sentences if text in self._known}
            for text in known:
                self._known.move_to_end(text)
        new = [text for text in dict.fromkeys(sentences) if text not in known]
        self.hits += len(sentences) - len(new)
        self.misses += len(new)
        if new:
            rows = self._encoder.encode(new)
            with self._lock:
                for text, row in zip(new, rows, strict=True):
                    if len(text) <= LONGEST:
                        self._known[text] = np.array(row)
                while self._rows is not None and len(self._known) > self._rows:
                    self._known.popitem(last=False)
            if len(new) == len(sentences):
                return rows
            known |= dict(zip(new, rows, strict=True))
        return np.stack([known[text] for text in sentences])

    def forget(self, sentences: Iterable[str]) -> None:
        """Drop some sentences, so that they are encoded anew."""
        with self._lock:
            for text in sentences:
                self._known.pop(text, None)
