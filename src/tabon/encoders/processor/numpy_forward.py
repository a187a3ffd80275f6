"""BERT and MPNet in numpy: slow and short, so that it can be read beside the papers.

It is what onnxruntime is tested against, and what runs where that is not installed.
"""

from threading import Lock

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from tabon.encoders.processor.network import Network
from tabon.encoders.protocol import Matrix


class NumpyForward:
    """A model that runs one sentence at a time on one thread: products may have other last bits otherwise."""

    name = f"numpy {np.__version__}"
    at_once = 1  # tokens of a batch: one sentence

    def __init__(self, network: Network) -> None:
        """Keep the model."""
        self._network, self._tensors = network, network.tensors
        self._blas, self._alone = ThreadpoolController().select(user_api="blas"), Lock()

    def __call__(self, ids: NDArray[np.int64]) -> Matrix:
        """Return the last layer's rows of each token: (sentences, length, width)."""
        with self._alone, self._blas.limit(limits=1):
            return self._rows(ids)

    def _rows(self, ids: NDArray[np.int64]) -> Matrix:
        """Go through all layers."""
        from scipy.special import erf  # slow to import

        network = self._network
        x = self._tensors["words"][ids] + self._tensors["positions"][network.places(ids)]
        x = self._normed(x, "norm")
        for number in range(network.sizes.layers):
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
