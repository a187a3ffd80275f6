"""CheXbert: which of 14 observations a report states, by a BERT with 14 small heads, and F1 of that.

Labels as f1chexbert 0.0.2 gives them: positive and uncertain count as there (docs/decisions/chexbert.md).
Files: chexbert.pth of StanfordAIMI/RRG_scorers, whose sha256 is checked, and the
tokenizer and config of bert-base-uncased. Or all of them in one folder.
"""

import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.errors import BadInputError, MetricUnavailableError
from tabon.metrics.labels import STATISTICS, Labels, label_scores, measure_labels
from tabon.metrics.models import bert
from tabon.metrics.protocol import Pair, Statistics
from tabon.text.observations import OBSERVATIONS

REPOSITORY = "StanfordAIMI/RRG_scorers"
REVISION = "6646433b3ad83a10f6e141db76d0ece44312b236"
WEIGHTS = "chexbert.pth"
PUBLISHED = MappingProxyType({WEIGHTS: "6550703c92d640e1e04d8105a7a185d76ece0f25fcbf033d292785bf22c0fde1"})
BACKBONE = "google-bert/bert-base-uncased"
BACKBONE_REVISION = "86b5e0934494bd15c9632b12f734a8a67f723594"
BACKBONE_FILES = ("config.json", "tokenizer_config.json", "vocab.txt")
VOCABULARIES = ("tokenizer.json", "vocab.txt")
POSITIVE, UNCERTAIN = 1, 3  # of blank 0, positive 1, negative 2, uncertain 3
CLASSES = (*[4] * 13, 2)  # "No Finding" is only there or not
LONGEST = 512


def find_files(model: Path | None, *, metric: str = "chexbert") -> tuple[Path, Path]:
    """Return where the weights are, and the folder of config.json and the tokenizer.

    All are in the folder `model`, or in the local Hub cache. `metric` is the one that asks.
    """
    if model is None:
        weights = bert.find_folder(
            metric, REPOSITORY, (WEIGHTS,), revision=REVISION, model=None, published=PUBLISHED
        )
        backbone = bert.find_folder(metric, BACKBONE, BACKBONE_FILES, revision=BACKBONE_REVISION, model=None)
        return weights / WEIGHTS, backbone
    folder = bert.find_folder(metric, REPOSITORY, (WEIGHTS, "config.json"), revision=None, model=model)
    if not any((folder / name).is_file() for name in VOCABULARIES):
        raise MetricUnavailableError(
            metric, f"vocab.txt is not in {folder}", f"take it from {BACKBONE} on the Hub"
        )
    return folder / WEIGHTS, folder


class CheXbert:
    """F1 of the observations that CheXbert reads in draft and reference."""

    name = "chexbert"
    statistics = STATISTICS
    scores = label_scores("chexbert")

    def __init__(self, weights: Path, backbone: Path) -> None:
        """Load tokenizer, encoder and heads."""
        torch = require("torch", extra=bert.EXTRA, feature="torch")
        config = bert.load_config(backbone)
        tensors = {
            name.removeprefix("module."): tensor for name, tensor in bert.load_tensors(weights).items()
        }
        self._tokenizer = bert.load_tokenizer(backbone)
        self._longest = min(LONGEST, int(config.max_position_embeddings))
        inner = {name[5:]: tensor for name, tensor in tensors.items() if name.startswith("bert.")}
        self._model = bert.load_encoder(weights, config, tensors=inner)
        self._heads = tuple(
            torch.cat([_head(tensors, number, part, weights) for number in range(len(CLASSES))])
            for part in ("weight", "bias")
        )
        self.signature = "|".join(
            (
                self.name,
                f"weights:{bert.digest(weights)}",
                f"tokenizer:{bert.digest(*bert.tokenizer_files(backbone))}",
                "uncertain:positive",
                f"tokens:{self._longest}",
                "empty:labelled",
                *(f"{package}:{version(package)}" for package in ("transformers", "torch")),
            )
        )

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return hits, false alarms and misses of each pair; each distinct text is labelled once."""
        cleaned = [
            Pair(reference=_cleaned(pair.reference), candidate=_cleaned(pair.candidate)) for pair in pairs
        ]
        return measure_labels(cleaned, self.label)

    def label(self, texts: Sequence[str]) -> Labels:
        """Return which observations each text states, (texts, 14), in the order of OBSERVATIONS."""
        if not texts:
            return np.zeros((0, len(OBSERVATIONS)), dtype=bool)
        logits = np.stack(bert.encode_rows(self._ids(texts), self._forward))
        heads = np.split(logits, np.cumsum(CLASSES)[:-1], axis=1)
        classes = np.stack([head.argmax(axis=1) for head in heads], axis=1)
        return np.isin(classes, (POSITIVE, UNCERTAIN))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vector of each text that the heads read, (texts, width): the last layer's first."""
        if not texts:
            return np.zeros((0, self._model.config.hidden_size), dtype=np.float32)
        return np.stack(bert.encode_rows(self._ids(texts), self._first))

    def _ids(self, texts: Sequence[str]) -> Any:  # noqa: ANN401  # lists of token ids
        """Return the token ids of each text."""
        cleaned = [_cleaned(text) for text in texts]
        return self._tokenizer(cleaned, truncation=True, max_length=self._longest)["input_ids"]

    def _first(self, ids: Any) -> Any:  # noqa: ANN401  # tensors, an optional import
        """Return the last layer's vectors of the first token, (texts, width)."""
        return self._model(ids).last_hidden_state[:, 0]

    def _forward(self, ids: Any) -> Any:  # noqa: ANN401  # tensors, an optional import
        """Return the logits of all heads side by side, (texts, 54)."""
        torch = require("torch", extra=bert.EXTRA, feature="torch")
        return torch.nn.functional.linear(self._first(ids), *self._heads)


def _head(tensors: dict[str, Any], number: int, part: str, path: Path) -> Any:  # noqa: ANN401  # a tensor
    """Return one head's weight or bias in float32."""
    name = f"linear_heads.{number}.{part}"
    if name not in tensors or len(tensors[name]) != CLASSES[number]:
        raise BadInputError(f"{path.name} has no {name} of {CLASSES[number]} classes; fetch it again")
    return tensors[name].float()


def _cleaned(text: str) -> str:
    """Return a text on one line with single spaces, without lone surrogates."""
    return re.sub(r"\s+", " ", text.encode("utf-8", "replace").decode()).strip()


def load(model: Path | None) -> CheXbert:
    """Load CheXbert from the local Hub cache, or from a folder that holds all its files."""
    return CheXbert(*find_files(model))
