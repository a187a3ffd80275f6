"""Readers against each other and against themselves; selectors against each other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np

from tabon.evaluation.results import Number
from tabon.evaluation.statistics import (
    Array,
    bootstrap_weights,
    interval,
    patient_rows,
    sum_by_patient,
    weighted,
)
from tabon.study.agreement import alpha, coincidences, confusion, weighted_kappa
from tabon.study.design import ERROR_KINDS, RATINGS, Design
from tabon.study.estimates import Crossed, Estimate, numbers, shares
from tabon.study.judged import EQUAL, FIRST, PREFERENCES, SECOND, Judged, Thing, preference, said
from tabon.study.preference import strengths

ALL_DRAFTS: Final = "all drafts"  # stands for a selector where drafts are shown that nobody picked
KAPPA, ALPHA, SAME = "weighted kappa", "alpha", "same answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement(Number):
    """How much readers agree, or one of them with herself."""

    what: str  # "preference", "rating" or "significant error"
    readers: tuple[str, ...]
    measure: str  # KAPPA, ALPHA or SAME
    n: int  # things that were judged twice or more


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference(Estimate):
    """How often one selector's pick is preferred to another's; a tie is half."""

    selector: str
    other: str
    cases: int
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorNumber(Estimate):
    """One number of a selector: its strength, the mean rating of its picks, the errors in them."""

    what: str  # "strength", "rating", or a kind of error with or without "significant"
    selector: str
    other: str | None = None  # of a difference: whose number was taken away
    n: int  # answers


@dataclass(frozen=True, slots=True)
class Resampling:
    """How intervals are drawn."""

    resamples: int = 2_000
    seed: int = 0

    def crossed(self, rows: Sequence[Judged]) -> Crossed:
        """Return the cases and readers of some answers."""
        return Crossed(
            cases=patient_rows([one.key.whose for one in rows]),
            readers=patient_rows([one.reader for one in rows]),
            resamples=self.resamples,
            seed=self.seed,
        )

    def over_cases(self, whose: Sequence[str], tables: Array, function: Callable[[Array], Array]) -> Number:
        """Return a function of added up tables with the interval of resampled cases."""
        rows = patient_rows(whose)
        units = int(rows.max(initial=-1)) + 1
        sums = sum_by_patient(tables, rows, units)
        value = float(function(sums.sum(axis=0)))
        if units < 2 or np.isnan(value):  # noqa: PLR2004  # nothing to resample
            return Number(value=None if np.isnan(value) else value)
        weights = bootstrap_weights(units, self.resamples, np.random.default_rng(self.seed))
        low, high = interval(function(weighted(weights, sums)), units)
        return Number(value=value, low=float(low), high=float(high))


def agreements(design: Design, first: Sequence[Judged], chance: Resampling) -> Iterator[Agreement]:
    """Yield kappa of each two readers and alpha of all, then alpha of significant errors."""
    what, categories = ("rating", len(RATINGS)) if design == "rating" else ("preference", PREFERENCES)
    readers = tuple(dict.fromkeys(one.reader for one in first))
    whose = {one.key.query: one.key.whose for one in first}
    judgements = _collected((one.reader, said(design, one)) for one in first)
    for two in combinations(readers, 2):
        shared = {thing: each for thing, each in judgements.items() if {*two} <= each.keys()}
        tables = confusion(list(shared.values()), *two, categories)
        found = chance.over_cases([whose[thing[0]] for thing in shared], tables, weighted_kappa)
        yield Agreement(what=what, readers=two, measure=KAPPA, n=len(shared), **found.named())
    errors = _collected((one.reader, _significant(one)) for one in first)
    for name, things, number, metric in (
        (what, judgements, categories, "ordinal"),
        ("significant error", errors, 2, "nominal"),
    ):
        shared = {thing: each for thing, each in things.items() if len(each) > 1}
        tables = coincidences(list(shared.values()), number)
        found = chance.over_cases(
            [whose[thing[0]] for thing in shared], tables, partial(alpha, metric=metric)
        )
        if shared:
            yield Agreement(what=name, readers=readers, measure=ALPHA, n=len(shared), **found.named())


def self_agreements(design: Design, judged: Sequence[Judged], chance: Resampling) -> Iterator[Agreement]:
    """Yield how often each reader says the same of a repeated case, and kappa with herself; then of all."""
    by_id = {(one.reader, one.key.id): one for one in judged}
    twice = [
        (by_id[one.reader, one.key.repeats], one)
        for one in judged
        if one.key.repeats is not None and (one.reader, one.key.repeats) in by_id
    ]
    what, categories = ("rating", len(RATINGS)) if design == "rating" else ("preference", PREFERENCES)
    readers = tuple(dict.fromkeys(one.reader for one, _ in twice))
    for group in (*((reader,) for reader in readers), *([readers] if len(readers) > 1 else [])):
        pairs = [
            (before.key.whose, {"first": category, "again": again})
            for before, after in twice
            if before.reader in group
            for (_, category), (_, again) in zip(said(design, before), said(design, after), strict=True)
        ]
        tables = confusion([each for _, each in pairs], "first", "again", categories)
        for measure, function in ((SAME, _same), (KAPPA, weighted_kappa)):
            number = chance.over_cases([whose for whose, _ in pairs], tables, function)
            yield Agreement(
                what=f"{what} again", readers=group, measure=measure, n=len(pairs), **number.named()
            )


def preferences(
    design: Design, first: Sequence[Judged], selectors: Sequence[str], chance: Resampling
) -> Iterator[Preference]:
    """Yield how often the pick of each selector is preferred to that of each later one."""
    if design == "rating":
        return
    for selector, other in combinations(selectors, 2):
        rows = compared(first, selector, other)
        if not rows:
            continue
        outcomes = np.array([outcome for _, outcome in rows])
        columns = np.column_stack([1 - outcomes / SECOND, np.ones(len(rows))])
        crossed = chance.crossed([one for one, _ in rows])
        cases = int(crossed.cases.max()) + 1
        [found] = shares(crossed.spreads(columns, _ratio), cases)
        yield Preference(
            selector=selector,
            other=other,
            cases=len({one.key.query for one, _ in rows}),
            wins=int((outcomes == FIRST).sum()),
            ties=int((outcomes == EQUAL).sum()),
            losses=int((outcomes == SECOND).sum()),
            **found.fields(),
        )


def compared(first: Sequence[Judged], selector: str, other: str) -> list[tuple[Judged, int]]:
    """Return the answers that compare the picks of two selectors, and which of them is preferred."""
    found = []
    for one in first:
        here, there = one.place_of(selector), one.place_of(other)
        if here is not None and there is not None and here != there:
            found.append((one, preference(one.answer.values[here], one.answer.values[there])))
    return found


def selector_strengths(
    design: Design, first: Sequence[Judged], selectors: Sequence[str], chance: Resampling
) -> Iterator[SelectorNumber]:
    """Yield the strength of each of three or more selectors; of two, the share says the same."""
    number = len(selectors)
    if design == "rating" or number < 3:  # noqa: PLR2004
        return
    rows: list[Judged] = []
    tables: list[Array] = []
    for (place, selector), (other_place, other) in combinations(enumerate(selectors), 2):
        for one, outcome in compared(first, selector, other):
            table = np.zeros((number, number))
            table[place, other_place] = 1 - outcome / SECOND
            table[other_place, place] = outcome / SECOND
            rows.append(one)
            tables.append(table)
    if not rows:
        return
    columns = np.array(tables).reshape(len(rows), number * number)
    spreads = chance.crossed(rows).spreads(
        columns, lambda sums: strengths(sums.reshape(len(sums), number, number))
    )
    n = [sum(one.place_of(selector) is not None for one in rows) for selector in selectors]
    for selector, answers, found in zip(selectors, n, numbers(spreads), strict=True):
        yield SelectorNumber(what="strength", selector=selector, n=answers, **found.fields())


def mean_ratings(
    design: Design, first: Sequence[Judged], selectors: Sequence[str], chance: Resampling
) -> Iterator[SelectorNumber]:
    """Yield the mean rating of each selector's picks, and the differences of each two on the same cases."""
    if design != "rating":
        return
    rated = {
        selector: {(one.reader, one.key.query): one for one in first if one.place_of(selector) is not None}
        for selector in selectors
    }
    if not selectors:
        rated = {ALL_DRAFTS: {(one.reader, one.key.id): one for one in first}}
    for selector, rows in rated.items():
        given = np.array([[float(one.answer.values[0])] for one in rows.values()])
        for found in _means(list(rows.values()), given, chance):
            yield SelectorNumber(what="rating", selector=selector, n=len(rows), **found.fields())
    for selector, other in combinations(rated, 2):
        both = [(one, rated[other][place]) for place, one in rated[selector].items() if place in rated[other]]
        ahead = np.array([[float(one.answer.values[0] - two.answer.values[0])] for one, two in both])
        for found in _means([one for one, _ in both], ahead, chance):
            yield SelectorNumber(what="rating", selector=selector, other=other, n=len(both), **found.fields())


def mean_errors(
    first: Sequence[Judged], selectors: Sequence[str], chance: Resampling
) -> Iterator[SelectorNumber]:
    """Yield how many errors, and significant errors, of each kind a selector's picks have in the mean."""
    whats = [f"{prefix}{kind}" for kind in (*ERROR_KINDS, "errors") for prefix in ("", "significant ")]
    for selector in selectors or (ALL_DRAFTS,):
        places = [
            (one, place)
            for one in first
            for place, shown in enumerate(one.key.shown)
            if selector in shown.selectors or not selectors
        ]
        counts = np.array([_errors(one, place) for one, place in places])
        estimates = _means([one for one, _ in places], counts, chance)
        for what, found in zip(whats, estimates, strict=False):  # none where nothing was read
            yield SelectorNumber(what=what, selector=selector, n=len(places), **found.fields())


def _errors(one: Judged, place: int) -> list[float]:
    """Count the errors of each kind in one draft, then all; the significant ones follow each number."""
    marks = [mark for mark in one.answer.errors if mark.draft == place]
    groups = [*([mark for mark in marks if mark.kind == kind] for kind in ERROR_KINDS), marks]
    return [
        float(count) for group in groups for count in (len(group), sum(mark.significant for mark in group))
    ]


def _means(rows: Sequence[Judged], values: Array, chance: Resampling) -> list[Estimate]:
    """Return the mean of each column; nothing of no rows."""
    if not rows:
        return []
    columns = np.column_stack([values, np.ones(len(rows))])
    return numbers(chance.crossed(rows).spreads(columns, _ratio))


def _ratio(sums: Array) -> Array:
    """Return each column over the last one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = sums[:, :-1] / sums[:, -1:]
    return found


def _same(tables: Array) -> Array:
    """Return the share of what is said twice and the same."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = np.trace(tables, axis1=-2, axis2=-1) / tables.sum(axis=(-2, -1))
    return found


def _collected(answers: Iterable[tuple[str, Iterable[tuple[Thing, int]]]]) -> dict[Thing, dict[str, int]]:
    """Collect what each reader says of each thing."""
    found: dict[Thing, dict[str, int]] = {}
    for reader, things in answers:
        for thing, category in things:
            found.setdefault(thing, {})[reader] = category
    return found


def _significant(one: Judged) -> Iterator[tuple[Thing, int]]:
    """Yield for each draft that was shown whether the reader finds a significant error in it."""
    for place, shown in enumerate(one.key.shown):
        has = any(mark.draft == place and mark.significant for mark in one.answer.errors)
        yield (one.key.query, str(shown.drafts[0])), int(has)
