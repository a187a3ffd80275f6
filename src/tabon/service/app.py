"""The application: routes of several modules, the service's own among them, behind one request guard.

Routes read, ask and write; what is worked out stands elsewhere.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from tabon._internal.extras import require
from tabon.errors import ServiceError
from tabon.explanation.explanation import NEIGHBOURS
from tabon.service.guard import App, GuardSettings, RequestGuard
from tabon.service.metrics import CONTENT_TYPE
from tabon.service.parsing import (
    NOTICE,
    choice_headers,
    explanation_body,
    query_from_body,
    selection_body,
    whole_number,
)
from tabon.service.query_service import ExplainOptions, QueryService
from tabon.service.rerank import MODEL, rerank_body, rerank_request

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

JSON: Final = "application/json"
MOST_NEIGHBOURS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteModule:
    """Routes that belong together: the service's own, the explorer's, the gateway's."""

    routes: "Sequence[Route]"
    contract: Mapping[str, Any] = field(default_factory=dict)  # what /openapi.json says of them
    running: Callable[[], AbstractAsyncContextManager[None]] = nullcontext  # as long as the service runs


def guarded_app(
    query_service: QueryService, guard: GuardSettings, route_modules: Sequence[RouteModule] = ()
) -> App:
    """Return the whole service, with the routes of these modules beside its own, as one ASGI application."""
    app = make_app([query_module(query_service), *route_modules])
    return RequestGuard(app, guard, query_service.metrics)


def make_app(route_modules: Sequence[RouteModule]) -> "Starlette":
    """Return the routes without their request guard."""
    require("starlette", extra="service", feature="the HTTP service")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for module in route_modules:
                await stack.enter_async_context(module.running())
            yield

    document = json.dumps(_contract(route_modules)).encode()

    async def openapi(_: "Request") -> "Response":
        return answer(document)

    app = Starlette(
        routes=[Route("/openapi.json", openapi), *(route for one in route_modules for route in one.routes)],
        exception_handlers=dict.fromkeys((ServiceError, HTTPException, Exception), _failed),
        lifespan=running,
    )
    app.router.redirect_slashes = False
    return app


def answer(body: bytes | str, *, media: str = JSON, headers: Mapping[str, str] | None = None) -> "Response":
    """Return an answer with status 200."""
    from starlette.responses import Response

    return Response(body, headers=headers, media_type=media)


def read_contract(folder: str) -> Any:  # noqa: ANN401  # any JSON
    """Read what /openapi.json says of the routes of one folder."""
    return json.loads((files(folder) / "openapi.json").read_text(encoding="utf-8"))


def query_module(query_service: QueryService) -> RouteModule:
    """Return the routes that a query service answers; its worker runs for as long as they do."""
    require("starlette", extra="service", feature="the HTTP service")
    from starlette.routing import Route

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        await asyncio.to_thread(query_service.start)
        checking = asyncio.create_task(query_service.keep_checking())
        try:
            yield
        finally:
            checking.cancel()
            await asyncio.to_thread(query_service.close)  # it finishes what waits

    routes, limits = QueryRoutes(query_service), query_service.settings.limits
    contract = read_contract("tabon.service")
    schemas = contract["components"]["schemas"]
    schemas["Text"]["maxLength"] = schemas["Section"]["maxLength"] = limits.text
    schemas["Priors"]["maxItems"] = limits.priors
    for drafts in (schemas["Drafts"], schemas["Documents"]):
        drafts["maxItems"] = limits.drafts
    schemas["DraftNumber"]["exclusiveMaximum"] = limits.drafts
    names = query_service.selectors
    schemas["SelectorName"]["enum"] = names
    schemas["RerankModel"]["enum"] = [None, MODEL, *(f"{MODEL}-{name}" for name in names)]
    return RouteModule(
        routes=[
            Route("/v1/select", routes.select, methods=["POST"]),
            Route("/v1/explain", routes.explain, methods=["POST"]),
            *(Route(f"/{version}/rerank", routes.rerank, methods=["POST"]) for version in ("v1", "v2")),
            Route("/v1/bank", routes.bank),
            Route("/healthz", routes.healthz),
            Route("/readyz", routes.readyz),
            Route("/metrics", routes.metrics),
        ],
        contract=contract,
        running=running,
    )


class QueryRoutes:
    """What the routes of one query service do."""

    def __init__(self, query_service: QueryService) -> None:
        """Take what answers."""
        self._query_service, self._limits = query_service, query_service.settings.limits

    async def select(self, request: "Request") -> "Response":
        """Pick one draft: the record that `tabon select` writes."""
        query = await asyncio.to_thread(query_from_body, await request.body(), self._limits)
        found = await self._query_service.select(query, request.query_params.get("selector"))
        return answer(await asyncio.to_thread(selection_body, query, found))

    async def explain(self, request: "Request") -> "Response":
        """Say why a draft was picked: the record that `tabon explain --json` prints."""
        given = request.query_params
        draft, neighbours = given.get("draft"), given.get("neighbours", str(NEIGHBOURS))
        options = ExplainOptions(
            None if draft is None else whole_number(draft, "draft", self._limits.drafts - 1),
            whole_number(neighbours, "neighbours", MOST_NEIGHBOURS),
        )
        query = await asyncio.to_thread(query_from_body, await request.body(), self._limits)
        found = await self._query_service.explain(query, options, given.get("selector"))
        return answer(await asyncio.to_thread(explanation_body, found))

    async def rerank(self, request: "Request") -> "Response":
        """Order drafts by how plausible their change from the prior is."""
        asked = await asyncio.to_thread(rerank_request, await request.body(), self._limits)
        name = self._query_service.named(asked.selector)
        found = await self._query_service.select(asked.query, name)
        body = await asyncio.to_thread(rerank_body, asked, found, f"{MODEL}-{name}")
        return answer(body, headers=choice_headers(asked.query, found))

    async def bank(self, _: "Request") -> "Response":
        """Say what the bank is made of: counts and its fingerprint, no text."""
        return answer(json.dumps(self._query_service.bank_record))

    async def healthz(self, _: "Request") -> "Response":
        """Say that the process answers."""
        return answer('{"status": "ok"}')

    async def readyz(self, _: "Request") -> "Response":
        """Say whether the golden query was still answered as at start when it was last asked."""
        found = self._query_service.readiness
        if not found.ready:
            raise ServiceError(503, found.reason, "restart the service if this lasts", retry_after=1)
        return answer('{"status": "ready"}')

    async def metrics(self, _: "Request") -> "Response":
        """Give counts and times in the text format of Prometheus."""
        return answer(self._query_service.metrics.text(), headers={"Content-Type": CONTENT_TYPE})


def _contract(route_modules: Sequence[RouteModule]) -> dict[str, Any]:
    """Return the OpenAPI document of all modules."""
    paths: dict[str, Any] = {}
    components: dict[str, dict[str, Any]] = {}
    for module in route_modules:
        paths |= module.contract.get("paths", {})
        for kind, parts in module.contract.get("components", {}).items():
            components[kind] = components.get(kind, {}) | parts
    info = {"title": "tabon", "description": NOTICE, "version": version("tabon")}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}


async def _failed(_: "Request", error: Exception) -> "Response":
    """Give every error one form, which never repeats the input."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    shown, headers = ServiceError(500, "the service failed"), dict[str, str]()
    if isinstance(error, ServiceError):
        shown = error
    elif isinstance(error, HTTPException):  # no route answers this
        message, headers = HTTPStatus(error.status_code).phrase.lower(), dict(error.headers or {})
        shown = ServiceError(error.status_code, message, "see /openapi.json for the routes")
    return Response(shown.body(), shown.status, {**headers, **shown.headers()}, JSON)
