"""Token ids of many sentences, made in this process or in several others.

A GPU reads sentences faster than one Python process can hand them over, so it is
served by a few processes that only tokenise (`token_process`). They start with
the encoder and end with it.
"""

import json
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import IO, Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from tabon.encoders.batches import in_order
from tabon.errors import EncoderError

AT_ONCE = 4096  # sentences in one request
SIZES = struct.Struct("<qq")  # what goes before each message: its two lengths
WORKER = (sys.executable, "-m", "tabon.encoders.token_process")


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The token ids of some sentences, end to end."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Tokenising:
    """A way to make tokens, and how many chunks it makes side by side."""

    work: Callable[[list[str]], Tokens]
    side_by_side: int

    @contextmanager
    def ahead(self, sentences: list[str]) -> Iterator[Iterator[Tokens]]:
        """Give the sentences' tokens in order, some thousands at a time and made ahead."""
        chunks = (sentences[start : start + AT_ONCE] for start in range(0, len(sentences), AT_ONCE))
        with ThreadPoolExecutor(self.side_by_side) as pool:
            yield in_order(pool, self.work, chunks, ahead=2 * self.side_by_side)


def tokenising(tokenizer: Any, processes: int) -> Tokenising:  # noqa: ANN401  # a tokenizers.Tokenizer
    """Tokenise in so many other processes; 0 is in this one."""
    if processes == 0:
        return Tokenising(partial(tokenise, tokenizer), 1)
    return Tokenising(TokenProcesses(tokenizer.to_str(), processes).ask, processes)


def tokenise(tokenizer: Any, sentences: Sequence[str]) -> Tokens:  # noqa: ANN401
    """Return the token ids of each sentence; what is not UTF-8 becomes a question mark."""
    texts = [sentence.encode("utf-8", "replace").decode() for sentence in sentences]
    try:
        rows = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]
    except Exception as error:  # tokenizers raises nothing narrower
        raise EncoderError(
            f"the encoder's tokenizer failed ({type(error).__name__}); check that its tokenizer.json is whole"
        ) from error
    ids = np.fromiter((number for row in rows for number in row), dtype=np.int32)
    return Tokens(ids, np.fromiter(map(len, rows), dtype=np.int32, count=len(rows)))


class TokenProcesses:
    """Processes that tokenise, each asked by one thread at a time."""

    def __init__(self, tokenizer: str, count: int) -> None:
        """Start them and give them the tokenizer; they end when this object is gone."""
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        running = [
            subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
            for _ in range(count)
        ]
        finalize(self, _end, running)
        for process in running:
            send(process.stdin, tokenizer.encode(), b"")
            self._free.put(process)

    def ask(self, sentences: list[str]) -> Tokens:
        """Have some sentences tokenised."""
        process = self._free.get()
        try:
            send(process.stdin, json.dumps(sentences).encode(), b"")
            lengths, ids = receive(process.stdout)
        except (OSError, EOFError):
            raise EncoderError("a process that makes tokens has ended; load the encoder again") from None
        finally:
            self._free.put(process)
        return Tokens(np.frombuffer(ids, dtype=np.int32), np.frombuffer(lengths, dtype=np.int32))


def _end(running: Sequence["subprocess.Popen[bytes]"]) -> None:
    """End processes and close what leads to them."""
    for process in running:
        process.kill()
        process.communicate()


def send(stream: IO[bytes] | None, first: bytes, second: bytes) -> None:
    """Write two byte strings."""
    if stream is None:
        raise EOFError
    stream.write(SIZES.pack(len(first), len(second)) + first + second)
    stream.flush()


def receive(stream: IO[bytes] | None) -> tuple[bytes, bytes]:
    """Read two byte strings, whole."""
    sizes = b"" if stream is None else stream.read(SIZES.size)
    if stream is None or len(sizes) < SIZES.size:
        raise EOFError
    first, second = (stream.read(size) for size in SIZES.unpack(sizes))
    return first, second
