"""The journal of answers: on disk before it counts, none twice, none lost, one history for each reading."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets import budget, seeded
from hostile import damaged
from study_cases import answer_to, fill_study, write_study
from tabon._internal.record_file import record_line
from tabon.errors import BadInputError
from tabon.study.answers import AnswerJournal, read_answers
from tabon.study.design import ErrorMark, Reading, check_answer
from tabon.study.folder import read_key, read_study
from tabon.text.reports import Report


@pytest.fixture
def study(tmp_path):
    """A study of two readers."""
    return write_study(tmp_path / "study", cases=4)[0]


@pytest.fixture
def folder(tmp_path):
    """Its folder."""
    return tmp_path / "study"


def readings(folder, reader="ann"):
    """Return the ids of a reader's readings."""
    return [one.id for one in read_key(folder, read_study(folder)).readings[reader]]


def test_an_answer_sent_twice_is_kept_once(study, folder):
    """The same key is acknowledged again and written once; with another content it is refused."""
    first = answer_to(readings(folder)[0], (1, 2))
    journal = AnswerJournal(folder, study)
    assert [journal.keep("ann", first) for _ in range(3)] == ["kept", "known", "known"]
    assert journal.keep("ann", replace(first, values=(2, 1))) == "superseded"
    assert journal.keep("bob", first) == "superseded"
    journal.close()
    assert (folder / "answers.jsonl").read_bytes().count(b"\n") == 1


def test_two_windows_have_one_history(study, folder):
    """The second of two first answers is refused; one that amends the newest is kept and counts."""
    [place, *_] = readings(folder)
    one, other = (answer_to(place, values) for values in ((1, 2), (2, 1)))
    journal = AnswerJournal(folder, study)
    assert [journal.keep("ann", each) for each in (one, other)] == ["kept", "superseded"]
    amended = replace(other, after=one.key)
    assert journal.keep("ann", amended) == "kept"
    assert journal.keep("ann", answer_to(place, (1, 1), after=one.key)) == "superseded"
    journal.close()
    given_answers = read_answers(folder, study)
    assert given_answers.last("ann")[place].answer() == amended
    assert given_answers.last("bob") == {}
    assert given_answers.amended == {"ann": 1}


def test_a_journal_read_while_it_is_written(study, folder):
    """Results look at a journal that the service has open; a second writer is refused in a sentence."""
    journal = AnswerJournal(folder, study)
    journal.keep("ann", answer_to(readings(folder)[0], (1, 2), comment="ünder \u2028 <b>"))
    assert len(read_answers(folder, study).last("ann")) == 1
    with pytest.raises(BadInputError, match="is being written by another process; wait for it to end"):
        AnswerJournal(folder, study)
    journal.close()


@given(share=st.none() | st.floats(0, 1))
def test_a_cut_end_loses_only_what_was_never_acknowledged(tmp_path_factory, share):
    """Cut anywhere behind its first bytes, the journal opens with every whole line, and goes on."""
    folder = tmp_path_factory.mktemp("cut") / "study"
    study, _ = write_study(folder, cases=3, repeat=0)
    fill_study(folder)
    path = folder / "answers.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    whole = b"".join(lines)
    cut = 0 if share is None else 60 + round(share * (len(whole) - 60))
    path.write_bytes(whole[:cut])
    ends = [sum(map(len, lines[: n + 1])) - 1 for n in range(len(lines))]
    journal = AnswerJournal(folder, study)
    there = [key for reader in ("ann", "bob") for key in journal.given.last(reader)]
    assert len(there) == sum(end <= cut for end in ends)
    missing = [one for one in readings(folder) if one not in there]
    assert [journal.keep("ann", answer_to(one, (1, 2))) for one in missing] == ["kept"] * len(missing)
    journal.close()
    assert len(read_answers(folder, study).last("ann")) == 3


def test_a_damaged_journal_is_refused_without_its_text(tmp_path):
    """Any damage: a sentence without a word of a comment, or every whole answer; no traceback."""
    folder = tmp_path / "study"
    study, _ = write_study(folder, cases=3)
    fill_study(folder, comment="Quokka")
    path, rng = folder / "answers.jsonl", seeded("damaged answers")
    whole = path.read_bytes()
    for _ in range(budget(150, 5_000)):
        path.write_bytes(damaged(rng, whole))
        try:
            read_answers(folder, study)
            AnswerJournal(folder, study).close()
        except BadInputError as error:
            assert "Quokka" not in str(error)  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017


def test_the_journal_of_another_study_is_refused(tmp_path):
    """By name, whether it is read or written."""
    one, other = (write_study(tmp_path / name, cases=3, seed=seed)[0] for name, seed in (("a", 1), ("b", 2)))
    fill_study(tmp_path / "a")
    assert one.study != other.study
    (tmp_path / "b/answers.jsonl").write_bytes((tmp_path / "a/answers.jsonl").read_bytes())
    for opened in (read_answers, AnswerJournal):
        with pytest.raises(BadInputError, match="holds the answers of another study; put the journal"):
            opened(tmp_path / "b", other)


@pytest.mark.parametrize(
    "change",
    [
        {"after": "0" * 32},
        {"values": ["1", 2]},
        {"values": 3},
        {"key": None},
        {"errors": [{"draft": 0, "kind": "typo", "significant": True}]},
        {"seconds": "long"},
        {"more": 1},
    ],
)
def test_a_line_that_tabon_did_not_write_is_refused(study, folder, change):
    """A whole line with a right checksum whose fields do not fit is named by its number."""
    fill_study(folder)
    path = folder / "answers.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    record = {key: value for key, value in json.loads(first).items() if key != "crc"} | change
    path.write_bytes(b"".join([record_line(record), *others]))
    with pytest.raises(BadInputError, match="line 1 is no record that tabon writes here"):
        read_answers(folder, study)


READING = Reading(id="r", priors=(), drafts=(Report("a"), Report("b"), Report("c")))


@pytest.mark.parametrize(
    ("design", "facts", "sentence"),
    [
        ("ranking", {"key": "x"}, "not 32 hexadecimal digits"),
        ("ranking", {"values": (1, 2)}, "has 2 values for 3 drafts; give each one"),
        ("ranking", {"values": (1, 3, 3)}, "ranks that leave one out; count from 1"),
        ("ranking", {"values": (0, 1, 2)}, "ranks that leave one out"),
        ("rating", {"values": (1, 5, 6)}, "no ratings of 1 to 5"),
        ("ranking", {"errors": (ErrorMark(draft=3, kind="side", significant=True),)}, "of no draft that was"),
        ("ranking", {"errors": (ErrorMark(draft=0, kind="side", significant=True),) * 2}, "is there twice"),
        ("ranking", {"comment": "x" * 4001}, "longer than 4,000 characters"),
        ("ranking", {"seconds": -1}, "the time is out of range"),
    ],
)
def test_an_answer_must_fit_what_was_shown(design, facts, sentence):
    """Each in one sentence, which repeats nothing of it."""
    fitting = answer_to("r", (2, 1, 1))
    check_answer(fitting, design, READING)
    with pytest.raises(BadInputError, match=sentence):
        check_answer(replace(fitting, **facts), design, READING)
