"""The layers of BERT and MPNet as one function of a batch, which torch can run without Python.

Threads that run batches side by side, on processors or on a GPU, would wait for each
other at Python's lock, a dozen times a layer. TorchScript runs the same operations in the same order
without it, to the same bits. So this is written in the part of Python that
TorchScript reads.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias, cast

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from tabon.encoders.torch_engine.products import Product, multiplied

REGISTER = 16  # float32 numbers in a register of AVX-512


class Norm(NamedTuple):
    """Layer normalisation."""

    weight: Tensor
    bias: Tensor
    epsilon: float


class Layer(NamedTuple):
    """One transformer layer."""

    query_key_value: Product
    attended: Product
    attention_norm: Norm
    up: Product
    down: Product
    output_norm: Norm


class Span(NamedTuple):
    """Where sentences of one length lie in a batch, and what MPNet adds to their scores."""

    start: int
    sentences: int
    length: int
    bias: Tensor | None


Through: TypeAlias = Callable[[Tensor, list[Layer], list[Span], int], Tensor]


def through_layers(x: Tensor, layers: list[Layer], spans: list[Span], heads: int) -> Tensor:
    """Run all layers on (tokens, d), which is lost."""
    for layer in layers:
        attended = _attended(multiplied(x, layer.query_key_value), spans, heads)
        x = _normed(x.add_(multiplied(attended, layer.attended)), layer.attention_norm)
        inside = torch.ops.aten.gelu_(multiplied(x, layer.up))
        x = _normed(x.add_(multiplied(inside, layer.down)), layer.output_norm)
    return x


def _attended(projected: Tensor, spans: list[Span], heads: int) -> Tensor:
    """Return softmax(q·k/√d + bias)·v of every head, within each sentence; q comes divided by √d.

    Factors are contiguous for one sentence too, where torch would leave them as they lie: bits depend on it.
    """
    attended = projected.new_empty([projected.shape[0], projected.shape[1] // 3])
    for span in spans:
        tokens = span.sentences * span.length
        split = projected.narrow(0, span.start, tokens).view(span.sentences, span.length, 3, heads, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.matmul(q.contiguous(), k.transpose(-1, -2).contiguous())
        bias = span.bias
        if bias is not None:
            scores += bias
        out = attended.narrow(0, span.start, tokens).view(span.sentences, span.length, heads, -1)
        out.transpose(1, 2).copy_(torch.matmul(softmax(scores), v.contiguous()))
    return attended


def softmax(scores: Tensor, register: int = REGISTER) -> Tensor:
    """Return the softmax of each row; torch's own is slow on a processor where a row fills no register."""
    if scores.is_cuda or scores.shape[-1] >= register:
        return scores.softmax(dim=-1)
    weights = scores.sub_(scores.amax(dim=-1, keepdim=True)).exp_()
    return weights.div_(weights.sum(dim=-1, keepdim=True))


def _normed(x: Tensor, norm: Norm) -> Tensor:
    """Return layer-normalised rows."""
    return layer_norm(x, [x.shape[-1]], norm.weight, norm.bias, norm.epsilon)


@cache
def without_python() -> Through:
    """Return `through_layers` as TorchScript; as it is where torch cannot, or its deprecation is an error."""
    try:
        return cast("Through", torch.jit.script(through_layers))
    except (AttributeError, OSError, RuntimeError, DeprecationWarning):
        return through_layers
