"""Batches whose shape is a property of the sentence, so that its bits are too.

The same sentence in another batch comes back with other last bits, because
padding and matrix shapes change the order of additions. Here every batch holds
sentences of one token length, without padding, and always the same number of
them for that length; a short one is filled up with copies of its last member.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tabon.encoders.tokens import Tokens

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Sentences of one token length, filled up to the size that goes with it."""

    positions: NDArray[np.int64]  # where the rows belong; the copies that fill it up have none
    ids: NDArray[np.int64]  # (batch, length)


def batch_size(length: int, tokens: int) -> int:
    """Return how many sentences of this length make up a batch of about so many tokens.

    >>> batch_size(15, tokens=256)
    18
    """
    return max(1, -(-tokens // max(1, length)))


def token_batches(lots: Iterable["Tokens"], tokens: int) -> Iterator[TokenBatch]:
    """Yield sentences as batches, each as soon as it is full; positions count through the lots."""
    waiting: dict[int, list[TokenBatch]] = {}
    start = 0
    for lot in lots:
        for part in _by_length(lot, start):
            length = part.ids.shape[1]
            *full, rest = _cut([*waiting.pop(length, ()), part], batch_size(length, tokens))
            yield from full
            waiting[length] = [rest]
        start += len(lot.lengths)
    for length, [rest] in sorted(waiting.items()):
        if len(rest.positions):
            yield _filled(rest, batch_size(length, tokens))


def _by_length(lot: "Tokens", start: int) -> Iterator[TokenBatch]:
    """Yield the sentences of each length in a lot that begins at a position."""
    starts = np.cumsum(lot.lengths, dtype=np.int64) - lot.lengths
    order = np.argsort(lot.lengths, kind="stable")
    lengths, first = np.unique(lot.lengths[order], return_index=True)
    for length, rows in zip(lengths.tolist(), np.split(order, first[1:]), strict=False):
        ids = lot.ids[starts[rows][:, None] + np.arange(length)]
        yield TokenBatch(start + rows, ids.astype(np.int64))


def _cut(parts: list[TokenBatch], size: int) -> Iterator[TokenBatch]:
    """Yield full batches and then what is left, which may be nothing."""
    positions = np.concatenate([part.positions for part in parts])
    ids = np.concatenate([part.ids for part in parts])
    for start in range(0, len(positions) + 1, size):
        yield TokenBatch(positions[start : start + size], ids[start : start + size])


def _filled(batch: TokenBatch, size: int) -> TokenBatch:
    """Fill a batch up with copies of its last sentence."""
    copies = np.repeat(batch.ids[-1:], size - len(batch.ids), axis=0)
    return TokenBatch(batch.positions, np.concatenate([batch.ids, copies]))


def batches_of_one_length(lengths: list[int], size: int) -> Iterator[list[int]]:
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
