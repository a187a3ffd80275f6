"""The explorer served: the data of the export, on a thread of its own, behind the service's request guard."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import pytest

from explorer_cases import PLAIN, bank, no_constant, odd, queries, simulated

pytest.importorskip("starlette", reason="the extra `service` is not installed")
pytest.importorskip("uvicorn", reason="the extra `service` is not installed")
httpx = pytest.importorskip("httpx", reason="the extra `gateway` is not installed")

from service_server import PATIENCE, get, query_service, serving, until  # noqa: E402
from tabon.selectors.setup import SelectionSettings  # noqa: E402
from tabon.service import explorer_routes, guarded_app  # noqa: E402
from tabon.service.explorer.export import (  # noqa: E402
    overview_record,
    read_page,
    study_record,
)
from tabon.service.explorer.films import ImageFolder  # noqa: E402
from tabon.service.explorer.scores import score_named  # noqa: E402
from tabon.service.explorer.search import find_words  # noqa: E402
from tabon.service.explorer.studies import ExplorerSettings, explorer_of  # noqa: E402
from tabon.service.explorer_routes import explorer_module  # noqa: E402
from tabon.service.guard import guard_settings  # noqa: E402
from tabon.service.page import PAGE_POLICY, as_json  # noqa: E402

HASHING = SelectionSettings(encoder="hashing")
TOKEN = b"a-token-of-the-tests-1"


def made(records=None, **shown):
    """Return the studies of some queries."""
    records = [*simulated(), *odd()] if records is None else records
    return explorer_of(bank(), HASHING, queries(records), ExplorerSettings(**shown))


def explorer(studies, *, token=None, page=PLAIN):
    """Serve an explorer."""
    guard = guard_settings("127.0.0.1", token=token, allowed=(), body=100_000)
    return serving(guarded_app(query_service(of=bank()), guard, [explorer_module(studies, page)]))


def asking(address):
    """Return a client that is patient with a busy machine."""
    return httpx.Client(base_url=address, timeout=PATIENCE)


def test_the_service_gives_what_the_export_holds():
    """Overview and studies are those of the library; data are never stored by a browser."""
    studies = made(score=score_named("rouge-l-f"))
    with explorer(studies) as address, asking(address) as client:
        overview = client.get("/v1/explorer")
        found = [client.get(f"/v1/explorer/studies/{number}") for number in range(len(studies))]
    for answer in (overview, *found):
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        json.loads(answer.content, parse_constant=no_constant)
    assert overview.text == as_json(overview_record(studies))
    assert [answer.text for answer in found] == [
        as_json(study_record(study, None)) for study in studies.all()
    ]


def test_the_page_has_its_own_policy():
    """The page and its files are given as they lie in the package, under the policy of the contract."""
    page = read_page()
    with explorer(made(simulated()[:1]), page=page) as address, asking(address) as client:
        for path, text, kind in (
            ("/", page.html, "text/html"),
            ("/explorer.css", page.css, "text/css"),
            ("/explorer.js", page.js, "text/javascript"),
        ):
            answer = client.get(path)
            assert (answer.status_code, answer.text) == (200, text)
            assert answer.headers["content-type"].partition(";")[0] == kind
            assert answer.headers["content-security-policy"] == PAGE_POLICY
            assert answer.headers["x-content-type-options"] == "nosniff"


def test_what_is_not_there_is_404_in_the_services_form():
    """Numbers without a study, studies without an image, and no numbers at all, are refused in one form."""
    with explorer(made(simulated()[:2])) as address, asking(address) as client:
        for path, status in (
            ("/v1/explorer/studies/2", 404),
            (f"/v1/explorer/studies/{10**40}", 404),
            ("/v1/explorer/studies/0/images", 404),
            ("/v1/explorer/studies/0/image", 404),
            ("/v1/explorer/studies/-1", 422),
            ("/v1/explorer/studies/x", 422),
            ("/v1/explorer/studies/..%2f..%2fetc", 404),
            ("/explorer.json", 404),
        ):
            answer = client.get(path)
            assert answer.status_code == status, path
            assert set(answer.json()) == {"error"}
            assert answer.json()["error"]["message"]
        assert client.post("/v1/explorer").status_code == 405


def test_data_need_the_token():
    """Where there is a token, no data are given without it."""
    with explorer(made(simulated()[:1]), token=TOKEN) as address, asking(address) as client:
        key = {"Authorization": f"Bearer {TOKEN.decode()}"}
        for path in ("/v1/explorer", "/v1/explorer/studies/0", "/v1/explorer/studies/0/images"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers=key).status_code == (404 if path.endswith("images") else 200)
        assert client.post("/v1/explorer/search", json={"words": "a"}).status_code == 401
        assert client.post("/v1/explorer/search", json={"words": "a"}, headers=key).status_code == 200


def test_images_are_served_from_their_folder_alone(tmp_path):
    """Prior and current are given; one that is outside the folder, or broken, is not there."""
    image = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    root = tmp_path / "images"
    root.mkdir()
    image.new("L", (2000, 100), 7).save(root / "in.png")
    image.new("L", (20, 10), 7).save(root / "in.jpg")
    image.new("L", (20, 10), 7).save(tmp_path / "out.png")
    (root / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nxx")
    names = ("in.png", "in.jpg", "broken.png", "../out.png")
    records = [{**simulated()[0], "id": name, "image": name, "prior_image": "in.jpg"} for name in names]
    with (
        explorer(made(records, images=ImageFolder(root))) as address,
        asking(address) as client,
    ):
        studies = [client.get(f"/v1/explorer/studies/{number}").json() for number in range(len(names))]
        found = [client.get(f"/v1/explorer/studies/{number}/images") for number in range(len(names))]
    assert [(study["has_image"], study["films"]) for study in studies] == [(True, None)] * 4
    assert {answer.status_code for answer in found} == {200}
    assert [list(answer.json()) for answer in found] == [["prior", "current"]] * 2 + [["prior"]] * 2
    assert [answer.json()["prior"]["width"] for answer in found] == [20] * 4
    assert found[0].json()["current"]["width"] == 1024
    assert found[0].headers["cache-control"] == "no-store"


def test_words_are_found_as_in_the_file(caplog):
    """A sentence that holds all words is found in the reports that are asked for; no log has the words."""
    records = [*simulated(), *odd()]
    studies, words = made(records), ("No", "no LEFT", "effusion", "<img", "nothing-of-the-kind")
    picks = [line.selection.selected for line in studies.lines]
    with caplog.at_level("DEBUG"), explorer(studies) as address, asking(address) as client:
        for asked in words:
            for within in ("any", "pick", "drafts", "prior", "reference"):
                answer = client.post("/v1/explorer/search", json={"words": asked, "within": within})
                expected = [asdict(hit) for hit in find_words(studies.queries, picks, asked, within)]
                assert answer.json() == {"found": expected}
                assert answer.headers["cache-control"] == "no-store"
        for bad in ({}, {"words": " "}, {"words": 7}, {"words": "x" * 201}, {"words": "a", "within": "b"}):
            assert client.post("/v1/explorer/search", json=bad).status_code == 422
        client.post("/v1/explorer/search", json={"words": "CANARY"})
        client.post("/v1/explorer/search", content=b"CANARY", headers={"Content-Type": "application/json"})
    assert caplog.text
    assert "CANARY" not in caplog.text


def test_studies_are_worked_out_when_asked_for_and_kept(monkeypatch):
    """A study is made once while it is kept; the oldest is forgotten; none is made before it is asked for."""
    monkeypatch.setattr(explorer_routes, "STUDIES_KEPT", 2)
    studies, asked = made(simulated()[:4]), []
    study = studies.study
    monkeypatch.setattr(studies, "study", lambda number: (asked.append(number), study(number))[1])
    with explorer(studies) as address, asking(address) as client:
        assert asked == []
        for number in (0, 0, 1, 0, 2, 0, 1):
            assert client.get(f"/v1/explorer/studies/{number}").json()["number"] == number
    assert asked == [0, 1, 2, 1]


def test_many_may_ask_at_once(monkeypatch):
    """Studies are made one at a time, off the event loop, and beside them the other routes answer."""
    studies, running, most = made(simulated()), [], []
    study = studies.study

    def watched(number):
        running.append(number)
        most.append(len(running))
        time.sleep(0.05)
        assert threading.current_thread().name.startswith("tabon-explorer")
        running.remove(number)
        return study(number)

    monkeypatch.setattr(studies, "study", watched)
    record = {key: simulated()[0][key] for key in ("id", "prior", "candidates")}
    with explorer(studies) as address, ThreadPoolExecutor(8) as pool:
        numbers = [number % len(studies) for number in range(24)]
        found = pool.map(
            lambda number: httpx.get(f"{address}/v1/explorer/studies/{number}", timeout=PATIENCE), numbers
        )
        chosen = pool.map(
            lambda _: httpx.post(f"{address}/v1/select", json=record, timeout=PATIENCE), range(8)
        )
        assert [answer.json()["number"] for answer in found] == numbers
        assert {answer.status_code for answer in chosen} == {200}
    assert set(most) == {1}


def test_who_waits_too_long_is_told_to_come_again(monkeypatch):
    """Slow work is a 503 with the way out, goes on, and is there the next time; so is a full queue."""
    monkeypatch.setattr(explorer_routes, "SECONDS", 0.2)
    monkeypatch.setattr(explorer_routes, "WAITING", 1)
    studies, go = made(simulated()[:2]), threading.Event()
    study = studies.study
    monkeypatch.setattr(studies, "study", lambda number: (go.wait(PATIENCE), study(number))[1])
    with explorer(studies) as address, ThreadPoolExecutor(2) as pool:
        both = list(
            pool.map(lambda _: httpx.get(f"{address}/v1/explorer/studies/0", timeout=PATIENCE), range(2))
        )
        assert [answer.status_code for answer in both] == [503, 503]
        assert {int(answer.headers["retry-after"]) for answer in both} <= {2, 5}
        go.set()
        until(lambda: get(f"{address}/v1/explorer/studies/0").status_code == 200, "the study is there")
    assert go.is_set()


def test_a_failure_says_nothing_of_the_study(monkeypatch, caplog):
    """An unforeseen error is a 500 that repeats no text."""
    studies = made(simulated()[:1])

    def failing(_):
        raise RuntimeError("CANARY")

    monkeypatch.setattr(studies, "study", failing)
    with explorer(studies) as address:
        answer = httpx.get(f"{address}/v1/explorer/studies/0", timeout=PATIENCE)
    assert answer.status_code == 500
    assert "CANARY" not in answer.text + caplog.text


@pytest.mark.heavy
def test_schemathesis_finds_nothing(tmp_path):
    """All checks of schemathesis over the explorer's routes in /openapi.json."""
    from schema_run import check_all

    with explorer(made()) as address:
        check_all(address, tmp_path, "--include-path-regex", "explorer")
