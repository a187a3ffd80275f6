"""A plain model, read from its folder without a library: BERT or MPNet, the mean over its tokens, unit rows.

What a folder asks for beyond that is not guessed at. It is named, and left to
sentence-transformers.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.model_folder import modules, read_json
from tabon.encoders.processor.tensor_file import TensorFile
from tabon.encoders.protocol import Matrix
from tabon.errors import NeedsTorchError

PADDING = 1  # MPNet's id of the token that has no place of its own
NEAR = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91)  # distances at which MPNet's next bucket begins
BUCKETS = 2 * (len(NEAR) + 1)  # on both sides
LAYER = {"up": "intermediate.dense", "down": "output.dense", "output_norm": "output.LayerNorm"}
LAYERS: Mapping[str, Mapping[str, str]] = MappingProxyType(  # what tabon calls the parts, and each model
    {
        "bert": {
            "query": "attention.self.query",
            "key": "attention.self.key",
            "value": "attention.self.value",
            "attended": "attention.output.dense",
            "attended_norm": "attention.output.LayerNorm",
            **LAYER,
        },
        "mpnet": {
            "query": "attention.attn.q",
            "key": "attention.attn.k",
            "value": "attention.attn.v",
            "attended": "attention.attn.o",
            "attended_norm": "attention.LayerNorm",
            **LAYER,
        },
    }
)
PLAIN_MODEL = {"hidden_act": "gelu", "position_embedding_type": "absolute"}
NOT_PLAIN = ("is_decoder", "add_cross_attention", "pruned_heads", "quantization_config")
PLAIN_TEXT = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
PLAIN_MODULE = {
    "transformer_task": "feature-extraction",
    "module_output_name": "token_embeddings",
    "modality_config": PLAIN_TEXT,
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers that a model is made of."""

    layers: int
    heads: int
    width: int
    inside: int  # width between `up` and `down`
    words: int
    positions: int
    types: int  # of tokens; MPNet knows none
    epsilon: float


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A model's sizes and its weights under tabon's names."""

    kind: str  # bert or mpnet
    sizes: Sizes
    tensors: Mapping[str, Matrix]

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which position each token of (sentences, length) has."""
        if self.kind == "bert":
            return np.broadcast_to(np.arange(ids.shape[1]), ids.shape).copy()
        counted = ids != PADDING
        return np.asarray(np.cumsum(counted, axis=1) * counted + PADDING, np.int64)

    def bias(self, length: int) -> Matrix:
        """Return what MPNet adds to the scores of sentences of this length: (heads, length, length)."""
        away = np.arange(length)[:, None] - np.arange(length)
        buckets = (away < 0) * (BUCKETS // 2) + np.searchsorted(NEAR, np.abs(away), side="right")
        return np.ascontiguousarray(self.tensors["relative"][buckets].transpose(2, 0, 1))


class _Needed(NamedTuple):
    """A tensor: tabon's name, the file's, and its shape."""

    name: str
    stored: str
    shape: tuple[int, ...]


def max_tokens(folder: Path) -> int:
    """Return at how many tokens a plain model cuts; 0 is never."""
    place = folder / modules(folder)[0].path
    own = _settings(place / "sentence_bert_config.json").get("max_seq_length")
    if own is None:
        told = _settings(place / "tokenizer_config.json").get("model_max_length")
        known = [told, _settings(place / "config.json").get("max_position_embeddings")]
        own = min((limit for limit in known if isinstance(limit, int | float)), default=0)
    if type(own) is not int or own < 0:
        raise NeedsTorchError(folder.name, "has a limit of tokens that is no whole number")
    return own


def read_network(folder: Path) -> Network:
    """Read a plain model.

    Raises:
        NeedsTorchError: it is not plain.
        EncoderError: its files are damaged.
    """
    place = _transformer(folder)
    config = _settings(place / "config.json")
    kind = str(config.get("model_type"))
    if kind not in LAYERS:
        raise NeedsTorchError(folder.name, "is neither BERT nor MPNet")
    if any(config.get(key, value) != value for key, value in PLAIN_MODEL.items()) or any(
        config.get(key) for key in NOT_PLAIN
    ):
        raise NeedsTorchError(folder.name, f"changes how {kind} works in its config.json")
    sizes = _sizes(folder, config)
    _check_pooling(folder, sizes.width)
    if not (place / "model.safetensors").is_file():
        raise NeedsTorchError(folder.name, "keeps its weights in several files")
    tensors = _tensors(folder, TensorFile(place / "model.safetensors"), _needed(kind, sizes), kind)
    if kind == "bert":  # every token is of the first type
        tensors["positions"] = tensors["positions"] + tensors.pop("types")[0]
    return Network(kind, sizes, tensors)


def _transformer(folder: Path) -> Path:
    """Return where the transformer lies if it, the mean and unit rows are all that a model does."""
    found = modules(folder)
    if [module.kind for module in found[:2]] != ["Transformer", "Pooling"] or any(
        module.kind != "Normalize" for module in found[2:]
    ):
        raise NeedsTorchError(folder.name, "is more than a transformer and the mean over its tokens")
    place = folder / found[0].path
    ours = _settings(place / "sentence_bert_config.json")
    changed = [key for key, value in ours.items() if value and value != PLAIN_MODULE.get(key)]
    others = [
        path for path in place.glob("sentence_*_config.json") if path.name != "sentence_bert_config.json"
    ]
    if others or set(changed) - {"max_seq_length"}:
        raise NeedsTorchError(folder.name, "has settings of its own for how text is read")
    return place


def _check_pooling(folder: Path, width: int) -> None:
    """Refuse another pooling than the mean."""
    settings = _settings(folder / modules(folder)[1].path / "config.json")
    flags = {key for key, value in settings.items() if key.startswith("pooling_mode_") and value is not False}
    mode = settings.get("pooling_mode", "mean" if flags <= {"pooling_mode_mean_tokens"} else "other")
    told = settings.get("embedding_dimension", settings.get("word_embedding_dimension"))
    if mode not in ("mean", ["mean"]) or told != width:
        raise NeedsTorchError(folder.name, "does not pool by the mean over its tokens")


def _sizes(folder: Path, config: Mapping[str, Any]) -> Sizes:
    """Read the sizes of a model from its settings."""
    names = ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size", "vocab_size")
    told = [config.get(name) for name in (*names, "max_position_embeddings")]
    told.append(config.get("type_vocab_size", 1))
    counts = [count for count in told if type(count) is int and count > 0]
    epsilon = config.get("layer_norm_eps")
    whole = len(counts) == len(told) and counts[2] % counts[1] == 0
    if not whole or type(epsilon) is not float or not math.isfinite(epsilon):
        raise NeedsTorchError(folder.name, "does not give all sizes of its model in config.json")
    layers, heads, width, inside, words, positions, types = counts
    return Sizes(layers, heads, width, inside, words, positions, types, epsilon)


def _needed(kind: str, sizes: Sizes) -> Iterator[_Needed]:
    """Yield all tensors of a model."""
    width, inside = sizes.width, sizes.inside
    yield _Needed("words", "embeddings.word_embeddings.weight", (sizes.words, width))
    yield _Needed("positions", "embeddings.position_embeddings.weight", (sizes.positions, width))
    if kind == "bert":
        yield _Needed("types", "embeddings.token_type_embeddings.weight", (sizes.types, width))
    else:
        yield _Needed("relative", "encoder.relative_attention_bias.weight", (BUCKETS, sizes.heads))
    parts: dict[str, tuple[str, tuple[int, ...]]] = {"norm": ("embeddings.LayerNorm", (width,))}
    outside = {"up": (inside, width), "down": (width, inside)}
    for number in range(sizes.layers):
        for part, stored in LAYERS[kind].items():
            shape = (width,) if part.endswith("norm") else outside.get(part, (width, width))
            parts[f"{number}.{part}"] = (f"encoder.layer.{number}.{stored}", shape)
    for name, (stored, size) in parts.items():
        yield _Needed(f"{name}.weight", f"{stored}.weight", size)
        yield _Needed(f"{name}.bias", f"{stored}.bias", size[:1])


def _tensors(folder: Path, file: TensorFile, needed: Iterator[_Needed], kind: str) -> dict[str, Matrix]:
    """Read the tensors, which may be named as parts of a bigger model."""
    shapes = file.shapes()
    prefix = f"{kind}." if any(name.startswith(f"{kind}.") for name in shapes) else ""
    found: dict[str, Matrix] = {}
    for name, stored, shape in needed:
        if shapes.get(prefix + stored) != shape:
            raise NeedsTorchError(folder.name, f"has no tensor {stored} of its model's shape")
        found[name] = file.read(prefix + stored)
    return found


def _settings(path: Path) -> dict[str, Any]:
    """Read a file of settings; one that is not there has none."""
    found = read_json(path) if path.is_file() else {}
    return found if isinstance(found, dict) else {}
