"""Cohorts with hostile lines, for `tabon generate` and `tabon drafts`: a sentence, never a traceback."""

import json
import sys

import pytest

from budgets import budget, seeded
from commands import tabon
from echo_model import ECHO
from tabon.data.cohort.build import write_simulated
from tabon.data.simulate import SimulationSettings

CASES = budget(40, 1_500)
ODD = [
    None, True, 0, -1, 10**40, 1e308, float("nan"), "", " ", "x", "\ud800", "a\0b", "../..", "/", [], {},
    [[]], [None], {"findings": 7}, {"text": []}, "9" * 5_000,
]  # fmt: skip
CANARY = "Zyxomma"


def hostile(rng, line):
    """A line of a cohort that was damaged or changed."""
    kind = rng.randrange(6)
    if kind == 0:
        odd = [
            b"",
            b"  \t",
            b"[" * 50_000,
            b"null",
            b"[]",
            b"7",
            b'"x"',
            b"\xff\xfe",
            b"\0" * 50,
            b"9" * 9_999,
        ]
        return rng.choice(odd) + b"\n"
    if kind == 1:
        return line[: rng.randrange(len(line))] + b"\n"
    if kind == 2:
        data = bytearray(line)
        data[rng.randrange(len(data) - 1)] ^= 1 << rng.randrange(8)
        return bytes(data)
    record = json.loads(line)
    name = rng.choice([*record, "patient", "image", "split"])
    if kind == 3:
        record.pop(name, None)
    else:
        record[name] = rng.choice(ODD)
    return json.dumps(record).encode() + b"\n"


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """A small simulated cohort with a canary in every report."""
    folder = tmp_path_factory.mktemp("fuzz") / "cohort"
    write_simulated(folder, SimulationSettings(patients=30, splits=(0.6, 0.0, 0.4)))
    for path in folder.rglob("transitions.jsonl"):
        path.write_text(path.read_text().replace("The ", f"The {CANARY} "))
    return folder


def test_hostile_lines_of_a_cohort_are_a_sentence(cohort, tmp_path):
    """Every command ends with 0 or 1, says one sentence, and repeats no report."""
    rng = seeded("cohorts for generate")
    lines = {
        split: (cohort / split / "transitions.jsonl").read_bytes().splitlines(keepends=True)
        for split in ("train", "test")
    }
    model = [
        "--model",
        "command:x",
        "--command",
        f"{sys.executable} -c pass",
        "--out",
        tmp_path / "d",
        "--dry-run",
    ]
    sound = tabon("generate", cohort, *model)
    assert sound.exit_code == 0, sound.output
    (tmp_path / "echo.py").write_text(ECHO)
    echo = ["--model", "command:x", "--command", f"{sys.executable} {tmp_path / 'echo.py'}", "-n", 1]
    words = ["generate", cohort, *echo, "--prompt", "P1", "--out", tmp_path / "journal"]
    assert tabon(*words).exit_code == 0
    (tmp_path / "images").mkdir()
    ends = set()
    for _ in range(CASES):
        split = rng.choice(["test", "test", "train"])
        changed = list(lines[split])
        for _ in range(rng.randint(1, 2)):
            place = rng.randrange(len(changed))
            changed[place] = hostile(rng, lines[split][place])
        (cohort / split / "transitions.jsonl").write_bytes(b"".join(changed))
        for words in (
            ["generate", cohort, *model, "--prompt", rng.choice(["P1", "P2", "P3", "P3-hardened"])],
            ["generate", cohort, *model, "--prompt", "P1", "--images", tmp_path / "images"],
            [
                "drafts",
                tmp_path / "journal",
                "--cohort",
                cohort,
                "--split",
                split,
                "-n",
                1,
                "--out",
                tmp_path / "q",
            ],
        ):
            done = tabon(*words)
            assert done.exit_code in {0, 1}
            assert CANARY not in done.stderr
            ends.add(done.exit_code)
        (cohort / split / "transitions.jsonl").write_bytes(b"".join(lines[split]))
    assert ends == {0, 1}
