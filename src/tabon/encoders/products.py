"""x ↦ x·W + b: the products that nearly all of a sentence's time goes to.

MKL brings W into the order that its kernels read each time it multiplies, which
for a few hundred rows is a tenth of the time. Where torch has MKL this is done
once here, for as many rows as every batch has.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from tabon._extras import require

Tensor: TypeAlias = Any  # torch.Tensor, an optional import
Product: TypeAlias = Callable[[Tensor], Tensor]


def product_with(weight: Tensor, bias: Tensor, rows: int) -> Product:
    """Return the fastest way to x·W + b for x of so many rows; it takes any other number too.

    Args:
        weight: W, (out, in), as torch keeps it.
        bias: b, (out,).
        rows: how many x has as a rule.
    """
    torch = require("torch", extra="minilm", feature="torch")
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not _packs(torch):
        return partial(torch.nn.functional.linear, weight=weight, bias=bias)
    packed, multiply = _packed(torch, weight, rows), torch.ops.mkl._mkl_linear  # noqa: SLF001
    return lambda x: multiply(x, packed, weight, bias, rows)


def _packed(torch: Any, weight: Tensor, rows: int) -> Tensor:  # noqa: ANN401
    """Bring W into MKL's order on one thread, as batches run on one: MKL is fastest where both agree."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return torch.ops.mkl._mkl_reorder_linear_weight(weight, rows)  # noqa: SLF001
    finally:
        torch.set_num_threads(threads)


def _packs(torch: Any) -> bool:  # noqa: ANN401  # a module
    """Say whether this torch can keep a matrix in MKL's order; these names are not promised by it."""
    return hasattr(torch.ops.mkl, "_mkl_reorder_linear_weight") and hasattr(torch.ops.mkl, "_mkl_linear")
