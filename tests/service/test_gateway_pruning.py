"""Weak drafts are stopped while they are written: the upstream sees the close, and writes less."""

import pytest

from tabon import Selector
from tabon.encoders.hashing import HashingEncoder
from tabon.method.selection import Note
from tabon.selectors.streaming import Halving, StreamingSelector
from tabon.text.reports import report_from_record

openai = pytest.importorskip("openai", reason="the gateway is tested with the openai client")
pytest.importorskip("httpx", reason="the gateway needs tabon[gateway]")
pytest.importorskip("starlette", reason="the service needs tabon[service]")
pytest.importorskip("uvicorn", reason="the service needs tabon[service]")

from gateway_upstream import Act, Upstream, gateway, written  # noqa: E402
from service_server import PATIENCE, bank, queries, until  # noqa: E402

ASK = {"model": "up-1", "messages": [{"role": "user", "content": "Write the report."}], "seed": 0}
POINTS = (8, 16)


def ask(address, record, **options):
    """Ask with the real client."""
    one = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=PATIENCE)
    extra = {"tabon": {"prior": record["prior"]}}
    return one.chat.completions.create(**ASK, **options, extra_body=extra)


def longer(record):
    """Return a query whose drafts go on for a while, so that a stopped one is surely being written."""
    return {**record, "candidates": [text + " No further change is seen." * 12 for text in written(record)]}


def in_the_library(record, rule):
    """Return what the library's own session says of the same drafts."""
    texts = written(record)
    streaming = StreamingSelector(Selector(bank(), encoder=HashingEncoder()), rule=rule)
    session = streaming.open(report_from_record(record["prior"]), len(texts))
    for number, text in enumerate(texts):
        session.feed(number, text)
        session.finish(number)
    return session.result()


@pytest.mark.parametrize("number", range(2))
def test_what_is_stopped_is_what_the_library_stops(number):
    """Stopped drafts, pick and distances are those of `StreamingSelector`; the upstream sees the closes."""
    record = longer(queries()[number])
    wanted = in_the_library(record, Halving(POINTS))
    stopped = [place for place in range(5) if Note("stopped", draft=place) in wanted.flags]
    assert stopped
    with Upstream(texts=written(record), pause=0.01) as up:
        with gateway(up, prune=True, prune_points=POINTS) as address:
            found = ask(address, record)
        own = found.tabon
        assert (own["stopped"], own["selected"], own["signature"]) == (
            stopped,
            wanted.selected,
            wanted.signature,
        )
        assert sorted(own["flags"]) == sorted(map(str, wanted.flags))
        left = [place for place in range(5) if place not in stopped]
        assert [own["distances"][place] for place in left] == [
            wanted.total_distances[place] for place in left
        ]
        assert [own["distances"][place] for place in stopped] == [None] * len(stopped)
        assert found.choices[0].message.content == written(record)[wanted.selected]
        until(lambda: up.closed == len(stopped), "those that were stopped are closed, and no others")
        assert up.words < sum(len(text.split(" ")) for text in written(record))
        assert [body.get("n") for _, _, body in up.calls] == [None] * 5


def test_pruning_saves_words_and_streams_on():
    """With a stream for the client fewer words are written than without pruning, and the text is whole."""
    record, words = queries()[0], {}
    for prune in (False, True):
        with Upstream(texts=written(record), pause=0.01) as up:
            with gateway(up, prune=prune, prune_points=POINTS) as address:
                chunks = list(ask(address, record, stream=True))
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) in written(record)
            until(lambda: up.running == 0, "no call is left")
            words[prune] = up.words
    assert words[True] < 0.8 * words[False]


def test_as_many_are_left_as_the_client_wants():
    """With n = 3 at least three drafts are written to their end."""
    record = queries()[0]
    with (
        Upstream(texts=written(record), pause=0.005) as up,
        gateway(up, prune=True, prune_points=(8,)) as address,
    ):
        found = ask(address, record, n=3)
    assert (len(found.choices), len(found.tabon["stopped"])) == (3, 2)


def test_a_stream_that_breaks_is_asked_for_again():
    """A draft that broke off is written anew; it takes part in the race with what it had."""
    record = queries()[0]
    with Upstream(texts=written(record), pause=0.005, script=[Act("cut", after=4)]) as up:
        with gateway(up, prune=True, prune_points=POINTS) as address:
            found = ask(address, record)
        assert found.choices[0].message.content in written(record)
        assert (found.tabon["failed"], len(up.calls)) == ({}, 6)


def test_without_a_prior_nothing_is_stopped():
    """There is nothing to compare with, so all drafts come with one call."""
    with Upstream() as up, gateway(up, prune=True, prune_points=(2,)) as address:
        found = ask(address, {"prior": None})
        assert (found.tabon["stopped"], len(up.calls)) == ([], 1)


def test_a_draft_that_broke_off_stops_no_other():
    """Half of a draft whose call failed wins nothing: the draft that came is the answer."""
    record = longer(queries()[0])
    texts = written(record)[:2]
    with (
        Upstream(texts=texts, pause=0.01) as up,
        gateway(up, prune=True, prune_points=(16,), retries=0, drafts=2) as address,
    ):
        for _ in range(4):
            up.script[:] = [Act("cut", after=10)]
            own = ask(address, record).tabon
            [failed] = map(int, own["failed"])
            assert own["selected"] == 1 - failed
            assert own["stopped"] == []
