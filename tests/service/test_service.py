"""The service gives the library's records, answers together what comes together, and ends politely."""

import asyncio
import json
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tabon import Selector
from tabon.cli.serve import serve_command
from tabon.encoders.hashing import HashingEncoder
from tabon.encoders.sentence_store import LONGEST, CachingEncoder
from tabon.errors import BadInputError, ServiceError
from tabon.explanation.explanation import explain
from tabon.search.index_files import IndexFiles
from tabon.selectors.setup import SelectionSettings, answer
from tabon.service import AnswerSettings, allowed_settings, query_service_of
from tabon.service.batcher import Batcher, BatchSettings
from tabon.service.metrics import Metrics
from tabon.service.parsing import NOTICE
from tabon.text.records import query_from_record

httpx = pytest.importorskip("httpx", reason="the service's tests speak HTTP with httpx")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from service_server import (  # noqa: E402
    PATIENCE,
    WORD,
    GatedEncoder,
    bank,
    gated,
    get,
    http,
    post,
    program,
    queries,
    query_service,
    service,
    until,
)

HERE = Path(__file__).parents[1] / "helpers"
COUNTS = ("requests", "queue_refused", "selections", "abstentions", "missing_priors")
GATEWAY_COUNTS = ("drafts", "drafts_failed", "drafts_stopped", "tokens")
UPSTREAM_COUNTS = ("calls", "failures")
GAUGES = ("requests_running", "queue_length", "ready", "cached_sentences", "cache_hits", "cache_misses")
HISTOGRAMS = (
    *("request_seconds", "batch_size", "batch_seconds", "queue_seconds", "margin"),
    "gateway_upstream_seconds",
)


def library(record):
    """Return what `tabon select` writes for one query."""
    return answer(Selector(bank(), encoder=HashingEncoder()), [query_from_record(record)]).selections.strip()


def metric(address, name):
    """Return one number of /metrics."""
    lines = get(f"{address}/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).rpartition(" ")[2])


def test_each_service_counts_for_itself():
    """Two services in one process share no count; nothing but the names that the docs give is shown."""
    with service() as one, service() as other:
        post(f"{one}/v1/select", json=queries()[0])
        assert metric(one, "tabon_batch_size_count") == metric(other, "tabon_batch_size_count") + 1
        answer = get(f"{one}/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    kinds = dict(line.split()[2:] for line in answer.text.splitlines() if line.startswith("# TYPE"))
    assert kinds == {
        **dict.fromkeys((f"tabon_{name}_total" for name in COUNTS), "counter"),
        **dict.fromkeys((f"tabon_gateway_{name}_total" for name in GATEWAY_COUNTS), "counter"),
        **dict.fromkeys((f"tabon_gateway_upstream_{name}_total" for name in UPSTREAM_COUNTS), "counter"),
        **dict.fromkeys((f"tabon_{name}" for name in GAUGES), "gauge"),
        **dict.fromkeys((f"tabon_{name}" for name in HISTOGRAMS), "histogram"),
    }
    assert "_created" not in answer.text
    helps = dict(line.split(maxsplit=3)[2:] for line in answer.text.splitlines() if line.startswith("# HELP"))
    assert kinds.keys() == {name for name, words in helps.items() if words.endswith(".")}


def test_answers_are_counted():
    """Picks, margins, abstentions and missing priors are counted by selector and reason; probes are not."""
    good, orphan = queries()[0], {**queries()[0], "prior": None}
    with service(query_service(others=["fused"])) as address, http(base_url=address) as client:
        for record, selector in ((good, None), (good, "fused"), (orphan, None), (orphan, "fused")):
            params = {} if selector is None else {"selector": selector}
            assert client.post("/v1/select", params=params, json=record).status_code == 200
        counted = {
            'tabon_selections_total{selector="transition"}': 2,
            'tabon_selections_total{selector="fused"}': 2,
            'tabon_abstentions_total{reason="empty-prior"}': 1,
            'tabon_abstentions_total{reason="no-drafts"}': 0,
            'tabon_margin_count{selector="transition"}': 1,
            'tabon_margin_count{selector="fused"}': 2,
            "tabon_missing_priors_total": 2,
        }
        assert {name: metric(address, name) for name in counted} == counted


def test_a_request_may_name_a_selector_that_is_allowed():
    """?selector= gives the bytes of that selector; aliases count, and others are refused without a call."""
    encoder = HashingEncoder()
    names = ["transition", "fused", "consensus:chamfer"]
    others = {name: Selector(bank(), name, encoder=encoder) for name in names}
    answers = query_service(others=names[1:])
    with service(answers) as address, http(base_url=address) as client:
        assert client.get("/v1/bank").json()["selectors"] == names
        for record, (name, selector) in product(queries()[:4], others.items()):
            found = client.post("/v1/select", params={"selector": name}, json=record)
            assert found.content == answer(selector, [query_from_record(record)]).selections.strip()
            shown = client.post("/v1/explain", params={"selector": name}, json=record)
            assert shown.text == json.dumps(explain(selector, query_from_record(record)).as_record())
        same = client.post("/v1/select", params={"selector": "mbr:chamfer"}, json=queries()[0])
        assert same.json()["signature"].startswith("selector:consensus:chamfer|")
        for name in ("random:1", "fused:/etc/passwd", "", "<script>"):
            for route in ("/v1/select", "/v1/explain"):
                found = client.post(route, params={"selector": name}, json=queries()[0])
                assert found.status_code == 422
                error = found.json()["error"]
                assert error["message"] == "the request asks for a selector that this service does not allow"
                assert error["hint"].startswith("ask for transition or fused or consensus:chamfer, or start")
                assert not name or name not in found.text


def test_mixed_selectors_in_one_batch_are_each_their_own():
    """Requests that wait together but name different selectors get what each would get alone."""
    encoder = GatedEncoder()
    with service(query_service(encoder, others=["fused"])) as address, ThreadPoolExecutor(6) as pool:
        encoder.gate.clear()
        encoder.calls = 0
        held = pool.submit(post, f"{address}/v1/select", json=gated())
        until(lambda: encoder.calls, "one is worked on")
        asked = [
            pool.submit(post, f"{address}/v1/select?selector={name}", json=record)
            for record in queries()[:2]
            for name in ("transition", "fused")
        ]
        until(lambda: metric(address, "tabon_queue_length") == 4, "four wait")
        batches = metric(address, "tabon_batch_size_count")
        encoder.gate.set()
        found = [one.result().content for one in asked]
        assert held.result().status_code == 200
        assert metric(address, "tabon_batch_size_count") == batches + 1
    wanted = [Selector(bank(), name, encoder=HashingEncoder()) for name in ("transition", "fused")]
    assert found == [
        answer(selector, [query_from_record(record)]).selections.strip()
        for record, selector in product(queries()[:2], wanted)
    ]


def test_a_service_may_require_priors():
    """With require_prior a query without a prior is refused in one sentence; with one it is answered."""
    with service(query_service(require_prior=True)) as address, http(base_url=address) as client:
        assert client.post("/v1/select", json=queries()[0]).status_code == 200
        for prior in (None, "", [], {"findings": "", "impression": ""}):
            for route in ("/v1/select", "/v1/explain"):
                found = client.post(route, json={**queries()[0], "prior": prior})
                assert found.status_code == 422
                assert "has no prior report" in found.json()["error"]["message"]
        assert client.get("/readyz").status_code == 200


def test_selectors_that_cannot_be_allowed():
    """Abstention holds for one selector: with it no other may be named; the own one may be said again."""
    calibrated = SelectionSettings(encoder="hashing", abstain=0.1)
    with pytest.raises(BadInputError, match="hold for one selector"):
        allowed_settings(calibrated, ["fused"])
    assert allowed_settings(calibrated, ["paper"]) == {}
    shared = SelectionSettings(distance="cost-ot", zero="neutral", history=0.5, allow_bank_patients=True)
    assert allowed_settings(shared, ["mbr", "consensus", "paper"]) == {
        "consensus": SelectionSettings(selector="consensus", history=0.5, allow_bank_patients=True)
    }


def test_select_gives_the_bytes_of_the_library():
    """/v1/select answers byte for byte what `tabon select` writes, unknown keys included."""
    records = [*queries()[:8], {**queries()[0], "id": 7, "site": {"a": [1, None]}}]
    records += [{"id": "none", "prior": None, "candidates": []}, {**queries()[1], "candidates": [None]}]
    with service() as address, http(base_url=address) as client:
        for record in records:
            found = client.post("/v1/select", json=record)
            assert (found.status_code, found.content) == (200, library(record))
            assert found.headers["content-type"] == "application/json"


def test_explain_gives_the_record_of_the_library():
    """/v1/explain answers what `tabon explain --json` prints; draft and neighbours count."""
    record = queries()[2]
    selector = Selector(bank(), encoder=HashingEncoder())
    with service() as address, http(base_url=address) as client:
        for options in ({}, {"draft": 1}, {"draft": 0, "neighbours": 1}):
            wanted = explain(selector, query_from_record(record), **options)
            found = client.post("/v1/explain", params=options, json=record)
            assert (found.status_code, found.text) == (200, json.dumps(wanted.as_record()))
        late = client.post("/v1/explain", params={"draft": 63}, json=record)
        assert (late.status_code, late.json()["error"]["hint"]) == (404, "count drafts from 0")


def test_bank_text_stays_inside_where_it_may_not_be_shown():
    """With bank_text off an explanation names training transitions by id alone."""
    with service(query_service(bank_text=False)) as address:
        found = post(f"{address}/v1/explain", json=queries()[0]).json()
    near = [one for part in found["sections"].values() for one in part["nearest"]]
    assert near
    assert all(one["id"] and not one["prior"] and not one["current"] for one in near)


def test_the_bank_is_described_without_text():
    """/v1/bank is `tabon bank info` with the notice and the signature."""
    with service() as address:
        found = get(f"{address}/v1/bank").json()
    assert {key: found[key] for key in bank().info()} == json.loads(json.dumps(bank().info()))
    assert found["notice"] == NOTICE
    assert not any(sentence in json.dumps(found) for sentence in bank().table.sentences)


def test_fifty_requests_at_once_are_batched_and_right():
    """What comes while a batch is worked on is answered in few batches, each with its own record."""
    encoder = GatedEncoder()
    records = [{**queries()[number % len(queries())], "id": f"r{number}"} for number in range(49)]
    answers = query_service(encoder, batches=BatchSettings(size=32))
    with service(answers) as address, ThreadPoolExecutor(50) as pool:
        before = metric(address, "tabon_batch_size_count")
        encoder.gate.clear()
        encoder.calls = 0
        first = pool.submit(post, f"{address}/v1/select", json=gated())
        until(lambda: encoder.calls, "the first is worked on")
        asked = [pool.submit(post, f"{address}/v1/select", json=record) for record in records]
        until(lambda: metric(address, "tabon_queue_length") == 49, "the others wait")
        encoder.gate.set()
        assert [one.result().content for one in asked] == [library(record) for record in records]
        assert first.result().content == library(gated())
        assert metric(address, "tabon_batch_size_count") - before == 3  # 1, 32, 17
        assert metric(address, "tabon_batch_size_sum") >= 50
        assert metric(address, "tabon_queue_length") == 0


def test_one_bad_query_does_not_fail_the_others():
    """A query whose encoding fails gets 500 without its text; those of the same batch are answered."""
    encoder = GatedEncoder()
    records = [{**queries()[0], "id": f"r{number}"} for number in range(6)]
    records[3] = {**records[3], "candidates": ["FINDINGS: Poisoned."]}
    with service(query_service(encoder)) as address, ThreadPoolExecutor(7) as pool:
        encoder.poison = "Poisoned"
        encoder.gate.clear()
        encoder.calls = 0
        first = pool.submit(post, f"{address}/v1/select", json=gated())
        until(lambda: encoder.calls, "the first is worked on")
        asked = [pool.submit(post, f"{address}/v1/select", json=record) for record in records]
        until(lambda: metric(address, "tabon_queue_length") == 6, "the others wait")
        encoder.gate.set()
        found = [one.result() for one in asked]
        assert first.result().status_code == 200
    assert [one.status_code for one in found] == [200, 200, 200, 500, 200, 200]
    assert "Poisoned" not in found[3].text
    assert [one.content for one in found if one.status_code == 200] == [
        library(record) for record in records if record is not records[3]
    ]


def test_a_full_queue_says_429_and_when_to_come_back():
    """More requests than the queue holds are refused at once with Retry-After; the others are answered."""
    encoder = GatedEncoder()
    answers = query_service(encoder, cached=0, batches=BatchSettings(queue=2, size=1))
    with service(answers) as address, ThreadPoolExecutor(12) as pool:
        encoder.gate.clear()
        asked = [pool.submit(post, f"{address}/v1/select", json=gated(number)) for number in range(12)]
        until(lambda: sum(one.done() for one in asked) >= 9, "one is worked on, two wait, nine are refused")
        encoder.gate.set()
        found = [one.result() for one in asked]
        refused = [one for one in found if one.status_code == 429]
        assert {one.status_code for one in found} == {200, 429}
        assert all(one.headers["retry-after"] == "1" for one in refused)
        assert all(one.json()["error"]["message"] == "too many requests are waiting" for one in refused)
        assert metric(address, "tabon_queue_refused_total") == len(refused)


def test_a_request_that_takes_too_long_is_given_up():
    """Where the worker does not answer in time the client gets 504, and the service lives on."""
    encoder = GatedEncoder()
    with service(query_service(encoder, cached=0, timeout=0.3)) as address:
        encoder.gate.clear()
        assert post(f"{address}/v1/select", json=gated()).status_code == 504
        encoder.gate.set()
        until(lambda: post(f"{address}/v1/select", json=gated()).status_code == 200, "an answer in time")


def test_readiness_is_the_golden_answer():
    """/readyz is 200 while the golden query gives its first record, else 503 with a reason."""
    encoder = GatedEncoder()
    with service(query_service(encoder, check_seconds=0.01)) as address:
        assert get(f"{address}/readyz").json() == {"status": "ready"}
        assert metric(address, "tabon_ready") == 1
        encoder.turned = True
        until(lambda: get(f"{address}/readyz").status_code == 503, "the change is noticed")
        assert "otherwise than at start" in get(f"{address}/readyz").json()["error"]["message"]
        assert metric(address, "tabon_ready") == 0
        assert get(f"{address}/healthz").json() == {"status": "ok"}
        encoder.turned = False
        until(lambda: get(f"{address}/readyz").status_code == 200, "it is ready again")


def test_a_probe_costs_nothing():
    """However often /readyz is asked, nothing is queued and nothing is embedded."""
    encoder = GatedEncoder()
    with service(query_service(encoder)) as address, http(base_url=address) as client:
        batches, calls = metric(address, "tabon_batch_size_count"), encoder.calls
        encoder.gate.clear()
        encoder.poison = "pleural"  # of the golden query: a probe that asked would see it
        assert {client.get("/readyz").status_code for _ in range(100)} == {200}
        assert (metric(address, "tabon_batch_size_count"), encoder.calls) == (batches, calls)


def test_a_service_that_cannot_answer_is_not_ready():
    """An encoder that fails at start leaves a service that runs, says 503 without text, and recovers."""
    encoder = GatedEncoder()
    encoder.poison = "pleural"
    with service(query_service(encoder, check_seconds=0.01)) as address:
        found = get(f"{address}/readyz")
        assert found.status_code == 503
        assert "pleural" not in found.text
        encoder.poison = None
        until(lambda: get(f"{address}/readyz").status_code == 200, "it is ready")


def test_requests_in_flight_finish_on_sigterm(tmp_path):
    """A real process that gets SIGTERM takes no new connection, answers what it has, and ends."""
    bank().save(tmp_path / "bank")
    gate = tmp_path / "gate"
    command = [str(HERE / "service_server.py"), str(tmp_path / "bank"), str(gate)]
    with program(command, tmp_path) as running, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(post, f"{running.address}/v1/select", json=gated(n)) for n in range(4)]
        until(
            lambda: metric(running.address, "tabon_requests_running") == 5, "these four and the one that asks"
        )
        running.process.send_signal(signal.SIGTERM)
        until(lambda: closed(running.address), "the port closes")
        assert running.process.poll() is None
        assert not any(one.done() for one in asked)
        gate.touch()
        assert [one.result().status_code for one in asked] == [200] * 4
        assert running.process.wait(PATIENCE) in (0, -signal.SIGTERM)


def closed(address):
    """Say whether a port takes no connection."""
    try:
        get(f"{address}/healthz")
    except httpx.TransportError:
        return True
    return False


def test_sigterm_does_not_wait_for_idle_connections(tmp_path):
    """Connections that are kept alive, or that sent nothing or half a head, do not hold the end up."""
    bank().save(tmp_path / "bank")
    command = [str(HERE / "service_server.py"), str(tmp_path / "bank"), str(tmp_path / "gate")]
    with program(command, tmp_path) as running, http() as kept:
        place = httpx.URL(running.address)
        with (
            socket.create_connection((place.host, place.port)),
            socket.create_connection((place.host, place.port)) as half,
        ):
            half.sendall(b"POST /v1/select HTTP/1.1\r\nHost: ")
            assert kept.get(f"{running.address}/healthz").status_code == 200
            running.process.send_signal(signal.SIGTERM)
            running.process.wait(PATIENCE)  # with requests in flight it would wait for longer


def test_the_command_serves_and_says_what_it_is(tmp_path):
    """`tabon serve` begins its log with the notice, answers, and logs no text and no id."""
    path = tmp_path / "bank"
    bank().save(path)
    code = "from tabon.cli.serve import serve_command; serve_command()"
    record = {**queries()[0], "id": "Zqxwv-id"}
    with program(["-c", code, "--bank", str(path), "--port", "0"], tmp_path) as running:
        assert post(f"{running.address}/v1/select", json=record).content == library(record)
        assert post(f"{running.address}/v1/select", json={"Zqxwv": 1}).status_code == 422
        assert post(f"{running.address}/v1/select?Zqxwv=1", content=b"Zqxwv").status_code == 415
        assert get(f"{running.address}/Zqxwv", headers={"host": "Zqxwv"}).status_code == 403
        running.process.send_signal(signal.SIGTERM)
        running.process.wait(PATIENCE)
        talk = running.talk()
    assert talk.splitlines()[0].endswith(f" {NOTICE}")
    assert "POST /v1/select 200" in talk
    assert "Zqxwv" not in talk


def test_an_open_door_needs_a_token(tmp_path):
    """Another bind address without a token, or with a poor one, is refused before anything is read."""
    poor = tmp_path / "token"
    poor.write_text("short\n")
    poor.chmod(0o600)
    for options in ([], ["--token-file", str(poor)]):
        arguments = ["--bank", str(tmp_path / "none"), "--host", "0.0.0.0", *options]  # noqa: S104
        result = CliRunner().invoke(serve_command, arguments)
        assert result.exit_code == 1
        assert "token" in result.stderr


def test_abstention_is_that_of_the_library():
    """With a rate of abstention the service's records are those of the abstaining chooser."""
    settings = SelectionSettings(abstain=0.5, encoder="hashing")
    answers = query_service_of(bank(), settings, AnswerSettings())
    with service(answers) as address:
        found = [post(f"{address}/v1/select", json=record).json() for record in queries()[:6]]
    assert all(isinstance(one["p"], float) for one in found)
    assert any(one["abstained"] == "implausible" for one in found)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1), max_size=6), st.integers(1, 9))
def test_the_cache_changes_no_row(batches, room):
    """Whatever was asked before, a row is the encoder's own, and no more rows are kept than allowed."""
    own = HashingEncoder()
    cache = CachingEncoder(own, room)
    for batch in batches:
        np.testing.assert_array_equal(cache.encode(batch), own.encode(batch))
        assert len(cache) <= room


def test_long_sentences_are_not_remembered():
    """The memory of the cache is bounded by its rows, because no sentence is long."""
    own = HashingEncoder()
    cache = CachingEncoder(own, 9)
    sentences = ["a", "b" * (LONGEST + 1)]
    np.testing.assert_array_equal(cache.encode(sentences), own.encode(sentences))
    assert len(cache) == 1


@given(st.lists(st.floats(0, 1.5), min_size=1, max_size=20), st.integers(1, 5))
def test_batches_keep_size_and_load(loads, size):
    """Each item gets its own answer, once; no batch has more items or load than allowed, but one alone."""
    seen = []
    go = Event()

    def answer_all(items):
        go.wait(60)
        seen.append(list(items))
        return [2 * item for item in items]

    batcher = Batcher(answer_all, BatchSettings(queue=100, size=size, wait=0.0), Metrics())
    futures = [batcher.submit(number, load) for number, load in enumerate(loads)]
    batcher.start()
    go.set()
    assert [one.result(60) for one in futures] == [2 * number for number in range(len(loads))]
    batcher.close()
    assert sorted(item for batch in seen for item in batch) == list(range(len(loads)))
    assert all(len(batch) <= size for batch in seen)
    assert all(len(batch) == 1 or sum(loads[item] for item in batch) <= 1 + 1e-9 for batch in seen)
    with pytest.raises(ServiceError, match="shutting down"):
        batcher.submit(1)


def test_every_second_batch_is_of_the_oldest():
    """However many light items there are, a heavy one waits for one batch at most when it is the oldest."""
    seen = []

    def answer_all(items):
        seen.append(list(items))
        return items

    batcher = Batcher(answer_all, BatchSettings(queue=100, size=1, wait=0.0), Metrics())
    asked = [batcher.submit("heavy", 1.0), *(batcher.submit(f"light {number}", 0.1) for number in range(9))]
    asked += [batcher.submit("heavy too", 1.0), batcher.submit("lightest", 0.0)]
    batcher.start()
    for one in asked:
        one.result(PATIENCE)
    batcher.close(PATIENCE)
    assert [item for batch in seen for item in batch][:3] == ["heavy", "lightest", "light 0"]
    assert len(seen) == len(asked)


def heavy(number, sentences=14):
    """Return a query of 64 drafts with so many sentences of their own; 14 are nearly as heavy as is taken."""
    texts = [
        " ".join(f"{WORD} heavy{number} in d{draft} at l{line}." for line in range(sentences))
        for draft in range(64)
    ]
    return {
        "id": number,
        "prior": f"FINDINGS: {WORD} clear.",
        "candidates": [f"FINDINGS: {one}" for one in texts],
    }


def test_heavy_queries_do_not_keep_the_worker_from_small_ones():
    """Of three heavy queries and a small one that came last, the small one is encoded first or second."""
    encoder = GatedEncoder()
    seen = encoder.seen = []
    with (
        service(query_service(encoder, cached=0, timeout=PATIENCE)) as address,
        ThreadPoolExecutor(5) as pool,
    ):
        encoder.gate.clear()
        seen.clear()
        first = pool.submit(post, f"{address}/v1/select", json=gated("first"))
        until(lambda: seen, "the first is worked on")
        asked = [pool.submit(post, f"{address}/v1/select", json=heavy(number)) for number in range(3)]
        until(lambda: metric(address, "tabon_queue_length") == 3, "the heavy ones wait")
        small = {"id": 4, "prior": "FINDINGS: Clear.", "candidates": ["FINDINGS: Small effusion."]}
        asked.append(pool.submit(post, f"{address}/v1/select", json=small))
        until(lambda: metric(address, "tabon_queue_length") == 4, "the small one waits too")
        encoder.gate.set()
        assert [one.result().status_code for one in [first, *asked]] == [200] * 5
    order = [call for call in seen[1:] if any("heavy" in text or "effusion" in text for text in call)]
    place = next(number for number, call in enumerate(order) if "Small effusion." in call)
    assert place <= 1, "at most one heavy batch came before it"
    assert not any("heavy" in text for text in order[place]), "it waited for no heavy one in its own batch"


@pytest.mark.parametrize("route", ["/v1/select", "/v1/explain"])
def test_a_query_that_would_take_long_is_refused(route):
    """A query within all other limits whose sentences have too many tokens gets 413 before any work."""
    encoder = GatedEncoder()
    with service(query_service(encoder)) as address:
        before = encoder.calls
        found = post(address + route, json=heavy(1, 90))
        assert found.status_code == 413
        assert "more than about 12000 tokens" in found.json()["error"]["message"]
        assert WORD not in found.text
        assert encoder.calls == before
        same = {**heavy(1), "candidates": [heavy(1, 90)["candidates"][0]] * 64}
        assert post(address + route, json=same).status_code == 200  # repeated sentences are encoded once


def test_given_up_requests_are_not_worked_on():
    """A request whose client was told 504 while it waited is skipped by the worker."""
    encoder = GatedEncoder()
    answers = query_service(encoder, cached=0, timeout=0.2, batches=BatchSettings(size=1))
    answers.start()
    until(lambda: encoder.calls > 0, "the golden query is encoded")
    encoder.calls = 0
    encoder.gate.clear()

    async def ask_all():
        query = query_from_record(gated())
        return await asyncio.gather(*(answers.select(query) for _ in range(5)), return_exceptions=True)

    found = asyncio.run(ask_all())
    encoder.gate.set()
    answers.close()
    assert [one.status for one in found] == [504] * 5
    assert encoder.calls <= 1


def test_a_worker_outlives_whatever_an_answer_does():
    """After a wrong number of answers, or an error of any kind, the next item is answered."""

    def answer_all(items):
        if "short" in items:
            return []
        if "exit" in items:
            raise SystemExit
        return [item.upper() for item in items]

    batcher = Batcher(answer_all, BatchSettings(size=1), Metrics())
    batcher.start()
    for bad in ("short", "exit"):
        with pytest.raises((ValueError, SystemExit)):
            batcher.submit(bad).result(PATIENCE)
    assert batcher.submit("good").result(PATIENCE) == "GOOD"
    batcher.close(PATIENCE)


@pytest.mark.parametrize("how", [["cp"], ["truncate", "-s", "0"], ["truncate", "-s", "5000"]], ids=" ".join)
@pytest.mark.parametrize("search", [False, True], ids=["bank", "index"])
def test_what_is_served_may_be_written_over(tmp_path, how, search):
    """A copy over the bank or its index, or a cut, does not end the service: it answers as before."""
    path, other, index = tmp_path / "bank", tmp_path / "other", tmp_path / "index"
    bank().save(path)
    options = []
    if search:
        pytest.importorskip("faiss", reason="FAISS is not installed")
        IndexFiles(f"index:{index}").prepare(bank(), ["novelty"])
        options = ["--search", f"index:{index}"]
    other.write_bytes(b"TABONBK1" + bytes(3000))
    code = "from tabon.cli.serve import serve_command; serve_command()"
    with program(["-c", code, "--bank", str(path), "--port", "0", *options], tmp_path) as running:
        before = [post(f"{running.address}/v1/select", json=query) for query in queries()[:2]]
        for file in [path, *index.glob("*")]:
            subprocess.run([*how, *([other] if how == ["cp"] else []), file], check=True)
        after = [post(f"{running.address}/v1/select", json=query) for query in queries()[:2]]
        more = post(f"{running.address}/v1/explain", json=queries()[2])
        assert [one.content for one in after] == [one.content for one in before]
        assert {one.status_code for one in (*before, *after, more)} == {200}
        assert more.json()
        assert running.process.poll() is None
