"""What the routes call: a query in, its selection or its explanation out.

The golden query is a fixed question whose answer must not change while the service runs.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from tabon.encoders.sentence_store import CachingEncoder
from tabon.errors import BadInputError, ServiceError, TabonError
from tabon.explanation.explanation import NEIGHBOURS, Explanation, explain
from tabon.method.bank import TransitionBank
from tabon.method.selection import Selection
from tabon.selectors.scorer import AnySelector, full_name
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
AGAIN_SECONDS: Final = 1.0  # between two looks while it is not ready
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
    check_seconds: float = 10.0  # between two looks at the golden query
    cached_sentences: int = 50_000  # rows in memory; not used beside a sentence store
    bank_text: bool = True  # show the sentences of training transitions in explanations
    require_prior: bool = False  # refuse what has no prior report


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """What is explained of a query."""

    draft: int | None = None
    neighbours: int = NEIGHBOURS


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to the worker."""

    query: Query
    selector: str  # its full name
    explain: ExplainOptions | None = None
    fresh: bool = False  # embed the golden sentences anew


class QueryService:
    """Answers queries with its own selector or another that requests may name, one batch after another."""

    def __init__(
        self,
        bank: TransitionBank,
        selectors: Mapping[str, AnySelector],
        *,
        abstaining: AnySelector | None = None,
        settings: AnswerSettings | None = None,
        cache: CachingEncoder | None = None,
    ) -> None:
        """Take its own selector, then those that requests may name; and its own if that may abstain."""
        self.settings = AnswerSettings() if settings is None else settings
        self.metrics = Metrics(selectors)
        self._name, self._plain, self._cache = next(iter(selectors)), selectors, cache
        own = selectors[self._name] if abstaining is None else abstaining
        self._choosing = {**selectors, self._name: own}
        self.bank_record: dict[str, Any] = {
            "notice": NOTICE,
            **bank.info(),
            "signature": own.signature,
            "selectors": [*self._choosing],
        }
        self._golden: Answer | None = None
        self.readiness = Readiness(False, "the service has not started")
        self._batcher: Batcher[Ask, Answer] = Batcher(self._answer, self.settings.batches, self.metrics)
        self.metrics.queue_length.set_function(lambda: len(self._batcher))
        self.metrics.ready.set_function(lambda: self.readiness.ready)
        if cache is not None:
            self.metrics.cached_sentences.set_function(cache.__len__)
            self.metrics.cache_hits.set_function(lambda: cache.hits)
            self.metrics.cache_misses.set_function(lambda: cache.misses)

    def start(self) -> None:
        """Start the worker and answer the golden query for the first time."""
        self._batcher.start()
        try:
            golden = [self._batcher.submit(Ask(GOLDEN, name, fresh=True)) for name in self.selectors]
            self._golden, *_ = [one.result(self.settings.timeout) for one in golden]
        except Exception as error:  # noqa: BLE001  # the service runs, and says that it is not ready
            reason = str(error) if isinstance(error, TabonError) else type(error).__name__
            self.readiness = Readiness(False, f"the golden query failed at start: {reason}")
        else:
            self.readiness = Readiness(True)

    def close(self) -> None:
        """Finish what waits and end the worker."""
        self._batcher.close(self.settings.timeout)

    @property
    def selectors(self) -> list[str]:
        """Return the names that a request may give, the service's own first."""
        return [*self._choosing]

    def named(self, selector: str | None) -> str:
        """Return the selector that a request asks for; refuse one that the service does not allow."""
        name = self._name if selector is None else full_name(selector)
        if name not in self._choosing:
            raise ServiceError(
                422,
                "the request asks for a selector that this service does not allow",
                f"ask for {' or '.join(self._choosing)}, or start it with --allow-selector",
            )
        return name

    def check_prior(self, query: Query) -> None:
        """Refuse a query without a prior where the service needs one."""
        if self.settings.require_prior and query.prior.is_empty:
            raise ServiceError(
                422, "the request has no prior report, which this service requires", "send the prior"
            )

    async def select(self, query: Query, selector: str | None = None) -> Selection:
        """Pick one draft of a query, and count the answer."""
        name = self.named(selector)
        self.check_prior(query)
        found = await self.compare(query, name)
        self.metrics.count(name, query, found)
        return found

    async def compare(self, query: Query, selector: str | None = None) -> Selection:
        """Pick one draft without counting: of drafts that are still being written, for instance."""
        return cast("Selection", await self._ask(Ask(query, self.named(selector))))

    async def explain(
        self, query: Query, options: ExplainOptions, selector: str | None = None
    ) -> Explanation:
        """Explain the pick of a query, or another draft of it."""
        name = self.named(selector)
        self.check_prior(query)
        count = len(query.candidates)
        if options.draft is not None and options.draft >= count:
            raise ServiceError(
                404, f"draft {options.draft} was asked for; the query has {count}", "count drafts from 0"
            )
        return cast("Explanation", await self._ask(Ask(query, name, explain=options)))

    async def keep_checking(self) -> None:
        """Ask the golden query again from time to time; it must give the selection that it gave first."""
        while True:
            usual = self.settings.check_seconds
            await asyncio.sleep(usual if self.readiness.ready else min(usual, AGAIN_SECONDS))
            await self.check()

    async def check(self) -> None:
        """Ask the golden query again, embedded anew, and keep what `GET /readyz` says until the next time."""
        try:
            now = await self._ask(Ask(GOLDEN, self._name, fresh=True))
        except ServiceError as error:
            self.readiness = Readiness(False, error.message)
        else:
            self._golden = now if self._golden is None else self._golden  # the start may have been slow
            same = now == self._golden
            self.readiness = Readiness(
                same, "" if same else "the golden query is answered otherwise than at start"
            )

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
        """Answer a batch on the worker: each selector's selections with one call, explanations one by one."""
        if self._cache is not None and any(ask.fresh for ask in batch):
            self._cache.forget(GOLDEN_SENTENCES)
        selecting: dict[str, list[Query]] = {}
        for ask in batch:
            if ask.explain is None:
                selecting.setdefault(ask.selector, []).append(ask.query)
        found = {name: iter(self._choosing[name].select_many(queries)) for name, queries in selecting.items()}
        return [
            next(found[ask.selector])
            if ask.explain is None
            else explain(
                self._plain[ask.selector],
                ask.query,
                draft=ask.explain.draft,
                neighbours=ask.explain.neighbours,
                bank_text=self.settings.bank_text,
            )
            for ask in batch
        ]


def query_service_of(
    bank: TransitionBank,
    selection: SelectionSettings,
    settings: AnswerSettings | None = None,
    others: Mapping[str, SelectionSettings] | None = None,
) -> QueryService:
    """Make the selector that the settings name, and those that requests may name.

    Sentences are remembered in memory where no store is named.
    """
    how = AnswerSettings() if settings is None else settings
    wanted = {full_name(selection.selector): selection, **({} if others is None else others)}
    cache = None
    if selection.store is None and how.cached_sentences:
        cache = CachingEncoder(bank_encoder(bank, selection.encoder), how.cached_sentences)
    selectors = {name: make_selector(bank, each, cache) for name, each in wanted.items()}
    own = next(iter(selectors.values()))
    return QueryService(
        own.bank, selectors, abstaining=may_abstain(own, selection), settings=how, cache=cache
    )


def allowed_settings(own: SelectionSettings, allowed: Sequence[str]) -> dict[str, SelectionSettings]:
    """Return the settings of the selectors that requests may name beside the service's own.

    They share what holds for every selector (history, patients, encoder, store), not its method.
    """
    names = [name for name in dict.fromkeys(map(full_name, allowed)) if name != full_name(own.selector)]
    if names and (own.abstain is not None or own.calibration is not None):
        raise BadInputError(
            "--abstain and --calibration hold for one selector, and requests could name another; "
            "leave them or --allow-selector out"
        )
    plain = replace(own, distance=None, aggregate=None, neighbours=None, zero=None, search=None)
    return {name: replace(plain, selector=name) for name in names}
