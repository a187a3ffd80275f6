"""Margins from drafts that were written to their end: how far behind a later winner may be on the way."""

from collections.abc import Sequence

import numpy as np

from tabon.errors import BadInputError
from tabon.selectors.scorer import AnySelector
from tabon.selectors.streaming.draft_text import Unit
from tabon.selectors.streaming.replay import written_race
from tabon.selectors.streaming.rules import Halving, Margin
from tabon.selectors.streaming.session import StreamingSelector
from tabon.text.records import Query


def calibrated_margin(  # what is compared, on what, where
    streaming: StreamingSelector,
    queries: Sequence[Query],
    texts: Sequence[Sequence[str]],
    *,
    points: tuple[int, ...],
    unit: Unit = "words",
    lost: float = 0.1,
) -> Margin:
    """Return margins that stop the selector's own pick in a share `lost` of these queries, at each point.

    Raises:
        BadInputError: `lost` is no share, or there is nothing to learn from.
    """
    if not 0 <= lost <= 1:
        raise BadInputError(f"lost is {lost}; give a share from 0 to 1")
    finals = streaming.selector.select_many(
        [written_race(streaming.rule, *one).query() for one in zip(queries, texts, strict=True)]
    )
    picks = [selection.selected for selection in finals]
    found = [_behind(streaming.partial, queries, texts, picks, Halving((point,), unit)) for point in points]
    if not all(found):
        raise BadInputError("nothing to compare at one of the points; give longer drafts or earlier points")
    return Margin(
        points, tuple(float(np.quantile(behind, 1 - lost, method="higher")) for behind in found), unit
    )


def _behind(
    partial: AnySelector,
    queries: Sequence[Query],
    texts: Sequence[Sequence[str]],
    picks: Sequence[int | None],
    rule: Halving,
) -> list[float]:
    """Return how much worse than the best beginning the later pick's beginning was."""
    asked, wanted = [], []
    for query, drafts, pick in zip(queries, texts, picks, strict=True):
        due = written_race(rule, query, drafts).due()
        if due is not None and pick is not None:
            asked.append(due)
            wanted.append(pick)
    selections = partial.select_many(asked)
    return [
        selection.total_distances[pick] - min(selection.total_distances)
        for selection, pick in zip(selections, wanted, strict=True)
        if selection.total_distances
    ]
