"""The routes of the gateway, added to the service as one of its route modules."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tabon._internal.extras import require
from tabon.service.app import RouteModule
from tabon.service.gateway.answer import Gateway
from tabon.service.gateway.schemas import COMPLETION, MODELS, answers, chat_request
from tabon.service.gateway.settings import GatewaySettings
from tabon.service.query_service import QueryService

if TYPE_CHECKING:
    from fastapi import FastAPI


def gateway_module(query_service: QueryService, settings: GatewaySettings) -> RouteModule:
    """Return what adds `POST /v1/chat/completions` and `GET /v1/models` to the service."""
    require("httpx", extra="gateway", feature="the gateway")

    def add(app: "FastAPI") -> None:
        """Add the routes, and open and close the upstream with the service."""
        gateway = Gateway(query_service, settings)
        _live_with(app, gateway)
        _add_routes(app, gateway, chat_request(query_service.settings.limits, settings))

    return add


def _live_with(app: "FastAPI", gateway: Gateway) -> None:
    """Keep the connections of a gateway for as long as the service runs."""
    before = app.router.lifespan_context

    @asynccontextmanager
    async def running(inside: "FastAPI") -> AsyncIterator[Any]:
        async with gateway.running(), before(inside) as state:
            yield state

    app.router.lifespan_context = running


def _add_routes(app: "FastAPI", gateway: Gateway, body: dict[str, Any]) -> None:
    """Add the two routes."""
    from fastapi import Request, Response

    async def chat(request: Request) -> Response:
        """Ask the upstream for several drafts; answer with the one that tabon picks."""
        return await gateway.chat(request)

    async def models(request: Request) -> Response:
        """Pass on what the upstream says of its models."""
        return await gateway.models(request)

    app.add_api_route(
        "/v1/chat/completions",
        chat,
        methods=["POST"],
        response_class=Response,
        responses=answers(COMPLETION, stream=True),
        openapi_extra=body,
    )
    app.add_api_route(
        "/v1/models", models, methods=["GET"], response_class=Response, responses=answers(MODELS)
    )
