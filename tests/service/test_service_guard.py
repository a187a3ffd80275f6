"""The request guard: forged, long, deep and slow requests get their status in bounded time; no text leaks."""

import asyncio
import json
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.errors import BadInputError, ServiceError
from tabon.service import RouteModule, guarded_app
from tabon.service import server as serving_module
from tabon.service.guard import guard_settings, read_token
from tabon.service.parsing import NOTICE, Limits, depth_of, query_from_body, service_error
from tabon.service.server import most_connections

httpx = pytest.importorskip("httpx", reason="the service's tests speak HTTP with httpx")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from starlette.responses import Response, StreamingResponse  # noqa: E402
from starlette.routing import Route  # noqa: E402

from service_server import PATIENCE, ask, get, http, post, queries, query_service, service, serving, until  # noqa: E402

CANARY = "Zqxwv"
TOKEN = b"a-token-of-some-length"
GOOD = {"id": "q", "prior": f"FINDINGS: {CANARY} clear.", "candidates": [f"FINDINGS: {CANARY} edema."]}
LOCAL = replace(guard_settings("127.0.0.1", token=None, allowed=(), body=1_000_000), body_seconds=PATIENCE)
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def address():
    """Run one service for the tests of this file that change nothing."""
    with service() as found:
        yield found


def refused(found, status):
    """Check the form of an error."""
    assert found.status_code == status, found.text
    assert found.headers["content-type"] == "application/json"
    assert set(found.json()) == {"error"}
    assert {"message"} <= set(found.json()["error"]) <= {"message", "hint"}
    assert CANARY not in found.text + str(found.headers)


BAD_BODIES = {
    "not JSON": (b"FINDINGS: " + CANARY.encode(), 400),
    "cut": (json.dumps(GOOD).encode()[:60], 400),
    "empty": (b"", 400),
    "not UTF-8": (b'{"id": "\xff' + CANARY.encode() + b'"}', 400),
    "UTF-16": (json.dumps(GOOD).encode("utf-16"), 400),
    "NaN": (json.dumps({**GOOD, "x": float("nan")}).encode(), 400),
    "many digits": (b'{"id": ' + b"9" * 10_000 + b"}", 400),
    "deep lists": (b"[" * 900_000, 400),
    "deep objects": (b'{"a":' * 180_000 + b"1" + b"}" * 99, 400),
    "deep extra": (json.dumps({**GOOD, "x": 0}).replace("0", "[" * 40 + "]" * 40).encode(), 400),
    "quotes and backslashes": (b'"' + b'\\"' * 450_000, 400),
    "a list": (json.dumps([CANARY]).encode(), 422),
    "a string": (json.dumps(CANARY).encode(), 422),
    "text as a key": (json.dumps({f"FINDINGS: {CANARY}": 1}).encode(), 422),
    "nearly a key": (json.dumps({"id": 1, "priors" + CANARY[:1]: CANARY}).encode(), 422),
    "no drafts": (json.dumps({"id": 1, "prior": CANARY}).encode(), 422),
    "drafts are text": (json.dumps({**GOOD, "candidates": CANARY}).encode(), 422),
    "draft is a list": (json.dumps({**GOOD, "candidates": [[CANARY]]}).encode(), 422),
    "long id": (json.dumps({**GOOD, "id": CANARY * 99}).encode(), 422),
    "long patient": (json.dumps({**GOOD, "patient": CANARY * 99}).encode(), 422),
    "large id": (json.dumps({**GOOD, "id": 10**400}).encode(), 422),
    "long draft": (json.dumps({**GOOD, "candidates": [CANARY * 9000]}).encode(), 422),
    "long prior": (json.dumps({**GOOD, "prior": {"findings": CANARY * 9000}}).encode(), 422),
    "many sentences": (json.dumps({**GOOD, "candidates": [f"{CANARY}. " * 700]}).encode(), 422),
    "65 drafts": (json.dumps({**GOOD, "candidates": [CANARY] * 65}).encode(), 422),
    "10,000 drafts": (json.dumps({**GOOD, "candidates": [CANARY] * 10_000}).encode(), 422),
    "10,000 priors": (json.dumps({**GOOD, "prior": [CANARY] * 10_000}).encode(), 422),
    "over-long": (b" " * 1_000_001, 413),
    "much too long": (b" " * 6_000_000, 413),
}


@pytest.mark.parametrize("route", ["/v1/select", "/v1/explain"])
@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_bodies_are_refused(address, route, name, caplog):
    """Each has its status, the one form of an error, and no text in answer or log, in bounded time."""
    caplog.set_level(logging.DEBUG)
    body, status = BAD_BODIES[name]
    refused(post(address + route, content=body, headers=JSON), status)
    assert CANARY not in caplog.text


def test_a_long_stream_without_a_length_is_refused(address):
    """Where no length is announced the bytes are counted as they come."""
    chunks = (b" " * 65_536 for _ in range(40))
    refused(post(f"{address}/v1/select", content=chunks, headers=JSON), 413)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "192.0.2.1",
        "x y",
        "[::1]evil",
        "[::1]evil:80",
        "[::1",
        "::1]",
        "localhost:80:80",
    ],
)
@pytest.mark.parametrize("path", ["/v1/bank", "/healthz", "/nowhere"])
def test_a_forged_host_is_refused(address, host, path):
    """A name that was bent to this address gets 403 on every path."""
    refused(get(address + path, headers={"host": host}), 403)


def test_loopback_names_and_allowed_ones_are_answered():
    """All names of this machine, with any port, and those that were allowed."""
    with service(allowed=["Reader.Example"]) as address:
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80", "reader.example:8443"):
            assert get(f"{address}/healthz", headers={"host": host}).status_code == 200


def test_a_forged_origin_is_refused_and_no_other_site_is_let_in(address):
    """Origin must be this very service; there are no CORS headers, and a preflight is refused."""
    port = address.rpartition(":")[2]
    for origin in (
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        f"http://127.0.0.1:{port}.evil.example",
    ):
        refused(post(f"{address}/v1/select", json=GOOD, headers={"origin": origin}), 403)
        preflight = {"origin": origin, "access-control-request-method": "POST"}
        refused(ask("OPTIONS", f"{address}/v1/select", headers=preflight), 403)
    same = post(f"{address}/v1/select", json=GOOD, headers={"origin": address})
    assert same.status_code == 200
    assert not [name for name in same.headers if name.startswith("access-control")]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_gets_nothing(address, site):
    """What a browser asks for another site's page is refused, but for /, which holds no data."""
    headers = {"Sec-Fetch-Site": site}
    assert get(f"{address}/v1/bank", headers=headers).status_code == 403
    assert get(f"{address}/healthz", headers=headers).status_code == 403
    assert get(f"{address}/", headers=headers).status_code == 404  # there is no explorer here
    assert get(f"{address}/v1/bank", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_a_query_of_too_many_sentences_in_all_is_refused():
    """Reports that are short enough one by one may be too long together."""
    text = "FINDINGS: " + "Clear. " * 50
    body = json.dumps({"id": 1, "prior": text, "candidates": [text] * 9}).encode()
    assert len(query_from_body(body, Limits(all_marks=500)).candidates) == 9
    with pytest.raises(ServiceError, match="more than 499 punctuation marks") as caught:
        query_from_body(body, Limits(all_marks=499))
    assert caught.value.status == 422


def test_a_form_of_a_web_page_is_refused(address):
    """What a browser sends without asking first is not taken for JSON."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        found = post(f"{address}/v1/select", content=json.dumps(GOOD), headers={"content-type": kind})
        refused(found, 415)


def test_the_token_is_asked_for():
    """Without the token, or with another, every route but the probes answers 401."""
    with service(token=TOKEN, host="0.0.0.0") as address:  # noqa: S104
        forged = [{}, *({"authorization": value} for value in (
            "", "Bearer", "Bearer wrong", f"Basic {TOKEN.decode()}", TOKEN.decode(),
            f"Bearer {TOKEN.decode()}x", f"Bearer {TOKEN.decode()[:-1]}", "Bearer \u00e9".encode(),
        ))]  # fmt: skip
        for headers in forged:
            for path in ("/v1/bank", "/metrics", "/openapi.json", "/nowhere"):
                found = get(address + path, headers=headers)
                refused(found, 401)
                assert found.headers["www-authenticate"] == "Bearer"
            refused(post(f"{address}/v1/select", json=GOOD, headers=headers), 401)
        right = {"authorization": f"Bearer {TOKEN.decode()}"}
        assert post(f"{address}/v1/select", json=GOOD, headers=right).status_code == 200
        assert get(f"{address}/healthz").status_code == 200
        assert get(f"{address}/readyz").status_code == 200


def test_every_answer_has_the_security_headers(address):
    """Good or refused, on a known route or not: policy, no sniffing, no storing, the notice, an id."""
    answers = [get(address + path) for path in ("/healthz", "/metrics", "/openapi.json", "/nowhere")]
    answers += [post(f"{address}/v1/select", json=GOOD), ask("PUT", f"{address}/v1/select")]
    for found in answers:
        assert found.headers["content-security-policy"].startswith("default-src 'none'")
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["cache-control"] == "no-store"
        assert found.headers["cross-origin-resource-policy"] == "same-origin"
        assert found.headers["x-tabon-notice"] == NOTICE
        assert "server" not in found.headers
    assert len({found.headers["x-request-id"] for found in answers}) == len(answers)


def test_unknown_routes_and_methods(address):
    """404 and 405 have the form of every error; the pages that load other hosts are off."""
    for path in ("/docs", "/redoc", f"/{CANARY}", f"/v1/select/{CANARY}", "/v1/select/"):
        refused(get(address + path), 404)
    found = get(f"{address}/v1/select")
    refused(found, 405)
    assert found.headers["allow"] == "POST"
    for query in (f"draft={CANARY}", "draft=-1", "neighbours=1e9", f"draft=1&draft={CANARY}"):
        refused(post(f"{address}/v1/explain?{query}", json=GOOD), 422)


def raw(address, data, *, end=False):
    """Send bytes as they are over a new connection, and return all that comes back until it is closed."""
    place = httpx.URL(address)
    with socket.create_connection((place.host, place.port), timeout=PATIENCE) as connection:
        connection.sendall(data)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def head(*lines, body=b""):
    """Return a request to /v1/select."""
    return "\r\n".join(["POST /v1/select HTTP/1.1", *lines, "Connection: close", "", ""]).encode() + body


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([], 400),
        (["Host: 127.0.0.1", "Host: evil.example"], 400),
        (["Host: 127.0.0.1", "Content-Length: 2", "Transfer-Encoding: chunked"], 400),
        (["Host: 127.0.0.1", "Content-Length: 2", "Content-Length: 3"], 400),
        (["Host: 127.0.0.1", "Content-Length: -1"], 400),
        (["Host: 127.0.0.1", "Content-Length: 99999999999999999"], 413),
        (["Host: 127.0.0.1", f"X-Long: {CANARY * 9000}"], 400),
        (["Host: 127.0.0.1", f"{CANARY} : x"], 400),
    ],
)
def test_odd_heads_are_refused(address, lines, status, caplog):
    """Heads that are read in two ways by two programs, or are too long, are refused as bytes on the wire."""
    caplog.set_level(logging.DEBUG)
    found = raw(address, head(*lines, body=b"{}"))
    assert found.startswith(f"HTTP/1.1 {status} ".encode())
    assert CANARY not in found.decode() + caplog.text


def narrow(**changes):
    """Return an application whose request guard has other bounds."""
    return guarded_app(query_service(), replace(LOCAL, body=1000, **changes))


def test_a_slow_body_is_given_up(monkeypatch):
    """A client that announces a body and does not send it gets 408 and does not hold others up."""
    monkeypatch.setattr("tabon.service.guard.DRAIN_SECONDS", 0.1)
    with serving(narrow(body_seconds=0.5)) as address, ThreadPoolExecutor(1) as pool:
        lines = ("Host: localhost", "Content-Type: application/json", "Content-Length: 900")
        slow = pool.submit(raw, address, head(*lines, body=b"{"))
        assert get(f"{address}/healthz").status_code == 200
        assert slow.result().startswith(b"HTTP/1.1 408")


def test_a_body_that_is_cut_off_is_no_query(caplog):
    """A client that goes away in the middle of its body is not answered by a route."""
    caplog.set_level(logging.INFO, "tabon.service.access")
    with serving(narrow()) as address:
        lines = ("Host: localhost", "Content-Type: application/json", "Content-Length: 900")
        raw(address, head(*lines, body=b"{"), end=True)
        until(lambda: "POST unknown 400" in caplog.text, "the log line")


@pytest.mark.parametrize("data", [b"", b"GET /healthz HTTP/1.1\r\nHost: loc"])
def test_a_head_that_does_not_come_is_given_up(data):
    """A connection that sends nothing, or half a head, is closed by the service."""
    with serving(narrow(), client_seconds=2.0) as address:
        assert get(f"{address}/healthz").status_code == 200
        with suppress(ConnectionResetError):
            assert raw(address, data) == b""


def test_an_answer_that_is_not_read_is_given_up():
    """A client that asks and does not read is cut off, so that it cannot hold a request for ever."""

    async def lines():
        while True:
            yield b"x" * 65_536

    async def flood(_):
        return StreamingResponse(lines())

    module = RouteModule(routes=[Route("/flood", flood)])
    with serving(guarded_app(query_service(), LOCAL, [module]), client_seconds=2.0) as address:
        place = httpx.URL(address)
        with socket.create_connection((place.host, place.port), timeout=PATIENCE) as client:
            client.sendall(b"GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.recv(1)
            until(lambda: "tabon_requests_running 1.0\n" in get(f"{address}/metrics").text, "it is cut off")


def connected(address, stack):
    """Open a connection that says nothing."""
    host, port = address.removeprefix("http://").split(":")
    return stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))


def is_closed(connection):
    """Return whether the other side has closed a connection, once it has said something about it."""
    with suppress(ConnectionResetError):
        return connection.recv(1) == b""
    return True


@pytest.mark.parametrize("data", [b"", b"POST /v1/select HTTP/1.1\r\nHost: ", b"body"], ids=len)
def test_silent_connections_do_not_lock_others_out(monkeypatch, data):
    """Where all places are taken by clients that send nothing or half a request, another one is served."""
    if data == b"body":
        lines = ("Host: localhost", "Content-Type: application/json", "Content-Length: 900")
        data = head(*lines, body=b"{")
    monkeypatch.setattr(serving_module, "most_connections", lambda: 3)
    app = narrow(body_seconds=PATIENCE)
    with serving(app, client_seconds=PATIENCE) as address, ExitStack() as stack:
        silent = [connected(address, stack) for _ in range(9)]
        for one in silent[6:]:
            one.sendall(data)
        for _ in range(3):
            assert get(f"{address}/healthz").status_code == 200
        assert all(is_closed(one) for one in silent[:6])
    assert 1 <= most_connections() <= serving_module.CONNECTIONS


def test_connections_beyond_the_limit_that_are_at_work_stay(monkeypatch):
    """A new connection does not end a request that is worked on: it is cut off itself."""
    monkeypatch.setattr(serving_module, "most_connections", lambda: 2)
    gate, gone = Event(), Event()
    app = guarded_app(query_service(), LOCAL, [streaming_module(gate, gone)])
    with serving(app) as address, ExitStack() as stack:
        lines = ("Host: localhost", "Content-Type: application/json", "Content-Length: 2")
        working = [connected(address, stack) for _ in range(2)]
        for one in working:
            one.sendall(head(*lines, body=b"{}").replace(b"/v1/select", b"/stream"))
            assert one.recv(65_536).startswith(b"HTTP/1.1 200")
        assert is_closed(connected(address, stack))
        gate.set()
        for one in working:
            assert b"second" in b"".join(iter(lambda one=one: one.recv(65_536), b""))


def test_slow_bodies_do_not_count_as_requests_at_work():
    """Clients whose bodies do not arrive take connections only: others are not told 429."""
    app = narrow(requests=1, body_seconds=PATIENCE)
    with serving(app) as address, ExitStack() as stack:
        lines = ("Host: localhost", "Content-Type: application/json", "Content-Length: 900")
        for _ in range(3):
            connected(address, stack).sendall(head(*lines, body=b"{"))
        until(lambda: "tabon_requests_running 4.0\n" in get(f"{address}/metrics").text, "the slow ones came")
        assert post(f"{address}/v1/select", json=GOOD).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "evil.example"])
def test_a_body_that_breaks_off_being_http_ends_quietly(address, host, caplog):
    """Bytes that are no chunk, while the body is read or after a refusal, end the connection, and no more."""
    lines = (f"Host: {host}", "Content-Type: application/json", "Transfer-Encoding: chunked")
    with ExitStack() as stack:
        one = connected(address, stack)
        one.sendall(head(*lines).replace(b"Connection: close\r\n", b""))
        if host == "localhost":
            until(lambda: "tabon_requests_running 2" in get(f"{address}/metrics").text, "its body is awaited")
        else:
            assert one.recv(12) == b"HTTP/1.1 403"
        one.sendall(b"no chunk\r\n")
        rest = b"".join(iter(lambda: one.recv(65_536), b""))
        assert rest.count(b"HTTP/1.1 400") == (host == "localhost")
    until(lambda: "tabon_requests_running 1" in get(f"{address}/metrics").text, "it has ended")
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


def test_two_lengths_end_the_connection(address):
    """A request with both lengths gets 400, and what was sent behind it is never taken for a request."""
    hidden = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    lines = ("Host: localhost", "Content-Type: application/json", "Content-Length: 5")
    data = head(*lines, "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + hidden)
    found = raw(address, data.replace(b"Connection: close\r\n", b"", 1))
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in found.lower()
    assert found.count(b"HTTP/1.1") == 1


def test_too_many_requests_at_once_are_refused():
    """Beyond the number, or the bytes, of requests at the same time the answer is 429 with Retry-After."""
    for bounds in ({"requests": 0}, {"bodies": 50}):
        with serving(narrow(**bounds)) as address:
            for _ in range(3):
                found = post(f"{address}/v1/select", json=GOOD)
                refused(found, 429)
                assert found.headers["retry-after"] == "1"


def test_bytes_are_given_back_when_a_request_ends():
    """The bytes of finished requests, answered or refused, no longer count."""
    with serving(narrow(bodies=1000)) as address, http(base_url=address) as client:
        for number in range(30):
            body = b" " * 900 if number % 2 else json.dumps(GOOD).encode()
            assert client.post("/v1/select", content=body, headers=JSON).status_code == (200, 400)[number % 2]


def test_the_open_page_needs_no_token_but_its_host():
    """The page and its files hold no data: no token is asked for there, Host and Origin are still checked."""
    with service(token=TOKEN, host="0.0.0.0") as address:  # noqa: S104
        for path in ("/", "/explorer.css", "/explorer.js"):
            refused(get(address + path), 404)  # no route module here has made them
            refused(get(address + path, headers={"host": "evil.example"}), 403)
            refused(get(address + path, headers={"origin": "http://evil.example"}), 403)
        for path in ("//", "/explorer.json", "/explorer.js/", "/%2F"):
            refused(get(address + path), 401)


def streaming_module(gate, gone):
    """Return a route module with a stream: a line, a wait for the gate, a note when the client is gone."""

    async def lines():
        try:
            yield b"data: first\n\n"
            while not gate.is_set():  # noqa: ASYNC110  # of another thread
                await asyncio.sleep(0.01)
            yield b"data: second\n\n"
        finally:
            gone.set()

    async def stream(request):
        await request.body()
        return StreamingResponse(lines(), media_type="text/event-stream")

    async def plain(request):
        await request.body()
        while not gone.is_set():
            await asyncio.sleep(0.01)
            if await request.is_disconnected():
                gone.set()
        return Response()

    routes = [Route("/stream", stream, methods=["POST"]), Route("/plain", plain, methods=["POST"])]
    return RouteModule(routes=routes)


def test_a_stream_passes_the_guard_line_by_line():
    """The first event arrives while the route holds the second back, with the request guard's headers."""
    gate, gone = Event(), Event()
    with (
        service(route_modules=[streaming_module(gate, gone)]) as address,
        http() as client,
        client.stream("POST", f"{address}/stream", json={"x": 1}) as found,
    ):
        events = found.iter_raw()
        assert next(events) == b"data: first\n\n"
        assert found.headers["x-tabon-notice"] == NOTICE
        gate.set()
        assert b"".join(events) == b"data: second\n\n"


@pytest.mark.parametrize("path", ["/stream", "/plain"])
def test_a_route_hears_that_its_client_is_gone(path):
    """A client that closes its connection, before or within the answer, is seen by the route."""
    gate, gone = Event(), Event()
    with service(route_modules=[streaming_module(gate, gone)]) as address:
        place = httpx.URL(address)
        with socket.create_connection((place.host, place.port), timeout=PATIENCE) as client:
            lines = ("Host: localhost", "Content-Type: application/json", "Content-Length: 2")
            client.sendall(head(*lines, body=b"{}").replace(b"/v1/select", path.encode()))
            if path == "/stream":
                assert client.recv(65_536).startswith(b"HTTP/1.1 200")
            else:
                until(lambda: "tabon_requests_running 2" in get(f"{address}/metrics").text, "it runs")
        assert gone.wait(PATIENCE)


@pytest.mark.parametrize("selector", ["transition", "fused"])
def test_the_canary_is_in_no_log_and_no_metric(caplog, selector):
    """Text, ids, unknown paths, parameters, headers and methods leave no trace."""
    caplog.set_level(logging.DEBUG)
    marked = {**queries()[0], "id": CANARY, "patient": CANARY, CANARY: CANARY}
    answered = set()
    with service(query_service(selector=selector)) as address:
        for body in (GOOD, marked, [CANARY], {CANARY: 1}):
            for route in ("/v1/select", "/v1/explain"):
                found = post(address + route, json=body, headers={"x-request-id": CANARY})
                answered.add(found.headers["x-request-id"])
                assert CANARY not in str(found.headers)
        get(f"{address}/{CANARY}?{CANARY}={CANARY}", headers={"user-agent": CANARY, "cookie": CANARY})
        ask(CANARY, f"{address}/healthz")
        text = get(f"{address}/metrics").text
    ours = [record for record in caplog.records if record.name.startswith(("tabon", "uvicorn"))]
    lines = [record.getMessage() for record in ours]
    assert len(answered) == 8
    assert answered <= {line.split()[-1] for line in lines}  # other tests' servers may still write lines
    assert any(line.startswith("GET unknown 404") for line in lines)
    assert any(line.startswith("other /healthz 405") for line in lines)
    assert CANARY not in text + "".join(lines) + "".join(str(record.args) for record in ours)
    assert 'tabon_requests_total{method="POST",route="/v1/select",status="200"} 2.0\n' in text


def test_an_error_inside_says_nothing_of_the_text(caplog):
    """An error that nobody foresaw is 500; its message, which may hold text, stays inside."""
    answers = query_service()

    async def broken(*_, **__):
        raise KeyError(CANARY)

    answers.select = broken
    with service(answers) as address:
        refused(post(f"{address}/v1/select", json=GOOD), 500)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith(("tabon", "uvicorn"))]
    assert any("KeyError" in line for line in ours)
    assert CANARY not in "".join(ours)
    assert service_error(KeyError(CANARY)).message == "the query could not be answered"


def test_deep_and_long_requests_do_not_hold_up_others(address):
    """While eight clients send the worst bodies, a small request is answered in bounded time."""
    worst = [BAD_BODIES[name][0] for name in ("deep lists", "quotes and backslashes", "much too long")] * 4
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(post, f"{address}/v1/select", content=body, headers=JSON) for body in worst]
        assert post(f"{address}/v1/select", json=GOOD).status_code == 200
        assert all(one.result().status_code in {400, 413} for one in sent)


@given(st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(
    st.text(), inner), max_leaves=20))  # fmt: skip
def test_depth_is_that_of_the_value(value):
    """The depth read from the bytes is the one a walk over the value finds, whatever stands in strings."""

    def walked(one):
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else None
        return 0 if inner is None else 1 + max(map(walked, inner), default=0)

    for ascii_only in (True, False):
        assert depth_of(json.dumps(value, ensure_ascii=ascii_only).encode()) == walked(value)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(body):
    """Any bytes are a query or a refusal with a status; nothing else comes out."""
    with pytest.raises(ServiceError) as caught:
        query_from_body(body, Limits())
    assert caught.value.status in {400, 422}


def test_tokens_and_addresses(tmp_path):
    """A token file holds one long word; an address that others reach needs one."""
    file = tmp_path / "token"
    file.write_bytes(TOKEN + b"\n")
    for mode in (0o644, 0o604, 0o602, 0o666):
        file.chmod(mode)
        with pytest.raises(BadInputError, match=r"every user of this machine can .* run chmod 600"):
            read_token(file)
    file.chmod(0o640)
    assert read_token(file) == TOKEN
    for poor in (b"", b"short", b"two words that are long", "é".encode() * 20, b"x" * 5000):
        file.write_bytes(poor)
        with pytest.raises(BadInputError, match="does not hold a token"):
            read_token(file)
    for host in ("0.0.0.0", "::", "10.0.0.1", "reader.example", ""):  # noqa: S104
        with pytest.raises(BadInputError, match="no token is set"):
            guard_settings(host, token=None, allowed=(), body=1)
    assert TOKEN.decode() not in repr(guard_settings("::1", token=TOKEN, allowed=(), body=1))


def test_a_number_beyond_all_is_refused():
    """What would come back as Infinity, which is no JSON, is not taken."""
    with pytest.raises(ServiceError, match="cannot be read as a number") as caught:
        query_from_body(b'{"id": 1, "prior": null, "candidates": [], "x": 1e999}', Limits())
    assert caught.value.status == 400
