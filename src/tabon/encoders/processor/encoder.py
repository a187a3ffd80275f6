"""Plain sentence-transformers models on a processor in float32, without torch.

Sentences of one length run together and are never padded. The mean over the
tokens is taken in numpy, in one order: a row depends on its sentence alone.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from tabon._internal.extras import require
from tabon.encoders.model_folder import check_folder, modules, reading, settings_hash, weights_hash
from tabon.encoders.processor.network import Network, max_tokens, read_network
from tabon.encoders.processor.onnx_forward import OnnxForward
from tabon.encoders.protocol import EncoderFingerprint, Matrix
from tabon.encoders.tokens import (
    SameLength,
    Tokens,
    batch_size,
    by_length,
    cut_and_unpadded,
    in_order,
    tokenise,
)
from tabon.errors import EncoderError, NeedsTorchError

AT_ONCE = 1024  # sentences between two signs of progress


class NumpyForward:
    """BERT and MPNet in numpy: slow and short, to be read beside the papers.

    Onnxruntime is tested against it. One sentence at a time runs on one thread: products may have other
    last bits otherwise.
    """

    name = f"numpy {np.__version__}"
    at_once = 1  # tokens of a batch: one sentence

    def __init__(self, network: Network) -> None:
        """Keep the model."""
        self._network, self._tensors = network, network.tensors
        self._blas, self._alone = ThreadpoolController().select(user_api="blas"), Lock()

    def __call__(self, ids: NDArray[np.int64]) -> Matrix:
        """Return the last layer's rows of each token: (sentences, length, width)."""
        from scipy.special import erf  # slow to import

        with self._alone, self._blas.limit(limits=1):
            x = self._tensors["words"][ids] + self._tensors["positions"][self._network.places(ids)]
            x = self._normed(x, "norm")
            for number in range(self._network.sizes.layers):
                attended = self._times(self._attended(x, number), f"{number}.attended")
                x = self._normed(x + attended, f"{number}.attended_norm")
                inside = self._times(x, f"{number}.up")
                inside *= np.float32(0.5) * (1 + erf(inside * np.float32(2**-0.5)))  # Gelu
                x = self._normed(x + self._times(inside, f"{number}.down"), f"{number}.output_norm")
        return x

    def _attended(self, x: Matrix, number: int) -> Matrix:
        """Return softmax(q·k/√d + bias)·v of every head, side by side."""
        heads = (*x.shape[:2], self._network.sizes.heads, -1)
        query, key, value = (
            self._times(x, f"{number}.{part}").reshape(heads).swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(-1, -2) / np.float32(np.sqrt(query.shape[-1]))
        if self._network.kind == "mpnet":
            scores += self._network.bias(x.shape[1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended: Matrix = (weights @ value).swapaxes(1, 2).reshape(x.shape)
        return attended

    def _times(self, x: Matrix, name: str) -> Matrix:
        """Return x·W + b."""
        product: Matrix = x @ self._tensors[f"{name}.weight"].T
        return product + self._tensors[f"{name}.bias"]

    def _normed(self, x: Matrix, name: str) -> Matrix:
        """Return rows of mean 0 and variance 1, scaled and shifted."""
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(self._network.sizes.epsilon))
        return x * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"]


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
        engine = NumpyForward if find_spec("onnxruntime") is None else OnnxForward
        with reading(folder):  # both give the same rows but for last bits
            self._forward = engine(network)
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
        """Return one unit row per sentence; the same bits whatever else is in the batch."""
        rows = np.full((len(sentences), self.fingerprint.dimension), np.nan, np.float32)
        batches = _batches(tokenise(self._tokenizer, sentences), self._forward.at_once)
        with ThreadPoolExecutor(self._threads) as pool:
            for batch, found in in_order(pool, self._run, batches, 2 * self._threads):
                rows[batch.positions] = found
        return rows

    def _run(self, batch: SameLength) -> tuple[SameLength, Matrix]:
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


def _batches(tokens: Tokens, at_once: int) -> Iterator[SameLength]:
    """Yield sentences of one length together, the longest first; one without tokens has no row."""
    for same in reversed(list(by_length(tokens))):
        length = same.ids.shape[1]
        while length and len(same.positions):
            batch, same = same.cut(batch_size(length, at_once))  # noqa: PLW2901
            yield batch


def _tokenizer(folder: Path, limit: int) -> Any:  # noqa: ANN401  # a tokenizers.Tokenizer
    """Read the tokenizer of a plain model: it cuts at the limit and never pads."""
    library = require("tokenizers", extra="minilm", feature="tokenizers")
    path = folder / modules(folder)[0].path / "tokenizer.json"
    if not path.is_file():
        raise NeedsTorchError(folder.name, "has no tokenizer.json")
    with reading(folder):
        return cut_and_unpadded(library.Tokenizer.from_file(str(path)), limit)
