"""The simulated cohort as records: the same everywhere, in order, disjoint, streaming."""

import gc
import hashlib
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.data.simulate import PROMPTS, SPLITS, SimulationSettings, simulate_queries, simulate_transitions
from tabon.data.simulate.patients import VISIT_COUNTS, VISIT_WEIGHTS, facts, simulate_patient
from tabon.data.simulate.records import exams
from tabon.data.simulate.settings import split_of
from tabon.errors import BadInputError

ALL_TEST = (0.0, 0.0, 1.0)
ALL_TRAIN = (1.0, 0.0, 0.0)
GOLDEN_TRANSITIONS = "9e74b45e6a12cc29757f8c8309620b2481e593211238b4c1ed2369bfc5a8a221"
GOLDEN_QUERIES = "bdf4553b88ef176690522a314faa3be0b60e46d50c2160b3147a4e5e13467724"


def fingerprint(records: Iterable[dict[str, object]]) -> str:
    """The hash of records as they would stand in a file."""
    lines = "".join(json.dumps(record, sort_keys=True) + "\n" for record in records)
    return hashlib.sha256(lines.encode()).hexdigest()


def first_transitions() -> Iterator[dict[str, object]]:
    """The first hundred training transitions of seed 0."""
    return islice(simulate_transitions(SimulationSettings(patients=200), "train"), 100)


def first_queries() -> Iterator[dict[str, object]]:
    """The first queries of seed 0 under every prompt."""
    for prompt in PROMPTS:
        yield from islice(simulate_queries(SimulationSettings(patients=400, prompt=prompt)), 20)


def test_transitions_are_the_same_on_every_machine():
    """The first hundred transitions of seed 0 are the committed ones, byte for byte."""
    assert fingerprint(first_transitions()) == GOLDEN_TRANSITIONS


def test_queries_are_the_same_on_every_machine():
    """The first queries of seed 0, with all drafts, labels and states, are the committed ones."""
    assert fingerprint(first_queries()) == GOLDEN_QUERIES


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_nothing_depends_on_the_order_of_hashes(hash_seed):
    """Another process with another hash seed writes the same queries."""
    code = (
        "import json, sys; from tabon.data.simulate import *; "
        "s = SimulationSettings(patients=30, splits=(0.0, 0.0, 1.0)); "
        "sys.stdout.write(json.dumps(list(simulate_queries(s))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
    )
    here = list(simulate_queries(SimulationSettings(patients=30, splits=ALL_TEST)))
    assert json.loads(done.stdout) == here


def test_another_seed_is_another_cohort():
    """The seed matters."""
    one, two = (SimulationSettings(seed=seed, patients=20, splits=ALL_TRAIN) for seed in (1, 2))
    assert list(simulate_transitions(one, "train")) != list(simulate_transitions(two, "train"))


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**40), few=st.integers(0, 30), more=st.integers(0, 30), split=st.sampled_from(SPLITS)
)
def test_a_patient_is_the_same_however_many_there_are(seed, few, more, split):
    """A smaller cohort is the beginning of a larger one, split by split."""
    shares = (0.4, 0.3, 0.3)
    small = SimulationSettings(seed=seed, patients=few, splits=shares)
    large = SimulationSettings(seed=seed, patients=few + more, splits=shares)
    beginning = list(simulate_transitions(small, split))
    assert beginning == list(islice(simulate_transitions(large, split), len(beginning)))


def test_the_first_drafts_stay_when_more_are_asked_for():
    """K = 3 is the beginning of K = 8."""
    few, many = (
        simulate_queries(SimulationSettings(patients=20, splits=ALL_TEST, num_candidates=count))
        for count in (3, 8)
    )
    for small, large in zip(few, many, strict=True):
        assert small["candidates"] == large["candidates"][:3]
        assert len(large["candidates"]) == 8


def test_drafts_do_not_touch_the_cohort():
    """Prompt and noise change the candidates and nothing else of a query."""
    p1 = SimulationSettings(patients=30, splits=ALL_TEST, prompt="p1", noise=1.0)
    p3 = SimulationSettings(patients=30, splits=ALL_TEST, prompt="p3", noise=0.1)
    for one, other in zip(simulate_queries(p1), simulate_queries(p3), strict=True):
        assert one["candidates"] != other["candidates"]
        assert {**one, "candidates": []} == {**other, "candidates": []}


def test_transitions_keep_their_contract():
    """A transition has the fields of the file contract, two whole sections, and its states."""
    for record in simulate_transitions(SimulationSettings(patients=60, splits=ALL_TRAIN), "train"):
        assert list(record) == [
            "id",
            "patient",
            "prior",
            "current",
            "prior_date",
            "current_date",
            "view",
            "split",
            "state",
        ]
        assert record["id"].rpartition("-")[0] == record["patient"]
        assert record["view"] in ("AP", "PA")
        assert record["split"] == "train"
        assert set(record["state"]) == {"prior", "current"}
        for name in ("prior", "current"):
            assert list(record[name]) == ["findings", "impression"]
            assert all(text and text == " ".join(text.split()) for text in record[name].values())
            assert not set("{}[]|") & set("".join(record[name].values()))


def test_queries_keep_their_contract():
    """A query has a prior, K raw drafts that carry errors and state, a reference and the truth."""
    for record in simulate_queries(SimulationSettings(patients=40, splits=ALL_TEST, num_candidates=4)):
        assert list(record) == ["id", "patient", "prior", "candidates", "reference", "state"]
        assert len(record["candidates"]) == 4
        for candidate in record["candidates"]:
            assert list(candidate) == ["text", "errors", "state"]
            assert candidate["text"]
            assert candidate["state"] == sorted(set(candidate["state"]))


def test_queries_are_the_transitions_of_the_split():
    """Query and transition of one id have one prior, and the reference is the current report."""
    cohort = SimulationSettings(patients=300)
    pairs = zip(simulate_transitions(cohort, "test"), simulate_queries(cohort), strict=True)
    for transition, query in pairs:
        assert query["id"] == transition["id"]
        assert query["prior"] == transition["prior"]
        assert query["reference"] == transition["current"]
        assert query["state"] == transition["state"]["current"]


def test_reports_say_their_state_and_nothing_else():
    """What the sentences of a report state is the state of the visit, fact by fact."""
    for index in range(300):
        for exam in exams(0, simulate_patient(0, index)):
            assert facts(exam.writing.said()) == facts(exam.visit.findings)


def test_time_goes_forward():
    """A current date is after its prior's, and a patient's transitions link up."""
    last = {}
    for record in simulate_transitions(SimulationSettings(patients=400, splits=ALL_TRAIN), "train"):
        prior, current = (date.fromisoformat(record[name]) for name in ("prior_date", "current_date"))
        assert date(2001, 1, 1) <= prior < current < date(2020, 1, 1)
        assert last.get(record["patient"], prior) == prior
        last[record["patient"]] = current


def test_every_patient_has_two_visits_or_more():
    """The visits per patient are near the paper's 42,237 / 19,492."""
    wanted = sum(count * weight for count, weight in zip(VISIT_COUNTS, VISIT_WEIGHTS, strict=True)) / sum(
        VISIT_WEIGHTS
    )
    counts = [len(simulate_patient(0, index).visits) for index in range(1500)]
    assert min(counts) == 2
    assert wanted == pytest.approx(42_237 / 19_492, abs=0.001)
    assert sum(counts) / len(counts) == pytest.approx(wanted, abs=0.04)


def test_change_follows_from_the_visit_before():
    """What is new was not there, what is stable, improved, worse or resolved was."""
    for index in range(400):
        visits = simulate_patient(0, index).visits
        assert all(finding.course == "" for finding in visits[0].findings)
        for number, visit in enumerate(visits[1:], start=2):
            for finding in visit.findings:
                assert (finding.course == "new") == (finding.onset == number)


def test_splits_share_no_patient():
    """Every patient is in one split, and the shares are near the wanted ones."""
    cohort = SimulationSettings(patients=500)
    names = [{record["patient"] for record in simulate_transitions(cohort, split)} for split in SPLITS]
    assert len(set().union(*names)) == sum(map(len, names)) == 500
    for found, share in zip(names, cohort.splits, strict=True):
        assert len(found) / 500 == pytest.approx(share, abs=0.01)


@settings(deadline=None)
@given(index=st.integers(0, 10**9))
def test_a_split_without_a_share_is_empty(index):
    """A share of zero takes nobody, a share of one takes all."""
    assert split_of(index, ALL_TRAIN) == "train"
    assert split_of(index, ALL_TEST) == "test"
    assert split_of(index, (0.5, 0.0, 0.5)) != "valid"


def peak_memory(patients: int) -> int:
    """The most memory that streaming a cohort takes, in bytes."""
    cohort = SimulationSettings(patients=patients, splits=ALL_TEST, num_candidates=2)
    tracemalloc.start()
    for number, _ in enumerate(simulate_queries(cohort)):
        if number % 20 == 0:
            gc.collect()  # also empties Python's own stock of small tuples
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_cohort():
    """Eight times the patients take no more memory."""
    peak_memory(5)  # the phrase book is read once
    assert peak_memory(400) < peak_memory(50) + 50_000


def test_a_cohort_is_an_iterator():
    """A cohort of a million begins at once."""
    cohort = SimulationSettings(patients=10**6)
    assert next(simulate_transitions(cohort, "train"))["id"] == "sim-000000-2"
    assert next(simulate_queries(cohort))["id"].endswith("-2")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("seed", -1),
        ("patients", -1),
        ("num_candidates", 0),
        ("prompt", "p4"),
        ("noise", -0.1),
        ("noise", 1.5),
        ("noise", float("nan")),
        ("splits", (0.5, 0.5)),
        ("splits", (0.5, 0.4, 0.3)),
        ("splits", (1.2, -0.1, -0.1)),
    ],
)
def test_settings_that_make_no_cohort_are_refused(setting, value):
    """The message names the setting and says what to give instead."""
    with pytest.raises(BadInputError, match=rf"^{setting} is .*; give "):
        SimulationSettings(**{setting: value})


def test_an_unknown_split_is_refused():
    """The message lists the splits there are."""
    with pytest.raises(BadInputError, match="train, valid, test"):
        next(simulate_queries(SimulationSettings(), "dev"))
