"""Embeddings of the sentences seen last, in memory: a row depends on its sentence alone."""

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import Final

import numpy as np

from tabon.encoders.protocol import Encoder, EncoderFingerprint, Matrix

LONGEST: Final = 1000  # characters of a sentence that is remembered: rows bound the memory only so


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
            if len(known) == 0 and len(new) == len(sentences):
                self._keep(new, rows)
                return rows
            known |= dict(zip(new, rows, strict=True))
            self._keep(new, rows)
        return np.stack([known[text] for text in sentences])

    def forget(self, sentences: Iterable[str]) -> None:
        """Drop some sentences, so that they are encoded anew."""
        with self._lock:
            for text in sentences:
                self._known.pop(text, None)

    def _keep(self, sentences: list[str], rows: Matrix) -> None:
        """Remember copies of rows, and forget the oldest."""
        with self._lock:
            for text, row in zip(sentences, rows, strict=True):
                if len(text) <= LONGEST:
                    self._known[text] = np.array(row)
            while self._rows is not None and len(self._known) > self._rows:
                self._known.popitem(last=False)
