"""The on-disk store: survives kill -9 and company, mends damage, shows no text."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing

import numpy as np
import pytest

from budgets import budget, seeded
from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.method.sentence_sets import embed
from tabon.metrics.protocol import MeasurementStore
from waiting import LIMIT

HASHING = load_encoder("hashing")
PRINT = HASHING.fingerprint


def test_what_was_written_is_read_bit_for_bit(tmp_path):
    """Vectors come back as they went in, from another opening of the file."""
    texts = ["a", "b", "é", "\ud800"]
    SentenceStore(tmp_path / "s.sqlite").write(PRINT, texts, HASHING.encode(texts))
    found = SentenceStore(tmp_path / "s.sqlite").read(PRINT, [*texts, "absent"])
    assert set(found) == set(texts)
    for text in texts:
        np.testing.assert_array_equal(found[text], HASHING.encode([text])[0])


def test_another_encoder_has_other_keys(tmp_path):
    """A changed fingerprint finds nothing that another encoder wrote."""
    from dataclasses import replace

    store = SentenceStore(tmp_path / "s.sqlite")
    store.write(PRINT, ["a"], HASHING.encode(["a"]))
    assert store.read(replace(PRINT, weights="other"), ["a"]) == {}


def test_no_text_lies_in_the_file_and_it_is_the_owner_s_alone(tmp_path):
    """Keys are hashes; mode 0600."""
    store = SentenceStore(tmp_path / "s.sqlite")
    store.write(PRINT, ["CANARY sentence"], HASHING.encode(["CANARY sentence"]))
    for path in tmp_path.iterdir():
        assert b"CANARY" not in path.read_bytes()
    assert (tmp_path / "s.sqlite").stat().st_mode & 0o777 == 0o600


def test_a_damaged_row_is_made_anew(tmp_path):
    """A vector whose bytes changed is not used: it is encoded and written again."""
    store = SentenceStore(tmp_path / "s.sqlite")
    store.write(PRINT, ["a", "b"], HASHING.encode(["a", "b"]))
    with sqlite3.connect(tmp_path / "s.sqlite") as connection:
        connection.execute("UPDATE embeddings SET vector = zeroblob(1024)")
    connection.close()
    assert store.read(PRINT, ["a", "b"]) == {}
    table = embed(["a", "b"], HASHING, store=store)
    np.testing.assert_array_equal(table.vectors, HASHING.encode(["a", "b"]))
    assert set(store.read(PRINT, ["a", "b"])) == {"a", "b"}


def test_a_file_that_is_no_store_is_refused_with_the_way_out(tmp_path):
    """A damaged store is named, and that it may be deleted."""
    (tmp_path / "s.sqlite").write_bytes(b"not a database, not at all, but long enough" * 100)
    with pytest.raises(BadInputError, match="it is only a cache: delete it"):
        SentenceStore(tmp_path / "s.sqlite")


def test_a_place_that_cannot_be_written_is_refused_with_the_way_out(tmp_path):
    """A folder in the store's place gives one sentence."""
    with pytest.raises(BadInputError, match="name another with --store, or do without by --no-store"):
        SentenceStore(tmp_path)


def test_a_pipe_in_place_of_a_store_is_refused(tmp_path):
    """A FIFO gives one sentence, and nobody waits for its other end."""
    os.mkfifo(tmp_path / "s.sqlite")
    command = [
        sys.executable,
        "-c",
        "import sys; from tabon.encoders.sentence_store import SentenceStore; SentenceStore(sys.argv[1])",
        tmp_path / "s.sqlite",
    ]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
    assert "cannot be used (it is no plain file); it is only a cache" in ended.stderr


def test_a_measurement_store_names_its_own_options(tmp_path):
    """The way out of a broken measurement store is that of the commands that have one."""
    with pytest.raises(BadInputError, match="name another with --measurements, or do without by --no-meas"):
        MeasurementStore(tmp_path)


@pytest.mark.parametrize("before", ["nothing", "an open file", "a link to nothing"])
def test_no_file_of_a_store_is_ever_readable_by_others(tmp_path, monkeypatch, before):
    """Before SQLite opens it the file is 0600, and so are the files that SQLite puts beside it."""
    path, seen, connect = tmp_path / "s.sqlite", [], sqlite3.connect
    if before == "an open file":
        path.touch(mode=0o644)
    if before == "a link to nothing":
        path.symlink_to("real.sqlite")

    def looked_at(*args, **kwargs):
        seen.append(path.stat().st_mode & 0o777)
        return connect(*args, **kwargs)

    monkeypatch.setattr(sqlite3, "connect", looked_at)
    store = SentenceStore(path)
    with store._blobs._connection() as connection:
        connection.execute("INSERT INTO embeddings VALUES (x'00', x'00', 0)")
        connection.commit()
        modes = {entry.name: entry.stat().st_mode & 0o777 for entry in tmp_path.iterdir()}
    assert set(seen) == set(modes.values()) == {0o600}
    assert {name.rpartition("-")[2] for name in modes} >= {"wal", "shm"}


def test_a_store_that_is_deleted_meanwhile_is_made_again_for_its_owner_alone(tmp_path):
    """The store may be deleted at will, also while it is in use."""
    store = SentenceStore(tmp_path / "s.sqlite")
    store.path.unlink()
    store.write(PRINT, ["a"], HASHING.encode(["a"]))
    assert set(store.read(PRINT, ["a"])) == {"a"}
    assert store.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "damage",
    [
        "vector = 'text'",
        "vector = NULL",
        "vector = 7",
        "crc = NULL",
        "crc = 'text'",
        "vector = other.vector, crc = other.crc",
    ],
)
def test_a_row_with_other_values_is_as_if_it_were_not_there(tmp_path, damage):
    """Values of another type, or those of another sentence, are not used."""
    store = SentenceStore(tmp_path / "s.sqlite")
    store.write(PRINT, ["a", "b"], HASHING.encode(["a", "b"]))
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("CREATE TEMPORARY TABLE whole AS SELECT * FROM embeddings")
        connection.execute(
            f"UPDATE embeddings SET {damage} FROM whole AS other WHERE other.key != embeddings.key"  # noqa: S608
        )
    assert store.read(PRINT, ["a", "b"]) == {}


WRITER = """
    import os, sys
    from pathlib import Path
    from tabon.encoders import load_encoder
    from tabon.encoders.sentence_store import SentenceStore
    encoder = load_encoder("hashing")
    for line in sys.stdin:
        start, endless = line.split()
        writer = os.fork()
        if writer == 0:
            store, number = SentenceStore(Path(sys.argv[1])), int(start)
            while endless == "1" or number < int(start) + 100:
                lot = [f"sentence {number + i}" for i in range(20)]
                store.write(encoder.fingerprint, lot, encoder.encode(lot))
                print(f"kept {number + 20}", flush=True)
                number += 20
            os._exit(0)
        print(f"writer {writer}", flush=True)
        os.waitpid(writer, 0)
        print("gone", flush=True)
"""


def start_writers(path):
    """Start a process that forks writers on request."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_killed_writer_loses_nothing_that_was_kept(tmp_path):
    """Kill -9 after some acknowledged chunks: each of their vectors is there, whole, and writing goes on."""
    path, rng, kept = tmp_path / "s.sqlite", seeded("killed writer of a store"), 0
    with start_writers(path) as writers:
        for _ in range(budget(15, 200)):
            print(kept % 2000, 1, file=writers.stdin, flush=True)  # later ones write over what is there
            lines, enough, writer = [], rng.randint(0, 4), None
            while writer is None or sum(line[0] == "kept" for line in lines) < enough:
                lines.append(writers.stdout.readline().split())
                writer = int(lines[-1][1]) if lines[-1][0] == "writer" else writer
            os.kill(writer, signal.SIGKILL)  # in the middle of the next chunk
            while lines[-1] != ["gone"]:
                lines.append(writers.stdout.readline().split())
            kept = max([kept, *(int(line[1]) for line in lines if line[0] == "kept")])
            texts = [f"sentence {i}" for i in range(kept)]
            found = SentenceStore(path).read(PRINT, texts)
            assert set(found) == set(texts)
        writers.stdin.close()
    assert kept > 20  # the writers did write
    np.testing.assert_array_equal(found["sentence 3"], HASHING.encode(["sentence 3"])[0])


def test_two_processes_may_write_at_once(tmp_path):
    """Two writers of overlapping sentences both finish, and all vectors are right."""
    path = tmp_path / "s.sqlite"
    SentenceStore(path)
    with start_writers(path) as one, start_writers(path) as two:
        for process, start in ((one, 0), (two, 40)):
            print(start, 0, file=process.stdin, flush=True)
        for process in (one, two):
            process.communicate()
    assert (one.returncode, two.returncode) == (0, 0)
    texts = [f"sentence {i}" for i in range(140)]
    found = SentenceStore(path).read(PRINT, texts)
    np.testing.assert_array_equal(np.stack([found[text] for text in texts]), HASHING.encode(texts))
