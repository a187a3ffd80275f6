"""Random draws that are the same on every machine.

numpy may change how a `Generator` turns bits into numbers between versions;
the bits of `PCG64` and the mixing of `SeedSequence` it promises to keep. So the
few kinds of draw needed here are made from the raw bits, with integers and one
exact product, and no function of libm has a say.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

BLOCK = 64  # raw words fetched at a time


class Draws:
    """A stream of draws named by a seed and a path of whole numbers.

    >>> Draws(0, 7).below(100) == Draws(0, 7).below(100)
    True
    >>> draws = Draws(0, 7)
    >>> all(0 <= draws.below(3) < 3 for _ in range(100))
    True
    """

    __slots__ = ("_source", "_words")

    def __init__(self, seed: int, *path: int) -> None:
        """Open the stream `path` of `seed`; another path is an independent stream."""
        self._source = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=path))
        self._words: list[int] = []

    def unit(self) -> float:
        """A number in [0, 1) with 53 random bits."""
        if not self._words:
            self._words = self._source.random_raw(BLOCK).tolist()
        return (self._words.pop() >> 11) * 2.0**-53

    def below(self, stop: int) -> int:
        """A whole number in 0 … stop - 1."""
        return int(self.unit() * stop)

    def chance(self, probability: float) -> bool:
        """Whether an event of this probability happens."""
        return self.unit() < probability

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, each as likely as the other."""
        return items[self.below(len(items))]

    def weighted(self, weights: Sequence[int]) -> int:
        """An index, with probability in proportion to its whole weight.

        >>> Draws(0).weighted([0, 5, 0])
        1
        """
        left = self.below(sum(weights))
        for index, weight in enumerate(weights):
            if left < weight:
                return index
            left -= weight
        return len(weights) - 1
