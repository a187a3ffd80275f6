"""When to stop which drafts: rules over the distances of beginnings, and the rounds in which they decide.

A decision point is reached when every draft that is left has that many words (or
sentences), or is whole with fewer. All are then compared by their first so many. The drafts that are
in the same section as most others take part; a section counts if all of them have begun
it. The others go on (one is still at its small talk, another begins with the
impression). What was stopped still has a say in what the drafts agree on. What is
decided depends on the texts alone, never on which of them arrived first.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Protocol

from tabon._internal.registry import check_name
from tabon.errors import BadInputError
from tabon.method.selection import Selection
from tabon.selectors.streaming.draft_text import UNITS, DraftText, Prefix, Unit
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report, Section


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


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided at one point."""

    point: int  # words or sentences
    words: int  # that the slowest draft needed, no fewer than at the last decision
    stopped: frozenset[int]


@dataclass(slots=True)
class Race:
    """The drafts of one query."""

    asked: Query  # without drafts
    rule: Rule
    drafts: list[DraftText]
    decisions: list[Decision] = field(default_factory=list)
    stopped: dict[int, Prefix] = field(default_factory=dict)  # as far as it was looked at
    _round: int = 0  # how many points are behind

    @classmethod
    def start(cls, asked: Query, rule: Rule, num_candidates: int) -> "Race":
        """Return a race with nothing written yet."""
        most = max(rule.points, default=0)
        bare = replace(asked, candidates=(), draft_facts=())
        return cls(bare, rule, [DraftText(rule.unit, most) for _ in range(num_candidates)])

    def due(self) -> Query | None:
        """Return the beginnings that are to be compared now; None if there is nothing to decide yet."""
        while self._round < len(self.rule.points):
            prefixes = self._prefixes()
            if prefixes is None:
                return None
            sections, compared = comparable(prefixes)
            if len(compared) > 1 and not all(prefix.whole for prefix in compared.values()):
                seen = {**self.stopped, **compared}
                return self._query({draft: prefix.report(sections) for draft, prefix in seen.items()})
            self._round += 1
        return None

    def decide(self, selection: Selection) -> frozenset[int]:
        """Stop the losers of what `due` returned; drafts that are whole there cost nothing more and stay."""
        point, prefixes = self.rule.points[self._round], self._prefixes() or {}
        _, compared = comparable(prefixes)
        distances = dict(zip(range(len(self.drafts)), selection.total_distances, strict=False))
        left = {draft: distances[draft] for draft in compared if draft in distances}
        losers = self.rule.losers(point, left)
        stopped = {draft: compared[draft] for draft in losers if not compared[draft].whole}
        self._round += 1
        self.stopped |= stopped
        before = self.decisions[-1].words if self.decisions else 0
        slowest = max(before, *(prefix.words for prefix in prefixes.values()))
        self.decisions.append(Decision(point, slowest, frozenset(stopped)))
        return frozenset(stopped)

    def query(self) -> Query:
        """Return what is to be selected from: the drafts that are left, nothing in place of the others."""
        left = enumerate(self.drafts)
        return self._query({n: draft.report() for n, draft in left if n not in self.stopped})

    def _query(self, reports: Mapping[int, Report]) -> Query:
        """Put reports in the places of their drafts."""
        places = range(len(self.drafts))
        return replace(self.asked, candidates=tuple(reports.get(place, Report()) for place in places))

    def _prefixes(self) -> dict[int, Prefix] | None:
        """Return how the drafts that are left begin; None if one is not that far."""
        point, found = self.rule.points[self._round], {}
        for number, draft in enumerate(self.drafts):
            if number not in self.stopped:
                prefix = draft.prefix(point)
                if prefix is None:
                    return None
                found[number] = prefix
        return found


def comparable(prefixes: Mapping[int, Prefix]) -> tuple[tuple[Section, ...], dict[int, Prefix]]:
    """Return the sections that count and the drafts that take part."""
    unfinished = [prefix for prefix in prefixes.values() if not prefix.whole]
    most = max(SECTIONS, key=lambda name: sum(prefix.has(name) for prefix in unfinished))
    taking_part = {n: prefix for n, prefix in prefixes.items() if prefix.whole or prefix.has(most)}
    judged = [prefix for prefix in taking_part.values() if not prefix.whole]
    return tuple(name for name in SECTIONS if all(prefix.has(name) for prefix in judged)), taking_part
