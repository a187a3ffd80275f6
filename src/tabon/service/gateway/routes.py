"""The routes of the gateway: one request from its body to its answer, for as long as the client is there."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tabon._internal.extras import require
from tabon.errors import GatewayError, ServiceError
from tabon.selectors.streaming import Halving
from tabon.service.app import RouteModule, answer, read_contract
from tabon.service.gateway.chat_request import ChatRequest, asked_of
from tabon.service.gateway.completions import (
    WAITING,
    Chosen,
    as_gateway_error,
    choose,
    chunks,
    completion,
    event,
    models_body,
)
from tabon.service.gateway.draft_set import PATH, DraftSet, Gatherer, Pruner, cancelled
from tabon.service.gateway.replies import total_usage
from tabon.service.gateway.settings import GatewaySettings
from tabon.service.gateway.upstream import Call, Upstream
from tabon.service.parsing import choice_headers
from tabon.service.query_service import QueryService

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

GONE: Final = 499  # in the log: the client hung up
T = TypeVar("T")
Found = tuple[ChatRequest, DraftSet, Chosen]
STREAM_HEADERS: Final = {"X-Accel-Buffering": "no"}  # proxies are to pass it on as it comes
log = logging.getLogger(__name__)


def gateway_module(query_service: QueryService, settings: GatewaySettings) -> RouteModule:
    """Return `POST /v1/chat/completions` and `GET /v1/models`; the upstream is open while they run."""
    require("httpx", extra="gateway", feature="the gateway")
    require("starlette", extra="service", feature="the HTTP service")
    from starlette.routing import Route

    gateway = Gateway(query_service, settings)
    contract = read_contract("tabon.service.gateway")
    most = min(settings.most_drafts, query_service.settings.limits.drafts)
    schemas = contract["components"]["schemas"]
    schemas["DraftCount"]["maximum"] = most
    schemas["AskedSelector"]["enum"] = [None, *query_service.selectors]
    return RouteModule(
        routes=[
            Route("/v1/chat/completions", gateway.chat, methods=["POST"]),
            Route("/v1/models", gateway.models),
        ],
        contract=contract,
        running=gateway.running,
    )


class Gateway:
    """Answers requests for completions."""

    def __init__(self, query_service: QueryService, settings: GatewaySettings) -> None:
        """Take the service's query service; nothing is opened yet."""
        self._query_service, self._settings = query_service, settings
        self._upstream = Upstream(settings, query_service.metrics)
        self._gatherer = Gatherer(self._upstream)
        self._requests = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the connections to the upstream for as long as this is entered."""
        await self._upstream.open()
        try:
            yield
        finally:
            await self._upstream.close()

    async def chat(self, request: "Request") -> "Response":
        """Answer with the best draft, at once or as a stream."""
        body, authorization = await request.body(), request.headers.get("authorization")
        try:
            asked = await asyncio.to_thread(
                asked_of, body, self._query_service.settings.limits, self._settings
            )
            self._query_service.named(asked.selector)  # here no draft is paid for yet
            self._query_service.check_prior(asked.query)
            if asked.query.prior.is_empty:
                log.warning("a request has no prior report: a pick is made without one, or none is made")
            work = until_gone(request, self._found(asked, authorization))
            if asked.stream:
                return await self._streamed(work, choice_headers(asked.query))
            found = await work
            return answer(completion(*found), headers=choice_headers(asked.query, found[-1].selection))
        except ServiceError as error:
            raise as_gateway_error(error) from None

    async def models(self, request: "Request") -> "Response":
        """Pass on what the upstream says of its models, each with the selectors that may be named."""
        call = self._call("models", request.headers.get("authorization"))
        found = await until_gone(request, self._upstream.models(call))
        return answer(await asyncio.to_thread(models_body, found, self._query_service.selectors[1:]))

    def _call(self, path: str, authorization: str | None, *, stream: bool = False) -> Call:
        """Return the frame of all calls for one request: they share its deadline."""
        deadline = asyncio.get_running_loop().time() + self._settings.timeout
        return Call(path=path, authorization=authorization, deadline=deadline, stream=stream)

    async def _found(self, asked: ChatRequest, authorization: str | None) -> Found:
        """Gather drafts and choose; refuse the request where there are too many already."""
        if self._requests >= self._settings.requests:
            raise GatewayError(503, "too many requests wait for drafts; try again later", retry_after=1)
        service, limits = self._query_service, self._query_service.settings.limits
        compare = partial(service.compare, selector=asked.selector)
        select = partial(service.select, selector=asked.selector)
        prune = self._settings.prune and asked.drafts > asked.choices and not asked.query.prior.is_empty
        rule = Halving(self._settings.prune_points, keep=asked.choices)
        self._requests += 1
        try:
            pruner = Pruner(asked.query, asked.drafts, compare, rule) if prune else None
            call = self._call(PATH, authorization, stream=asked.stream or prune)
            draft_set = await self._gatherer.gather(asked, call, pruner)
            metrics = service.metrics
            metrics.drafts.inc(len(draft_set.drafts))
            metrics.drafts_failed.inc(len(draft_set.errors))
            metrics.drafts_stopped.inc(len(draft_set.stopped))
            metrics.count_tokens(total_usage(draft_set.usages))
            return asked, draft_set, await choose(select, limits, asked, draft_set, pruner)
        finally:
            self._requests -= 1

    async def _streamed(self, work: Coroutine[Any, Any, Found], headers: Mapping[str, str]) -> "Response":
        """Begin a stream when there is something to send, or when the client has waited for a while.

        A failure before that has its own status.
        """
        from starlette.responses import StreamingResponse

        task = asyncio.create_task(work)
        # a failure that nobody waits for any more is taken, so that it is not logged with its message
        task.add_done_callback(lambda one: one.cancelled() or one.exception())
        try:
            await asyncio.wait({task}, timeout=self._settings.keep_alive)
            if task.done():
                task.result()
        except BaseException:
            task.cancel()
            raise
        return StreamingResponse(
            self._events(task), headers={**STREAM_HEADERS, **headers}, media_type="text/event-stream"
        )

    async def _events(self, task: "asyncio.Task[Found]") -> AsyncIterator[bytes]:
        """Yield the stream: comments while there is nothing, then the chunks or an error."""
        try:
            while not task.done():
                yield WAITING
                await asyncio.wait({task}, timeout=self._settings.keep_alive)
            for chunk in chunks(*task.result()):
                yield chunk
        except ServiceError as error:
            yield event(as_gateway_error(error).record())
        except Exception as error:  # noqa: BLE001  # its message may hold text: only its kind is logged
            log.error("a stream failed: %s", type(error).__name__)  # noqa: TRY400
            yield event(GatewayError(500, "the gateway failed").record())
        finally:
            task.cancel()


async def until_gone(request: "Request", work: Coroutine[Any, Any, T]) -> T:
    """Do the work; where the client hangs up first, drop it, and with it the calls to the upstream."""

    async def hung_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, gone = asyncio.create_task(work), asyncio.create_task(hung_up())
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise GatewayError(GONE, "the client hung up")
    finally:
        await cancelled((working, gone))
