"""The official clients, against a loopback server that answers like the provider and checks the request."""

import asyncio
import logging
import re
import resource
import socket
import subprocess
import sys
import traceback
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from pathlib import Path

import pytest

import provider_server as server_side
from provider_cases import MAKERS, PNG, PROMPT, PROVIDERS, SECRETS, request_of
from provider_server import CUT, EMPTY, HANG, KEY, MALFORMED, OK, RESET, ProviderServer, body, finish, status
from tabon.errors import GenerationError, TryAgainError
from tabon.generation.protocol import EncodedImage
from tabon.generation.providers.failures import MOST_BYTES, error_codes, retry_after
from tabon.generation.providers.http_generator import source_of
from tabon.generation.providers.openai_compatible import OpenAICompatibleGenerator
from waiting import LIMIT

for name in ("google.genai", "mistralai.client", "openai"):
    pytest.importorskip(name, reason="the provider extras are not installed")

JPEG = EncodedImage(server_side.MAGIC["image/jpeg"] + bytes(range(255, -1, -1)), "image/jpeg", "1" * 64)

each_provider = pytest.mark.parametrize("provider", PROVIDERS)


async def drawn(generator, requests):
    """Ask one after another, then close."""
    try:
        return [await generator.generate(request) for request in requests]
    finally:
        await generator.close()


def ask(server, provider, *requests, model="model-1", key=KEY, timeout=LIMIT):
    """Make the official client for this server, ask and close."""

    async def run():
        maker = MAKERS[provider]
        generator = maker(model, api_key=key, base_url=server.url(provider), timeout=timeout)
        return await drawn(generator, requests or [request_of()])

    return asyncio.run(run())


def answer_to(provider, behaviour):
    """Return the answer when the server behaves like this."""
    with ProviderServer(script=[behaviour]) as server:
        (answer,) = ask(server, provider)
    assert server.violations == []
    assert server.calls == 1
    return answer


def failure_of(provider, behaviour, expected, **options):
    """Return the error when the server behaves like this; it holds no canary and was not retried."""
    with ProviderServer(script=[behaviour]) as server, pytest.raises(expected) as caught:
        ask(server, provider, **options)
    assert server.calls == 1
    on_progress = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert not any(secret in on_progress for secret in SECRETS)
    assert caught.value.__context__ is None
    return caught.value


@each_provider
def test_a_good_answer_has_every_field(provider):
    """Text, reason, version, tokens and the provider's own body come back."""
    answer = answer_to(provider, OK)
    assert answer.outcome == "ok"
    assert answer.text == "Findings: Clear lungs, seed 7.\nImpression: Normal 7."
    assert answer.finish_reason == ("STOP" if provider == "gemini" else "stop")
    assert answer.model_version == "model-1-001"
    assert (answer.input_tokens, answer.output_tokens) == (270, 17)
    assert answer.raw["responseId" if provider == "gemini" else "id"] == "answer-7"


@each_provider
@pytest.mark.parametrize("image", [PNG, JPEG], ids=lambda image: image.media_type)
def test_the_request_says_what_was_asked(provider, image):
    """Model, prompt, image, seed and parameters reach the provider as they are."""
    request = request_of(41, image=image, temperature=0.7, top_p=0.9, max_tokens=99)
    with ProviderServer(models=frozenset({"model-1"})) as server:
        ask(server, provider, request)
    assert server.violations == []
    (asked,) = server.asked
    assert (asked.model, asked.prompt, asked.seed) == ("model-1", PROMPT, 41)
    assert (asked.temperature, asked.top_p, asked.max_tokens, asked.count) == (0.7, 0.9, 99, 1)
    assert (asked.image, asked.media_type) == (image.data, image.media_type)


@each_provider
def test_a_request_without_an_image_is_text_alone(provider):
    """A model that reads no images is sent none."""
    with ProviderServer(image=False) as server:
        ask(server, provider, request_of(image=None))
    assert server.violations == []
    assert server.asked[0].kinds == ["text"]


@each_provider
def test_other_seeds_draw_other_drafts(provider):
    """Each seed is sent, and each call is billed once."""
    with ProviderServer() as server:
        answers = ask(server, provider, *(request_of(seed) for seed in range(3)))
    assert len({answer.text for answer in answers}) == 3
    assert server.billed == server.calls == 3


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("gemini-2.5-flash-lite", {"thinkingbudget": 0}),
        ("gemini-3.1-flash-lite-preview", {"thinkinglevel": "MINIMAL"}),
        ("gemini-2.5-pro", None),
    ],
)
def test_gemini_is_asked_to_think_as_little_as_it_can(model, least):
    """Thoughts count against the 512 output tokens; the paper's models are asked for none or few."""
    with ProviderServer() as server:
        ask(server, "gemini", model=model)
    asked = server.asked[0].thinking  # both spellings are protocol buffers' JSON
    assert (asked and {key.replace("_", "").lower(): value for key, value in asked.items()}) == least
    assert server.asked[0].max_tokens == 512


def test_a_long_seed_fits_into_what_gemini_takes():
    """Gemini's seeds are 31 bits; a longer one is folded, the same way each time."""
    with ProviderServer() as server:
        ask(server, "gemini", request_of(2**40 + 5))
    assert server.violations == []
    assert server.asked[0].seed == 5


@each_provider
def test_name_and_reach(provider):
    """A generator is journaled under its provider's name; only loopback servers of one's own are local."""
    generator = MAKERS[provider]("model-1", api_key=KEY, base_url="http://localhost:1/v1")
    asyncio.run(generator.close())
    assert generator.model == f"{provider}:model-1"
    assert generator.reach == ("local" if provider == "openai" else "any")
    assert KEY not in repr(generator)


@pytest.mark.parametrize(
    ("base_url", "reach", "expected"),
    [
        ("http://127.0.0.1:8000/v1", None, "local"),
        ("http://[::1]:8000/v1", None, "local"),
        ("http://10.0.0.7:8000/v1", None, "any"),
        ("https://localhost.example.org/v1", None, "any"),
        ("http://10.0.0.7:8000/v1", "zero-retention", "zero-retention"),
    ],
)
def test_the_reach_of_an_openai_compatible_server(base_url, reach, expected):
    """A server on the machine is local by default; for others the caller may say more."""
    generator = OpenAICompatibleGenerator("m", base_url=base_url, reach=reach)
    asyncio.run(generator.close())
    assert generator.reach == expected


@each_provider
@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_passing_failure_is_one_to_try_again(provider, code):
    """The runner may ask again; the client itself did not."""
    error = failure_of(provider, status(code, retry_after="2.5"), TryAgainError)
    assert f"HTTP {code}" in str(error)
    assert error.retry_after == 2.5


@each_provider
def test_retry_after_may_be_missing(provider):
    """Without a word from the provider there is no time to wait."""
    assert failure_of(provider, status(503), TryAgainError).retry_after is None


@each_provider
def test_retry_after_may_be_a_date(provider):
    """The HTTP date form counts from now."""
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 0 <= failure_of(provider, status(429, retry_after=then), TryAgainError).retry_after <= 60


def test_gemini_says_how_long_to_wait_in_the_body():
    """RetryInfo counts as Retry-After does."""
    assert failure_of("gemini", status(429, retry_delay="34.5s"), TryAgainError).retry_after == 34.5


@pytest.mark.parametrize("value", ["soon", "nan", "inf", "-3", "Mon, 99 Foo 2026 99:00:00 GMT"])
def test_an_odd_retry_after_is_no_time_to_wait(value):
    """Nonsense in the header neither fails nor makes the runner wait for ever."""
    assert retry_after({"retry-after": value}, None) in {None, 0.0}


@each_provider
@pytest.mark.parametrize("code", [400, 401, 403, 404, 413, 422])
def test_a_lasting_failure_says_the_way_out(provider, code):
    """One sentence that names the model, the status and what to do."""
    error = failure_of(provider, status(code), GenerationError)
    assert f"{provider}:model-1" in str(error)
    assert f"HTTP {code}" in str(error)
    assert re.search(r"; (set|check|it may)", str(error))


@each_provider
def test_a_wrong_key_names_the_variable(provider):
    """The message says where the key comes from, and not what it is."""
    with (
        ProviderServer() as server,
        pytest.raises(GenerationError, match=f"{provider.upper()}_API_KEY") as caught,
    ):
        ask(server, provider, key="wrong-canary-key")
    assert "wrong-canary-key" not in repr(caught.value)
    assert server.billed == 0


@each_provider
@pytest.mark.parametrize("key", ["", " ", "two words", "tab\tkey", "schlüssel", "line\nbreak"])
def test_a_key_that_cannot_be_sent_is_refused(provider, key):
    """Nothing is sent, and the key is not repeated."""
    with pytest.raises(GenerationError, match=f"{provider.upper()}_API_KEY") as caught:
        MAKERS[provider]("m", api_key=key, base_url="http://127.0.0.1:1")
    assert len(key) < 2 or key not in str(caught.value)


@each_provider
@pytest.mark.parametrize(
    "base_url", ["no-address", "ftp://host", "http://", "http://host:port", "http://h:99999"]
)
def test_an_address_that_is_none_is_refused(provider, base_url):
    """A base URL without scheme or host fails at once, not on every call."""
    with pytest.raises(GenerationError, match="base URL"):
        MAKERS[provider]("m", api_key=KEY, base_url=base_url)


@pytest.mark.parametrize("model", ["gemini-3.1-flash-lite-preview", "gemini-2.5-flash-lite"])
def test_a_retired_gemini_of_the_paper_names_what_to_use(model):
    """The paper's two models are being shut down."""
    error = failure_of("gemini", status(404), GenerationError, model=model)
    assert "gemini-3.1-flash-lite " in str(error)


def test_an_account_without_credit_is_not_asked_again():
    """OpenAI says 429 for an empty account too, where waiting does not help."""
    error = failure_of("openai", status(429, error="insufficient_quota"), GenerationError)
    assert "credit" in str(error)


@each_provider
def test_a_redirect_is_not_followed(provider):
    """The key header goes to the address that was given and to no other."""
    with ProviderServer() as other:
        elsewhere = (("Location", other.url(provider)),)
        moved = server_side.Behaviour(kind="body", status=307, headers=elsewhere, body=b"")
        error = failure_of(provider, moved, GenerationError)
    assert other.calls == 0
    assert "HTTP 307" in str(error)


@each_provider
def test_a_hang_ends_at_the_timeout(provider):
    """A provider that never answers is one to try again."""
    with ProviderServer(script=[HANG]) as server, pytest.raises(TryAgainError, match=r"within 1\.5 s"):
        ask(server, provider, timeout=1.5)
    assert server.calls <= 1  # none where the machine was too slow to reach the server


@each_provider
@pytest.mark.parametrize("behaviour", [RESET, CUT], ids=["reset", "cut"])
def test_a_lost_connection_is_one_to_try_again(provider, behaviour):
    """Before the first byte or in the middle of the body."""
    error = failure_of(provider, behaviour, TryAgainError)
    assert "127.0.0.1" in str(error)


@each_provider
def test_a_server_that_is_not_there_is_one_to_try_again(provider):
    """A refused connection may be a server that is starting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def run():
        generator = MAKERS[provider]("m", api_key=KEY, base_url=server_side.url_of(provider, port))
        await drawn(generator, [request_of()])

    with pytest.raises(TryAgainError, match=f"127.0.0.1:{port}"):
        asyncio.run(run())


ODD_BODIES = {
    "half": MALFORMED,
    "html": body(b"<html>gateway</html>", content_type="text/html"),
    "nothing": body(b""),
    "null": body(b"null"),
    "list": body(b"[1, 2]"),
    "string": body(b'"text"'),
    "object": body(b"{}"),
    "no choices": body(b'{"choices": [], "candidates": [], "model": "m"}'),
    "null choices": body(b'{"choices": null, "candidates": null}'),
    "odd choices": body(b'{"choices": [3], "candidates": [3]}'),
    "error": body(b'{"error": {"message": "overloaded", "code": 503}}'),
    "bytes": body(b"\xff\xfe\x00"),
}


@each_provider
@pytest.mark.parametrize("behaviour", ODD_BODIES.values(), ids=ODD_BODIES)
def test_a_body_that_is_no_answer_is_kept_as_malformed(provider, behaviour):
    """It may have been billed, so it is not thrown away and not asked for again."""
    answer = answer_to(provider, behaviour)
    assert (answer.outcome, answer.text) == ("malformed", "")
    if behaviour is MALFORMED:
        assert answer.raw == '{"candidates": ['


@cache
def bomb():
    """A little that unpacks to 400 MB."""
    packer = zlib.compressobj(level=1, wbits=31)  # as gzip
    return b"".join([*(packer.compress(bytes(10**6)) for _ in range(400)), packer.flush()])


@each_provider
@pytest.mark.parametrize("code", [200, 503])
def test_a_compressed_answer_is_not_unpacked(provider, code):
    """A few megabytes that become gigabytes are refused in one sentence; no memory is taken for them."""
    headers = (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))
    act = server_side.Behaviour(kind="body", status=code, body=bomb(), headers=headers)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = failure_of(provider, act, TryAgainError if code == 503 else GenerationError)
    assert code == 503 or "compresses its answers" in str(error)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


@each_provider
@pytest.mark.parametrize("size", [MOST_BYTES - 2, MOST_BYTES + 1, 5 * MOST_BYTES])
def test_an_answer_that_is_too_long_is_cut(provider, size):
    """It may have been billed, so it is kept as malformed; of a body that is no answer little is kept."""
    answer = answer_to(provider, body(b'"' + b"x" * size))
    assert (answer.outcome, answer.raw) == ("malformed", '"' + "x" * 9_999)


@each_provider
@pytest.mark.parametrize("charset", ["zlib", "bz2", "hex", "idna", "utf-7", "undefined", "rot13", "no-such"])
@pytest.mark.parametrize("code", [200, 503])
def test_the_named_encoding_is_not_followed(provider, charset, code):
    """JSON is UTF-8; an encoding that unpacks bytes or raises is not looked up."""
    act = body(b'{"odd": "\xc3\xa4"}', code=code, content_type=f"application/json; charset={charset}")
    if code == 503:
        failure_of(provider, act, TryAgainError)
    else:
        assert answer_to(provider, act).outcome == "malformed"


@pytest.mark.parametrize(
    ("code", "passes"),
    [
        ("model_not_found", True),
        ("INVALID_ARGUMENT", True),
        ("overloaded", True),
        ("1500", True),
        ("CLIENTKEYabc", False),
        ("sk_live_51H8xyz", False),
        ("AIzaSyA1b2c3", False),
        ("canarykey", False),
        ("123456789", False),
        ("a_" + "b" * 60, False),
        ("Zyxomma effusion", False),
    ],
)
def test_a_code_that_may_be_a_key_is_not_repeated(code, passes):
    """Of an error only codes of the field pass: known ones, and words joined by underscores."""
    for name in ("code", "type", "status", "reason"):
        assert list(error_codes({"error": {name: code}})) == ([code] if passes else [])


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("https://Host.Org:443/v1", "https://host.org/v1"),
        ("http://user:secret@host:80", "http://host"),
        ("http://[::1]:8000/v1?key=secret#x", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_has_one_form_without_secrets(address, source):
    """The same server is the same source, however its address is written."""
    assert source_of(address) == source


@each_provider
def test_a_provider_s_own_address_needs_no_name(provider):
    """Gemini's and Mistral's own servers are what their names say; any other server is named."""
    for url, named in ((None, False), ("http://127.0.0.1:1/v1", True)):
        if url is None and provider == "openai":
            continue
        generator = MAKERS[provider]("m", api_key=KEY, base_url=url)
        asyncio.run(generator.close())
        assert generator.source == ("http://127.0.0.1:1/v1" if named else None)


@each_provider
def test_an_error_page_is_read_by_its_status(provider):
    """A gateway's HTML under a 502 is one to try again."""
    page = body(b"<html>Bad gateway</html>", code=502, content_type="text/html")
    failure_of(provider, page, TryAgainError)


@each_provider
def test_an_empty_answer_is_empty(provider):
    """The provider says all is well and wrote nothing."""
    assert answer_to(provider, EMPTY).outcome == "empty"
    assert answer_to(provider, finish(None, text=" \n")).outcome == "empty"


GEMINI_BLOCKS = ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"]
REASONS = [
    *(("gemini", reason, "", "blocked") for reason in GEMINI_BLOCKS),
    ("gemini", "MAX_TOKENS", "Findings: Cle", "truncated"),
    ("gemini", "MAX_TOKENS", "", "truncated"),
    ("gemini", "OTHER", "", "malformed"),
    ("gemini", "OTHER", "Findings: Clear.", "ok"),
    ("gemini", "LANGUAGE", "", "malformed"),
    ("gemini", "MALFORMED_RESPONSE", "", "malformed"),
    ("mistral", "stop", "Findings: Clear.", "ok"),
    ("mistral", "length", "Findings: Cle", "truncated"),
    ("mistral", "model_length", "Findings: Cle", "truncated"),
    ("mistral", "error", "Findings: Cle", "malformed"),
    ("mistral", "tool_calls", "", "malformed"),
    ("mistral", "a-new-one", "", "malformed"),
    ("openai", "stop", "Findings: Clear.", "ok"),
    ("openai", "length", "Findings: Cle", "truncated"),
    ("openai", "content_filter", "", "blocked"),
    ("openai", "tool_calls", "", "malformed"),
    ("openai", "a-new-one", "Findings: Clear.", "ok"),
]


@pytest.mark.parametrize(("provider", "reason", "text", "outcome"), REASONS)
def test_a_finish_reason_has_one_meaning(provider, reason, text, outcome):
    """Every way a provider may stop is stored as what it is."""
    answer = answer_to(provider, finish(reason, text=text))
    assert (answer.outcome, answer.finish_reason, answer.text) == (outcome, reason, text)
    assert answer.raw is not None


def test_a_finish_reason_gemini_does_not_have_yet():
    """The client warns of it; without text there is nothing to keep but the body."""
    with pytest.warns(UserWarning, match="not a valid FinishReason"):
        answer = answer_to("gemini", finish("A_NEW_ONE", text=""))
    assert (answer.outcome, answer.finish_reason) == ("malformed", "A_NEW_ONE")


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "PROHIBITED_CONTENT"])
def test_a_prompt_that_gemini_blocks(reason):
    """There is no candidate then, only a reason."""
    answer = answer_to("gemini", server_side.Behaviour(blocked=reason))
    assert (answer.outcome, answer.finish_reason, answer.input_tokens) == ("blocked", reason, 270)
    assert answer.output_tokens is None


def test_a_refusal_is_a_refusal():
    """OpenAI's protocol has a field for it."""
    answer = answer_to("openai", server_side.REFUSAL)
    assert answer.outcome == "refused"
    assert answer.raw["choices"][0]["message"]["refusal"]


def test_mistral_may_answer_in_chunks():
    """Thoughts are left out, the text is joined."""
    chunks = (
        b'{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": {"prompt_tokens": 1, '
        b'"completion_tokens": 2, "total_tokens": 3}, "choices": [{"index": 0, "finish_reason": "stop", '
        b'"message": {"role": "assistant", "content": [{"type": "thinking", "thinking": []}, '
        b'{"type": "text", "text": "Findings: "}, {"type": "text", "text": "Clear."}]}}]}'
    )
    assert answer_to("mistral", body(chunks)).text == "Findings: Clear."


def test_a_local_server_may_count_no_tokens():
    """Some servers leave usage and refusal out."""
    bare = b'{"choices": [{"message": {"content": "Findings: Clear."}, "finish_reason": "stop"}]}'
    answer = answer_to("openai", body(bare))
    assert (answer.outcome, answer.text, answer.input_tokens) == ("ok", "Findings: Clear.", None)


@each_provider
def test_no_log_holds_the_key_or_the_prompt(provider, caplog, monkeypatch):
    """Not at DEBUG either, nor where the client's own debugging is switched on."""
    monkeypatch.setenv("MISTRAL_DEBUG", "1")
    caplog.set_level(logging.DEBUG)
    with ProviderServer(script=[OK, MALFORMED, status(400)]) as server, pytest.raises(GenerationError):
        ask(server, provider, *(request_of(seed) for seed in range(3)))
    assert server.calls == 3
    assert caplog.records  # the clients do log
    assert not any(secret in caplog.text for secret in SECRETS)


@each_provider
def test_a_proxy_in_the_environment_is_not_used_on_loopback(provider, monkeypatch):
    """What is meant for this machine stays on it."""
    with ProviderServer() as proxy, ProviderServer() as server:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        ask(server, provider)
    assert (server.calls, proxy.calls) == (1, 0)


@each_provider
def test_many_calls_run_side_by_side(provider):
    """The client queues nothing: no call is answered before all 105 are there."""

    async def run(server):
        generator = MAKERS[provider]("m", api_key=KEY, base_url=server.url(provider), timeout=LIMIT)
        answers = await asyncio.gather(*(generator.generate(request_of(seed)) for seed in range(105)))
        await generator.close()
        return answers

    with ProviderServer(gate=105) as server:
        answers = asyncio.run(run(server))
    assert all(f"seed {seed}." in answer.text for seed, answer in enumerate(answers))
    name = "responseId" if provider == "gemini" else "id"
    assert [answer.raw[name] for answer in answers] == [f"answer-{seed}" for seed in range(105)]
    assert (server.violations, server.billed) == ([], 105)


def test_the_server_runs_as_a_process_and_bills(tmp_path):
    """It prints its port, follows its script, and writes a line for each draft it sold."""
    bill = tmp_path / "bill.tsv"
    script = Path(server_side.__file__)
    command = [sys.executable, script, "--port", "0", "--billing", bill, "--script", "429=0.1,ok,500"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        server = ProviderServer(port=int(process.stdout.readline()))
        for expected in (TryAgainError, None, TryAgainError, None):
            if expected:
                with pytest.raises(expected):
                    ask(server, "openai")
            else:
                ask(server, "openai")
        process.kill()
    assert [line.split("\t")[:3] for line in bill.read_text().splitlines()] == [
        ["openai", "model-1", "7"]
    ] * 2
