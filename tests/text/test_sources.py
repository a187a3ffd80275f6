"""Transitions and queries as values, from frames and from rows: the files' keys, no text in a repr."""

import json
from dataclasses import replace
from datetime import date

import pandas as pd
import polars as pl
import pytest

from tabon import Query, Report, Transition, read_queries
from tabon.errors import BadInputError
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.sources import transitions_of

CANARY = "Zqxwv effusion."
ROWS = [
    {"id": "t1", "patient": 7, "prior": CANARY, "current": "Clear.", "current_date": date(2019, 4, 3)},
    {"id": "t2", "patient": None, "prior": "Clear.", "current": "FINDINGS: Mass.", "current_date": None},
]
QUERIES = [{"id": 1, "patient": 7, "prior": "Clear.", "candidates": [CANARY, "Mass."], "reference": "Mass."}]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "rows": iter}


def lines(path, records):
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(record, default=str) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_give_what_the_file_gives(tmp_path, frame):
    """A pandas or polars frame, plain rows and the JSON Lines file of one table are read alike."""
    from_file = list(transitions_of(lines(tmp_path / "t.jsonl", ROWS)))
    assert list(transitions_of(FRAMES[frame](ROWS))) == from_file
    assert read_queries(FRAMES[frame](QUERIES)) == read_queries(lines(tmp_path / "q.jsonl", QUERIES))
    assert (from_file[0].patient, from_file[1].patient) == ("7", None)


def test_values_take_the_keys_of_the_file():
    """What a record says by its keys a call says by its arguments; one prior or several, oldest first."""
    record = {
        "id": "q",
        "patient": "7",
        "prior": "Mass.",
        "candidates": ["Clear.", "Mass."],
        "reference": "Mass.",
    }
    assert Query(**record, draft_facts=({}, {})) == query_from_record(record)
    assert Transition(
        id="t", prior=["Clear.", "Mass."], current="Clear.", patient=7
    ) == transition_from_record({"id": "t", "patient": 7, "prior": ["Clear.", "Mass."], "current": "Clear."})
    older = Query(prior=["Clear.", {"findings": "Mass."}], candidates=[])
    assert (older.prior.findings, older.earlier) == ("Mass.", (Report("Clear."),))
    assert replace(older, id="q").priors == older.priors == (*older.earlier, older.prior)
    assert [Query(prior=prior, candidates=[]).priors for prior in (None, [], "Mass.")] == [
        (),
        (),
        (Report("Mass."),),
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Query(prior="Clear.", candidates="Clear."), "'candidates' is one draft"),
        (lambda: Query(prior="Clear.", candidates=[7]), "draft 0: a report is int"),
        (lambda: Query(prior=["Clear.", 7], candidates=[]), "'prior': a report is int"),
        (lambda: Transition(prior="Clear.", current="Clear.", patient=""), "'patient' is empty"),
        (lambda: list(transitions_of(pd.DataFrame([{"prior": CANARY}]))), "row 1: no key 'current'; add it"),
        (lambda: read_queries(pl.DataFrame([*QUERIES, *QUERIES])), "rows line 2: the id occurred before"),
        (lambda: read_queries("nowhere.jsonl"), "nowhere.jsonl cannot be read"),
    ],
)
def test_what_does_not_fit_is_one_sentence(make, message):
    """The place is named, the text is not."""
    with pytest.raises(BadInputError, match=message) as caught:
        make()
    assert "Zqxwv" not in str(caught.value)


def test_reprs_are_short_and_have_no_text():
    """One line each, with names and counts."""
    report, query = Report(CANARY), query_from_record(QUERIES[0])
    shown = [repr(report), repr(query), repr(next(transitions_of(ROWS)))]
    assert shown == [
        "Report(findings=2 words, impression=0 words)",
        "Query(id='1', patient='7', drafts=2)",
        "Transition(id='t1', patient='7')",
    ]
