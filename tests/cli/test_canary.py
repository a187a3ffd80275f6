"""No report text leaves by stdout, stderr, logs or error messages: a canary in every text field."""

import json
import logging
import traceback

import numpy as np
import pytest
from click.testing import CliRunner

from commands import bank_file
from tabon import TransitionBank
from tabon.cli import main
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders.hashing import HashingEncoder
from tabon.errors import TabonError
from tabon.method import transport
from tabon.text.records import read_transitions

CANARY = "Zqxwv"
SETTINGS = SimulationSettings(patients=60)


def marked(report):
    """Put the canary before, inside and after each text of a report."""
    return {
        key: f"{CANARY} {value} {CANARY} opacity is new. {CANARY}" if isinstance(value, str) else value
        for key, value in report.items()
    }


TRANSITIONS = [
    {**record, "prior": marked(record["prior"]), "current": marked(record["current"])}
    for record in simulate_transitions(SETTINGS, "train")
]
QUERIES = [
    {
        **record,
        "prior": marked(record["prior"]),
        "reference": marked(record["reference"]),
        "candidates": [{**marked(draft), "note": CANARY, CANARY: 1} for draft in record["candidates"]],
    }
    for record in simulate_queries(SETTINGS, "test")
]
GOOD = QUERIES[0]

MALFORMED = {
    "cut": json.dumps(GOOD)[:200],
    "bare text": f"FINDINGS: {CANARY}.",
    "quoted text": json.dumps(CANARY),
    "single quotes": f"{{'id': 1, 'prior': '{CANARY}'}}",
    "list": json.dumps([CANARY]),
    "text as key": json.dumps({f"FINDINGS: {CANARY}": 1}),
    "nearly a key": json.dumps({"id": 1, f"{CANARY} prior": 1}),
    "no candidates": json.dumps({"id": 1, "prior": CANARY, "draft": [CANARY]}),
    "candidates is text": json.dumps({**GOOD, "candidates": CANARY}),
    "candidates is an object": json.dumps({**GOOD, "candidates": {CANARY: CANARY}}),
    "draft is a list": json.dumps({**GOOD, "candidates": [[CANARY]]}),
    "draft has other keys": json.dumps({**GOOD, "candidates": [{CANARY: CANARY}]}),
    "findings is a list": json.dumps(
        {**GOOD, "prior": {"findings": [CANARY]}, "current": {"findings": [CANARY]}}
    ),
    "prior is nested": json.dumps({**GOOD, "prior": [[CANARY]]}),
    "text is an object": json.dumps({**GOOD, "prior": {"text": {CANARY: CANARY}}}),
    "id is a report": json.dumps({**GOOD, "id": {"findings": CANARY}}),
    "patient is a report": json.dumps({**GOOD, "patient": [CANARY]}),
    "too deep": json.dumps({**GOOD, "current": CANARY})[:-1] + f', "x": {"[" * 300}"{CANARY}"{"]" * 300}}}',
    "not a number": json.dumps({**GOOD, "current": CANARY, "x": [CANARY, float("nan")]}),
    "control character": json.dumps(GOOD).replace(CANARY, f"{CANARY}\t", 1),
    "latin-1": json.dumps({**GOOD, "prior": f"{CANARY} é"}, ensure_ascii=False).encode("latin-1"),
}


def json_lines(records):
    """Write records as JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def as_bytes(line):
    """Return a line as bytes."""
    return line if isinstance(line, bytes) else line.encode()


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Return a bank whose every sentence set holds the canary."""
    return bank_file(tmp_path_factory.mktemp("bank"), TRANSITIONS)


@pytest.fixture
def tabon(tmp_path, caplog):
    """Run commands in this process, and check that none of them shows the canary or logs it."""
    caplog.set_level(logging.DEBUG)

    def run(*arguments, stdin=b"", status):
        words = [*map(str, arguments), "--store", str(tmp_path / "store.sqlite")]
        if arguments[:2] in {("bank", "info"), ("bank", "verify")}:
            words = words[:-2]
        result = CliRunner().invoke(main, words, input=stdin)
        assert result.exit_code == status, result.output
        told = "".join(traceback.format_exception_only(result.exception)) if result.exception else ""
        for words in (result.stdout, result.stderr, told, caplog.text):
            assert CANARY.lower() not in words.lower()
        return result

    return run


def test_the_canary_is_really_there(bank):
    """The bank and the queries hold the canary, so its absence elsewhere says something."""
    assert CANARY.encode() in bank.read_bytes()
    assert all(json.dumps(query).count(CANARY) > 20 for query in QUERIES)


def test_commands_that_succeed_show_no_text(tabon, bank, tmp_path):
    """Build, info, verify and select print ids, counts and distances only."""
    out = tmp_path / "bank.tabon"
    tabon("bank", "build", "-", "--out", out, "--encoder", "hashing", stdin=json_lines(TRANSITIONS), status=0)
    tabon("bank", "info", out, status=0)
    tabon("bank", "verify", out, status=0)
    for options in ([], ["--aggregate", "knn"], ["--distance", "cost-ot"], ["--zero", "match"]):
        result = tabon("select", "-", "--bank", bank, *options, stdin=json_lines(QUERIES), status=0)
        assert len(result.stdout.splitlines()) == len(QUERIES)
    picks = tmp_path / "picks.jsonl"
    tabon("select", "-", "--bank", bank, "--out", picks, stdin=json_lines(QUERIES), status=0)
    assert CANARY not in picks.read_text()


def test_only_an_unknown_key_of_the_query_is_passed_through(bank):
    """What the caller put beside the contract comes back: that is the contract."""
    stdin = json_lines([{**GOOD, "comment": CANARY}])
    result = CliRunner().invoke(main, ["select", "-", "--bank", str(bank), "--no-store"], input=stdin)
    record = json.loads(result.stdout)
    assert record.pop("comment") == CANARY
    assert CANARY not in json.dumps(record)


def test_the_sentence_store_holds_no_text(tabon, tmp_path):
    """Keys of the store are hashes: the canary is in none of its files."""
    words = ["bank", "build", "-", "--out", tmp_path / "bank.tabon", "--encoder", "hashing"]
    tabon(*words, stdin=json_lines(TRANSITIONS), status=0)
    files = list(tmp_path.glob("store.sqlite*"))
    assert files
    assert all(CANARY.encode() not in path.read_bytes() for path in files)


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_line_is_never_quoted(name, tabon, bank, tmp_path):
    """Whatever is wrong with a line, the message has its number and no word of it."""
    line = as_bytes(MALFORMED[name])
    result = tabon("select", "-", "--bank", bank, stdin=line, status=1)
    assert result.stderr.startswith("line 1")
    build = ["bank", "build", "-", "--out", tmp_path / "bank.tabon", "--encoder", "hashing"]
    tabon(*build, stdin=json_lines(TRANSITIONS[:2]) + line, status=1)


ABSTENTIONS = {
    "empty prior": {"prior": ""},
    "no drafts": {"candidates": []},
    "all drafts empty": {"candidates": ["", {"findings": "", CANARY: CANARY}]},
    "nothing in common": {"prior": {"findings": CANARY}, "candidates": [{"impression": CANARY}]},
    "patient in bank": {"patient": TRANSITIONS[0]["patient"]},
}


@pytest.mark.parametrize("name", ABSTENTIONS)
def test_an_abstention_shows_no_text(name, tabon, bank):
    """A query that is not answered is named by its id alone."""
    tabon("select", "-", "--bank", bank, stdin=json_lines([{**GOOD, **ABSTENTIONS[name]}]), status=1)


def test_settings_that_are_refused_show_no_text(tabon, bank, tmp_path):
    """Errors before and after the queries are read are free of their text."""
    stdin = json_lines(QUERIES)
    for options in (
        ["-k", 0],
        ["--aggregate", "knn", "-k", 10**6],
        ["--distance", "x"],
        ["--encoder", "x"],
        ["--out", bank / "x"],
    ):
        tabon("select", "-", "--bank", bank, *options, stdin=stdin, status=1)
    text = tmp_path / "text"
    text.write_bytes(json_lines(TRANSITIONS))
    tabon("select", "-", "--bank", text, stdin=stdin, status=1)
    tabon("bank", "info", text, status=1)
    tabon("bank", "verify", text, status=1)
    tabon("bank", "build", text, "--out", text / "x", "--encoder", "hashing", status=1)
    twice = json_lines([*TRANSITIONS, TRANSITIONS[0]])
    tabon("bank", "build", "-", "--out", tmp_path / "b", "--encoder", "hashing", stdin=twice, status=1)


def test_a_damaged_bank_shows_no_text(tabon, bank, tmp_path):
    """A bank with one changed byte anywhere among its sentences is refused without quoting them."""
    data = bytearray(bank.read_bytes())
    data[data.index(CANARY.encode())] ^= 1
    (tmp_path / "bank.tabon").write_bytes(data)
    for words in (("bank", "info"), ("bank", "verify"), ("select", "-", "--bank")):
        tabon(*words, tmp_path / "bank.tabon", stdin=json_lines(QUERIES), status=1)


@pytest.mark.parametrize(
    "spoil", [lambda rows: rows * np.nan, lambda rows: rows[:, 1:], lambda rows: rows[1:]]
)
def test_an_encoder_that_fails_shows_no_text(spoil, tabon, bank, tmp_path, monkeypatch):
    """Nonsense from the encoder is reported by counts and shapes."""
    encode = HashingEncoder.encode
    monkeypatch.setattr(HashingEncoder, "encode", lambda self, texts: spoil(encode(self, texts)))
    result = tabon("select", "-", "--bank", bank, stdin=json_lines(QUERIES), status=1)
    assert result.stderr.startswith(f"query {GOOD['id']!r}: the encoder returned ")
    build = ["bank", "build", "-", "--out", tmp_path / "b", "--encoder", "hashing"]
    tabon(*build, stdin=json_lines(TRANSITIONS), status=1)


def test_a_solver_that_fails_shows_no_text(tabon, bank, monkeypatch):
    """A transport that does not converge is reported with the query's id and the set sizes."""
    loaded = TransitionBank.load(bank)
    for section in ("findings", "impression"):
        loaded.section(section, "cost-ot")
    monkeypatch.setattr(TransitionBank, "load", lambda _: loaded)
    monkeypatch.setattr(transport, "OPTIMAL", -1)
    result = tabon(
        "select", "-", "--bank", bank, "--distance", "cost-ot", stdin=json_lines(QUERIES), status=1
    )
    assert f"query {GOOD['id']!r}: optimal transport of " in result.stderr


@pytest.mark.parametrize("name", MALFORMED)
def test_an_error_of_the_python_interface_shows_no_text(name):
    """What a caller may log, the message and its causes, holds no word of a report."""
    with pytest.raises(TabonError) as caught:
        list(read_transitions([as_bytes(MALFORMED[name])], name="file"))
    assert CANARY not in "".join(traceback.format_exception(caught.value))
