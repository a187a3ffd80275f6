"""Reports and aligned sentences as JSON: nothing is lost, and places are those of the library."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.explanation.alignment import Aligned
from tabon.explanation.differences import differences
from tabon.service.page import as_json
from tabon.service.report_records import line_record, report_record
from tabon.text.marks import marks
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences


@given(st.text() | st.lists(st.sampled_from(["Left effusion of 6 mm.", "Clear.", "\n", "1."])).map(" ".join))
def test_a_report_is_there_as_sentences_and_as_written(text):
    """Sentences, their marked words, and the very text of each section can be had from the record."""
    report = Report(findings=text, impression="Clear.", other="x")
    record = report_record(report)
    for section in SECTIONS:
        assert record[section] == list(split_sentences(report.section(section)))
        assert record["written"].get(section, " ".join(record[section])) == report.section(section)
        assert record["marks"][section] == [
            [[mark.kind, mark.start, mark.end] for mark in marks(one)] for one in record[section]
        ]
    assert record["other"] == "x"
    as_json(record)


@pytest.mark.parametrize("kind", ["same", "reworded", "new", "dropped"])
def test_reworded_lines_say_which_words_differ(kind):
    """A reworded sentence has its lost and added words and what turned; no other line has them."""
    prior, current = ["Clear.", "Nodule of 6 mm."], ["Nodule."]
    pair = Aligned(kind=kind, prior=1, current=0, distance=0.1234567, turned=("Lung Lesion",))
    record = line_record(pair, prior, current)
    plain = {"kind": kind, "prior": 1, "current": 0, "distance": 0.123457, "turned": ["Lung Lesion"]}
    found = differences(prior[1], current[0])
    words = {
        "lost": [list(span) for span in found.lost],
        "added": [],
        "turns": [["number", ["6 mm"], []]],
    }
    assert record == (plain | words if kind == "reworded" else plain)
