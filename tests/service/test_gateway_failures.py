"""The upstream fails or hangs, clients hang up: the right status, nothing left open, no text told."""

import asyncio
import json
import logging
import shutil
import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from budgets import budget, seeded
from tabon.errors import ServiceError
from tabon.service.batcher import Batcher, BatchSettings
from tabon.service.gateway import GatewaySettings
from tabon.service.gateway.completions import NO_ROOM
from tabon.service.gateway.draft_set import cancelled
from tabon.service.gateway.upstream import Call
from tabon.service.gateway.upstream import Upstream as Asking
from tabon.service.metrics import Metrics

httpx = pytest.importorskip("httpx", reason="the gateway needs tabon[gateway]")
openai = pytest.importorskip("openai", reason="the gateway is tested with the openai client")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from gateway_upstream import HANG, OK, RESET, Act, Upstream, fails, gateway  # noqa: E402
from service_server import PATIENCE, get, post, queries, query_service, until  # noqa: E402
from waiting import until_async  # noqa: E402

CANARY, KEY = "Zqxwv", "sk-Kyvqz-upstream-key"
ASK = {"model": "up-1", "messages": [{"role": "user", "content": f"{CANARY} Write the report."}], "seed": 0}
CUT, STALL, ERROR_EVENT, GARBAGE = Act("cut"), Act("stall"), Act("error-event"), Act("garbage")
BAD_BODY = Act("body", body=b'{"choices": "' + CANARY.encode() + b'"}')


def ask(address, **fields):
    """Post a request."""
    return post(f"{address}/v1/chat/completions", json={**ASK, **fields})


@pytest.fixture(scope="module")
def shared():
    """Run one upstream and one gateway for the tests whose settings are the same."""
    with Upstream() as up, gateway(up, key=KEY, keep_alive=20) as address:
        yield up, address


@pytest.fixture
def running(shared):
    """Give them to a test as new."""
    up, address = shared
    up.script.clear()
    up.calls.clear()
    return up, address


def refused(found, status):
    """Check the form of an error, and return it."""
    assert found.status_code == status, found.text
    error = found.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert CANARY not in found.text
    assert KEY not in found.text
    return error


RETRIED = {
    "429": fails(429, retry_after="0"),
    "500": fails(500),
    "503 with a time": fails(503, retry_after="0"),
    "reset": RESET,
    "not JSON": Act("body", body=b"<html>"),
    "not a completion": BAD_BODY,
    "no choices": Act("body", body=b'{"choices": []}'),
    "a list": Act("body", body=b"[]"),
    "deep": Act("body", body=b"[" * 5000),
    "compressed": Act("body", body=b"x", headers=(("Content-Encoding", "gzip"),)),
}


@pytest.mark.parametrize("name", RETRIED)
def test_a_failure_for_now_is_asked_again(running, name):
    """Two failures are followed by a third attempt, with all drafts; three are the end."""
    up, address = running
    up.script[:] = [RETRIED[name]] * 2
    found = ask(address)
    assert (found.status_code, found.json()["tabon"]["failed"], len(up.calls)) == (200, {}, 3)
    up.script[:] = [RETRIED[name]] * 3
    refused(ask(address), 429 if name == "429" else 502)
    assert len(up.calls) == 6


@pytest.mark.parametrize("act", [CUT, ERROR_EVENT, GARBAGE], ids=lambda act: act.kind)
def test_a_stream_that_breaks_is_asked_for_again(running, act):
    """A stream that ends in the middle gives no half draft: it is asked for again."""
    up, address = running
    up.script[:] = [act] * 2
    found = ask(address, stream=True)
    assert found.text.endswith("data: [DONE]\n\n")
    assert len(up.calls) == 3
    up.script[:] = [act] * 3
    refused(ask(address, stream=True), 502)


def test_the_time_that_the_upstream_asks_for_is_kept():
    """Retry-After is waited for where there is time, and passed on where there is not."""
    with Upstream(script=[fails(429, retry_after="1")]) as up, gateway(up) as address:
        start = time.monotonic()
        assert ask(address).status_code == 200
        assert time.monotonic() - start >= 1
        told = b'{"error": {"message": "no", "code": "rate_limit_exceeded"}}'
        up.script[:] = [fails(429, retry_after="3600", body=told)]
        found = ask(address)
        error = refused(found, 429)
        assert found.headers["retry-after"] == "3600"
        assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
        one = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
        up.script[:] = [fails(429, retry_after="3600")]
        with pytest.raises(openai.RateLimitError):
            one.chat.completions.create(**ASK)


ENDS = {
    "bad request": (
        fails(400, body=b'{"error": {"message": "Zqxwv", "param": "seed", "code": "invalid_value"}}'),
        400,
    ),
    "unprocessable": (fails(422), 422),
    "unknown model": (fails(404), 404),
    "too large": (fails(413), 413),
    "the gateway's key": (fails(401), 502),
    "forbidden": (fails(403), 502),
    "redirect": (fails(307, body=b""), 502),
    "odd": (fails(418), 502),
    "no credit": (fails(429, body=b'{"error": {"code": "insufficient_quota"}}'), 429),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_will_not_change_is_not_asked_again(running, name):
    """A refusal has its status at once; of the upstream's words only code and parameter are passed on."""
    up, address = running
    act, status = ENDS[name]
    up.script[:] = [act] * 6
    error = refused(ask(address), status)
    several = 6 if status in {400, 422} else 1  # perhaps it was n
    assert len(up.calls) == several
    if name == "bad request":
        assert (error["param"], error["code"], error["type"]) == (
            "seed",
            "invalid_value",
            "invalid_request_error",
        )
    up.script.clear()
    assert ask(address).status_code == 200
    assert up.calls[-1][2]["n"] == 5  # the model is not thought to know no n


def test_a_refused_key_of_the_client_is_the_clients():
    """Where the client's key is passed on its refusal is passed back."""
    with Upstream(script=[fails(401)]) as up, gateway(up, pass_key=True) as address:
        assert refused(ask(address), 401)["type"] == "authentication_error"


@pytest.mark.parametrize(
    "acts", [[fails(500)] * 3, [RESET] * 3, [HANG], [fails(404)]], ids=["500", "reset", "hang", "404"]
)
def test_some_drafts_fail(acts):
    """Those that came are chosen from, in their places; the answer says which did not come, and why."""
    prior = {"tabon": {"prior": queries()[0]["prior"]}}
    timeout = 10 if acts == [HANG] else PATIENCE
    with Upstream(knows_n=400) as up, gateway(up, timeout=timeout, retries=0) as address:
        whole = ask(address, **prior).json()["tabon"]
        up.script[:] = acts
        found = ask(address, **prior)
        assert found.status_code == 200
        own = found.json()["tabon"]
        failed = [int(place) for place in own["failed"]]
        assert len(failed) == len(acts)
        assert set(own["failed"].values()) <= {502, 504, 404}
        came = [place for place in range(5) if place not in failed]
        assert [own["distances"][place] for place in failed] == [None] * len(failed)
        assert [own["distances"][place] for place in came] == [whole["distances"][place] for place in came]
        assert own["selected"] == min(came, key=lambda place: whole["distances"][place])
        assert [flag for flag in own["flags"] if flag.startswith("failed:")] == [
            f"failed:{n}" for n in failed
        ]
        assert f"draft {own['selected']}." in found.json()["choices"][0]["message"]["content"]


def test_all_drafts_fail():
    """A hang is 504 in bounded time, in a stream too; no connection is 502; the calls are closed."""
    with Upstream(script=[HANG] * 3) as up, gateway(up, timeout=0.4) as address:
        for fields in ({}, {"stream": True}, {}):
            assert refused(ask(address, **fields), 504)["type"] == "server_error"
        until(lambda: (up.closed, up.running) == (len(up.calls), 0), "all calls that arrived are closed")
    with gateway(up.url, retries=0) as address:
        assert "ConnectError" in refused(ask(address), 502)["message"]
        refused(get(f"{address}/v1/models"), 502)


def test_a_draft_that_is_whole_outlives_its_stream():
    """Of drafts in one stream, which stalls, the short one that is whole is used when the time is up."""
    texts = ["Findings: Clear.", "Findings: Clear lungs and no effusion at all on either side today."]
    with Upstream(texts=texts, script=[STALL]) as up, gateway(up, timeout=8) as address:
        found = ask(address, stream=True, tabon={"drafts": 2})
        assert "Clear." in found.text
        last = json.loads(found.text.split("data: ")[-2])
        assert (last["tabon"]["returned"], last["tabon"]["failed"]) == ([0], {"1": 504})


def test_a_stream_that_waits_is_kept_alive():
    """Comments come while drafts are written; a failure after that is an event that the client raises."""
    with Upstream(pause=0.08) as up, gateway(up, keep_alive=0.1, retries=0) as address:
        found = ask(address, stream=True)
        assert found.headers["content-type"].startswith("text/event-stream")
        assert found.text.count(": keep-alive\n\n") >= 2
        assert found.text.index(": keep-alive") < found.text.index("data: ")
        one = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
        assert [chunk.choices[0].finish_reason for chunk in one.chat.completions.create(**ASK, stream=True)][
            -1
        ]
        up.script[:] = [CUT]
        with pytest.raises(openai.APIError, match="connection to the upstream failed"):
            list(one.chat.completions.create(**ASK, stream=True))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("knows_n", [True, 400])
def test_a_client_that_hangs_up_ends_the_calls(stream, knows_n):
    """The upstream sees every call close soon after the client has gone, whole or streamed."""
    with Upstream(pause=0.05, texts=["word " * 400]) as up, gateway(up, keep_alive=0.2) as address:
        up.knows_n = knows_n
        if not stream:
            up.script[:] = [HANG] if knows_n is True else [OK, *[HANG] * 5]
        wanted = 1 if knows_n is True else 5
        with hanging(address, {**ASK, "stream": stream}) as sock:
            while stream and b"keep-alive" not in sock.recv(65536):
                pass
            until(lambda: up.running == wanted, "all calls have arrived")
        until(lambda: (up.closed, up.running) == (wanted, 0), "all calls are closed")
        up.pause, up.texts = 0.0, ["Findings: Clear."]
        assert ask(address).status_code == 200  # the room is free again


def test_hang_ups_at_any_moment_leave_nothing_behind():
    """Whenever a client goes, before, between or in the calls, all that had begun ends: the room is free."""
    chance = seeded("hang-ups")
    room = {"requests": 2, "calls": 5, "keep_alive": 0.01}
    with Upstream(pause=0.001, texts=["word " * 30]) as up, gateway(up, **room) as address:
        for _ in range(budget(25, 200)):
            up.knows_n, stream = chance.choice([True, 400]), chance.random() < 0.5
            up.script[:] = chance.choice([[], [HANG] * 6, [OK, HANG, HANG]])
            with hanging(address, {**ASK, "stream": stream}):
                time.sleep(chance.choice([0, 0.001, 0.01, 0.03]) * chance.random())
            until(lambda: "tabon_requests_running 1.0\n" in get(f"{address}/metrics").text, "it has ended")
            until(lambda: up.running == 0, "its calls are closed")
        up.script.clear()
        assert [ask(address).status_code for _ in range(3)] == [200] * 3


def test_who_waits_for_calls_to_end_may_be_cancelled_too():
    """However soon the second cancellation comes, no call to the upstream stays open."""

    async def twice(up, steps):
        loop, asking = asyncio.get_running_loop(), Asking(GatewaySettings(upstream=up.url), Metrics())
        await asking.open()
        call = Call(path="chat/completions", body=ASK, deadline=loop.time() + PATIENCE)
        work = asyncio.create_task(asking.ask(call))
        await until_async(lambda: up.running == 1, "the call has arrived")
        waiting = asyncio.create_task(cancelled([work]))

        def later(left):
            return loop.call_soon(later, left - 1) if left else waiting.cancel()

        later(steps)
        await asyncio.wait({work})
        await until_async(lambda: up.running == 0, "the call is closed")
        await asking.close()

    for steps in range(1, 9):
        with Upstream(script=[HANG]) as up:
            asyncio.run(twice(up, steps))


def test_a_cancellation_that_gets_lost_is_repeated():
    """A library that takes a cancellation for its own, as anyio may, does not keep a call alive."""

    async def losing():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()
        await asyncio.Event().wait()

    async def run():
        lost = asyncio.create_task(losing())
        await asyncio.wait({lost}, timeout=0)
        await cancelled([lost])
        return lost.cancelled()

    assert asyncio.run(run())


@contextmanager
def hanging(address, record):
    """Send a request, and hang up at the end."""
    host, port = address.removeprefix("http://").split(":")
    body = json.dumps(record)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
        sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        yield sock


def test_the_real_client_breaks_off_a_stream():
    """Closing the client's stream closes the upstream's."""
    with Upstream(pause=0.05, texts=["word " * 400]) as up, gateway(up, keep_alive=0.1) as address:
        one = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
        stream = one.chat.completions.create(**ASK, stream=True)
        until(lambda: up.running == 1, "the call has arrived")
        stream.close()
        until(lambda: (up.closed, up.running) == (1, 0), "the call is closed")


def test_more_than_there_is_room_for():
    """Requests beyond the bound are 503 with Retry-After; calls beyond theirs wait."""
    with (
        Upstream(script=[HANG]) as up,
        gateway(up, requests=1) as address,
        ThreadPoolExecutor() as pool,
    ):
        first = pool.submit(ask, address)
        until(lambda: up.running == 1, "the call has arrived")
        found = ask(address)
        refused(found, 503)
        assert found.headers["retry-after"] == "1"
        up.let_go()
        assert first.result().status_code == 200  # asked again
        assert ask(address).status_code == 200
    with Upstream(knows_n=400, together=2) as up, gateway(up, calls=2) as address:
        assert ask(address, stream=True).status_code == 200
        assert (up.most_running, len(up.calls)) == (2, 6)


@pytest.mark.parametrize("stream", [False, True])
def test_an_endless_answer_is_cut(stream):
    """An answer longer than its bound is given up, whole or streamed, and not asked for again."""
    with Upstream(texts=["word " * 5000]) as up, gateway(up, draft_bytes=2000) as address:
        assert "too long" in refused(ask(address, stream=stream), 502)["message"]
        assert len(up.calls) == 1


def test_a_key_never_comes_back_in_an_error():
    """An upstream that puts a key, or any word, where its code and parameter belong is not passed on."""
    for place, key in ((place, key) for place in ("code", "param", "type") for key in (KEY, "CLIENTKEYabc")):
        told = json.dumps({"error": {"message": key, place: key, "status": key, "param": f"seed.{key}"}})
        with (
            Upstream(script=[fails(404, body=told.encode())]) as up,
            gateway(up, pass_key=True, retries=0) as address,
        ):
            found = post(
                f"{address}/v1/chat/completions", json=ASK, headers={"Authorization": f"Bearer {key}"}
            )
            error = refused(found, 404)
            assert key not in found.text + str(found.headers)
            assert (error["code"], error["param"]) == (None, "seed")


def test_one_clients_parameters_do_not_change_what_others_get():
    """A model that refuses `n` beside some parameter is asked one by one for such requests only."""
    with (
        Upstream(refuses=lambda body: body.get("n", 1) > 1 and "best_of" in body) as up,
        gateway(up) as address,
    ):
        assert ask(address, best_of=1).status_code == 200
        assert [call[2].get("n") for call in up.calls] == [5, *[None] * 5]
        assert ask(address).status_code == 200
        assert up.calls[-1][2]["n"] == 5
        assert ask(address, best_of=1).status_code == 200
        assert [call[2].get("n") for call in up.calls[-5:]] == [None] * 5  # this is remembered


@pytest.mark.parametrize("count", [1.7e308, 10**400, -5, -(10**400)], ids=["float", "int", "-5", "-int"])
@pytest.mark.parametrize("stream", [False, True])
def test_counts_that_cannot_be_are_left_out(count, stream):
    """Whatever an upstream says of its usage, the sum is JSON, and counts."""
    usage = {"prompt_tokens": count, "total_tokens": 17, "details": {"cached": count}}
    with Upstream(knows_n=400, usage=usage) as up, gateway(up) as address:
        found = ask(address, stream=stream, stream_options={"include_usage": True})
        events = (
            [one for one in found.text.split("data: ") if "total_tokens" in one] if stream else [found.text]
        )
        record = json.loads(events[-1], parse_constant=pytest.fail)
        assert record["usage"] == {"total_tokens": 85, "details": {}}


def test_long_drafts_are_left_out_until_the_query_can_be_answered():
    """Of drafts that are too much work together the longest count as empty, and the others are judged."""
    long = [" ".join(f"Opacity {draft} at l{line}." for line in range(590)) for draft in range(4)]
    texts = [f"Findings: {text}" for text in (*long, "Small effusion.")]
    with Upstream(texts=texts) as up, gateway(up) as address:
        found = ask(address, tabon={"prior": queries()[0]["prior"]})
        assert found.status_code == 200
        flags = [flag for flag in found.json()["tabon"]["flags"] if flag.startswith("too-long:")]
        assert flags
        assert "too-long:4" not in flags
        refused(ask(address, tabon={"prior": [{"findings": text} for text in long]}), 413)


BAD_REQUESTS = {
    "not JSON": CANARY,
    "a list": [CANARY],
    "no model": {**ASK, "model": None},
    "long model": {**ASK, "model": CANARY * 99},
    "no messages": {**ASK, "messages": []},
    "text as messages": {**ASK, "messages": CANARY},
    "a message without a role": {**ASK, "messages": [{"content": CANARY}]},
    "n of 0": {**ASK, "n": 0},
    "n true": {**ASK, "n": True},
    "many": {**ASK, "n": 17},
    "10,000 drafts": {**ASK, "tabon": {"drafts": 10_000}},
    "half a draft": {**ASK, "tabon": {"drafts": 1.5}},
    "stream of text": {**ASK, "stream": CANARY},
    "options of text": {**ASK, "stream_options": CANARY},
    "usage of text": {**ASK, "stream_options": {"include_usage": CANARY}},
    "own field of text": {**ASK, "tabon": CANARY},
    "unknown own field": {**ASK, "tabon": {CANARY: 1}},
    "a number as prior": {**ASK, "tabon": {"prior": 7}},
    "long prior": {**ASK, "tabon": {"prior": CANARY * 9000}},
    "long blank prior": {**ASK, "tabon": {"prior": {"findings": "\u008d" * 20_001}}},
    "many priors": {**ASK, "tabon": {"prior": [CANARY] * 99}},
    "long patient": {**ASK, "tabon": {"patient": CANARY * 99}},
    "a list as selector": {**ASK, "tabon": {"selector": [CANARY]}},
    "long selector": {**ASK, "tabon": {"selector": CANARY * 99}},
    "two selectors": {**ASK, "model": f"m@tabon-{CANARY}", "tabon": {"selector": f"{CANARY}2"}},
    "a mark without a model": {**ASK, "model": f"@tabon-{CANARY}"},
    "infinite": '{"model": "m", "messages": [{"role": "user"}], "temperature": 1e999}',
    "NaN": '{"model": "m", "messages": [{"role": "user"}], "temperature": NaN}',
    "deep": '{"a":' * 100_000,
}


def test_bad_requests_are_refused_before_anything_is_asked():
    """Each is 400 in OpenAI's form, without its text, and costs no draft."""
    with Upstream() as up, gateway(up) as address, httpx.Client(timeout=PATIENCE) as one:
        for body in BAD_REQUESTS.values():
            content = body if isinstance(body, str) else json.dumps(body)
            headers = {"content-type": "application/json"}
            refused(one.post(f"{address}/v1/chat/completions", content=content, headers=headers), 400)
        assert up.calls == []


def test_neither_text_nor_keys_are_logged(caplog):
    """Prompt, prior, drafts, model, the upstream's prose and the keys are in no log line of any library."""
    caplog.set_level(logging.DEBUG)
    prior = f"Findings: {CANARY}. Impression: {CANARY}."
    told = fails(500, body=json.dumps({"error": {"message": f"{CANARY} {KEY}"}}).encode())
    answered = set()
    with (
        Upstream(texts=[f"Findings: {CANARY}."]) as up,
        gateway(up, key=KEY, prune=True, retries=0) as address,
    ):
        for script in (
            [],
            [told] * 9,
            [RESET] * 9,
            [BAD_BODY] * 9,
            [CUT] * 9,
            [fails(400, body=told.body)] * 9,
        ):
            for fields in (
                {},
                {"stream": True},
                {"tabon": {"prior": prior}},
                {"tabon": {"prior": prior, CANARY: 1}},
            ):
                up.script[:] = script
                found = ask(address, **fields, model=CANARY, user=CANARY)
                answered.add(found.headers["x-request-id"])
                assert KEY not in found.text + str(found.headers)
                assert found.status_code == 200 or CANARY not in found.text + str(found.headers)
        metrics = get(f"{address}/metrics").text
    lines = [record.getMessage() + str(record.args) + str(record.exc_info) for record in caplog.records]
    told_of = [record.args[-1] for record in caplog.records if record.name == "tabon.service.access"]
    assert len(answered) == 24
    assert answered <= set(told_of)  # a server of other tests may still write a line of its own
    assert CANARY not in metrics + "".join(lines)
    assert KEY not in metrics + "".join(lines)
    assert "tabon_gateway_drafts_total" in metrics


def test_an_error_inside_says_nothing_of_the_text(caplog):
    """An error that nobody foresaw is 500, or an event; its message stays inside."""
    answers = query_service()

    async def broken(*_, **__):
        raise KeyError(CANARY)

    answers.select = broken
    with Upstream(pause=0.05) as up, gateway(up, answers=answers, keep_alive=0.05) as address:
        assert ask(address).status_code == 500
        assert '"error"' in ask(address, stream=True).text
    assert CANARY not in "".join(record.getMessage() for record in caplog.records)


def test_a_full_queue_does_not_lose_the_drafts():
    """Drafts that are paid for wait for the selector; only a queue that stays full is an error."""
    answers = query_service()
    select, left = answers.select, [2]

    async def busy(query, **named):
        left[0] -= 1
        if left[0] >= 0:
            raise ServiceError(NO_ROOM, "too many requests are waiting", "try again later", retry_after=0)
        return await select(query, **named)

    answers.select = busy
    with Upstream() as up, gateway(up, answers=answers) as address:
        assert ask(address).status_code == 200
        left[0] = 99
        assert "too many requests" in refused(ask(address), 429)["message"]
    with pytest.raises(ServiceError) as full:
        Batcher(list, BatchSettings(queue=0), Metrics()).submit("anything")
    assert full.value.status == NO_ROOM


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_an_unknown_certificate_is_refused(tmp_path):
    """An upstream that cannot prove who it is gets nothing: neither text nor key."""
    subprocess.run(
        [shutil.which("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
         "-days", "1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key",
         "-out", tmp_path / "cert"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with Upstream(tls=context) as up, gateway(up, key=KEY, retries=0) as address:
        assert "ConnectError" in refused(ask(address), 502)["message"]
        assert up.calls == []


@pytest.mark.heavy
def test_schemathesis_finds_nothing(tmp_path):
    """All checks of schemathesis over the gateway's routes, a few examples each; 413 is a refusal too."""
    from schema_run import check_all

    with Upstream() as up, gateway(up) as address:
        check_all(address, tmp_path, "--include-path", "/v1/chat/completions", "--include-path", "/v1/models")
