"""The routes of the gateway, added to the service as one of its route modules."""

from tabon._internal.extras import require
from tabon.service.app import RouteModule, read_contract
from tabon.service.gateway.answer import Gateway
from tabon.service.gateway.settings import GatewaySettings
from tabon.service.query_service import QueryService


def gateway_module(query_service: QueryService, settings: GatewaySettings) -> RouteModule:
    """Return `POST /v1/chat/completions` and `GET /v1/models`; the upstream is open while they run."""
    require("httpx", extra="gateway", feature="the gateway")
    require("starlette", extra="service", feature="the HTTP service")
    from starlette.routing import Route

    gateway = Gateway(query_service, settings)
    contract = read_contract("tabon.service.gateway")
    most = min(settings.most_drafts, query_service.settings.limits.drafts)
    contract["components"]["schemas"]["DraftCount"]["maximum"] = most
    return RouteModule(
        routes=[
            Route("/v1/chat/completions", gateway.chat, methods=["POST"]),
            Route("/v1/models", gateway.models),
        ],
        contract=contract,
        running=gateway.running,
    )
