"""COMET (wmt22-comet-da): a learned score of a draft beside the reference and a source.

Reports have no source, so each draft is measured with three stand-ins: the reference (`comet`), an
empty text, the prior report. This is unbabel-comet's RegressionMetric, inference only; rows depend
on their pair alone. See docs/decisions/comet.md.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import local
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.errors import MetricUnavailableError
from tabon.metrics.models import bert
from tabon.metrics.protocol import Pair, Score, Statistics, mean_of

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]

REPOSITORY, REVISION = "Unbabel/wmt22-comet-da", "2760a223ac957f30acfb18c8aa649b01cf1d75f2"
BACKBONES = MappingProxyType(  # the name in hparams.yaml: where its tokenizer and config are today
    {"xlm-roberta-large": ("FacebookAI/xlm-roberta-large", "c23d21b0620b635a76227c604d44e43a9f0ee389")}
)
CHECKPOINT, HPARAMS = "checkpoints/model.ckpt", "hparams.yaml"
CONFIG, TOKENIZER = "config.json", "tokenizer.json"
KNOWN: Mapping[str, tuple[object, ...]] = MappingProxyType(  # what is understood, unbabel's default first
    {
        "class_identifier": ("regression_metric",),
        "encoder_model": ("XLM-RoBERTa",),
        "pool": ("avg",),
        "layer": ("mix",),
        "layer_transformation": ("softmax", "sparsemax", "sparsemax_patch"),
        "layer_norm": (True, False),
        "activations": ("Tanh", "Sigmoid"),
        "final_activation": (None, "Tanh", "Sigmoid"),
    }
)
PUBLISHED = MappingProxyType(
    {
        CHECKPOINT: "e213091cde220f97b89f8bdfa750c458cfea741ad62affb455b59900210ff2af",
        HPARAMS: "265ef22345ea5b9ffa020a7fe5be613a95ff931c44bf8d09a26d96c6c6048f60",
    }
)
LARGEST_HPARAMS = 1 << 16  # bytes; the published file has 700
LONGEST_VALUE = 200  # characters
ENCODER = "encoder.model."
BATCH = 8
NOT_USED = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")  # in some older files

Rows = NDArray[np.float32]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Settings:
    """What hparams.yaml says about the network; the sizes are in the weights."""

    backbone: str
    sparse: bool  # sparsemax instead of softmax over the layers
    layer_norm: bool
    activation: str
    final_activation: str | None


def _unfit(reason: str) -> MetricUnavailableError:
    """Return the error for files that are there but cannot be used."""
    remedy = f"use {REPOSITORY}: hf download {REPOSITORY} {CHECKPOINT} {HPARAMS} --revision {REVISION}"
    return MetricUnavailableError("comet", reason, remedy)


def read_settings(path: Path) -> Settings:
    """Read hparams.yaml; a setting that would need another network is refused by name."""
    said = _read_yaml(path)
    if not isinstance(said, dict):
        raise _unfit(f"{path.name} is not a table of settings")
    chosen = {name: said.get(name, values[0]) for name, values in KNOWN.items()}
    for name, values in KNOWN.items():
        if chosen[name] not in values:
            raise _unfit(f"{path.name} says {name}: {_shown(chosen[name])}, which tabon does not know")
    backbone = said.get("pretrained_model", "xlm-roberta-large")
    if not isinstance(backbone, str) or len(backbone) > LONGEST_VALUE:
        raise _unfit(f"{path.name} says pretrained_model: {_shown(backbone)}, which is no name")
    return Settings(
        backbone=backbone,
        sparse=chosen["layer_transformation"] == "sparsemax",  # unbabel reads sparsemax_patch as softmax
        layer_norm=chosen["layer_norm"],
        activation=chosen["activations"],
        final_activation=chosen["final_activation"],
    )


def _read_yaml(path: Path) -> object:
    """Read a small YAML file without aliases, with which a few lines can mean any number; else None."""
    yaml = require("yaml", extra=bert.EXTRA, feature="pyyaml")
    if path.stat().st_size > LARGEST_HPARAMS:
        return None
    try:
        text = path.read_text(encoding="utf-8")
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            return None
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _shown(value: object) -> str:
    """Write a value for a message; what is no short text or number is named by its kind."""
    short = (
        value is None or isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 1 << 63)
    )
    return repr(value)[:LONGEST_VALUE] if short else type(value).__name__


def sparsemax(weights: "torch.Tensor") -> "torch.Tensor":
    """Return the nearest point of the simplex (Martins and Astudillo 2016): softmax with true zeros.

    >>> import torch
    >>> sparsemax(torch.tensor([0.5, 2.0, 1.5])).tolist()
    [0.0, 0.75, 0.25]
    """
    ranked = weights.sort(descending=True).values
    excess = ranked.cumsum(0) - 1.0
    ranks = np.arange(1, len(weights) + 1)
    kept = int((ranked * ranked.new_tensor(ranks) > excess).sum())
    return (weights - excess[kept - 1] / kept).clamp(min=0.0)


def normalised(layer: "torch.Tensor") -> "torch.Tensor":
    """Shift and scale a layer to mean 0 and variance 1 over all words and dimensions of a text."""
    mean = layer.mean(dim=(1, 2), keepdim=True)
    variance = ((layer - mean) ** 2).mean(dim=(1, 2), keepdim=True)
    return (layer - mean) / (variance + 1e-12).sqrt()


class Network:
    """XLM-R, a mix of its layers, the mean over words, and a feed-forward estimator."""

    def __init__(self, tensors: "Tensors", config: Path, tokenizer: Path, settings: Settings) -> None:
        """Put the weights of a checkpoint in their places."""
        self._torch = require("torch", extra=bert.EXTRA, feature="torch")
        library = require("transformers", extra=bert.EXTRA, feature="transformers")
        self._settings = settings
        with self._torch.device("meta"):  # the weights are put in, not copied
            encoder = library.XLMRobertaModel(
                library.XLMRobertaConfig.from_json_file(str(config)), add_pooling_layer=False
            )
        own = {name.removeprefix(ENCODER): t for name, t in tensors.items() if name.startswith(ENCODER)}
        used = {name: tensor.float() for name, tensor in own.items() if name not in NOT_USED}
        encoder.load_state_dict(used, strict=True, assign=True)
        self._encoder = encoder.eval()
        self._pad = self._encoder.config.pad_token_id
        self._gamma = tensors["layerwise_attention.gamma"].float()
        found = (re.fullmatch(r"estimator\.ff\.(\d+)\.weight", name) for name in tensors)
        stems = [f"estimator.ff.{place}" for place in sorted(int(match[1]) for match in found if match)]
        self._estimator = [
            (tensors[f"{stem}.weight"].float(), tensors[f"{stem}.bias"].float()) for stem in stems
        ]
        self.max_tokens = int(self._encoder.config.max_position_embeddings) - 4  # as unbabel cuts
        self._tokenizer = _load_tokenizer(tokenizer, self.max_tokens)
        self._here = local()  # the mix of the layers so far, of the text that this thread is at
        modules = [self._encoder.embeddings, *self._encoder.encoder.layer]
        weights = _layer_weights(tensors, sparse=settings.sparse)
        for module, weight in zip(modules, weights, strict=True):
            module.register_forward_hook(partial(self._add, weight))

    def _add(self, weight: "torch.Tensor", _module: object, _inputs: object, output: Any) -> None:  # noqa: ANN401
        """Add one layer to the mix."""
        layer = output[0] if isinstance(output, tuple) else output
        share = weight * (normalised(layer) if self._settings.layer_norm else layer)
        self._here.mix = share if self._here.mix is None else self._here.mix + share

    def vectors(self, texts: list[str]) -> Rows:
        """Return one vector per text; the same bits whatever else is in the batch."""
        whole = [text.encode("utf-8", "replace").decode() for text in texts]
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(whole)]
        batches = list(bert.batches_of_one_length([len(ids) for ids in tokens], lambda _: BATCH))
        rows = np.empty((len(texts), self._encoder.config.hidden_size), dtype=np.float32)
        embedded = self._side_by_side(partial(self._embed, tokens), batches)
        for batch, found in zip(batches, embedded, strict=True):
            rows[batch] = found
        return rows

    def scores(self, vectors: Rows, triples: Places) -> Statistics:
        """Score (draft, reference, source), each given by its row of `vectors`."""
        batches = [list(range(i, min(i + BATCH, len(triples)))) for i in range(0, len(triples), BATCH)]
        found = self._side_by_side(partial(self._estimate, vectors, triples), batches)
        return np.concatenate(found).astype(np.float64)

    def _side_by_side(self, work: Callable[[list[int]], Rows], batches: list[list[int]]) -> list[Rows]:
        """Work on batches of `BATCH`, each on one thread; a short one is filled up with its last member."""
        full = [batch + batch[-1:] * (BATCH - len(batch)) for batch in batches]
        done = bert.on_one_thread_each(work, full)
        return [rows[: len(batch)] for rows, batch in zip(done, batches, strict=True)]

    def _embed(self, tokens: list[list[int]], batch: list[int]) -> Rows:
        """Embed texts of one length: the mean of the mixed layers over words."""
        ids = self._torch.tensor([tokens[place] for place in batch])
        self._here.mix = None
        with self._torch.inference_mode():
            self._encoder(input_ids=ids, token_type_ids=self._torch.zeros_like(ids))
            words = (self._gamma * self._here.mix).masked_fill((ids == self._pad)[..., None], 0.0)
            rows: Rows = (words.sum(dim=1) / ids.shape[1]).numpy()
        return rows

    def _estimate(self, vectors: Rows, triples: Places, batch: list[int]) -> Rows:
        """Run the estimator on what unbabel calls the embedded sequences."""
        draft, reference, source = (self._torch.from_numpy(vectors[triples[batch, i]]) for i in range(3))
        beside = [part for other in (reference, source) for part in (draft * other, (draft - other).abs())]
        activation = getattr(self._torch, self._settings.activation.lower())
        with self._torch.inference_mode():
            values = self._torch.cat([draft, reference, *beside], dim=1)
            for weight, bias in self._estimator[:-1]:
                values = activation(self._torch.nn.functional.linear(values, weight, bias))
            values = self._torch.nn.functional.linear(values, *self._estimator[-1])
            if self._settings.final_activation is not None:
                values = getattr(self._torch, self._settings.final_activation.lower())(values)
        rows: Rows = values[:, 0].numpy()
        return rows


def _layer_weights(tensors: "Tensors", *, sparse: bool) -> "torch.Tensor":
    """Return each layer's share of the mix; the embeddings are the first layer."""
    stem = "layerwise_attention.scalar_parameters."
    number = sum(name.startswith(stem) for name in tensors)
    raw = [float(tensors[f"{stem}{place}"]) for place in range(number)]
    weights = tensors[f"{stem}0"].float().new_tensor(raw)
    return sparsemax(weights) if sparse else weights.softmax(dim=0)


def _load_tokenizer(path: Path, max_tokens: int) -> Any:  # noqa: ANN401  # an optional import
    """Load tokenizer.json as it is; the classes of transformers 5 rebuild parts of it."""
    library = require("tokenizers", extra=bert.EXTRA, feature="tokenizers")
    try:
        tokenizer = library.Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise ValueError(f"{path.name} is no tokenizer") from error
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    return tokenizer


class Comet:
    """COMET with three stand-ins for the source."""

    name = "comet"
    statistics = ("source-reference", "source-empty", "source-prior")
    scores = (
        Score("comet", mean_of(0)),
        Score("comet-src-reference", mean_of(0)),
        Score("comet-src-empty", mean_of(1)),
        Score("comet-src-prior", mean_of(2)),
    )

    def __init__(self, network: Network, signature: str) -> None:
        """Take a loaded network and the line that names all it is made of."""
        self._network = network
        self.signature = signature

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair, one score for each source; each distinct text is embedded once."""
        if not pairs:
            return np.empty((0, len(self.statistics)))
        texts = sorted(
            {"", *(text for pair in pairs for text in (pair.reference, pair.candidate, pair.prior))}
        )
        place = {text: row for row, text in enumerate(texts)}
        triples = [
            (place[pair.candidate], place[pair.reference], place[source])
            for pair in pairs
            for source in (pair.reference, "", pair.prior)
        ]
        found = self._network.scores(self._network.vectors(texts), np.array(triples))
        return found.reshape(len(pairs), len(self.statistics))


def load(model: Path | None) -> Comet:
    """Load COMET from a folder with checkpoints/model.ckpt and hparams.yaml, or from the Hub cache.

    Raises:
        MetricUnavailableError: a file is missing, or is of another kind of model.
        BadInputError: the checkpoint is damaged.
    """
    folder = bert.find_folder(
        "comet", REPOSITORY, (CHECKPOINT, HPARAMS), revision=REVISION, model=model, published=PUBLISHED
    )
    settings = read_settings(folder / HPARAMS)
    repository, revision = BACKBONES.get(settings.backbone, (settings.backbone, None))
    beside = folder / settings.backbone  # an absolute path stays one
    backbone = bert.find_folder(
        "comet",
        repository,
        (CONFIG, TOKENIZER),
        revision=revision,
        model=beside if beside.is_dir() else None,
    )
    tensors = bert.load_tensors(folder / CHECKPOINT)
    try:
        network = Network(tensors, backbone / CONFIG, backbone / TOKENIZER, settings)
        network.scores(network.vectors([""]), np.zeros((1, 3), dtype=np.int64))
    except (LookupError, ValueError, RuntimeError) as error:
        raise _unfit(
            f"{CHECKPOINT} does not fit the backbone {settings.backbone} ({type(error).__name__})"
        ) from error
    files = {"weights": folder / CHECKPOINT, "hparams": folder / HPARAMS}
    files |= {"config": backbone / CONFIG, "tokenizer": backbone / TOKENIZER}
    parts = ["comet", "source:reference", *(f"{kind}:{bert.digest(path)}" for kind, path in files.items())]
    parts += [f"max-tokens:{network.max_tokens}", f"batching:{BATCH} of one length"]
    parts += [f"{package}:{version(package)}" for package in ("transformers", "tokenizers", "torch")]
    return Comet(network, "|".join(parts))
