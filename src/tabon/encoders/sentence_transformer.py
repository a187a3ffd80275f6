"""Sentence-transformers models, run so that a row depends on its sentence alone.

The same sentence in another batch comes back with other last bits, because
padding and matrix shapes change the order of additions. Here every batch has
exactly `BATCH` sentences of one token length, without padding, on one thread;
several such batches run side by side. Shapes are then a property of the
sentence, and so are the bits. It is also faster than padding.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tabon._extras import require
from tabon.encoders.protocol import EncoderFingerprint, Matrix
from tabon.errors import EncoderError

Tokens = Mapping[str, list[list[int]]]  # one list a sentence, for each thing the model reads

BATCH = 8
SETTINGS_FILES = ("*.json", "*.txt", "*.model", "*_Pooling/*.json", "*_Dense/*.json", "*_Normalize/*.json")
NOT_SETTINGS = {"README.md", "data_config.json"}


def _sha256(paths: list[Path]) -> str:
    """Hash the bytes of these files, one after another."""
    digest = sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def weights_hash(folder: Path) -> str:
    """Return the sha256 of a model folder's safetensors (pickled weights are not read)."""
    paths = sorted(folder.rglob("*.safetensors"))
    if not paths:
        raise EncoderError(
            f"{folder.name} holds no .safetensors weights; save the model in that format "
            "(tabon does not load pickled weights)"
        )
    return _sha256(paths)


def settings_hash(folder: Path) -> str:
    """Return the sha256 of the tokenizer, pooling and model settings in a model folder."""
    found = {path for pattern in SETTINGS_FILES for path in folder.glob(pattern)}
    return _sha256(sorted(path for path in found if path.name not in NOT_SETTINGS))


def load_model(folder: Path) -> Any:  # noqa: ANN401  # a SentenceTransformer, an optional import
    """Load a sentence-transformers folder on the CPU: no network, no remote code, no pickle."""
    library = require("sentence_transformers", extra="minilm", feature="sentence-transformers")
    progress = require("transformers.utils.logging", extra="minilm", feature="transformers")
    shown = progress.is_progress_bar_enabled()
    progress.disable_progress_bar()
    try:
        return library.SentenceTransformer(
            str(folder),
            device="cpu",
            trust_remote_code=False,
            local_files_only=True,
            model_kwargs={"use_safetensors": True},
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise EncoderError(
            f"{folder.name} could not be loaded as a sentence-transformers model "
            f"({type(error).__name__}); check that the folder is whole"
        ) from error
    finally:
        if shown:
            progress.enable_progress_bar()


def batches_of_one_length(lengths: list[int], size: int = BATCH) -> Iterator[list[int]]:
    """Yield positions in groups of at most `size` whose lengths are equal.

    >>> list(batches_of_one_length([5, 7, 5, 5], size=2))
    [[0, 2], [3], [1]]
    """
    by_length: dict[int, list[int]] = {}
    for position, length in enumerate(lengths):
        by_length.setdefault(length, []).append(position)
    for _, positions in sorted(by_length.items()):
        for start in range(0, len(positions), size):
            yield positions[start : start + size]


class SentenceTransformerEncoder:
    """A sentence-transformers folder with bit-stable rows."""

    def __init__(self, folder: Path, *, name: str, revision: str) -> None:
        """Load the model and hash what it is made of."""
        self._torch = require("torch", extra="minilm", feature="torch")
        weights = weights_hash(folder)
        self._model = load_model(folder)
        self.fingerprint = EncoderFingerprint(
            encoder=name,
            revision=revision,
            weights=weights,
            settings=settings_hash(folder),
            dimension=int(self._model.get_embedding_dimension()),
            max_tokens=int(self._model.max_seq_length or 0),
            precision="float32",
            batching=f"{BATCH} of one length",
        )

    def encode(self, sentences: list[str], /) -> Matrix:
        """Return one unit row per sentence; the same bits in whatever company."""
        texts = [sentence.encode("utf-8", "replace").decode() for sentence in sentences]
        tokens = self._tokens(texts)
        batches = list(batches_of_one_length([len(ids) for ids in tokens["input_ids"]]))
        rows = np.empty((len(texts), self.fingerprint.dimension), dtype=np.float32)
        threads = self._torch.get_num_threads()
        try:
            with ThreadPoolExecutor(threads, initializer=self._torch.set_num_threads, initargs=(1,)) as pool:
                for batch, vectors in zip(
                    batches, pool.map(partial(self._forward, tokens), batches), strict=True
                ):
                    rows[batch] = vectors
        finally:
            self._torch.set_num_threads(threads)
        return rows

    def _tokens(self, texts: list[str]) -> Tokens:
        """Return what the model reads of each sentence: its token ids and whatever goes with them."""
        limit = self.fingerprint.max_tokens or None
        tokens: Tokens = self._model.tokenizer(texts, truncation=limit is not None, max_length=limit)
        return tokens

    def _forward(self, tokens: Tokens, batch: list[int]) -> Matrix:
        """Run one batch, filled up to `BATCH` with copies of its last sentence."""
        full = batch + batch[-1:] * (BATCH - len(batch))
        features = {name: self._torch.tensor([rows[i] for i in full]) for name, rows in tokens.items()}
        with self._torch.inference_mode():
            vectors = self._model(features)["sentence_embedding"]
            unit = self._torch.nn.functional.normalize(vectors, dim=1)
        rows: Matrix = unit[: len(batch)].numpy()
        return rows
