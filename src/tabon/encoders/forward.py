"""From token ids to unit rows: BERT and MPNet written out, any other model as it comes.

No sentence of a batch is padded, so there is no mask: the products are of all
tokens at once, and attention is within the sentences, those of one length
together. What is left is a dozen operations a layer. Parity with the library is
tested.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

from tabon._extras import require
from tabon.encoders.batches import Batches, Group, mixed_batches, one_length_batches
from tabon.encoders.products import Product, Tensor, product_with

Groups: TypeAlias = tuple[Group, ...]

WRITTEN_OUT = ("BertModel", "MPNetModel")
REGISTER = 16  # float32 numbers in a register of AVX-512


class Forward(Protocol):
    """A way to run a model."""

    @property
    def batches(self) -> Batches:
        """Return how sentences are put together for it."""

    def __call__(self, ids: Tensor, groups: Groups) -> Tensor:
        """Return one unit row a sentence."""


@dataclass(frozen=True, slots=True)
class Norm:
    """Layer normalisation."""

    weight: Tensor
    bias: Tensor
    epsilon: float


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer layer."""

    query_key_value: Product
    attended: Product
    attention_norm: Norm
    up: Product
    down: Product
    output_norm: Norm


@dataclass(frozen=True, slots=True)
class Span:
    """Where sentences of one length lie in a batch, and what MPNet adds to their scores."""

    rows: slice
    group: Group
    bias: Tensor | None


def forward_of(model: Any, tokens: int) -> Forward:  # noqa: ANN401  # a SentenceTransformer
    """Return the fastest way to run a model on batches of so many tokens.

    It is written out where that is known, else the library's own.
    """
    inner: Any = getattr(model[0], "auto_model", None)
    known = type(inner).__name__ in WRITTEN_OUT and _pools_the_mean(model)
    written_out = known and inner.config.hidden_act == "gelu"
    return WrittenOut(inner, tokens) if written_out else LibraryForward(model)


def _pools_the_mean(model: Any) -> bool:  # noqa: ANN401
    """Say whether a model takes the mean over its tokens and does nothing else to it."""
    names = [type(module).__name__ for module in model]
    if names[:2] != ["Transformer", "Pooling"] or not set(names[2:]) <= {"Normalize"}:
        return False
    return bool(model[1].get_config_dict().get("pooling_mode") == "mean")


class LibraryForward:
    """Any sentence-transformers model, run by the library."""

    batches = staticmethod(one_length_batches)

    def __init__(self, model: Any) -> None:  # noqa: ANN401
        """Keep the model."""
        self._torch = require("torch", extra="minilm", feature="torch")
        self._model = model

    def __call__(self, ids: Tensor, groups: Groups) -> Tensor:
        """Return one unit row a sentence."""
        [group] = groups
        ids = ids.view(group)
        features = {"input_ids": ids, "attention_mask": self._torch.ones_like(ids)}
        if "token_type_ids" in self._model.tokenizer.model_input_names:
            features["token_type_ids"] = self._torch.zeros_like(ids)
        vectors = self._model(features)["sentence_embedding"]
        return self._torch.nn.functional.normalize(vectors.float(), dim=1)


class WrittenOut:
    """BERT or MPNet with mean pooling, on the device and in the precision of its weights."""

    def __init__(self, inner: Any, tokens: int) -> None:  # noqa: ANN401  # a BertModel or an MPNetModel
        """Lay the weights out for the products."""
        self._torch = require("torch", extra="minilm", feature="torch")
        self._functional = self._torch.nn.functional
        self._inner = inner
        self._mpnet = type(inner).__name__ == "MPNetModel"
        self._heads = inner.config.num_attention_heads
        self._tokens = tokens
        self._layers = [self._layer(layer) for layer in inner.encoder.layer]

    @property
    def batches(self) -> Batches:
        """Mix lengths on a processor; a GPU's attention may give other bits beside more sentences."""
        return mixed_batches if self._inner.device.type == "cpu" else one_length_batches

    def __call__(self, ids: Tensor, groups: Groups) -> Tensor:
        """Return one unit row a sentence."""
        sizes = [group.sentences * group.length for group in groups]
        parts = [part.view(group) for part, group in zip(ids.split(sizes), groups, strict=True)]
        embedded = [self._embedded(part) for part in parts]
        ends = accumulate(sizes)
        spans = [
            Span(slice(end - size, end), group, self._bias(x))
            for end, size, group, x in zip(ends, sizes, groups, embedded, strict=True)
        ]
        x = self._torch.cat([part.flatten(0, 1) for part in embedded])
        for layer in self._layers:
            x = self._through(layer, x, spans)
        means = [x[span.rows].view(*span.group, -1).float().mean(dim=1) for span in spans]
        return self._functional.normalize(self._torch.cat(means), dim=1)

    def _bias(self, x: Tensor) -> Tensor | None:
        """Return what MPNet adds to the scores of sentences of this length."""
        return self._inner.encoder.compute_position_bias(x[:1]) if self._mpnet else None

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

    def _through(self, layer: Layer, x: Tensor, spans: list[Span]) -> Tensor:
        """Run one layer on (tokens, d), which is lost."""
        attended = self._attended(layer.query_key_value(x), spans)
        x = self._normed(x.add_(layer.attended(attended)), layer.attention_norm)
        inside = self._torch.ops.aten.gelu_(layer.up(x))
        return self._normed(x.add_(layer.down(inside)), layer.output_norm)

    def _attended(self, projected: Tensor, spans: list[Span]) -> Tensor:
        """Return softmax(q·k/√d + bias)·v of every head, within each sentence; q is scaled: see `_scaled`."""
        attended = projected.new_empty(len(projected), projected.shape[1] // 3)
        for span in spans:
            split = projected[span.rows].view(*span.group, 3, self._heads, -1)
            q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
            scores = self._torch.matmul(q, k.transpose(-1, -2))
            if span.bias is not None:
                scores += span.bias
            out = attended[span.rows].view(*span.group, self._heads, -1).transpose(1, 2)
            out.copy_(self._torch.matmul(_softmax(scores), v))
        return attended

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
            query_key_value=self._product(*self._scaled(parts)),
            attended=self._product(attended.weight, attended.bias),
            attention_norm=Norm(norm.weight, norm.bias, norm.eps),
            up=self._product(layer.intermediate.dense.weight, layer.intermediate.dense.bias),
            down=self._product(layer.output.dense.weight, layer.output.dense.bias),
            output_norm=Norm(
                layer.output.LayerNorm.weight, layer.output.LayerNorm.bias, layer.output.LayerNorm.eps
            ),
        )

    def _product(self, weight: Tensor, bias: Tensor) -> Product:
        """Return x ↦ x·W + b for the tokens of a batch."""
        return product_with(weight.detach(), bias.detach(), self._tokens)

    def _scaled(self, parts: list[Any]) -> tuple[Tensor, Tensor]:
        """Put q, k and v side by side, with q divided by √d here, once, and not in every batch."""
        weight = self._torch.cat([part.weight.detach() for part in parts])
        bias = self._torch.cat([part.bias.detach() for part in parts])
        width = len(bias) // 3
        for part in (weight, bias):
            part[:width] *= (width // self._heads) ** -0.5
        return weight, bias


def _softmax(scores: Tensor) -> Tensor:
    """Return the softmax of each row; torch's own is slow on a processor where a row fills no register."""
    if scores.is_cuda or scores.shape[-1] >= REGISTER:
        return scores.softmax(dim=-1)
    weights = scores.sub_(scores.amax(dim=-1, keepdim=True)).exp_()
    return weights.div_(weights.sum(dim=-1, keepdim=True))
