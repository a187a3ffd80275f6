"""N drafts for one request: one call if the upstream takes `n`, several calls if it does not.

Weak drafts may be stopped while they are written (docs/guide/streaming.md); what is compared goes
through the service's worker like any other query.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from tabon.errors import GatewayError, ServiceError, UpstreamError
from tabon.method.selection import Selection
from tabon.selectors.streaming import Rule
from tabon.selectors.streaming.draft_text import LONGEST, DraftText
from tabon.selectors.streaming.rules import Race
from tabon.service.gateway.chat_request import ChatRequest
from tabon.service.gateway.replies import Draft, Reply, malformed
from tabon.service.gateway.upstream import Call, Upstream, no_time
from tabon.text.records import Query

Select = Callable[[Query], Awaitable[Selection]]
Stop = Callable[[int], object]
PATH: Final = "chat/completions"
REFUSES_N: Final = frozenset({400, 422})  # what an upstream that knows no `n` may answer
REMEMBERED: Final = 256  # kinds of requests
LOST_SECONDS: Final = 0.1  # until a cancellation that had no effect is repeated
log = logging.getLogger(__name__)


class Pruner:
    """The drafts of one request, as they come."""

    def __init__(self, query: Query, drafts: int, select: Select, rule: Rule) -> None:
        """Begin with nothing written."""
        self.rule = rule
        self._race = Race.start(query, rule, drafts)
        self._select = select
        self._turn = asyncio.Lock()
        self._on = True
        self.stop: Stop = lambda _: None  # is told which draft to stop

    @property
    def stopped(self) -> frozenset[int]:
        """Return the drafts that lost."""
        return frozenset(self._race.stopped)

    async def feed(self, draft: int, text: str) -> None:
        """Take more text of a draft."""
        written = self._race.drafts[draft]
        if self._on and draft not in self._race.stopped and len(written.text) < LONGEST:
            written.feed(text)
            await self._advance()

    async def finish(self, draft: int) -> None:
        """Take a draft as whole: no more of it will come."""
        if draft not in self._race.stopped and not self._race.drafts[draft].finished:
            self._race.drafts[draft].finish()
            await self._advance()

    async def fail(self, draft: int) -> None:
        """Take a draft as empty: half of it came and it is lost, so it may win nothing."""
        if draft not in self._race.stopped:
            written = self._race.drafts[draft]
            self._race.drafts[draft] = DraftText(written.unit, written.most)
            await self.finish(draft)

    async def _advance(self) -> None:
        """Decide all that is due; where the service has no room for it, all drafts go on to their end."""
        async with self._turn:
            while self._on and (query := self._race.due()) is not None:
                try:
                    found = await self._select(query)
                except ServiceError:
                    self._on = False
                    return
                for draft in self._race.decide(found):
                    if not self._race.drafts[draft].finished:
                        self.stop(draft)


@dataclass(slots=True)
class DraftSet:
    """What the upstream brought, by the place of each draft."""

    drafts: list[Draft | None]
    errors: dict[int, GatewayError] = field(default_factory=dict)
    stopped: frozenset[int] = frozenset()
    usages: list[Mapping[str, Any]] = field(default_factory=list)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def missing(self) -> list[int]:
        """Return the places without a draft."""
        return [place for place, draft in enumerate(self.drafts) if draft is None]

    def take(self, reply: Reply, places: Sequence[int]) -> None:
        """Put the drafts of a call into places."""
        for place, draft in zip(places, reply.drafts, strict=False):
            self.drafts[place] = draft
        if reply.usage is not None:
            self.usages.append(reply.usage)
        self.facts = self.facts or reply.facts


class Gatherer:
    """Asks for drafts, and remembers which requests are not answered with several.

    A request is known by all that it asks but its messages and its seed: what one
    client's parameters did does not change what another gets.
    """

    def __init__(self, upstream: Upstream) -> None:
        """Begin knowing nothing."""
        self._upstream = upstream
        self._one_by_one: OrderedDict[bytes, None] = OrderedDict()

    async def gather(self, asked: ChatRequest, call: Call, pruner: Pruner | None = None) -> DraftSet:
        """Return the drafts that came; where none came, raise what the first failure means."""
        found = DraftSet([None] * asked.drafts)
        own = {key: value for key, value in asked.body.items() if key not in {"messages", "seed"}}
        kind = blake2b(json.dumps([asked.drafts, own], sort_keys=True).encode(), digest_size=16).digest()
        alone = asked.drafts == 1 or pruner is not None or kind in self._one_by_one
        refused = False if alone else await self._together(found, asked, call)
        if found.missing() and not found.errors:
            await self._one_at_a_time(found, asked, call, pruner)
        if len(found.missing()) == asked.drafts:  # the lowest status: what a client can do most about
            raise min(found.errors.values(), key=lambda error: error.status, default=malformed())
        if refused:
            log.info(
                "the upstream does not give several drafts in one call for some requests: several are made"
            )
            self._one_by_one[kind] = None
            while len(self._one_by_one) > REMEMBERED:
                self._one_by_one.popitem(last=False)
        return found

    async def _together(self, found: DraftSet, asked: ChatRequest, call: Call) -> bool:
        """Ask for all drafts with one call; return whether the model does not know `n`."""
        try:
            reply = await self._upstream.ask(_asking(asked, call, asked.drafts))
        except UpstreamError as error:
            if error.seen not in REFUSES_N:
                found.errors = dict.fromkeys(range(asked.drafts), error)
            return error.seen in REFUSES_N
        found.take(reply, range(asked.drafts))
        return reply.came < asked.drafts and not reply.broken

    async def _one_at_a_time(
        self, found: DraftSet, asked: ChatRequest, call: Call, pruner: Pruner | None
    ) -> None:
        """Ask for each missing draft with a call of its own, all at once."""
        tasks = {
            place: asyncio.create_task(self._alone(_asking(asked, call, 1, place), place, pruner))
            for place in found.missing()
        }
        if pruner is not None:
            pruner.stop = lambda place: tasks[place].cancel()
        try:
            await asyncio.wait(tasks.values())
        finally:
            await cancelled(tasks.values())
        found.stopped = frozenset() if pruner is None else pruner.stopped
        for place, task in tasks.items():
            self._collect(found, place, task)

    async def _alone(self, call: Call, place: int, pruner: Pruner | None) -> Reply:
        """Ask for one draft; the pruner sees it come."""
        if pruner is None:
            return await self._upstream.ask(call)
        try:
            reply = await self._upstream.ask(call, partial(pruner.feed, place))
        except UpstreamError:
            await pruner.fail(place)
            raise
        await pruner.finish(place)
        return reply

    def _collect(self, found: DraftSet, place: int, task: "asyncio.Task[Reply]") -> None:
        """Keep what a call brought; a stopped draft counts as stopped even if all of it had come."""
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            if place not in found.stopped:
                found.errors[place] = no_time()
        elif error is None:
            found.take(task.result(), [place])
            if place in found.stopped:
                found.drafts[place] = None
        elif isinstance(error, GatewayError):
            found.errors[place] = error
        else:
            log.warning("a call to the upstream failed: %s", type(error).__name__)  # no message: no text
            found.errors[place] = malformed()


def _asking(asked: ChatRequest, call: Call, drafts: int, place: int = 0) -> Call:
    """Return the call for some drafts; a seed differs between calls, or all drafts would be one."""
    body = dict(asked.body)
    if drafts > 1:
        body["n"] = drafts
    seed = body.get("seed")
    if place and isinstance(seed, int) and not isinstance(seed, bool):
        body["seed"] = seed + place
    if call.stream:
        body["stream"] = True
        if asked.usage or not asked.stream:
            body["stream_options"] = {"include_usage": True}
    return Call(
        path=PATH,
        body=body,
        drafts=drafts,
        stream=call.stream,
        authorization=call.authorization,
        deadline=call.deadline,
    )


async def cancelled(tasks: "Iterable[asyncio.Task[Any]]") -> None:
    """Cancel tasks and wait until they have let go, whatever becomes of who waits.

    A task is not cancelled again while it lets go, which would leave its connection open; but a
    cancellation that got lost, as anyio may lose one while it connects, is repeated.
    """
    ended = set(tasks)

    async def end() -> None:
        left = ended
        while left:
            for task in left:
                if not task.cancelling():
                    task.cancel()
            _, left = await asyncio.wait(left, timeout=LOST_SECONDS)
        for task in ended:
            if not task.cancelled():
                task.exception()  # looked at, so that it is not logged with its message

    await asyncio.shield(end())
