"""BERT and MPNet without padding, from token ids to unit rows.

No sentence of a batch is padded, so there is no mask: the products are of all
tokens at once, and attention is within the sentences, those of one length
together. What is left is a dozen operations a layer. Parity with the library is
tested.
"""

from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import embedding, normalize

from tabon.encoders.batches import Batches, Groups, mixed_batches, one_length_batches
from tabon.encoders.torch_engine.layers import Layer, Norm, Span, without_python
from tabon.encoders.torch_engine.products import Product, product_with


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
        """Return one unit row a sentence."""
        sizes = [group.sentences * group.length for group in groups]
        parts = zip(torch.split(ids, sizes), groups, strict=True)
        embedded = [self._embedded(part.view(group)) for part, group in parts]
        starts = accumulate(sizes[:-1], initial=0)
        spans = [
            Span(start, *group, self._bias(part))
            for start, group, part in zip(starts, groups, embedded, strict=True)
        ]
        x = torch.cat([part.flatten(0, 1) for part in embedded])
        x = self._through(x, self._layers, spans, self._heads)
        last = zip(torch.split(x, sizes), groups, strict=True)
        means = [part.view(*group, -1).float().mean(dim=1) for part, group in last]
        return normalize(torch.cat(means), dim=1)

    def _bias(self, x: Tensor) -> Tensor | None:
        """Return what MPNet adds to the scores of sentences of this length."""
        return cast("Tensor", self._inner.encoder.compute_position_bias(x[:1])) if self._mpnet else None

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
        return Layer(
            query_key_value=self._product(*self._scaled(parts)),
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

    def _scaled(self, parts: list[Any]) -> tuple[Tensor, Tensor]:
        """Put q, k and v side by side, with q divided by √d here, once, and not in every batch."""
        weight = torch.cat([part.weight.detach() for part in parts])
        bias = torch.cat([part.bias.detach() for part in parts])
        width = len(bias) // 3
        for part in (weight, bias):
            part[:width] *= (width // self._heads) ** -0.5
        return weight, bias
