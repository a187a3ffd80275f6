"""x ↦ x·W + b: the products that nearly all of a sentence's time goes to.

On a processor reduced precision is a matter of products alone: x and W are
rounded for them, and what comes out is as precise as x was again. oneDNN brings W
into the order that its kernels for bfloat16 read; here this is done once, for as
many rows as every batch has, and not in every product.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear


class Product(NamedTuple):
    """W and b, and W in the order of oneDNN's kernels."""

    weight: Tensor  # in the precision of the product
    bias: Tensor  # in that of what goes in and comes out
    ordered: Tensor | None  # None where torch's own product is taken


def multiplied(x: Tensor, product: Product) -> Tensor:
    """Return x·W + b in the precision of x, which may have any number of rows."""
    if x.dtype == product.weight.dtype:
        return _multiplied(x, product, product.bias)
    rounded = _multiplied(x.to(product.weight.dtype), product, None)
    return rounded.to(x.dtype).add_(product.bias)


def _multiplied(x: Tensor, product: Product, bias: Tensor | None) -> Tensor:
    """Return x·W + b by the kernels that W is in order for."""
    ordered = product.ordered
    if ordered is None:
        return linear(x, product.weight, bias)
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, ordered, bias, "none", [], "")  # noqa: SLF001
    return found


def product_with(weight: Tensor, bias: Tensor, rows: int) -> Product:
    """Return x ↦ x·W + b, at its fastest for x of so many rows.

    Args:
        weight: W, (out, in), as torch keeps it, in the precision of the product.
        bias: b, (out,), in the precision of x.
        rows: how many x has as a rule.
    """
    on_processor = weight.device.type == "cpu" and weight.dtype == torch.bfloat16
    return Product(weight, bias, _ordered(weight, rows) if on_processor and has_kernels() else None)


def has_kernels() -> bool:
    """Say whether oneDNN multiplies in bfloat16 here; torch does not promise these names."""
    names = ("_linear_pointwise", "_reorder_linear_weight", "_is_mkldnn_bf16_supported")
    known = all(hasattr(torch.ops.mkldnn, name) for name in names)
    return known and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001


def _ordered(weight: Tensor, rows: int) -> Tensor:
    """Bring W into order on one thread, as batches run on one: kernels are fastest where both agree."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        ordered: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, rows)  # noqa: SLF001
        return ordered
    finally:
        torch.set_num_threads(threads)
