"""RadGraph's model: a report in, its entities and relations out.

RadGraph is a DyGIE++ that was trained with AllenNLP; the package `radgraph`
carries both and does not run on transformers 5. This is its inference alone.
A model folder is one of its archives unpacked: config.json, vocabulary/ and
weights.th. The backbone that config.json names gives shape and tokenizer, its
weights are in weights.th.

    text ─▶ words ─▶ word pieces ─▶ BERT ─▶ a vector a word ─▶ `dygie_spans.read_graph`
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tabon._internal.extras import require
from tabon.errors import BadInputError, MetricUnavailableError
from tabon.metrics.models.dygie_spans import Graph, Heads, Vectors, needed_weights, read_graph, word_vectors
from tabon.metrics.models.weights import EXTRA, load_tensors

if TYPE_CHECKING:
    import torch

KINDS = ("radgraph-xl", "radgraph")  # each cuts text into words in its own way
FILES = ("weights.th", "config.json", "vocabulary/non_padded_namespaces.txt")
BERT = "_embedder.token_embedder_bert._matched_embedder.transformer_model."
OLD_BUFFER = "embeddings.position_ids"  # saved by old versions of transformers, made anew by later ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What config.json says that inference needs."""

    backbone: str
    max_length: int | None  # pieces that BERT reads at once, two special ones included
    max_span_width: int
    spans_per_word: float


@dataclass(frozen=True, slots=True)
class Dygie:
    """A loaded model; it reads one report at a time, so that a graph does not depend on other reports."""

    heads: Heads
    settings: Settings
    backbone: "Backbone"

    def graph(self, text: str) -> Graph:
        """Return the entities of a report and their relations; none for a text without words."""
        words = split_words(text, self.heads.kind)
        pieces = self.backbone.pieces(words)
        if not any(pieces):
            return ()
        vectors = self.backbone.vectors(list(chain.from_iterable(pieces)), self.settings.max_length)
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
        parts = [pieces[i : i + room] for i in range(0, len(pieces), room)]
        return np.concatenate([self._part(part) for part in parts])

    def _part(self, pieces: list[int]) -> Vectors:
        """Return BERT's last vector of each piece of one part, without [CLS] and [SEP]."""
        ids = [self._tokenizer.cls_token_id, *pieces, self._tokenizer.sep_token_id]
        inputs = self._torch.tensor([ids])
        with self._torch.inference_mode():
            states = self._bert(input_ids=inputs, attention_mask=self._torch.ones_like(inputs))[0]
        vectors: Vectors = states[0, 1:-1].numpy()
        return vectors


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
        max_span_width=settings.max_span_width,
        spans_per_word=settings.spans_per_word,
    )
    inside = folder / settings.backbone
    return Dygie(heads, settings, Backbone(str(inside) if inside.is_dir() else settings.backbone, tensors))


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
