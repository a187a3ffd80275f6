"""Abstention: what is usual is learnt from the bank or from picks, and the rate is held."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from tabon.cli import main
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import BadInputError
from tabon.evaluation.draft_scores import state_f1
from tabon.method.bank import TransitionBank
from tabon.selectors import Selector, load_scorer
from tabon.selectors.abstention import (
    Calibration,
    abstaining,
    from_bank,
    from_queries,
    pick_distance,
    read_calibration,
    risk_coverage,
    write_calibration,
)
from tabon.text.records import query_from_record, transition_from_record

SETTINGS = SimulationSettings(patients=900, num_candidates=4)


@pytest.fixture(scope="module")
def bank():
    """Return a bank of simulated transitions."""
    records = map(transition_from_record, simulate_transitions(SETTINGS, "train"))
    return TransitionBank.build(records, encoder="hashing")


@pytest.fixture(scope="module")
def queries():
    """Return simulated queries of patients who are not in the bank."""
    return [
        query_from_record(record)
        for split in ("valid", "test")
        for record in simulate_queries(SETTINGS, split)
    ]


def leave_patient_out(selector, row, section):
    """Work out one row's distance to the rows of other patients, the long way."""
    part = selector.bank.section(section, selector.scorer.distance)
    rows, provenance = part.index.rows(), selector.bank.provenance
    place = part.rows.tolist().index(row)
    others = [
        (1 - float(rows[place].astype(float) @ rows[other].astype(float))) / 2
        for other, bank_row in enumerate(part.rows.tolist())
        if provenance[bank_row]["patient"] != provenance[row]["patient"]
    ]
    k = 1 if selector.scorer.aggregate == "min" else selector.scorer.num_neighbours
    return float(np.mean(sorted(others)[:k]))


@pytest.mark.parametrize("aggregate", ["min", "knn"])
def test_the_bank_calibrates_by_leaving_whole_patients_out(bank, aggregate):
    """Each transition's distance is to the nearest of other patients, as a plain loop finds it."""
    selector = Selector(bank, aggregate=aggregate, num_neighbours=5)
    usual = from_bank(selector).distances["findings"]
    part = bank.section("findings", "novelty")
    expected = [leave_patient_out(selector, row, "findings") for row in part.rows.tolist()]
    expected += [0.0] * len(part.zero_rows)  # other patients have some too
    np.testing.assert_allclose(usual, np.sort(expected), atol=1e-6)


def test_a_patient_is_never_their_own_neighbour():
    """Two equal transitions of one patient do not vouch for each other."""
    records = [
        {"id": f"{patient}{visit}", "patient": patient, "prior": "Clear lungs.", "current": f"{text}."}
        for patient, text in (("a", "New effusion"), ("b", "New nodule"), ("c", "New fracture"))
        for visit in (1, 2)
    ]
    bank = TransitionBank.build(map(transition_from_record, records), encoder="hashing")
    usual = from_bank(Selector(bank)).distances["findings"]
    assert min(usual) > 0.01


@pytest.mark.parametrize("rate", [0.1, 0.2])
def test_the_asked_rate_is_held_on_like_queries(bank, queries, rate):
    """Calibrated on picks for some patients, the others' picks are left out at the asked rate, ± 1 point."""
    selector = Selector(bank, distance="cost-ot", aggregate="knn")
    selections = selector.select_many(queries)
    patients = sorted({query.patient for query in queries})
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(400):
        held = set(rng.permutation(patients)[: len(patients) // 2].tolist())
        ours = [s for q, s in zip(queries, selections, strict=True) if q.patient in held]
        theirs = [s for q, s in zip(queries, selections, strict=True) if q.patient not in held]
        answers = abstaining(theirs, from_queries(ours), rate)
        shares.append(np.mean([answer.abstained == "implausible" for answer in answers]))
    assert np.mean(shares) == pytest.approx(rate, abs=0.01)


def test_abstaining_changes_nothing_but_the_choice(bank, queries):
    """Distances, flags and signature stay; p is there; rate 0 never abstains."""
    selections = Selector(bank).select_many(queries[:30])
    calibration = from_queries(selections)
    assert all(answer.abstained is None for answer in abstaining(selections, calibration, 0.0))
    for before, after in zip(selections, abstaining(selections, calibration, 0.5), strict=True):
        assert replace(after, p=None, selected=before.selected, abstained=None) == before
        assert (after.abstained == "implausible") == (after.p <= 0.5)


def test_a_calibration_of_another_method_is_refused(bank, queries, tmp_path):
    """The message names both signatures; files that are not whole are refused too."""
    selections = Selector(bank).select_many(queries[:5])
    other = Selector(bank, distance="mean-shift").select_many(queries[:5])
    with pytest.raises(BadInputError, match="calibrate again"):
        abstaining(other, from_queries(selections), 0.5)
    with pytest.raises(BadInputError, match="calibrate on more queries"):
        abstaining(selections, from_queries(selections), 0.1)
    path = tmp_path / "c.json"
    write_calibration(path, from_queries(selections))
    assert read_calibration(path) == from_queries(selections)
    for content in (path.read_bytes()[:-30], b"[]", b'{"format": "other"}'):
        path.write_bytes(content)
        with pytest.raises(BadInputError, match="make it again with `tabon calibrate`"):
            read_calibration(path)
    with pytest.raises(BadInputError, match="cannot be read"):
        read_calibration(tmp_path / "none")


def test_picks_among_another_number_of_drafts_have_no_p(bank, queries):
    """The best of two is not compared with the best of four."""
    calibration = from_queries(Selector(bank).select_many(queries[:20]))
    fewer = [replace(query, candidates=query.candidates[:2], draft_facts=()) for query in queries[20:25]]
    assert np.isnan(calibration.p(Selector(bank).select_many(fewer))).all()


@pytest.mark.parametrize("zero", ["neutral", "match", "farthest"])
def test_a_bank_row_without_change_is_calibrated_as_a_draft_without_change(zero):
    """The bank's own zero rows get the distance that a query's would."""
    records = [
        {"id": f"{row}", "patient": f"{row}", "prior": "Clear lungs.", "current": text}
        for row, text in enumerate(["Clear lungs.", "Clear lungs.", "New effusion.", "New nodule."])
    ]
    bank = TransitionBank.build(map(transition_from_record, records), encoder="hashing")
    selector = Selector(bank, zero=zero)
    asked = query_from_record({"id": "q", "prior": "Clear lungs.", "candidates": ["Clear lungs."]})
    [selection] = selector.select_many([asked])
    usual = from_bank(selector).distances["findings"]
    assert sum(value == pick_distance(selection) for value in usual) >= 2


def test_rates_and_picks_that_make_no_sense_are_refused(bank):
    """One sentence each."""
    calibration = Calibration(source="queries", signature="s", distances={})
    with pytest.raises(BadInputError, match="abstention rate"):
        abstaining([], calibration, 1.0)
    with pytest.raises(BadInputError, match="no picks"):
        from_queries([])
    empty = query_from_record({"id": 1, "prior": "", "candidates": []})
    with pytest.raises(BadInputError, match="nothing was chosen"):
        pick_distance(Selector(bank).select_many([empty])[0])


def test_the_commands_work_together(bank, tmp_path):
    """`tabon calibrate`, then `tabon select --abstain`: p in every record, exit status 0."""
    bank.save(tmp_path / "bank.tabon")
    lines = [json.dumps(record) for record in simulate_queries(SETTINGS, "valid")]
    (tmp_path / "valid.jsonl").write_text("\n".join(lines), encoding="utf-8")
    run = CliRunner().invoke
    shared = ["--bank", str(tmp_path / "bank.tabon"), "--no-store"]
    calibration = str(tmp_path / "c.json")
    answer = run(main, ["calibrate", str(tmp_path / "valid.jsonl"), *shared, "--out", calibration])
    assert answer.exit_code == 0, answer.output
    for options in (["--calibration", calibration], []):
        answer = run(main, ["select", str(tmp_path / "valid.jsonl"), *shared, "--abstain", "0.3", *options])
        assert answer.exit_code == 0, answer.output
        records = [json.loads(line) for line in answer.stdout.splitlines()]
        assert all(record["p"] is not None for record in records)
        assert {record["abstained"] for record in records} >= {None}
    answer = run(
        main, ["select", str(tmp_path / "valid.jsonl"), *shared, "--selector", "first", "--abstain", "0.3"]
    )
    assert answer.exit_code == 1
    assert "tabon calibrate" in answer.output


def _state(draft, record):
    """Return what of the state a draft gets wrong."""
    return 1 - state_f1(draft["state"], record["state"])


def _any_error(draft, record):
    """Say whether a draft has a labelled error."""
    del record
    return float(bool(draft["errors"]))


@pytest.mark.parametrize(
    ("name", "patients", "losses"),
    [("transition:novelty/min", 1400, (_state, _any_error)), ("fused", 1400, (_state, _any_error))],
)
def test_the_risk_of_what_is_kept_falls_as_the_strangest_are_left_out(name, patients, losses):
    """On the simulated cohort, where errors are labelled, less coverage is less error, step by step."""
    settings = SimulationSettings(patients=patients, prompt="p1", noise=0.5, splits=(0.45, 0.1, 0.45), seed=3)
    training = map(transition_from_record, simulate_transitions(settings, "train"))
    bank = TransitionBank.build(training, encoder="hashing")
    records = list(simulate_queries(settings, "test"))
    selector = Selector(bank, load_scorer(name, bank))
    selections = selector.select_many(list(map(query_from_record, records)))
    distances = np.array(list(map(pick_distance, selections)))
    for loss in losses:
        lost = [
            loss(record["candidates"][selection.selected], record)
            for record, selection in zip(records, selections, strict=True)
        ]
        curve = risk_coverage(distances, np.array(lost), points=5)
        assert list(curve.risk) == sorted(curve.risk)
        assert curve.risk[0] < curve.risk[-1] - 0.05
