"""Sentence-transformers models, run so that a row depends on its sentence alone.

On a processor every batch runs on one thread and several run side by side; on GPUs two batches are
under way on each, so that one is being fetched while the other is worked on.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.encoders.model_folder import load_model, reading, settings_hash, weights_hash
from tabon.encoders.protocol import EncoderFingerprint, Matrix, Placement, devices_of
from tabon.encoders.tokens import (
    Groups,
    TokenBatch,
    Tokenising,
    cut_and_unpadded,
    in_order,
    mixed_batches,
    one_length_batches,
)
from tabon.errors import EncoderError

if TYPE_CHECKING:
    from tabon.encoders.torch_engine.kernels import WrittenOut

CPU_TOKENS, GPU_TOKENS = 384, 8192  # in a batch
CPU_BATCH, GPU_BATCH = 16_384, 1 << 19  # sentences that are best encoded at once
UNDER_WAY = 2  # batches on each GPU
TOKEN_PROCESSES = 3  # that serve GPUs
PROBES = [
    "The lungs are clear.",
    "No pleural effusion or pneumothorax.",
    "New right pleural effusion.",
    "Stable mild cardiomegaly since the prior study.",
    "Interval removal of the right internal jugular central venous catheter.",
    "Patchy opacity in the left lower lobe, which may represent pneumonia or atelectasis.",
    "Endotracheal tube tip is 4.5 cm above the carina.",
    "Normal.",
]
Forward: TypeAlias = "LibraryForward | WrittenOut"  # ids and groups to one unit row per sentence
Tensor: TypeAlias = Any  # torch.Tensor, an optional import
WRITTEN_OUT = ("BertModel", "MPNetModel")
HEAD_SIZES = (16, 32, 64, 128)  # that tensor cores multiply in one piece


def forward_of(model: Any, tokens: int, precision: str = "float32") -> Forward:  # noqa: ANN401
    """Return the fastest way to run a model, written out where that is known, on batches of so many tokens.

    The model is a SentenceTransformer in float32, on the device where it is to run; it may be changed.
    """
    inner: Any = getattr(model[0], "auto_model", None)
    names = [type(module).__name__ for module in model]
    plain = names[:2] == ["Transformer", "Pooling"] and set(names[2:]) <= {"Normalize"}
    mean = plain and model[1].get_config_dict().get("pooling_mode") == "mean"
    if not mean or type(inner).__name__ not in WRITTEN_OUT or inner.config.hidden_act != "gelu":
        return LibraryForward(model, precision)
    on_gpu = inner.device.type == "cuda" and find_spec("triton")  # torch brings it there
    size = inner.config.hidden_size // inner.config.num_attention_heads
    if on_gpu and precision != "float32" and size in HEAD_SIZES:
        from tabon.encoders.torch_engine.gpu_kernels import OnGpu

        return OnGpu(inner, tokens, precision)
    from tabon.encoders.torch_engine.kernels import WrittenOut

    return WrittenOut(inner, tokens, precision)


class LibraryForward:
    """Any sentence-transformers model, run by the library."""

    batches = staticmethod(one_length_batches)

    def __init__(self, model: Any, precision: str) -> None:  # noqa: ANN401
        """Bring the model into the precision."""
        self._torch = require("torch", extra="torch", feature="torch")
        self._model, self.precision = model.to(getattr(self._torch, precision)), precision

    def __call__(self, ids: Tensor, groups: Groups) -> Tensor:
        """Return one unit row per sentence."""
        [group] = groups
        ids = ids.view(group)
        features = {"input_ids": ids, "attention_mask": self._torch.ones_like(ids)}
        if "token_type_ids" in self._model.tokenizer.model_input_names:
            features["token_type_ids"] = self._torch.zeros_like(ids)
        vectors = self._model(features)["sentence_embedding"]
        return self._torch.nn.functional.normalize(vectors.float(), dim=1)


def cosine_error(reduced: Matrix, exact: Matrix) -> str:
    """Return the power of ten above the worst 1 - cosine of two sets of unit rows.

    >>> cosine_error(np.array([[1.0, 0.0]]), np.array([[0.99997, 0.00775]]))
    '1e-04'
    """
    cosine = np.einsum("nd,nd->n", reduced.astype(np.float64), exact.astype(np.float64))
    worst = max(float(1.0 - cosine.min()), 1e-9)
    return f"{10.0 ** math.ceil(math.log10(worst)):.0e}"


class SentenceTransformerEncoder:
    """A sentence-transformers folder with bit-stable rows."""

    def __init__(self, folder: Path, *, name: str, revision: str, placement: Placement | None = None) -> None:
        """Load the model where it is to run and hash what it is made of."""
        self._torch = require("torch", extra="torch", feature="torch")
        where = placement or Placement()
        self._devices = devices_of(where)
        weights = weights_hash(folder)
        self._name, self._model = name, load_model(folder)
        with reading(folder):
            limit = int(self._model.max_seq_length or 0)
            self._dimension = int(self._model.get_embedding_dimension())
            tokenizer = _tokenizer(self._model, limit)
        self._on_gpu = self._devices != ("cpu",)
        self._tokenising = Tokenising(tokenizer, TOKEN_PROCESSES if self._on_gpu else 0)
        self._tokens = GPU_TOKENS if self._on_gpu else CPU_TOKENS
        self.chunk = GPU_BATCH * len(self._devices) if self._on_gpu else CPU_BATCH
        placed = where.placed(self._model, self._devices)
        with reading(folder):
            self._forwards = tuple(
                (forward_of(copy, self._tokens, where.precision), device)
                for copy, device in zip(placed, self._devices, strict=True)
            )
        of_one_length = "" if self._forwards[0][0].batches is mixed_batches else " of one length"
        self.fingerprint = EncoderFingerprint(
            encoder=name,
            revision=revision,
            weights=weights,
            settings=settings_hash(folder),
            dimension=self._dimension,
            max_tokens=limit,
            precision=self._forwards[0][0].precision + self._measured_error(where),
            batching=f"{self._tokens} tokens{of_one_length}{', cuda' if self._on_gpu else ''}",
        )

    def encode(self, sentences: list[str], /) -> Matrix:
        """Return one unit row per sentence; the same bits whatever else is in the batch."""
        return self._rows(sentences, self._forwards, self._tokens)

    def _measured_error(self, where: Placement) -> str:
        """Say how far rows in reduced precision are from float32 ones, on a few sentences."""
        if where.precision == "float32":
            return ""
        exact = self._rows(PROBES, ((forward_of(self._model, CPU_TOKENS), "cpu"),), CPU_TOKENS)
        return f" (cosine error < {cosine_error(self.encode(PROBES), exact)})"

    def _rows(self, sentences: list[str], forwards: tuple[tuple[Forward, str], ...], tokens: int) -> Matrix:
        """Tokenise, put into batches, and run them on these copies of the model in turn."""
        rows = np.empty((len(sentences), self._dimension), dtype=np.float32)
        put_together = forwards[0][0].batches
        order = np.arange(len(sentences))
        if put_together is mixed_batches:  # which are fastest of nearly one length
            order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
        threads = self._torch.get_num_threads()
        count = UNDER_WAY * len(self._devices) if self._on_gpu else threads
        alone = {"initializer": self._torch.set_num_threads, "initargs": (1,)}
        try:
            with (
                self._tokenising.ahead([sentences[place] for place in order.tolist()]) as chunks,
                ThreadPoolExecutor(count, **alone) as pool,
            ):
                work = zip(cycle(forwards), put_together(chunks, tokens), strict=False)
                for positions, vectors in in_order(pool, self._run, work, 2 * count):
                    rows[order[positions]] = vectors
        finally:
            self._torch.set_num_threads(threads)
        return rows

    def _run(self, work: tuple[tuple[Forward, str], TokenBatch]) -> tuple[NDArray[np.int64], Matrix]:
        """Run one batch on a copy of the model; return where its rows belong, and the rows."""
        (forward, device), batch = work
        ids = self._torch.from_numpy(batch.ids).to(device)
        try:
            with self._torch.inference_mode():
                vectors = forward(ids, batch.groups)[: len(batch.positions)]
            rows: Matrix = vectors.cpu().numpy().reshape(len(batch.positions), self._dimension)
        except Exception as error:  # a library that meets settings of another model raises anything
            raise EncoderError(
                f"the encoder {self._name} failed on a batch ({type(error).__name__}); check that its files "
                "fit each other and that there is memory enough"
            ) from error
        return batch.positions, rows


def _tokenizer(model: Any, limit: int) -> Any:  # noqa: ANN401  # a tokenizers.Tokenizer
    """Return a copy of the model's tokenizer that cuts at the limit and never pads."""
    library = require("tokenizers", extra="minilm", feature="tokenizers")
    copy = library.Tokenizer.from_str(model.tokenizer.backend_tokenizer.to_str())
    return cut_and_unpadded(copy, limit)
