"""`tabon bank build|info|verify`: data on stdout, talk on stderr, and 0, 1 or 2."""

import json
import subprocess
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands import assert_refused, tabon
from tabon import TransitionBank
from tabon.cli import main
from tabon.data.simulate import SimulationSettings, simulate_transitions

TRANSITIONS = list(simulate_transitions(SimulationSettings(patients=30), "train"))
SCRIPT = Path(sysconfig.get_path("scripts")) / "tabon"


def json_lines(records):
    """Write records as JSON Lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def assert_usage(result):
    """Check for exit status 2 with the usage on stderr and nothing on stdout."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Usage: " in result.stderr


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep the default sentence store inside the test's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def transitions(tmp_path):
    """Return a transitions file."""
    path = tmp_path / "transitions.jsonl"
    path.write_text(json_lines(TRANSITIONS))
    return path


@pytest.fixture
def bank(tmp_path, transitions):
    """Return a bank file."""
    path = tmp_path / "bank.tabon"
    assert tabon("bank", "build", transitions, "--out", path, "--encoder", "hashing").exit_code == 0
    return path


def test_build_writes_the_bank_and_says_so_in_one_line_on_stderr(transitions, tmp_path):
    """A bank holds one row for each line of the file; stdout stays free."""
    out = tmp_path / "bank.tabon"
    result = tabon("bank", "build", transitions, "--out", out, "--encoder", "hashing", "--no-store")
    bank = TransitionBank.load(out)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert (
        result.stderr
        == f"{out}: {len(TRANSITIONS)} transitions, {len(bank.table.sentences)} distinct sentences\n"
    )
    assert [row["id"] for row in bank.provenance] == [record["id"] for record in TRANSITIONS]


def test_build_reads_standard_input(bank, tmp_path):
    """`-` gives the same bank, byte for byte, as the file does."""
    out = tmp_path / "piped.tabon"
    stdin = json_lines(TRANSITIONS)
    result = tabon("bank", "build", "-", "--out", out, "--encoder", "hashing", stdin=stdin)
    assert result.exit_code == 0
    assert out.read_bytes() == bank.read_bytes()


def test_build_makes_the_folders_above_its_output(transitions, tmp_path):
    """An --out in a folder that is not there yet is not an error."""
    out = tmp_path / "new" / "deep" / "bank.tabon"
    result = tabon("bank", "build", transitions, "--out", out, "--encoder", "hashing")
    assert result.exit_code == 0
    assert len(TransitionBank.load(out)) == len(TRANSITIONS)


def test_build_replaces_an_old_bank_and_leaves_nothing_beside_it(bank, transitions):
    """After a second build there is one file, and it is the new one."""
    before = bank.read_bytes()
    transitions.write_text(json_lines(TRANSITIONS[:5]))
    assert tabon("bank", "build", transitions, "--out", bank, "--encoder", "hashing").exit_code == 0
    assert bank.read_bytes() != before
    assert sorted(path.name for path in bank.parent.iterdir()) == ["bank.tabon", "cache", "transitions.jsonl"]


def test_a_failed_build_leaves_the_old_bank_untouched(bank, transitions):
    """When the input is bad, the file at --out keeps its bytes and nothing lies beside it."""
    before, names = bank.read_bytes(), sorted(bank.parent.iterdir())
    transitions.write_text(json_lines(TRANSITIONS) + "{\n")
    result = tabon("bank", "build", transitions, "--out", bank, "--encoder", "hashing")
    assert_refused(result)
    assert f"line {len(TRANSITIONS) + 1}" in result.stderr
    assert bank.read_bytes() == before
    assert sorted(bank.parent.iterdir()) == names


def test_the_default_store_lies_in_the_cache_folder_for_its_owner_alone(bank, cache):
    """Without options, embeddings are kept under XDG_CACHE_HOME with mode 0600."""
    assert bank.exists()
    store = cache / "tabon" / "sentences.sqlite"
    assert store.stat().st_mode & 0o777 == 0o600


def test_no_store_keeps_nothing(transitions, tmp_path, cache):
    """With --no-store no cache folder appears."""
    out = tmp_path / "bank.tabon"
    result = tabon("bank", "build", transitions, "--out", out, "--encoder", "hashing", "--no-store")
    assert result.exit_code == 0
    assert not cache.exists()


def test_a_named_store_is_used_instead(transitions, tmp_path, cache):
    """With --store the embeddings go there and the default stays away."""
    out, store = tmp_path / "bank.tabon", tmp_path / "mine.sqlite"
    result = tabon("bank", "build", transitions, "--out", out, "--encoder", "hashing", "--store", store)
    assert result.exit_code == 0
    assert store.exists()
    assert not cache.exists()


def test_a_user_without_a_home_is_told_about_no_store(transitions, tmp_path, monkeypatch):
    """Where there is no home folder, the sentence names both ways out."""

    def homeless():
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    result = tabon("bank", "build", transitions, "--out", tmp_path / "b", "--encoder", "hashing")
    assert_refused(result)
    assert "--no-store" in result.stderr


def test_info_prints_the_facts_as_json(bank):
    """Info is one JSON object with counts, zero shares, fingerprint and sum; stderr is silent."""
    result = tabon("bank", "info", bank)
    assert result.exit_code == 0
    assert result.stderr == ""
    facts = json.loads(result.stdout)
    assert facts["transitions"] == len(TRANSITIONS)
    assert facts["patients"] == len({record["patient"] for record in TRANSITIONS})
    assert facts["fingerprint"]["encoder"] == "hashing"
    assert facts["sha256"] == TransitionBank.load(bank).sha256
    assert set(facts["zero_shares"]) == set(facts["section_transitions"]) == {"findings", "impression"}


def test_verify_prints_the_sum_of_a_whole_bank(bank):
    """A bank that is whole is said to be so, with its sha256."""
    result = tabon("bank", "verify", bank)
    assert result.exit_code == 0
    assert (
        result.stdout
        == f"{bank}: whole, {len(TRANSITIONS)} transitions, sha256 {TransitionBank.load(bank).sha256}\n"
    )


@pytest.mark.parametrize("command", ["info", "verify"])
@pytest.mark.parametrize("damage", ["missing", "folder", "other", "empty", "cut", "flipped"])
def test_what_is_not_a_whole_bank_is_refused(command, damage, bank):
    """A missing, foreign or damaged bank gives one sentence that names the path and the way out."""
    data = bank.read_bytes()
    bank.unlink()
    if damage == "folder":
        bank.mkdir()
    elif damage != "missing":
        flipped = data[:-70] + bytes([data[-70] ^ 1]) + data[-69:]
        bank.write_bytes(
            {"other": b"hello\n" * 99, "empty": b"", "cut": data[:-64], "flipped": flipped}[damage]
        )
    result = tabon("bank", command, bank)
    assert_refused(result)
    assert str(bank) in result.stderr
    assert "tabon bank build" in result.stderr or "rebuild" in result.stderr


def test_a_bank_does_not_go_to_standard_output(transitions, tmp_path, monkeypatch):
    """`--out -` is refused instead of making a file called `-`."""
    monkeypatch.chdir(tmp_path)
    result = tabon("bank", "build", transitions, "--out", "-", "--encoder", "hashing")
    assert_refused(result)
    assert not Path("-").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["bank", "build"],
        ["bank", "build", "-"],
        ["bank", "build", "no-such-file", "--out", "x"],
        ["bank", "build", "-", "--out", "FOLDER"],
        ["bank", "build", "-", "--out", "x", "--store", "FOLDER"],
        ["bank", "build", "-", "--out", "x", "--colour", "red"],
        ["bank", "info"],
        ["bank", "info", "a", "b"],
        ["bank", "verify"],
        ["bank", "shake"],
        ["banks"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_status_2(arguments, tmp_path):
    """Arguments that no command takes are answered with the usage."""
    assert_usage(tabon(*(tmp_path if argument == "FOLDER" else argument for argument in arguments), stdin=""))


def test_every_command_has_help():
    """`--help` works for the group and for each member, and is data: it goes to stdout."""
    for arguments in (["bank"], ["bank", "build"], ["bank", "info"], ["bank", "verify"], []):
        result = tabon(*arguments, "--help")
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: ")


def test_the_installed_script_builds_from_a_pipe(tmp_path):
    """The console script reads a pipe, writes the bank, and keeps its talk on stderr."""
    out = tmp_path / "bank.tabon"
    command = [SCRIPT, "bank", "build", "-", "--out", out, "--encoder", "hashing", "--no-store"]
    done = subprocess.run(
        command, input=json_lines(TRANSITIONS), capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.count("\n") == 1
    assert len(TransitionBank.load(out)) == len(TRANSITIONS)


def test_the_installed_script_says_no_without_a_traceback(tmp_path):
    """In a real process, too, an error is one sentence and exit status 1."""
    done = subprocess.run(
        [SCRIPT, "bank", "info", tmp_path / "none"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: there is no bank at ")
    assert done.stderr.count("\n") == 1


def test_version_is_the_installed_one():
    """`--version` prints the version of the distribution."""
    assert tabon("--version").stdout.strip().endswith(version("tabon"))


def test_a_bank_without_patients_is_noted_in_one_line(tmp_path):
    """When it is built and when it is used: one line on standard error, also if it is opened twice."""
    bare = [{key: value for key, value in record.items() if key != "patient"} for record in TRANSITIONS[:5]]
    source, bank = tmp_path / "t.jsonl", tmp_path / "b.tabon"
    source.write_text("".join(json.dumps(record) + "\n" for record in bare), encoding="utf-8")
    build = ["bank", "build", str(source), "--out", str(bank), "--encoder", "hashing", "--no-store"]
    for command in (build, ["bank", "info", str(bank)]):
        answer = CliRunner().invoke(main, command)
        assert answer.exit_code == 0, answer.output
        assert answer.stderr.count("note: the bank names no patients, so it cannot notice") == 1
        assert "Warning" not in answer.stderr
