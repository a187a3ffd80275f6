"""Bank files are whole or refused; a writer that dies leaves the old bank or the new."""

import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from array_files import Crafted
from bank_generations import write_generations
from budgets import budget, seeded
from kills import forks
from tabon import TransitionBank
from tabon._internal import atomic_files
from tabon.data.simulate import SimulationSettings, simulate_transitions
from tabon.errors import BadInputError, BankDamagedError, TabonError
from tabon.method.bank_file import MAX_HEADER, bank_file, read_bank_file, write_bank_file
from tabon.text.records import transition_from_record

TRANSITIONS = [
    transition_from_record(record) for record in simulate_transitions(SimulationSettings(patients=6), "train")
]
DAMAGES = 2000


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a small bank."""
    path = tmp_path_factory.mktemp("bank") / "b.tabon"
    TransitionBank.build(TRANSITIONS, encoder="hashing").save(path)
    return path.read_bytes()


def damaged(data, kind, seed):
    """Return the bytes with one damage."""
    rng = random.Random(seed)
    at, length = rng.randrange(len(data)), rng.randint(1, 200)
    before, after, past = data[:at], data[at:], data[at + length :]
    first, second = (64 * block for block in sorted(rng.sample(range(len(data) // 64), 2)))
    one, two = data[first : first + 64], data[second : second + 64]
    made = {
        "cut": before,
        "flip": before + bytes([after[0] ^ (1 << rng.randrange(8))]) + after[1:],
        "extend": data + rng.randbytes(length),
        "insert": before + rng.randbytes(length) + after,
        "remove": before + past,
        "zero": before + bytes(min(length, len(after))) + past,
        "swap": data[:first] + two + data[first + 64 : second] + one + data[second + 64 :],
    }
    return made[kind]


def test_any_damage_is_refused(whole, tmp_path):
    """2,000 generated cuts, flips, extensions, insertions, removals and swaps: none is searched."""
    path = tmp_path / "damaged.tabon"
    kinds = ["cut", "flip", "extend", "insert", "remove", "swap", "zero"]
    tried = 0
    for seed in range(2 * DAMAGES):
        data = damaged(whole, kinds[seed % len(kinds)], seed)
        if data == whole:  # swapped two equal pieces, or zeroed zeros
            continue
        path.write_bytes(data)
        with pytest.raises(BankDamagedError, match="rebuild it or copy it again"):
            TransitionBank.load(path)
        tried += 1
        if tried == DAMAGES:
            return
    raise AssertionError(f"only {tried} damages were made")


def test_a_cut_at_every_byte_of_the_head_is_refused(whole, tmp_path):
    """No prefix of the file passes, up to the first blob and around its end."""
    path = tmp_path / "cut.tabon"
    head = 16 + int.from_bytes(whole[8:16], "little") + 32
    for length in [*range(head + 64), *range(len(whole) - 70, len(whole))]:
        path.write_bytes(whole[:length])
        with pytest.raises(BankDamagedError):
            TransitionBank.load(path)


def test_a_part_of_another_bank_is_refused(whole, tmp_path):
    """The vectors of another bank under this bank's head do not pass."""
    other = tmp_path / "other.tabon"
    TransitionBank.build(TRANSITIONS[:-1], encoder="hashing").save(other)
    head = 16 + int.from_bytes(whole[8:16], "little") + 32
    mixed = tmp_path / "mixed.tabon"
    mixed.write_bytes(whole[:head] + other.read_bytes()[-(len(whole) - head) :])
    with pytest.raises(BankDamagedError):
        TransitionBank.load(mixed)


def test_a_bank_of_another_format_is_refused_with_the_way_out(tmp_path):
    """A later format is named; the way out is to rebuild."""
    write_bank_file(tmp_path / "later.tabon", bank_file({"format": 99}, {}))
    with pytest.raises(BadInputError, match="bank format 99, this tabon reads 3 and 4; rebuild the bank"):
        TransitionBank.load(tmp_path / "later.tabon")


def test_an_array_of_objects_is_refused(tmp_path):
    """Only plain numbers are read: no type that could run code."""
    path = tmp_path / "objects.tabon"
    write_bank_file(path, bank_file({"format": 1}, {"x": np.zeros(2, dtype="<c16")}))
    with pytest.raises(BankDamagedError, match=r"header\.blobs\[0\]\.dtype"):
        read_bank_file(path)


@pytest.mark.parametrize("name", ["folder", "empty", "text"])
def test_what_is_no_bank_is_refused(tmp_path, name):
    """A folder, an empty file and a text file get a sentence, not a traceback."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("not a bank, but quite long enough to be read as one, or so it seems")
    with pytest.raises(TabonError):
        TransitionBank.load(tmp_path / name)


SPECIAL = """
    import os, socket, sys
    from pathlib import Path
    from tabon import TransitionBank
    from tabon.errors import TabonError
    path = Path(sys.argv[1])
    if sys.argv[2] == "pipe":
        os.mkfifo(path)
    elif sys.argv[2] == "socket":
        os.chdir(path.parent)  # the name of a socket may not be long
        socket.socket(socket.AF_UNIX).bind(path.name)
    else:
        path.mkdir()
    try:
        TransitionBank.load(path)
    except TabonError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("pipe", "it is not a regular file"),
        ("socket", "it is not a regular file"),
        ("folder", "is a folder, not a bank"),
    ],
)
def test_what_is_no_regular_file_is_not_waited_for(tmp_path, kind, message):
    """A pipe that nobody writes to, a socket and a folder are refused at once, in one sentence."""
    command = [sys.executable, "-c", textwrap.dedent(SPECIAL), tmp_path / "b", kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert message in done.stdout


def test_a_header_has_its_bound(whole, tmp_path):
    """A header of 16 MiB with right sums is read, one that is longer is not."""
    path, made = tmp_path / "b", Crafted.of(whole)
    path.write_bytes(made.data(room=MAX_HEADER))
    assert len(TransitionBank.load(path)) == len(TRANSITIONS)
    path.write_bytes(made.data(room=MAX_HEADER + 1))
    with pytest.raises(BankDamagedError, match="its header is cut off"):
        TransitionBank.load(path)


def test_a_number_of_the_file_is_never_allotted_unchecked(whole, tmp_path):
    """An offset of 10^12 behind right sums asks for no memory: it is refused."""
    path, made = tmp_path / "b", Crafted.of(whole)
    offsets = TransitionBank.build(TRANSITIONS, encoder="hashing").pairs["findings"].prior.offsets.copy()
    offsets[3] = 10**12
    made.put("findings.prior.offsets", offsets.astype("<i8"))
    path.write_bytes(made.data())
    with pytest.raises(BankDamagedError, match="its sentence sets do not fit its sentences"):
        TransitionBank.load(path, verify=False)


def test_a_bank_that_is_held_outlives_its_file(whole, tmp_path):
    """Held in memory, a bank does not change with its file, and cannot be written to."""
    path = tmp_path / "b"
    path.write_bytes(whole)
    held = TransitionBank.load(path, in_memory=True)
    os.truncate(path, 0)
    assert [row["id"] for row in held.provenance] == [one.id for one in TRANSITIONS]
    assert not held.table.vectors.flags.writeable
    held.save(path)
    assert path.read_bytes() == whole


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(0, 40), max_size=5))
@settings(max_examples=30)
def test_what_is_written_is_read(tmp_path_factory, sizes):
    """Any arrays, empty ones too, come back as they were."""
    path = tmp_path_factory.mktemp("f") / "x.tabon"
    arrays = {name: np.arange(size, dtype="<i8") for name, size in sizes.items()}
    write_bank_file(path, bank_file({"note": "é"}, arrays))
    found = read_bank_file(path)
    assert found.facts == {"note": "é"}
    assert {name: array.tolist() for name, array in found.arrays.items()} == {
        name: list(range(size)) for name, size in sizes.items()
    }


def test_a_killed_writer_leaves_the_old_bank_or_the_new(tmp_path):
    """Kill -9 at a random step of rewriting: the file is always one whole generation."""
    path, rng = tmp_path / "b.tabon", seeded("killed writer of banks")
    write_generations(path, 0, 1)
    with forks(tmp_path) as run:
        steps = run("bank_generations:write_generations", path, 1, 3).steps
        for _ in range(budget(30, 500)):
            generation = read_bank_file(path).facts["generation"]
            step = rng.randint(1, steps)
            assert run("bank_generations:write_generations", path, generation, 3, die_at=step).killed
            found = read_bank_file(path)
            values = np.concatenate([found.arrays["a"], found.arrays["b"]])
            assert np.unique(values).tolist() == [found.facts["generation"]]
            assert generation <= found.facts["generation"] <= generation + 3
    assert read_bank_file(path).facts["generation"] > 10  # the writers did write


def test_leftovers_of_killed_writers_are_cleared(tmp_path):
    """A temporary file whose writer is dead goes with the next write; a living writer's stays."""
    path = tmp_path / "b.tabon"
    (tmp_path / ".b.tabon.dead.part").write_bytes(b"x")
    with atomic_files.replacing(path) as living:
        with atomic_files.replacing(path) as other:
            other.write(b"other")
        living.write(b"living")
    assert path.read_bytes() == b"living"
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.tabon"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_disk_leaves_the_old_file(tmp_path, monkeypatch, step):
    """When a step of publishing fails, the old bytes stay and nothing is left behind."""
    path = tmp_path / "b.tabon"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*{"fsync": (os, "fsync"), "replace": (Path, "replace")}[step], fail)
    with pytest.raises(BadInputError, match="No space left on device"), atomic_files.replacing(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.tabon"]
