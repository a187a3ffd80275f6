"""Drafts in, the order in which they are given out, and what the answer says of it.

The arithmetic is the service's: one query to its worker, as `POST /v1/select` would ask it.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tabon.errors import ServiceError
from tabon.method.selection import Note
from tabon.service.explorer.records import NOTICE
from tabon.service.gateway.chat_request import ChatRequest
from tabon.service.gateway.draft_set import DraftSet
from tabon.service.gateway.early_stop import Pruner, Select
from tabon.service.gateway.refusals import as_gateway_error
from tabon.service.gateway.replies import Draft
from tabon.service.parsing import Limits, load_of, query_from_body
from tabon.text.records import Query
from tabon.text.reports import Report

NO_ROOM: Final = 429  # of the service's queue
ATTEMPTS: Final = 3  # at a full queue: the drafts are paid for


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
    record = json.loads(await _patiently(select, query))
    rule = "" if pruner is None else f"|rule:{pruner.rule.name}|partial:same"
    came = [place for place, draft in enumerate(draft_set.drafts) if draft is not None]
    order = ranking(record, came)
    return Chosen(
        order,
        {
            "selected": record["selected"],
            "returned": list(order[: asked.choices]),
            "drafts": asked.drafts,
            "distances": _distances(record, draft_set.drafts),
            "margin": record["margin"],
            "tied": record["tied"],
            "abstained": record["abstained"],
            "p": record["p"],
            "flags": _flags(record["flags"], draft_set, too_long),
            "stopped": sorted(draft_set.stopped),
            "failed": {str(place): error.status for place, error in sorted(draft_set.errors.items())},
            "signature": record["signature"] + rule,
            "notice": NOTICE,
        },
    )


def ranking(record: Mapping[str, Any], came: Iterable[int]) -> tuple[int, ...]:
    """Return the places from best to worst, the pick first; as they came where nothing was picked.

    >>> ranking({"selected": 2, "total_distances": [0.3, 0.2, 0.1]}, [0, 1, 2])
    (2, 1, 0)
    """
    if record["selected"] is None:
        return tuple(came)
    distances = record["total_distances"]
    return tuple(sorted(came, key=lambda place: (place != record["selected"], distances[place], place)))


def _query(asked: Query, drafts: Iterable[Draft | None], limits: Limits) -> tuple[Query, list[int]]:
    """Put the drafts into the query; where it is too heavy, the longest count as empty until it is not."""
    reports, too_long = _reports(drafts, limits)
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


def _reports(drafts: Iterable[Draft | None], limits: Limits) -> tuple[list[Report], list[int]]:
    """Read each draft as `tabon drafts` would; one longer than the service takes counts as empty."""
    reports: list[Report] = []
    too_long: list[int] = []
    for place, draft in enumerate(drafts):
        text = "" if draft is None else draft.text.encode("utf-8", "replace").decode()
        body = json.dumps({"id": "gateway", "prior": None, "candidates": [text]}).encode()
        try:
            reports += query_from_body(body, limits).candidates
        except ServiceError:
            reports.append(Report())
            too_long.append(place)
    return reports, too_long


async def _patiently(select: Select, query: Any) -> bytes:  # noqa: ANN401  # a Query
    """Ask the service; where its queue is full, wait a little before the drafts are lost."""
    for attempt in range(ATTEMPTS):
        try:
            return await select(query)
        except ServiceError as error:
            if error.status != NO_ROOM or attempt == ATTEMPTS - 1:
                raise as_gateway_error(error) from None
            await asyncio.sleep(1 if error.retry_after is None else error.retry_after)
    raise AssertionError  # never reached: the last attempt returns or raises


def _distances(record: Mapping[str, Any], drafts: Iterable[Draft | None]) -> list[float | None]:
    """Return the distance of each draft that came."""
    found = record["total_distances"]
    if not found:
        return []
    return [None if draft is None else value for draft, value in zip(drafts, found, strict=True)]


def _flags(flags: Iterable[str], draft_set: DraftSet, too_long: Iterable[int]) -> list[str]:
    """Say of a draft that did not come why, instead of which sections it lacks."""
    gone = {*draft_set.stopped, *draft_set.errors, *too_long}
    notes = [
        *(note for note in map(Note.read, flags) if note.kind != "draft-lacks" or note.draft not in gone),
        *(Note("stopped", draft=place) for place in sorted(draft_set.stopped)),
        *(Note("failed", draft=place) for place in sorted(draft_set.errors)),
        *(Note("too-long", draft=place) for place in too_long),
    ]
    return list(map(str, notes))
