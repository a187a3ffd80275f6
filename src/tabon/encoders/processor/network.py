"""A plain model, read from its folder without a library: BERT or MPNet, the mean over its tokens, unit rows.

What a folder asks for beyond that is named, and left to sentence-transformers. Weights are read from a
safetensors file that is mapped into memory; every field of its header is checked first, so a damaged
file is refused and nothing outside of it is read.
"""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.model_folder import modules, read_json
from tabon.encoders.protocol import Matrix
from tabon.errors import EncoderError, NeedsTorchError

LENGTH = struct.Struct("<Q")
LONGEST_HEADER = 100_000_000  # bytes, as the format says
SIZES: Mapping[str, int] = MappingProxyType(  # bytes of a number
    {
        **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"), 1),
        **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
        **dict.fromkeys(("U32", "I32", "F32"), 4),
        **dict.fromkeys(("U64", "I64", "F64"), 8),
    }
)
READ = MappingProxyType({"F32": "<f4", "F16": "<f2", "BF16": "<u2"})  # kinds that weights may have
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


@dataclass(frozen=True, slots=True)
class Entry:
    """What the header says of one tensor."""

    kind: str
    shape: tuple[int, ...]
    start: int
    stop: int


class TensorFile:
    """A safetensors file whose header is whole."""

    def __init__(self, path: Path) -> None:
        """Map the file and check its header.

        Raises:
            EncoderError: it is cut, or its header does not describe it.
        """
        try:
            with path.open("rb") as file:
                (length,) = LENGTH.unpack(file.read(LENGTH.size))
                header = file.read(length) if length <= LONGEST_HEADER else b""
            if len(header) != length or header[:1] != b"{":
                raise ValueError("the header is cut")  # noqa: TRY301
            self._data = np.memmap(path, np.uint8, "r")[LENGTH.size + length :]
            self._entries = _entries(json.loads(header.decode(), object_pairs_hook=_once), len(self._data))
        except (OSError, ValueError, TypeError, RecursionError, struct.error) as error:
            raise EncoderError(
                f"{path.name} in {path.parent.name} is no whole safetensors file ({type(error).__name__}); "
                "check that the folder is whole"
            ) from error

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all tensors of floating-point numbers that can be read."""
        return {name: entry.shape for name, entry in self._entries.items() if entry.kind in READ}

    def read(self, name: str) -> Matrix:
        """Return a tensor in float32; one that is stored so stays where it is in the file."""
        entry = self._entries[name]
        raw = self._data[entry.start : entry.stop]
        if entry.kind == "BF16":  # the upper half of a float32
            halves = np.frombuffer(raw, "<u2").astype(np.uint32) << 16
            return halves.view(np.float32).reshape(entry.shape)
        return np.require(np.frombuffer(raw, READ[entry.kind]), np.float32, ["C", "A"]).reshape(entry.shape)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; a name that comes twice would hide a tensor."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _entries(header: dict[str, Any], size: int) -> dict[str, Entry]:
    """Return what a header says, without its notes; tensors must lie end to end in so many bytes."""
    notes = header.pop("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
        raise ValueError("the notes are no texts")
    entries = {name: _entry(value) for name, value in header.items()}
    places = sorted((entry.start, entry.stop) for entry in entries.values())
    if [0, *(stop for _, stop in places)] != [*(start for start, _ in places), size]:
        raise ValueError("tensors overlap, leave holes or are not as long as the file")
    return entries


def _entry(value: object) -> Entry:
    """Return one tensor's place if kind, shape and place fit each other."""
    match value:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [start, stop], **rest} if not rest:
            numbers = (*shape, start, stop)
            counts = all(type(number) is int and number >= 0 for number in numbers)
            if counts and kind in SIZES and stop - start == SIZES[kind] * math.prod(shape):
                return Entry(kind, tuple(shape), start, stop)
    raise ValueError("a tensor's kind, shape and place do not fit each other")


def max_tokens(folder: Path) -> int:
    """Return at how many tokens a plain model cuts; 0 is never."""
    place = folder / modules(folder)[0].path
    own = _settings(place / "sentence_bert_config.json").get("max_seq_length")
    if own is None:
        known = [
            _settings(place / "tokenizer_config.json").get("model_max_length"),
            _settings(place / "config.json").get("max_position_embeddings"),
        ]
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
    pooling = _settings(folder / modules(folder)[1].path / "config.json")
    flags = {key for key, value in pooling.items() if key.startswith("pooling_mode_") and value is not False}
    mode = pooling.get("pooling_mode", "mean" if flags <= {"pooling_mode_mean_tokens"} else "other")
    width = pooling.get("embedding_dimension", pooling.get("word_embedding_dimension"))
    if mode not in ("mean", ["mean"]) or width != sizes.width:
        raise NeedsTorchError(folder.name, "does not pool by the mean over its tokens")
    if not (place / "model.safetensors").is_file():
        raise NeedsTorchError(folder.name, "keeps its weights in several files")
    tensors = _tensors(folder, TensorFile(place / "model.safetensors"), kind, sizes)
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


def _sizes(folder: Path, config: Mapping[str, Any]) -> Sizes:
    """Read the sizes of a model from its settings."""
    names = ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size", "vocab_size")
    given = [config.get(name) for name in (*names, "max_position_embeddings")]
    given.append(config.get("type_vocab_size", 1))
    counts = [count for count in given if type(count) is int and count > 0]
    epsilon = config.get("layer_norm_eps")
    whole = len(counts) == len(given) and counts[2] % counts[1] == 0
    if not whole or type(epsilon) is not float or not math.isfinite(epsilon):
        raise NeedsTorchError(folder.name, "does not give all sizes of its model in config.json")
    layers, heads, width, inside, words, positions, types = counts
    return Sizes(layers, heads, width, inside, words, positions, types, epsilon)


def _tensors(folder: Path, file: TensorFile, kind: str, sizes: Sizes) -> dict[str, Matrix]:
    """Read all tensors of a model, which may be named as parts of a bigger one."""
    width, inside = sizes.width, sizes.inside
    needed: dict[str, tuple[str, tuple[int, ...]]] = {  # tabon's name: the file's, and the shape
        "words": ("embeddings.word_embeddings.weight", (sizes.words, width)),
        "positions": ("embeddings.position_embeddings.weight", (sizes.positions, width)),
    }
    if kind == "bert":
        needed["types"] = "embeddings.token_type_embeddings.weight", (sizes.types, width)
    else:
        needed["relative"] = "encoder.relative_attention_bias.weight", (BUCKETS, sizes.heads)
    parts: dict[str, tuple[str, tuple[int, ...]]] = {"norm": ("embeddings.LayerNorm", (width,))}
    outside: dict[str, tuple[int, ...]] = {"up": (inside, width), "down": (width, inside)}
    for number, (part, stored) in product(range(sizes.layers), LAYERS[kind].items()):
        usual = (width,) if part.endswith("norm") else (width, width)
        parts[f"{number}.{part}"] = f"encoder.layer.{number}.{stored}", outside.get(part, usual)
    for name, (stored, shape) in parts.items():
        needed |= {
            f"{name}.weight": (f"{stored}.weight", shape),
            f"{name}.bias": (f"{stored}.bias", shape[:1]),
        }
    shapes = file.shapes()
    prefix = f"{kind}." if any(name.startswith(f"{kind}.") for name in shapes) else ""
    for stored, shape in needed.values():
        if shapes.get(prefix + stored) != shape:
            raise NeedsTorchError(folder.name, f"has no tensor {stored} of its model's shape")
    return {name: file.read(prefix + stored) for name, (stored, _) in needed.items()}


def _settings(path: Path) -> dict[str, Any]:
    """Read a file of settings; one that is not there has none."""
    found = read_json(path) if path.is_file() else {}
    return found if isinstance(found, dict) else {}
