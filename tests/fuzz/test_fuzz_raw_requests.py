"""Bytes of all kinds on the wire: each is answered or refused in its turn, nothing is told, all go on."""

import json
import logging
import socket
from contextlib import suppress
from http.client import HTTPResponse
from io import BytesIO

import pytest

import hostile
from budgets import budget, seeded

httpx = pytest.importorskip("httpx", reason="the service's tests speak HTTP with httpx")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from service_server import PATIENCE, get, http, queries, query_service, service  # noqa: E402

CANARY = "Zqxwv"
KNOWN = {200, 400, 403, 404, 405, 413, 415, 422, 429}  # whatever the bytes are
GOOD = {"id": 1, "prior": f"FINDINGS: {CANARY} clear.", "candidates": [f"FINDINGS: {CANARY} edema."]}
RERANK = {"query": GOOD["prior"], "documents": [*GOOD["candidates"], {"text": CANARY, "source": {"a": [1]}}],
          "model": "tabon", "top_n": 2, "return_documents": True, "patient": "p"}  # fmt: skip
PATHS = ["/v1/select", "/v1/explain?draft=0", "/healthz", "/v1/bank", "/metrics", "/openapi.json", "/",
         "/v1/rerank", "/v2/rerank", "/v1/select?selector=fused"]  # fmt: skip
ODD_PATHS = [f"/{CANARY}", "//v1/bank", "/v1/../v1/bank", "/%2e%2e/%00", "*", "http://evil.example/", "",
             "/?%zz", "/v1/select/" + "x" * 9000, "/\xff", "/v1/bank#x", "/v1/explain?draft=9e9",
             f"/v1/select?selector={CANARY}", "/v1/rerank?model=%00"]  # fmt: skip
HOSTS = ["localhost", "127.0.0.1:1", "[::1]", "[::1]:80"]
ODD_HOSTS = ["evil.example", "[::1]evil", "localhost@evil.example", "", "a, b", "localhost/x", "[::1", "\xff"]
LENGTHS = ["-1", "+2", "0x10", "1e3", "٣", "9" * 40, "2, 2", "2, 3", "", "00000002"]
CODINGS = ["chunked", "identity", "gzip, chunked", "chunked, chunked", "xchunked", " chunked", "CHUNKED"]
ODD_LINES = ["X : y", " folded", "X", ":", "X: \x00", "X: \r", "\xe9: x", f"{CANARY}: {CANARY}",
             "Expect: 100-continue", "Upgrade: websocket\r\nConnection: Upgrade", "Connection: keep-alive",
             "X: " + "y" * 20_000]  # fmt: skip


class Bytes(BytesIO):
    """What came back, from which one answer after another is read."""

    def makefile(self, _):
        """Return itself, as a socket would a file."""
        return self

    def close(self):
        """Stay open for the next answer."""


def answers(data, methods):
    """Return the statuses in some bytes; all of them are whole answers."""
    found, statuses = Bytes(data), []
    while found.tell() < len(data):
        method = methods[len(statuses)] if len(statuses) < len(methods) else "GET"
        one = HTTPResponse(found, method=method)
        one.begin()
        body = one.read()
        statuses.append(one.status)
        assert CANARY.encode() not in body or (one.status, method) == (200, "POST"), one.status
        assert CANARY not in str(one.headers)
    return statuses


def sent(address, data, *, end):
    """Send bytes and return all that comes back."""
    place = httpx.URL(address)
    with socket.create_connection((place.host, place.port), timeout=PATIENCE) as connection:
        with suppress(OSError):  # refused before all was sent
            connection.sendall(data)
            if end:
                connection.shutdown(socket.SHUT_WR)
        return received(connection)


def received(connection):
    """Return all that comes back until a connection ends."""
    back = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            back += part
    return back


def body_of(chance):
    """Return a body, good or bad."""
    good = json.dumps(chance.choice([GOOD, RERANK, queries()[0]])).encode()
    kinds = [good, good, b"{}", b"", good[: chance.randrange(len(good))], chance.randbytes(99), b"[" * 99]
    return chance.choice(kinds)


def framed(chance, body):
    """Return the headers and bytes of a body whose end is plain."""
    if not body or chance.random() < 0.6:
        return [f"Content-Length: {len(body)}"], body
    cut = chance.randrange(len(body))
    parts = [part for part in (body[:cut], body[cut:]) if part]
    chunks = b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts)
    return ["Transfer-Encoding: chunked"], chunks + b"0\r\n\r\n"


def request(chance, *, last=False):
    """Return a request whose framing is right, and its method; the rest may be odd."""
    method = chance.choice(["GET", "POST", "POST", "PUT", "HEAD", "OPTIONS", CANARY])
    path = chance.choice(PATHS + [one for one in ODD_PATHS if one.isascii() and " " not in one and one])
    lines, body = framed(chance, body_of(chance)) if method == "POST" else ([], b"")
    lines += [f"Host: {chance.choice(HOSTS * 3 + ['evil.example', '[::1]evil'])}"]
    lines += [f"Content-Type: {chance.choice(['application/json'] * 4 + ['text/plain'])}"]
    lines += chance.sample(
        [f"X-{CANARY}: {CANARY}", f"Origin: http://{CANARY}", "Expect: x"], chance.randrange(2)
    )
    chance.shuffle(lines)
    lines += ["Connection: close"] if last else []
    return method, "\r\n".join([f"{method} {path[:2000]} HTTP/1.1", *lines, "", ""]).encode() + body


def malformed(chance):
    """Return bytes that are hardly a request."""
    method = chance.choice(["GET", "POST", "", "G ET", "\x00", CANARY])
    version = chance.choice(["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "http/1.1", ""])
    lines = [f"Host: {chance.choice(HOSTS + ODD_HOSTS)}" for _ in range(chance.choice([0, 1, 1, 1, 2]))]
    lines += [
        f"Content-Length: {chance.choice([*LENGTHS, '2', '5'])}" for _ in range(chance.choice([0, 1, 1, 2]))
    ]
    lines += [f"Transfer-Encoding: {chance.choice(CODINGS)}" for _ in range(chance.choice([0, 0, 1, 2]))]
    lines += chance.sample(ODD_LINES, chance.randrange(3))
    chance.shuffle(lines)
    end = chance.choice(["\r\n", "\r\n", "\n", "\r"])
    start = f"{method} {chance.choice(PATHS + ODD_PATHS)} {version}"
    tail = chance.choice(
        [b"", b"{}", b"2\r\n{}\r\n0\r\n\r\n", b"0\r\n\r\n", b"ffffffffff\r\n", b"2;x=y\r\n{}\r\n0\r\n\r\n"]
    )
    return end.join([start, *lines, "", ""]).encode("latin-1", "replace") + tail


@pytest.fixture(scope="module")
def address():
    """Run one service for all bytes."""
    with service(query_service(others=["fused"])) as found:
        yield found


def test_requests_in_a_row_are_all_answered(address, caplog):
    """Requests sent at once over one connection have their answers in order, up to one that closes it."""
    caplog.set_level(logging.DEBUG)
    chance = seeded("pipelines")
    for _ in range(budget(60, 3000)):
        count = chance.choice([1, 1, 2, 4])
        made = [request(chance, last=number == count - 1) for number in range(count)]
        back = sent(address, b"".join(data for _, data in made), end=False)
        statuses = answers(back, [method for method, _ in made])
        assert set(statuses) <= KNOWN, made
        assert len(statuses) == count or (statuses[-1] == 400 and b"connection: close" in back.lower()), made
    assert CANARY not in "".join(record.getMessage() + str(record.args) for record in caplog.records)


def test_malformed_bytes_harm_nobody(address, caplog):
    """Whatever comes, what goes back are whole answers with a known status, and the next one is served."""
    caplog.set_level(logging.DEBUG)
    chance = seeded("malformed")
    for _ in range(budget(120, 6000)):
        parts = [malformed(chance) for _ in range(chance.choice([1, 1, 2]))]
        if chance.random() < 0.2:
            parts.insert(0, request(chance)[1])
        data = b"".join(parts)
        if chance.random() < 0.2:
            place = chance.randrange(len(data))
            data = data[:place] + chance.randbytes(chance.randrange(4)) + data[place + chance.randrange(4) :]
        back = sent(address, data, end=True)
        for status in back.split(b"HTTP/1.1 ")[1:]:
            assert int(status[:3]) in KNOWN | {100}, data
    assert get(f"{address}/readyz").status_code == 200
    assert CANARY not in "".join(record.getMessage() + str(record.args) for record in caplog.records)
    assert not [record for record in caplog.records if record.exc_info]


def test_the_place_where_a_request_is_cut_does_not_matter(address):
    """A request that arrives in portions is answered as one that arrives at once."""
    chance = seeded("portions")
    for _ in range(budget(20, 500)):
        method, data = request(chance, last=True)
        whole = answers(sent(address, data, end=False), [method])
        place = httpx.URL(address)
        with socket.create_connection((place.host, place.port), timeout=PATIENCE) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            cuts = sorted(chance.randrange(len(data)) for _ in range(5))
            with suppress(ConnectionResetError, BrokenPipeError):  # it is refused before all is sent
                for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
                    connection.sendall(data[start:end])
            back = received(connection)
        assert not back or answers(back, [method]) == whole, (data, cuts, back)


def test_a_changed_rerank_request_is_ranked_or_refused(address, caplog):
    """Whatever JSON a client sends, each draft is ranked once at most, or a sentence without text comes."""
    caplog.set_level(logging.DEBUG)
    chance, statuses = seeded("rerank"), set()
    with http(base_url=address) as client:
        for _ in range(budget(80, 4000)):
            body = hostile.changed(chance, RERANK, chance.randrange(1, 4))
            data = hostile.written(body)
            data = hostile.damaged(chance, data) if chance.random() < 0.2 else data
            path = chance.choice(["/v1/rerank", "/v2/rerank"])
            found = client.post(path, content=data, headers={"content-type": "application/json"})
            statuses.add(found.status_code)
            assert found.status_code in KNOWN, data
            assert found.headers["x-content-type-options"] == "nosniff"
            if found.status_code != 200:
                assert CANARY not in found.text + str(found.headers), data
                continue
            places = [one["index"] for one in found.json()["results"]]
            assert len(set(places)) == len(places) <= 64
            assert all(0 <= one["relevance_score"] <= 1 for one in found.json()["results"])
    assert statuses >= {200, 422}
    assert CANARY not in "".join(record.getMessage() + str(record.args) for record in caplog.records)
