"""The routes. They read, ask and write; what is worked out stands elsewhere."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, Final

from tabon._internal.extras import require
from tabon.errors import ServiceError
from tabon.explain.explanation import NEIGHBOURS
from tabon.service.explorer.records import NOTICE
from tabon.service.guard import App, GuardSettings, RequestGuard
from tabon.service.metrics import CONTENT_TYPE
from tabon.service.parsing import explanation_body, query_from_body, selection_body
from tabon.service.query_service import ExplainOptions, QueryService
from tabon.service.schemas import BANK, EXPLANATION, SELECTION, STATUS, request_body, responses

if TYPE_CHECKING:
    from fastapi import FastAPI

MOST_NEIGHBOURS: Final = 100
RouteModule = Callable[["FastAPI"], None]  # adds routes: the explorer, the gateway
NO_TELEMETRY: Final = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}  # FastAPI can report requests to a collector: never from here


def guarded_app(
    query_service: QueryService, guard: GuardSettings, route_modules: Sequence[RouteModule] = ()
) -> App:
    """Return the whole service, with the routes that its route modules add, as one ASGI application."""
    app = make_app(query_service)
    for add in route_modules:
        add(app)
    return RequestGuard(app, guard, query_service.metrics)


def make_app(query_service: QueryService) -> "FastAPI":
    """Return the routes without their request guard; others may be added before it is put around them."""
    require("fastapi", extra="service", feature="the HTTP service")
    from fastapi import FastAPI

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        """Start the worker, and let it finish what waits."""
        await asyncio.to_thread(query_service.start)
        yield
        await asyncio.to_thread(query_service.close)

    app = FastAPI(
        title="tabon",
        description=NOTICE,
        version=version("tabon"),
        docs_url=None,  # these pages load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,
        lifespan=running,
        telemetry=NO_TELEMETRY,  # type: ignore[arg-type]
    )
    _add_errors(app)
    _add_questions(app, query_service)
    _add_status(app, query_service)
    return app


def _add_errors(app: "FastAPI") -> None:
    """Give every error one form, which never repeats the input."""
    from fastapi import Request, Response
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    def answered(error: ServiceError, headers: Any = None) -> Response:  # noqa: ANN401
        return Response(
            error.body(), error.status, {**(headers or {}), **error.headers()}, "application/json"
        )

    async def refused(_: Request, error: Exception) -> Response:
        return answered(error if isinstance(error, ServiceError) else ServiceError(500, "the service failed"))

    async def unknown(_: Request, error: Exception) -> Response:
        status, headers = getattr(error, "status_code", 500), getattr(error, "headers", None)
        message = HTTPStatus(status).phrase.lower()
        return answered(ServiceError(status, message, "see /openapi.json for the routes"), headers)

    async def invalid(_: Request, error: Exception) -> Response:
        places = {str(one["loc"][-1]) for one in getattr(error, "errors", list)()}
        named = ", ".join(sorted(places & {"draft", "neighbours"})) or "a parameter"
        return answered(ServiceError(422, f"{named} has a value that is not taken", "see /openapi.json"))

    app.add_exception_handler(ServiceError, refused)
    app.add_exception_handler(Exception, refused)
    app.add_exception_handler(HTTPException, unknown)
    app.add_exception_handler(RequestValidationError, invalid)


def _add_questions(app: "FastAPI", query_service: QueryService) -> None:
    """Add the routes that take a query."""
    from fastapi import Query, Request, Response

    limits = query_service.settings.limits
    DraftNumber = Annotated[int | None, Query(ge=0, lt=limits.drafts)]  # noqa: N806
    Neighbours = Annotated[int, Query(ge=0, le=MOST_NEIGHBOURS)]  # noqa: N806

    async def select(request: Request) -> Response:
        """Pick one draft: the record that `tabon select` writes."""
        query = await asyncio.to_thread(query_from_body, await request.body(), limits)
        found = await query_service.select(query)
        return Response(await asyncio.to_thread(selection_body, query, found), media_type="application/json")

    async def explain(
        request: Request,
        draft: DraftNumber = None,
        neighbours: Neighbours = NEIGHBOURS,
    ) -> Response:
        """Say why a draft was picked: the record that `tabon explain --json` prints."""
        query = await asyncio.to_thread(query_from_body, await request.body(), limits)
        found = await query_service.explain(query, ExplainOptions(draft, neighbours))
        return Response(await asyncio.to_thread(explanation_body, found), media_type="application/json")

    for path, route, schema in (("/v1/select", select, SELECTION), ("/v1/explain", explain, EXPLANATION)):
        app.add_api_route(
            path,
            route,
            methods=["POST"],
            response_class=Response,
            responses=responses(schema, 400, 404, 422, 504),
            openapi_extra=request_body(limits),
        )


def _add_status(app: "FastAPI", query_service: QueryService) -> None:
    """Add the routes that say how the service is."""
    from fastapi import Response

    def as_json(record: Any, status: int = 200) -> Response:  # noqa: ANN401
        return Response(json.dumps(record), status, media_type="application/json")

    async def bank() -> Response:
        """Say what the bank is made of: counts and its fingerprint, no text."""
        return as_json(query_service.bank_record)

    async def healthz() -> Response:
        """Say that the process answers."""
        return as_json({"status": "ok"})

    async def readyz() -> Response:
        """Say whether the golden query is still answered as at start."""
        found = await query_service.ready()
        if not found.ready:
            raise ServiceError(503, found.reason, "restart the service if this lasts", retry_after=1)
        return as_json({"status": "ready"})

    async def metrics() -> Response:
        """Give counts and times in the text format of Prometheus."""
        return Response(query_service.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    text = {"type": "string"}
    for path, route, answers in (
        ("/v1/bank", bank, responses(BANK)),
        ("/healthz", healthz, responses(STATUS)),
        ("/readyz", readyz, responses(STATUS)),
        ("/metrics", metrics, responses(text, media="text/plain")),
    ):
        app.add_api_route(path, route, methods=["GET"], response_class=Response, responses=answers)
