"""Hostile answers of a provider: each is a draft, a malformed one, or a sentence; spending never falls."""

import asyncio
import json
import math
from copy import deepcopy
from dataclasses import replace

import pytest

from budgets import budget, seeded
from draft_records import KEY as DRAFT
from provider_cases import MAKERS, PROVIDERS, SECRETS, request_of
from provider_server import KEY, ProviderServer, body
from tabon.errors import TabonError, TryAgainError
from tabon.generation.journal import Journal, draft_line
from tabon.generation.providers import command
from tabon.generation.providers.gemini import GeminiBatch
from tabon.generation.providers.http_generator import answer_from
from tabon.generation.providers.mistral import MistralBatch
from tabon.generation.runner import Budget, Price
from waiting import LIMIT

CASES = budget(60, 2_000)  # of each provider
TYPES = [
    "application/json", "text/plain", "text/html; charset=latin-1", "text/event-stream", "image/png",
    "application/json; charset=zlib", "application/json; charset=hex", "x", "multipart/form-data",
]  # fmt: skip
ODD = [
    None, True, -1, 0, 10**30, 1e308, -1e308, float("nan"), float("inf"), "", "x", KEY, "\ud800", [], {},
    [[]], [None], {"a": []}, "9" * 300,
]  # fmt: skip
CODES = [200, 200, 200, 200, 200, 201, 204, 206, 300, 400, 401, 404, 418, 429, 500, 503]
WHOLE = {
    "gemini": {
        "candidates": [{"content": {"parts": [{"text": "Clear."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "thoughtsTokenCount": 1},
        "promptFeedback": None,
        "modelVersion": "m",
    },
    "chat": {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Clear."}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    },
}
ERROR = {"error": {"message": "about the prompt", "code": "x_y", "status": "NOT_FOUND", "details": [{}]}}


def places(value):
    """Yield every list and object inside a value."""
    if isinstance(value, dict | list) and value:
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from places(part)


def mutated(rng, record):
    """One to three values become odd or go."""
    record = json.loads(json.dumps(record))
    for _ in range(rng.randint(1, 3)):
        place = rng.choice([place for place in places(record) if place] or [record])
        if not place:
            return record
        name = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        if rng.random() < 0.2:
            del place[name]
        else:
            place[name] = deepcopy(rng.choice(ODD))
    return record


def hostile(rng, provider):
    """The bytes of an answer."""
    whole = WHOLE.get(provider, WHOLE["chat"])
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(
            [b"[" * 50_000, b'{"a":' * 50_000, b"[" * 900 + b"]" * 900, b"9" * 9_999, b"\0" * 99]
        )
    if kind == 1:
        return rng.randbytes(rng.randrange(300))
    if kind == 2:
        data = json.dumps(whole).encode()
        return data[: rng.randrange(len(data))]
    return json.dumps(mutated(rng, ERROR if kind == 3 else whole)).encode()


async def one(generator, seed):
    """Ask once; an error comes back as what it is."""
    try:
        return await generator.generate(request_of(seed))
    except TabonError as error:
        return error


def checked(answer, spending, journal, number):
    """An answer can be paid for, written and read again; an error is one sentence without a secret."""
    if isinstance(answer, Exception):
        assert not any(secret in str(answer) for secret in (*SECRETS, "about the prompt"))
        assert "\n" not in str(answer)
        assert not isinstance(answer, TryAgainError) or answer.retry_after is None
        return
    before = spending.spent
    cost = spending.settle(spending.reserve(request_of()), spending.price.cost(answer))
    assert spending.spent >= before
    assert math.isfinite(spending.spent)
    journal.append([draft_line(replace(DRAFT, sample=number), answer, cost=cost, time="")])


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.filterwarnings("ignore")  # the clients warn of what they do not know
def test_hostile_answers_are_kept_or_told(tmp_path, provider):
    """Through the official client: no other error, no secret, no lower spending, a journal that opens."""
    rng = seeded(f"answers of {provider}")
    script = [
        body(hostile(rng, provider), code=rng.choice(CODES), content_type=rng.choice(TYPES))
        for _ in range(CASES)
    ]

    async def whole(server):
        generator = MAKERS[provider]("m", api_key=KEY, base_url=server.url(provider), timeout=LIMIT)
        try:
            return [await one(generator, seed) for seed in range(CASES)]
        finally:
            await generator.close()

    with ProviderServer(script=script) as server:
        answers = asyncio.run(whole(server))
    journal, spending = Journal(tmp_path / "d"), Budget(Price(1.0, 1.0), cap=None)
    for number, answer in enumerate(answers):
        checked(answer, spending, journal, number)
    kept = len(journal)
    journal.close()
    again = Journal(tmp_path / "d")
    assert len(again) == kept > 0
    assert again.cost == pytest.approx(spending.spent)
    again.close()


@pytest.mark.parametrize(("maker", "provider"), [(GeminiBatch, "gemini"), (MistralBatch, "mistral")])
@pytest.mark.filterwarnings("ignore")
def test_hostile_rows_of_a_batch_are_kept(tmp_path, maker, provider):
    """A row that cannot be read was paid for: it is an answer all the same."""
    rng = seeded(f"rows of {provider}")
    batch = maker("m", api_key=KEY, base_url="http://127.0.0.1:1", timeout=1)
    journal, spending = Journal(tmp_path / "d"), Budget(Price(1.0, 1.0), cap=None)
    for number in range(CASES * 5):
        row = mutated(rng, WHOLE.get(provider, WHOLE["chat"]))
        checked(answer_from(row, batch._read), spending, journal, number)
    assert len(journal) == CASES * 5
    journal.close()
    asyncio.run(batch.close())


def test_hostile_lines_of_a_command_are_kept_or_told(tmp_path):
    """What a command writes is junk, an answer or an error, whatever it is."""
    rng = seeded("lines of a command")
    journal, spending = Journal(tmp_path / "d"), Budget(Price(1.0, 1.0), cap=None)
    usage = {"input_tokens": 1, "output_tokens": 2}
    whole = {"id": "1", "text": "Clear.", "finish_reason": "stop", "usage": usage, "model_version": "v"}
    for number in range(CASES * 20):
        record = mutated(rng, whole | rng.choice([{}, {}, {"error": "busy", "retry": 2.5}]))
        parsed = command.parse_line(json.dumps(record).encode())
        if parsed is None:
            continue
        try:
            answer = command.answer_from(parsed, model="command:m")
        except TabonError as error:
            assert getattr(error, "retry_after", None) is None or 0 <= error.retry_after <= 1e9  # noqa: PT017
            continue
        checked(answer, spending, journal, number)
    journal.close()
