"""Banks that are built piece by piece: same bytes, little memory, whole or not there."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import peak
from tabon import Report, Transition, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_transitions
from tabon.errors import BadInputError, BankDamagedError
from tabon.method import bank_arrays as bank_parts
from tabon.method import bank_build as bank_building
from tabon.method.bank import build_bank_file
from tabon.method.bank_arrays import Patients, Provenance, bank_arrays, name_hash
from tabon.method.bank_file import bank_file, write_bank_file
from tabon.text.records import transition_from_record

TRANSITIONS = [
    transition_from_record(record)
    for record in simulate_transitions(SimulationSettings(patients=40), "train")
]
TEXTS = ("Clear lungs. No effusion.", "New left effusion. Heart is large. No edema.", "", "Stable. Stable.")


def many(count):
    """Yield transitions with few distinct sentences and some hundred bytes of facts each."""
    for number in range(count):
        report = Report(findings=TEXTS[number % 4], impression=TEXTS[(number // 4) % 3])
        whose, facts = f"p{number // 2}", {"note": f"{number:0400}"}
        yield Transition(
            id=f"t{number}", patient=whose, prior=Report(*TEXTS[:2]), current=report, facts=facts
        )


@pytest.mark.parametrize("rows", [1, 7, 8192])
def test_both_ways_to_build_give_the_same_bytes(tmp_path, monkeypatch, rows):
    """In memory or through files, in blocks of any size: one bank, byte for byte."""
    TransitionBank.build(TRANSITIONS, encoder="hashing").save(tmp_path / "memory")
    monkeypatch.setattr(bank_parts, "ROWS_AT_ONCE", rows)
    monkeypatch.setattr(bank_building, "ROWS_AT_ONCE", rows)
    built = build_bank_file(iter(TRANSITIONS), tmp_path / "files", encoder="hashing")
    assert (tmp_path / "files").read_bytes() == (tmp_path / "memory").read_bytes()
    assert len(built) == len(TRANSITIONS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files", "memory"]


def test_a_bank_of_parts_is_the_built_bank():
    """Putting the parts of a bank together again gives the same sum: sets, provenance, patients."""
    bank = TransitionBank.build(TRANSITIONS, encoder="hashing")
    facts = {"format": 4, "fingerprint": dict(bank.fingerprint), "zero_shares": dict(bank.zero_shares)}
    for provenance in (bank.provenance, tuple(bank.provenance)):
        assert bank_file(facts, dict(bank_arrays(bank.table, bank.pairs, provenance))).sha256 == bank.sha256


def test_memory_hardly_grows_with_the_transitions(tmp_path, monkeypatch):
    """Ten times the transitions need little more memory: far less than holding them would take."""
    monkeypatch.setattr(bank_parts, "ROWS_AT_ONCE", 256)
    monkeypatch.setattr(bank_building, "ROWS_AT_ONCE", 256)

    def build(count):
        return lambda: build_bank_file(many(count), tmp_path / "bank", encoder="hashing")

    build(10)()  # whatever is loaded once
    few, more, held = peak(build(500)), peak(build(5_000)), peak(lambda: list(many(5_000)))
    assert more - few < held / 4


KILLED = """
    import os, signal, sys
    from tabon.method.bank import build_bank_file
    from test_bank_building import many
    def transitions():
        yield from many(3000)
        print("now", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    build_bank_file(transitions(), sys.argv[1], encoder="hashing")
"""


@pytest.mark.parametrize("old", [True, False])
def test_a_killed_build_leaves_what_was_there(tmp_path, old):
    """After kill -9 in the middle the old bank is whole, or there is none; nothing lies beside it."""
    path = tmp_path / "bank.tabon"
    if old:
        build_bank_file(TRANSITIONS[:5], path, encoder="hashing")
    before = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}
    command = [sys.executable, "-c", textwrap.dedent(KILLED), path]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parent), str(Path(__file__).parents[1] / "helpers")]
        ),
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "now\n")
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == before


def test_ids_whose_hashes_meet_are_told_apart(tmp_path, monkeypatch):
    """A collision of hashes is no repeated id, and a repeated id is found among collisions."""
    monkeypatch.setattr(bank_building, "name_hash", lambda _: 7)
    assert len(build_bank_file(TRANSITIONS[:9], tmp_path / "b", encoder="hashing")) == 9
    twice = [*TRANSITIONS[:9], replace(TRANSITIONS[3], facts={})]
    with pytest.raises(BadInputError, match=f"transition id '{TRANSITIONS[3].id}' occurs 2 times"):
        build_bank_file(twice, tmp_path / "c", encoder="hashing")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("found", [1, 2, 5])
def test_another_format_is_refused_with_the_way_out(tmp_path, found):
    """Banks of earlier and later formats are named, and the way out is to rebuild."""
    write_bank_file(tmp_path / "b", bank_file({"format": found}, {}))
    with pytest.raises(
        BadInputError, match=f"bank format {found}, this tabon reads 3 and 4; rebuild the bank"
    ):
        TransitionBank.load(tmp_path / "b")


def test_where_nothing_can_be_written_it_says_so(tmp_path):
    """A folder that is a file gives one sentence."""
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError, match="make room or choose another place"):
        build_bank_file(TRANSITIONS[:2], tmp_path / "file" / "bank", encoder="hashing")


FACTS = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=5) | st.none(), max_size=3).map(
    lambda facts: {**facts, "id": "t"}
)


@given(st.lists(FACTS, max_size=12))
def test_provenance_is_a_list_of_what_went_in(rows):
    """Rows, slices, iteration and length are those of a list."""
    made = Provenance.of(rows)
    assert list(made) == rows
    assert len(made) == len(rows)
    assert [made[number] for number in range(-len(rows), len(rows))] == rows + rows
    assert made[1:-1] == tuple(rows[1:-1])
    with pytest.raises(IndexError):
        made[len(rows)]


@given(st.lists(st.none() | st.sampled_from(["a", "b", "é", "7", ""]), max_size=8))
def test_patients_are_a_set_of_names(names):
    """Membership, length, iteration and set operations are those of a frozenset of the names."""
    expected = frozenset(name for name in names if name is not None)
    hashes = np.array(sorted(map(name_hash, expected)), dtype=np.uint64)
    made = Patients(hashes, Provenance.of({"id": "t", "patient": name} for name in names))
    assert made == expected
    assert len(made) == len(expected)
    assert made & {"a", "other"} == expected & {"a"}
    assert all((name in made) == (name in expected) for name in ["a", "b", "é", "7", "", "other", None, 7])


def test_membership_reads_no_provenance():
    """Whether a patient is in the bank, and how many there are, costs no reading of rows."""
    made = Patients(np.array([name_hash("a")], dtype=np.uint64), NotImplemented)
    assert "a" in made
    assert "b" not in made
    assert len(made) == 1


WRITINGS = ["p1", "P1", " p1", "p1 ", "p1\n", "\uff501", "P\uff11"]


@pytest.mark.parametrize("written", WRITINGS)
@pytest.mark.parametrize("letters", [False, True], ids=["now", "format 3"])
def test_a_patient_is_known_however_the_name_is_written(tmp_path, written, letters):
    """Case, width and blanks make no other patient, on either side, in banks of the format before too."""
    bank = TransitionBank.build([replace(one, patient=written) for one in TRANSITIONS[:3]], encoder="hashing")
    facts = {"format": 4, "fingerprint": dict(bank.fingerprint), "zero_shares": dict(bank.zero_shares)}
    arrays = dict(bank_arrays(bank.table, bank.pairs, bank.provenance))
    if letters:  # as it was written then: hashes of the names by the letter
        facts["format"], arrays["patients"] = 3, np.array([name_hash(written)], dtype=np.uint64)
    write_bank_file(tmp_path / "b", bank_file(facts, arrays))
    loaded = TransitionBank.load(tmp_path / "b")
    loaded.check_provenance()
    assert all(name in loaded.patients for name in WRITINGS)
    assert not any(name in loaded.patients for name in ("p11", "p2", "p 1", "", None, 1))
    assert (len(loaded.patients), list(loaded.patients)) == (1, [written])


def test_numbers_and_strings_name_the_same_patient():
    """Patient 7 of a bank is patient "7" of a query."""
    made = [replace(one, patient=7) for one in TRANSITIONS[:2]]
    assert "7" in TransitionBank.build(made, encoder="hashing").patients


@pytest.mark.parametrize("fault", ["patients", "ids", "line"])
def test_verifying_reads_the_provenance(tmp_path, fault):
    """Hashes of other patients, an id that occurs twice and a line without id are found behind right sums."""
    bank = TransitionBank.build(TRANSITIONS, encoder="hashing")
    facts = {"format": 4, "fingerprint": dict(bank.fingerprint), "zero_shares": dict(bank.zero_shares)}
    rows = [dict(row) for row in bank.provenance]
    if fault == "ids":
        rows[1]["id"] = rows[0]["id"]
    elif fault == "line":
        rows[1]["id"] = 7
    provenance = Provenance.of(rows)
    patients = bank._file.arrays["patients"][fault == "patients" :]
    arrays = dict(bank_arrays(bank.table, bank.pairs, provenance, patients))
    write_bank_file(tmp_path / "b", bank_file(facts, arrays))
    with pytest.raises(BankDamagedError, match=r"patients are not|have one id|no object with an id"):
        TransitionBank.load(tmp_path / "b").check_provenance()
