"""Where a model runs and in which precision: `NAME?device=cuda&precision=float16`.

Reduced precision is only had where the hardware computes in it, and never by
default: a bank and its queries are embedded in one precision, or refused.
"""

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from tabon._internal.extras import require
from tabon._internal.registry import check_name
from tabon.encoders.protocol import Matrix
from tabon.errors import EncoderError

PRECISIONS = ("float32", "bfloat16", "float16")
SETTINGS = ("device", "precision")


@dataclass(frozen=True, slots=True)
class Placement:
    """A device and a precision."""

    device: str = "cpu"  # cpu, cuda, cuda:1, or cuda:all
    precision: str = "float32"

    @classmethod
    def of(cls, query: str) -> "Placement":
        """Read what stands behind the question mark of an encoder's name.

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


def cosine_error(reduced: Matrix, exact: Matrix) -> str:
    """Return the power of ten above the worst 1 - cosine of two sets of unit rows.

    >>> cosine_error(np.array([[1.0, 0.0]]), np.array([[0.99997, 0.00775]]))
    '1e-04'
    """
    cosine = np.einsum("nd,nd->n", reduced.astype(np.float64), exact.astype(np.float64))
    worst = max(float(1.0 - cosine.min()), 1e-9)
    return f"{10.0 ** math.ceil(math.log10(worst)):.0e}"


PROBES = [
    "The lungs are clear.",
    "No pleural effusion or pneumothorax.",
    "New right pleural effusion.",
    "Stable mild cardiomegaly since the prior study.",
    "Interval removal of the right internal jugular central venous catheter.",
    "Patchy opacity in the left lower lobe, which may represent pneumonia or atelectasis.",
    "Endotracheal tube tip is 4.5 cm above the carina.",
    "Normal.",
]
