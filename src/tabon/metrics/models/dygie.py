"""RadGraph's model, a DyGIE++ (docs/decisions/radgraph.md): a report in, its entities and relations out.

Inference alone: no coreference, no events, one sentence a report. A model folder is an archive of the
package `radgraph` unpacked. Its config.json names the backbone that gives shape and tokenizer; all
weights are in weights.th and keep the names of the checkpoint. After BERT the arithmetic is numpy's.

    text ─▶ words ─▶ word pieces ─▶ BERT ─▶ one vector per word ─▶ spans ─▶ an entity label or none
    ─▶ the spans that may relate ─▶ a relation or none
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.errors import BadInputError, MetricUnavailableError
from tabon.metrics.models.bert import EXTRA, load_tensors

if TYPE_CHECKING:
    import torch


Vectors = NDArray[np.float32]  # (words or spans, features)
Indices = NDArray[np.int64]
Weights = Mapping[str, Vectors]

KINDS = ("radgraph-xl", "radgraph")  # each cuts text into words in its own way
FILES = ("weights.th", "config.json", "vocabulary/non_padded_namespaces.txt")
BERT = "_embedder.token_embedder_bert._matched_embedder.transformer_model."
OLD_BUFFER = "embeddings.position_ids"  # saved by old versions of transformers, made anew by later ones
WIDTHS = "_endpoint_span_extractor._span_width_embedding.weight"
ENTITY = "_ner._ner_scorers.{}__ner_labels"
MENTION = "_relation._mention_pruners.{}__relation_labels._scorer"
PAIR = "_relation._relation_feedforwards.{}__relation_labels"
RELATION = "_relation._relation_scorers.{}__relation_labels"


@dataclass(frozen=True, slots=True)
class Relation:
    """A labelled arrow to the entity at place `target` of the same graph."""

    label: str
    target: int


@dataclass(frozen=True, slots=True)
class Entity:
    """A run of words, first to last, that the model gave a label."""

    tokens: str
    label: str
    first: int
    last: int
    relations: tuple[Relation, ...] = ()


Graph = tuple[Entity, ...]  # in the order of the text


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What config.json says that inference needs."""

    backbone: str
    max_length: int | None  # pieces that BERT reads at once, two special ones included
    max_span_width: int
    spans_per_word: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The weights after BERT and the settings that go with them."""

    kind: str  # "radgraph-xl": the data set whose scorers are used
    weights: Weights
    entity_labels: tuple[str, ...]  # the first is "", no entity
    relation_labels: tuple[str, ...]
    settings: Settings


def needed_weights(kind: str) -> list[str]:
    """Name the weights without which no graph can be made."""
    hidden = [f"{ENTITY}.0._module", f"{MENTION}.0._module", PAIR]
    last = [f"{ENTITY}.1._module", f"{MENTION}.1._module", RELATION]
    layers = [f"{prefix}._linear_layers.0" for prefix in hidden] + last
    return [WIDTHS, *(f"{layer.format(kind)}.{part}" for layer in layers for part in ("weight", "bias"))]


def read_graph(words: Sequence[str], vectors: Vectors, heads: Heads) -> Graph:
    """Return the entities and relations of one report from a vector a word."""
    spans = enumerate_spans(len(words), heads.settings.max_span_width)
    first, last = spans[:, 0], spans[:, 1]
    widths = heads.weights[WIDTHS][last - first]
    features = np.concatenate([vectors[first], vectors[last], widths], axis=1)  # (spans, features)
    labels = _best_or_none(_scores(features, heads, ENTITY))
    found = np.flatnonzero(labels)
    mentions = _scores(features, heads, MENTION)[:, 0]  # how much a span looks like the end of a relation
    kept = np.intersect1d(found, best_mentions(mentions, len(words), heads.settings.spans_per_word))
    related = relation_labels(features[kept], mentions[kept], heads)
    place = {span: i for i, span in enumerate(found.tolist())}
    return tuple(
        Entity(
            tokens=" ".join(words[spans[span, 0] : spans[span, 1] + 1]),
            label=heads.entity_labels[labels[span]],
            first=int(spans[span, 0]),
            last=int(spans[span, 1]),
            relations=tuple(
                Relation(heads.relation_labels[related[row, column] - 1], place[int(kept[column])])
                for row in np.flatnonzero(kept == span)
                for column in np.flatnonzero(related[row])
            ),
        )
        for span in found.tolist()
    )


def enumerate_spans(num_words: int, max_width: int) -> Indices:
    """Return the first and last word of every span, by first word, then by width.

    >>> enumerate_spans(3, 2).tolist()
    [[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]]
    """
    spans = [(i, j) for i in range(num_words) for j in range(i, min(i + max_width, num_words))]
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def word_vectors(pieces: Vectors, counts: Sequence[int]) -> Vectors:
    """Average the pieces of each word; a word without pieces is the zero vector.

    >>> word_vectors(np.array([[2.0], [4.0], [5.0]], dtype=np.float32), [2, 0, 1]).tolist()
    [[3.0], [0.0], [5.0]]
    """
    vectors = np.zeros((len(counts), pieces.shape[1]), dtype=np.float32)
    ends = np.cumsum(counts)
    for i, (count, end) in enumerate(zip(counts, ends, strict=True)):
        if count:
            vectors[i] = pieces[end - count : end].mean(axis=0)
    return vectors


def _scores(features: Vectors, heads: Heads, name: str) -> Vectors:
    """Run a scorer of spans: its hidden layers, then its last one."""
    prefix = name.format(heads.kind)
    hidden = _hidden(features, heads.weights, f"{prefix}.0._module")
    return _linear(hidden, heads.weights, f"{prefix}.1._module")


def best_mentions(scores: Vectors, num_words: int, spans_per_word: float) -> Indices:
    """Return the spans that are kept as ends of relations: so many a word, at least one.

    >>> best_mentions(np.array([0.1, 0.9, 0.5], dtype=np.float32), 4, 0.5).tolist()
    [1, 2]
    """
    keep = max(int(np.ceil(np.float32(num_words) * np.float32(spans_per_word))), 1)
    return np.sort(np.argsort(-scores, kind="stable")[:keep])


def relation_labels(features: Vectors, mentions: Vectors, heads: Heads) -> Indices:
    """Return the best relation from each span (row) to each span (column); 0 is none and scores 0.

    A pair is scored by itself, so pairs with a span that is no entity need not
    be asked for: their relations are dropped in any case.
    """
    rows = np.zeros((len(features), len(features)), dtype=np.int64)
    for source, feature in enumerate(features):
        sources = np.broadcast_to(feature, features.shape)
        pairs = np.concatenate([sources, features, sources * features], axis=1)
        hidden = _hidden(pairs, heads.weights, PAIR.format(heads.kind))
        scores = _linear(hidden, heads.weights, RELATION.format(heads.kind))
        rows[source] = _best_or_none(scores + (mentions[source] + mentions)[:, None])
    return rows


def _best_or_none(scores: Vectors) -> Indices:
    """Return 1 + the best column, or 0 where no column is above zero."""
    best = scores.argmax(axis=1)
    return np.where(scores.max(axis=1) > 0, best + 1, 0)


def _hidden(inputs: Vectors, weights: Weights, prefix: str) -> Vectors:
    """Run the hidden layers under a name: linear, then what is below zero set to zero."""
    layer = 0
    while f"{prefix}._linear_layers.{layer}.weight" in weights:
        inputs = np.maximum(_linear(inputs, weights, f"{prefix}._linear_layers.{layer}"), 0)
        layer += 1
    return inputs


def _linear(inputs: Vectors, weights: Weights, name: str) -> Vectors:
    """Run one linear layer."""
    outputs: Vectors = inputs @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return outputs


@dataclass(frozen=True, slots=True)
class Dygie:
    """A loaded model; it reads one report at a time, so that a graph does not depend on other reports."""

    heads: Heads
    backbone: "Backbone"

    def graph(self, text: str) -> Graph:
        """Return the entities of a report and their relations; none for a text without words."""
        words = split_words(text, self.heads.kind)
        pieces = self.backbone.pieces(words)
        if not any(pieces):
            return ()
        vectors = self.backbone.vectors(list(chain.from_iterable(pieces)), self.heads.settings.max_length)
        return read_graph(words, word_vectors(vectors, [len(piece) for piece in pieces]), self.heads)


class Backbone:
    """BERT with the weights of a checkpoint, and its tokenizer."""

    def __init__(self, name: str, tensors: "dict[str, torch.Tensor]") -> None:
        """Read shape and tokenizer of a backbone from this machine, and take its weights from `tensors`."""
        self._torch = require("torch", extra=EXTRA, feature="torch")
        transformers = require("transformers", extra=EXTRA, feature="transformers")
        try:
            config = transformers.AutoConfig.from_pretrained(
                name, local_files_only=True, trust_remote_code=False
            )
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(
                name, local_files_only=True, trust_remote_code=False
            )
        except (OSError, ValueError) as error:
            raise MetricUnavailableError(
                "radgraph",
                f"config.json and vocab.txt of its backbone {name} are not on this machine, or ask for code",
                f"fetch them with: hf download {name} config.json vocab.txt tokenizer_config.json",
            ) from error
        with self._torch.random.fork_rng(
            devices=[]
        ):  # random weights are replaced, the caller's seed is kept
            bert = transformers.AutoModel.from_config(
                config, dtype=self._torch.float32, trust_remote_code=False
            )
        own = {key.removeprefix(BERT): tensor for key, tensor in tensors.items() if key.startswith(BERT)}
        own.pop(OLD_BUFFER, None)
        try:
            bert.load_state_dict(own)
        except RuntimeError as error:
            raise BadInputError(f"weights.th does not fit its backbone {name}: {error}") from error
        self._bert = bert.eval()

    def pieces(self, words: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the pieces of each word, cut word by word."""
        if not words:
            return []
        read = [word[1:] if word in ("/.", "/?") else word for word in words]
        numbers: list[list[int]] = self._tokenizer(read, add_special_tokens=False)["input_ids"]
        return numbers

    def vectors(self, pieces: list[int], max_length: int | None) -> Vectors:
        """Return BERT's last vector of each piece; what is longer than it can read is read in parts."""
        room = len(pieces) if max_length is None else max_length - 2
        vectors: list[Vectors] = []
        for start in range(0, len(pieces), room):
            part = pieces[start : start + room]
            inputs = self._torch.tensor([[self._tokenizer.cls_token_id, *part, self._tokenizer.sep_token_id]])
            with self._torch.inference_mode():
                states = self._bert(input_ids=inputs, attention_mask=self._torch.ones_like(inputs))[0]
            vectors.append(states[0, 1:-1].numpy())  # without [CLS] and [SEP]
        return np.concatenate(vectors)


def split_words(text: str, kind: str) -> list[str]:
    """Cut a report into words as `radgraph` 0.1.18 does for a kind of model.

    >>> split_words("No effusion (small).", "radgraph-xl")
    ['No', 'effusion', '(', 'small', ')', '.']
    >>> split_words("No effusion (small).", "radgraph")
    ['No', 'effusion', '(', 'small', ')', '.']
    >>> split_words("left-sided, 2.5 cm", "radgraph-xl"), split_words("left-sided, 2.5 cm", "radgraph")
    (['left', '-', 'sided', ',', '2', '.', '5', 'cm'], ['left-sided', ',', '2', '.', '5', 'cm'])
    """
    if kind != "radgraph-xl":  # cut at white space and on both sides of /,:.!?()
        return re.sub(r"(?<! )(?=[/,:.!?()])|(?<=[/,:.!?()])(?! )", " ", text).split()
    for spelt, meant in ((r"\n", " "), (r"\f", " "), (r"\u2122", " "), (r"\"", "``")):  # spelt out: no text
        text = text.replace(spelt, meant)
    words = " ".join(re.findall(r"\w+|[^\w\s]+", text))  # runs of letters and runs of signs
    for together, apart in ((").", ") ."), ("%.", "% ."), (".'", ". '"), ("%,", "% ,"), ("%)", "% )")):
        words = words.replace(together, apart)
    return words.split()


def load_dygie(folder: Path) -> Dygie:
    """Load a model folder that holds `FILES` and the labels of one kind of model.

    Raises:
        MetricUnavailableError: the labels or the backbone are missing.
        BadInputError: a file is damaged, or the model needs more than this inference does.
    """
    kind = model_kind(folder)
    settings = read_settings(folder / "config.json")
    tensors = load_tensors(folder / "weights.th")
    missing = [name for name in needed_weights(kind) if name not in tensors]
    if missing:
        raise BadInputError(f"weights.th has no {missing[0]}; it is not the checkpoint of a RadGraph model")
    heads = Heads(
        kind=kind,
        weights={
            name: tensor.float().numpy() for name, tensor in tensors.items() if not name.startswith(BERT)
        },
        entity_labels=_labels(folder, f"{kind}__ner_labels.txt"),
        relation_labels=_labels(folder, f"{kind}__relation_labels.txt"),
        settings=settings,
    )
    inside = folder / settings.backbone
    return Dygie(heads, Backbone(str(inside) if inside.is_dir() else settings.backbone, tensors))


def model_kind(folder: Path) -> str:
    """Return which of `KINDS` a folder holds labels of; of several, the one in the folder's name."""
    found = [kind for kind in KINDS if (folder / f"vocabulary/{kind}__ner_labels.txt").is_file()]
    if not found:
        files = " or ".join(f"vocabulary/{kind}__ner_labels.txt" for kind in KINDS)
        archives = " or ".join(f"{kind}.tar.gz" for kind in KINDS)
        raise MetricUnavailableError(
            "radgraph", f"no {files} is in {folder}", f"unpack {archives} there (no other model is supported)"
        )
    return folder.name if folder.name in found else found[0]


def read_settings(path: Path) -> Settings:
    """Read config.json of a model folder."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        reader, modules = config["dataset_reader"], config["model"]["modules"]
        indexer = reader["token_indexers"]["bert"]
        settings = Settings(
            backbone=indexer["model_name"],
            max_length=indexer.get("max_length"),
            max_span_width=reader["max_span_width"],
            spans_per_word=modules["relation"]["spans_per_word"],
        )
        propagates = modules.get("coref", {}).get("coref_prop", 0) > 0
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise BadInputError(f"{path} is not the config.json of a RadGraph model: {error!r}") from error
    if propagates:
        raise BadInputError(f"{path} asks for coreference propagation, which RadGraph's models do not use")
    return settings


def _labels(folder: Path, name: str) -> tuple[str, ...]:
    """Read the labels of one file, a line each, in the order of the scorers' columns."""
    path = folder / "vocabulary" / name
    if not path.is_file():
        raise MetricUnavailableError(
            "radgraph", f"vocabulary/{name} is not in {folder}", "unpack the model's archive again"
        )
    lines = path.read_text(encoding="utf-8").split("\n")
    return tuple(line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines))
