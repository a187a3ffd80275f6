"""x ↦ x·W + b: the products that nearly all of a sentence's time goes to.

A library that multiplies brings W into the order that its kernels read, each
time. Here this is done once, for as many rows as every batch has: by MKL on
Intel's processors and by oneDNN on AMD's, which is the faster of the two on each.

On a processor reduced precision is a matter of products alone: x and W are
rounded for them, and what comes out is as precise as x was again.
"""

import platform
from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.functional import linear

CPU_INFO = Path("/proc/cpuinfo")
NAMES = {  # where torch keeps an order's operations, which multiplies, and which brings W into it
    "mkl": ("mkl", "_mkl_linear", "_mkl_reorder_linear_weight"),
    "onednn": ("mkldnn", "_linear_pointwise", "_reorder_linear_weight"),
}


class Product(NamedTuple):
    """W and b, and W in the order of a library's kernels."""

    weight: Tensor  # in the precision of the product
    bias: Tensor  # in that of what goes in and comes out
    ordered: Tensor
    order: str  # "mkl" or "onednn" for so many rows; "" where `ordered` is W itself
    rows: int


def multiplied(x: Tensor, product: Product) -> Tensor:
    """Return x·W + b in the precision of x, which may have any number of rows."""
    if x.dtype == product.weight.dtype:
        return _multiplied(x, product, product.bias)
    rounded = _multiplied(x.to(product.weight.dtype), product, None)
    return rounded.to(x.dtype).add_(product.bias)


def _multiplied(x: Tensor, product: Product, bias: Tensor | None) -> Tensor:
    """Return x·W + b by the kernels that W is in order for."""
    if product.order == "mkl":
        found: Tensor = torch.ops.mkl._mkl_linear(  # noqa: SLF001
            x, product.ordered, product.weight, bias, product.rows
        )
    elif product.order == "onednn":
        found = torch.ops.mkldnn._linear_pointwise(x, product.ordered, bias, "none", [], "")  # noqa: SLF001
    else:
        found = linear(x, product.weight, bias)
    return found


def product_with(weight: Tensor, bias: Tensor, rows: int) -> Product:
    """Return x ↦ x·W + b, at its fastest for x of so many rows.

    Args:
        weight: W, (out, in), as torch keeps it, in the precision of the product.
        bias: b, (out,), in the precision of x.
        rows: how many x has as a rule.
    """
    order = _order_for(weight) if weight.device.type == "cpu" else ""
    return Product(weight, bias, _ordered(weight, order, rows), order, rows)


def _order_for(weight: Tensor) -> str:
    """Return whose kernels multiply W fastest on this processor; in bfloat16 only oneDNN has any."""
    if weight.dtype == torch.float32:
        return fastest_order()
    known = weight.dtype == torch.bfloat16 and _is_known("onednn")
    return "onednn" if known and torch.ops.mkldnn._is_mkldnn_bf16_supported() else ""  # noqa: SLF001


@cache
def fastest_order() -> str:
    """Return whose kernels multiply fastest here; "" on other processors, or where this torch lacks them."""
    order = {"GenuineIntel": "mkl", "AuthenticAMD": "onednn"}.get(_vendor(), "")
    return order if order and _is_known(order) else ""


def _is_known(order: str) -> bool:
    """Say whether this torch has both operations of an order; it does not promise these names."""
    space, *names = NAMES[order]
    return all(hasattr(getattr(torch.ops, space), name) for name in names)


def _vendor() -> str:
    """Return the processor's maker as it names itself; "" where it does not."""
    told = CPU_INFO.read_text(encoding="utf-8") if CPU_INFO.exists() else platform.processor()
    return next((name for name in ("GenuineIntel", "AuthenticAMD") if name in told), "")


def _ordered(weight: Tensor, order: str, rows: int) -> Tensor:
    """Bring W into an order on one thread, as batches run on one: kernels are fastest where both agree."""
    if not order:
        return weight
    space, _, reorder = NAMES[order]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return cast("Tensor", getattr(getattr(torch.ops, space), reorder)(weight, rows))
    finally:
        torch.set_num_threads(threads)
