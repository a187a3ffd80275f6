"""`tabon generate` and `tabon drafts`: from a cohort to queries, with policies that hold."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from batch_server import BatchServer
from commands import tabon as run
from echo_model import ECHO
from provider_server import KEY, OK, Behaviour, ProviderServer, behaviour_of, body, status
from tabon.data.cohort.build import write_simulated
from tabon.data.simulate import SimulationSettings
from tabon.generation.batches import BatchLimits
from tabon.generation.journal import read_journal
from tabon.generation.runner import Run
from tabon.generation.tasks import draft_seed

CANARY = "CANARYTEXT"


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


def ask(server, cohort, out, *words, model="openai:m"):
    """Generate drafts from a server under P1."""
    url = server.url(model.partition(":")[0])
    fixed = ["--model", model, "--base-url", url, "--prompt", "P1", "--out", out]
    return run("generate", cohort, *fixed, *words)


def stored(path):
    """How many drafts a journal holds."""
    return len(list(read_journal(path))) if path.exists() else 0


def count(cohort, split="test"):
    """How many transitions a split has."""
    return len((cohort / split / "transitions.jsonl").read_text().splitlines())


def test_the_guide_s_program_is_a_model(cohort, tmp_path):
    """The program under "A command of yours" writes every draft, each with the seed that it was asked for."""
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "generation.md").read_text(encoding="utf-8")
    part = guide[guide.index("## A command of yours") :]
    (tmp_path / "mine.py").write_text(part.split("```python\n")[1].split("```")[0])
    mine = ["--model", "command:mine", "--command", f"{sys.executable} {tmp_path / 'mine.py'}"]
    done = run("generate", cohort, *mine, "--prompt", "P1", "-n", 2, "--out", tmp_path / "drafts.jsonl")
    assert done.exit_code == 0, done.output
    drafts = list(read_journal(tmp_path / "drafts.jsonl"))
    assert len(drafts) == count(cohort) * 2
    assert all(f"({draft['seed']})" in draft["text"] and draft["outcome"] == "ok" for draft in drafts)


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
    assert done.exit_code == 0, done.output  # nothing leaves
    assert any("egress policy" in need for need in json.loads(done.stdout)["needs"]) == (not allowed)
    if not allowed:
        address = ["--base-url", "http://127.0.0.1:9"]
        done = run(
            "generate", cohort, "--model", "mistral:m", *address, "--price", "1,1", "--out", tmp_path / "d"
        )
        assert (done.exit_code, (tmp_path / "d").exists()) == (1, False)
        assert "egress policy" in done.stderr


def test_a_dry_run_needs_neither_key_nor_permission_nor_price(cohort, tmp_path, monkeypatch):
    """It counts, and lists what the run itself would need."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    facts = json.loads((cohort / "cohort.json").read_text())
    (cohort / "cohort.json").write_text(json.dumps(facts | {"egress": "none"}))
    words = ["generate", cohort, "--model", "gemini:gemini-2.5-flash-lite", "--out", tmp_path / "d"]
    done = run(*words, "--dry-run", "--limit", 2)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["drafts"], found["most_it_may_cost"]) == (2 * 3 * 5, None)
    assert [
        any(word in need for need in found["needs"]) for word in ("GEMINI_API_KEY", "egress", "price")
    ] == [True] * 3
    assert run(*words).exit_code == 1


def test_a_trial_takes_the_first_studies_and_its_drafts_are_kept(cohort, echo, tmp_path):
    """`--limit` asks for the first studies alone; the whole run asks for the others alone."""
    words = ["generate", cohort, *echo, "--prompt", "P1", "-n", 1, "--out", tmp_path / "d"]
    assert json.loads(run(*words, "--limit", 2).stdout)["kept"] == 2
    joined = run("drafts", tmp_path / "d", "--cohort", cohort, "-n", 1, "--limit", 2, "--out", tmp_path / "q")
    assert (joined.exit_code, len((tmp_path / "q").read_text().splitlines())) == (0, 2)
    whole = json.loads(run(*words).stdout)
    assert (whole["already_there"], whole["kept"]) == (2, count(cohort) - 2)


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
        (["--model", "command:x", "--command", "cat '"], "an open quotation mark"),
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
    import tabon.cli.generate as command

    monkeypatch.setattr(
        command, "BatchLimits", lambda: BatchLimits(first_wait=0.001, longest_wait=0.01, settling=0.0)
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
    import tabon.cli.generate as command

    hasty = {"attempts": 2, "first_wait": 0.001}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "Run", lambda *given: Run(*given[:-1], replace(given[-1], **hasty)))
        done = run(
            "generate", cohort, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1",
            "--prompt", "P1",
            "-n", 1, "--out", tmp_path / "d",
        )  # fmt: skip
    assert done.exit_code == 1
    assert "run again to ask for them" in done.stderr
    assert Path(tmp_path / "d").exists()


@pytest.fixture
def key(monkeypatch):
    """The key that the servers ask for."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def pictures(cohort, tmp_path):
    """A cohort whose studies have images; returns the folder and the images in the order of the studies."""
    from PIL import Image

    path, folder = cohort / "test" / "transitions.jsonl", tmp_path / "images"
    folder.mkdir()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for number, record in enumerate(records):
        record["image"] = f"{number}.png"
        Image.new("L", (8, 8), number % 256).save(folder / record["image"])
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder, [folder / record["image"] for record in records]


def test_a_foreign_file_is_not_touched(cohort, echo, tmp_path):
    """`--out` on a file that is no journal is a sentence, and the file keeps every byte."""
    for data in (b"my only copy", bytes(3_000_000), b"a,b\n1,2"):
        for words in ([], ["--dry-run"]):
            (tmp_path / "notes").write_bytes(data)
            done = run("generate", cohort, *echo, "--prompt", "P1", "--out", tmp_path / "notes", *words)
            assert done.exit_code == 1
            assert "another kind of file" in done.stderr
            assert (tmp_path / "notes").read_bytes() == data


def test_a_torn_line_is_dropped_with_a_word(cohort, echo, tmp_path):
    """What opening a journal cut off is said on standard error, and the draft is made again."""
    words = ["generate", cohort, *echo, "--prompt", "P1", "-n", 1, "--out", tmp_path / "d"]
    assert run(*words).exit_code == 0
    whole = (tmp_path / "d").read_bytes()
    (tmp_path / "d").write_bytes(whole[:-50])
    done = run(*words)
    assert done.exit_code == 0
    assert "cut off in writing were dropped" in done.stderr
    assert json.loads(done.stdout)["kept"] == 1
    (tmp_path / "d").write_bytes(whole[:-1])
    done = run(*words)
    assert (json.loads(done.stdout)["kept"], done.exit_code) == (0, 0)
    assert "got it back" in done.stderr


@pytest.mark.usefixtures("key")
def test_a_broken_image_costs_its_own_study_alone(cohort, tmp_path, pictures):
    """The others are drafted, all that is billed is stored, and a second run buys nothing."""
    folder, images = pictures
    middle = images[len(images) // 2]
    whole = middle.read_bytes()
    middle.write_bytes(whole[:40])
    with ProviderServer(latency=0.02) as server:
        for _ in range(3):
            done = ask(server, cohort, tmp_path / "d", "--images", folder, "-n", 2)
            assert done.exit_code == 1
            assert "1 studies were left out" in done.stderr
            assert middle.name in done.stderr
            assert server.billed == stored(tmp_path / "d") == 2 * (count(cohort) - 1)
        middle.write_bytes(whole)
        assert ask(server, cohort, tmp_path / "d", "--images", folder, "-n", 2).exit_code == 0
        assert server.billed == stored(tmp_path / "d") == 2 * count(cohort)


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("fault", ["an image is missing", "a line is cut"])
def test_what_is_wrong_with_files_is_found_before_the_first_call(cohort, tmp_path, pictures, fault):
    """A missing image or a bad line of the cohort ends the run before money is spent."""
    folder, images = pictures
    if fault == "a line is cut":
        path = cohort / "test" / "transitions.jsonl"
        path.write_bytes(path.read_bytes()[:-30])
    else:
        images[-1].unlink()
    with ProviderServer() as server:
        done = ask(server, cohort, tmp_path / "d", "--images", folder)
        assert (done.exit_code, server.calls) == (1, 0)
    assert f"line {count(cohort)}" in done.stderr or "is not in" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("key")
def test_refusals_keep_what_is_in_flight(cohort, tmp_path):
    """Five refusals in a row end a run; what was paid for beside them is kept, in every run."""
    with ProviderServer(image=False, gate=8) as server:
        for _ in range(3):
            refused = [status(400)] * 20  # five in a row, in whatever order the first eight are answered
            server.script = [OK] * server.calls + [OK, OK, OK, *refused]
            server.gate = server.calls + 8  # no answer before eight calls are in flight
            server._loop.call_soon_threadsafe(server._open.clear)
            done = ask(server, cohort, tmp_path / "d")
            assert done.exit_code == 1
            assert "does not take this request" in done.stderr
            assert server.billed == stored(tmp_path / "d") > 0


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(
    "words",
    [
        ["--price=nan,nan"],
        ["--price=-5,-5"],
        ["--price=inf,1"],
        ["--price=1,nan"],
        ["--price=1,1", "--cap=nan"],
        ["--price=1,1", "--cap=-1"],
        ["--price=1,1", "--cap=inf"],
    ],
)
def test_prices_and_caps_that_would_switch_the_cap_off_are_refused(cohort, tmp_path, words):
    """NaN, infinite and negative money is a sentence, and nothing is asked or written."""
    with ProviderServer(image=False) as server:
        done = ask(server, cohort, tmp_path / "d", *words)
        assert (done.exit_code, server.calls) == (1, 0)
    assert "the price is" in done.stderr or "the spend cap is" in done.stderr
    assert not (tmp_path / "d").exists()


def usage(provider, count):
    """An answer that claims so many tokens each way."""
    if provider == "gemini":
        made = {"content": {"parts": [{"text": "Clear."}]}, "finishReason": "STOP"}
        counts = {"promptTokenCount": count, "candidatesTokenCount": count}
        return body(json.dumps({"candidates": [made], "usageMetadata": counts}).encode())
    made = {"index": 0, "message": {"role": "assistant", "content": "Clear."}, "finish_reason": "stop"}
    counts = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": count}
    facts = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    return body(json.dumps(facts | {"choices": [made], "usage": counts}).encode())


@pytest.mark.parametrize("provider", ["openai", "mistral", "gemini"])
@pytest.mark.parametrize("tokens", [-1_000_000, -1, 10**30, "many", float("nan"), [7]])
def test_token_counts_that_cannot_be_do_not_lower_what_was_spent(
    cohort, tmp_path, monkeypatch, provider, tokens
):
    """Such a draft costs its estimate: the cap holds, and the journal's sum is finite."""
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", KEY)
    with ProviderServer(image=False) as server:
        server.script = [usage(provider, tokens)] * 100
        words = ["--price=10,10", "--cap=0.05", "--concurrency=1"]
        done = ask(server, cohort, tmp_path / "d", *words, model=f"{provider}:m")
    assert "spend cap" in done.stderr
    assert 0 < json.loads(done.stdout)["spent"] <= 0.05
    assert server.billed == stored(tmp_path / "d") > 0
    assert all(record["input_tokens"] is None for record in read_journal(tmp_path / "d"))


@pytest.mark.usefixtures("key")
def test_another_server_seed_or_command_is_another_draft(cohort, tmp_path, monkeypatch):
    """Drafts of one server are never taken for those of another, nor one seed's for another's."""
    studies, out = count(cohort), tmp_path / "d"
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    with ProviderServer(image=False) as first, ProviderServer(image=False) as second:
        for server in (first, second):
            for words in ([], ["--seed", 7]):
                for again in (False, True):
                    done = ask(server, cohort, out, "-n", 1, *words)
                    kept = json.loads(done.stdout)["kept"]
                    assert kept == (0 if again else studies)
        assert first.billed == second.billed == 2 * studies
        for server in (first, second):
            ask(server, cohort, out, "-n", 1, "--price=1,1", model="mistral:m")
        assert first.billed == second.billed == 3 * studies
    assert {record["source"] for record in read_journal(out)} == {
        server.url(provider) for server in (first, second) for provider in ("openai", "mistral")
    }


def test_another_command_is_another_draft(cohort, tmp_path, echo):
    """The command line belongs to the key; it is kept as a hash, since it may hold a secret."""
    words = ["generate", cohort, *echo[:2], "--prompt", "P1", "-n", 1, "--out", tmp_path / "d", "--command"]
    for command in (echo[3], f"{echo[3]} --token {KEY}"):
        for again in (False, True):
            assert json.loads(run(*words, command).stdout)["kept"] == (0 if again else count(cohort))
    assert KEY not in (tmp_path / "d").read_text()


@pytest.mark.usefixtures("key")
def test_the_key_in_a_base_url_is_not_kept(cohort, tmp_path):
    """Credentials and queries of an address are no part of what is journaled."""
    with ProviderServer(image=False) as server:
        url = server.url("openai").replace("http://", "http://user:CANARYPASS@") + "?key=CANARYQUERY"
        words = ["--model", "openai:m", "--base-url", url, "--prompt", "P1", "-n", 1, "--out", tmp_path / "d"]
        done = run("generate", cohort, *words)
    text = (tmp_path / "d").read_text() + done.output
    assert "CANARYPASS" not in text
    assert "CANARYQUERY" not in text


@pytest.mark.usefixtures("key")
def test_a_provider_that_asks_for_years_of_waiting_ends_the_run(cohort, tmp_path):
    """`Retry-After: 99999999` is not slept; the run ends with the provider's wish, and what is kept stays."""
    with ProviderServer(image=False, script=[OK, OK, status(429, retry_after="99999999")]) as server:
        done = ask(server, cohort, tmp_path / "d", "--concurrency", 1)
        assert done.exit_code == 1
        assert "HTTP 429" in done.stderr
        assert "not for another 2.78e+04 hours" in done.stderr
        assert server.billed == stored(tmp_path / "d") == 2


LINES = {
    "blank": b"\n \n",
    "cut": b'{"id": "s", "prior": "Cle\n',
    "a list": b"[]\n",
    "null": b"null\n",
    "no id": b'{"prior": "Clear.", "current": "Clear."}\n',
    "no prior": b'{"id": "s", "current": "Clear."}\n',
    "an odd id": b'{"id": {}, "prior": "Clear.", "current": "Clear."}\n',
    "an odd prior": b'{"id": "s", "prior": 7, "current": "Clear."}\n',
    "deep": b'{"id": "s", "prior": ' + b"[" * 99_999 + b"\n",
    "digits": b'{"id": ' + b"9" * 9_999 + b', "prior": "Clear.", "current": "Clear."}\n',
    "not UTF-8": b'{"id": "\xff", "prior": "Clear.", "current": "Clear."}\n',
}


@pytest.mark.parametrize("name", LINES)
def test_an_odd_line_of_a_cohort_is_a_sentence(cohort, echo, tmp_path, name):
    """Blank lines are skipped, other odd ones are named by number; in `generate` and in `drafts`."""
    made = run("generate", cohort, *echo, "--prompt", "P1", "-n", 1, "--out", tmp_path / "d")
    assert made.exit_code == 0
    path, studies = cohort / "test" / "transitions.jsonl", count(cohort)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + LINES[name] + b"".join(lines[3:]))
    for words in (
        ["generate", cohort, *echo, "--prompt", "P1", "-n", 1, "--out", tmp_path / "e"],
        ["generate", cohort, *echo, "--prompt", "P1", "-n", 1, "--out", tmp_path / "f", "--dry-run"],
        ["drafts", tmp_path / "d", "--cohort", cohort, "-n", 1, "--out", tmp_path / "q"],
    ):
        done = run(*words)
        if name == "blank":
            assert done.exit_code == 0, done.output
            assert studies in json.loads(done.stdout).values()
        else:
            assert (done.exit_code, type(done.exception)) == (1, SystemExit)
            assert "line 4" in done.stderr
            assert "Clear" not in done.stderr


@pytest.mark.parametrize(
    "facts", [b"[]", b"null", b"[" * 99_999, b"{", b"\xff", b'{"egress": []}', b'{"egress": {}}', b"{}", b"7"]
)
def test_an_odd_cohort_json_is_a_sentence(cohort, echo, tmp_path, facts):
    """A cohort without its policy is refused, however its file looks."""
    (cohort / "cohort.json").write_bytes(facts)
    done = run("generate", cohort, *echo, "--prompt", "P1", "--out", tmp_path / "d")
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert "cohort.json" in done.stderr


@pytest.mark.parametrize(
    "image", [7, ["a.png"], {}, "", "a\0b", "x" * 5_000, "..", ".", "../notes"], ids=repr
)
def test_an_odd_image_of_a_cohort_is_a_sentence(cohort, echo, tmp_path, image):
    """A name that no image has is found before the first draft."""
    path = cohort / "test" / "transitions.jsonl"
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(first) | {"image": image}), *others]))
    (tmp_path / "images").mkdir()
    (tmp_path / "notes").touch()
    done = run("generate", cohort, *echo, "--images", tmp_path / "images", "--out", tmp_path / "d")
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert "image" in done.stderr
    assert not (tmp_path / "d").exists()


def test_a_fifo_as_a_journal_is_refused(cohort, echo, tmp_path):
    """It is not waited for, in whatever command."""
    os.mkfifo(tmp_path / "fifo")
    holder = os.open(tmp_path / "fifo", os.O_RDWR | os.O_NONBLOCK)  # so that a fault fails and does not hang
    os.write(holder, b"x")
    for words in (
        ["generate", cohort, *echo, "--prompt", "P1", "--out", tmp_path / "fifo"],
        ["generate", cohort, *echo, "--prompt", "P1", "--out", tmp_path / "fifo", "--dry-run"],
        ["generate", cohort, "--model", f"replay:{tmp_path / 'fifo'}", "--out", tmp_path / "d"],
        ["drafts", tmp_path / "fifo", "--cohort", cohort, "--out", tmp_path / "q"],
    ):
        done = run(*words)
        assert (done.exit_code, type(done.exception)) == (1, SystemExit)
        assert "plain file" in done.stderr or "no journal" in done.stderr
    os.close(holder)


@pytest.mark.usefixtures("key")
def test_drafts_of_two_servers_are_not_replayed_as_one(cohort, tmp_path):
    """A journal that holds two servers' drafts of one model and seed does not say which is meant."""
    with ProviderServer(image=False) as first, ProviderServer(image=False) as second:
        for server in (first, second):
            ask(server, cohort, tmp_path / "d", "-n", 1)
    done = run("generate", cohort, "--model", f"replay:{tmp_path / 'd'}", "--out", tmp_path / "e")
    assert done.exit_code == 1
    assert "replay one at a time" in done.stderr
    joined = run("drafts", tmp_path / "d", "--cohort", cohort, "-n", 1, "--out", tmp_path / "q")
    assert joined.exit_code == 1
    assert "a journal of its own" in joined.stderr


@pytest.mark.usefixtures("key")
def test_an_answer_without_end_is_not_read_to_it(cohort, tmp_path):
    """A draft of 50 MB is kept as malformed with its first characters; it is not bought again."""
    huge = Behaviour(text="Clear. " * 7_000_000)
    long = Behaviour(text="Clear. " * 200_000)
    with ProviderServer(image=False, script=[huge, long]) as server:
        for _ in range(2):
            assert ask(server, cohort, tmp_path / "d", "-n", 1, "--concurrency", 1).exit_code == 0
        assert server.billed == stored(tmp_path / "d") == count(cohort)
    outcomes = [record["outcome"] for record in read_journal(tmp_path / "d")]
    assert outcomes == ["malformed"] * 2 + ["ok"] * (count(cohort) - 2)
    assert (tmp_path / "d").stat().st_size < 200_000
