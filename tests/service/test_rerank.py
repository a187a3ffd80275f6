"""Drafts as documents, the prior as the query: the real Cohere client, and the JSON that others send."""

import asyncio
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon import Selector
from tabon.encoders.hashing import HashingEncoder
from tabon.service.parsing import NOTICE
from tabon.service.rerank import relevance
from tabon.text.records import query_from_record

cohere = pytest.importorskip("cohere", reason="the reranker is tested with the cohere client")
pytest.importorskip("httpx", reason="the service's tests speak HTTP with httpx")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from gateway_upstream import written  # noqa: E402
from service_server import PATIENCE, bank, http, post, queries, query_service, service  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs/guide/service.md"
PRIOR = "Findings: The lungs are clear. Impression: Normal."
DRAFTS = ["Findings: New small left effusion. Impression: Effusion.", "Findings: Clear. Impression: Normal."]
ASK = {"query": PRIOR, "documents": DRAFTS}


@pytest.fixture(scope="module")
def address():
    """Run one service that also allows `fused`."""
    with service(query_service(others=["fused"])) as found:
        yield found


@pytest.fixture(params=["Client", "ClientV2"])
def client(request, address):
    """Return the real client in both of its generations."""
    with getattr(cohere, request.param)("none", base_url=address, timeout=PATIENCE) as found:
        yield found


def selected(record, name="transition"):
    """Return the library's selection for a query whose drafts are text."""
    text = {**record, "candidates": written(record)}
    return Selector(bank(), name, encoder=HashingEncoder()).select_many([query_from_record(text)])[0]


def asked_of(record):
    """Return a simulated query as a client would send it."""
    prior = record["prior"]
    query = f"Findings: {prior['findings']}\nImpression: {prior['impression']}"
    return {"query": query, "documents": written(record)}


@pytest.mark.parametrize("name", ["transition", "fused"])
def test_the_real_cohere_client_gets_the_picks_of_the_library(client, name):
    """The first result is the pick, the order is that of the distances, and the answer says why."""
    for record in queries()[:6]:
        wanted = selected(record, name)
        order = sorted(range(5), key=lambda place: (place != wanted.selected, wanted.total_distances[place]))
        found = client.rerank(**asked_of(record), model=f"tabon-{name}")
        assert [result.index for result in found.results] == order
        scores = [result.relevance_score for result in found.results]
        assert scores == [relevance(wanted.total_distances[place]) for place in order]
        assert scores == sorted(scores, reverse=True)
        assert (found.model, found.tabon["selected"]) == (f"tabon-{name}", wanted.selected)
        assert found.tabon["distances"] == list(wanted.total_distances)
        assert (found.tabon["signature"], found.tabon["notice"]) == (wanted.signature, NOTICE)


def test_the_asynchronous_client(address):
    """It works as well, several requests at once."""

    async def ask():
        async with cohere.AsyncClientV2("none", base_url=address) as one:
            every = (one.rerank(**asked_of(record), model="tabon", top_n=1) for record in queries()[:4])
            return await asyncio.gather(*every)

    for found, record in zip(asyncio.run(ask()), queries(), strict=False):
        assert [result.index for result in found.results] == [selected(record).selected]


def test_documents_come_back_where_they_are_asked_for(address):
    """return_documents gives texts as objects, and objects as they were sent; top_n may be too large."""
    documents = [DRAFTS[0], {"text": DRAFTS[1], "source": {"model": 3}}]
    with cohere.Client("none", base_url=address) as one:
        found = one.rerank(query=PRIOR, documents=documents, return_documents=True, top_n=9)
    texts = {result.index: result.document.text for result in found.results}
    assert texts == dict(enumerate(DRAFTS))
    sent = post(f"{address}/v1/rerank", json={**ASK, "documents": documents, "return_documents": True}).json()
    shown = {result["index"]: result["document"] for result in sent["results"]}
    assert shown == {0: {"text": DRAFTS[0]}, 1: documents[1]}
    for options in ({}, {"return_documents": False}, {"return_documents": None, "top_n": None}):
        sent = post(f"{address}/v2/rerank", json={**ASK, **options}).json()
        assert all("document" not in result for result in sent["results"])


def test_a_query_may_be_a_record_or_several_priors(address):
    """Text, record and list of priors give the same order; sections may be sent apart."""
    record = {"findings": "The lungs are clear.", "impression": "Normal."}
    wanted = post(f"{address}/v1/rerank", json=ASK).json()
    for query in (record, [PRIOR], ["Findings: An older one.", record], {"text": PRIOR}):
        assert post(f"{address}/v1/rerank", json={**ASK, "query": query}).json() == wanted
    parts = [{"findings": "New small left effusion.", "impression": "Effusion."}, DRAFTS[1]]
    assert post(f"{address}/v1/rerank", json={**ASK, "documents": parts}).json() == wanted


def test_an_abstention_has_no_results(address):
    """Where nothing can be picked nothing is ranked: the reason is in the answer and in a header."""
    for query in ("", None, [], {"findings": None, "impression": None}):
        found = post(f"{address}/v1/rerank", json={**ASK, "query": query})
        assert (found.status_code, found.json()["results"]) == (200, [])
        assert found.json()["tabon"]["abstained"] == "empty-prior"
        assert found.headers["x-tabon-abstained"] == "empty-prior"
        assert found.headers["x-tabon-prior"] == "none"
        ranked = post(f"{address}/v1/rerank", json={**ASK, "query": query, "model": "tabon-fused"})
        assert len(ranked.json()["results"]) == 2
        assert ranked.headers["x-tabon-prior"] == "none"
        assert "x-tabon-abstained" not in ranked.headers
    plain = post(f"{address}/v1/rerank", json=ASK).headers
    assert not {"x-tabon-prior", "x-tabon-abstained"} & set(plain)
    mine = post(f"{address}/v1/rerank", json={**ASK, "patient": next(iter(bank().patients))})
    assert mine.headers["x-tabon-abstained"] == "patient-in-bank"


REFUSALS = {
    "no query": ({"documents": DRAFTS}, "no query, or no list of documents"),
    "no documents": ({"query": PRIOR}, "no query, or no list of documents"),
    "an empty list": ({**ASK, "documents": []}, "no query, or no list of documents"),
    "a text": ({**ASK, "documents": "Zqxwv"}, "no query, or no list of documents"),
    "null": ({**ASK, "documents": [None]}, "neither a text nor an object"),
    "a number": ({**ASK, "documents": [3]}, "neither a text nor an object"),
    "an object without text": ({**ASK, "documents": [{"body": "Zqxwv"}]}, "draft"),
    "65 documents": ({**ASK, "documents": DRAFTS[:1] * 65}, "65 drafts; at most 64"),
    "17 priors": ({**ASK, "query": [PRIOR] * 17}, "17 priors; at most 16"),
    "a long document": ({**ASK, "documents": ["x" * 20_001]}, "20001 characters"),
    "a number as query": ({**ASK, "query": 3}, "prior"),
    "none": ({**ASK, "top_n": 0}, "'top_n' is not a whole number from 1 on"),
    "true of them": ({**ASK, "top_n": True}, "'top_n' is not a whole number from 1 on"),
    "half": ({**ASK, "top_n": 1.5}, "'top_n' is not a whole number from 1 on"),
    "documents, perhaps": ({**ASK, "return_documents": "yes"}, "'return_documents' is neither"),
    "another model": ({**ASK, "model": "rerank-v3.5"}, "the model is not known here"),
    "half a model": ({**ASK, "model": "tabon-"}, "the model is not known here"),
    "a model that is none": ({**ASK, "model": ["tabon"]}, "the model is not known here"),
    "a long model": ({**ASK, "model": "tabon-" + "x" * 300}, "the model is not known here"),
    "a selector that is not allowed": ({**ASK, "model": "tabon-Zqxwv"}, "does not allow"),
    "fields without effect": ({**ASK, "rank_fields": ["text"]}, "a field that has no effect here"),
    "a patient that is none": ({**ASK, "patient": []}, "patient"),
    "a list": ([ASK], "the body is not an object"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused(address, name):
    """One sentence and a hint, which repeat nothing of what was sent; fields that hold null are none."""
    body, words = REFUSALS[name]
    for version in ("v1", "v2"):
        found = post(f"{address}/{version}/rerank", json=body)
        assert found.status_code == 422
        error = found.json()["error"]
        assert words in error["message"]
        assert error["hint"]
        assert "Zqxwv" not in found.text
    assert post(f"{address}/v1/rerank", json={**ASK, "rank_fields": None}).status_code == 200


def test_a_client_understands_a_refusal(client):
    """The Cohere client raises its own error for the status, with our sentence in it."""
    with pytest.raises(cohere.UnprocessableEntityError) as caught:
        client.rerank(**ASK, model="rerank-v3.5")
    assert caught.value.body["error"]["hint"] == "write tabon or tabon-SELECTOR"


def test_a_required_prior_is_required_here_too():
    """With require_prior an empty query is refused."""
    with service(query_service(require_prior=True)) as address:
        assert post(f"{address}/v1/rerank", json=ASK).status_code == 200
        assert post(f"{address}/v1/rerank", json={**ASK, "query": ""}).status_code == 422


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, unique=True))
def test_relevance_keeps_the_order(distances):
    """The smaller the distance the higher the score, and every score lies between 0 and 1."""
    by_distance = sorted(distances)
    scores = [relevance(distance) for distance in by_distance]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_the_program_of_the_page_works(address):
    """The Cohere lines of docs/guide/service.md, run as they stand but for the port, print the ranking."""
    [program] = re.findall(r"^```python\n(import cohere.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    with redirect_stdout(io.StringIO()) as printed:
        exec(program.replace("http://127.0.0.1:8765", address), {})  # noqa: S102
    assert re.fullmatch(r"[01] 0\.\d+\n[01] 0\.\d+\n", printed.getvalue())


def test_many_requests_over_one_connection(address):
    """The reranker shares the worker, its limits and its counts with the other routes."""
    with http(base_url=address, timeout=PATIENCE) as client:
        assert {client.post("/v1/rerank", json=asked_of(one)).status_code for one in queries()[:8]} == {200}
        heavy = {**ASK, "documents": [" ".join(f"word{n}x{m}" for n in range(900)) for m in range(20)]}
        found = client.post("/v1/rerank", json=heavy)
        assert found.status_code == 413
        assert json.loads(found.text)["error"]["message"].startswith("the distinct sentences of the query")
