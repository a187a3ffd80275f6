"""The journal: on disk before it counts, found by key, whole after a kill, refused when damaged."""

import json
import multiprocessing
import os
from dataclasses import fields, replace
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draft_records import KEY, line
from tabon._internal.record_file import record_line
from tabon.errors import BadInputError
from tabon.generation.batches import Ledger
from tabon.generation.journal import DraftKey, Journal, can_be_kept, draft_line, read_journal
from tabon.generation.protocol import Answer, Parameters

OTHER = {
    "study": "s2",
    "model": "openai:n",
    "source": None,
    "prompt": "P2",
    "prompt_sha256": "b" * 64,
    "image_sha256": "c" * 64,
    "parameters": Parameters(temperature=0.5),
    "sample": 1,
    "seed": 8,
}


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
    """Cut anywhere behind its first bytes, the journal opens with every whole line, and can be written on."""
    path = tmp_path_factory.mktemp("j") / "d.jsonl"
    lines = [line(key) for key in keys(4)]
    whole = b"".join(lines)
    cut = data.draw(st.one_of(st.just(0), st.integers(100, len(whole))))
    path.write_bytes(whole[:cut])
    ends = [sum(map(len, lines[: n + 1])) - 1 for n in range(4)]  # a lost newline loses no draft
    journal = Journal(path)
    assert len(journal) == sum(end <= cut for end in ends)
    journal.append([line(replace(KEY, sample=9))])
    journal.close()
    assert len(list(read_journal(path))) == sum(end <= cut for end in ends) + 1


@given(st.integers(0, 10**6), st.integers(0, 7))
def test_a_flipped_bit_is_never_read_as_a_draft(tmp_path_factory, place, bit):
    """A line damaged after it was written is named, and the file stays as it is."""
    path = tmp_path_factory.mktemp("j") / "d.jsonl"
    data = bytearray(b"".join(line(key) for key in keys(3)))
    data[place % len(data)] ^= 1 << bit
    path.write_bytes(data)
    for reading in (lambda: list(read_journal(path)), lambda: Journal(path)):
        with pytest.raises(BadInputError, match=r"line [123] was damaged after|is another kind of file"):
            reading()
    assert path.read_bytes() == data


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


FOREIGN = {
    "one line": b"my only copy",
    "two lines": b"my only copy\nof this",
    "zeros": bytes(3_000_000),
    "json": b'{"key": "value", "other": [1, 2]}',
    "json line": b'{"key": "value", "other": [1, 2]}\n',
    "short": b'{"key": "0f',
    "blank": b"\n",
    "another tool's": b'{"step": "one"}\n{"step": "two',
}


@pytest.mark.parametrize("kind", [Journal, Ledger])
@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_that_is_no_journal_stays_as_it_is(tmp_path, kind, name):
    """Whatever a user's file holds, with a newline at its end or not, opening it changes no byte."""
    path = tmp_path / "notes.txt"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(BadInputError, match=r"another kind of file|line 1 "):
        kind(path)
    assert path.read_bytes() == FOREIGN[name]


def test_a_record_that_only_lost_its_newline_is_kept(tmp_path):
    """The checksum is right, so the draft is there; the newline is put back and that is said."""
    path = tmp_path / "d.jsonl"
    whole = b"".join(line(key) for key in keys(2))
    path.write_bytes(whole[:-1])
    assert len(list(read_journal(path))) == 2
    journal = Journal(path)
    assert "got it back" in journal.mended
    journal.append([line(replace(KEY, sample=2))])
    journal.close()
    assert path.read_bytes() == whole + line(replace(KEY, sample=2))


def test_what_was_cut_off_is_said(tmp_path):
    """Opening says how many bytes of a torn line it dropped; a whole journal is opened in silence."""
    path = tmp_path / "d.jsonl"
    path.write_bytes(line() + line(replace(KEY, sample=1))[:120])
    journal = Journal(path)
    assert "120 bytes" in journal.mended
    journal.close()
    assert path.read_bytes() == line()
    again = Journal(path)
    assert again.mended is None
    again.close()


def test_records_that_ran_together_are_not_taken_for_a_torn_one(tmp_path):
    """Two journals put together without a newline between them: both drafts were paid for, none is cut."""
    path = tmp_path / "d.jsonl"
    data = line() + line(replace(KEY, sample=1))[:-1] + line(replace(KEY, sample=2))[:-1] + b" "
    path.write_bytes(data)
    with pytest.raises(BadInputError, match="line 2 was damaged"):
        Journal(path)
    assert path.read_bytes() == data


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_damaged_line_is_named_by_its_number(tmp_path, number):
    """The message leads to the line."""
    lines = [line(key) for key in keys(3)]
    lines[number - 1] = lines[number - 1].replace(b"Clear", b"clear")
    (tmp_path / "d.jsonl").write_bytes(b"".join(lines))
    with pytest.raises(BadInputError, match=f"line {number} was damaged"):
        Journal(tmp_path / "d.jsonl")


def test_a_journal_makes_its_folder(tmp_path):
    """A place in a folder that is not there yet is a place."""
    Journal(tmp_path / "new" / "folders" / "d.jsonl").close()
    assert (tmp_path / "new" / "folders" / "d.jsonl").is_file()


def test_what_is_not_a_plain_file_is_refused(tmp_path):
    """A FIFO would be waited for without end."""
    os.mkfifo(tmp_path / "fifo")
    holder = os.open(tmp_path / "fifo", os.O_RDWR | os.O_NONBLOCK)  # so that a fault fails and does not hang
    os.write(holder, b"x")
    for kind in (Journal, Ledger):
        with pytest.raises(BadInputError, match="not a plain file"):
            kind(tmp_path / "fifo")
    with pytest.raises(BadInputError, match="no journal"):
        list(read_journal(tmp_path / "fifo"))
    assert os.read(holder, 9) == b"x"
    os.close(holder)


def forged(**changes):
    """A line with a right checksum that tabon would not write; ... leaves a field out."""
    record = json.loads(line()) | {"crc": ...} | changes
    return record_line({name: value for name, value in record.items() if value is not ...})


FORGED = {
    "no key": forged(key=...),
    "short key": forged(key="0f"),
    "key of letters": forged(key="z" * 64),
    "no study": forged(study=...),
    "study of lists": forged(study=[1]),
    "model of numbers": forged(model=7),
    "sample of text": forged(sample="one"),
    "sample below 0": forged(sample=-1),
    "no text": forged(text=...),
    "text of lists": forged(text=["Clear."]),
    "no seed": forged(seed=...),
    "no raw": forged(raw=...),
    "source of objects": forged(source={}),
    "a list": b'["key", "crc": 1]\n',
    "not JSON": b'{"key": "%d, "crc": %d}\n' % (1, crc32(b'{"key": "1}')),
    "deep": b'{"key": "", "x": %s, "crc": %d}\n'
    % (b"[" * 99_999, crc32(b'{"key": "", "x": ' + b"[" * 99_999 + b"}")),
    "many digits": b'{"key": "", "x": %s, "crc": %d}\n'
    % (b"9" * 9_999, crc32(b'{"key": "", "x": ' + b"9" * 9_999 + b"}")),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_line_is_a_sentence(tmp_path, name):
    """A right checksum around wrong fields is refused by its line's number, for reading and for writing."""
    path = tmp_path / "d.jsonl"
    path.write_bytes(line() + forged())
    Journal(path).close()  # nothing is wrong but what is changed
    path.write_bytes(line() + FORGED[name])
    for reading in (lambda: list(read_journal(path)), lambda: Journal(path)):
        with pytest.raises(BadInputError, match="line 2 "):
            reading()
    assert path.read_bytes() == line() + FORGED[name]


@pytest.mark.parametrize(
    "change", [{"drafts": 7}, {"name": []}, {"at": "soon"}, {"step": "job"}, {"drafts": [{}]}]
)
def test_a_forged_line_of_a_ledger_is_a_sentence(tmp_path, change):
    """The ledger is read as carefully as the journal."""
    record = {"step": "intent", "name": "tabon-1", "model": "gemini:m", "at": 1.0, "drafts": []} | change
    (tmp_path / "d.batches").write_bytes(record_line(record))
    with pytest.raises(BadInputError, match="line 1 is no record"):
        Ledger(tmp_path / "d.batches")


@pytest.mark.parametrize(
    "cost", [float("nan"), float("inf"), -66_000.0, "free", 10**400], ids=lambda cost: str(cost)[:9]
)
def test_a_cost_that_cannot_be_does_not_lower_what_was_spent(tmp_path, cost):
    """NaN or a negative cost in a journal counts as unknown: the other costs stand."""
    path = tmp_path / "d.jsonl"
    path.write_bytes(line() + forged(cost=cost) + line(replace(KEY, sample=1)))
    journal = Journal(path)
    assert journal.cost == 0.5
    journal.close()


def old_line(key):
    """A line of the first version, which keyed drafts without their seed and server."""
    record = json.loads(line(key))
    for name in ("source", "crc"):
        del record[name]
    return record_line(record | {"key": key.old_digest()})


def test_drafts_of_the_first_version_are_found_where_they_can_be_told_apart(tmp_path):
    """At a provider's own address, with the seed they were drawn with; another seed is another draft."""
    path = tmp_path / "d.jsonl"
    own = replace(KEY, model="gemini:m", source=None)
    path.write_bytes(old_line(own) + old_line(replace(own, sample=1)))
    journal = Journal(path)
    assert own in journal
    assert replace(own, sample=1) in journal
    assert replace(own, seed=8) not in journal
    assert replace(own, sample=2) not in journal
    assert len(journal) == 2
    journal.close()
    assert [record["sample"] for record in read_journal(path)] == [0, 1]


def test_a_draft_of_the_first_version_by_a_server_it_does_not_name_is_not_taken_for_another_s(tmp_path):
    """Neither reused nor bought again in silence: the user is told to use another file."""
    path = tmp_path / "d.jsonl"
    path.write_bytes(old_line(KEY))
    journal = Journal(path)
    with pytest.raises(BadInputError, match="did not note which server"):
        assert KEY in journal
    assert replace(KEY, seed=8) not in journal
    journal.close()


def test_a_body_nested_too_deeply_can_be_read_again(tmp_path):
    """A provider's body that JSON could not read back is not kept; its draft is."""
    body = []
    for _ in range(900):
        body = [body]
    data = draft_line(KEY, Answer(outcome="ok", text="Clear.", raw=body), cost=None, time="")
    (tmp_path / "d.jsonl").write_bytes(data)
    (record,) = read_journal(tmp_path / "d.jsonl")
    assert (record["text"], record["raw"]) == ("Clear.", "nested too deeply to be kept")


@pytest.mark.parametrize(("levels", "is_kept"), [(1, True), (100, True), (101, False)])
def test_a_body_of_a_hundred_levels_is_kept(tmp_path, levels, is_kept):
    """Lists inside each other, counted with the outermost; beside a shallow part too."""
    body = []
    for _ in range(levels - 1):
        body = [[], body]
    data = draft_line(KEY, Answer(outcome="ok", text="", raw=body), cost=None, time="")
    (tmp_path / "d.jsonl").write_bytes(data)
    (record,) = read_journal(tmp_path / "d.jsonl")
    assert (record["raw"] == body) == is_kept


@pytest.mark.parametrize(
    ("cost", "counted"), [(0, 0.25), (-0.5, 0.25), (1e12, 1e12 + 0.25), (1e12 + 1, 0.25)]
)
def test_a_cost_counts_up_to_a_bound(tmp_path, cost, counted):
    """A trillion dollars is the most that a draft may have cost."""
    (tmp_path / "d.jsonl").write_bytes(line() + forged(cost=cost))
    journal = Journal(tmp_path / "d.jsonl")
    assert journal.cost == counted
    journal.close()


def test_the_key_of_the_first_version_is_the_one_it_wrote():
    """Journals of that version hold this very key for this draft."""
    assert KEY.old_digest() == "b2970e3ac9af70622d59a90568b66ef2a4f6f93f63be356912313683359a71e4"


def test_a_place_that_cannot_be_is_named(tmp_path):
    """A file where a folder should be is said in a sentence."""
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError, match=r"cannot open .*choose another place"):
        Journal(tmp_path / "file" / "d.jsonl")


def test_another_kind_of_file_is_not_called_damaged(tmp_path):
    """Whoever names a wrong file is not told to restore it."""
    (tmp_path / "notes.txt").write_text("my only copy\n")
    with pytest.raises(BadInputError, match="is another kind of file and stays as it is"):
        Journal(tmp_path / "notes.txt")


class OddDisk:
    """A file on a disk with a peculiarity."""

    def __init__(self, file):
        self.file = file

    def __getattr__(self, name):
        """Be the file otherwise."""
        return getattr(self.file, name)


class BrokenDisk(OddDisk):
    """A file that can neither be synced nor be cut."""

    def fileno(self):
        """Fail as a disk does."""
        raise OSError(5, "Input/output error")

    def truncate(self, _):
        """Fail as a disk does."""
        raise OSError(5, "Input/output error")


def test_a_journal_that_cannot_be_cut_is_let_go(tmp_path):
    """Nothing more is written behind a failed write that is still there; opening it again mends it."""
    journal = Journal(tmp_path / "d.jsonl")
    journal.append([line()])
    journal._file = BrokenDisk(journal._file)
    with pytest.raises(BadInputError, match="Input/output error"):
        journal.append([line(replace(KEY, sample=1))[:120]])
    again = Journal(tmp_path / "d.jsonl")
    assert "120 bytes" in again.mended
    assert len(again) == 1
    again.close()


class SlowDisk(OddDisk):
    """A file that takes seven bytes at a time."""

    def write(self, data):
        """Take what there is room for, and say how much that was."""
        return self.file.write(data[:7])


def test_a_write_in_pieces_is_whole(tmp_path):
    """The operating system may take less than it was given; the rest follows, once."""
    journal = Journal(tmp_path / "d.jsonl")
    journal._file = SlowDisk(journal._file)
    journal.append([line(key) for key in keys(2)])
    journal.close()
    assert (tmp_path / "d.jsonl").read_bytes() == b"".join(line(key) for key in keys(2))


def test_a_key_that_could_not_be_read_again_is_told_before_it_is_paid_for():
    """What opening the journal would refuse is not bought."""
    assert can_be_kept(KEY)
    assert not can_be_kept(replace(KEY, sample=-1))
