"""What an encoder is, what identifies it, and what it may return."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tabon.errors import EncoderError

Matrix = NDArray[np.float32]

UNIT_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFingerprint:
    """All that makes two encoders the same encoder."""

    encoder: str  # the name it is loaded by
    revision: str  # the pinned revision, or "local"
    weights: str  # sha256 of the weights, or of its answers where weights cannot be seen
    settings: str  # sha256 of tokenizer, pooling and model settings
    dimension: int
    max_tokens: int  # longer sentences are cut there; 0 means never
    precision: str
    batching: str  # how sentences are put together; other batches give other last bits


@runtime_checkable
class SentenceEncoder(Protocol):
    """Any object with `encode`: what a user may bring."""

    def encode(self, sentences: list[str], /) -> Any:  # noqa: ANN401  # whatever numpy can read
        """Return one row per sentence."""


class Encoder(Protocol):
    """An encoder that tabon can put into a bank's fingerprint."""

    @property
    def fingerprint(self) -> EncoderFingerprint:
        """Return what identifies this encoder."""

    def encode(self, sentences: list[str], /) -> Matrix:
        """Return one unit row per sentence; a row depends on its sentence alone."""


def as_matrix(rows: Any) -> Matrix:  # noqa: ANN401
    """Return an encoder's answer as float32; what is not numbers is refused without quoting it."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError):
        raise EncoderError(
            "the encoder did not return rows of numbers; return one row of floats per sentence"
        ) from None


def checked_rows(rows: Any, count: int, dimension: int) -> Matrix:  # noqa: ANN401
    """Refuse what cannot be sentence embeddings, then return float32 rows.

    >>> checked_rows([[0.6, 0.8]], count=1, dimension=2).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    matrix = as_matrix(rows)
    if matrix.shape != (count, dimension):
        raise EncoderError(
            f"the encoder returned shape {matrix.shape} for {count} sentences, expected "
            f"{(count, dimension)}; check that it returns one row per sentence"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("nd,nd->n", matrix, matrix))
    if not np.isfinite(norms).all():
        raise EncoderError(
            f"the encoder returned NaN or infinity for {int((~np.isfinite(norms)).sum())} "
            f"of {count} sentences; check its weights and precision"
        )
    if np.abs(norms - 1.0).max(initial=0.0) > UNIT_TOLERANCE:
        raise EncoderError(
            f"the encoder returned rows of norm {norms.min():.3g} to {norms.max():.3g}, expected 1; "
            "normalise its output"
        )
    return matrix
