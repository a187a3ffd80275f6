"""Sentence encoders E_φ (eq. 1): one unit vector per sentence.

An encoder is anything with `encode(list[str])`. What tabon adds is a
fingerprint that travels with every bank, and vectors that do not depend on
which sentences are encoded together.
"""

from tabon.encoders.load import ENCODERS, load_built_in, load_encoder
from tabon.encoders.protocol import Encoder, EncoderFingerprint, SentenceEncoder, checked_rows

__all__ = [
    "ENCODERS",
    "Encoder",
    "EncoderFingerprint",
    "SentenceEncoder",
    "checked_rows",
    "load_built_in",
    "load_encoder",
]
