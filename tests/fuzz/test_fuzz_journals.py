"""Journals that were damaged, cut, lengthened or forged: a sentence, every whole draft, and no byte lost."""

import json
import re
from dataclasses import replace

from budgets import budget, seeded
from draft_records import KEY, line
from tabon._internal.record_file import record_line
from tabon.errors import BadInputError
from tabon.generation.batches import Ledger
from tabon.generation.journal import Journal, read_journal

CASES = budget(150, 6_000)
ODD = [
    None, True, 0, -1, 7, 10**40, 1e308, float("nan"), float("inf"), "", "x", "0" * 64, "\ud800", [], [[]],
    {}, {"a": 1}, ["x"],
]  # fmt: skip
LINES = [line(replace(KEY, sample=sample), text="Clear. " * sample) for sample in range(6)]
ORDER = {
    "step": "intent",
    "name": "tabon-" + "0" * 32,
    "model": "gemini:m",
    "source": None,
    "at": 1.0,
    "drafts": [{"key": {k: v for k, v in json.loads(LINES[0]).items() if k in KEY.__slots__}, "most": 0.1}],
}
JOB = {"step": "job", "name": ORDER["name"], "job": "batches/1"}


def flipped(rng, data):
    """One to three bits are turned."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def lengthened(rng, data):
    """Something stands behind the end."""
    odd = [b"\n", b"\0" * 99, b'{"key": "', b"text without end", rng.randbytes(40), LINES[0][:99], b"{}\n"]
    return data + rng.choice(odd)


def cut(rng, data):
    """The end is missing."""
    return data[: rng.randrange(len(data))]


def opened(kind, path):
    """Open and close a file; returns how many records it has, or None where it was refused."""
    try:
        file = kind(path)
    except BadInputError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert "Clear" not in str(error)  # noqa: PT017
        return None
    count = len(file)
    file.close()
    return count


def test_a_damaged_journal_is_refused_or_whole(tmp_path):
    """What is opened holds only lines as they were written, and a refused file keeps every byte."""
    rng, path = seeded("journals"), tmp_path / "d.jsonl"
    for _ in range(CASES):
        data = b"".join(LINES[: rng.randint(1, 6)])
        data = rng.choice([flipped, lengthened, cut])(rng, data)
        path.write_bytes(data)
        count = opened(Journal, path)
        if count is None:
            assert path.read_bytes() == data
        else:
            after = path.read_bytes()
            assert after == b"".join(LINES[:count])
            assert data.startswith(after[:-1])
            assert len(list(read_journal(path))) == count
            assert re.search(rb', "crc": \d+\}', data[len(after) :]) is None  # no whole record was cut


def mutated(rng, record):
    """A field is taken away, added, or becomes something odd; also inside."""
    record = json.loads(json.dumps(record))
    place = record
    while inner := [value for value in place.values() if isinstance(value, dict) and value]:
        if rng.random() < 0.5:
            break
        place = rng.choice(inner)
    name = rng.choice([*place, "new"])
    if rng.random() < 0.3:
        place.pop(name, None)
    else:
        place[name] = rng.choice(ODD)
    return record


def test_a_forged_journal_is_refused_or_read(tmp_path):
    """Right checksums around whatever fields: a sentence, or records that every reader can use."""
    rng, path = seeded("forged journals"), tmp_path / "d.jsonl"
    whole = json.loads(LINES[1])
    del whole["crc"]
    for _ in range(CASES):
        record = mutated(rng, whole)
        if rng.random() < 0.2:
            record.pop("source", None)  # of the first version
        data = LINES[0] + record_line(record) + LINES[2]
        path.write_bytes(data)
        count = opened(Journal, path)
        assert path.read_bytes() == data
        assert count in {None, 2, 3}
        if count is not None:
            journal = Journal(path)
            assert 0.5 <= journal.cost < 1e13
            journal.close()


def test_a_damaged_or_forged_ledger_is_refused_or_read(tmp_path):
    """The ledger of batch jobs holds to the same rules."""
    rng, path = seeded("ledgers"), tmp_path / "d.batches"
    whole = record_line(ORDER) + record_line(JOB)
    path.write_bytes(whole)
    assert opened(Ledger, path) == 1
    for _ in range(CASES):
        if rng.random() < 0.5:
            data = rng.choice([flipped, lengthened, cut])(rng, whole)
        else:
            order = mutated(rng, ORDER)
            if isinstance(order.get("drafts"), list) and rng.random() < 0.5:
                order["drafts"] = [mutated(rng, ORDER["drafts"][0])]
            data = record_line(order) + record_line(mutated(rng, JOB))
        path.write_bytes(data)
        if opened(Ledger, path) is None:
            assert path.read_bytes() == data
        else:
            assert data.startswith(path.read_bytes()[:-1])
