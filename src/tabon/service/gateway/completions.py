"""The answer as OpenAI's clients read it: one completion, or a stream of chunks."""

import json
from collections.abc import Iterator, Mapping
from time import time
from typing import Any, Final
from uuid import uuid4

from tabon.errors import GatewayError
from tabon.service.gateway.chat_request import ChatRequest
from tabon.service.gateway.draft_set import DraftSet
from tabon.service.gateway.ranking import Chosen
from tabon.service.gateway.replies import Draft, total_usage

PIECE: Final = 64  # characters of a chunk
DONE: Final = b"data: [DONE]\n\n"
WAITING: Final = b": keep-alive\n\n"  # a comment, which clients leave out


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


def error_event(error: GatewayError) -> bytes:
    """Write the end of a stream that failed after it had begun."""
    return event(error.record())


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
    """Return the tokens of all calls that said how many; nothing where none did."""
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
