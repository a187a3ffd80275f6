"""Selectors against each other: the same studies, the same resamples and swaps of patients."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from tabon.evaluation.compare import Chance, RunTable, mean_worth, swapped_differences, worth
from tabon.evaluation.results import PairedDifference
from tabon.evaluation.statistics import adjusted, randomisation_p


def compare_pairs(
    tables: Sequence[RunTable], methods: Sequence[str], chance: Chance
) -> Iterator[PairedDifference]:
    """Yield how far each method is ahead of each later one by each score: in the run, or the mean of several.

    The difference of the scores, and of the shares of the gap from random to oracle that they close,
    have intervals from the resamples of `chance`; p is of the score's difference, from its swaps.
    """
    if len(methods) < 2 or not tables[0].measured.scores:  # noqa: PLR2004  # a pair
        return
    worths = [worth(table, chance) for table in tables]
    found = worths[0] if len(worths) == 1 else mean_worth(worths)
    for one, other in combinations(range(len(methods)), 2):
        ahead = found.methods[one] - found.methods[other]
        swapped = [
            swapped_differences(replace(table, picks=[table.picks[other], table.picks[one]]), chance)
            for table in tables
        ]
        columns = zip(
            tables[0].measured.scores,
            ahead.numbers(),
            (ahead / found.gap).numbers(),
            randomisation_p(ahead.value, np.mean(swapped, axis=0)).tolist(),
            strict=True,
        )
        for score, delta, gap, p in columns:
            yield PairedDifference(
                section=tables[0].measured.part, score=score.name, method=methods[one], other=methods[other],
                n=found.n, **delta.named("delta"), **gap.named("gap"), p=None if np.isnan(p) else p,
            )  # fmt: skip


def adjusted_pairs(pairs: Sequence[PairedDifference]) -> tuple[PairedDifference, ...]:
    """Adjust p over all of these pairs (Holm); one that is not defined is not counted."""
    values = adjusted([pair.p for pair in pairs])
    return tuple(replace(pair, holm=value) for pair, value in zip(pairs, values, strict=True))
