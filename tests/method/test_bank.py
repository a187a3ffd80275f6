"""Equation 7, and what a bank keeps, refuses and tells."""

import warnings
from dataclasses import asdict, fields, replace

import numpy as np
import pytest

import as_printed
from tabon import NoPatientsWarning, Report, Selector, Transition, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_transitions
from tabon.encoders import load_encoder
from tabon.errors import BadInputError, BankMismatchError, EncoderError
from tabon.method.distances import DISTANCES
from tabon.method.sentence_sets import Fingerprint, sentence_set
from tabon.text.records import Query, transition_from_record
from tabon.text.sentences import split_sentences

SETTINGS = SimulationSettings(patients=40)
TRANSITIONS = [transition_from_record(record) for record in simulate_transitions(SETTINGS, "train")]
HASHING = load_encoder("hashing")


@pytest.fixture(scope="module")
def bank():
    """A small bank."""
    return TransitionBank.build(TRANSITIONS, encoder="hashing")


def set_of(report, section):
    """One section's sentence set in float64."""
    return list(sentence_set(split_sentences(report.section(section)), HASHING).astype(np.float64))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("section", ["findings", "impression"])
def test_a_section_bank_is_equation_7(bank, distance, section):
    """Each row is the printed T of its own training transition, or is marked zero."""
    made = bank.section(section, distance)
    index = made.index
    neighbours = index.search(np.eye(256, dtype=np.float32)[:1], len(index)).rows
    assert sorted(made.rows[neighbours[0]].tolist()) == made.rows.tolist()
    for row, transition in enumerate(TRANSITIONS[:15]):
        g = as_printed.DISTANCES[distance](
            *(set_of(r, section) for r in (transition.prior, transition.current))
        )
        norm = np.linalg.norm(g)
        assert (row in made.zero_rows) == (norm < 1e-6)
        if norm >= 1e-6:
            found = index.search((g / norm).astype(np.float32)[None], 1)
            assert found.distances[0, 0] < 1e-6


def test_a_saved_bank_is_the_built_bank(bank, tmp_path):
    """Saving and loading loses nothing and keeps the sum."""
    bank.save(tmp_path / "b.tabon")
    loaded = TransitionBank.load(tmp_path / "b.tabon")
    assert loaded.sha256 == bank.sha256
    assert list(loaded.provenance) == list(bank.provenance)
    assert loaded.table.sentences == bank.table.sentences
    assert isinstance(loaded.table.vectors.base, np.memmap)
    np.testing.assert_array_equal(loaded.table.vectors, bank.table.vectors)


def test_the_same_input_gives_the_same_bytes(tmp_path):
    """Two builds are one file, byte for byte."""
    for name in ("a", "b"):
        TransitionBank.build(TRANSITIONS, encoder="hashing").save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_bank_file_is_for_its_owner_alone(bank, tmp_path):
    """Banks hold report text and vectors: mode 0600."""
    bank.save(tmp_path / "b.tabon")
    assert (tmp_path / "b.tabon").stat().st_mode & 0o777 == 0o600


def test_each_row_knows_where_it_came_from(bank):
    """Provenance has id, patient, dates and view, and no report text."""
    assert bank.provenance[0].keys() >= {"id", "patient", "prior_date", "current_date", "view"}
    assert not {"prior", "current"} & bank.provenance[0].keys()
    assert bank.patients == {transition.patient for transition in TRANSITIONS}


def test_zero_shares_are_those_of_the_rows(bank):
    """The share of zero transitions is told for each distance and section."""
    for section, shares in bank.zero_shares.items():
        for distance, share in shares.items():
            made = bank.section(section, distance)
            assert share == len(made.zero_rows) / len(made)
    assert any(share > 0 for shares in bank.zero_shares.values() for share in shares.values())


def test_transitions_without_a_section_are_left_out_of_its_bank():
    """A report without an impression adds nothing to the impression bank."""
    kept = [Transition(id="t", prior=Report("Clear.", "Normal."), current=Report("New effusion.", ""))]
    bank = TransitionBank.build(kept, encoder="hashing")
    assert len(bank.section("findings", "novelty")) == 1
    assert len(bank.section("impression", "novelty")) == 0


@pytest.mark.parametrize("field", [field.name for field in fields(Fingerprint) if field.name != "batching"])
def test_a_changed_fingerprint_is_refused_by_its_name(field):
    """Every field of the fingerprint, when changed, is named in the refusal; other batches are let pass."""
    here = Fingerprint.of(HASHING)
    there = asdict(here) | {field: "another"}
    with pytest.raises(BankMismatchError, match=f"built with {field} 'another'") as refusal:
        here.check(there)
    assert refusal.value.field == field


def test_a_bank_with_an_unknown_field_is_refused_by_its_name():
    """A fingerprint from another version names what it has too much."""
    with pytest.raises(BankMismatchError, match="rotation"):
        Fingerprint.of(HASHING).check(asdict(Fingerprint.of(HASHING)) | {"rotation": 1})


def test_another_encoder_is_refused(bank):
    """A selector with another encoder than the bank's does not start."""

    class Other:
        def encode(self, sentences):
            return np.ones((len(sentences), 256)) / 16

    with pytest.raises(BankMismatchError, match="built with encoder 'hashing'"):
        Selector(bank, encoder=Other())


def test_a_bank_of_a_nameless_encoder_asks_for_it():
    """A bank built with an object cannot guess the object."""

    class Mine:
        def encode(self, sentences):
            return HASHING.encode(sentences)

    bank = TransitionBank.build(TRANSITIONS[:3], encoder=Mine())
    with pytest.raises(EncoderError, match="pass that encoder"):
        Selector(bank)
    assert Selector(bank, encoder=Mine()).select("Clear.", ["New effusion."]).selected == 0


@pytest.mark.parametrize(
    ("transitions", "message"),
    [([], "at least one transition"), (TRANSITIONS[:2] * 2, "occurs 2 times")],
    ids=["none", "repeated id"],
)
def test_what_makes_no_bank_is_refused(transitions, message):
    """No transitions, or repeated ids, give one clear sentence."""
    with pytest.raises(BadInputError, match=message):
        TransitionBank.build(transitions, encoder="hashing")


@pytest.mark.parametrize("known", ["p", "P", " p", "p\n"])
@pytest.mark.parametrize("asked", ["p", "P", "p ", "\uff50"])
def test_the_guard_minds_neither_case_nor_blanks(known, asked):
    """A query of a patient in the bank gets no answer, however bank and query write the name."""
    bank = TransitionBank.build([replace(TRANSITIONS[0], patient=known)], encoder="hashing")
    report = TRANSITIONS[0].prior
    query = Query(id="q", prior=report, candidates=(report,), patient=asked)
    assert [one.abstained for one in Selector(bank).select_many([query])] == ["patient-in-bank"]


def test_a_bank_without_patients_warns_once(tmp_path):
    """Made or loaded, at the caller's line; with one patient, or searched in another way, it does not."""
    bare = [replace(one, patient=None) for one in TRANSITIONS[:3]]
    with pytest.warns(NoPatientsWarning, match="the bank names no patients") as caught:
        bank = TransitionBank.build(bare, encoder="hashing")
    assert [each.filename for each in caught] == [__file__]
    bank.save(tmp_path / "bank.tabon")
    with pytest.warns(NoPatientsWarning) as caught:
        loaded = TransitionBank.load(tmp_path / "bank.tabon")
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.with_search(loaded)
        TransitionBank.build([*bare[:2], TRANSITIONS[2]], encoder="hashing")


def test_transitions_without_an_id_are_numbered():
    """They can be cited by their place, and beside others that have one."""
    named = [replace(TRANSITIONS[0], id=""), TRANSITIONS[1], replace(TRANSITIONS[2], id="")]
    bank = TransitionBank.build(named, encoder="hashing")
    assert [row["id"] for row in bank.provenance] == ["1", TRANSITIONS[1].id, "3"]
    assert repr(bank) == f"TransitionBank(transitions=3, patients={len(bank.patients)}, encoder='hashing')"
