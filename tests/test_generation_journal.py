"""The journal: on disk before it counts, found by key, whole after a kill, refused when damaged."""

import json
import multiprocessing
import os
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.errors import BadInputError
from tabon.generation.journal import DraftKey, Journal, draft_line, read_journal
from tabon.generation.protocol import Answer, Parameters

KEY = DraftKey(
    study="s1",
    model="openai:m",
    prompt="P1",
    prompt_sha256="a" * 64,
    image_sha256=None,
    parameters=Parameters(),
    sample=0,
)
OTHER = {
    "study": "s2",
    "model": "openai:n",
    "prompt": "P2",
    "prompt_sha256": "b" * 64,
    "image_sha256": "c" * 64,
    "parameters": Parameters(temperature=0.5),
    "sample": 1,
}


def line(key=KEY, text="Findings: Clear.", **changes):
    """One line of a journal."""
    answer = Answer(outcome="ok", text=text, raw={"body": text}, **changes)
    return draft_line(key, answer, seed=7, cost=0.25, time="2026-01-01T00:00:00+00:00")


def keys(count):
    """Some keys."""
    return [replace(KEY, sample=number) for number in range(count)]


def test_what_was_kept_is_there_again(tmp_path):
    """A journal opened anew knows every draft, its text and what all of it cost."""
    path = tmp_path / "d.jsonl"
    journal = Journal(path)
    journal.append([line(key) for key in keys(3)])
    journal.close()
    again = Journal(path)
    assert all(key in again for key in keys(3))
    assert replace(KEY, sample=3) not in again
    assert (len(again), again.cost) == (3, 0.75)
    again.close()
    assert [record["sample"] for record in read_journal(path)] == [0, 1, 2]
    assert next(read_journal(path))["raw"] == {"body": "Findings: Clear."}


@pytest.mark.parametrize("field", [field.name for field in fields(DraftKey)])
def test_any_change_of_the_key_is_another_draft(tmp_path, field):
    """Another study, model, prompt, image, parameter or sample is a miss."""
    journal = Journal(tmp_path / "d.jsonl")
    journal.append([line()])
    assert KEY in journal
    assert replace(KEY, **{field: OTHER[field]}) not in journal
    journal.close()


@given(st.data())
def test_a_cut_end_loses_only_what_was_never_acknowledged(tmp_path_factory, data):
    """Cut anywhere, the journal opens with every whole line, and can be written on."""
    path = tmp_path_factory.mktemp("j") / "d.jsonl"
    lines = [line(key) for key in keys(4)]
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    ends = [sum(map(len, lines[: n + 1])) for n in range(4)]
    journal = Journal(path)
    assert len(journal) == sum(end <= cut for end in ends)
    journal.append([line(replace(KEY, sample=9))])
    journal.close()
    assert len(list(read_journal(path))) == sum(end <= cut for end in ends) + 1


@given(st.integers(0, 10**6), st.integers(0, 7))
def test_a_flipped_bit_is_never_read_as_a_draft(tmp_path_factory, place, bit):
    """A line damaged after it was written is named, or (a lost newline at the end) left out."""
    path = tmp_path_factory.mktemp("j") / "d.jsonl"
    data = bytearray(b"".join(line(key) for key in keys(3)))
    data[place % len(data)] ^= 1 << bit
    path.write_bytes(data)
    originals = [json.loads(line(key)) for key in keys(3)]
    try:
        records = list(read_journal(path))
    except BadInputError as error:
        assert "was damaged after it was written" in str(error)  # noqa: PT017
    else:
        assert records == originals[: len(records)]
        assert len(records) < 3


def test_one_process_writes_at_a_time(tmp_path):
    """A second writer is told to wait, and harms nothing."""
    first = Journal(tmp_path / "d.jsonl")
    with pytest.raises(BadInputError, match="being written by another process"):
        Journal(tmp_path / "d.jsonl")
    first.append([line()])
    first.close()
    Journal(tmp_path / "d.jsonl").close()


def test_a_full_disk_keeps_what_was_kept(tmp_path, monkeypatch):
    """When a write fails the journal ends where it did, and says what to do."""
    journal = Journal(tmp_path / "d.jsonl")
    journal.append([line()])

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInputError, match=r"No space left on device.*what was kept stays"):
        journal.append([line(replace(KEY, sample=1))])
    monkeypatch.undo()
    journal.append([line(replace(KEY, sample=2))])
    journal.close()
    assert [record["sample"] for record in read_journal(tmp_path / "d.jsonl")] == [0, 2]


def test_a_really_full_disk_keeps_what_was_kept(tmp_path):
    """A file size limit of the operating system stops the writing; every whole line stays readable."""
    path = tmp_path / "d.jsonl"
    writer = multiprocessing.get_context("fork").Process(target=write_until_full, args=(path,))
    writer.start()
    writer.join()
    assert writer.exitcode == 7
    journal = Journal(path)
    assert len(list(read_journal(path))) == len(journal) > 0
    journal.close()


def write_until_full(path):
    """Write with a limit on the size of files, as a full disk has."""
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    journal = Journal(path)
    try:
        for key in keys(1000):
            journal.append([line(key)])
    except BadInputError:
        os._exit(7)
    os._exit(1)


def test_a_journal_that_is_not_there_is_named(tmp_path):
    """Reading nothing is an error with the command that makes one."""
    with pytest.raises(BadInputError, match="tabon generate"):
        list(read_journal(tmp_path / "none.jsonl"))


def test_the_journal_is_its_owner_s_alone(tmp_path):
    """Drafts are about patients: mode 0600."""
    Journal(tmp_path / "d.jsonl").close()
    assert (tmp_path / "d.jsonl").stat().st_mode & 0o777 == 0o600
