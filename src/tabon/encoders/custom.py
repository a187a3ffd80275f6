"""Any object with `encode`, made into an encoder that has a fingerprint."""

from hashlib import sha256

import numpy as np

from tabon.encoders.protocol import EncoderFingerprint, Matrix, SentenceEncoder, as_matrix
from tabon.errors import EncoderError

PROBES = (
    "The lungs are clear.",
    "New right pleural effusion.",
    "Stable mild cardiomegaly since the prior study.",
)
PROBE_DECIMALS = 3


def _unit_rows(rows: object) -> Matrix:
    """Return float32 rows of unit norm; a zero row is left as it is and refused later."""
    matrix = as_matrix(rows)
    if matrix.ndim != 2:  # noqa: PLR2004  # rows and columns
        raise EncoderError(
            f"encode returned an array of {matrix.ndim} dimensions; return one row per sentence"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # NaN and infinity are refused later
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        return np.divide(matrix, np.where(norms == 0.0, 1.0, norms), dtype=np.float32)


class CustomEncoder:
    """Wraps a user's object; sentences go in one by one, so a row depends on its sentence alone."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        """Ask the object for three probe sentences: they name it and give its dimension."""
        self._encoder = encoder
        probes = self.encode(list(PROBES))
        rounded = np.round(probes, PROBE_DECIMALS) + 0.0  # no negative zero
        self.fingerprint = EncoderFingerprint(
            encoder=f"object:{type(encoder).__qualname__}",
            revision="local",
            weights=f"probe:{sha256(rounded.astype('<f4').tobytes()).hexdigest()}",
            settings="none",
            dimension=probes.shape[1],
            max_tokens=0,
            precision="float32",
            batching="one by one",
        )

    def encode(self, sentences: list[str], /) -> Matrix:
        """Return one unit row per sentence."""
        rows = [_unit_rows(self._encoder.encode([sentence])) for sentence in sentences]
        widths = {row.shape for row in rows}
        if len(widths) != 1 or rows[0].shape[0] != 1:
            raise EncoderError(
                f"encode returned shapes {sorted(widths)} for single sentences; "
                "return one row of one width per sentence"
            )
        return np.concatenate(rows)
