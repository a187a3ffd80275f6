"""BERT and MPNet without padding, from token ids to unit rows; parity with the library is tested.

There is no mask: the products are of all tokens at once, and attention is within the sentences, those
of one length together. The layers are written in the part of Python that TorchScript reads, so that
threads do not wait for each other. On a processor reduced precision is a matter of products alone, and
oneDNN's order of W is made once (docs/decisions/bit-stable-encoding.md).
"""

from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor
from torch.nn.functional import embedding, layer_norm, linear, normalize

from tabon.encoders.tokens import Batches, Groups, mixed_batches, one_length_batches

REGISTER = 16  # float32 numbers in a register of AVX-512


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

    W is (out, in), in the precision of the product, b is (out,), in the precision of x.
    """
    on_processor = weight.device.type == "cpu" and weight.dtype == torch.bfloat16
    names = ("_linear_pointwise", "_reorder_linear_weight", "_is_mkldnn_bf16_supported")  # may go any day
    known = on_processor and all(hasattr(torch.ops.mkldnn, name) for name in names)
    if not known or not torch.ops.mkldnn._is_mkldnn_bf16_supported():  # noqa: SLF001
        return Product(weight, bias, None)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as batches run on one: kernels are fastest where both agree
    try:
        return Product(weight, bias, torch.ops.mkldnn._reorder_linear_weight(weight, rows))  # noqa: SLF001
    finally:
        torch.set_num_threads(threads)


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


ThroughLayers: TypeAlias = Callable[[Tensor, list[Layer], list[Span], int], Tensor]


@cache
def without_python() -> ThroughLayers:
    """Return `through_layers` as TorchScript; as it is where torch cannot, or its deprecation is an error."""
    try:
        return cast("Callable[..., Tensor]", torch.jit.script(through_layers))
    except (AttributeError, OSError, RuntimeError, DeprecationWarning):
        return through_layers


class WrittenOut:
    """BERT or MPNet with mean pooling, where its weights are."""

    def __init__(self, inner: Any, tokens: int, precision: str) -> None:  # noqa: ANN401  # Bert- or MPNetModel
        """Lay the weights out for the products: on a processor these alone have the precision."""
        self._dtype = getattr(torch, precision)
        self._inner = inner if inner.device.type == "cpu" else inner.to(self._dtype)
        self.precision = precision if inner.dtype == self._dtype else f"{precision} products"
        self._mpnet = type(inner).__name__ == "MPNetModel"
        self._heads = inner.config.num_attention_heads
        self._tokens = tokens
        self._layers = [self._layer(layer) for layer in inner.encoder.layer]
        self._through = without_python()

    @property
    def batches(self) -> Batches:
        """Mix lengths on a processor; a GPU's attention may give other bits beside more sentences."""
        return mixed_batches if self._inner.device.type == "cpu" else one_length_batches

    def __call__(self, ids: Tensor, groups: Groups) -> Tensor:
        """Return one unit row per sentence."""
        return self.rows(ids, self.spans(groups))

    def spans(self, groups: Groups) -> list[Span]:
        """Return where the sentences of each length lie, with MPNet's bias for them."""
        starts = accumulate((group.sentences * group.length for group in groups), initial=0)
        return [
            Span(start, *group, self._position_bias(group.length))
            for start, group in zip(starts, groups, strict=False)
        ]

    def rows(self, ids: Tensor, spans: list[Span]) -> Tensor:
        """Return one unit row per sentence of a batch that is laid out so."""
        sizes = [span.sentences * span.length for span in spans]
        parts = zip(torch.split(ids, sizes), spans, strict=True)
        embedded = [self._embedded(part.view(span.sentences, span.length)) for part, span in parts]
        x = torch.cat([part.flatten(0, 1) for part in embedded])
        x = self._through(x, self._layers, spans, self._heads)
        last = zip(torch.split(x, sizes), spans, strict=True)
        means = [part.view(span.sentences, span.length, -1).float().mean(dim=1) for part, span in last]
        return normalize(torch.cat(means), dim=1)

    def _position_bias(self, length: int) -> Tensor | None:
        """Return what MPNet adds to the scores of a sentence of so many tokens."""
        if not self._mpnet:
            return None
        of_length = self._inner.embeddings.word_embeddings.weight.new_empty((1, length))
        return cast("Tensor", self._inner.encoder.compute_position_bias(of_length))

    def _embedded(self, ids: Tensor) -> Tensor:
        """Return the sum of what a layer-0 token is made of, normalised."""
        embeddings = self._inner.embeddings
        if self._mpnet:
            return cast("Tensor", embeddings(input_ids=ids))
        length = ids.shape[1]
        fixed = embeddings.position_embeddings.weight[:length] + embeddings.token_type_embeddings.weight[0]
        summed = embedding(ids, embeddings.word_embeddings.weight) + fixed
        return cast("Tensor", embeddings.LayerNorm(summed))

    def _layer(self, layer: Any) -> Layer:  # noqa: ANN401
        """Read one layer's weights, under the names of either architecture."""
        attention = layer.attention
        if self._mpnet:
            parts = [attention.attn.q, attention.attn.k, attention.attn.v]
            attended, norm = attention.attn.o, attention.LayerNorm
        else:
            parts = [attention.self.query, attention.self.key, attention.self.value]
            attended, norm = attention.output.dense, attention.output.LayerNorm
        weight = torch.cat([part.weight.detach() for part in parts])
        bias = torch.cat([part.bias.detach() for part in parts])
        width = len(bias) // 3
        for part in (weight, bias):  # q is divided by √d here, once, and not in every batch
            part[:width] *= (width // self._heads) ** -0.5
        return Layer(
            query_key_value=self._product(weight, bias),
            attended=self._product(attended.weight, attended.bias),
            attention_norm=self._norm(norm),
            up=self._product(layer.intermediate.dense.weight, layer.intermediate.dense.bias),
            down=self._product(layer.output.dense.weight, layer.output.dense.bias),
            output_norm=self._norm(layer.output.LayerNorm),
        )

    def _product(self, weight: Tensor, bias: Tensor) -> Product:
        """Return x ↦ x·W + b for the tokens of a batch."""
        return product_with(weight.detach().to(self._dtype), bias.detach(), self._tokens)

    def _norm(self, norm: Any) -> Norm:  # noqa: ANN401
        """Read what normalises a layer."""
        return Norm(norm.weight.detach(), norm.bias.detach(), float(norm.eps))
