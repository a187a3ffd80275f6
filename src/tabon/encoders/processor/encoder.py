"""Plain sentence-transformers models on a processor in float32, without torch.

Sentences of one length run together and are never padded. The mean over the
tokens is taken in numpy, in one order: a row depends on its sentence alone.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from tabon._internal.extras import require
from tabon.encoders.batches import Alike, batch_size, by_length, in_order
from tabon.encoders.model_folder import check_folder, modules, reading, settings_hash, weights_hash
from tabon.encoders.processor.network import Network, max_tokens, read_network
from tabon.encoders.protocol import EncoderFingerprint, Matrix
from tabon.encoders.tokens import Tokens, tokenise
from tabon.errors import EncoderError, NeedsTorchError

AT_ONCE = 1024  # sentences between two signs of progress


class Forward(Protocol):
    """An engine with a model in it."""

    name: str  # and its version, for the fingerprint
    at_once: int  # tokens of a batch

    def __call__(self, ids: NDArray[np.int64], /) -> Matrix:
        """Return the last layer's rows of each token: (sentences, length, width)."""


def forward_of(network: Network) -> Forward:
    """Return a model in the engine that is installed; both give the same rows but for last bits."""
    if find_spec("onnxruntime") is None:
        from tabon.encoders.processor.numpy_forward import NumpyForward

        return NumpyForward(network)
    from tabon.encoders.processor.onnx_forward import OnnxForward

    return OnnxForward(network)


class ProcessorEncoder:
    """A plain model with bit-stable rows."""

    chunk = AT_ONCE

    def __init__(self, folder: Path, *, name: str, revision: str) -> None:
        """Load the model and hash what it is made of.

        Raises:
            NeedsTorchError: the model is not plain.
        """
        weights = weights_hash(folder)
        check_folder(folder)
        network, limit = read_network(folder), max_tokens(folder)
        self._tokenizer = _tokenizer(folder, limit)
        with reading(folder):
            self._forward = forward_of(network)
        blas = ThreadpoolController().select(user_api="blas").info()
        self._threads = max((library["num_threads"] for library in blas), default=1)
        self.fingerprint = EncoderFingerprint(
            encoder=name,
            revision=revision,
            weights=weights,
            settings=settings_hash(folder),
            dimension=network.sizes.width,
            max_tokens=limit,
            precision="float32",
            batching=f"any of one length, {self._forward.name}",
        )

    def encode(self, sentences: list[str], /) -> Matrix:
        """Return one unit row per sentence; the same bits in whatever company."""
        rows = np.full((len(sentences), self.fingerprint.dimension), np.nan, np.float32)
        batches = _batches(tokenise(self._tokenizer, sentences), self._forward.at_once)
        with ThreadPoolExecutor(self._threads) as pool:
            for batch, found in in_order(pool, self._run, batches, 2 * self._threads):
                rows[batch.positions] = found
        return rows

    def _run(self, batch: Alike) -> tuple[Alike, Matrix]:
        """Run one batch; return it with its rows."""
        try:
            tokens = self._forward(batch.ids)
        except Exception as error:  # onnxruntime raises nothing narrower
            raise EncoderError(
                f"the encoder {self.fingerprint.encoder} failed on a batch ({type(error).__name__}); check "
                "that its files fit each other and that there is memory enough"
            ) from error
        with np.errstate(all="ignore"):  # what is not finite is refused later
            rows = tokens.sum(axis=1) / np.float32(tokens.shape[1])
            return batch, rows / np.sqrt(np.einsum("nd,nd->n", rows, rows))[:, None]


def _batches(tokens: Tokens, at_once: int) -> Iterator[Alike]:
    """Yield sentences of one length together, the longest first; one without tokens has no row."""
    for alike in reversed(list(by_length(tokens))):
        length = alike.ids.shape[1]
        while length and len(alike.positions):
            batch, alike = alike.cut(batch_size(length, at_once))  # noqa: PLW2901
            yield batch


def _tokenizer(folder: Path, limit: int) -> Any:  # noqa: ANN401  # a tokenizers.Tokenizer
    """Read the tokenizer of a plain model: it cuts at the limit and never pads."""
    library = require("tokenizers", extra="minilm", feature="tokenizers")
    path = folder / modules(folder)[0].path / "tokenizer.json"
    if not path.is_file():
        raise NeedsTorchError(folder.name, "has no tokenizer.json")
    with reading(folder):
        tokenizer = library.Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        if limit:
            tokenizer.enable_truncation(limit)
        else:
            tokenizer.no_truncation()
    return tokenizer
