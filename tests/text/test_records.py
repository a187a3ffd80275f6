"""Records of JSON Lines files: what is read, what is refused, and that no text is quoted."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon import Query, Report, Transition
from tabon.errors import BadInputError
from tabon.text.records import (
    MAX_LEVELS,
    BadLine,
    query_from_record,
    read_query_lines,
    read_transitions,
    transition_from_record,
)

REPORT = {"findings": "Lungs are clear.", "impression": "Normal."}
TRANSITION = {"id": "t", "patient": "p", "prior": REPORT, "current": REPORT}
QUERY = {"id": "q", "patient": "p", "prior": REPORT, "candidates": [REPORT]}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(["id", "patient", "prior", "current", "candidates", "reference", "split"])
records = st.dictionaries(keys, json_values, max_size=7)


def one(record):
    """Read one object as a line of a queries file."""
    [line] = read_query_lines([json.dumps(record).encode()])
    return line


def test_a_report_is_an_object_a_text_or_a_draft_with_a_text():
    """All spellings of a report in the contract give the same two sections."""
    raw = "FINDINGS: Lungs are clear.\nIMPRESSION: Normal."
    query = one({"id": 1, "prior": raw, "candidates": [REPORT, raw, {"text": raw, "seed": 3}]})
    assert {(report.findings, report.impression) for report in (query.prior, *query.candidates)} == {
        ("Lungs are clear.", "Normal.")
    }


def test_the_newest_prior_is_the_last():
    """Of several priors the last one is compared with, in transitions and in queries."""
    both = {"prior": ["FINDINGS: Old.", "FINDINGS: New."]}
    assert transition_from_record({**TRANSITION, **both}).prior.findings == "New."
    assert query_from_record({**QUERY, **both}).prior.findings == "New."


def test_a_query_may_lack_a_prior_report_and_a_draft_may_be_null():
    """`null` or an empty list of priors, and a null draft, are empty reports to abstain on later."""
    for prior in (None, []):
        query = query_from_record({**QUERY, "prior": prior, "candidates": [None]})
        assert query.prior == query.candidates[0] == Report()


def test_known_keys_are_read_and_the_others_kept():
    """Facts are what the contract does not name; a transition's patient and dates are provenance."""
    assert query_from_record({**QUERY, "reference": REPORT, "site": [1]}).facts == {"site": [1]}
    transition = transition_from_record({**TRANSITION, "current_date": "2020-01-01", "site": {"a": 1}})
    assert transition.provenance() == {
        "id": "t",
        "patient": "p",
        "current_date": "2020-01-01",
        "site": {"a": 1},
    }


def test_ids_and_patients_are_strings():
    """A number and its digits name the same record or patient."""
    query = query_from_record({**QUERY, "id": 7, "patient": 0})
    assert (query.id, query.patient) == ("7", "0")
    assert query_from_record({**QUERY, "patient": None}).patient is None


@pytest.mark.parametrize("value", ["", True, 1.5, [], {}, ["a"]], ids=repr)
@pytest.mark.parametrize("key", ["id", "patient"])
def test_what_cannot_be_a_name_is_refused(key, value):
    """An id or patient is a string or a whole number."""
    for read, record in ((transition_from_record, TRANSITION), (query_from_record, QUERY)):
        with pytest.raises(BadInputError, match=f"'{key}' is .*; give a string or a whole number"):
            read({**record, key: value})


@pytest.mark.parametrize("key", ["id", "prior", "current"])
def test_a_transition_without_a_key_is_refused_by_its_name(key):
    """A missing key is named."""
    record = {name: value for name, value in TRANSITION.items() if name != key}
    with pytest.raises(BadInputError, match=f"no key '{key}'; add it"):
        transition_from_record(record)


@pytest.mark.parametrize("key", ["id", "prior", "candidates"])
def test_a_query_without_a_key_is_refused_by_its_name(key):
    """A missing key is named."""
    record = {name: value for name, value in QUERY.items() if name != key}
    with pytest.raises(BadInputError, match=f"no key '{key}'; add it"):
        query_from_record(record)


def test_a_mistyped_key_is_pointed_out():
    """A key that looks like the missing one is named as the one to rename; others are not."""
    record = {"id": 1, "prior": "", "candidate": [], "The lungs are clear.": 1}
    with pytest.raises(BadInputError, match="rename 'candidate'") as caught:
        query_from_record(record)
    assert "lungs" not in str(caught.value)


@pytest.mark.parametrize(
    "value", [3, 1.5, True, ["a"], {"findings": 3}, {"text": []}, {"note": "x"}], ids=repr
)
@pytest.mark.parametrize("place", ["prior", "current", "draft 1"])
def test_what_is_not_a_report_is_refused_with_its_place(place, value):
    """The message says which report of the record is wrong, and of what kind it is."""
    if place == "draft 1":
        read, record = query_from_record, {**QUERY, "candidates": ["fine", value]}
    else:
        read = transition_from_record
        record = {**TRANSITION, place: [value] if place == "prior" else value}
    with pytest.raises(BadInputError, match=place):
        read(record)


@pytest.mark.parametrize("value", [None, "text", 3, {"a": 1}], ids=repr)
def test_drafts_are_a_list(value):
    """Anything but a list of drafts is refused by its kind."""
    with pytest.raises(BadInputError, match=r"'candidates' is .*; give a list of drafts"):
        query_from_record({**QUERY, "candidates": value})


def test_a_transition_needs_a_prior():
    """Null and an empty list are no prior report."""
    for prior in (None, []):
        with pytest.raises(BadInputError, match="'prior' holds no report"):
            transition_from_record({**TRANSITION, "prior": prior})


def test_nan_is_not_json():
    """NaN and infinity would make the output unreadable for others, so they are refused on the way in."""
    for number in ("NaN", "-Infinity", "1e999"):
        [line] = read_query_lines(
            json.dumps(QUERY).replace('"q"', f'"q", "x": [{number}]').encode().splitlines()
        )
        assert line == BadLine(1, "holds NaN or infinity, which JSON cannot say; write null instead", "q")


@pytest.mark.parametrize("levels", [MAX_LEVELS, MAX_LEVELS + 1, 500, 900, 980, 100_000])
def test_deep_nesting_is_kept_or_refused_never_a_crash(levels):
    """What is kept can be written again; what is deeper is refused, whatever the depth."""
    line = json.dumps(QUERY)[:-1] + ', "x": ' + "[" * levels + "]" * levels + "}"
    [read] = read_query_lines([line.encode()])
    if levels == MAX_LEVELS:
        assert json.loads(json.dumps(read.facts)) == read.facts
    else:
        assert read.message.startswith("nested ")


def test_a_number_of_thousands_of_digits_is_refused():
    """Python does not read such numbers; the message says what to do."""
    [line] = read_query_lines([b'{"id": ' + b"9" * 5000 + b"}"])
    assert line == BadLine(1, "a number has too many digits; write it as a string")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not JSON at column 2"),
        (b"{'id': 1}", "not JSON at column 2"),
        (b'{"id": 1} {"id": 2}', "not JSON at column 11"),
        (b'{"id": "\xff"}', "not UTF-8 at byte 8"),
        (b"[]", "a list instead of an object"),
        (b'"text"', "a string instead of an object"),
        (b"3", "a number instead of an object"),
        (b"true", "true or false instead of an object"),
        (b"null", "null instead of an object"),
    ],
    ids=lambda value: value.decode("latin-1") if isinstance(value, bytes) else "",
)
def test_a_line_that_is_no_object_is_named_by_its_number(line, message):
    """Blank lines count: the number is the one that an editor shows."""
    lines = [b"\n", json.dumps(TRANSITION).encode(), b"  \n", line]
    with pytest.raises(BadInputError, match=f"^t.jsonl line 4: {re.escape(message)}.*; "):
        list(read_transitions(lines, name="t.jsonl"))
    lines[1] = json.dumps(QUERY).encode()
    good, bad = read_query_lines(lines)
    assert isinstance(good, Query)
    assert bad.number == 4
    assert bad.message.startswith(message)


def test_a_bad_line_does_not_stop_the_others_and_keeps_its_id():
    """Each line of a queries file stands for itself."""
    lines = [
        json.dumps(record).encode() for record in (QUERY, {**QUERY, "candidates": 3}, {**QUERY, "id": 8})
    ]
    first, second, third = read_query_lines(lines)
    assert (first.id, second.id, third.id) == ("q", "q", "8")
    assert isinstance(second, BadLine)


def test_an_id_that_occurs_again_is_refused():
    """Answers are found by their id, so a second query of the same id is not answered."""
    first, again, other = read_query_lines(json.dumps({**QUERY, "id": i}).encode() for i in (7, "7", 8))
    assert isinstance(first, Query)
    assert (again.number, again.id) == (2, "7")
    assert "give each query its own id" in again.message
    assert isinstance(other, Query)


@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(str.encode)
    | json_values.map(json.dumps).map(str.encode)
)
def test_any_line_is_a_query_a_bad_line_or_blank(line):
    """Whatever the bytes, nothing but these comes out, or the file is named as one of another kind."""
    items, said = [], ""
    try:
        items = list(read_query_lines([line]))
    except BadInputError as error:
        said = str(error)
    assert all(isinstance(item, Query | BadLine) for item in items)
    assert re.fullmatch(r"(the file of queries looks like [^\n]+, not queries; [^\n]+)?", said)


@given(records)
def test_any_object_is_read_or_refused(record):
    """Whatever the values, a record is read or refused with one sentence on one line."""
    for read, kind in ((transition_from_record, Transition), (query_from_record, Query)):
        try:
            answer = read(record)
        except BadInputError as error:
            answer = str(error)
        assert isinstance(answer, kind) or re.fullmatch(r"[^\n]+; [^\n]+", answer)


@given(json_values, keys)
def test_what_is_read_can_be_written_as_strict_json(value, key):
    """All that is passed through is JSON that any other reader takes."""
    line = one({**QUERY, key: value, "x": value})
    if isinstance(line, Query):
        json.dumps(dict(line.facts), allow_nan=False)
