"""What a simulated cohort depends on, and which patient belongs to which split."""

from dataclasses import dataclass
from typing import Literal, get_args

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

    Args:
        seed: names the cohort.
        patients: how many patients, in all splits together.
        num_candidates: drafts per query (K).
        prompt: how the drafts were asked for: `p1` the image only, `p2` with
            examples of the house style, `p3` with the prior report.
        noise: 0 for faultless drafts, 1 for the worst.
        splits: shares of train, valid and test; the default is the paper's.
    """

    seed: int = 0
    patients: int = 1000
    num_candidates: int = 5
    prompt: Prompt = "p3"
    noise: float = 0.5
    splits: tuple[float, float, float] = (0.872, 0.063, 0.065)

    def __post_init__(self) -> None:
        """Refuse what makes no cohort."""
        _check(self.seed >= 0, f"seed is {self.seed}; give a whole number from 0")
        _check(self.patients >= 0, f"patients is {self.patients}; give a whole number from 0")
        _check(self.num_candidates >= 1, f"num_candidates is {self.num_candidates}; give 1 or more")
        _check(self.prompt in PROMPTS, f"prompt is {self.prompt!r}; give one of {', '.join(PROMPTS)}")
        _check(0 <= self.noise <= 1, f"noise is {self.noise}; give a number from 0 to 1")
        whole = len(self.splits) == len(SPLITS) and abs(sum(self.splits) - 1) < 1e-9  # noqa: PLR2004
        _check(
            whole and min(self.splits) >= 0,
            f"splits is {self.splits}; give three shares for train, valid and test that add up to 1",
        )


def _check(holds: bool, message: str) -> None:  # noqa: FBT001
    """Raise unless it holds."""
    if not holds:
        raise BadInputError(message)


def split_of(index: int, splits: tuple[float, float, float]) -> Split:
    """The split of a patient, from the index alone.

    Neighbours are dealt out evenly, so the shares of even a small cohort are
    near the wanted ones.

    >>> [split_of(index, (0.5, 0.25, 0.25)) for index in range(4)]
    ['train', 'valid', 'train', 'test']
    """
    place = index * _GOLDEN % _TURN
    if place < int(splits[0] * _TURN):
        return "train"
    return "valid" if place < int((splits[0] + splits[1]) * _TURN) else "test"
