"""`tabon generate` and `tabon drafts`: from a cohort to queries, with policies that hold."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from batch_server import BatchServer
from provider_server import KEY, ProviderServer, behaviour_of
from tabon.cli import main
from tabon.cohort.simulated import write_simulated
from tabon.generation.asking import draft_seed
from tabon.generation.batches import BatchLimits
from tabon.generation.journal import read_journal
from tabon.simulate import SimulationSettings

CANARY = "CANARYTEXT"
ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    text = f"Findings: Clear, {asked['seed']}.\\nImpression: Normal."
    print(json.dumps({"id": asked["id"], "text": text, "finish_reason": "stop"}), flush=True)
"""


@pytest.fixture
def cohort(tmp_path):
    """A small simulated cohort."""
    write_simulated(tmp_path / "cohort", SimulationSettings(patients=30, splits=(0.6, 0.0, 0.4)))
    return tmp_path / "cohort"


@pytest.fixture
def echo(tmp_path):
    """A model behind an external command."""
    (tmp_path / "echo.py").write_text(ECHO)
    return ["--model", "command:echo", "--command", f"{sys.executable} {tmp_path / 'echo.py'}"]


def run(*words):
    """Run a command."""
    return CliRunner().invoke(main, [str(word) for word in words])


def count(cohort, split="test"):
    """How many transitions a split has."""
    return len((cohort / split / "transitions.jsonl").read_text().splitlines())


def test_from_a_cohort_to_a_selection(cohort, echo, tmp_path):
    """Drafts under three prompts, joined into queries, selected from a bank: the whole pipeline."""
    done = run("generate", cohort, *echo, "-n", 3, "--out", tmp_path / "drafts.jsonl")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["kept"] == count(cohort) * 9
    joined = run(
        "drafts",
        tmp_path / "drafts.jsonl",
        "--cohort",
        cohort,
        "--prompt",
        "P3",
        "-n",
        3,
        "--out",
        tmp_path / "q.jsonl",
    )
    assert joined.exit_code == 0, joined.output
    counts = json.loads(joined.stdout)
    assert (counts["studies"], counts["with_shortfall"]) == (count(cohort), 0)
    bank = tmp_path / "bank.tabon"
    built = run(
        "bank",
        "build",
        cohort / "train" / "transitions.jsonl",
        "--out",
        bank,
        "--encoder",
        "hashing",
        "--no-store",
    )
    assert built.exit_code == 0, built.output
    chosen = run("select", tmp_path / "q.jsonl", "--bank", bank, "--no-store")
    assert chosen.exit_code == 0, chosen.output
    assert len(chosen.stdout.splitlines()) == count(cohort)


def test_a_shortfall_is_seen(cohort, echo, tmp_path):
    """Asking for more drafts than the journal has shows in every query and in the counts."""
    run("generate", cohort, *echo, "--prompt", "P1", "-n", 2, "--out", tmp_path / "d")
    joined = run("drafts", tmp_path / "d", "--cohort", cohort, "-n", 5, "--out", tmp_path / "q")
    assert json.loads(joined.stdout)["with_shortfall"] == count(cohort)
    queries = [json.loads(line) for line in (tmp_path / "q").read_text().splitlines()]
    assert {query["shortfall"] for query in queries} == {3}


def test_a_dry_run_asks_and_writes_nothing(cohort, tmp_path):
    """The estimate has drafts and the most they may cost."""
    done = run(
        "generate", cohort, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--price", "1,1",
        "--out", tmp_path / "d", "--dry-run",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["drafts"] == count(cohort) * 15
    assert json.loads(done.stdout)["most_it_may_cost"] > 0
    assert not (tmp_path / "d").exists()


def test_seeds_are_distinct_for_each_sample_and_the_same_in_every_run():
    """K drafts of a study have K seeds."""
    seeds = {draft_seed(0, "s", sample) for sample in range(64)}
    assert len(seeds) == 64
    assert draft_seed(0, "s", 3) == draft_seed(0, "s", 3) != draft_seed(1, "s", 3)


@pytest.mark.parametrize(("egress", "allowed"), [("none", False), ("zero-retention", False), ("any", True)])
def test_the_egress_policy_is_enforced(cohort, tmp_path, monkeypatch, egress, allowed):
    """A cohort that may not leave is not sent to a provider; nothing is asked."""
    facts = json.loads((cohort / "cohort.json").read_text())
    (cohort / "cohort.json").write_text(json.dumps(facts | {"egress": egress}))
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    done = run(
        "generate",
        cohort,
        "--model",
        "mistral:mistral-small-2603",
        "--price",
        "1,1",
        "--out",
        tmp_path / "d",
        "--dry-run",
    )
    assert (done.exit_code == 0) == allowed
    assert allowed or "egress policy" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "gemini:gemini-2.5-flash-lite"], "GEMINI_API_KEY or GOOGLE_API_KEY"),
        (["--model", "gemni:x"], "Did you mean 'gemini'"),
        (["--model", "openai:m"], "needs --base-url"),
        (["--model", "openai"], "write openai:NAME"),
        (["--model", "openai:m", "--batch"], "unknown kind of model with a batch mode"),
        (["--model", "command:x"], "needs --command"),
        (["--model", "replay:/nowhere"], "there is no journal"),
        (["--model", "command:x", "--command", "cat", "--prompt", "P4"], "unknown prompt"),
        (["--model", "command:x", "--command", "cat", "--split", "dev"], "choose another --split"),
    ],
)
def test_bad_options_get_one_sentence(cohort, tmp_path, monkeypatch, options, message):
    """Exit status 1 and the way out."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    done = run("generate", cohort, *options, "--out", tmp_path / "d")
    assert done.exit_code == 1
    assert message in done.stderr


def test_a_paid_model_without_a_price_is_refused(cohort, tmp_path, monkeypatch):
    """What a run costs must be known before the first call."""
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    done = run("generate", cohort, "--model", "mistral:m", "--out", tmp_path / "d")
    assert done.exit_code == 1
    assert "give --price" in done.stderr


def test_a_journal_of_two_prompts_asks_which(cohort, echo, tmp_path):
    """Joining needs one configuration."""
    run("generate", cohort, *echo, "--prompt", "P1,P3", "-n", 1, "--out", tmp_path / "d")
    done = run("drafts", tmp_path / "d", "--cohort", cohort, "--out", tmp_path / "q")
    assert done.exit_code == 1
    assert "--prompt P3" in done.stderr
    assert not (tmp_path / "q").exists()


def test_a_journal_is_replayed_without_its_model(cohort, echo, tmp_path):
    """The same drafts again from the archive alone."""
    run("generate", cohort, *echo, "--prompt", "P1", "-n", 2, "--out", tmp_path / "d")
    done = run(
        "generate",
        cohort,
        "--model",
        f"replay:{tmp_path / 'd'}",
        "--prompt",
        "P1",
        "-n",
        2,
        "--out",
        tmp_path / "e",
    )
    assert done.exit_code == 0, done.output
    texts = [sorted(record["text"] for record in read_journal(tmp_path / name)) for name in "de"]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("provider", ["gemini", "mistral"])
def test_a_batch_run_fills_the_same_journal(cohort, tmp_path, monkeypatch, provider):
    """`--batch` buys the drafts as jobs; a second run, single or batch, buys nothing."""
    import tabon.cli.generate as door

    monkeypatch.setattr(
        door, "BatchLimits", lambda: BatchLimits(first_wait=0.001, longest_wait=0.01, settling=0.0)
    )
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)
    words = ["generate", cohort, "--model", f"{provider}:m", "--price", "1,1", "--prompt", "P1", "-n", 2]
    with BatchServer() as server:
        words += ["--base-url", server.url(provider), "--out", tmp_path / "d"]
        done = run(*words, "--batch")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["kept"] == count(cohort) * 2
        again = run(*words)
    assert json.loads(again.stdout)["kept"] == 0
    assert json.loads(again.stdout)["already_there"] == count(cohort) * 2


def test_keys_and_reports_stay_where_they_belong(cohort, tmp_path, monkeypatch):
    """A canary key is in no file and no message; canary report text only in the journal's raw body."""
    for path in cohort.rglob("transitions.jsonl"):
        path.write_text(path.read_text().replace("The ", f"The {CANARY} "))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ProviderServer(
        image=False, script=[behaviour_of(name) for name in ("500", "429=0", "ok", "malformed")]
    ) as server:
        done = run(
            "generate", cohort, "--model", "openai:m", "--base-url", server.url("openai"), "--prompt", "P3",
            "-n", 2, "--out", tmp_path / "d",
        )  # fmt: skip
    assert done.exit_code == 0, done.output
    said = done.stdout + done.stderr
    assert KEY not in said
    assert CANARY not in said
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


def test_the_doors_answer_for_a_lost_server(cohort, tmp_path):
    """A server that is not there fails the drafts with one sentence, after bounded attempts."""
    import tabon.cli.generate as door

    limits = door.Limits
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "Limits", lambda **given: limits(**given, attempts=2, first_wait=0.001))
        done = run(
            "generate", cohort, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1",
            "--prompt", "P1",
            "-n", 1, "--out", tmp_path / "d",
        )  # fmt: skip
    assert done.exit_code == 1
    assert "run again to ask for them" in done.stderr
    assert Path(tmp_path / "d").exists()
