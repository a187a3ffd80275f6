"""`tabon select`: one answer a query in the order of the file, and 0, 1 or 2."""

import json
import subprocess
import sysconfig
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from commands import assert_refused, bank_file, tabon
from tabon import Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders.hashing import HashingEncoder
from tabon.method.distances import DISTANCES
from tabon.method.nearest import AGGREGATES
from tabon.text.records import query_from_record, transition_from_record

SETTINGS = SimulationSettings(patients=120)
TRANSITIONS = list(simulate_transitions(SETTINGS, "train"))
QUERIES = list(simulate_queries(SETTINGS, "test"))
SCRIPT = Path(sysconfig.get_path("scripts")) / "tabon"
CONTRACT = {
    "id",
    "selected",
    "total_distances",
    "section_distances",
    "margin",
    "tied",
    "flags",
    "abstained",
    "signature",
}


def json_lines(records):
    """Write records as JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def answers(result):
    """Return the records on stdout."""
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Return a bank file."""
    return bank_file(tmp_path_factory.mktemp("bank"), TRANSITIONS)


@pytest.fixture
def queries(tmp_path):
    """Return a queries file."""
    path = tmp_path / "queries.jsonl"
    path.write_text(json_lines(QUERIES))
    return path


def test_each_query_gets_one_answer_in_order(queries, bank):
    """Stdout has one contract record a query, in the order of the file; stderr is silent."""
    result = tabon("select", queries, "--bank", bank)
    assert (result.exit_code, result.stderr) == (0, "")
    records = answers(result)
    assert [record["id"] for record in records] == [query["id"] for query in QUERIES]
    assert all(set(record) >= CONTRACT for record in records)
    assert all(len(record["total_distances"]) == len(QUERIES[0]["candidates"]) for record in records)


@pytest.mark.parametrize(("distance", "aggregate"), list(product(DISTANCES, AGGREGATES)))
def test_the_command_answers_as_the_python_interface_does(distance, aggregate, queries, bank):
    """The door adds no arithmetic: its records are those of `Selector.select_many`."""
    result = tabon(
        "select", queries, "--bank", bank, "--distance", distance, "--aggregate", aggregate, "-k", 3
    )
    selector = Selector(TransitionBank.load(bank), distance=distance, aggregate=aggregate, num_neighbours=3)
    parsed = [query_from_record(query) for query in QUERIES]
    expected = [
        {**query.facts, **selection.as_record(query.id)}
        for query, selection in zip(parsed, selector.select_many(parsed), strict=True)
    ]
    assert result.exit_code == 0
    assert answers(result) == json.loads(json.dumps(expected))


def test_standard_input_and_output_files_give_the_same_bytes(queries, bank, tmp_path):
    """A file or `-` in, stdout, `--out -` or `--out FILE`: the same bytes."""
    direct = tabon("select", queries, "--bank", bank)
    piped = tabon("select", "-", "--bank", bank, stdin=json_lines(QUERIES))
    dashed = tabon("select", queries, "--bank", bank, "--out", "-")
    written = tabon("select", queries, "--bank", bank, "--out", tmp_path / "new" / "picks.jsonl")
    assert direct.stdout_bytes == piped.stdout_bytes == dashed.stdout_bytes != b""
    assert (tmp_path / "new" / "picks.jsonl").read_bytes() == direct.stdout_bytes
    assert (written.exit_code, written.stdout, written.stderr) == (0, "", "")


def test_blank_lines_and_a_byte_order_mark_are_no_matter(queries, bank, tmp_path):
    """Blank lines, a BOM, CRLF and a missing last newline change nothing."""
    odd = tmp_path / "odd.jsonl"
    body = json_lines(QUERIES).rstrip("\n").replace("\n", "\r\n\r\n  \r\n")
    odd.write_bytes(b"\xef\xbb\xbf" + body.encode())
    expected = tabon("select", queries, "--bank", bank)
    assert tabon("select", odd, "--bank", bank).stdout_bytes == expected.stdout_bytes


def test_unknown_keys_pass_through_and_known_ones_do_not(bank):
    """What tabon does not know comes out as it went in; texts and the patient stay behind."""
    extra = {"site": "A", "nested": {"a": [1, None, {"b": 2.5}]}, "größe": "µ", "lone": "\ud800"}
    result = tabon("select", "-", "--bank", bank, stdin=json_lines([{**QUERIES[0], **extra}]))
    [record] = answers(result)
    assert result.exit_code == 0
    assert {key: record[key] for key in extra} == extra
    assert not {"prior", "candidates", "reference", "patient"} & set(record)


def test_an_unknown_key_cannot_overwrite_an_answer(bank):
    """A query that carries a key of the answer's contract gets tabon's value."""
    forged = {**QUERIES[0], "selected": 99, "flags": "none", "abstained": "no", "signature": "mine"}
    plain = answers(tabon("select", "-", "--bank", bank, stdin=json_lines(QUERIES[:1])))
    assert answers(tabon("select", "-", "--bank", bank, stdin=json_lines([forged]))) == plain


def test_a_patient_of_the_bank_is_refused_unless_allowed(bank):
    """The bank may not know the query's patient; --allow-bank-patients says otherwise."""
    known = {**QUERIES[0], "patient": TRANSITIONS[0]["patient"]}
    refused = tabon("select", "-", "--bank", bank, stdin=json_lines([known]))
    assert refused.exit_code == 1
    assert answers(refused)[0]["abstained"] == "patient-in-bank"
    assert f"query {known['id']!r}: " in refused.stderr
    assert "--allow-bank-patients" in refused.stderr
    allowed = tabon("select", "-", "--bank", bank, "--allow-bank-patients", stdin=json_lines([known]))
    assert (allowed.exit_code, allowed.stderr) == (0, "")
    assert answers(allowed)[0]["selected"] is not None


def test_a_patient_number_is_the_same_patient_as_its_digits(tmp_path):
    """Patient 7 of the bank is refused as a query's patient "7"."""
    path = tmp_path / "bank.tabon"
    own = ({**record, "patient": 7} for record in TRANSITIONS[:20])
    TransitionBank.build(map(transition_from_record, own), encoder="hashing").save(path)
    result = tabon("select", "-", "--bank", path, stdin=json_lines([{**QUERIES[0], "patient": "7"}]))
    assert answers(result)[0]["abstained"] == "patient-in-bank"


def two_thousand():
    """Return many small queries."""
    return [
        {
            **QUERIES[i % len(QUERIES)],
            "id": f"q{i}",
            "candidates": QUERIES[i % len(QUERIES)]["candidates"][:2],
        }
        for i in range(2000)
    ]


def test_failing_queries_in_a_file_of_thousands_are_named_and_the_others_answered(bank):
    """Of 2,000 queries, five bad ones are named on stderr; 1,995 are answered in order; exit 1."""
    records = two_thousand()
    lines = [json.dumps(record) for record in records]
    lines[17] = "{not json"
    lines[300] = json.dumps({**records[300], "candidates": "one"})
    lines[301] = json.dumps({**records[301], "id": "q5"})
    lines[1023] = json.dumps({**records[1023], "candidates": []})
    lines[1999] = json.dumps({**records[1999], "prior": {"findings": " ", "impression": "None."}})
    result = tabon("select", "-", "--bank", bank, stdin="\n".join(lines))
    assert result.exit_code == 1
    printed = answers(result)
    kept = [record["id"] for number, record in enumerate(records) if number not in {17, 300, 301}]
    assert [record["id"] for record in printed] == kept
    unanswered = [record["id"] for record in printed if record["selected"] is None]
    assert unanswered == ["q1023", "q1999"]
    *named, last = result.stderr.splitlines()
    assert [line.partition(": ")[0] for line in named] == [
        "line 18",
        "line 301, query 'q300'",
        "line 302, query 'q5'",
        "query 'q1023'",
        "query 'q1999'",
    ]
    assert last == "Error: 5 of the queries in standard input were not answered; see the lines above"


def test_the_others_are_answered_as_if_the_failing_query_were_not_there(bank):
    """A bad query in the batch changes no bit of its neighbours' answers."""
    whole = tabon("select", "-", "--bank", bank, stdin=json_lines(QUERIES))
    spoiled = [*QUERIES[:2], {**QUERIES[0], "id": "bad", "candidates": [""]}, {"id": 3}, *QUERIES[2:]]
    result = tabon("select", "-", "--bank", bank, stdin=json_lines(spoiled))
    assert [record for record in answers(result) if record["id"] != "bad"] == answers(whole)


def test_an_encoder_that_fails_on_one_query_does_not_stop_the_others(bank, monkeypatch):
    """NaN for one sentence costs that query its answer, by name, and no other query anything."""
    encode = HashingEncoder.encode

    def spoiled(self, sentences):
        rows = encode(self, sentences)
        rows[["unspeakable" in sentence for sentence in sentences]] = np.nan
        return rows

    bad = {**QUERIES[1], "candidates": ["FINDINGS: An unspeakable opacity. IMPRESSION: Opacity."]}
    expected = answers(tabon("select", "-", "--bank", bank, stdin=json_lines(QUERIES)))
    monkeypatch.setattr(HashingEncoder, "encode", spoiled)
    result = tabon("select", "-", "--bank", bank, stdin=json_lines([QUERIES[0], bad, *QUERIES[2:]]))
    assert result.exit_code == 1
    assert answers(result) == [expected[0], *expected[2:]]
    assert result.stderr.startswith(f"query {bad['id']!r}: the encoder returned NaN")
    assert "unspeakable" not in result.output


def test_a_failed_run_leaves_the_old_output_untouched(bank, tmp_path):
    """When nothing can be answered at all, the file at --out keeps its bytes."""
    out = tmp_path / "picks.jsonl"
    out.write_text("precious\n")
    for arguments in (["--bank", bank], ["--bank", bank, "-k", 0], ["--bank", tmp_path / "none"]):
        assert_refused(tabon("select", "-", *arguments, "--out", out, stdin="\n"))
        assert out.read_text() == "precious\n"
        assert [path.name for path in tmp_path.iterdir()] == ["picks.jsonl"]


def test_answers_are_written_in_one_step_even_when_some_queries_fail(bank, tmp_path):
    """With --out the answered queries are in the file, though the exit status is 1."""
    out = tmp_path / "picks.jsonl"
    result = tabon("select", "-", "--bank", bank, "--out", out, stdin=json_lines([*QUERIES, {"id": "x"}]))
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(out.read_text().splitlines()) == len(QUERIES)


def test_the_output_may_be_the_input(queries, bank):
    """`--out` may name the queries file itself: it is read before it is replaced."""
    assert tabon("select", queries, "--bank", bank, "--out", queries).exit_code == 0
    assert len(queries.read_text().splitlines()) == len(QUERIES)


def test_a_bank_of_an_object_encoder_asks_for_that_encoder(tmp_path):
    """Where no name loads the bank's encoder, the sentence says to pass it; another is refused."""

    class Mine:
        def encode(self, sentences):
            return HashingEncoder().encode(sentences)

    path = tmp_path / "bank.tabon"
    TransitionBank.build(map(transition_from_record, TRANSITIONS[:20]), encoder=Mine()).save(path)
    unnamed = tabon("select", "-", "--bank", path, stdin=json_lines(QUERIES))
    assert_refused(unnamed)
    assert "--encoder" in unnamed.stderr
    other = tabon("select", "-", "--bank", path, "--encoder", "hashing", stdin=json_lines(QUERIES))
    assert_refused(other)
    assert "the bank was built with encoder " in other.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-"],
        ["no-such-file", "--bank", "b"],
        ["-", "--bank", "b", "-k", "many"],
        ["-", "--bank", "b", "-k", "1.5"],
        ["-", "--bank", "b", "--selector-of-doom"],
        ["-", "more", "--bank", "b"],
        ["FOLDER", "--bank", "b"],
        ["-", "--bank", "b", "--out", "FOLDER"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_status_2(arguments, tmp_path):
    """Arguments that the command does not take are answered with the usage."""
    result = tabon("select", *(tmp_path if word == "FOLDER" else word for word in arguments), stdin="")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr


def test_commands_chain_through_pipes(bank):
    """The installed script answers a pipe; another process reads its stdout line by line."""
    command = [SCRIPT, "select", "-", "--bank", bank, "--no-store"]
    done = subprocess.run(
        command, input=json_lines(QUERIES), capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [query["id"] for query in QUERIES]


def test_a_reader_that_leaves_ends_the_command_without_a_traceback(bank, tmp_path):
    """`tabon select | head -1` is quiet."""
    path = tmp_path / "many.jsonl"
    path.write_text(json_lines(two_thousand()[:600]))
    command = [SCRIPT, "select", path, "--bank", bank, "--no-store"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert json.loads(process.stdout.readline())["id"] == "q0"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(120) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence(bank, queries):
    """Where stdout cannot be written, the command says so and exits with 1."""
    command = [SCRIPT, "select", queries, "--bank", bank, "--no-store"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: reading or writing failed (No space left on device); ")
    assert done.stderr.count("\n") == 1
