"""From token ids to unit rows: BERT and MPNet written out, any other model as it comes.

Sentences of a batch have one length, so there is no padding and no mask. What
is left is a dozen operations a layer. Parity with the library is tested.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tabon._extras import require

Tensor: TypeAlias = Any  # torch.Tensor, an optional import
Forward: TypeAlias = Callable[[Tensor], Tensor]  # (batch, length) token ids -> (batch, d) unit rows

WRITTEN_OUT = ("BertModel", "MPNetModel")


@dataclass(frozen=True, slots=True)
class Linear:
    """x ↦ x·W + b, with W laid out for that product."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, slots=True)
class Norm:
    """Layer normalisation."""

    weight: Tensor
    bias: Tensor
    epsilon: float


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer layer."""

    query_key_value: Linear
    attended: Linear
    attention_norm: Norm
    up: Linear
    down: Linear
    output_norm: Norm


def forward_of(model: Any) -> Forward:  # noqa: ANN401  # a SentenceTransformer
    """Return the fastest way to run a model: written out where that is known, else the library's own."""
    inner: Any = getattr(model[0], "auto_model", None)
    known = type(inner).__name__ in WRITTEN_OUT and _pools_the_mean(model)
    return WrittenOut(inner) if known and inner.config.hidden_act == "gelu" else LibraryForward(model)


def _pools_the_mean(model: Any) -> bool:  # noqa: ANN401
    """Say whether a model takes the mean over its tokens and does nothing else to it."""
    names = [type(module).__name__ for module in model]
    if names[:2] != ["Transformer", "Pooling"] or not set(names[2:]) <= {"Normalize"}:
        return False
    return bool(model[1].get_config_dict().get("pooling_mode") == "mean")


class LibraryForward:
    """Any sentence-transformers model, run by the library."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        """Keep the model."""
        self._torch = require("torch", extra="minilm", feature="torch")
        self._model = model

    def __call__(self, ids: Tensor) -> Tensor:
        """Return one unit row a sentence."""
        features = {"input_ids": ids, "attention_mask": self._torch.ones_like(ids)}
        if "token_type_ids" in self._model.tokenizer.model_input_names:
            features["token_type_ids"] = self._torch.zeros_like(ids)
        vectors = self._model(features)["sentence_embedding"]
        return self._torch.nn.functional.normalize(vectors.float(), dim=1)


class WrittenOut:
    """BERT or MPNet with mean pooling, on the device and in the precision of its weights."""

    def __init__(self, inner: Any) -> None:  # noqa: ANN401  # a BertModel or an MPNetModel
        """Lay the weights out for the products."""
        self._torch = require("torch", extra="minilm", feature="torch")
        self._functional = self._torch.nn.functional
        self._inner = inner
        self._mpnet = type(inner).__name__ == "MPNetModel"
        self._heads = inner.config.num_attention_heads
        self._layers = [self._layer(layer) for layer in inner.encoder.layer]

    def __call__(self, ids: Tensor) -> Tensor:
        """Return one unit row a sentence."""
        batch, length = ids.shape
        x = self._embedded(ids)
        bias = self._inner.encoder.compute_position_bias(x[:1]) if self._mpnet else None
        x = x.view(batch * length, -1)
        for layer in self._layers:
            x = self._through(layer, x, (batch, length), bias)
        return self._functional.normalize(x.view(batch, length, -1).float().mean(dim=1), dim=1)

    def _embedded(self, ids: Tensor) -> Tensor:
        """Return the sum of what a layer-0 token is made of, normalised."""
        embeddings = self._inner.embeddings
        if self._mpnet:
            return embeddings(input_ids=ids)
        length = ids.shape[1]
        fixed = embeddings.position_embeddings.weight[:length] + embeddings.token_type_embeddings.weight[0]
        return embeddings.LayerNorm(
            self._functional.embedding(ids, embeddings.word_embeddings.weight) + fixed
        )

    def _through(self, layer: Layer, x: Tensor, shape: tuple[int, int], bias: Tensor | None) -> Tensor:
        """Run one layer on (batch · length, d)."""
        x = self._normed(
            self._product(layer.attended, self._attended(layer, x, shape, bias)).add_(x), layer.attention_norm
        )
        inside = self._functional.gelu(self._product(layer.up, x))
        return self._normed(self._product(layer.down, inside).add_(x), layer.output_norm)

    def _attended(self, layer: Layer, x: Tensor, shape: tuple[int, int], bias: Tensor | None) -> Tensor:
        """Return softmax(q·k/√d + bias)·v of every head, side by side."""
        batch, length = shape
        split = self._product(layer.query_key_value, x).view(batch, length, 3, self._heads, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        found = self._plainly(q, k, v, bias) if x.is_cuda else self._fused(q, k, v, bias)
        return found.transpose(1, 2).reshape(x.shape)

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """Attend in one operation."""
        mask = None if bias is None else bias.expand(len(q), -1, -1, -1)
        return self._functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def _plainly(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """Attend step by step: on a GPU, sentences are far too short for the fused operation."""
        scores = self._torch.matmul(q * q.shape[-1] ** -0.5, k.transpose(-1, -2))
        if bias is not None:
            scores += bias
        return self._torch.matmul(scores.softmax(dim=-1), v)

    def _product(self, linear: Linear, x: Tensor) -> Tensor:
        """Return x·W + b."""
        return self._torch.addmm(linear.bias, x, linear.weight)

    def _normed(self, x: Tensor, norm: Norm) -> Tensor:
        """Return layer-normalised rows."""
        return self._functional.layer_norm(x, (x.shape[-1],), norm.weight, norm.bias, norm.epsilon)

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
            query_key_value=self._joined(parts),
            attended=self._joined([attended]),
            attention_norm=Norm(norm.weight, norm.bias, norm.eps),
            up=self._joined([layer.intermediate.dense]),
            down=self._joined([layer.output.dense]),
            output_norm=Norm(
                layer.output.LayerNorm.weight, layer.output.LayerNorm.bias, layer.output.LayerNorm.eps
            ),
        )

    def _joined(self, parts: list[Any]) -> Linear:
        """Put linear maps of one input side by side."""
        weight = self._torch.cat([part.weight.detach() for part in parts]).t().contiguous()
        return Linear(weight, self._torch.cat([part.bias.detach() for part in parts]))
