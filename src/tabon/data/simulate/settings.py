"""What a simulated cohort depends on: its settings, its splits, and draws that are the same everywhere.

numpy may change how a `Generator` turns bits into numbers between versions; the bits of `PCG64` and
the mixing of `SeedSequence` it promises to keep. So the few kinds of draw needed here are made from
the raw bits, with integers and one exact product, without any function of libm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

import numpy as np

from tabon.errors import BadInputError

Prompt = Literal["p1", "p2", "p3"]
Split = Literal["train", "valid", "test"]

PROMPTS: tuple[Prompt, ...] = get_args(Prompt)
SPLITS: tuple[Split, ...] = get_args(Split)
_TURN = 2**32
_GOLDEN = 2654435769  # 2**32 over the golden ratio: steps of it fill the circle evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """All that changes a simulated cohort.

    The patients and their reports depend on `seed` alone. Patient i is the same
    however many patients there are, and draft j of a visit however many drafts.
    """

    seed: int = 0  # names the cohort
    patients: int = 1000  # in all splits together
    num_candidates: int = 5  # drafts per query (K)
    prompt: Prompt = "p3"  # p1: the image only, p2: with examples of the house style, p3: with the prior
    noise: float = 0.5  # 0 for faultless drafts, 1 for the worst
    splits: tuple[float, float, float] = (0.872, 0.063, 0.065)  # train, valid and test; as in the paper

    def __post_init__(self) -> None:
        """Refuse what makes no cohort."""
        whole = len(self.splits) == len(SPLITS) and abs(sum(self.splits) - 1) < 1e-9  # noqa: PLR2004
        for holds, name, hint in (
            (self.seed >= 0, "seed", "give a whole number from 0"),
            (self.patients >= 0, "patients", "give a whole number from 0"),
            (self.num_candidates >= 1, "num_candidates", "give 1 or more"),
            (self.prompt in PROMPTS, "prompt", f"give one of {', '.join(PROMPTS)}"),
            (0 <= self.noise <= 1, "noise", "give a number from 0 to 1"),
            (
                whole and min(self.splits) >= 0,
                "splits",
                "give three shares for train, valid and test that add up to 1",
            ),
        ):
            if not holds:
                raise BadInputError(f"{name} is {getattr(self, name)!r}; {hint}")


def split_of(index: int, splits: tuple[float, float, float]) -> Split:
    """The split of a patient, from the index alone, with shares near the wanted ones in small cohorts too.

    >>> [split_of(index, (0.5, 0.25, 0.25)) for index in range(4)]
    ['train', 'valid', 'train', 'test']
    """
    place = index * _GOLDEN % _TURN
    if place < int(splits[0] * _TURN):
        return "train"
    return "valid" if place < int((splits[0] + splits[1]) * _TURN) else "test"


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
