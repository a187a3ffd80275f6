"""BERTScore: how well the tokens of two texts match in a language model's eyes (Zhang et al., 2020).

The numbers are those of bert-score 0.3.13 without idf, as it was on transformers 4. An empty
text scores 0, after rescaling too: docs/decisions/bertscore.md says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.errors import MetricUnavailableError
from tabon.metrics.models import bert
from tabon.metrics.protocol import Pair, Score, Statistics, mean_of

REPOSITORY = "FacebookAI/roberta-large"
REVISION = "722cf37b1afa9454edce342e7895e588b6ff1d59"
WEIGHTS = "model.safetensors"
FILES = (WEIGHTS, "config.json", "tokenizer.json")
ROBERTA_LARGE = ("roberta", 24, 1024)  # model type, layers, width
BASELINE = (0.83150584, 0.8314941, 0.83122575)  # bert-score 0.3.13: rescale_baseline/en/roberta-large.tsv, 17
LAYERS: Mapping[tuple[str, int], int] = MappingProxyType(  # (model type, layers): bert-score's choice
    {
        ("bert", 4): 3,
        ("bert", 6): 5,
        ("bert", 12): 9,
        ("bert", 24): 18,
        ("distilbert", 6): 5,
        ("roberta", 6): 5,
        ("roberta", 12): 10,
        ("roberta", 24): 17,
        ("xlm-roberta", 12): 9,
        ("xlm-roberta", 24): 17,
    }
)
SPACE_BEFORE = {"roberta"}  # model types where bert-score reads "lungs" as " lungs"
AT_ONCE = 512  # pairs whose embeddings are in memory together
Embedded = tuple[NDArray[np.float32], NDArray[np.bool_]]  # unit rows (tokens, width), which of them count


@dataclass(frozen=True, slots=True)
class Recipe:
    """The layer that is read, and the scores of unrelated sentences that are taken as 0."""

    layer: int
    baseline: tuple[float, float, float] | None = None  # of precision, recall, F1; None: not rescaled


def recipe_for(config: Any) -> Recipe:  # noqa: ANN401  # a PretrainedConfig, an optional import
    """Choose the layer as bert-score does, the last where it has no choice; rescale RoBERTa large only."""
    depth = int(config.num_hidden_layers)
    layer = LAYERS.get((config.model_type, depth), depth)
    large = (config.model_type, depth, config.hidden_size) == ROBERTA_LARGE
    return Recipe(layer, BASELINE if large else None)


def rescale(values: Statistics, baseline: Sequence[float]) -> Statistics:
    """Map the baseline to 0 and leave 1 where it is.

    >>> rescale(np.array([0.9, 0.8, 1.0]), (0.8, 0.8, 0.8)).round(3).tolist()
    [0.5, 0.0, 1.0]
    """
    zero = np.asarray(baseline, dtype=np.float64)
    rescaled: Statistics = (values - zero) / (1.0 - zero)
    return rescaled


class BertScore:
    """Precision, recall and F1 of one model's token embeddings."""

    name = "bertscore"
    statistics = ("precision", "recall", "f1")
    scores = (
        Score("bertscore-p", mean_of(0)),
        Score("bertscore-r", mean_of(1)),
        Score("bertscore-f1", mean_of(2)),
    )

    def __init__(self, folder: Path, *, named: str, recipe: Recipe | None = None) -> None:
        """Load model and tokenizer from a folder; the layers above the one that is read are left out."""
        config = bert.load_config(folder)
        spaced = {"add_prefix_space": True} if config.model_type in SPACE_BEFORE else {}
        self._tokenizer = bert.load_tokenizer(folder, **spaced)
        self._uncounted = [self._tokenizer.cls_token_id, self._tokenizer.sep_token_id]
        if config.is_encoder_decoder or None in self._uncounted or not hasattr(config, "num_hidden_layers"):
            raise MetricUnavailableError(
                "bertscore",
                f"{folder} holds a {config.model_type} model, which is not an encoder like BERT",
                "name a folder that holds one: --metric-files bertscore=FOLDER",
            )
        self.recipe = recipe or recipe_for(config)
        self._longest = min(self._tokenizer.model_max_length, _positions(config))
        config.num_hidden_layers = self.recipe.layer
        self._model = bert.load_encoder(folder, config)
        parts = (
            f"model:{named}",
            f"weights:{bert.digest(folder / WEIGHTS)}",
            f"tokenizer:{bert.digest(*bert.tokenizer_files(folder))}",
            f"layer:{self.recipe.layer}",
            "idf:no",
            f"rescaled:{'bert-score-0.3.13-en' if self.recipe.baseline else 'no'}",
            f"tokens:{self._longest}",
            "empty:0",
            *(f"{package}:{version(package)}" for package in ("transformers", "torch")),
        )
        self.signature = "|".join((self.name, *parts))

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return precision, recall and F1 of each pair; each distinct text is embedded once."""
        texts = [(_cleaned(pair.reference), _cleaned(pair.candidate)) for pair in pairs]
        distinct = sorted(set(texts))
        scored = dict(zip(distinct, self._scored(distinct), strict=True))
        return np.array([scored[text] for text in texts], dtype=np.float64).reshape(-1, 3)

    def _scored(self, texts: list[tuple[str, str]]) -> Iterator[Statistics]:
        """Score distinct pairs part by part, dropping an embedding after its last use."""
        parts = [texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE)]
        last_use = {text: number for number, part in enumerate(parts) for pair in part for text in pair}
        embedded: dict[str, Embedded] = {}
        for number, part in enumerate(parts):
            new = list(dict.fromkeys(text for pair in part for text in pair if text not in embedded))
            embedded |= zip(new, self._embed(new), strict=True)
            couples = [(embedded[reference], embedded[candidate]) for reference, candidate in part]
            yield from bert.on_one_thread_each(partial(_matched, self.recipe.baseline), couples)
            embedded = {text: rows for text, rows in embedded.items() if last_use[text] > number}

    def _embed(self, texts: list[str]) -> Iterator[Embedded]:
        """Return the unit rows of each text's tokens, and which of them count."""
        if not texts:
            return
        ids = self._tokenizer(texts, truncation=True, max_length=self._longest)["input_ids"]
        for row, vectors in zip(ids, bert.encode_rows(ids, self._forward), strict=True):
            yield vectors, ~np.isin(row, self._uncounted)

    def _forward(self, ids: Any) -> Any:  # noqa: ANN401  # tensors, an optional import
        """Return unit embeddings (texts, tokens, width)."""
        rows = self._model(ids).last_hidden_state
        return rows / rows.norm(dim=-1, keepdim=True)


def _matched(baseline: Sequence[float] | None, couple: tuple[Embedded, Embedded]) -> Statistics:
    """Match greedily; markers of beginning and end can be matched but do not count themselves."""
    (reference, theirs), (candidate, ours) = couple
    if not theirs.any() or not ours.any():
        return np.zeros(3)
    torch = require("torch", extra=bert.EXTRA, feature="torch")
    cosines = (torch.from_numpy(candidate) @ torch.from_numpy(reference).T).numpy()
    precision = float(cosines.max(axis=1)[ours].mean(dtype=np.float64))
    recall = float(cosines.max(axis=0)[theirs].mean(dtype=np.float64))
    total = precision + recall
    raw = np.array([precision, recall, 2 * precision * recall / total if total else 0.0])
    return raw if baseline is None else rescale(raw, baseline)


def _positions(config: Any) -> int:  # noqa: ANN401  # a PretrainedConfig, an optional import
    """Return how many tokens a model can read; RoBERTa counts positions from after its padding token."""
    shift = config.pad_token_id + 1 if "roberta" in config.model_type else 0
    return int(getattr(config, "max_position_embeddings", 512)) - shift


def _cleaned(text: str) -> str:
    """Return a text without white space around it and without lone surrogates."""
    return text.encode("utf-8", "replace").decode().strip()


def load(model: Path | None) -> BertScore:
    """Load roberta-large from the local Hub cache, or any encoder from a local folder.

    A local folder needs config.json, model.safetensors and the tokenizer's files.
    """
    if model is not None:
        folder = bert.find_folder(
            "bertscore", REPOSITORY, (WEIGHTS, "config.json"), revision=None, model=model
        )
        return BertScore(folder, named=f"local/{folder.resolve().name}")
    folder = bert.find_folder("bertscore", REPOSITORY, FILES, revision=REVISION, model=None)
    return BertScore(folder, named=f"{REPOSITORY}@{REVISION[:12]}")
