"""BERT and MPNet on a GPU: one kernel of Triton between two products, one CUDA graph for a batch's shape.

A row's bits depend on its sentence alone: a program of a kernel reads one sentence and one head, or one
token. Sums are float32; parity with the layers written out in `kernels` is tested where there is a GPU.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import linear

from tabon.encoders.tokens import Groups
from tabon.encoders.torch_engine.kernels import Layer, Norm, Span, WrittenOut, without_python

LONGEST = 128  # tokens of a sentence that one program holds; longer ones take the usual way
SHORTEST = 16  # rows of the smallest product on tensor cores
NUMBERS = 2048  # of GELU in one program


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """All kernels of one shape of batch, which the GPU starts by itself."""

    ids: Tensor  # where it reads
    spans: list[Span]
    rows: Tensor  # where it writes
    graph: torch.cuda.CUDAGraph


class OnGpu(WrittenOut):
    """BERT or MPNet with mean pooling; a shape that comes again becomes a graph."""

    def __init__(self, inner: Any, tokens: int, precision: str) -> None:  # noqa: ANN401  # Bert- or MPNetModel
        """Begin without graphs."""
        super().__init__(inner, tokens, precision)
        self._through = through_fused_layers
        self._graphs: dict[Groups, Graph | None] = {}
        self._pool, self._one_at_a_time = torch.cuda.graph_pool_handle(), Lock()

    def __call__(self, ids: Tensor, groups: Groups) -> Tensor:
        """Return one unit row per sentence."""
        with self._one_at_a_time, torch.cuda.device(ids.device):
            if groups not in self._graphs or any(group.length > LONGEST for group in groups):
                self._graphs[groups] = None
                return super().__call__(ids, groups)
            graph = self._graphs[groups] or self._captured(ids, groups)
            graph.ids.copy_(ids)
            graph.graph.replay()
            return graph.rows.clone()

    def _captured(self, ids: Tensor, groups: Groups) -> Graph:
        """Record the kernels of one shape; graphs run one after the other and share their memory."""
        read, spans, graph = ids.clone(), self.spans(groups), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            rows = self.rows(read, spans)
        found = self._graphs[groups] = Graph(read, spans, rows, graph)
        return found


def through_fused_layers(x: Tensor, layers: list[Layer], spans: list[Span], heads: int) -> Tensor:
    """Run all layers on (tokens, d), which is lost; long sentences take the usual way."""
    if any(span.length > LONGEST for span in spans):
        return without_python()(x, layers, spans, heads)
    for layer in layers:
        attended = _attended(
            linear(x, layer.query_key_value.weight, layer.query_key_value.bias), spans, heads
        )
        _add_and_norm(x, linear(attended, layer.attended.weight, layer.attended.bias), layer.attention_norm)
        inside = linear(x, layer.up.weight, layer.up.bias)
        _gelu[(triton.cdiv(inside.numel(), NUMBERS),)](inside, inside.numel(), NUMBERS)
        _add_and_norm(x, linear(inside, layer.down.weight, layer.down.bias), layer.output_norm)
    return x


def _attended(projected: Tensor, spans: list[Span], heads: int) -> Tensor:
    """Return softmax(q·k + bias)·v of every head, within each sentence; q comes divided by √d."""
    width = projected.shape[1] // 3
    attended = projected.new_empty([projected.shape[0], width])
    for start, sentences, length, bias in spans:
        rows = max(SHORTEST, triton.next_power_of_2(length))
        _attend[(sentences, heads)](
            projected[start:],
            projected if bias is None else bias.contiguous(),
            attended[start:],
            length,
            heads,
            width // heads,
            rows,
            bias is not None,
            num_warps=max(1, min(4, rows // SHORTEST)),
        )
    return attended


def _add_and_norm(x: Tensor, added: Tensor, norm: Norm) -> None:
    """Let x be the layer-normalised sum."""
    rows, width = x.shape
    _normed_sum[(rows,)](x, added, norm.weight, norm.bias, norm.epsilon, width, triton.next_power_of_2(width))


@triton.jit
def _attend(
    projected,
    bias,
    attended,
    length,
    heads: tl.constexpr,
    size: tl.constexpr,
    rows: tl.constexpr,
    biased: tl.constexpr,
):
    """Attention of one sentence and one head: q, k and v lie side by side in (tokens, 3 × heads × size)."""
    sentence, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    width = heads * size
    row, column = tl.arange(0, rows), tl.arange(0, size)
    inside = row < length
    at = sentence * length * 3 * width + head * size + row[:, None] * 3 * width + column[None, :]
    q = tl.load(projected + at, mask=inside[:, None], other=0.0)
    k = tl.load(projected + at + width, mask=inside[:, None], other=0.0)
    v = tl.load(projected + at + 2 * width, mask=inside[:, None], other=0.0)
    scores = tl.dot(q, tl.trans(k))
    if biased:
        pair = head * length * length + row[:, None] * length + row[None, :]
        scores += tl.load(bias + pair, mask=inside[:, None] & inside[None, :], other=0.0).to(tl.float32)
    scores = tl.where(inside[None, :], scores, -float("inf"))
    weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    weights = weights / tl.sum(weights, axis=1)[:, None]
    found = tl.dot(weights.to(v.dtype), v)
    out = sentence * length * width + head * size + row[:, None] * width + column[None, :]
    tl.store(attended + out, found.to(v.dtype), mask=inside[:, None])


@triton.jit
def _normed_sum(x, added, weight, bias, epsilon, width: tl.constexpr, block: tl.constexpr):
    """Layer normalisation of the sum of two rows, in place of the first."""
    at = tl.arange(0, block)
    inside = at < width
    place = tl.program_id(0).to(tl.int64) * width + at
    first = tl.load(x + place, mask=inside, other=0.0)
    total = first.to(tl.float32) + tl.load(added + place, mask=inside, other=0.0).to(tl.float32)
    from_mean = tl.where(inside, total - tl.sum(total, axis=0) / width, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(from_mean * from_mean, axis=0) / width + epsilon)
    w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(x + place, (from_mean * scale * w + b).to(first.dtype), mask=inside)


@triton.jit
def _gelu(x, count, block: tl.constexpr):
    """GELU by the error function, in place."""
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    value = tl.load(x + place, mask=place < count, other=0.0)
    wide = value.to(tl.float32)
    wide = wide * 0.5 * (1.0 + tl.math.erf(wide * 0.7071067811865476))
    tl.store(x + place, wide.to(value.dtype), mask=place < count)
