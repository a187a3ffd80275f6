"""Drafts in, the order in which they are given out, and what the answer says of it.

The arithmetic is the service's: one query to its worker, as `POST /v1/select` would ask it.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tabon._internal.retry import Backoff, retry
from tabon.errors import ServiceError
from tabon.method.selection import Note, Selection
from tabon.service.explorer.records import NOTICE
from tabon.service.gateway.chat_request import ChatRequest
from tabon.service.gateway.draft_set import DraftSet
from tabon.service.gateway.early_stop import Pruner, Select
from tabon.service.gateway.refusals import as_gateway_error
from tabon.service.gateway.replies import Draft
from tabon.service.parsing import Limits, bounded_query, load_of
from tabon.text.records import Query
from tabon.text.reports import Report

NO_ROOM: Final = 429  # of the service's queue
QUEUE_IS_FULL: Final = Backoff(attempts=3)  # the drafts are paid for


@dataclass(frozen=True, slots=True)
class Chosen:
    """Places of drafts from best to worst, and the extension field."""

    order: tuple[int, ...]
    extension: Mapping[str, Any]


async def choose(
    select: Select, limits: Limits, asked: ChatRequest, draft_set: DraftSet, pruner: Pruner | None = None
) -> Chosen:
    """Choose among the drafts that came."""
    query, too_long = await asyncio.to_thread(_query, asked.query, draft_set.drafts, limits)
    try:
        selection = await retry(lambda _: select(query), QUEUE_IS_FULL, _may_help)
    except ServiceError as error:
        raise as_gateway_error(error) from None
    rule = "" if pruner is None else f"|rule:{pruner.rule.name}|partial:same"
    came = [place for place, draft in enumerate(draft_set.drafts) if draft is not None]
    order = ranking(selection, came)
    distances = [
        None if draft is None else value
        for draft, value in zip(
            draft_set.drafts, selection.total_distances, strict=False
        )  # none on abstention
    ]
    return Chosen(
        order,
        {
            "selected": selection.selected,
            "returned": list(order[: asked.choices]),
            "drafts": asked.drafts,
            "distances": distances,
            "margin": selection.margin,
            "tied": selection.tied,
            "abstained": selection.abstained,
            "p": selection.p,
            "flags": _flags(selection.flags, draft_set, too_long),
            "stopped": sorted(draft_set.stopped),
            "failed": {str(place): error.status for place, error in sorted(draft_set.errors.items())},
            "signature": selection.signature + rule,
            "notice": NOTICE,
        },
    )


def ranking(selection: Selection, came: Iterable[int]) -> tuple[int, ...]:
    """Return the places from best to worst, the pick first; as they came where nothing was picked.

    >>> ranking(Selection(selected=2, total_distances=(0.3, 0.2, 0.1)), [0, 1, 2])
    (2, 1, 0)
    """
    if selection.selected is None:
        return tuple(came)
    best, distances = selection.selected, selection.total_distances
    return tuple(sorted(came, key=lambda place: (place != best, distances[place], place)))


def _query(asked: Query, drafts: Iterable[Draft | None], limits: Limits) -> tuple[Query, list[int]]:
    """Put the drafts into the query, read as `tabon drafts` would.

    One that is longer than the service takes counts as empty, and where the query is too heavy the
    longest ones do until it is not.
    """
    reports: list[Report] = []
    too_long: list[int] = []
    for place, draft in enumerate(drafts):
        text = "" if draft is None else draft.text.encode("utf-8", "replace").decode()
        try:
            alone = bounded_query({"id": "gateway", "prior": None, "candidates": [text]}, limits)
            reports += alone.candidates
        except ServiceError:
            reports.append(Report())
            too_long.append(place)
    while True:
        query = replace(asked, candidates=tuple(reports), draft_facts=tuple({} for _ in reports))
        try:
            load_of(query, limits)
        except ServiceError:
            sizes = [len(report.findings) + len(report.impression) for report in reports]
            longest = sizes.index(max(sizes))
            reports[longest] = Report()
            too_long.append(longest)
        else:
            return query, sorted(too_long)


def _may_help(error: Exception) -> bool:
    """Say whether the service's queue was full; a little later it may have room."""
    return isinstance(error, ServiceError) and error.status == NO_ROOM


def _flags(flags: Iterable[Note], draft_set: DraftSet, too_long: Iterable[int]) -> list[str]:
    """Say of a draft that did not come why, instead of which sections it lacks."""
    gone = {*draft_set.stopped, *draft_set.errors, *too_long}
    notes = [
        *(note for note in flags if note.kind != "draft-lacks" or note.draft not in gone),
        *(Note("stopped", draft=place) for place in sorted(draft_set.stopped)),
        *(Note("failed", draft=place) for place in sorted(draft_set.errors)),
        *(Note("too-long", draft=place) for place in too_long),
    ]
    return list(map(str, notes))
