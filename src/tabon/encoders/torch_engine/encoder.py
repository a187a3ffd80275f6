"""Sentence-transformers models, run so that a row depends on its sentence alone.

Tokens are made ahead of the model, beside it. On a processor every batch runs on
one thread and several run side by side; on GPUs two batches are under way on
each, so that one is being fetched while the other is worked on.
"""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.encoders.batches import Batches, TokenBatch, in_order, mixed_batches
from tabon.encoders.model_folder import load_model, reading, settings_hash, weights_hash
from tabon.encoders.placement import PROBES, Placement, cosine_error, devices_of
from tabon.encoders.protocol import EncoderFingerprint, Matrix
from tabon.encoders.tokens import tokenising
from tabon.encoders.torch_engine.forward import Forward, forward_of
from tabon.errors import EncoderError

CPU_TOKENS, GPU_TOKENS = 384, 16_384  # in a batch
CPU_BATCH, GPU_BATCH = 16_384, 1 << 19  # sentences that are best encoded at once
UNDER_WAY = 2  # batches on each GPU
TOKEN_PROCESSES = 3  # that serve GPUs


@dataclass(frozen=True, slots=True)
class _Work:
    """One batch, and the copy of the model that runs it."""

    forward: Forward
    device: str
    batch: TokenBatch


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
        self._tokenising = tokenising(tokenizer, TOKEN_PROCESSES if self._on_gpu else 0)
        self._tokens = GPU_TOKENS if self._on_gpu else CPU_TOKENS
        self.chunk = GPU_BATCH * len(self._devices) if self._on_gpu else CPU_BATCH
        placed = where.placed(self._model, self._devices)
        with reading(folder):
            self._forwards = tuple(
                (forward_of(copy, self._tokens, where.precision), device)
                for copy, device in zip(placed, self._devices, strict=True)
            )
        self.fingerprint = EncoderFingerprint(
            encoder=name,
            revision=revision,
            weights=weights,
            settings=settings_hash(folder),
            dimension=self._dimension,
            max_tokens=limit,
            precision=self._forwards[0][0].precision + self._measured_error(where),
            batching=self._batching(),
        )

    def _batching(self) -> str:
        """Say how sentences are put together."""
        mixed = self._forwards[0][0].batches is mixed_batches
        return f"{self._tokens} tokens{'' if mixed else ' of one length'}{', cuda' if self._on_gpu else ''}"

    def encode(self, sentences: list[str], /) -> Matrix:
        """Return one unit row per sentence; the same bits in whatever company."""
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
        order = _order(sentences, put_together)
        with (
            self._tokenising.ahead([sentences[place] for place in order.tolist()]) as chunks,
            self._workers() as (pool, under_way),
        ):
            batches = put_together(chunks, tokens)
            work = (_Work(*placed, batch) for placed, batch in zip(cycle(forwards), batches, strict=False))
            for positions, vectors in in_order(pool, self._run, work, under_way):
                rows[order[positions]] = vectors
        return rows

    @contextmanager
    def _workers(self) -> Iterator[tuple[Executor, int]]:
        """Make the threads that run batches; torch's own threads come back afterwards."""
        threads = self._torch.get_num_threads()
        count = UNDER_WAY * len(self._devices) if self._on_gpu else threads
        try:
            with ThreadPoolExecutor(count, initializer=self._torch.set_num_threads, initargs=(1,)) as pool:
                yield pool, 2 * count
        finally:
            self._torch.set_num_threads(threads)

    def _run(self, work: _Work) -> tuple[NDArray[np.int64], Matrix]:
        """Run one batch; return where its rows belong, and the rows."""
        ids = self._torch.from_numpy(work.batch.ids).to(work.device)
        try:
            with self._torch.inference_mode():
                vectors = work.forward(ids, work.batch.groups)[: len(work.batch.positions)]
            rows: Matrix = vectors.cpu().numpy().reshape(len(work.batch.positions), self._dimension)
        except Exception as error:  # a library that meets settings of another model raises anything
            raise EncoderError(
                f"the encoder {self._name} failed on a batch ({type(error).__name__}); check that its files "
                "fit each other and that there is memory enough"
            ) from error
        return work.batch.positions, rows


def _order(sentences: list[str], put_together: Batches) -> NDArray[np.int64]:
    """Return the order in which sentences are encoded: mixed batches are fastest of nearly one length."""
    if put_together is not mixed_batches:
        return np.arange(len(sentences))
    return np.argsort([len(sentence) for sentence in sentences], kind="stable")


def _tokenizer(model: Any, limit: int) -> Any:  # noqa: ANN401  # a tokenizers.Tokenizer
    """Return a copy of the model's tokenizer that cuts at the limit and never pads."""
    library = require("tokenizers", extra="minilm", feature="tokenizers")
    tokenizer = library.Tokenizer.from_str(model.tokenizer.backend_tokenizer.to_str())
    tokenizer.no_padding()
    if limit:
        tokenizer.enable_truncation(limit)
    else:
        tokenizer.no_truncation()
    return tokenizer
