"""`tabon study` and `tabon serve --study`: what they write and print, what they refuse in a sentence."""

import json
import logging
from pathlib import Path
from zlib import crc32

import pytest

from commands import assert_refused, tabon
from study_cases import answer_to, body_of, fill_study, records, write_study
from tabon.study.answers import AnswerJournal, read_answers
from tabon.study.folder import read_key, read_study, token_digest

CANARY = "Quokka"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with queries and the picks of two selectors, whose texts hold the canary."""
    monkeypatch.chdir(tmp_path)
    found = records(12)
    for record in found:
        record["prior"]["findings"] += f" {CANARY}"
        record["candidates"][0]["findings"] += f" {CANARY}"
    (tmp_path / "queries.jsonl").write_text("\n".join(json.dumps(record) for record in found) + "\n\n")
    for number, name in enumerate(("one", "two")):
        picks = [
            {"id": record["id"], "selected": number, "signature": f"selector:{name}"} for record in found
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(pick) + "\n" for pick in picks))
    return tmp_path


INIT = (
    "study init queries.jsonl --selections one=one.jsonl --selections two=two.jsonl --readers a,b --out study"
)


def init(more="--cases 8", command=INIT):
    """Make a study."""
    return tabon(*command.split(), *more.split())


def made(more="--cases 8"):
    """Make a study and return it with what was printed."""
    done = init(more)
    assert done.exit_code == 0, done.output
    return read_study_here(), done.stdout


def read_study_here():
    """Read the study of the folder `study`."""
    return read_study(Path("study"))


def test_init_prints_a_token_for_each_reader_once(place):
    """Name and token, one line each; the folder holds only their hashes."""
    study, printed = made()
    tokens = dict(line.split("\t") for line in printed.splitlines())
    assert {name: token_digest(token) for name, token in tokens.items()} == {
        reader.name: reader.token_sha256 for reader in study.readers
    }
    assert study.cases == 8
    assert study.readers[0].readings == 9
    assert (place / "study/queries.jsonl").read_text().count("\n") == 8
    lines = (place / "queries.jsonl").read_text().splitlines()
    assert set((place / "study/queries.jsonl").read_text().splitlines()) < set(lines)


def test_tokens_can_go_to_a_file_of_their_own(place):
    """For the owner alone, printed nowhere; a file that is there is not written over."""
    _, printed = made("--cases 8 --tokens tokens.tsv")
    assert printed == ""
    assert (place / "tokens.tsv").stat().st_mode & 0o777 == 0o600
    assert [line.split("\t")[0] for line in (place / "tokens.tsv").read_text().splitlines()] == ["a", "b"]
    assert_refused(init("--cases 8 --tokens tokens.tsv --out other"), "tokens.tsv is there already")


def test_the_seed_is_drawn_unless_it_is_given(place):
    """Two studies differ, and the key has the seed; with one seed they are the same but for the tokens."""
    keys = []
    for number, more in enumerate(("", "", "--seed 5", "--seed 5")):
        done = init(f"--cases 8 {more} --out s{number}")
        assert done.exit_code == 0, done.output
        keys.append(read_key(place / f"s{number}", read_study(place / f"s{number}")))
    assert keys[0].seed != keys[1].seed
    assert keys[0].readings != keys[1].readings
    assert keys[2] == keys[3]
    assert keys[2].seed == 5
    first, second = ((place / f"s{number}/study.json").read_text() for number in (2, 3))
    assert first != second


def test_a_study_s_results_as_tables_json_and_files(place):
    """Tables on standard output, or JSON; numbers, tables, figures, comments and a page in a folder."""
    made()
    fill_study(place / "study", comment=CANARY)
    printed = tabon("study", "results", "study", "--format", "text").stdout
    assert "one over two" in printed
    assert "Krippendorff's alpha" in printed
    found = json.loads(tabon("study", "results", "study", "--json").stdout)
    assert found["format"] == "tabon-study-results/1"
    assert len(found["preferences"]) == 1
    done = tabon("study", "results", "study", "--out", "found", "--figures", "svg,pdf")
    assert done.exit_code == 0, done.output
    names = {path.relative_to(place / "found").as_posix() for path in (place / "found").rglob("*.*")}
    assert {"results.json", "report.html", "comments.csv", "tables/preference.tex"} <= names
    assert {"figures/preferences.svg", "figures/time.pdf"} <= names
    assert json.loads((place / "found/results.json").read_text()) == found
    assert CANARY in (place / "found/comments.csv").read_text()


def test_ratings_are_scores_for_evaluate(place):
    """What readers say of each draft is a score beside others, on the study's own queries."""
    command = "study init queries.jsonl --readers a,b --design rating --cases 5 --out study"
    assert init("", command).exit_code == 0
    fill_study(place / "study")
    assert tabon("study", "results", "study", "--out", "found").exit_code == 0
    words = "evaluate study/queries.jsonl --selections one.jsonl --scores found/scores.jsonl --metrics rouge"
    done = tabon(
        *words.split(), "--resamples", 20, "--show", "reader-rating", "--no-measurements", "--out", "e.json"
    )
    assert done.exit_code == 0, done.output
    scores = json.loads((place / "e.json").read_text())["scores"]
    assert {"reader-rating", "reader-significant-errors"} <= scores.keys()


def test_a_new_token_takes_the_place_of_the_old(place):
    """For a reader who lost it; the other reader's stays."""
    before, _ = made()
    done = tabon("study", "token", "study", "--reader", "a")
    after = read_study_here()
    assert (
        after.readers[0].token_sha256 == token_digest(done.stdout.strip()) != before.readers[0].token_sha256
    )
    assert after.readers[1] == before.readers[1]
    assert place


REFUSED = [
    (
        "--cases 13",
        "--cases is 13, but there are only 12 queries in which the picks differ; give fewer cases",
    ),
    ("--cases 0", "--cases is 0; give 1 to"),
    ("--cases 5 --repeat 70%", "--repeat is 70%; give a share from 0% to 50%"),
    ("--cases 5 --repeat often", "--repeat 'often' is no share; write one like 10% or 0.1"),
    ("--cases 5 --readers a,,a", "names nobody, or someone twice"),
    ("--cases 5 --readers a/b", "'a/b' is no name of a reader"),
    ("--cases 5 --selections one=two.jsonl", "two --selections have one name"),
    ("--cases 5 --images nowhere", "nowhere is not a folder"),
    ("--cases 5 --seed -1", "--seed is -1; give a whole number"),
]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("more", "sentence"), REFUSED)
def test_init_refuses_in_one_sentence(more, sentence):
    """And writes nothing."""
    assert_refused(init(more), sentence)
    assert not Path("study").exists()


def test_init_refuses_what_does_not_fit_the_design(place):
    """An unknown design with the one that was meant; one selector; a missing reference."""
    done = init("--cases 5 --design pairwize")
    assert done.exit_code == 2
    assert "Did you mean 'pairwise'?" in done.stderr
    one = "study init queries.jsonl --selections one=one.jsonl --readers a --out study --cases 5"
    assert_refused(init("", one), "a pairwise study compares selectors; give --selections NAME=FILE for two")
    found = [{**record, "reference": None} for record in records(12)]
    (place / "queries.jsonl").write_text("".join(json.dumps(record) + "\n" for record in found))
    assert_refused(init("--cases 5 --show-reference"), "of the 5 cases have no reference to show; leave out")


def test_a_folder_with_a_study_is_never_written_over(place):
    """With the number of its answers, which would be lost."""
    made()
    assert_refused(init("--cases 5"), "study holds a study already; give another --out")
    fill_study(place / "study")
    assert_refused(init("--cases 5"), "study holds a study already with 18 answers; give another --out")


@pytest.mark.usefixtures("place")
def test_other_commands_refuse_in_one_sentence():
    """No study, no answers yet, an unknown reader, figures without a place."""
    assert_refused(tabon("study", "results", "."), "holds no study; make one with `tabon study init`")
    made()
    assert_refused(tabon("study", "results", "study"), "study holds no answers yet; readers give them by")
    assert_refused(tabon("study", "token", "study", "--reader", "c"), "unknown reader 'c'. Known: a, b")
    assert_refused(
        tabon("study", "export", "study", "--reader", "aa", "--html", "x.html"), "Did you mean 'a'"
    )
    assert_refused(
        tabon("study", "results", "study", "--figures", "svg"), "--figures does not count without --out"
    )


@pytest.mark.usefixtures("place")
def test_serve_shows_a_study_and_nothing_else():
    """An option of another service is refused; so is a service of nothing."""
    made()
    for words in (
        "--bank b.tabon",
        "--queries queries.jsonl",
        "--selector longest",
        "--token-file queries.jsonl",
    ):
        done = tabon("serve", "--study", "study", *words.split())
        if "token" not in words:
            assert_refused(
                done, f"{words.split()[0]} does not go with --study, which shows the study and nothing"
            )
        assert done.exit_code == 1
    assert_refused(tabon("serve", "--study", "."), "holds no study; make one with")
    done = tabon("serve")
    assert (done.exit_code, "Missing option '--bank'" in done.stderr) == (2, True)


def saved(place, given, **facts):
    """Write the file that the page without a network hands out."""
    study = read_study(place / "study")
    record = {"format": "tabon-study-answers/1", "study": study.study, "reader": "ann"}
    record |= {"answers": json.dumps([body_of(one) for one in given])} | facts
    whole = f"{record['study']} {record['reader']} {record['answers']}"
    record = {**record, "crc": crc32(whole.encode()), **{key: facts[key] for key in facts if key == "crc"}}
    (place / "answers.json").write_text(json.dumps(record))
    return tabon("study", "collect", place / "study", place / "answers.json")


@pytest.fixture
def collected(tmp_path):
    """A study whose answers come as a file, and the ids of Ann's readings."""
    study, _ = write_study(tmp_path / "study", cases=4, repeat=0)
    return tmp_path, [one.id for one in read_key(tmp_path / "study", study).readings["ann"]]


def test_collect_takes_a_file_once(collected):
    """Amended answers in their order; the same file again, or a longer one, adds only what is new."""
    place, ids = collected
    first = [answer_to(one, (1, 2), comment="ä") for one in ids[:3]]
    first.append(answer_to(ids[0], (2, 1), after=first[0].key))
    assert saved(place, first).stderr == "ann: 4 answers taken in, 0 were here already\n"
    longer = [*first, answer_to(ids[3], (1, 1))]
    assert saved(place, longer).stderr == "ann: 1 answers taken in, 4 were here already\n"
    last = read_answers(place / "study", read_study(place / "study")).last("ann")
    assert [last[one].values for one in ids] == [(2, 1), (1, 2), (1, 2), (1, 1)]


def test_collect_asks_before_it_goes_over_newer_answers(collected):
    """All or nothing; with --replace the file's answers amend what is here; taken twice they do so once."""
    place, ids = collected
    study = read_study(place / "study")
    journal = AnswerJournal(place / "study", study)
    journal.keep("ann", answer_to(ids[1], (1, 1)))
    journal.close()
    theirs = [answer_to(one, (2, 1)) for one in ids[:2]]
    refused = saved(place, theirs)
    assert_refused(refused, "1 of the answers in")
    assert "give --replace for those of the file" in refused.stderr
    assert len(read_answers(place / "study", study).last("ann")) == 1
    for expected in ("2 answers taken in, 0 were", "0 answers taken in, 2 were"):
        done = tabon("study", "collect", place / "study", place / "answers.json", "--replace")
        assert expected in done.stderr
    last = read_answers(place / "study", study).last("ann")
    assert [last[one].values for one in ids[:2]] == [(2, 1), (2, 1)]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"study": "0" * 16}, "holds the answers of another study; give the folder of that one"),
        ({"reader": "carl"}, "unknown reader 'carl'"),
        ({"crc": 1}, "was damaged on its way; ask the reader to save it again"),
        ({"answers": "[1]"}, "holds something else than answers to these cases; ask the reader"),
        ({"answers": CANARY}, "holds something else than answers"),
        ({"reader": "bob"}, "holds something else than answers"),
        ({"format": "x"}, "is of another format than tabon-study-answers/1; ask the reader"),
        ({"more": CANARY}, "has the unknown key more"),
    ],
)
def test_collect_refuses_a_file_that_is_not_whole(collected, facts, sentence):
    """Another study, reader, checksum, content: one sentence, nothing taken in."""
    place, ids = collected
    assert_refused(saved(place, [answer_to(ids[0], (1, 2), comment=CANARY)], **facts), sentence)
    assert not (place / "study/answers.jsonl").exists() or not (place / "study/answers.jsonl").read_bytes()


def test_a_file_that_is_no_file_of_answers_is_refused(collected):
    """No JSON, a list, bytes: one sentence."""
    place, _ = collected
    for data in (b"", b"[]", b"\xff\xfe", b'{"format": "tabon-study-answers/1"}', b"[" * 100_000):
        (place / "answers.json").write_bytes(data)
        assert_refused(tabon("study", "collect", place / "study", place / "answers.json"), "answers.json is ")


def test_a_running_service_keeps_the_journal(collected):
    """Answers cannot be taken in while a service writes there: a sentence says so."""
    place, ids = collected
    journal = AnswerJournal(place / "study", read_study(place / "study"))
    assert_refused(saved(place, [answer_to(ids[0], (1, 2))]), "is being written by another process")
    journal.close()


def test_no_command_shows_text(place, caplog):
    """Neither reports nor comments are on standard output, standard error or in the log."""
    caplog.set_level(logging.DEBUG)
    said = init("--cases 6 --show-reference").output
    fill_study(place / "study", comment=CANARY)
    for words in (
        "results study", "results study --json", "results study --out found", "token study --reader a",
        "export study --reader a --html a.html", "collect study queries.jsonl", "collect study one.jsonl",
    ):  # fmt: skip
        said += tabon("study", *words.split()).output
    assert CANARY in (place / "a.html").read_text()
    assert CANARY not in said + caplog.text
