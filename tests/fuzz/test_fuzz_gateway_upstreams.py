"""Upstreams that answer anything: clients of the gateway get a draft or a plain error, and nothing else."""

import json
import logging
from copy import deepcopy

import pytest

import hostile
from budgets import budget, seeded

httpx = pytest.importorskip("httpx", reason="the gateway needs tabon[gateway]")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from gateway_upstream import Act, Upstream, gateway  # noqa: E402
from service_server import PATIENCE, http, query_service  # noqa: E402

CANARY, KEY = "Zqxwv", "sk-Kyvqz-client-key"
KNOWN = {200, 400, 401, 403, 404, 413, 422, 429, 502, 504}
ASK = {
    "model": "m",
    "messages": [{"role": "user", "content": f"{CANARY} Write."}],
    "tabon": {"prior": "Findings: A."},
}
COMPLETION = {
    "id": "c", "object": "chat.completion", "created": 5, "model": "m", "system_fingerprint": "f",
    "choices": [
        {"index": 0, "finish_reason": "stop", "logprobs": {"content": [{"token": "x", "logprob": -1.5}]},
         "message": {"role": "assistant", "content": f"Findings: Clear {CANARY}.", "refusal": None}},
        {"index": 1, "finish_reason": "tool_calls", "logprobs": None,
         "message": {"role": "assistant", "content": None,
                     "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": "{}"}}]}},
        {"index": 2, "finish_reason": "length", "message": {"content": [{"text": "Findings: B."}]}},
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "details": {"cached_tokens": 1}},
}  # fmt: skip
ODD = [None, True, 0, -1, 7.5, 1.7e308, 10**30, 10**400, "", "x", "\ud800", "\x00", CANARY, [], {}, [[]],
       [None], {"a": {}}, [{"index": 10**9}], [{"index": -1}], {"index": True}, "word " * 900, ["x"] * 300,
       ]  # fmt: skip
ODD_BODIES = [b"", b"null", b"[]", b'"x"', b"{", b"\xff\xfe", b"NaN", b'{"choices": NaN}', b"[" * 9000,
              b"<html>", b'{"choices": [{"message": {"content": 1e999}}]}', b"9" * 5000]  # fmt: skip
WAITS = ["0", "3600", "-1", "nan", "inf", "1e999", "soon", "Wed, 21 Oct 2099 07:28:00 GMT", "", "9" * 400]


def places(value, path=()):
    """Yield the path of everything inside a value."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*path, key))


def changed(chance, value, times):
    """Return a value with some of its parts replaced by odd ones, or left out."""
    value = json.loads(json.dumps(value))
    for _ in range(times):
        *path, last = chance.choice([one for one in places(value) if one])
        inside = value
        for key in path:
            inside = inside[key]
        if isinstance(inside, dict) and chance.random() < 0.2:
            del inside[last]
        else:
            inside[last] = deepcopy(chance.choice(ODD))
    return value


def events(chance):
    """Return a stream of chunks, whole or odd."""
    deltas = [{"role": "assistant", "content": ""}, {"content": "Findings: Cl"}, {"content": "ear."}, {}]
    deltas.insert(2, {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": "{"}}]})
    chunks = [
        {"id": "c", "choices": [{"index": index, "delta": delta, "finish_reason": None if delta else "stop"}]}
        for delta in deltas
        for index in range(3)
    ]
    chunks.append({"choices": [], "usage": COMPLETION["usage"]})
    end = chance.choice(["\n\n", "\r\n\r\n", "\r\r", "\n"])
    lines = [
        f"data: {json.dumps(changed(chance, one, chance.choice([0, 0, 0, 1])))}{end}"
        for one in chunks
        if chance.random() < 0.9
    ]
    odd = [
        "data: NaN\n\n",
        ": note\n\n",
        "data:\n\n",
        "event: x\ndata: {}\n\n",
        'data: {"error": {"code": 1}}\n\n',
    ]
    if chance.random() < 0.4:
        lines.insert(chance.randrange(len(lines) + 1), chance.choice(odd))
    if chance.random() < 0.8:
        lines.append(f"data: [DONE]{end}")
    return "".join(lines).encode("utf-8", "surrogatepass")


def act(chance):
    """Return what an upstream does with one call."""
    completion = json.dumps(changed(chance, COMPLETION, chance.choice([0, 1, 1, 2, 5]))).encode()
    body = chance.choice([completion, completion, completion, *chance.sample(ODD_BODIES, 2)])
    error = {
        "error": {
            "message": f"{CANARY} {KEY}",
            "code": chance.choice([KEY, *ODD]),
            "param": chance.choice(ODD),
        }
    }
    status = chance.choice(
        [100, 200, 201, 204, 301, 307, 400, 401, 403, 404, 408, 413, 422, 429, 500, 503, 599]
    )
    told = chance.choice([json.dumps(error).encode(), completion, b"", b"x" * 70_000])
    wait = (("Retry-After", chance.choice(WAITS)),)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    stream = events(chance)
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in (stream[:99], stream[99:]) if one)
    kinds = [
        Act("body", body=body),
        Act("body", body=body, headers=(("Content-Encoding", chance.choice(["gzip", "identity", "br"])),)),
        Act("status", status, wait, told),
        Act("raw", 0, body=head + b"Connection: close\r\n\r\n" + stream),
        Act("raw", 0, body=head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked + b"0\r\n\r\n"),
        Act("raw", 0, body=head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked + b"zz\r\n"),
        Act("raw", 0, body=b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + body),
        Act("raw", 0, body=chance.choice([b"", b"\x00" * 99, b"HTTP/9\r\n\r\n", head + b"X: y\r\n" * 999])),
        Act("reset"),
    ]  # fmt: skip
    return chance.choice(kinds)


def strict(text):
    """Read JSON that every reader would take."""
    return json.loads(text, parse_constant=pytest.fail)


def check(found, *, stream):
    """Check the form of an answer."""
    assert found.status_code in KNOWN, (found.status_code, found.text)
    assert KEY not in found.text + str(found.headers)
    if found.status_code != 200:
        assert set(strict(found.text)["error"]) == {"message", "type", "param", "code"}
        assert CANARY not in found.text + str(found.headers)
        assert int(found.headers.get("retry-after", 0)) <= 86_400
    elif stream:
        *parts, end = [one for one in found.text.split("\n\n") if one and not one.startswith(":")]
        records = [strict(one.removeprefix("data: ")) for one in parts]
        assert end == "data: [DONE]" or "error" in strict(end.removeprefix("data: "))
        assert end != "data: [DONE]" or any("tabon" in one for one in records)
    else:
        record = strict(found.text)
        assert record["choices"]
        assert record["tabon"]["drafts"] == 3


def test_whatever_an_upstream_answers_is_a_draft_or_an_error(caplog):
    """Each answer is strict JSON of a known form; no text and no key is told or logged; the next works."""
    caplog.set_level(logging.DEBUG)
    chance = seeded("upstreams")
    options = {"pass_key": True, "retries": 1, "first_wait": 0.001, "draft_bytes": 200_000}
    with Upstream() as up, gateway(up, **options) as address, http() as client:
        for _ in range(budget(60, 1500)):
            up.knows_n = chance.choice([True, True, 400, "fewer"])
            up.script[:] = [act(chance) for _ in range(chance.choice([1, 2, 8]))]
            asked = {
                **ASK,
                "stream": chance.random() < 0.5,
                "n": chance.choice([1, 3]),
                "seed": chance.randrange(9),
            }
            asked["tabon"] = {**ASK["tabon"], "drafts": 3}
            headers = {"Authorization": f"Bearer {KEY}"}
            found = client.post(
                f"{address}/v1/chat/completions", json=asked, headers=headers, timeout=PATIENCE
            )
            check(found, stream=asked["stream"])
        up.script.clear()
        up.knows_n = True
        assert client.post(f"{address}/v1/chat/completions", json=ASK).status_code == 200
    lines = [record.getMessage() + str(record.args) + str(record.exc_info) for record in caplog.records]
    assert not [line for line in lines if CANARY in line or KEY in line]
    assert not [record for record in caplog.records if record.name.startswith("tabon") and record.exc_info]


def test_whatever_a_client_asks_is_a_draft_or_an_error(caplog):
    """Changed requests, selectors in names and fields among them, get a completion or one plain error."""
    caplog.set_level(logging.DEBUG)
    chance, statuses = seeded("clients"), set()
    good = {**ASK, "model": "m@tabon-fused", "seed": 1, "n": 1}
    good["tabon"] = {**ASK["tabon"], "drafts": 3, "selector": "fused", "patient": "p"}
    with (
        Upstream() as up,
        gateway(up, answers=query_service(others=["fused"]), key=KEY) as address,
        http(base_url=address) as client,
    ):
        for _ in range(budget(60, 3000)):
            body = hostile.changed(chance, good, chance.randrange(1, 3))
            if isinstance(body, dict) and chance.random() < 0.3:
                body["model"] = chance.choice(["m", "", CANARY]) + chance.choice(
                    ["@tabon", "@tabon-", "@tabon-fused", f"@tabon-{CANARY}", "@tabon-\ud800", "@tabon" * 90]
                )
            headers = {"content-type": "application/json"}
            found = client.post("/v1/chat/completions", content=hostile.written(body), headers=headers)
            statuses.add(found.status_code)
            assert found.status_code in KNOWN, body  # 502: the upstream of the tests cannot read it
            if found.status_code != 200:
                assert set(strict(found.text)["error"]) == {"message", "type", "param", "code"}
                assert CANARY not in found.text + str(found.headers)
        assert all("@tabon-fused" not in asked["model"] for _, _, asked in up.calls)
    assert statuses >= {200, 400}
    lines = [record.getMessage() + str(record.args) + str(record.exc_info) for record in caplog.records]
    assert not [line for line in lines if CANARY in line or KEY in line]
