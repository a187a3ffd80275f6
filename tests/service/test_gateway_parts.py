"""The gateway's parts by themselves: events, deltas, priors in prompts, settings, the order of drafts."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tabon.errors import BadInputError, GatewayError
from tabon.generation.prompts import as_data, fill, get_prompt
from tabon.method.selection import Selection
from tabon.service.gateway import GatewaySettings, gateway_settings
from tabon.service.gateway.chat_request import asked_of, known_marks, prior_in
from tabon.service.gateway.completions import chunks
from tabon.service.gateway.draft_set import DraftSet
from tabon.service.gateway.replies import (
    Draft,
    EventReader,
    Reply,
    StreamReader,
    extend,
    joined,
    reply_of,
    total_usage,
)
from tabon.service.gateway.upstream import refused
from tabon.service.parsing import Limits, ranking
from tabon.text.reports import Report, parse_report

SETTINGS = GatewaySettings(upstream="http://127.0.0.1:1/v1")
WORDS = st.text(alphabet="ab .:\n", max_size=40)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.text(alphabet="abé: {}", max_size=20)), st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_events_do_not_depend_on_how_the_bytes_are_cut(texts, end, data):
    """Any cut of the stream gives the events that were written, with each of the three line ends."""
    stream = "".join(f": note{end}data: {text}{end}data:{text}{end}{end}" for text in texts).encode()
    stream += b"data: unfinished"
    reader, found = EventReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:size])
        stream = stream[size:]
    assert found == [f"{text}\n{text.removeprefix(' ')}".encode() for text in texts]


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=10))))
def test_a_stream_is_the_completion_it_was_cut_from(pieces):
    """Text that comes in pieces for several choices is put together; what has no end is no draft."""
    reader = StreamReader(3)
    for index, text in pieces:
        event = {"choices": [{"index": index, "delta": {"content": text}}]}
        assert list(reader.add(json.dumps(event).encode())) == [(index, text)]
    assert (reader.reply().came, reader.reply().broken) == (0, True)
    for index in (0, 2):
        list(reader.add(json.dumps({"choices": [{"index": index, "finish_reason": "stop"}]}).encode()))
    drafts = reader.reply().drafts
    assert drafts[1] is None
    for index in (0, 2):
        assert drafts[index].text == "".join(text for place, text in pieces if place == index)


@given(JSON_VALUES)
def test_no_chunk_and_no_answer_breaks_the_reader(value):
    """Whatever JSON the upstream sends, the reader takes it or raises its one error."""
    for record in (
        value,
        {"choices": value},
        {"choices": [value]},
        {"choices": [{"delta": value, "message": value}]},
    ):
        data = json.dumps(record).encode()
        reader = StreamReader(2)
        for read in (
            lambda data=data, reader=reader: list(reader.add(data)),
            lambda data=data: reply_of(data, 2),
        ):
            try:
                read()
            except GatewayError as error:
                assert error.status == 502  # noqa: PT017
        for draft in reader.reply().drafts:
            assert draft is None or isinstance(draft.text, str)


def grown(found, *deltas, flat=False):
    """Return an object to which deltas were added."""
    for delta in deltas:
        extend(found, delta, flat=flat)
    return joined(found)


def test_tool_calls_of_a_stream_are_put_together():
    """Names come once, arguments in pieces, each call by its index; log-probabilities follow each other."""
    first = {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}}]}
    second = {
        "tool_calls": [{"index": 1, "id": "b", "function": {"arguments": "}"}}, {"index": 0, "id": "a"}]
    }
    both = grown({}, first, second)["tool_calls"]
    assert both[1] == {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}
    assert both[0]["id"] == "a"
    far = grown({}, {"tool_calls": [{"index": 10**9}]})["tool_calls"]
    assert len(far) == 1
    tokens = [{"token": "x", "index": 0}]
    assert grown({"content": [*tokens]}, {"content": tokens}, flat=True) == {"content": tokens * 2}


def test_what_grows_is_not_copied():
    """Each delta is added to what is there: a stream takes linear time, whatever its pieces are."""
    reader = StreamReader(1)
    delta = {"content": "x", "parts": [1], "other": {"text": "y"}}
    event = json.dumps({"choices": [{"delta": delta, "logprobs": {"content": [2]}}]}).encode()
    list(reader.add(event))
    list(reader.add(event))
    before = [reader._messages[0], reader._messages[0]["content"], reader._messages[0]["parts"]]
    before += [reader._messages[0]["other"]["text"], reader._logprobs[0]["content"]]
    for _ in range(1000):
        list(reader.add(event))
    after = [reader._messages[0], reader._messages[0]["content"], reader._messages[0]["parts"]]
    after += [reader._messages[0]["other"]["text"], reader._logprobs[0]["content"]]
    assert list(map(id, before)) == list(map(id, after))
    list(reader.add(json.dumps({"choices": [{"finish_reason": "stop"}]}).encode()))
    [draft] = reader.reply().drafts
    assert draft.message["content"] == "x" * 1002
    assert draft.message["parts"] == [1] * 1002
    assert draft.message["other"] == {"text": "y" * 1002}
    assert draft.logprobs == {"content": [2] * 1002}


@given(WORDS, WORDS)
def test_the_prior_of_a_filled_prompt_is_found(findings, impression):
    """What `fill` put into P3 and P3-hardened comes out again, marks inside a report or not."""
    report = Report(findings, impression)
    assume(not report.is_empty)
    if "\nImpression:" not in report.findings:
        assert prior_in(fill(get_prompt("P3"), prior=report)) == report
    hardened = Report(as_data(report.findings), as_data(report.impression))
    assert prior_in(fill(get_prompt("P3-hardened"), prior=report)) == hardened


def test_marks_inside_a_report_do_not_cut_it():
    """The prior ends at the last mark; a prompt with one mark, or in the wrong order, shows none."""
    (_, plain) = marks = known_marks()
    assert len(marks) == 2
    inner = Report(f"Clear.\n{plain.after}\nNo effusion.", "Normal.")
    assert prior_in(fill(get_prompt("P3"), prior=inner)) == inner
    for before, after in marks:
        assert prior_in(f"{after}\nFindings: Clear.\n{before}") is None
        assert prior_in(f"{before}\nFindings: Clear.") is None
        free = "FINDINGS:\nClear lungs.\n\nIMPRESSION:\nNormal."
        assert prior_in(f"x\r\n {before}\r\n{free}\n{after} \ny") == parse_report(free)
    for name in ("P1", "P2"):
        assert prior_in(get_prompt(name).text) is None


def test_many_marks_take_linear_time():
    """A megabyte of marks is read in one pass."""
    assert prior_in(f"{known_marks()[1].before}\n" * 30_000) is None


ADDRESSES = ["", "x", "ftp://h/v1", "http://", "http://h:0/v1", "http://h:x/v1", "https://u:p@h/v1", "https://h/v1?k=1",
             "https://h/v1#x", "https://h /v1", "https://h\n/v1", "https://é/v1", "http://h/v1", "http://10.0.0.1/v1",
             "http://127.0.0.1.example.org/v1"]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_that_are_refused(address):
    """No address, one with a secret, or plain http to another machine: refused, and not repeated."""
    with pytest.raises(BadInputError) as caught:
        GatewaySettings(upstream=address)
    assert len(address) < 5 or address not in str(caught.value)


def test_addresses_that_are_taken():
    """TLS anywhere, plain http on this machine, or elsewhere where it is allowed."""
    for address in ("https://h.example/v1/", "http://localhost:8000/v1", "http://[::1]:1/v1"):
        assert GatewaySettings(upstream=address).url("models").endswith("/v1/models")
    assert GatewaySettings(upstream="http://h/v1", allow_plain=True).url("x") == "http://h/v1/x"


def test_settings_that_are_refused(tmp_path):
    """Two keys, a token that would leave the house, an empty key file, limits of nothing."""
    file = tmp_path / "key"
    file.write_text("sk-some-key\n")
    file.chmod(0o644)
    with pytest.raises(BadInputError, match="run chmod 600"):
        gateway_settings(SETTINGS.upstream, key_file=file)
    file.chmod(0o600)
    assert gateway_settings(SETTINGS.upstream, key_file=file, has_token=True, drafts=3).key == "sk-some-key"
    assert "sk-some-key" not in repr(gateway_settings(SETTINGS.upstream, key_file=file))
    for options, words in (
        ({"key_file": file, "pass_key": True}, "leave one of them out"),
        ({"pass_key": True, "has_token": True}, "must not see"),
        ({"drafts": 0}, "drafts"),
        ({"drafts": 17}, "drafts"),
        ({"timeout": 0}, "limit"),
        ({"calls": 0}, "limit"),
        ({"prune_points": (3, 2)}, "rising"),
    ):
        with pytest.raises(BadInputError, match=words):
            gateway_settings(SETTINGS.upstream, **options)
    for poor in (b"", b"two words", "é".encode(), b"x" * 5000):
        file.write_bytes(poor)
        with pytest.raises(BadInputError, match="does not hold a key"):
            gateway_settings(SETTINGS.upstream, key_file=file)


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=6), st.data())
def test_the_order_is_by_distance_with_the_pick_first(distances, data):
    """The pick leads, then the others by distance and place; a draft that did not come is not there."""
    came = sorted(data.draw(st.sets(st.integers(0, len(distances) - 1), min_size=1)))
    pick = data.draw(st.sampled_from(came))
    first, *others = ranking(Selection(selected=pick, total_distances=tuple(distances)), came)
    assert first == pick
    assert sorted([first, *others]) == came
    assert others == sorted(others, key=lambda place: (distances[place], place))


@given(st.text(max_size=300), st.booleans())
def test_chunks_spell_the_draft(text, usage):
    """The chunks of a stream are the text of the draft, whatever characters it has."""
    body = {"model": "m", "messages": [{"role": "user"}], "stream_options": {"include_usage": usage}}
    asked = asked_of(json.dumps(body).encode(), Limits(), SETTINGS)
    draft_set = DraftSet([None])
    draft_set.take(Reply((Draft({"role": "assistant", "content": text}, "stop"),), {"total_tokens": 3}), [0])
    chosen = type("Chosen", (), {"order": (0,), "extension": {"selected": 0}})
    *sent, end = chunks(asked, draft_set, chosen)
    records = [json.loads(one.removeprefix(b"data: ")) for one in sent]
    told = [choice["delta"].get("content") or "" for record in records for choice in record["choices"]]
    assert ("".join(told), end) == (text, b"data: [DONE]\n\n")
    assert [record.get("usage") for record in records] == [None] * (len(records) - usage) + [
        {"total_tokens": 3}
    ] * usage
    assert len({(record["id"], record["created"]) for record in records}) == 1


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("ab"),
            st.integers(0, 9) | st.none() | st.fixed_dictionaries({"c": st.integers(0, 9)}),
        )
    )
)
def test_usage_is_a_sum(usages):
    """Each number is the sum of those that the calls said."""

    def sums(key):
        return sum(one[key] for one in usages if isinstance(one.get(key), int))

    kinds = {key: {type(one[key]) for one in usages if one.get(key) is not None} for key in "ab"}
    total = total_usage(usages)
    for key in "ab":
        if kinds[key] == {int}:
            assert total[key] == sums(key)


@given(JSON_VALUES, st.integers(300, 599), st.booleans())
def test_an_upstreams_error_is_an_error_with_a_known_status(body, status, own_key):
    """Whatever an upstream sends with an error, the client gets a declared status and plain words."""
    error = refused(status, {"retry-after": "x"}, {"error": body}, own_key=own_key)
    assert error.status in {400, 404, 413, 422, 429, 502, 504} | (set() if own_key else {401, 403})
    assert set(json.loads(error.body())["error"]) == {"message", "type", "param", "code"}
