"""Hostile lines, and valid lines with hostile text, through every command that reads queries."""

import json

import pytest

import hostile
from budgets import budget, seeded
from hostile import CANARY, check, run
from tabon import TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.text.records import transition_from_record

SETTINGS = SimulationSettings(patients=60)
TRANSITIONS = list(simulate_transitions(SETTINGS, "train"))
QUERIES = list(simulate_queries(SETTINGS, "test"))
SHARE = 20  # lines of one file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a bank, queries, and selections for them."""
    folder = tmp_path_factory.mktemp("queries")
    TransitionBank.build(map(transition_from_record, TRANSITIONS), encoder="hashing").save(folder / "bank")
    (folder / "good.jsonl").write_text("\n".join(map(json.dumps, QUERIES)), encoding="utf-8")
    bank = ("--bank", folder / "bank", "--no-store")
    check(run("select", folder / "good.jsonl", *bank, "--out", folder / "picks"))
    return folder


def report(draw):
    """Return a report in one of its forms, with hostile text."""
    both = {"findings": hostile.text(draw), "impression": hostile.text(draw)}
    raw = hostile.text(draw)
    return draw.choice((raw, both, {"text": raw, "seed": 1}, {"impression": None, "findings": CANARY}))


def odd_query(draw, number):
    """Return a valid query with hostile text in every place that takes text."""
    return {
        "id": f"{number}-{hostile.text(draw, 3)}".replace(CANARY, ""),
        "patient": draw.choice((number, "p", None)),
        "prior": draw.choice((report(draw), [report(draw), report(draw)], None)),
        "candidates": [draw.choice((report(draw), None)) for _ in range(draw.randrange(4))],
        "reference": report(draw),
        "expected": 3,
        "note": hostile.text(draw, 5),
    }


def odd_line(draw, number):
    """Return a line with a valid query."""
    return hostile.written(odd_query(draw, number))


def hostile_line(draw, number):
    """Return a line of a queries file that may be anything."""
    good = {**draw.choice(QUERIES), "id": f"q{number}"}
    kind = draw.randrange(6)
    if kind <= 1:
        return odd_line(draw, number)
    if kind == 2:
        return hostile.written(hostile.changed(draw, good, draw.randrange(1, 4)))
    if kind == 3:
        return hostile.damaged(draw, hostile.written(good)).replace(b"\n", b" ")
    if kind == 4:
        return draw.choice((hostile.deep(), b"", b"  ", b"[]", b'"x"', b"9" * 6000, b"\xff", b"NaN", b"{}"))
    return hostile.written(good)


def commands(folder, path):
    """Return every command that reads a queries file."""
    bank = ("--bank", folder / "bank", "--no-store")
    picks = ("--selections", folder / "picks")
    evaluated = ("--metrics", "rouge,labels", "--resamples", "10", "--no-measurements")
    to_fhir = ("--id", "q1", "--about", path, "--to", "fhir-r4", "--out", folder / "fhir")
    return {
        "select": ("select", path, *bank),
        "select consensus": ("select", path, *bank, "--selector", "consensus:chamfer"),
        "select abstain": ("select", path, *bank, "--distance", "cost-ot", "--abstain", "0.1"),
        "select to a file": ("select", path, *bank, "--selector", "fused", "--out", folder / "out"),
        "explain": ("explain", path, *bank),
        "explain json": ("explain", path, *bank, "--json", "--distance", "dir-hausdorff"),
        "explain html": ("explain", path, *bank, "--html", folder / "page.html"),
        "report": ("report", path, *bank, "--html", folder / "report.html"),
        "flags": ("flags", path),
        "flags chosen": ("flags", path, *picks),
        "evaluate": ("evaluate", path, *picks, "--out", folder / "results.json", *evaluated),
        "risk": ("risk", path, *picks),
        "calibrate": ("calibrate", path, *bank, "--out", folder / "calibration"),
        "fit": ("fit", path, *bank, "--out", folder / "weights"),
        "convert": ("convert", "draft", path, folder / "picks", *to_fhir),
        "bank build": ("bank", "build", path, "--out", folder / "b", "--encoder", "hashing", "--no-store"),
    }


@pytest.mark.parametrize("make", [hostile_line, odd_line])
def test_no_line_ends_a_command_in_a_traceback(folder, make):
    """Each command answers, or says in a sentence which line it cannot take, without report text."""
    draw, path = seeded(make.__name__), folder / "hostile.jsonl"
    every = commands(folder, path)
    for start in range(0, budget(100, 5_000), SHARE):
        path.write_bytes(b"\n".join(make(draw, number) for number in range(start, start + SHARE)))
        for name in draw.sample(sorted(every), 5):
            check(run(*every[name]), name)


def test_no_selection_ends_a_command_in_a_traceback(folder):
    """What `tabon select` printed, changed or damaged, is read or refused in a sentence."""
    draw = seeded("selections")
    lines = (folder / "picks").read_bytes().splitlines()
    path, good = folder / "changed", folder / "good.jsonl"
    for _ in range(budget(40, 1_000)):
        at = draw.randrange(len(lines))
        record = hostile.written(hostile.changed(draw, json.loads(lines[at])))
        odd = draw.choice((record, hostile.damaged(draw, lines[at]), hostile.deep()))
        path.write_bytes(b"\n".join([*lines[:at], odd, *lines[at + 1 :]]))
        to_fhir = ("--id", QUERIES[at]["id"], "--about", good, "--to", "fhir-r5", "--out", folder / "fhir")
        check(run("flags", good, "--selections", path), odd[:200])
        check(run("risk", good, "--selections", path), odd[:200])
        check(run("convert", "draft", good, path, *to_fhir), odd[:200])
