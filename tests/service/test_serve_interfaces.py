"""`tabon serve` with its page and its gateway, as one real process."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

from gateway_upstream import TEXT, Upstream
from service_server import PATIENCE, bank, get, post, program, queries, until
from tabon.cli import main


@pytest.fixture
def files(tmp_path):
    """Write the bank and the studies; return the command line that both need."""
    bank().save(tmp_path / "bank.tabon")
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries()[:12]))
    return ["--bank", str(tmp_path / "bank.tabon"), "--queries", str(tmp_path / "queries.jsonl")]


def test_one_process_shows_studies_and_picks_drafts(files, tmp_path):
    """Page, data, selection and chat completions come from one port, and SIGTERM ends it."""
    texts = [TEXT.format(number=number) for number in range(3)]
    with Upstream(texts) as upstream:
        command = [
            "-c",
            "from tabon.cli import main; main()",
            "serve",
            *files,
            "--port",
            "0",
            "--upstream",
            upstream.url,
        ]
        with program([*command, "-n", "3"], tmp_path) as running:
            page = get(running.address + "/")
            assert page.status_code == 200
            assert "script-src 'self'" in page.headers["content-security-policy"]
            overview = get(running.address + "/v1/explorer").json()
            picks = [post(running.address + "/v1/select", json=query).json() for query in queries()[:12]]
            assert [study["selected"] for study in overview["studies"]] == [
                pick["selected"] for pick in picks
            ]
            message = {"role": "user", "content": "Write the report."}
            asked = {"model": "up-1", "messages": [message], "tabon": {"prior": "Findings: Clear lungs."}}
            answer = post(running.address + "/v1/chat/completions", json=asked).json()
            assert answer["choices"][0]["message"]["content"] == texts[answer["tabon"]["selected"]]
            assert answer["tabon"]["signature"].startswith("selector:fused|")
            assert "the gateway chooses by fused; --selector names another" in running.talk()
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(PATIENCE) in (0, -signal.SIGTERM)
            assert "Clear lungs" not in running.talk()


@pytest.mark.parametrize("stream", [False, True])
def test_drafts_that_are_being_written_are_finished_on_sigterm(files, tmp_path, stream):
    """A client that waits gets its answer, whole or streamed, before it ends; --distance is the paper's."""
    with Upstream(["Findings: Clear lungs. " * 10], pause=0.02) as upstream, ThreadPoolExecutor(1) as pool:
        command = ["-c", "from tabon.cli import main; main()", "serve", *files, "--port", "0"]
        options = ["--upstream", upstream.url, "-n", "2", "--distance", "novelty"]
        with program([*command, *options], tmp_path) as running:
            asked = {"model": "up-1", "messages": [{"role": "user", "content": "Write."}], "stream": stream}
            sent = pool.submit(post, f"{running.address}/v1/chat/completions", json=asked)
            until(lambda: upstream.running or sent.done(), "the upstream is asked")
            running.process.send_signal(signal.SIGTERM)
            answer = sent.result(PATIENCE)
            assert answer.status_code == 200
            assert not stream or answer.text.rstrip().endswith("[DONE]")
            assert "the gateway chooses by paper;" in running.talk()
            assert running.process.wait(PATIENCE) in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--prune"], "--prune belongs to a gateway; give --upstream too"),
        (["--title", "x"], "--title belongs to the page; give --queries too"),
        (["--upstream", "http://10.0.0.1/v1"], "would travel to the upstream unencrypted"),
        (
            ["--upstream", "http://127.0.0.1:1/v1", "--prune", "--prune-points", "many"],
            "are not numbers of words",
        ),
        (["--upstream", "http://127.0.0.1:1/v1", "-n", "99"], "99 drafts are asked for"),
    ],
)
def test_a_gateway_that_cannot_be_is_refused_before_the_bank_is_read(options, sentence):
    """One sentence, exit 1."""
    done = CliRunner().invoke(main, ["serve", "--bank", "nowhere.tabon", *options])
    assert done.exit_code == 1
    assert sentence in done.stderr
