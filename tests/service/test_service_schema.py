"""schemathesis over the real OpenAPI document, with all its checks, against the service on a port.

The routes of the explorer and the gateway are asked in the same way in `test_explorer_routes.py` and
`test_gateway_failures.py`.
"""

import pytest

pytest.importorskip("httpx", reason="the service's tests speak HTTP with httpx")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from starlette.responses import JSONResponse
from starlette.routing import Route

from schema_run import check_all, found_by_schemathesis
from service_server import get, query_service, service
from tabon.service import Limits, RouteModule
from tabon.service.parsing import LARGEST, SHORT

ROUTES = {"/v1/select", "/v1/explain", "/v1/bank", "/healthz", "/readyz", "/metrics"}


def test_the_document_names_every_route():
    """The contract has each route with its statuses, so that schemathesis leaves none out."""
    with service() as address:
        paths = get(f"{address}/openapi.json").json()["paths"]
    assert set(paths) >= ROUTES
    for path in ROUTES:
        for route in paths[path].values():
            assert {"200", "401", "403", "413", "415", "429", "500", "503"} <= set(route["responses"])


def test_the_document_has_the_limits_of_the_service():
    """What the service takes is what its contract says, whatever the options were."""
    limits = Limits(drafts=7, priors=3, text=500)
    with service(query_service(limits=limits)) as address:
        schemas = get(f"{address}/openapi.json").json()["components"]["schemas"]
    assert (schemas["Drafts"]["maxItems"], schemas["DraftNumber"]["exclusiveMaximum"]) == (7, 7)
    assert (schemas["Text"]["maxLength"], schemas["Section"]["maxLength"]) == (500, 500)
    assert schemas["Priors"]["maxItems"] == 3
    text, number = schemas["Name"]["anyOf"]
    assert (text["maxLength"], number["minimum"], number["maximum"]) == (SHORT, -LARGEST, LARGEST)


def test_schemathesis_finds_nothing(tmp_path):
    """No generated request, good or bad, gets an answer that the contract does not name."""
    with service() as address:
        check_all(address, tmp_path)


def test_schemathesis_would_find_an_error(tmp_path):
    """The checks are really on: a route that breaks its contract is reported."""

    async def wrong(request):
        return JSONResponse({"number": 1 / int(request.query_params["number"])})

    number = {"name": "number", "in": "query", "required": True, "schema": {"type": "integer"}}
    told = {"parameters": [number], "responses": {"200": {"description": "Answered"}}}
    broken = RouteModule(routes=[Route("/broken", wrong)], contract={"paths": {"/broken": {"get": told}}})
    with service(route_modules=[broken]) as address:
        done = found_by_schemathesis(address, tmp_path, "--include-path", "/broken", examples=5)
    assert done.returncode == 1, done.stdout[-2000:]
    assert "Server error" in done.stdout
