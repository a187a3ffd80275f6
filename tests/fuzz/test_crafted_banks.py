"""Banks made up behind right sums, or damaged: refused in one sentence, or answered as the whole one."""

import json
import re

import numpy as np
import pytest

from array_files import Crafted
from budgets import budget, seeded
from commands import tabon
from tabon import TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.text.records import transition_from_record

SETTINGS = SimulationSettings(patients=12)
ODD = (
    None,
    True,
    -1,
    0,
    7,
    2**40,
    2**70,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    {},
    [[]],
    ["x"],
)
DEEP = b"[" * 100_000
NUMBERS = (
    "provenance.offsets",
    *(
        f"{section}.{side}.{part}"
        for section in ("findings", "impression")
        for side in ("prior", "current")
        for part in ("offsets", "ids", "written")
    ),
)
LIMITS = (-(2**31), -1, 10**8, 2**31 - 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a small bank and a query that it answers."""
    folder = tmp_path_factory.mktemp("crafted")
    records = simulate_transitions(SETTINGS, "train")
    TransitionBank.build(map(transition_from_record, records), encoder="hashing").save(folder / "whole")
    query = {**next(iter(simulate_queries(SETTINGS, "test"))), "patient": "not in the bank"}
    (folder / "queries.jsonl").write_text(json.dumps(query) + "\n")
    return folder


def answers(place, bank):
    """Return what each of four commands answers with a bank; sums are left out, they name the file."""
    asked = (str(place / "queries.jsonl"), "--bank", str(bank), "--no-store", "-k", "2")
    commands = (
        ["bank", "verify", str(bank)],
        ["bank", "info", str(bank)],
        ["select", *asked],
        ["explain", *asked, "--json"],
    )
    for command in commands:
        done = tabon(*command)
        if done.exit_code == 1:
            assert (done.stdout, done.stderr[:7], done.stderr.count("\n")) == ("", "Error: ", 1), done.output
            assert len(done.stderr) < 1000
        yield done.exit_code, counts(done.stdout) if command[1] == "info" else plain(done.stdout, bank)


def counts(told):
    """Return what `bank info` counts: the rest is the bank's own word."""
    return {
        key: value
        for key, value in json.loads(told or "{}").items()
        if key in ("transitions", "patients", "distinct_sentences", "section_transitions")
    }


def plain(told, bank):
    """Return an answer without sums and the file's name."""
    return re.sub(r"[0-9a-f]{12,64}", "SUM", told.replace(str(bank), "BANK"))


def some_place(rng, value):
    """Return a random container inside a JSON value, and a key of it."""
    while True:
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.2:
            return value, key
        value = inner


def odd_header(rng, made):
    """Put an odd value somewhere into the header."""
    inside, key = some_place(rng, made.header)
    inside[key] = rng.choice([value for value in ODD if type(value) is not type(inside[key])])


def less_header(rng, made):
    """Leave something out of the header."""
    inside, key = some_place(rng, made.header)
    del inside[key]


def other_parts(rng, made):
    """Leave a part out, double it, or give it another name."""
    number = rng.randrange(len(made.blobs))
    entry, blob = made.header["blobs"][number], made.blobs[number]
    kind = rng.choice(["leave out", "double", "rename", "swap names"])
    if kind == "leave out":
        del made.header["blobs"][number], made.blobs[number]
    elif kind == "double":
        made.header["blobs"].append({**entry})
        made.blobs.append(blob)
    elif kind == "rename":
        entry["name"] += rng.choice(["", "x", "\x00"]) + "s"
    else:
        other = made.header["blobs"][number - 1]
        entry["name"], other["name"] = other["name"], entry["name"]


def other_shape(rng, made):
    """Give a part another type or shape over the same bytes."""
    entry = rng.choice(made.header["blobs"])
    entry.update(
        rng.choice(
            [
                {
                    "dtype": rng.choice(
                        [
                            kind
                            for kind in ("<f2", "<f4", "<i4", "<i8", "<u8", "|u1", "|O", "<c16")
                            if kind != entry["dtype"]
                        ]
                    )
                },
                {"shape": [*entry["shape"], 1]},
                {"shape": [size + rng.choice([-1, 1, 2**40]) for size in entry["shape"]]},
                {"shape": [1] * 70},
                {"shape": [0, 2**62]},
                {"shape": [2**32, 2**32]},
                {"length": entry["length"] + rng.choice([-64, 64, 2**50])},
            ]
        )
    )


def array_of(made, name):
    """Return a copy of a part's array."""
    entry = made.header["blobs"][made.number(name)]
    size = int(np.prod(entry["shape"]))
    return (
        np.frombuffer(made.blobs[made.number(name)], entry["dtype"], count=size)
        .reshape(entry["shape"])
        .copy()
    )


def odd_numbers(rng, made):
    """Put numbers into offsets or ids that point nowhere, or cut them."""
    name = rng.choice(NUMBERS)
    array = array_of(made, name)
    if "offsets" in name:
        kind = rng.choice(["limit", "reverse", "shift", "cut", "far"])
    else:
        kind = rng.choice(["limit", "reverse", "cut"])
    if kind == "limit":
        array[rng.randrange(len(array))] = rng.choice(LIMITS)
    elif kind == "far":
        array[rng.choice([0, -1])] = rng.choice([10**12, 2**62, -(2**62)])
    elif kind == "shift":
        array += 1
    else:
        array = array[::-1].copy() if kind == "reverse" else array[:-1]
    made.put(name, array)


def odd_vectors(rng, made):
    """Put vectors into the bank that no encoder gives."""
    array = array_of(made, "vectors")
    row = rng.randrange(len(array))
    kind = rng.choice(["value", "scale", "all", "cut"])
    if kind == "value":
        array[row, rng.randrange(array.shape[1])] = rng.choice([np.nan, np.inf, -np.inf, 9.0, 3e38])
    elif kind == "scale":
        array[row] *= rng.choice([0.0, 0.5, 3.0])
    elif kind == "all":
        array *= np.float32(3)
    else:
        array = array[:, :-1].copy() if rng.random() < 0.5 else array[:-1]
    made.put("vectors", array)


def odd_text(rng, made):
    """Put something else where sentences or provenance are."""
    if rng.random() < 0.5:
        sentences = json.loads(bytes(array_of(made, "sentences")))
        told = rng.choice(
            [
                b"",
                b"{}",
                b"null",
                b"\xff\xfe",
                DEEP,
                json.dumps(sentences[::-1]).encode(),
                json.dumps(sentences[:-1]).encode(),
                json.dumps([*sentences[:-1], 7]).encode(),
                json.dumps([*sentences[:-1], sentences[-2]]).encode(),
                b"[" + b"1" * 9999 + b"]",
            ]
        )
        made.put("sentences", np.frombuffer(told, np.uint8))
        return
    lines = bytes(array_of(made, "provenance")).splitlines(keepends=True)
    line = rng.choice(
        [
            b"\n",
            b"[]\n",
            b"{}\n",
            b'{"id": 7}\n',
            b'{"id": null}\n',
            b"\xff\n",
            DEEP + b"\n",
            b'"id"\n',
            b"1" * 9999 + b"\n",
            b'{"id": "x"}',
            b"",
        ]
    )
    lines[rng.randrange(len(lines))] = line
    made.put("provenance", np.frombuffer(b"".join(lines), np.uint8))
    made.put("provenance.offsets", np.cumsum([0, *map(len, lines)], dtype="<i8"))


def odd_patients(rng, made):
    """Put hashes of patients out of order."""
    array = array_of(made, "patients")
    made.put("patients", rng.choice([array[::-1].copy(), np.repeat(array, 2)]))


CRAFTS = (
    odd_header,
    less_header,
    other_parts,
    other_shape,
    odd_numbers,
    odd_numbers,
    odd_vectors,
    odd_text,
    odd_patients,
)


def test_a_crafted_bank_is_refused_or_answers_as_the_whole_one(place):
    """Whatever stands behind right sums: one sentence and exit 1, or the answer of the bank it was."""
    rng, whole = seeded("crafted banks"), (place / "whole").read_bytes()
    expected, path, refused = list(answers(place, place / "whole")), place / "crafted", 0
    assert {code for code, _ in expected} == {0}
    for number in range(budget(60, 2000)):
        made, craft = Crafted.of(whole), CRAFTS[number % len(CRAFTS)]
        craft(rng, made)
        path.write_bytes(made.data())
        found = list(answers(place, path))
        for got, wanted in zip(found, expected, strict=True):
            assert got[0] == 1 or got == wanted, (number, craft.__name__)
        refused += found[0][0]
    assert refused > budget(60, 2000) / 2


def test_a_bank_that_was_put_together_anew_is_the_same(place):
    """Other blanks and another order of parts change no answer: crafting itself is not refused."""
    made = Crafted.of((place / "whole").read_bytes())
    order = sorted(range(len(made.blobs)), key=lambda number: -number)
    made.header["blobs"] = [made.header["blobs"][number] for number in order]
    made.blobs = [made.blobs[number] for number in order]
    (place / "anew").write_bytes(made.data(room=4096))
    assert list(answers(place, place / "anew")) == list(answers(place, place / "whole"))


@pytest.mark.parametrize("damage", ["flip", "cut", "append"])
def test_a_damaged_bank_is_refused(place, damage):
    """A flipped bit, a cut or something more behind the end: one sentence from each command."""
    rng, whole, path = seeded(f"banks: {damage}"), (place / "whole").read_bytes(), place / "damaged"
    for _ in range(budget(20, 1000)):
        at = rng.randrange(len(whole))
        path.write_bytes(
            {
                "flip": whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :],
                "cut": whole[:at],
                "append": whole + rng.randbytes(rng.randint(1, 200)),
            }[damage]
        )
        assert {code for code, _ in answers(place, path)} == {1}
