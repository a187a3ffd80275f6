"""A file of another kind is told by its first line; what may be the wanted kind never is."""

import json

import pytest

from tabon.errors import BadInputError
from tabon.text.file_kinds import HINTS, MARKS, RECORDS, WANTED, check_kind, kind_of

LINES = {
    "queries": {"id": "1", "prior": "Clear.", "candidates": ["Clear."], "reference": "Clear."},
    "transitions": {"id": "1", "prior": "Clear.", "current": "Clear.", "patient": "p"},
    "selections": {"id": "1", "selected": 0, "signature": "x"},
    "a journal of drafts": {"key": "k", "study": "s", "prompt": "P1", "sample": 0, "text": "Clear."},
}
TEXTS = {
    b"patient,date,report\n": "a table (CSV)",
    b"\xef\xbb\xbfpatient;date;report\r\n": "a table (CSV)",
    b'"patient"\t"date"': "a table (CSV)",
    b"{\n": "JSON over several lines",
    b"[\n": "JSON over several lines",
    b' {"id": "1",\n': "JSON over several lines",
    b'[{"id": "1"}]': "a JSON list",
    **{mark + b"\x00rest": kind for mark, kind in MARKS.items()},
}
OPEN = [b'{"id": "1"}', b'{"id": "1", "prior": "Lungs', b"The lungs are clear.", b'["Clear."]', b"null", b"7"]


@pytest.mark.parametrize("wanted", RECORDS)
@pytest.mark.parametrize("kind", LINES)
def test_records_are_told_by_their_keys(kind, wanted):
    """A record of each kind is that kind, and never taken for another."""
    assert kind_of(json.dumps(LINES[kind]).encode(), wanted) == kind


@pytest.mark.parametrize("line", TEXTS)
def test_files_that_are_no_json_lines_are_told(line):
    """Tables, JSON in another layout and binary files are named, with a hint and without their text."""
    with pytest.raises(BadInputError) as caught:
        check_kind(line, "queries", "file")
    assert str(caught.value).startswith(f"file looks like {TEXTS[line]}, not queries; ")
    assert "patient" not in str(caught.value)


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("line", OPEN)
def test_what_may_be_the_wanted_kind_passes(line, wanted):
    """A line with a mistake in it is the reader's to refuse."""
    assert kind_of(line, wanted) == wanted


def test_drafts_is_candidates():
    """Queries with the other name of the key are queries."""
    line = json.dumps({"id": 1, "prior": None, "drafts": []}).encode()
    assert kind_of(line, "transitions") == "queries"
    check_kind(line, "queries", "file")


def test_every_kind_has_a_hint():
    """What can be found is either wanted somewhere or has a hint of its own."""
    assert {*TEXTS.values(), *RECORDS} <= {*HINTS, *WANTED}
