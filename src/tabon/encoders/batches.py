"""Batches whose shape is a property of the sentence, so that its bits are too.

The same sentence in another batch comes back with other last bits, because
padding and matrix shapes change the order of additions. Here no sentence is
padded, and every product has the same shape whatever else is in the batch: either a batch
is always so many tokens, of sentences of any lengths (`mixed_batches`), or it is
always as many sentences of one length (`one_length_batches`). The last ones are
filled up.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tabon.encoders.tokens import Tokens

Item = TypeVar("Item")
Result = TypeVar("Result")

CHOICE = 8  # batches' worth of tokens that wait, so that there is something of every length to fill up with


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
class Alike:
    """Sentences of one token length."""

    positions: NDArray[np.int64]
    ids: NDArray[np.int64]  # (count, length); those that only fill up come last and have no position

    def cut(self, count: int) -> tuple["Alike", "Alike"]:
        """Return the first ones, and the others."""
        first = Alike(self.positions[:count], self.ids[:count])
        return first, Alike(self.positions[count:], self.ids[count:])

    def joined(self, other: "Alike") -> "Alike":
        """Return both, one after the other."""
        positions = np.concatenate([self.positions, other.positions])
        return Alike(positions, np.concatenate([self.ids, other.ids]))


Batches: TypeAlias = Callable[[Iterable["Tokens"], int], Iterator[TokenBatch]]


def batch_size(length: int, tokens: int) -> int:
    """Return how many sentences of this length make up a batch of about so many tokens.

    >>> batch_size(15, tokens=256)
    18
    """
    return max(1, -(-tokens // max(1, length)))


def one_length_batches(chunks: Iterable["Tokens"], tokens: int) -> Iterator[TokenBatch]:
    """Yield batches of about so many tokens, each when it is full; positions count through the chunks."""
    waiting: dict[int, Alike] = {}
    for length in _gathered(chunks, waiting):
        size = batch_size(length, tokens)
        while len(waiting[length].positions) >= size:
            full, waiting[length] = waiting[length].cut(size)
            yield _batch([full])
    for length, rest in sorted(waiting.items()):
        if len(rest.positions):
            copies = np.repeat(rest.ids[-1:], batch_size(length, tokens) - len(rest.ids), axis=0)
            yield _batch([Alike(rest.positions, np.concatenate([rest.ids, copies]))])


def mixed_batches(chunks: Iterable["Tokens"], tokens: int) -> Iterator[TokenBatch]:
    """Yield batches of exactly so many tokens; a sentence that is longer goes alone."""
    waiting: dict[int, Alike] = {}
    for _ in _gathered(chunks, waiting):
        while sum(alike.ids.size for alike in waiting.values()) > CHOICE * tokens:
            yield _fullest(waiting, tokens)
    while waiting:
        yield _fullest(waiting, tokens)


def _gathered(chunks: Iterable["Tokens"], waiting: dict[int, Alike]) -> Iterator[int]:
    """Put the sentences of each chunk where those of their length wait, and yield the length."""
    start = 0
    for chunk in chunks:
        for alike in by_length(chunk, start):
            length = alike.ids.shape[1]
            waiting[length] = waiting[length].joined(alike) if length in waiting else alike
            yield length
        start += len(chunk.lengths)


def _fullest(waiting: dict[int, Alike], tokens: int) -> TokenBatch:
    """Take the longest sentences that still fit, again and again; fill up with sentences of one token."""
    taken: list[Alike] = []
    room = tokens
    for length in sorted(waiting, reverse=True):
        count = room // max(1, length) if taken or length <= tokens else 1
        if count:
            part, waiting[length] = waiting[length].cut(count)
            taken.append(part)
            room = max(0, room - part.ids.size)
        if not len(waiting[length].positions):
            del waiting[length]
    return _batch([*taken, Alike(np.zeros(0, np.int64), np.zeros((room, 1), np.int64))])


def _batch(parts: list[Alike]) -> TokenBatch:
    """Lay sentences end to end."""
    return TokenBatch(
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.ids.ravel() for part in parts]),
        tuple(Group(*part.ids.shape) for part in parts if len(part.ids)),
    )


def by_length(chunk: "Tokens", start: int = 0) -> Iterator[Alike]:
    """Yield the sentences of each length, the shortest first, in a chunk that begins at a position."""
    starts = np.cumsum(chunk.lengths, dtype=np.int64) - chunk.lengths
    order = np.argsort(chunk.lengths, kind="stable")
    lengths, first = np.unique(chunk.lengths[order], return_index=True)
    for length, rows in zip(lengths.tolist(), np.split(order, first[1:]), strict=False):
        ids = chunk.ids[starts[rows][:, None] + np.arange(length)]
        yield Alike(start + rows, ids.astype(np.int64))


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
