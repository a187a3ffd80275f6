"""Index files made up behind right sums, or damaged: refused in one sentence, or answered as the whole."""

import json
import re
import shutil
from itertools import islice

import numpy as np
import pytest

from array_files import Crafted
from budgets import budget, seeded, seeded_array
from commands import tabon
from tabon import TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.search.index_files import LARGE, IndexFiles
from tabon.text.records import transition_from_record
from unit_rows import unit

SETTINGS = SimulationSettings(patients=60)
ODD = (None, True, -1, 7, 2**70, float("nan"), float("inf"), "x", [], {}, ["x"])
FILE = "findings.novelty.tabonix"


@pytest.fixture(scope="module", autouse=True)
def _faiss():
    pytest.importorskip("faiss", reason="FAISS is not installed")


@pytest.fixture(scope="module", params=["always", "never"])
def place(request, tmp_path_factory):
    """A folder with a bank, its index with or without cells, and queries."""
    folder = tmp_path_factory.mktemp("crafted")
    records = simulate_transitions(SETTINGS, "train")
    bank = TransitionBank.build(map(transition_from_record, records), encoder="hashing")
    bank.save(folder / "bank")
    IndexFiles(f"index:{folder / 'index'}?ivf={request.param}").prepare(bank, ["novelty"])
    shutil.copytree(folder / "index", folder / "whole")
    queries = (json.dumps(one) + "\n" for one in islice(simulate_queries(SETTINGS, "test"), 3))
    (folder / "queries.jsonl").write_text("".join(queries))
    return folder


def answers(place):
    """Return what verifying and selecting answer with the index as it is; sums are left out."""
    bank, search = str(place / "bank"), ("--search", f"index:{place / 'index'}")
    select = ["select", str(place / "queries.jsonl"), "--bank", bank, "--no-store", *search]
    for command in (["bank", "verify", bank, *search], select):
        done = tabon(*command)
        if done.exit_code == 1:
            assert (done.stdout, done.stderr[:7], done.stderr.count("\n")) == ("", "Error: ", 1), done.output
        yield done.exit_code, re.sub(r"[0-9a-f]{12,64}", "SUM", done.stdout)


def array_of(made, entry):
    """Return a copy of a part's array."""
    blob = made.blobs[made.number(entry["name"])]
    return np.frombuffer(blob, entry["dtype"], int(np.prod(entry["shape"]))).reshape(entry["shape"]).copy()


def odd_facts(rng, made):
    """Put an odd value into the facts, or leave one out."""
    facts = made.header["facts"]
    inside = facts["ivf"] if facts["ivf"] and rng.random() < 0.3 else facts
    key = rng.choice([name for name in inside if name not in ("rounding", "ivf", *SAID)])
    if rng.random() < 0.3:
        del inside[key]
    else:
        inside[key] = rng.choice([value for value in ODD if type(value) is not type(inside[key])])


SAID = ("neighbours", "held_out", "seed", "probes", "recall", "queries", "codes")  # shown, never used


def odd_part(rng, made):
    """Put impossible numbers into a part, cut it, or give it another type; codes may be any bytes."""
    entry = rng.choice([one for one in made.header["blobs"] if one["name"] not in ("codes", "zero_rows")])
    array = array_of(made, entry)
    kind = rng.choice(["cut", "type", "value", "reverse"])
    if kind == "cut":
        array = array[:-1]
    elif kind == "type":
        array = array.view({2: "<i2", 4: "<u4", 8: "<u8", 1: "|i1"}[array.dtype.itemsize])
    elif array.dtype.kind == "f":
        array = np.full_like(array, rng.choice([np.nan, np.inf, 9.0]))
    elif kind == "value":
        array[rng.randrange(len(array))] = rng.choice([-1, 10**8, 2**31 - 1])
    else:
        array = (array[::-1] + 1).astype(array.dtype)
    made.put(entry["name"], array)


def one_number(rng, made):
    """Put one number into the directions or sketches that is none, or much too large."""
    entry = rng.choice([one for one in made.header["blobs"] if one["dtype"] == "<f2"])
    array = array_of(made, entry)
    array[rng.randrange(len(array)), rng.randrange(array.shape[1])] = rng.choice([np.nan, np.inf, 9.0])
    made.put(entry["name"], array)


def other_parts(rng, made):
    """Leave a part out, or give it another name."""
    number = rng.randrange(len(made.blobs))
    if rng.random() < 0.5:
        del made.header["blobs"][number], made.blobs[number]
    else:
        made.header["blobs"][number]["name"] += "s"


CRAFTS = (odd_facts, odd_part, one_number, other_parts, odd_part)


def test_a_crafted_index_is_refused_or_answers_as_the_whole_one(place):
    """Whatever stands behind right sums: one sentence and exit 1, or the answer of the index it was."""
    rng, whole = seeded("crafted indexes"), (place / "whole" / FILE).read_bytes()
    (place / "index" / FILE).write_bytes(whole)
    expected = list(answers(place))
    assert {code for code, _ in expected} == {0}
    for number in range(budget(30, 500)):
        made, craft = Crafted.of(whole), CRAFTS[number % len(CRAFTS)]
        craft(rng, made)
        (place / "index" / FILE).write_bytes(made.data())
        for got, wanted in zip(answers(place), expected, strict=True):
            assert got[0] == 1 or got == wanted, (number, craft.__name__)


@pytest.mark.parametrize("rows", ["random units", "random bytes", "not a number"])
def test_directions_that_are_not_the_banks_are_refused(place, rows):
    """Directions that were made up wholesale are refused at use and by verifying, never searched."""
    made, rng = Crafted.of((place / "whole" / FILE).read_bytes()), seeded_array("directions")
    shape = tuple(made.header["blobs"][made.number("directions")]["shape"])
    array = {
        "random units": unit(rng, shape).astype("<f2"),
        "random bytes": rng.integers(0, 2**16, shape, dtype=np.uint16).view("<f2"),
        "not a number": np.full(shape, np.nan, dtype="<f2"),
    }[rows]
    made.put("directions", array)
    (place / "index" / FILE).write_bytes(made.data())
    assert [code for code, _ in answers(place)] == [1, 1]


def test_an_index_without_one_section_is_not_whole(place):
    """A section's file that is gone is missed by verifying and at use, by name."""
    (place / "index" / FILE).unlink()
    assert [code for code, _ in answers(place)] == [1, 1]


@pytest.mark.parametrize("damage", ["flip", "cut", "append"])
def test_a_damaged_index_is_refused(place, damage):
    """Verifying finds every damage; a search may use a large part with a flipped bit, but never breaks."""
    rng, whole = seeded(f"indexes: {damage}"), (place / "whole" / FILE).read_bytes()
    small = [one["name"] not in LARGE for one in Crafted.of(whole).header["blobs"]]
    ends = np.cumsum([1 << 14, *(one["length"] for one in Crafted.of(whole).header["blobs"])])
    for _ in range(budget(8, 500)):
        at = rng.randrange(len(whole))
        (place / "index" / FILE).write_bytes(
            {
                "flip": whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :],
                "cut": whole[:at],
                "append": whole + rng.randbytes(rng.randint(1, 200)),
            }[damage]
        )
        part = int(np.searchsorted(ends, at, side="right")) - 1
        verified, selected = (code for code, _ in answers(place))
        assert verified == 1
        assert selected == 1 or (damage == "flip" and part >= 0 and not small[part])
