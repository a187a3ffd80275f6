"""For whom: each comparison in groups of studies, and whether the groups differ (an interaction test).

A group is a choice of studies under the same resamples of patients, so the covariance of the groups'
differences, patients who are in several groups included, is that of the draws.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from tabon.errors import BadInputError
from tabon.evaluation.compare import Chance, Estimate, RunTable, mean_worth, worth
from tabon.evaluation.inputs import Case
from tabon.evaluation.results import RANDOM, Subgroup
from tabon.evaluation.statistics import adjusted
from tabon.text.observations import NO_FINDING, NOT_A_FINDING, OBSERVATIONS, label_text
from tabon.text.reports import Report

MOST = 6  # groups of one column; numbers with more values are cut into thirds
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which group each study is in."""

    name: str  # what `--by` called it
    value: Callable[[Case], object]
    cuts: tuple[float, ...] = ()  # upper ends of all groups of numbers but the last

    def group(self, case: Case) -> str | None:
        """Return the study's group; None where it has no value."""
        found = self.value(case)
        if found is None or found == "":
            return None
        if not self.cuts or not isinstance(found, int | float):
            return str(found)
        place = int(np.searchsorted(self.cuts, found))
        return f"over {self.cuts[-1]:g}" if place == len(self.cuts) else f"up to {self.cuts[place]:g}"


def grouping(name: str, cases: Sequence[Case]) -> Grouping:
    """Return the groups of some studies by a name of `GROUPINGS`, or by a key of their queries.

    Raises:
        BadInputError: the studies have fewer than two values, or too many that are no numbers.
    """
    value = GROUPINGS.get(name, lambda case: case.query.facts.get(name))
    found = [each for each in map(value, cases) if each is not None and each != ""]
    kinds = set(map(str, found))
    if len(kinds) < 2:  # noqa: PLR2004  # to compare
        raise BadInputError(
            f"--by {name}: the studies have {len(kinds)} values of it; name a key that queries differ in, "
            f"or one of {', '.join(GROUPINGS)}"
        )
    if len(kinds) <= MOST:
        return Grouping(name, value)
    if not all(isinstance(each, int | float) for each in found):
        raise BadInputError(f"--by {name}: {len(kinds)} values are too many; give at most {MOST}, or numbers")
    thirds = np.quantile(np.array(found, dtype=np.float64), [1 / 3, 2 / 3], method="lower")
    return Grouping(name, value, tuple(dict.fromkeys(thirds.tolist())))


def compare_subgroups(
    tables: Sequence[RunTable], methods: Sequence[str], chance: Chance, by: Grouping
) -> Iterator[Subgroup]:
    """Yield how far each method is ahead of random and of each later one by each score, in each group.

    The interaction's p is of the hypothesis that the difference of the scores is the same in all groups.
    """
    chance = replace(chance, swaps=chance.swaps[:0])
    groups = [[by.group(case) for case in table.measured.cases] for table in tables]
    everywhere = set.intersection(*(set(found) for found in groups)) - {None}
    names = sorted(filter(None, everywhere), key=_in_order)
    if len(names) < 2 or not methods or not tables[0].measured.scores:  # noqa: PLR2004  # to compare
        return
    worths = []
    for name in names:
        here = [
            worth(table.take(np.array([group == name for group in found])), chance)
            for table, found in zip(tables, groups, strict=True)
        ]
        worths.append(here[0] if len(here) == 1 else mean_worth(here))
    systems = [(found.random, *found.methods) for found in worths]
    for one, other in combinations(range(len(methods) + 1), 2):
        first, second = (other, one) if one == 0 else (one, other)  # ahead of random, or of a later method
        ahead = [each[first] - each[second] for each in systems]
        p = interaction_p(ahead)
        for name, found, difference in zip(names, worths, ahead, strict=True):
            columns = zip(
                tables[0].measured.scores, difference.numbers(), (difference / found.gap).numbers(),
                p.tolist(), strict=True,
            )  # fmt: skip
            for score, delta, gap, chance_of in columns:
                yield Subgroup(
                    by=by.name, group=name, section=tables[0].measured.part, score=score.name,
                    method=methods[first - 1], other=RANDOM if second == 0 else methods[second - 1],
                    n=found.n, **delta.named("delta"), **gap.named("gap"),
                    p=None if np.isnan(chance_of) else chance_of,
                )  # fmt: skip


def interaction_p(groups: Sequence[Estimate]) -> Array:
    """Return p of the hypothesis that groups do not differ, by each score; NaN where it cannot be tested.

    Wald's statistic of the contrasts to the first group, with the covariance of the draws, against F with
    Welch's correction and degrees of freedom for groups of other sizes and spreads; the draws of n patients
    are spread by sqrt(n / (n - 1)), as in the intervals.
    """
    values = np.array([each.value for each in groups])
    patients = np.array([each.patients for each in groups])
    p = np.full(values.shape[1], np.nan)
    if patients.min() < 2:  # noqa: PLR2004  # no spread
        return p
    wide = np.sqrt(patients / (patients - 1))
    for column, found in enumerate(values.T):
        draws = np.array([w * each.draws[:, column] for w, each in zip(wide, groups, strict=True)])
        defined = np.isfinite(draws).all(axis=0)
        if np.isfinite(found).all() and defined.sum() > 1:
            p[column] = _welch_p(found, np.cov(draws[:, defined]), patients)
    return p


def _welch_p(values: Array, spread: Array, patients: Array) -> float:
    """Return p of groups' values being equal, from their covariance (Welch 1951); NaN without any spread."""
    if np.ptp(values) == 0:
        return 1.0
    contrast = np.diff(np.eye(len(values)), axis=0)
    apart, within = contrast @ values, contrast @ spread @ contrast.T
    if np.linalg.matrix_rank(within, hermitian=True) < len(apart):
        return np.nan
    wald = float(apart @ np.linalg.solve(within, apart))
    weights = 1 / np.maximum(np.diag(spread), np.diag(spread).max() * 1e-12)
    unequal = float(((1 - weights / weights.sum()) ** 2 / (patients - 1)).sum())
    groups = len(values)
    scale = 1 + 2 * (groups - 2) / (groups**2 - 1) * unequal
    return float(fdtrc(groups - 1, (groups**2 - 1) / (3 * unequal), wald / (groups - 1) / scale))


def adjusted_subgroups(subgroups: Sequence[Subgroup]) -> tuple[Subgroup, ...]:
    """Adjust the interactions' p over all of them (Holm); each counts once, however many groups it has."""
    tests = {_test(each): each.p for each in subgroups}
    values = dict(zip(tests, adjusted(list(tests.values())), strict=True))
    return tuple(replace(each, holm=values[_test(each)]) for each in subgroups)


def _test(each: Subgroup) -> tuple[str, ...]:
    """Return what the interaction of a row is of."""
    return each.by, each.section, each.score, each.method, each.other


def _in_order(name: str) -> tuple[int, float, str]:
    """Sort groups of numbers by number, others by name."""
    kind, _, end = name.rpartition(" ")
    try:
        return int(kind == "over"), float(end), name
    except ValueError:
        return 0, 0.0, name


@lru_cache(maxsize=4096)
def _held(report: Report) -> frozenset[str]:
    """Return the observations that a report says are there, or may be, by tabon's rules."""
    held = label_text(" ".join(report.sections().values())).held()
    return frozenset(name for name, there in zip(OBSERVATIONS, held, strict=True) if there) - {NO_FINDING}


def _change(case: Case) -> str:
    """Say whether the reference has other observations than the prior."""
    return "unchanged" if _held(case.query.prior) == _held(case.reference) else "changed"


def _prior(case: Case) -> str:
    """Say whether the prior has an observation other than devices."""
    return "abnormal" if _held(case.query.prior) - {*NOT_A_FINDING} else "normal"


def _days(case: Case) -> int | None:
    """Count the days between the visits, where the query has their dates."""
    facts = case.query.facts
    try:
        before, after = (date.fromisoformat(str(facts[f"{when}_date"])) for when in ("prior", "current"))
    except (KeyError, ValueError):
        return None
    return (after - before).days


GROUPINGS: Mapping[str, Callable[[Case], object]] = MappingProxyType(
    {
        "change": _change,
        "prior": _prior,
        "days": _days,
        "view": lambda case: case.query.facts.get("view"),
        "generator": lambda case: case.query.facts.get("model"),
    }
)
