"""Token ids of many sentences, and batches whose shape is a property of the sentence.

No sentence is padded, and every product has the same shape whatever else is in the batch: a batch is
always so many tokens (`mixed_batches`), or always as many sentences of one length
(`one_length_batches`). The last ones are filled up. See docs/decisions/bit-stable-encoding.md.
A GPU is served by a few processes that only tokenise (`token_process`) and end with the encoder.
"""

import json
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import IO, Any, NamedTuple, TypeAlias, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from tabon.errors import EncoderError

AT_ONCE = 4096  # sentences in one request
SIZES = struct.Struct("<qq")  # what goes before each message: its two lengths
WORKER = (sys.executable, "-m", "tabon.encoders.token_process")
CHOICE = 8  # batches' worth of tokens that wait, so that there is something of every length to fill up with

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The token ids of some sentences, end to end."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]


class Tokenising:
    """Makes tokens in so many other processes, side by side; 0 is in this one."""

    def __init__(self, tokenizer: Any, processes: int) -> None:  # noqa: ANN401  # a tokenizers.Tokenizer
        """Start the processes."""
        self._side_by_side = max(1, processes)
        self.work: Callable[[list[str]], Tokens] = partial(tokenise, tokenizer)
        if processes:
            self.work = TokenProcesses(tokenizer.to_str(), processes).ask

    @contextmanager
    def ahead(self, sentences: list[str]) -> Iterator[Iterator[Tokens]]:
        """Give the sentences' tokens in order, some thousands at a time and made ahead."""
        chunks = (sentences[start : start + AT_ONCE] for start in range(0, len(sentences), AT_ONCE))
        with ThreadPoolExecutor(self._side_by_side) as pool:
            yield in_order(pool, self.work, chunks, ahead=2 * self._side_by_side)


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


def cut_and_unpadded(tokenizer: Any, limit: int) -> Any:  # noqa: ANN401
    """Have a tokenizer cut at a limit of tokens, 0 is none, and never pad."""
    tokenizer.no_padding()
    if limit:
        tokenizer.enable_truncation(limit)
    else:
        tokenizer.no_truncation()
    return tokenizer


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


class Group(NamedTuple):
    """So many sentences of one token length, one after the other."""

    sentences: int
    length: int


Groups: TypeAlias = tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """The tokens of some sentences, end to end, those of one length together."""

    positions: NDArray[np.int64]  # where the rows belong; what fills it up comes last and has none
    ids: NDArray[np.int64]  # (tokens,)
    groups: Groups


@dataclass(frozen=True, slots=True)
class SameLength:
    """Sentences of one token length."""

    positions: NDArray[np.int64]
    ids: NDArray[np.int64]  # (count, length); those that only fill up come last and have no position

    def cut(self, count: int) -> tuple["SameLength", "SameLength"]:
        """Return the first ones, and the others."""
        first = SameLength(self.positions[:count], self.ids[:count])
        return first, SameLength(self.positions[count:], self.ids[count:])

    def joined(self, other: "SameLength") -> "SameLength":
        """Return both, one after the other."""
        positions = np.concatenate([self.positions, other.positions])
        return SameLength(positions, np.concatenate([self.ids, other.ids]))


Batches: TypeAlias = Callable[[Iterable[Tokens], int], Iterator[TokenBatch]]


def batch_size(length: int, tokens: int) -> int:
    """Return how many sentences of this length make up a batch of about so many tokens.

    >>> batch_size(15, tokens=256)
    18
    """
    return max(1, -(-tokens // max(1, length)))


def one_length_batches(chunks: Iterable[Tokens], tokens: int) -> Iterator[TokenBatch]:
    """Yield batches of about so many tokens, each when it is full; positions count through the chunks."""
    waiting: dict[int, SameLength] = {}
    for length in _gathered(chunks, waiting):
        size = batch_size(length, tokens)
        while len(waiting[length].positions) >= size:
            full, waiting[length] = waiting[length].cut(size)
            yield _batch([full])
    for length, rest in sorted(waiting.items()):
        if len(rest.positions):
            copies = np.repeat(rest.ids[-1:], batch_size(length, tokens) - len(rest.ids), axis=0)
            yield _batch([SameLength(rest.positions, np.concatenate([rest.ids, copies]))])


def mixed_batches(chunks: Iterable[Tokens], tokens: int) -> Iterator[TokenBatch]:
    """Yield batches of exactly so many tokens; a sentence that is longer goes alone."""
    waiting: dict[int, SameLength] = {}
    for _ in _gathered(chunks, waiting):
        while sum(same.ids.size for same in waiting.values()) > CHOICE * tokens:
            yield _fullest(waiting, tokens)
    while waiting:
        yield _fullest(waiting, tokens)


def _gathered(chunks: Iterable[Tokens], waiting: dict[int, SameLength]) -> Iterator[int]:
    """Put the sentences of each chunk where those of their length wait, and yield the length."""
    start = 0
    for chunk in chunks:
        for same in by_length(chunk, start):
            length = same.ids.shape[1]
            waiting[length] = waiting[length].joined(same) if length in waiting else same
            yield length
        start += len(chunk.lengths)


def _fullest(waiting: dict[int, SameLength], tokens: int) -> TokenBatch:
    """Take the longest sentences that still fit, again and again; fill up with sentences of one token."""
    taken: list[SameLength] = []
    room = tokens
    for length in sorted(waiting, reverse=True):
        count = room // max(1, length) if taken or length <= tokens else 1
        if count:
            part, waiting[length] = waiting[length].cut(count)
            taken.append(part)
            room = max(0, room - part.ids.size)
        if not len(waiting[length].positions):
            del waiting[length]
    return _batch([*taken, SameLength(np.zeros(0, np.int64), np.zeros((room, 1), np.int64))])


def _batch(parts: list[SameLength]) -> TokenBatch:
    """Lay sentences end to end."""
    return TokenBatch(
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.ids.ravel() for part in parts]),
        tuple(Group(*part.ids.shape) for part in parts if len(part.ids)),
    )


def by_length(chunk: Tokens, start: int = 0) -> Iterator[SameLength]:
    """Yield the sentences of each length, the shortest first, in a chunk that begins at a position."""
    starts = np.cumsum(chunk.lengths, dtype=np.int64) - chunk.lengths
    order = np.argsort(chunk.lengths, kind="stable")
    lengths, first = np.unique(chunk.lengths[order], return_index=True)
    for length, rows in zip(lengths.tolist(), np.split(order, first[1:]), strict=False):
        ids = chunk.ids[starts[rows][:, None] + np.arange(length)]
        yield SameLength(start + rows, ids.astype(np.int64))


def in_order(
    pool: Executor, work: Callable[[Item], Result], items: Iterable[Item], ahead: int
) -> Iterator[Result]:
    """Yield the results in the order of the items, with at most so many under way.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(in_order(pool, abs, [-1, -2, -3], ahead=2))
    [1, 2, 3]
    """
    rest = iter(items)
    running: deque[Future[Result]] = deque(pool.submit(work, item) for item in islice(rest, ahead))
    while running:
        done = running.popleft().result()
        running.extend(pool.submit(work, item) for item in islice(rest, 1))
        yield done
