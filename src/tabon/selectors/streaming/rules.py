"""When to stop which drafts: rules over the distances of beginnings of equal length.

A rule has decision points, in words or in sentences. At each it sees the distances of the
drafts that are left (lower is better) and says which to let go. It never lets
go of the last `keep`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf
from typing import Protocol

from tabon._internal.registry import check_name
from tabon.errors import BadInputError
from tabon.selectors.streaming.draft_text import UNITS, Unit


class Rule(Protocol):
    """Says which drafts to stop."""

    @property
    def points(self) -> tuple[int, ...]:
        """Return after how many words or sentences there are decisions, rising."""

    @property
    def unit(self) -> Unit:
        """Return what the points count."""

    @property
    def name(self) -> str:
        """Return it for the signature."""

    def losers(self, point: int, distances: Mapping[int, float]) -> frozenset[int]:
        """Return the drafts to let go at one of the points."""


@dataclass(frozen=True, slots=True)
class Halving:
    """Lets only the best half go on at each point, and at least `keep`.

    >>> Halving(points=(2,)).losers(2, {0: 0.5, 1: 0.1, 2: 0.3})
    frozenset({0})
    """

    points: tuple[int, ...] = (8, 16, 24)
    unit: Unit = "words"
    keep: int = 1
    factor: float = 2  # how many times fewer drafts go on; infinity leaves `keep` at once

    def __post_init__(self) -> None:
        """Refuse what cannot be a rule."""
        check_rule(self.points, self.unit, self.keep)
        if not self.factor > 1:
            raise BadInputError(f"factor is {self.factor}; give a number above 1")

    @property
    def name(self) -> str:
        """Return the points, the factor and what is kept."""
        return f"halving-{self.unit}{_numbers(self.points)}-by{self.factor:g}-keep{self.keep}"

    def losers(self, point: int, distances: Mapping[int, float]) -> frozenset[int]:
        """Return all but the best; of equals the earliest stays."""
        del point
        share = 0 if self.factor == inf else ceil(len(distances) / self.factor)
        return frozenset(ranked(distances)[max(share, self.keep) :])


@dataclass(frozen=True, slots=True)
class Margin:
    """Lets go of drafts that are worse than the best by more than a margin.

    >>> Margin(points=(2,), margins=(0.25,)).losers(2, {0: 0.5, 1: 0.1, 2: 0.3})
    frozenset({0})
    """

    points: tuple[int, ...]
    margins: tuple[float, ...]  # one for each point, in the partial selector's distance
    unit: Unit = "words"
    keep: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be a rule."""
        check_rule(self.points, self.unit, self.keep)
        if len(self.margins) != len(self.points) or not all(margin >= 0 for margin in self.margins):
            raise BadInputError("margins do not fit the points; give each point one margin of 0 or more")

    @property
    def name(self) -> str:
        """Return the points with their margins, and what is kept."""
        margins = ",".join(f"{margin:.6g}" for margin in self.margins)
        return f"margin-{self.unit}{_numbers(self.points)}-{margins}-keep{self.keep}"

    def losers(self, point: int, distances: Mapping[int, float]) -> frozenset[int]:
        """Return those beyond the margin; the best `keep` stay."""
        order = ranked(distances)
        margin = self.margins[self.points.index(point)]
        return frozenset(
            draft for draft in order[self.keep :] if distances[draft] - distances[order[0]] > margin
        )


def ranked(distances: Mapping[int, float]) -> list[int]:
    """Return drafts from best to worst, the earliest of equals first."""
    return sorted(distances, key=lambda draft: (distances[draft], draft))


def check_rule(points: tuple[int, ...], unit: str, keep: int) -> None:
    """Refuse points that do not rise from 1 and a rule that may leave nothing."""
    check_name("unit", UNITS, unit)
    if list(points) != sorted(set(points)) or (points and points[0] < 1):
        raise BadInputError(f"points are {points}; give rising whole numbers from 1")
    if keep < 1:
        raise BadInputError(f"keep is {keep}; at least 1 draft must be left")


def _numbers(points: tuple[int, ...]) -> str:
    """Write points for a signature."""
    return ",".join(map(str, points))
