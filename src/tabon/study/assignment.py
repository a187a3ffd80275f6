"""Who sees which case, and where on the screen: drawn from a seed, balanced, blinded.

A pairwise case is drawn for one pair of selectors, from the queries in which their picks differ, so that the
answers of a pair are those of a plain sample of its queries. Every reader sees every case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations

import numpy as np

from tabon.errors import BadInputError
from tabon.evaluation.inputs import NOTHING, Picks, whose
from tabon.study.design import (
    MOST_RANKED,
    Design,
    KeyReading,
    PairCount,
    Reading,
    Shown,
    StudyPlan,
)
from tabon.text.records import Query, reference_of


@dataclass(frozen=True, slots=True)
class StudyCase:
    """One query, and which of its drafts are shown."""

    query: Query
    shown: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Assigned:
    """One reading, with what the key says of it."""

    reading: Reading
    key: KeyReading


def same_texts(query: Query) -> list[tuple[int, ...]]:
    """Return the drafts of a query, those with the same text together."""
    groups: dict[tuple[str, str, str], tuple[int, ...]] = {}
    for number, draft in enumerate(query.candidates):
        text = (draft.findings, draft.impression, draft.other)
        groups[text] = (*groups.get(text, ()), number)
    return list(groups.values())


def count_pairs(queries: Sequence[Query], picks: Sequence[Picks]) -> tuple[PairCount, ...]:
    """Count for each two selectors how often both pick, and how often two texts."""
    found = []
    for one, other in combinations(picks, 2):
        placed = [(_picked(query, one), _picked(query, other)) for query in queries]
        both = [pair for pair in placed if pair[0] is not None and pair[1] is not None]
        differ = sum(first != second for first, second in both)
        found.append(PairCount(selector=one.method, other=other.method, both=len(both), differ=differ))
    return tuple(found)


def draw_cases(queries: Sequence[Query], picks: Sequence[Picks], plan: StudyPlan) -> list[StudyCase]:
    """Draw the cases of a study; more than there are is an error."""
    rng = np.random.default_rng(plan.seed)
    if plan.design == "pairwise":
        return _draw_pairs(queries, picks, plan.cases, rng)
    shown = [(query, _shown(query, picks)) for query in queries]
    cases = [StudyCase(query, drafts) for query, drafts in shown if len(drafts) > (plan.design == "ranking")]
    what = "drafts" if not picks else "picks"
    needed = f"two different {what}" if plan.design == "ranking" else what
    _check_enough(len(cases), plan.cases, f"queries with {needed}")
    drawn = [cases[row] for row in rng.permutation(len(cases))[: plan.cases]]
    if plan.design == "ranking" and (most := max(len(case.shown) for case in drawn)) > MOST_RANKED:
        raise BadInputError(
            f"a query has {most} drafts, and at most {MOST_RANKED} can be ranked side by side; give "
            "--selections, so that only picks are shown, or --design rating"
        )
    return drawn


def assign(
    cases: Sequence[StudyCase], plan: StudyPlan, images: Mapping[str, str]
) -> dict[str, list[Assigned]]:
    """Give each reader the readings in an order of their own; images are files by query."""
    found = {}
    for number, reader in enumerate(plan.readers):
        rng = np.random.default_rng([plan.seed, number])
        readings = [
            StudyCase(case.query, part)
            for case in cases
            for part in ([(one,) for one in case.shown] if plan.design == "rating" else [case.shown])
        ]
        placed = [readings[row] for row in rng.permutation(len(readings))]
        placed = [
            _turned(case, order)
            for case, order in zip(placed, _orders(placed, plan.design, rng), strict=True)
        ]
        listed = _with_repetitions(placed, plan.repeat, rng)
        names = [_name(plan.seed, reader, place) for place in range(len(listed))]
        found[reader] = [
            _assigned(
                case.query,
                name=name,
                shown=case.shown,
                repeats=None if earlier is None else names[earlier],
                image=images.get(case.query.id),
                reference=plan.reference,
            )
            for name, (case, earlier) in zip(names, listed, strict=True)
        ]
    return found


def _shown(query: Query, picks: Sequence[Picks]) -> tuple[Shown, ...]:
    """Return the different texts among the picks of a query, or among all drafts where there are no picks."""
    chosen = {one.method: _picked(query, one) for one in picks}
    return tuple(
        Shown(drafts=same, selectors=tuple(name for name, drafts in chosen.items() if drafts == same))
        for same in same_texts(query)
        if not picks or same in chosen.values()
    )


def _picked(query: Query, picks: Picks) -> tuple[int, ...] | None:
    """Return the pick of a query, with the drafts of the same text; None where there is none."""
    number = picks.chosen.get(query.id, NOTHING)
    if number == NOTHING:
        return None
    return next((same for same in same_texts(query) if number in same), None)


def _draw_pairs(
    queries: Sequence[Query], picks: Sequence[Picks], cases: int, rng: np.random.Generator
) -> list[StudyCase]:
    """Draw as many queries for each pair of selectors, one or none more; each query once."""
    if len(picks) < 2:  # noqa: PLR2004  # a pair
        raise BadInputError(
            "a pairwise study compares selectors; give --selections NAME=FILE for two or more"
        )
    pairs = list(combinations(picks, 2))
    found = [[_compared(query, one, other) for query in queries] for one, other in pairs]
    open_rows = [[row for row in rng.permutation(len(queries)) if column[row]] for column in found]
    quota = np.full(len(pairs), cases // len(pairs))
    quota[rng.permutation(len(pairs))[: cases % len(pairs)]] += 1
    drawn: list[StudyCase] = []
    while quota.any():
        left = zip(open_rows, quota, strict=True)
        spare = [len(rows) - wanted if wanted else np.inf for rows, wanted in left]
        pair = int(np.argmin(spare))  # the one with the fewest queries to spare
        if not open_rows[pair]:
            quota[pair] = 0
            continue
        row = open_rows[pair][0]
        drawn += [case for case in [found[pair][row]] if case is not None]
        quota[pair] -= 1
        open_rows = [[other for other in rows if other != row] for rows in open_rows]
    _check_enough(len(drawn), cases, "queries in which the picks differ")
    return drawn


def _compared(query: Query, one: Picks, other: Picks) -> StudyCase | None:
    """Return the case that compares two picks; None where they have one text, or one is missing."""
    first, second = _picked(query, one), _picked(query, other)
    if first is None or second is None or first == second:
        return None
    shown = (Shown(drafts=first, selectors=(one.method,)), Shown(drafts=second, selectors=(other.method,)))
    return StudyCase(query, shown)


def _check_enough(there: int, wanted: int, what: str) -> None:
    """Refuse more cases than there are."""
    if there < wanted:
        raise BadInputError(
            f"--cases is {wanted}, but there are only {there} {what}; give fewer cases or more queries"
        )


def _orders(cases: Sequence[StudyCase], design: Design, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return the order on the screen of each case; of two selectors each is as often on the left."""
    if design != "pairwise":
        return [tuple(rng.permutation(len(case.shown)).tolist()) for case in cases]
    orders: list[tuple[int, ...]] = [(0, 1)] * len(cases)
    pairs: dict[tuple[str, ...], list[int]] = {}
    for row, case in enumerate(cases):
        pairs.setdefault(tuple(name for one in case.shown for name in one.selectors), []).append(row)
    for rows in pairs.values():
        first = int(rng.integers(2))  # who has one more, if they are odd
        for place, row in enumerate(rng.permutation(rows)):
            orders[row] = (0, 1) if (place + first) % 2 else (1, 0)
    return orders


def _turned(case: StudyCase, order: Sequence[int]) -> StudyCase:
    """Put what is shown into an order."""
    return StudyCase(case.query, tuple(case.shown[place] for place in order))


def _with_repetitions(
    placed: Sequence[StudyCase], share: float, rng: np.random.Generator
) -> list[tuple[StudyCase, int | None]]:
    """Return the readings with some of them repeated, each with the row of the earlier one.

    The first ones are repeated, in their order and with what is shown turned round, somewhere in the second
    half: at least half of the readings lie between a case and its repetition.
    """
    half = (len(placed) + 1) // 2
    first: list[tuple[StudyCase, int | None]] = [(case, None) for case in placed[:half]]
    later: list[tuple[StudyCase, int | None]] = [(case, None) for case in placed[half:]]
    repeated = round(share * len(placed))
    places = sorted(rng.integers(len(later) + 1, size=repeated).tolist())
    for row in reversed(range(repeated)):  # from behind, so that the places before stay right
        case = placed[row]
        later.insert(places[row], (_turned(case, range(len(case.shown))[::-1]), row))
    return first + later


def _assigned(
    query: Query,
    *,
    name: str,
    shown: tuple[Shown, ...],
    repeats: str | None,
    image: str | None,
    reference: bool,
) -> Assigned:
    """Return one reading under a name that says nothing."""
    return Assigned(
        Reading(
            id=name,
            priors=query.priors,
            drafts=tuple(query.candidates[one.drafts[0]] for one in shown),
            reference=reference_of(query) if reference else None,
            image=image,
        ),
        KeyReading(id=name, query=query.id, whose=whose(query), shown=shown, repeats=repeats),
    )


def _name(seed: int, reader: str, place: int) -> str:
    """Return what a reading is called."""
    return sha256(f"{seed}|{reader}|{place}".encode()).hexdigest()[:12]
