"""Timing for benchmarks: in turn, several times over, the best of each."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Line:
    """One line of the table: a ratio that should be at least, or at most, its goal."""

    what: str
    ours: float  # seconds, or megabytes
    other: float
    against: str
    ratio: float
    goal: str

    def __str__(self) -> str:
        """Write the line for a Markdown table."""
        numbers = f"{self.ours:.3g} | {self.other:.3g} | {self.against} | {self.ratio:.2f}"
        return f"| {self.what} | {numbers} | {self.goal} |"


def faster(what: str, ours: float, other: float, against: str, goal: str) -> Line:
    """How many times faster ours is."""
    return Line(what, ours, other, against, other / ours, goal)


def share(what: str, ours: float, other: float, against: str, goal: str) -> Line:
    """What part of the limit ours takes."""
    return Line(what, ours, other, against, ours / other, goal)


def best_of(
    repetitions: int, *works: Callable[[], object], clock: Callable[[], float] = perf_counter
) -> list[float]:
    """Time works in turn, several times over, and keep the best of each."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repetitions):
        for work, kept in zip(works, times, strict=True):
            start = clock()
            work()
            kept.append(clock() - start)
    return [min(kept) for kept in times]
