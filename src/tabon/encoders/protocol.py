"""What an encoder is, what identifies it, what it may return, and where it runs.

Reduced precision is only had where the hardware computes in it, and never by
default: a bank and its queries are embedded in one precision, or refused.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol, runtime_checkable
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon._internal.registry import check_name
from tabon.errors import EncoderError

Matrix = NDArray[np.float32]

UNIT_TOLERANCE = 1e-3
PROBES = (
    "The lungs are clear.",
    "New right pleural effusion.",
    "Stable mild cardiomegaly since the prior study.",
)
PROBE_DECIMALS = 3
PRECISIONS = ("float32", "bfloat16", "float16")
SETTINGS = ("device", "precision")


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
        """Return one unit row per sentence, in a new array; a row depends on its sentence alone."""


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


@dataclass(frozen=True, slots=True)
class Placement:
    """A device and a precision."""

    device: str = "cpu"  # cpu, cuda, cuda:1, or cuda:all
    precision: str = "float32"

    @classmethod
    def of(cls, query: str) -> "Placement":
        """Read what follows the question mark of an encoder's name.

        >>> Placement.of("device=cuda&precision=float16")
        Placement(device='cuda', precision='float16')
        """
        settings = dict(parse_qsl(query, keep_blank_values=True))
        for name in settings:
            check_name("setting of an encoder", SETTINGS, name)
        placement = cls(**settings)
        check_name("precision", PRECISIONS, placement.precision)
        return placement

    def placed(self, model: Any, devices: Sequence[str]) -> Iterator[Any]:  # noqa: ANN401
        """Yield the model on each device, or a copy where a device or a precision is one more."""
        for number, device in enumerate(devices):
            copy = deepcopy(model) if number or self.precision != "float32" else model
            yield copy.to(device=device).eval()


def devices_of(placement: Placement) -> tuple[str, ...]:
    """Return the devices that a placement names; refuse what this machine does not have."""
    torch = require("torch", extra="torch", feature="torch")
    if placement.device == "cpu":
        if placement.precision != "float32":
            _check_processor(torch, placement.precision)
        return ("cpu",)
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    known: dict[str, tuple[str, ...]] = {f"cuda:{n}": (f"cuda:{n}",) for n in range(count)}
    if count:
        known |= {"cuda": ("cuda:0",), "cuda:all": tuple(known)}
    if placement.device not in known:
        others = f", or one of {', '.join(known)}" if known else ""
        raise EncoderError(
            f"device {placement.device!r} is not on this machine, which has {count} CUDA devices; use "
            f"device=cpu{others}"
        )
    return known[placement.device]


def _check_processor(torch: Any, precision: str) -> None:  # noqa: ANN401
    """Refuse a precision that the processor would only imitate."""
    flags = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    wanted = {"bfloat16": ("avx512_bf16", "amx_bf16", "bf16"), "float16": ("avx512_fp16", "amx_fp16", "fp16")}
    if not any(flags.get(flag) for flag in wanted[precision]):
        raise EncoderError(
            f"this processor has no {precision} arithmetic, so it would only be slower and less exact; "
            "leave precision out, or ask a bank that was made in it on a machine that has it"
        )
