"""The routes of a reader study on a real server: a reader's own cases and answers, and nothing else."""

import json
import os
from contextlib import closing
from dataclasses import replace

import pytest

pytest.importorskip("httpx", reason="the service's tests speak HTTP with httpx")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from schema_run import check_all
from service_server import get, http, post
from study_cases import SELECTORS, answer_to, body_of, write_study
from study_server import study_service
from tabon.errors import BadInputError
from tabon.service.guard import guard_settings
from tabon.service.study.routes import study_module
from tabon.study.answers import AnswerJournal, read_answers
from tabon.study.design import ErrorMark
from tabon.study.folder import read_key, read_study

SECRETS = (*SELECTORS, "query-", "patient-", "selector:", "signature", '"repeats"', '"shown"', '"whose"')


@pytest.fixture
def folder(tmp_path):
    """A study of two readers."""
    return tmp_path / "study"


@pytest.fixture
def tokens(folder):
    """Their tokens."""
    return write_study(folder, cases=6)[1]


def bearer(token):
    """Return the header of a token."""
    return {"authorization": f"Bearer {token}"}


def readings(folder, reader):
    """Return the ids of a reader's readings."""
    return [one.id for one in read_key(folder, read_study(folder)).readings[reader]]


def test_a_reader_gets_the_own_cases_and_answers(folder, tokens):
    """Each token opens what that reader is shown; answers come back to the reader who gave them, only."""
    with study_service(folder) as address:
        shown = {
            name: get(f"{address}/v1/study", headers=bearer(token)).json() for name, token in tokens.items()
        }
        for name, page in shown.items():
            assert page["reader"] == name
            assert [one["id"] for one in page["readings"]] == readings(folder, name)
            assert page["readings"][0]["reference"] is None
        mark = ErrorMark(draft=1, kind="side", significant=True)
        given = answer_to(readings(folder, "ann")[0], (2, 1), errors=(mark,), comment="<b>for me</b>")
        sent = post(f"{address}/v1/study/answers", headers=bearer(tokens["ann"]), json=body_of(given))
        assert sent.json() == {"key": given.key, "outcome": "kept"}
        again = post(f"{address}/v1/study/answers", headers=bearer(tokens["ann"]), json=body_of(given))
        assert again.json() == {"key": given.key, "outcome": "known"}
        mine, theirs = (
            get(f"{address}/v1/study/answers", headers=bearer(tokens[name])).json()["answers"]
            for name in ("ann", "bob")
        )
    assert mine == {given.reading: body_of(given)}
    assert theirs == {}
    assert read_answers(folder, read_study(folder)).last("ann")[given.reading].answer() == given


def test_an_answer_is_refused_where_it_cannot_be_kept(folder, tokens):
    """Another's case, a case that was answered otherwise, nonsense: a status and a sentence."""
    place, other = readings(folder, "ann")[0], readings(folder, "bob")[0]
    good = answer_to(place, (1, 2))
    bad = {
        404: [body_of(answer_to(other, (1, 2))), body_of(answer_to("../key", (1, 2)))],
        409: [body_of(answer_to(place, (2, 1))), body_of(replace(good, values=(2, 1)))],
        422: [
            {**body_of(good), "reader": "bob"},
            {**body_of(good), "values": [1]},
            {**body_of(good), "values": [3, 4]},
            {**body_of(good), "key": "x"},
            {**body_of(good), "seconds": None},
            [],
            {},
        ],
    }
    with study_service(folder) as address, http(headers=bearer(tokens["ann"])) as client:
        assert client.post(f"{address}/v1/study/answers", json=body_of(good)).status_code == 200
        for status, bodies in bad.items():
            for body in bodies:
                refused = client.post(f"{address}/v1/study/answers", json=body)
                assert refused.status_code == status, (body, refused.text)
                assert refused.json()["error"]["message"]
        for data in (b"", b"{", b"\xff", b'{"key": ' + b"[" * 9000):
            headers = {"content-type": "application/json"}
            assert (
                client.post(f"{address}/v1/study/answers", content=data, headers=headers).status_code == 422
            )
    assert (folder / "answers.jsonl").read_bytes().count(b"\n") == 1


GUESSES = [
    "/key.json", "/study.json", "/answers.jsonl", "/readers/bob.json", "/readers/ann.json", "/queries.jsonl",
    "/study/key.json", "/v1/key", "/v1/study/key", "/v1/study/bob", "/v1/study/answers/bob",
    "/v1/study/results", "/v1/study?reader=bob", "/../key.json", "/v1/study/answers?reader=bob",
    "/..%2fkey.json", "/%2e%2e/key.json", "/v1/study/images/../../key.json", "//key.json", "/.",
    "/v1/study/images/..%2f..%2fkey.json", "/v1/study/images/key.json", "/v1/explorer", "/v1/bank",
    "/v1/select", "/metrics", "/", "/study.js", "/study.css", "/v1/study", "/v1/study/answers",
    "/openapi.json",
]  # fmt: skip


def test_no_reader_gets_at_the_key_or_at_another(folder, tokens):
    """Tried by address, by query, by header, by another's case: no secret, nothing of the other reader."""
    study, others = read_study(folder), readings(folder, "bob")
    journal = AnswerJournal(folder, study)
    for one in others:
        assert journal.keep("bob", answer_to(one, (1, 2), comment="Quokka")) == "kept"
    journal.close()
    with study_service(folder) as address, http(headers=bearer(tokens["ann"])) as client:
        seen = [client.get(f"{address}{path}").text for path in GUESSES]
        seen += [client.post(f"{address}{path}", json={"reader": "bob"}).text for path in GUESSES]
        for headers in ({"x-reader": "bob"}, {"x-forwarded-user": "bob"}, {"cookie": "reader=bob"}):
            seen += [client.get(f"{address}{path}", headers=headers).text for path in GUESSES]
        seen += [client.get(f"{address}/v1/study/images/{one}").text for one in others]
    everything = "\n".join(seen)
    assert readings(folder, "ann")[0] in everything
    hidden = [*SECRETS, *others, tokens["bob"], "Quokka", "bob", str(read_key(folder, study).seed), "sha256"]
    assert [secret for secret in hidden if secret in everything] == []


def test_the_image_of_a_case_is_for_its_reader(folder):
    """It comes with its type under the reading's name; no other reader has it, and its file names nothing."""
    _, tokens = write_study(folder, cases=3, image_of=lambda query: ("png", query.id.encode()))
    key = {one.id: one.query for one in read_key(folder, read_study(folder)).readings["ann"]}
    assert not any("query" in path.name for path in (folder / "images").iterdir())
    with study_service(folder) as address:
        for reading, query in key.items():
            found = get(f"{address}/v1/study/images/{reading}", headers=bearer(tokens["ann"]))
            assert (found.content, found.headers["content-type"]) == (query.encode(), "image/png")
            assert (
                get(f"{address}/v1/study/images/{reading}", headers=bearer(tokens["bob"])).status_code == 404
            )


def test_the_server_never_opens_the_key(folder, tokens):
    """It starts and answers although the key is gone; so does what it shows."""
    (folder / "key.json").rename(folder / "elsewhere.json")
    with study_service(folder) as address:
        assert get(f"{address}/v1/study", headers=bearer(tokens["bob"])).status_code == 200


@pytest.mark.parametrize("path", ["/v1/study", "/v1/study/answers", "/v1/study/images/x", "/openapi.json"])
def test_without_a_reader_s_token_there_is_nothing(folder, tokens, path):
    """No token, a wrong one, another scheme, two at once, the hash of one: 401."""
    study = read_study(folder)
    wrong = [
        {},
        bearer("x" * 24),
        bearer("x"),
        {"authorization": f"Basic {tokens['ann']}"},
        bearer(study.readers[0].token_sha256),
        {"cookie": f"token={tokens['ann']}"},
    ]
    with study_service(folder) as address:
        assert [get(f"{address}{path}", headers=headers).status_code for headers in wrong] == [401] * len(
            wrong
        )
        twice = [("authorization", f"Bearer {tokens[name]}") for name in ("ann", "bob")]
        assert get(f"{address}{path}", headers=twice).status_code == 401
        assert get(f"{address}/healthz").status_code == get(f"{address}/readyz").status_code == 200


def test_a_page_of_another_site_cannot_answer(folder, tokens):
    """Even with the token: another Origin, a cross-site fetch, a form's type, another Host."""
    body = body_of(answer_to(readings(folder, "ann")[0], (1, 2)))
    with study_service(folder) as address, http(headers=bearer(tokens["ann"])) as client:
        place = f"{address}/v1/study/answers"
        for headers in (
            {"origin": "https://evil.example"},
            {"sec-fetch-site": "cross-site"},
            {"host": "evil.example"},
        ):
            assert client.post(place, json=body, headers=headers).status_code == 403
        form = {"content-type": "text/plain"}
        assert client.post(place, content=json.dumps(body), headers=form).status_code == 415
    assert (folder / "answers.jsonl").read_bytes() == b""


def test_a_full_disk_is_no_acknowledgement(folder, tokens, monkeypatch):
    """The answer is refused with a 503 that asks to come again; later it is taken; nothing is half there."""
    given = answer_to(readings(folder, "ann")[0], (1, 2))
    with study_service(folder) as address, http(headers=bearer(tokens["ann"])) as client:
        with monkeypatch.context() as patch:

            def full(_):
                raise OSError(28, "No space left on device")

            patch.setattr(os, "fsync", full)
            refused = client.post(f"{address}/v1/study/answers", json=body_of(given))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert client.post(f"{address}/v1/study/answers", json=body_of(given)).json()["outcome"] == "kept"
    assert (folder / "answers.jsonl").read_bytes().count(b"\n") == 1


def test_an_address_that_others_reach_needs_no_other_token():
    """The readers' tokens protect it; another service there still needs --token-file."""
    place = {"host": "0.0.0.0", "token": None, "allowed": (), "body": 1000}  # noqa: S104
    assert guard_settings(**place, has_readers=True).hosts
    with pytest.raises(BadInputError, match="can be reached from other machines and no token is set"):
        guard_settings(**place)


def test_the_contract_has_every_route_and_no_other(folder, tokens):
    """What is served is what the contract names, method by method; only the page's own files are left out."""
    study = read_study(folder)
    with closing(AnswerJournal(folder, study)) as journal:
        module = study_module(folder, study, {}, journal)
    page = {("/", "GET"), ("/study.css", "GET"), ("/study.js", "GET")}
    served = {(one.path, method) for one in module.routes for method in one.methods - {"HEAD"}}
    named = {(path, method.upper()) for path, item in module.contract["paths"].items() for method in item}
    assert served - page == named
    assert tokens


def test_schemathesis_finds_nothing(folder, tokens, tmp_path):
    """No generated request, good or bad, gets an answer that the contract does not name."""
    with study_service(folder) as address:
        check_all(address, tmp_path, "--header", f"Authorization: Bearer {tokens['ann']}")
