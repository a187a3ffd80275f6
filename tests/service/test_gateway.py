"""Any OpenAI client gets the best of N drafts: real clients, a real server, a loopback upstream."""

import asyncio
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stdout
from itertools import product
from pathlib import Path

import pytest

from tabon import Selector
from tabon.encoders.hashing import HashingEncoder
from tabon.generation.prompts import fill, get_prompt
from tabon.selectors.setup import answer
from tabon.service.parsing import NOTICE
from tabon.text.records import query_from_record
from tabon.text.reports import report_from_record

httpx = pytest.importorskip("httpx", reason="the gateway needs tabon[gateway]")
openai = pytest.importorskip("openai", reason="the gateway is tested with the openai client")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from gateway_upstream import TEXT, USAGE, Upstream, gateway, written  # noqa: E402
from service_server import PATIENCE, bank, queries, query_service  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs/guide/gateway.md"
ASK = {"model": "up-1", "messages": [{"role": "user", "content": "Write the report."}]}
KEY = "sk-upstream-key"
TOKEN = b"a-token-of-some-length"


@pytest.fixture(scope="module")
def running():
    """Run one upstream and one gateway for the tests of this file that change nothing."""
    with Upstream() as up, gateway(up) as address:
        yield up, address


def client(address, key="none"):
    """Return the real client, which does not ask again by itself."""
    return openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0, timeout=PATIENCE)


def picked(record):
    """Return the record that `tabon select` writes."""
    return json.loads(
        answer(Selector(bank(), encoder=HashingEncoder()), [query_from_record(record)]).selections
    )


def as_written(record):
    """Return a simulated query with its drafts as text."""
    return {**record, "candidates": written(record)}


def test_picks_are_those_of_tabon_select():
    """The draft that comes back, its distances and its margin are those of `tabon select`, n asked or not."""
    with Upstream() as up, gateway(up) as address:
        for record, knows_n in product(map(as_written, queries()), (True, 400, "fewer")):
            up.texts, up.knows_n = record["candidates"], knows_n
            own = {"prior": record["prior"], "patient": record["patient"]}
            asked = {**ASK, "model": f"{knows_n}", "seed": 0}
            found = client(address).chat.completions.create(**asked, extra_body={"tabon": own})
            wanted = picked(record)
            assert found.choices[0].message.content == record["candidates"][wanted["selected"]]
            assert found.tabon["distances"] == wanted["total_distances"]
            for name in ("selected", "margin", "tied", "flags", "abstained", "p", "signature"):
                assert found.tabon[name] == wanted[name]
            assert (found.tabon["notice"], found.tabon["returned"]) == (NOTICE, [wanted["selected"]])


def test_json_is_read_once_and_written_once(running, monkeypatch):
    """Of five drafts in one call nothing is written and parsed again on the way to the pick."""
    _, address = running
    seen = Counter()

    def counted(name, real):
        def call(*values, **options):
            seen[name] += sys._getframe(1).f_globals["__name__"].startswith("tabon.")
            return real(*values, **options)

        return call

    body = {**ASK, "tabon": {"prior": queries()[0]["prior"], "drafts": 5}}
    for name in ("loads", "dumps"):
        monkeypatch.setattr(json, name, counted(name, getattr(json, name)))
    found = httpx.post(f"{address}/v1/chat/completions", json=body, timeout=PATIENCE)
    assert found.json()["tabon"]["drafts"] == 5
    assert seen == {
        "loads": 2,  # the request and the upstream's answer
        "dumps": 3,  # what is asked of the upstream, the digest of its parameters, the answer
    }


@pytest.mark.parametrize("stream", [False, True])
def test_the_real_client(running, stream):
    """The plain client gets one completion, its usage and the reason, whole or in chunks."""
    _, address = running
    record = queries()[0]
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    extra = {"tabon": {"prior": record["prior"], "drafts": 3}}
    found = client(address).chat.completions.create(**ASK, **options, extra_body=extra)
    if stream:
        chunks = list(found)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        [own] = [chunk.tabon for chunk in chunks if getattr(chunk, "tabon", None)]
        assert chunks[0].choices[0].delta.role == "assistant"
        assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + [
            "stop"
        ]
        assert chunks[-2].tabon == own
        assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], USAGE["total_tokens"])
    else:
        text, own = found.choices[0].message.content, found.tabon
        assert found.usage.total_tokens == USAGE["total_tokens"]
        assert (found.id, found.model, found.object) == ("chatcmpl-up", "up-1", "chat.completion")
    assert text == TEXT.format(number=own["selected"])
    assert (own["drafts"], len(own["distances"]), own["failed"]) == (3, 3, {})


def test_the_real_async_client(running):
    """The asynchronous client works as well, whole and in chunks, several requests at once."""
    _, address = running
    extra = {"tabon": {"prior": queries()[0]["prior"]}}

    async def ask():
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as one:
            whole = [one.chat.completions.create(**ASK, extra_body=extra) for _ in range(4)]
            found = await asyncio.gather(*whole)
            stream = await one.chat.completions.create(**ASK, stream=True, extra_body=extra)
            chunks = [chunk async for chunk in stream]
            return found, chunks, [model.id async for model in one.models.list()]

    found, chunks, models = asyncio.run(ask())
    texts = {one.choices[0].message.content for one in found}
    assert texts == {"".join(chunk.choices[0].delta.content or "" for chunk in chunks)}
    assert all(chunk.usage is None for chunk in chunks)
    assert models == ["up-1"]


def test_n_is_how_many_come_back(running):
    """The client's n returns the n best, best first; N is at least n; usage counts all drafts."""
    up, address = running
    extra = {"tabon": {"prior": queries()[0]["prior"], "drafts": 4}}
    found = client(address).chat.completions.create(**ASK, n=3, extra_body=extra)
    distances = found.tabon["distances"]
    best = sorted(range(4), key=lambda place: (distances[place], place))[:3]
    assert found.tabon["returned"] == best
    assert [choice.message.content for choice in found.choices] == [TEXT.format(number=n) for n in best]
    assert [choice.index for choice in found.choices] == [0, 1, 2]
    assert up.calls[-1][2]["n"] == 4
    assert "tabon" not in up.calls[-1][2]
    client(address).chat.completions.create(**ASK, n=7, extra_body=extra)
    assert up.calls[-1][2]["n"] == 7
    streamed = client(address).chat.completions.create(**ASK, n=2, stream=True, extra_body=extra)
    texts = ["", ""]
    for chunk in streamed:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == [TEXT.format(number=n) for n in best[:2]]


@pytest.mark.parametrize("prompt", ["P3", "P3-hardened"])
def test_the_prior_of_a_p3_prompt_is_used(running, prompt):
    """A client that sends tabon's own P3 prompt needs no extra field, with an image or without."""
    _, address = running
    prior = queries()[1]["prior"]
    text = fill(get_prompt(prompt), prior=report_from_record(prior))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    wanted = client(address).chat.completions.create(**ASK, extra_body={"tabon": {"prior": prior}}).tabon
    for content in (text, [image, {"type": "text", "text": text}]):
        messages = [{"role": "system", "content": "x"}, {"role": "user", "content": content}]
        found = client(address).chat.completions.create(model="m", messages=messages)
        assert found.tabon == wanted
    told = client(address).chat.completions.create(
        model="m", messages=messages, extra_body={"tabon": {"prior": None}}
    )
    assert told.tabon["abstained"] == "empty-prior"  # the field wins over the prompt


@pytest.mark.parametrize("stream", [False, True])
def test_an_abstention_is_no_error(running, stream):
    """Without a prior the first draft comes back, and the answer says that nothing was picked."""
    _, address = running
    found = client(address).chat.completions.create(**ASK, stream=stream)
    if stream:
        chunks = list(found)
        text, own = "".join(c.choices[0].delta.content or "" for c in chunks), chunks[-1].tabon
    else:
        text, own = found.choices[0].message.content, found.tabon
    assert text == TEXT.format(number=0)
    assert (own["selected"], own["returned"], own["abstained"]) == (None, [0], "empty-prior")


def test_a_model_that_knows_no_n_is_remembered():
    """After one refusal each draft has its own call, with its own seed, all at the same time."""
    for knows_n in (400, 422, "fewer"):
        with Upstream(knows_n=knows_n, together=5) as up, gateway(up) as address:
            found = client(address).chat.completions.create(**ASK, seed=7)
            asked = [body.get("n") for _, _, body in up.calls]
            first = 1 if knows_n == "fewer" else 0
            assert asked == [5] + [None] * (5 - first)
            assert sorted(body["seed"] for _, _, body in up.calls[1:]) == list(range(7 + first, 12))
            assert found.usage.total_tokens == 5 * USAGE["total_tokens"]
            up.calls.clear()
            list(client(address).chat.completions.create(**ASK, seed=7, stream=True))
            assert [body.get("n") for _, _, body in up.calls] == [None] * 5
            assert up.most_running == 5
            client(address).chat.completions.create(**{**ASK, "model": "another"}, seed=7)
            assert up.calls[5][2].get("n") == 5


def test_other_fields_go_to_the_upstream_as_they_are(running):
    """Tools, formats, unknown fields and numbers are forwarded; n, stream and tabon are the gateway's own."""
    up, address = running
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    fields = {
        "temperature": 0.7, "tools": [tool], "response_format": {"type": "text"}, "logprobs": True,
        "unknown": {"a": [1, None, "é\ud800"]}, "stop": ["\n\n"], "seed": 3, "user": "u",
    }  # fmt: skip
    body = {**ASK, **fields, "tabon": {"drafts": 1}, "n": None, "stream": None, "stream_options": None}
    headers = {"content-type": "application/json"}
    found = httpx.post(
        f"{address}/v1/chat/completions", content=json.dumps(body), headers=headers, timeout=PATIENCE
    )
    assert found.status_code == 200
    assert up.calls[-1][2] == {**ASK, **fields}


def test_tool_calls_count_as_drafts_without_text():
    """A draft that calls a tool is passed on whole, in a completion and in chunks."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"}
    prior = {"tabon": {"prior": queries()[0]["prior"]}}
    with Upstream(message=message, ignores_stream=True) as up, gateway(up) as address:
        found = client(address).chat.completions.create(**ASK, extra_body=prior)
        assert found.choices[0].message.tool_calls[0].function.arguments == '{"x": 1}'
        assert (found.choices[0].finish_reason, found.tabon["abstained"]) == (
            "tool_calls",
            "all-drafts-empty",
        )
        chunks = list(client(address).chat.completions.create(**ASK, stream=True, extra_body=prior))
        calls = [one for chunk in chunks for one in chunk.choices[0].delta.tool_calls or []]
        assert [(one.index, one.function.name) for one in calls] == [(0, "f")]
        assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == "tool_calls"


def test_an_over_long_draft_is_not_picked():
    """A draft longer than the service takes is named, and another one is picked."""
    texts = ["Findings: " + "Clear lungs. " * 3000, "Findings: Small effusion.\nImpression: Effusion."]
    with Upstream(texts=texts) as up, gateway(up) as address:
        extra = {"tabon": {"prior": queries()[0]["prior"], "drafts": 2}}
        found = client(address).chat.completions.create(**ASK, extra_body=extra)
        assert found.choices[0].message.content == texts[1]
        assert "too-long:0" in found.tabon["flags"]


def test_keys_go_where_they_belong(monkeypatch):
    """The upstream sees its own key, or the client's where that is passed on; never the service's token."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nothing there: a proxy would fail
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    token = TOKEN.decode()
    for settings, service_token, wanted in (
        ({"key": KEY}, None, f"Bearer {KEY}"),
        ({"key": KEY}, TOKEN, f"Bearer {KEY}"),
        ({}, TOKEN, None),
        ({"pass_key": True}, None, f"Bearer {token}"),
    ):
        with Upstream() as up, gateway(up, token=service_token, **settings) as address:
            headers = {"authorization": f"Bearer {token}"}
            sent = httpx.post(
                f"{address}/v1/chat/completions", json=ASK, headers=headers, trust_env=False, timeout=PATIENCE
            )
            assert sent.status_code == 200
            listed = httpx.get(f"{address}/v1/models", headers=headers, trust_env=False, timeout=PATIENCE)
            assert listed.json()["data"][0]["id"] == "up-1"
            assert [headers.get("Authorization") for _, headers, _ in up.calls] == [wanted] * 2
            assert up.calls[0][1]["User-Agent"].startswith("tabon-gateway/")


def test_the_client_understands_the_fence():
    """A wrong token, refused by the service's own request guard, is the error that the client has for it."""
    with Upstream() as up, gateway(up, token=TOKEN) as address:
        with pytest.raises(openai.AuthenticationError, match="token is missing or wrong"):
            client(address).chat.completions.create(**ASK)
        assert client(address, TOKEN.decode()).chat.completions.create(**ASK).choices
        assert len(up.calls) == 1


def blocks(language):
    """Return the fenced blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_command_of_the_page_works(running):
    """The curl command of docs/guide/gateway.md, run as it stands but for the port, gives a completion."""
    _, address = running
    [command] = blocks("sh")
    words = shlex.split(command.replace("http://127.0.0.1:8765", address))
    assert words[0] == "curl"
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
    found = json.loads(done.stdout)
    assert found["choices"][0]["message"]["content"] == TEXT.format(number=found["tabon"]["selected"])
    assert len(found["tabon"]["distances"]) == 3


def test_the_programs_of_the_page_work():
    """The Python of docs/guide/gateway.md, run as it stands but for the port, prints the picked draft."""
    program, names = "\n".join(blocks("python")), {}
    answers = query_service(others=["consensus:rouge-l-f"])
    with Upstream() as up, gateway(up, answers=answers) as address, redirect_stdout(io.StringIO()) as printed:
        exec(program.replace("http://127.0.0.1:8765", address), names)  # noqa: S102
    assert printed.getvalue().startswith("Findings: Clear lungs, draft ")
    assert names["answer"].tabon["signature"].startswith("selector:consensus:rouge-l-f|")
