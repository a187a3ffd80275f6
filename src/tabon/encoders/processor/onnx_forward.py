"""BERT and MPNet in onnxruntime: the weights stay where they are in their file."""

from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.encoders.processor.graph import graph_of
from tabon.encoders.processor.network import Network
from tabon.encoders.protocol import Matrix


class OnnxForward:
    """A model that onnxruntime runs, each batch on one thread: several may run side by side."""

    at_once = 384  # tokens of a batch

    def __init__(self, network: Network) -> None:
        """Make the session; what may change bits or use threads is set, and nothing is told to anyone."""
        library = require("onnxruntime", extra="minilm", feature="onnxruntime")
        library.disable_telemetry_events()
        self.name = f"onnxruntime {version('onnxruntime')}"
        self._network = network
        options = library.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = library.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.log_severity_level = 4
        handed = {name: tensor for name, tensor in network.tensors.items() if name != "relative"}
        self._values = [library.OrtValue.ortvalue_from_numpy(tensor) for tensor in handed.values()]
        options.add_external_initializers(list(handed), self._values)
        self._session = library.InferenceSession(
            graph_of(network), options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, ids: NDArray[np.int64]) -> Matrix:
        """Return the last layer's rows of each token: (sentences, length, width)."""
        given: dict[str, NDArray[Any]] = {"ids": ids, "places": self._network.places(ids)}
        if self._network.kind == "mpnet":
            given["bias"] = self._network.bias(ids.shape[1])
        rows: Matrix = self._session.run(None, given)[0]
        return rows
