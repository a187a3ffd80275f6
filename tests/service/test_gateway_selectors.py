"""A model's name says which selector picks; what has no prior is seen; what is spent is counted."""

import logging

import pytest

from tabon import Selector
from tabon.encoders.hashing import HashingEncoder
from tabon.service.gateway.chat_request import model_and_selector
from tabon.text.records import query_from_record

httpx = pytest.importorskip("httpx", reason="the gateway needs tabon[gateway]")
openai = pytest.importorskip("openai", reason="the gateway is tested with the openai client")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from gateway_upstream import USAGE, Upstream, fails, gateway, written  # noqa: E402
from service_server import PATIENCE, bank, get, post, queries, query_service  # noqa: E402

ASK = {"model": "up-1", "messages": [{"role": "user", "content": "Write the report."}], "seed": 0}
NAMES = ["transition", "fused", "consensus:chamfer"]
CANARY = "Zqxwv"
PICKS = 'tabon_selections_total{selector="transition"}'


@pytest.fixture(scope="module")
def shared():
    """Run one upstream and one gateway that allows three selectors."""
    with Upstream() as up, gateway(up, answers=query_service(others=NAMES[1:])) as address:
        yield up, address


@pytest.fixture
def running(shared):
    """Give them to a test as new."""
    up, address = shared
    up.texts.clear()
    up.calls.clear()
    return up, address


def client(address):
    """Return the real client, which does not ask again by itself."""
    return openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=PATIENCE)


def ask(address, **fields):
    """Post a request."""
    return post(f"{address}/v1/chat/completions", json={**ASK, **fields})


def counts(address, *names):
    """Return numbers of /metrics."""
    lines = dict(
        line.rsplit(" ", 1) for line in get(f"{address}/metrics").text.splitlines() if line[0] != "#"
    )
    return [float(lines[name]) for name in names]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_the_models_name_chooses_the_selector(running, name, stream):
    """`up-1@tabon-NAME` from the real client gives the pick of that selector; the upstream sees `up-1`."""
    up, address = running
    selector = Selector(bank(), name, encoder=HashingEncoder())
    for record in queries()[:3]:
        up.texts[:] = written(record)
        extra = {"tabon": {"prior": record["prior"], "patient": record["patient"]}}
        asked = {**ASK, "model": f"up-1@tabon-{name}", "extra_body": extra}
        found = client(address).chat.completions.create(**asked, stream=stream)
        if stream:
            chunks = list(found)
            text, own = "".join(one.choices[0].delta.content or "" for one in chunks), chunks[-1].tabon
        else:
            text, own = found.choices[0].message.content, found.tabon
        [wanted] = selector.select_many([query_from_record({**record, "candidates": up.texts})])
        assert (own["selected"], own["distances"]) == (wanted.selected, list(wanted.total_distances))
        assert (own["signature"], text) == (wanted.signature, up.texts[wanted.selected])
        assert up.calls[-1][2]["model"] == "up-1"


def test_a_bare_mark_is_the_services_own_selector(running):
    """`up-1@tabon` is `up-1`, field by field; other signs behind a name belong to it."""
    up, address = running
    extra = {"tabon": {"prior": queries()[0]["prior"]}}
    plain, marked, odd = (
        ask(address, **extra, model=name).json() for name in ("up-1", "up-1@tabon", "a@tabon2")
    )
    assert plain == marked == odd
    assert [body["model"] for _, _, body in up.calls] == ["up-1", "up-1", "a@tabon2"]


def test_the_field_names_a_selector_too(running):
    """`tabon.selector` does what the model's name does; both may say the same, under any of its names."""
    _, address = running
    own = {"prior": queries()[0]["prior"]}
    wanted = ask(address, tabon=own, model="up-1@tabon-consensus:chamfer").json()
    assert wanted["tabon"]["signature"].startswith("selector:consensus:chamfer|")
    for model in ("up-1", "up-1@tabon", "up-1@tabon-mbr:chamfer"):
        field = {**own, "selector": "consensus:chamfer"}
        assert ask(address, tabon=field, model=model).json() == wanted
    assert ask(address, tabon={**own, "selector": None}).json()["tabon"]["signature"].startswith("distance:")


def test_selectors_that_are_refused(running):
    """One that is not allowed, two at once, or none: one sentence, and no draft is asked for."""
    up, address = running
    for fields, status, words in (
        (
            {"model": f"up-1@tabon-{CANARY}"},
            422,
            "does not allow; ask for transition or fused or consensus:chamfer",
        ),
        ({"model": "up-1@tabon-fused:/etc/passwd"}, 422, "does not allow"),
        ({"tabon": {"selector": CANARY}}, 422, "does not allow"),
        ({"model": "up-1@tabon-fused", "tabon": {"selector": "transition"}}, 400, "name two selectors"),
        ({"model": "up-1@tabon-"}, 400, "'model' is not MODEL@tabon or MODEL@tabon-SELECTOR"),
        ({"model": "@tabon-fused"}, 400, "'model' is not MODEL@tabon or MODEL@tabon-SELECTOR"),
        ({"tabon": {"selector": ""}}, 400, "'tabon.selector' is not the name of a selector"),
        ({"tabon": {"selector": 3}}, 400, "'tabon.selector' is not the name of a selector"),
        ({"tabon": {"selector": "x" * 300}}, 400, "'tabon.selector' is not the name of a selector"),
    ):
        found = ask(address, **fields)
        assert (found.status_code, words in found.json()["error"]["message"]) == (status, True), found.text
        assert CANARY not in found.text
    with pytest.raises(openai.UnprocessableEntityError, match="does not allow"):
        client(address).chat.completions.create(**{**ASK, "model": "up-1@tabon-random:1"})
    assert up.calls == []


def test_the_models_that_may_be_named_are_listed(running):
    """GET /v1/models has each model of the upstream, and again with each selector that is allowed."""
    _, address = running
    names = [model.id for model in client(address).models.list()]
    assert names == ["up-1", "up-1@tabon-fused", "up-1@tabon-consensus:chamfer"]
    prior = {"tabon": {"prior": queries()[0]["prior"]}}
    signatures = [ask(address, model=name, **prior).json()["tabon"]["signature"] for name in names]
    assert len(set(signatures)) == 3
    with Upstream() as up, gateway(up) as alone:
        assert [model.id for model in client(alone).models.list()] == ["up-1"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_missing_prior_is_never_silent(running, caplog, stream):
    """A header, a line of the log and a counter say so; with a prior none of them does."""
    caplog.set_level(logging.INFO)
    _, address = running
    name, reason = "tabon_missing_priors_total", 'tabon_abstentions_total{reason="empty-prior"}'
    before = counts(address, name, reason)
    for prior in ({}, {"tabon": {"prior": None}}, {"tabon": {"prior": ""}}):
        found = ask(address, stream=stream, **prior)
        assert (found.status_code, found.headers["x-tabon-prior"]) == (200, "none")
        assert stream or found.headers["x-tabon-abstained"] == "empty-prior"
        assert '"abstained": "empty-prior"' in found.text
    told = [one for one in caplog.records if "has no prior report" in one.getMessage()]
    assert [(one.name, one.levelname) for one in told] == [("tabon.service.gateway.routes", "WARNING")] * 3
    assert counts(address, name, reason) == [number + 3 for number in before]
    caplog.clear()
    good = ask(address, stream=stream, tabon={"prior": queries()[0]["prior"]})
    assert not {"x-tabon-prior", "x-tabon-abstained"} & set(good.headers)
    assert "no prior" not in caplog.text
    assert counts(address, name, reason) == [number + 3 for number in before]


def test_a_selector_that_needs_no_prior_still_says_that_there_was_none(running):
    """`fused` picks without a prior; the header and the counter are there, an abstention is not."""
    _, address = running
    before = counts(address, "tabon_missing_priors_total")
    found = ask(address, model="up-1@tabon-fused")
    assert found.headers["x-tabon-prior"] == "none"
    assert "x-tabon-abstained" not in found.headers
    assert found.json()["tabon"]["selected"] is not None
    assert counts(address, "tabon_missing_priors_total") == [before[0] + 1]


def test_a_required_prior_is_asked_for_before_any_draft():
    """With require_prior the client gets one sentence and nothing is spent; with a prior it is answered."""
    with Upstream() as up, gateway(up, answers=query_service(require_prior=True)) as address:
        for prior in ({}, {"tabon": {"prior": None}}, {"tabon": {"prior": ""}}):
            found = ask(address, **prior)
            assert found.status_code == 422
            assert found.json()["error"]["message"].startswith("the request has no prior report")
        with pytest.raises(openai.UnprocessableEntityError, match="has no prior report"):
            client(address).chat.completions.create(**ASK, stream=True)
        assert up.calls == []
        assert ask(address, tabon={"prior": queries()[0]["prior"]}).status_code == 200


def test_tokens_and_the_upstreams_time_are_counted():
    """Tokens are those that the upstream said, of all drafts; each call has its time, failed ones too."""
    names = [f'tabon_gateway_tokens_total{{kind="{kind}"}}' for kind in ("prompt", "completion")]
    seconds, margins = "tabon_gateway_upstream_seconds_count", 'tabon_margin_count{selector="transition"}'
    prior = {"tabon": {"prior": queries()[0]["prior"], "drafts": 3}}
    with Upstream(knows_n="fewer") as up, gateway(up) as address:
        assert counts(address, *names, seconds) == [0, 0, 0]
        assert ask(address, **prior).status_code == 200  # one call with n, two for the drafts that it lacks
        spent = [3 * USAGE["prompt_tokens"], 3 * USAGE["completion_tokens"]]
        assert counts(address, *names, seconds, margins) == [*spent, 3, 1]
        up.script[:] = [fails(500)]
        assert ask(address, **prior).status_code == 200
        assert counts(address, seconds) == [3 + 4]
        for odd in ({"prompt_tokens": "x"}, {"prompt_tokens": -1, "completion_tokens": 1e300}, {"total": 3}):
            before = counts(address, *names)
            up.usage = odd
            assert ask(address, **prior).status_code == 200
            assert counts(address, *names) == before


def test_pruning_counts_one_answer():
    """Comparisons of drafts that are still being written are no answers: one request is one pick."""
    long = [" ".join(f"Word {n} of draft {number}." for n in range(30)) for number in range(4)]
    with Upstream([f"Findings: {text}" for text in long]) as up, gateway(up, prune=True) as address:
        [before] = counts(address, "tabon_batch_size_count")
        found = ask(address, tabon={"prior": queries()[0]["prior"], "drafts": 4})
        assert found.json()["tabon"]["stopped"]
        [picks, asked] = counts(address, PICKS, "tabon_batch_size_count")
        assert (picks, asked > before + 1) == (1, True)


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("a@tabon-fused@tabon-paper", ("a@tabon-fused", "paper")),
        ("a@b@tabon", ("a@b", None)),
        ("@tabonx", ("@tabonx", None)),
        ("org/model:7b@tabon-transition:cost-ot/knn", ("org/model:7b", "transition:cost-ot/knn")),
    ],
)
def test_the_last_mark_counts(model, wanted):
    """A name may hold the mark's signs elsewhere."""
    assert model_and_selector(model) == wanted
