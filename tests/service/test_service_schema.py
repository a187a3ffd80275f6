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
from tabon.explanation.explanation import NEIGHBOURS
from tabon.service import Limits, RouteModule
from tabon.service.app import MOST_NEIGHBOURS, query_module
from tabon.service.explorer_routes import explorer_module
from tabon.service.gateway import GatewaySettings, gateway_module
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
        document = get(f"{address}/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert (schemas["Drafts"]["maxItems"], schemas["DraftNumber"]["exclusiveMaximum"]) == (7, 7)
    assert (schemas["Text"]["maxLength"], schemas["Section"]["maxLength"]) == (500, 500)
    assert schemas["Priors"]["maxItems"] == 3
    text, number = schemas["Name"]["anyOf"]
    assert (text["maxLength"], number["minimum"], number["maximum"]) == (SHORT, -LARGEST, LARGEST)
    neighbours = document["paths"]["/v1/explain"]["post"]["parameters"][1]["schema"]
    assert (neighbours["maximum"], neighbours["default"]) == (MOST_NEIGHBOURS, NEIGHBOURS)


def test_the_contract_has_every_route_and_no_other():
    """What is served is what the contract names, method by method; only the page's own files are left out."""
    answers, page = query_service(), {("/", "GET"), ("/explorer.css", "GET"), ("/explorer.js", "GET")}
    upstream = GatewaySettings(upstream="http://127.0.0.1:1/v1")
    for module in (query_module(answers), explorer_module(None), gateway_module(answers, upstream)):
        served = {(one.path, method) for one in module.routes for method in one.methods - {"HEAD"}}
        named = {(path, method.upper()) for path, item in module.contract["paths"].items() for method in item}
        assert served - page == named


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
