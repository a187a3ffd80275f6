"""Stopping weak drafts while they are written (docs/guide/streaming.md), without a thread of its own.

The rounds are those of `tabon.selectors.streaming`; what they compare goes through the
service's worker like any other query, together with those of other requests.
"""

import asyncio
from collections.abc import Awaitable, Callable

from tabon.errors import ServiceError
from tabon.method.selection import Selection
from tabon.selectors.streaming import Rule
from tabon.selectors.streaming.draft_text import LONGEST, DraftText
from tabon.selectors.streaming.rules import Race
from tabon.text.records import Query

Select = Callable[[Query], Awaitable[Selection]]
Stop = Callable[[int], object]


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
