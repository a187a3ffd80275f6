"""`tabon serve` takes its options from variables and from a file too, and logs lines or JSON."""

import json
import signal
import tomllib
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.core import ParameterSource

from commands import assert_refused, tabon
from service_server import PATIENCE, bank, get, post, program, queries
from tabon.cli.serve import serve_command
from tabon.service import NOTICE

COMMAND = ["-c", "from tabon.cli import main; main()", "serve"]
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "service.md"
LOOSE = {"a": 1, "prior": "FINDINGS: Clear lungs.", "candidates": ["FINDINGS: Edema."] * 3}


@pytest.fixture
def bank_path(tmp_path):
    """Write the small bank."""
    bank().save(tmp_path / "bank.tabon")
    return tmp_path / "bank.tabon"


@pytest.fixture
def config(tmp_path):
    """Return a function that writes a settings file and returns its path."""

    def write(text):
        path = tmp_path / "serve.toml"
        path.write_text(text)
        return path

    return write


def options(*words):
    """Parse the command line, variables and file as `tabon serve` does, and return all options."""
    with serve_command.make_context("serve", ["--bank", "x", *map(str, words)]) as context:
        return context.params


def test_variables_alone_start_a_service(bank_path, monkeypatch, tmp_path):
    """A path, a number, a flag and an option that may be repeated, as a container would set them."""
    for name, value in {
        "BANK": str(bank_path),
        "PORT": "0",
        "MAX_DRAFTS": "2",
        "NO_BANK_TEXT": "yes",
        "ALLOW_HOST": "one.example two.example",
    }.items():
        monkeypatch.setenv(f"TABON_SERVE_{name}", value)
    with program(COMMAND, tmp_path) as running:
        hosts = {name: get(f"{running.address}/healthz", headers={"host": name}).status_code
                 for name in ("one.example", "two.example", "three.example")}  # fmt: skip
        assert hosts == {"one.example": 200, "two.example": 200, "three.example": 403}
        assert post(f"{running.address}/v1/select", json=LOOSE).status_code == 422
        fewer = {**queries()[0], "candidates": queries()[0]["candidates"][:2]}
        shown = post(f"{running.address}/v1/explain", json=fewer).json()
        near = [one for part in shown["sections"].values() for one in part["nearest"]]
        assert near
        assert not any(one["prior"] or one["current"] for one in near)
        running.process.send_signal(signal.SIGTERM)
        running.process.wait(PATIENCE)


def test_a_file_alone_starts_a_service(bank_path, config, tmp_path):
    """And a token file in it counts."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    path = config(f'bank = "{bank_path}"\nport = 0\ntoken-file = "{token}"\nlog-format = "json"\n')
    with program([*COMMAND, "--config", str(path)], tmp_path) as running:
        assert get(f"{running.address}/v1/bank").status_code == 401
        bearer = {"authorization": "Bearer 0123456789abcdef"}
        assert get(f"{running.address}/v1/bank", headers=bearer).status_code == 200


def test_the_command_line_beats_a_variable_beats_the_file_beats_the_default(config, monkeypatch):
    """Each is taken where nothing before it says anything."""
    path = config("port = 1\nmax-drafts = 1\nqueue = 1\nallow-host = ['a', 'b']\nno-bank-text = true\n")
    monkeypatch.setenv("TABON_SERVE_CONFIG", str(path))
    monkeypatch.setenv("TABON_SERVE_PORT", "2")
    monkeypatch.setenv("TABON_SERVE_MAX_DRAFTS", "2")
    monkeypatch.setenv("TABON_SERVE_BATCH_SIZE", "")  # as good as none
    found = options("--port", "3")
    assert (found["port"], found["max_drafts"], found["queue"], found["size"]) == (3, 2, 1, 64)
    assert (found["allowed_hosts"], found["no_bank_text"]) == (("a", "b"), True)
    monkeypatch.setenv("TABON_SERVE_NO_BANK_TEXT", "0")
    monkeypatch.setenv("TABON_SERVE_ALLOW_HOST", "c d")
    found = options("--allow-host", "e")
    assert (found["allowed_hosts"], found["no_bank_text"]) == (("e",), False)
    assert options()["allowed_hosts"] == ("c", "d")


@pytest.mark.parametrize("name", serve_command.options)
def test_every_option_has_its_variable(name, monkeypatch, tmp_path):
    """The variable is the option in capitals, and is heard."""
    option = serve_command.options[name]
    file = tmp_path / "file"
    file.touch()
    given = {"queries": str(file), "log-format": "json"}.get(name, "1")
    monkeypatch.setenv(f"TABON_SERVE_{name.upper().replace('-', '_')}", given)
    words = [] if name == "bank" else ["--bank", "x"]
    with serve_command.make_context("serve", words) as context:
        assert context.get_parameter_source(option.name) == ParameterSource.ENVIRONMENT
        assert context.params[option.name] is not None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prot = 1", "has the unknown key prot: did you mean 'port'?"),
        ("max_body = 1", "has the unknown key max_body: did you mean 'max-body'?"),
        ("config = 'x'", "has the unknown key config"),
        ("[serve]\nport = 1", "has the unknown key serve"),
        ("port = [1]", "port is neither a text nor a number"),
        ("port = true", "port is neither a text nor a number"),
        ("allow-host = [['a']]", "allow-host is neither a text nor a number; write one as behind the option"),
        ("prune = 'yes'", "prune is a flag; write true or false"),
        ("port = ", "is not TOML (Invalid value"),
        ("a = " + "[" * 100_000, "is not TOML that can be read"),
    ],
)
def test_a_file_that_sets_nothing_is_refused(config, text, sentence):
    """One sentence that names the file and the key."""
    path = config(text)
    done = tabon("serve", "--bank", "x", "--config", path)
    assert_refused(done, sentence)
    assert str(path) in done.stderr


def test_the_file_of_the_guide_is_taken(config):
    """Its keys are options, and its values fit."""
    text = GUIDE.read_text().partition("```toml\n")[2].partition("```")[0]
    path = config(text)
    with serve_command.make_context("serve", ["--config", str(path)]) as context:
        sources = [
            context.get_parameter_source(serve_command.options[key].name) for key in tomllib.loads(text)
        ]
    assert set(sources) == {ParameterSource.DEFAULT_MAP}


def test_a_file_that_is_not_there_is_refused(tmp_path):
    """With its name."""
    assert_refused(tabon("serve", "--bank", "x", "--config", tmp_path / "no"), "cannot be read (No such file")


@pytest.mark.parametrize("where", ["variable", "file"])
def test_a_value_that_does_not_fit_is_wrong_usage(where, config, monkeypatch):
    """As it would be on the command line."""
    path = config('port = "many"' if where == "file" else "")
    if where == "variable":
        monkeypatch.setenv("TABON_SERVE_PORT", "many")
    done = tabon("serve", "--bank", "x", "--config", path)
    assert done.exit_code == 2
    assert "Invalid value for '--port'" in done.stderr


@pytest.mark.parametrize(
    ("variable", "hint"),
    [("TABON_SERVE_PROT", "did you mean TABON_SERVE_PORT?"), ("TABON_SERVE_Q", "see --help")],
)
def test_a_variable_that_sets_nothing_is_refused(variable, hint, monkeypatch):
    """One sentence; other commands and --help do not mind."""
    monkeypatch.setenv(variable, "1")
    done = tabon("serve", "--bank", "x")
    assert_refused(done, f"the variable {variable} names no option of tabon serve; {hint}")
    assert tabon("serve", "--help").exit_code == 0
    assert tabon("select", "--help").exit_code == 0


def test_a_score_that_the_file_names_must_be_there(bank_path, config, tmp_path):
    """Only the default may be missing."""
    file = tmp_path / "queries.jsonl"
    file.write_text(json.dumps({**queries()[0], "reference": "FINDINGS: Clear lungs."}) + "\n")
    path = config('score = "no-such-score"\nport = 0\n')
    done = tabon("serve", "--bank", bank_path, "--queries", file, "--config", path)
    assert done.exit_code == 1
    assert "no-such-score" in done.stderr


def test_json_logs_are_one_object_a_line_without_text(bank_path, tmp_path):
    """From the notice to the end, with the id that the client got; nothing of what was sent."""
    file = tmp_path / "queries.jsonl"
    file.write_text(json.dumps(queries()[0]) + "\n")
    words = ["--bank", str(bank_path), "--queries", str(file), "--port", "0", "--log-format", "json"]
    with program([*COMMAND, *words], tmp_path) as running:
        answer = post(f"{running.address}/v1/select", json={**queries()[1], "id": "Zqxwv"})
        assert post(f"{running.address}/v1/select", json={"Zqxwv": 1}).status_code == 422
        running.process.send_signal(signal.SIGTERM)
        running.process.wait(PATIENCE)
        talk = running.talk()
    lines = [json.loads(line) for line in talk.splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    assert all(datetime.fromisoformat(line["time"]).utcoffset() == timedelta(0) for line in lines)
    assert lines[0]["message"] == NOTICE
    asked = [line for line in lines if line["message"].startswith("POST /v1/select 200 ")]
    assert [line["request"] for line in asked] == [answer.headers["x-request-id"]]
    assert all("request" not in line for line in lines if line["logger"] == "uvicorn.error")
    assert "Zqxwv" not in talk
