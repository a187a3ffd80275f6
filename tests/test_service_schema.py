"""schemathesis over the real OpenAPI document, with all its checks, against the service on a port.

The routes of the explorer and the gateway are asked in the same way in `test_explorer_routes.py` and
`test_gateway_failures.py`.
"""

import os
import subprocess
import sys

import pytest

pytest.importorskip("httpx", reason="the service's tests speak HTTP with httpx")
pytest.importorskip("fastapi", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")
pytest.importorskip("schemathesis", reason="pip install schemathesis")

from service_server import get, service

EXAMPLES = 20  # a route, in the fuzzing phase
ROUTES = {"/v1/select", "/v1/explain", "/v1/bank", "/healthz", "/readyz", "/metrics"}
SETTINGS = """
[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 413, 415, 422]
positive_data_acceptance.expected-statuses = ["2xx", 404, 413]
"""  # 413: a generated body may be longer than --max-body; 404: `draft` may be beyond the drafts of a query
OPTIONS = ("--checks", "all", "--phases", "examples,coverage,fuzzing", "--seed", "1")


def found_by_schemathesis(address, folder, *, examples, options=()):
    """Run schemathesis against an address and return the finished process."""
    (folder / "schemathesis.toml").write_text(SETTINGS)
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json", *OPTIONS, *options]
    return subprocess.run(
        [*command, "--max-examples", str(examples)],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def test_the_document_names_every_route():
    """The contract has each route with its statuses, so that schemathesis leaves none out."""
    with service() as address:
        paths = get(f"{address}/openapi.json").json()["paths"]
    assert set(paths) >= ROUTES
    for path in ROUTES:
        for route in paths[path].values():
            assert {"200", "401", "403", "413", "415", "429", "500", "503"} <= set(route["responses"])


def test_schemathesis_finds_nothing(tmp_path):
    """No generated request, good or bad, gets an answer that the contract does not name."""
    with service() as address:
        done = found_by_schemathesis(address, tmp_path, examples=EXAMPLES)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout, done.stdout[-2000:]


def test_schemathesis_would_find_an_error(tmp_path):
    """The checks are really on: a route that breaks its contract is reported."""

    def broken(app):
        async def wrong(number: int):
            return {"number": 1 / number}

        app.add_api_route("/broken", wrong, methods=["GET"])

    with service(doors=[broken]) as address:
        done = found_by_schemathesis(address, tmp_path, examples=5, options=("--include-path", "/broken"))
    assert done.returncode == 1, done.stdout[-2000:]
    assert "Server error" in done.stdout
