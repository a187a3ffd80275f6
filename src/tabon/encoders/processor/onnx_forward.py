"""BERT and MPNet in onnxruntime: the weights stay where they are in their file.

The graph names the weights, which are handed over when the session is made. It is written as protocol
buffers by hand (docs/decisions/encoding-without-torch.md); onnx.proto has the numbers of the fields:
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

import struct
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tabon._internal.extras import require
from tabon.encoders.processor.network import Network
from tabon.encoders.protocol import Matrix

Value: TypeAlias = "int | float | str | bytes | Sequence[int]"

FLOAT, INT64 = 1, 7  # kinds of numbers
IR_VERSION, OPSET = 9, 20  # the first with Gelu
KINDS = {float: (2, 1), int: (3, 2), tuple: (8, 7)}  # an attribute's field and kind by what it holds
EXTERNAL = 1  # a tensor that does not lie in the graph


def message(*fields: tuple[int, Value]) -> bytes:
    """Return a message of numbered fields.

    >>> message((1, 300), (2, "a")).hex()
    '08ac02120161'
    """
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: Value) -> bytes:
    """Return one field, or one for each item of a sequence of numbers."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return _varint(number << 3 | 2) + _varint(len(data)) + data
    return b"".join(_field(number, item) for item in value)


def _varint(number: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first; negative ones have 64 bits."""
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 127:  # noqa: PLR2004
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


class Graph:
    """A graph that grows by one operation at a time; each has one result, which is named by a number."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._parts: list[bytes] = []
        self._count = 0

    def add(self, kind: str, *inputs: str, **attributes: float | tuple[int, ...]) -> str:
        """Add an operation and return the name of its result."""
        self._count += 1
        found: list[tuple[int, Value]] = [(1, name) for name in inputs]
        for name, value in attributes.items():
            field, number = KINDS[type(value)]
            found.append((5, message((1, name), (field, value), (20, number))))
        self._parts.append(_field(1, message(*found, (2, f"{self._count}"), (4, kind))))
        return f"{self._count}"

    def numbers(self, *values: int) -> str:
        """Add a list of whole numbers and return its name."""
        self._count += 1
        raw = struct.pack(f"<{len(values)}q", *values)
        tensor = message((1, len(values)), (2, INT64), (8, f"{self._count}"), (9, raw))
        self._parts.append(_field(5, tensor))
        return f"{self._count}"

    def weights(self, name: str, shape: Sequence[int]) -> None:
        """Name a tensor that is handed over later."""
        where = message((1, "location"), (2, "handed over"))
        tensor = message((1, shape), (2, FLOAT), (8, name), (13, where), (14, EXTERNAL))
        self._parts.append(_field(5, tensor))

    def ends(self, field: int, name: str, kind: int, *shape: str | int) -> None:
        """Name an input (field 11) or an output (field 12)."""
        sizes = [(1, message((2 if isinstance(size, str) else 1, size))) for size in shape]
        tensor = message((1, kind), (2, message(*sizes)))
        self._parts.append(_field(field, message((1, name), (2, message((1, tensor))))))

    def model(self) -> bytes:
        """Return the whole as a model."""
        graph = b"".join(self._parts) + _field(2, "tabon")
        return message((1, IR_VERSION), (7, graph), (8, message((1, ""), (2, OPSET))))


def graph_of(network: Network) -> bytes:
    """Return the graph from ids and places, both (sentences, length), to the last layer's rows."""
    graph = Graph()
    width, heads = network.sizes.width, network.sizes.heads
    for name in ("ids", "places"):
        graph.ends(11, name, INT64, "sentences", "length")
    if network.kind == "mpnet":
        graph.ends(11, "bias", FLOAT, heads, "length", "length")
    for name, tensor in network.tensors.items():
        if name != "relative":
            graph.weights(name, tensor.shape)
    shape = graph.add("Shape", "ids")
    split = graph.add("Concat", shape, graph.numbers(heads, width // heads), axis=0)
    flat = graph.numbers(-1, width)
    embedded = graph.add(
        "Add", graph.add("Gather", "words", "ids"), graph.add("Gather", "positions", "places")
    )
    x = _normed(graph, network, graph.add("Reshape", embedded, flat), "norm")
    for number in range(network.sizes.layers):
        mixed = graph.add("Reshape", _attended(graph, network, x, number, split), flat)
        mixed = _times(graph, mixed, f"{number}.attended")
        x = _normed(graph, network, graph.add("Add", mixed, x), f"{number}.attended_norm")
        inside = graph.add("Gelu", _times(graph, x, f"{number}.up"))
        inside = _times(graph, inside, f"{number}.down")
        x = _normed(graph, network, graph.add("Add", inside, x), f"{number}.output_norm")
    whole = graph.add("Concat", shape, graph.numbers(width), axis=0)
    graph.ends(12, graph.add("Reshape", x, whole), FLOAT, "sentences", "length", width)
    return graph.model()


def _attended(graph: Graph, network: Network, x: str, number: int, split: str) -> str:
    """Add softmax(q·k/√d + bias)·v: (sentences, length, heads, width of a head)."""
    scale = (network.sizes.width // network.sizes.heads) ** -0.5
    query = graph.add("Reshape", _times(graph, x, f"{number}.query", scale), split)
    key = graph.add("Reshape", _times(graph, x, f"{number}.key"), split)
    value = graph.add("Reshape", _times(graph, x, f"{number}.value"), split)
    query = graph.add("Transpose", query, perm=(0, 2, 1, 3))
    scores = graph.add("MatMul", query, graph.add("Transpose", key, perm=(0, 2, 3, 1)))
    if network.kind == "mpnet":
        scores = graph.add("Add", scores, "bias")
    mixed = graph.add("Softmax", scores, axis=-1)
    mixed = graph.add("MatMul", mixed, graph.add("Transpose", value, perm=(0, 2, 1, 3)))
    return graph.add("Transpose", mixed, perm=(0, 2, 1, 3))


def _times(graph: Graph, x: str, name: str, scale: float = 1.0) -> str:
    """Add (x·W + b)·scale."""
    return graph.add("Gemm", x, f"{name}.weight", f"{name}.bias", transB=1, alpha=scale, beta=scale)


def _normed(graph: Graph, network: Network, x: str, name: str) -> str:
    """Add layer normalisation."""
    weight, bias = f"{name}.weight", f"{name}.bias"
    return graph.add("LayerNormalization", x, weight, bias, axis=-1, epsilon=network.sizes.epsilon)


class OnnxForward:
    """A model that onnxruntime runs, each batch on one thread: several may run side by side."""

    at_once = 384  # tokens of a batch

    def __init__(self, network: Network) -> None:
        """Make the session; what may change bits or use threads is set, telemetry is off."""
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
