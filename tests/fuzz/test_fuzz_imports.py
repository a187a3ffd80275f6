"""Damaged and hostile files of one's own: a cohort, or one sentence, and never a row's text."""

import json
import shutil

import pytest

import hostile
from budgets import budget, seeded
from hostile import CANARY, check, run

VISITS = [
    {
        "patient": f"p{number // 3}",
        "date": f"{1 + number}/5/2020",
        "view": "AP",
        "report": f"{CANARY} {number}.",
    }
    for number in range(18)
]
DRAFTS = [
    {
        "patient": f"p{number // 3}",
        "date": f"{1 + number}/5/2020",
        "sample": sample,
        "text": f"{CANARY} {sample}.",
    }
    for number in (1, 2, 4)
    for sample in (1, 2)
]
LISTS = [{"patient": f"p{at // 3}", "date": f"{1 + at}/5/2020", "drafts": [CANARY, {"findings": CANARY}]}
         for at in (1, 2, 4)]  # fmt: skip


def as_csv(rows):
    """Write rows as CSV."""
    lines = [list(rows[0]), *(row.values() for row in rows)]
    return "".join(",".join(map(str, line)) + "\n" for line in lines).encode()


def as_lines(rows):
    """Write rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


FILES = {
    "csv": {"visits.csv": as_csv(VISITS), "drafts.csv": as_csv(DRAFTS)},
    "lines": {"visits.jsonl": as_lines(VISITS), "drafts.jsonl": as_lines(LISTS)},
    "json": {"visits.json": json.dumps(VISITS).encode(), "drafts.json": json.dumps(LISTS).encode()},
}


def hostile_data(draw, data, name):
    """Damage the bytes of a file, or one of its values."""
    if draw.randrange(2):
        return hostile.damaged(draw, data)
    if "csv" not in name:
        rows = json.loads(data) if name.endswith(".json") else list(map(json.loads, data.splitlines()))
        rows = hostile.changed(draw, rows)
        return json.dumps(rows).encode() if name.endswith(".json") else as_lines(rows)
    lines = data.split(b"\n")
    at = draw.randrange(1, len(lines))  # names of columns are no report text and may be shown
    cells = lines[at].split(b",")
    odd = draw.choice((str(hostile.value(draw)), hostile.text(draw, 4), "9" * 5000, "0001-01-01", "1/1/0000"))
    cells[draw.randrange(len(cells))] = odd.encode("utf-8", "surrogatepass")
    lines[at] = b",".join(cells)
    return b"\n".join(lines)


@pytest.mark.parametrize("kind", FILES)
def test_damaged_files_give_a_cohort_or_a_sentence(kind, tmp_path):
    """Cut, flipped and hostile visits and drafts of every kind: no traceback, no text of a report."""
    draw = seeded(f"imports {kind}")
    for name, data in FILES[kind].items():
        (tmp_path / name).write_bytes(data)
    visits, drafts = (tmp_path / name for name in FILES[kind])
    command = ("import", visits, "--drafts", drafts, "--out", tmp_path / "out")
    assert check(run(*command)).exit_code == 0
    for _ in range(budget(40, 1000)):
        name = draw.choice(list(FILES[kind]))
        (tmp_path / name).write_bytes(hostile_data(draw, FILES[kind][name], name))
        check(run(*command), name)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        (tmp_path / name).write_bytes(FILES[kind][name])
