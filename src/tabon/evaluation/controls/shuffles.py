"""Another patient's prior for every query: the control of "does the prior matter?"."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tabon.errors import BadInputError
from tabon.evaluation.cases import whose
from tabon.text.records import Query


def other_priors(queries: Sequence[Query], seed: int) -> list[Query]:
    """Return the queries with the priors of other patients; each prior is used once.

    Priors move among the queries that have one; those without stay without. The
    draw depends on ids and patients, not on the order of the file or the drafts.

    Raises:
        BadInputError: one patient has more than half of the priors, so there is no such exchange.

    >>> from tabon.text.reports import Report
    >>> two = [Query(id=name, priors=(Report(name),), candidates=()) for name in ("Clear.", "Mass.")]
    >>> [query.prior.findings for query in other_priors(two, seed=0)]
    ['Mass.', 'Clear.']
    """
    having = [row for row, query in enumerate(queries) if any(not prior.is_empty for prior in query.priors)]
    circle = _circle(queries, having, np.random.default_rng(seed))
    shuffled = list(queries)
    for taker, giver in circle:
        shuffled[taker] = replace(queries[taker], priors=queries[giver].priors)
    return shuffled


def _circle(queries: Sequence[Query], rows: Sequence[int], rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return who takes whose prior: patients stand in a ring and all look past the largest group."""
    counts = Counter(whose(queries[row]) for row in rows)
    largest = max(counts.values(), default=0)
    if 2 * largest > len(rows):
        raise BadInputError(
            f"one patient has {largest} of {len(rows)} priors, so not everyone can get another patient's; "
            "give queries of more patients"
        )
    if not rows:
        return []
    patients = sorted(counts)
    place = dict(zip(patients, rng.permutation(len(patients)).tolist(), strict=True))
    within = dict(zip(sorted(rows, key=lambda row: queries[row].id), rng.random(len(rows)), strict=True))
    ring = sorted(rows, key=lambda row: (place[whose(queries[row])], within[row]))
    step = int(rng.integers(largest, len(rows) - largest + 1))
    return [(row, ring[(at + step) % len(ring)]) for at, row in enumerate(ring)]
