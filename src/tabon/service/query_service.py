"""What the routes call: a query in, its selection or its explanation out.

The golden query is a fixed question whose answer must not change while the service runs.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, cast

from tabon.encoders.sentence_store import CachingEncoder
from tabon.errors import ServiceError, TabonError
from tabon.explanation.explanation import NEIGHBOURS, Explanation, explain
from tabon.method.bank import TransitionBank
from tabon.method.selection import Selection
from tabon.selectors.scorer import AnySelector
from tabon.selectors.selector import bank_encoder
from tabon.selectors.setup import SelectionSettings, make_selector, may_abstain
from tabon.service.batcher import Batcher, BatchSettings
from tabon.service.metrics import Metrics
from tabon.service.parsing import NOTICE, Limits, load_of, service_error
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

GOLDEN: Final = Query(
    id="tabon-golden",
    prior=Report(
        findings="The lungs are clear. Heart size is normal. No pleural effusion or pneumothorax.",
        impression="No acute cardiopulmonary process.",
    ),
    candidates=(
        Report(
            findings="New small left pleural effusion. Heart size is normal. No pneumothorax.",
            impression="New small left pleural effusion.",
        ),
        Report(
            findings="The lungs are clear. Heart size is mildly enlarged. No pleural effusion.",
            impression="Mild cardiomegaly without edema.",
        ),
    ),
)
GOLDEN_SENTENCES: Final = tuple(
    sentence
    for report in (*GOLDEN.priors, *GOLDEN.candidates)
    for section in SECTIONS
    for sentence in split_sentences(report.section(section))
)
READY_SECONDS: Final = 1.0  # an answer about readiness is given again for so long
Answer = Selection | Explanation


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the service may be asked, and why not."""

    ready: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSettings:
    """How the service answers."""

    limits: Limits = field(default_factory=Limits)
    batches: BatchSettings = field(default_factory=BatchSettings)
    timeout: float = 30.0  # seconds from the queue to the answer
    cached_sentences: int = 50_000  # rows in memory; not used beside a sentence store
    bank_text: bool = True  # show the sentences of training transitions in explanations


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """What is explained of a query."""

    draft: int | None = None
    neighbours: int = NEIGHBOURS


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to the worker."""

    query: Query
    explain: ExplainOptions | None = None
    fresh: bool = False  # embed the golden sentences anew


class QueryService:
    """Answers queries with one selector, one batch after another."""

    def __init__(
        self,
        bank: TransitionBank,
        selector: AnySelector,
        *,
        abstaining: AnySelector | None = None,
        settings: AnswerSettings | None = None,
        cache: CachingEncoder | None = None,
    ) -> None:
        """Take a selector, and what chooses where that may abstain too."""
        self.settings = AnswerSettings() if settings is None else settings
        self.metrics = Metrics()
        self._selector, self._cache = selector, cache
        self._abstaining = selector if abstaining is None else abstaining
        facts = {"notice": NOTICE, **bank.info(), "signature": self._abstaining.signature}
        self.bank_record: dict[str, Any] = facts
        self._golden: Answer | None = None
        self._looking = asyncio.Lock()
        self._seen = (Readiness(False, "the service has not started"), 0.0)
        self._batcher: Batcher[Ask, Answer] = Batcher(self._answer, self.settings.batches, self.metrics)
        self.metrics.queue_length.set_function(lambda: len(self._batcher))
        self.metrics.ready.set_function(lambda: self._seen[0].ready)
        if cache is not None:
            self.metrics.cached_sentences.set_function(cache.__len__)
            self.metrics.cache_hits.set_function(lambda: cache.hits)
            self.metrics.cache_misses.set_function(lambda: cache.misses)

    def start(self) -> None:
        """Start the worker and answer the golden query for the first time."""
        self._batcher.start()
        try:
            self._golden = self._batcher.submit(Ask(GOLDEN, fresh=True)).result(self.settings.timeout)
        except Exception as error:  # noqa: BLE001  # the service runs, and says that it is not ready
            reason = str(error) if isinstance(error, TabonError) else type(error).__name__
            self._seen = (Readiness(False, f"the golden query failed at start: {reason}"), 0.0)

    def close(self) -> None:
        """Finish what waits and end the worker."""
        self._batcher.close(self.settings.timeout)

    async def select(self, query: Query) -> Selection:
        """Pick one draft of a query."""
        return cast("Selection", await self._ask(Ask(query)))

    async def explain(self, query: Query, options: ExplainOptions) -> Explanation:
        """Explain the pick of a query, or another draft of it."""
        count = len(query.candidates)
        if options.draft is not None and options.draft >= count:
            raise ServiceError(
                404, f"draft {options.draft} was asked for; the query has {count}", "count drafts from 0"
            )
        return cast("Explanation", await self._ask(Ask(query, explain=options)))

    async def ready(self) -> Readiness:
        """Ask the golden query again, once for all who ask; it must give the selection that it gave first."""
        async with self._looking:
            seen, until = self._seen
            if monotonic() < until:
                return seen
            try:
                now = await self._ask(Ask(GOLDEN, fresh=True))
            except ServiceError as error:
                seen = Readiness(False, error.message)
            else:
                self._golden = now if self._golden is None else self._golden  # the start may have been slow
                same = now == self._golden
                seen = Readiness(same, "" if same else "the golden query is answered otherwise than at start")
            self._seen = (seen, monotonic() + READY_SECONDS)
            return seen

    async def _ask(self, ask: Ask) -> Answer:
        """Wait for the worker, but not for ever."""
        load = await asyncio.to_thread(load_of, ask.query, self.settings.limits)
        future = self._batcher.submit(ask, load)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.settings.timeout)
        except TimeoutError:
            raise ServiceError(
                504,
                f"no answer within {self.settings.timeout:g} seconds",
                "try again later or send fewer drafts",
            ) from None
        except Exception as error:
            raise service_error(error) from error

    def _answer(self, batch: Sequence[Ask]) -> list[Answer]:
        """Answer a batch on the worker: all selections with one call, explanations one by one."""
        if self._cache is not None and any(ask.fresh for ask in batch):
            self._cache.forget(GOLDEN_SENTENCES)
        selecting = [ask.query for ask in batch if ask.explain is None]
        selections = iter(self._abstaining.select_many(selecting) if selecting else [])
        return [
            next(selections)
            if ask.explain is None
            else explain(
                self._selector,
                ask.query,
                draft=ask.explain.draft,
                neighbours=ask.explain.neighbours,
                bank_text=self.settings.bank_text,
            )
            for ask in batch
        ]


def query_service_of(
    bank: TransitionBank, selection: SelectionSettings, settings: AnswerSettings | None = None
) -> QueryService:
    """Make the selector that the settings name; remember sentences in memory where no store is named."""
    how = AnswerSettings() if settings is None else settings
    cache = None
    if selection.store is None and how.cached_sentences:
        cache = CachingEncoder(bank_encoder(bank, selection.encoder), how.cached_sentences)
    selector = make_selector(bank, selection, cache)
    return QueryService(
        selector.bank, selector, abstaining=may_abstain(selector, selection), settings=how, cache=cache
    )
