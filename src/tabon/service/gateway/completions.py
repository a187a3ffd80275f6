"""Drafts in, the order in which they are given out, and the answer as OpenAI's clients read it.

The arithmetic is the service's: one query to its worker, as `POST /v1/select` would ask it.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import time
from typing import Any, Final
from uuid import uuid4

from tabon._internal.retry import Backoff, retry
from tabon.errors import GatewayError, ServiceError
from tabon.method.selection import Note, Selection
from tabon.service.gateway.chat_request import MARK, ChatRequest
from tabon.service.gateway.draft_set import DraftSet, Pruner, Select
from tabon.service.gateway.replies import Draft, total_usage
from tabon.service.parsing import Limits, bounded_query, choice_record, load_of, ranking
from tabon.text.records import Query
from tabon.text.reports import Report

NO_ROOM: Final = 429  # of the service's queue
QUEUE_IS_FULL: Final = Backoff(attempts=3)  # the drafts are paid for
PIECE: Final = 64  # characters of a chunk
DONE: Final = b"data: [DONE]\n\n"
WAITING: Final = b": keep-alive\n\n"  # a comment, which clients leave out


@dataclass(frozen=True, slots=True)
class Chosen:
    """Places of drafts from best to worst, and the extension field."""

    order: tuple[int, ...]
    selection: Selection
    extension: Mapping[str, Any]


async def choose(
    select: Select, limits: Limits, asked: ChatRequest, draft_set: DraftSet, pruner: Pruner | None = None
) -> Chosen:
    """Choose among the drafts that came."""

    def queue_was_full(error: Exception) -> bool:  # a little later it may have room
        return isinstance(error, ServiceError) and error.status == NO_ROOM

    query, too_long = await asyncio.to_thread(_query, asked.query, draft_set.drafts, limits)
    try:
        selection = await retry(lambda _: select(query), QUEUE_IS_FULL, queue_was_full)
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
        selection,
        {
            **choice_record(selection),
            "returned": list(order[: asked.choices]),
            "drafts": asked.drafts,
            "distances": distances,
            "flags": _flags(selection.flags, draft_set, too_long),
            "stopped": sorted(draft_set.stopped),
            "failed": {str(place): error.status for place, error in sorted(draft_set.errors.items())},
            "signature": selection.signature + rule,
        },
    )


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


def completion(asked: ChatRequest, draft_set: DraftSet, chosen: Chosen) -> bytes:
    """Return the chosen drafts as a completion."""
    choices = [
        {
            "index": index,
            "message": draft.message,
            "logprobs": draft.logprobs,
            "finish_reason": draft.finish_reason or "stop",
        }
        for index, draft in enumerate(_returned(asked, draft_set, chosen))
    ]
    record = {**_facts(asked, draft_set, "chat.completion"), "choices": choices}
    return json.dumps({**record, **_usage(draft_set), "tabon": chosen.extension}).encode()


def chunks(asked: ChatRequest, draft_set: DraftSet, chosen: Chosen) -> Iterator[bytes]:
    """Yield the chosen drafts as the events of a stream; the last chunk with a choice says why."""
    facts = _facts(asked, draft_set, "chat.completion.chunk")
    if asked.usage:
        facts["usage"] = None
    drafts = list(_returned(asked, draft_set, chosen))
    for index, draft in enumerate(drafts):
        for delta, logprobs in _deltas(draft):
            choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": None}
            yield event({**facts, "choices": [choice]})
        end = {"index": index, "delta": {}, "logprobs": None, "finish_reason": draft.finish_reason or "stop"}
        why = {"tabon": chosen.extension} if index == len(drafts) - 1 else {}
        yield event({**facts, "choices": [end], **why})
    if asked.usage:
        yield event({**facts, "choices": [], **_usage(draft_set)})
    yield DONE


def event(record: Mapping[str, Any]) -> bytes:
    """Write one event."""
    return b"data: " + json.dumps(record).encode() + b"\n\n"


def _returned(asked: ChatRequest, draft_set: DraftSet, chosen: Chosen) -> Iterator[Draft]:
    """Yield the drafts that the client gets, best first."""
    for place in chosen.order[: asked.choices]:
        draft = draft_set.drafts[place]
        if draft is not None:
            yield draft


def _facts(asked: ChatRequest, draft_set: DraftSet, kind: str) -> dict[str, Any]:
    """Return what the upstream said of its answer; what it did not say stands in plainly."""
    usual = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time()), "model": asked.model}
    return {**usual, **draft_set.facts, "object": kind}


def _usage(draft_set: DraftSet) -> dict[str, Any]:
    """Return the tokens of all calls that said how many; nothing if none did."""
    return {"usage": total_usage(draft_set.usages)} if draft_set.usages else {}


def _deltas(draft: Draft) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the pieces of a message, each with its log-probabilities; text with those is one piece."""
    message = draft.message
    content = message.get("content")
    yield {"role": message.get("role") or "assistant", "content": "" if content else content}, None
    if isinstance(content, str):
        size = PIECE if draft.logprobs is None else max(len(content), 1)
        for start in range(0, len(content), size):
            yield {"content": content[start : start + size]}, draft.logprobs
    elif content:
        yield {"content": content}, draft.logprobs
    others = {key: value for key, value in message.items() if key not in {"role", "content"} and value}
    calls = others.get("tool_calls")
    if isinstance(calls, list):  # in a stream they have an index
        others["tool_calls"] = [
            {**call, "index": place} for place, call in enumerate(calls) if isinstance(call, dict)
        ]
    if others:
        yield others, None


def models_body(found: Mapping[str, Any], selectors: Iterable[str]) -> bytes:
    """Write the upstream's models; each once more for each selector that its name may ask for."""
    models = found.get("data")
    if not isinstance(models, list):
        return json.dumps(found).encode()
    named = [one for one in models if isinstance(one, dict) and isinstance(one.get("id"), str)]
    more = [{**one, "id": f"{one['id']}{MARK}-{selector}"} for selector in selectors for one in named]
    return json.dumps({**found, "data": [*models, *more]}).encode()


def as_gateway_error(error: ServiceError) -> GatewayError:
    """Return an error of the service in OpenAI's form; the hint becomes part of its sentence."""
    if isinstance(error, GatewayError):
        return error
    message = f"{error.message}; {error.hint}" if error.hint else error.message
    return GatewayError(error.status, message, retry_after=error.retry_after)
