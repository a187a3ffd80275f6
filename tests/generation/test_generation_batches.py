"""Batch runs: matched by key, found again after a crash, nothing bought twice."""

import asyncio
import json
import logging
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace

import pytest

from batch_server import BatchServer, Plan
from provider_server import INPUT_TOKENS, KEY, OK_TEXT, OUTPUT_TOKENS
from tabon._internal.record_file import record_line
from tabon.errors import BadInputError, GenerationError, TabonError, TryAgainError
from tabon.generation.batches import BatchLimits, BatchRun, Ledger
from tabon.generation.journal import DraftKey, Journal, read_journal
from tabon.generation.protocol import EncodedImage, Parameters, Request
from tabon.generation.providers.gemini import GeminiBatch
from tabon.generation.providers.http_generator import answer_from
from tabon.generation.providers.mistral import MistralBatch
from tabon.generation.runner import Budget, Price, Task
from waiting import LIMIT

PROVIDERS = {"gemini": GeminiBatch, "mistral": MistralBatch}
PRICE = Price(1.0, 10.0)
QUICK = BatchLimits(batch=4, first_wait=0.001, longest_wait=0.01, attempts=3, settling=0.0)
PNG = b"\x89PNG\r\n\x1a\n"
PROMPT = "canary prompt text"


@pytest.fixture(params=PROVIDERS)
def provider(request):
    """Each provider in turn."""
    return request.param


class Killed(BaseException):
    """The process dies here."""


def tasks(batch, count, first=0):
    """Some drafts of one study."""
    image = EncodedImage(data=PNG, media_type="image/png", sha256=sha256(PNG).hexdigest())
    for sample in range(first, count):
        request = Request(prompt=PROMPT, image=image, seed=100 + sample, parameters=Parameters(max_tokens=50))
        yield Task(
            DraftKey(
                study="s1",
                model=batch.model,
                source=batch.source,
                prompt="P1",
                prompt_sha256=sha256(PROMPT.encode()).hexdigest(),
                image_sha256=image.sha256,
                parameters=request.parameters,
                sample=sample,
                seed=request.seed,
            ),
            request,
        )


def generate(folder, server, provider, count, *, made=None, cap=None, limits=QUICK, key=KEY, stop=None):  # noqa: PLR0913
    """Run a whole run and return its progress."""
    journal = Journal(folder / "drafts.jsonl")

    async def whole():
        batch = (made or PROVIDERS[provider])(
            "m-1", api_key=key, base_url=server.url(provider), timeout=LIMIT
        )
        try:
            budget = Budget(PRICE, spent=journal.cost, cap=cap)
            run = BatchRun(batch, journal, folder / "drafts.jsonl.batches", budget, limits)
            looks = server.calls[f"{provider}_get"] + (stop or 0)

            def interrupt():
                """Press Ctrl-C once the jobs were looked at so often."""
                if server.calls[f"{provider}_get"] >= looks:
                    run.stop("it was interrupted")
                else:
                    asyncio.get_running_loop().call_later(0.005, interrupt)

            if stop is not None:
                interrupt()
            return await run.generate(tasks(batch, count))
        finally:
            await batch.close()

    try:
        return asyncio.run(whole())
    finally:
        journal.close()


def kept(folder):
    """Return the texts in a journal by sample; no draft may stand there twice."""
    records = list(read_journal(folder / "drafts.jsonl"))
    texts = {record["sample"]: record["text"] for record in records}
    assert len(texts) == len(records)
    assert all(text == OK_TEXT.format(seed=100 + sample) for sample, text in texts.items())
    return set(texts)


def billed(server):
    """Count how often each draft was billed, over all jobs."""
    return sum(server.billed.values(), Counter())


def test_the_real_clients_buy_whole_lots_and_a_finished_run_makes_no_call(tmp_path, provider):
    """Ten drafts in three shuffled jobs come back each under its own key; then nothing is asked."""
    with BatchServer() as server:
        done = generate(tmp_path, server, provider, 10)
        calls = server.calls.copy()
        again = generate(tmp_path, server, provider, 10)
        assert server.calls == calls
    assert (done.kept, done.failed, again.kept, again.already) == (10, 0, 0, 10)
    assert kept(tmp_path) == set(range(10))
    assert [len(job.rows) for job in server.jobs.values()] == [4, 4, 2]
    assert set(billed(server).values()) == {1}
    assert not server.violations


def test_a_record_says_what_the_provider_said(tmp_path, provider):
    """Outcome, usage, cost, seed and raw body are those of a draft that was bought singly."""
    with BatchServer() as server:
        done = generate(tmp_path, server, provider, 1)
    (record,) = read_journal(tmp_path / "drafts.jsonl")
    assert (record["outcome"], record["seed"], record["model_version"]) == ("ok", 100, "m-1-001")
    assert (record["input_tokens"], record["output_tokens"]) == (INPUT_TOKENS, OUTPUT_TOKENS)
    assert record["cost"] == done.spent == (INPUT_TOKENS + 10 * OUTPUT_TOKENS) / 1e6
    assert "answer-100" in json.dumps(record["raw"])


@pytest.mark.parametrize("state", ["expired", "failed", "cancelled", "done"])
def test_a_job_that_ends_early_keeps_its_finished_rows(tmp_path, provider, state):
    """Three of four rows are kept; the one that did not come is asked for in the next run only."""
    with BatchServer(plans=[Plan(state=state, finished=3, errors=state == "done")]) as server:
        first = generate(tmp_path, server, provider, 4)
        second = generate(tmp_path, server, provider, 4)
    assert (first.kept, first.failed, second.kept, second.already, second.failed) == (3, 1, 1, 3, 0)
    assert kept(tmp_path) == {0, 1, 2, 3}
    assert set(billed(server).values()) == {1}


def test_a_job_without_results_is_all_failed(tmp_path, provider):
    """An expired job with no file of results keeps nothing and blocks nothing."""
    with BatchServer(plans=[Plan(state="expired", finished=0)]) as server:
        assert generate(tmp_path, server, provider, 4).failed == 4
        assert generate(tmp_path, server, provider, 4).kept == 4


def test_a_kill_between_submit_and_record_finds_the_job_by_name(tmp_path, provider):
    """The server took the job and the process died: the next run attaches, and submits only the rest."""

    class Dying(PROVIDERS[provider]):
        async def submit(self, name, requests):
            """Submit, and die before anyone hears of it."""
            await super().submit(name, requests)
            raise Killed

    with BatchServer() as server:
        generate(tmp_path, server, provider, 3)
        for count in (7, 11):  # the second kill leaves two pages of jobs to look through
            with pytest.raises(Killed):
                generate(tmp_path, server, provider, count, made=Dying)
        assert len(server.jobs) == 3
        done = generate(tmp_path, server, provider, 12)
    assert [len(job.rows) for job in server.jobs.values()] == [3, 4, 4, 1]
    assert kept(tmp_path) == set(range(12))
    assert done.failed == 0
    assert set(billed(server).values()) == {1}


@pytest.mark.parametrize("method", ["submit", "find", "state", "results"])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_around_any_call_buys_nothing_twice(tmp_path, provider, method, after):
    """Dying before or after each kind of call leaves a run that ends as if nothing had happened."""

    async def dying(self, *args):
        """Die before the call or after it."""
        if after:
            await getattr(PROVIDERS[provider], method)(self, *args)
        raise Killed

    with BatchServer() as server:
        for _ in range(2):  # the second time round there is something to find
            made = type("Dying", (PROVIDERS[provider],), {method: dying})
            try:
                generate(tmp_path, server, provider, 6, made=made)
            except Killed:
                continue
        generate(tmp_path, server, provider, 6)
    assert kept(tmp_path) == set(range(6))
    assert set(billed(server).values()) == {1}


def test_a_job_that_never_reached_the_provider_is_submitted_again(tmp_path, provider):
    """An intent whose name the provider does not know is dropped, and its drafts are asked for."""

    async def dying(_self, _name, _requests):
        """Die before anything is sent."""
        raise Killed

    with BatchServer() as server:
        with pytest.raises(Killed):
            generate(
                tmp_path, server, provider, 4, made=type("Dying", (PROVIDERS[provider],), {"submit": dying})
            )
        assert generate(tmp_path, server, provider, 4).kept == 4
        assert len(server.jobs) == 1


def test_an_open_job_is_kept_even_if_its_drafts_are_no_longer_asked_for(tmp_path, provider):
    """What was bought goes to the journal, whatever the next run asks for."""
    with BatchServer(plans=[Plan(looks=10**9)]) as server:
        stopped = generate(tmp_path, server, provider, 4, stop=3)
        assert stopped.stopped == "it was interrupted"
        server.jobs["job-0"].plan = Plan()
        assert generate(tmp_path, server, provider, 0).kept == 4


def test_results_that_were_journaled_before_a_kill_are_not_written_twice(tmp_path, provider):
    """Dying between the journal and the ledger's last line costs a fetch, nothing else."""
    with BatchServer() as server:
        generate(tmp_path, server, provider, 4)
        ledger = tmp_path / "drafts.jsonl.batches"
        ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:2]))
        again = generate(tmp_path, server, provider, 4)
    assert (again.kept, again.failed, again.already) == (0, 0, 4)
    assert kept(tmp_path) == {0, 1, 2, 3}
    assert len(server.jobs) == 1


def test_a_kill_before_results_are_journaled_costs_a_fetch(tmp_path, provider, monkeypatch):
    """A job is closed in the ledger only when its rows are in the journal."""

    def dying(*_):
        """Die with the results in hand."""
        raise Killed

    with BatchServer() as server:
        with monkeypatch.context() as patched:
            patched.setattr(BatchRun, "_keep", dying)
            with pytest.raises(Killed):
                generate(tmp_path, server, provider, 4)
        assert generate(tmp_path, server, provider, 4).kept == 4
    assert len(server.jobs) == 1


@pytest.mark.parametrize("route", ["create", "get", "download"])
def test_a_503_is_tried_again(tmp_path, provider, route):
    """A provider that is away twice is asked a third time; no job is submitted twice."""
    with BatchServer(fail={f"{provider}_{route}": [503, 503]}) as server:
        assert generate(tmp_path, server, provider, 4).kept == 4
    assert len(server.jobs) == 1


def test_a_provider_that_stays_away_ends_the_run_and_nothing_is_lost(tmp_path, provider):
    """After the last attempt the run ends with an error; the next one fetches the results."""
    with BatchServer(fail={f"{provider}_download": [503] * 3}) as server:
        with pytest.raises(TryAgainError):
            generate(tmp_path, server, provider, 4)
        assert generate(tmp_path, server, provider, 4).kept == 4
    assert len(server.jobs) == 1


def test_an_accepted_job_whose_answer_was_lost_is_not_submitted_twice(tmp_path, provider):
    """When the answer to a submission does not arrive, the job is looked for before it is sent again."""

    class Losing(PROVIDERS[provider]):
        async def submit(self, name, requests):
            """Submit, and hear nothing."""
            await super().submit(name, requests)
            raise TryAgainError("the connection failed")

    with BatchServer() as server:
        assert generate(tmp_path, server, provider, 4, made=Losing).kept == 4
    assert len(server.jobs) == 1


def test_duplicates_are_ignored_and_strangers_are_an_error(tmp_path, provider):
    """A key that comes twice counts once; a key that nobody sent is not taken for another's."""
    with BatchServer(plans=[Plan(twice=True), Plan(stranger=True)]) as server:
        assert generate(tmp_path, server, provider, 4).kept == 4
        with pytest.raises(GenerationError, match="not asked for"):
            generate(tmp_path, server, provider, 8)
    assert kept(tmp_path) == set(range(8))


def test_a_job_that_the_provider_forgot_is_an_error_that_names_the_way_out(tmp_path, provider):
    """A 404 for a job may be another account's key: nothing is bought again without being told."""
    with BatchServer(plans=[Plan(looks=10**9)]) as server:
        generate(tmp_path, server, provider, 4, stop=3)
        server.jobs.clear()
        server.plans = ()
        with pytest.raises(GenerationError, match=r"remove .*drafts\.jsonl\.batches"):
            generate(tmp_path, server, provider, 4)
        (tmp_path / "drafts.jsonl.batches").unlink()
        assert generate(tmp_path, server, provider, 4).kept == 4


def test_a_ledger_cut_at_any_byte_recovers(tmp_path):
    """However a kill cut the ledger, the run ends with every draft, and none bought without need."""
    with BatchServer() as server:
        (tmp_path / "whole").mkdir()
        generate(tmp_path / "whole", server, "gemini", 4)
        data = (tmp_path / "whole" / "drafts.jsonl.batches").read_bytes()
        for cut in (0, *range(70, len(data) + 1)):  # a write is torn at a block's end, not in its first bytes
            path = tmp_path / "cut.batches"
            path.write_bytes(data[:cut])
            ledger = Ledger(path)
            whole = data[: cut + 1].count(b"\n")  # a lost newline loses no line
            assert path.read_bytes() == b"".join(data.splitlines(keepends=True)[:whole])
            assert len(ledger) == (1 if whole in {1, 2} else 0)
            assert all((batch.job is not None) == (whole == 2) for batch in ledger.open.values())
            ledger.close()
        for whole in range(4):  # and a whole run from each of the four
            folder = tmp_path / str(whole)
            folder.mkdir()
            lines = data.splitlines(keepends=True)
            half = lines[whole][:80] if whole < 3 else b""
            (folder / "drafts.jsonl.batches").write_bytes(b"".join(lines[:whole]) + half)
            before = len(server.jobs)
            assert generate(folder, server, "gemini", 4).kept == 4
            assert len(server.jobs) - before == (0 if whole in {1, 2} else 1)


def test_a_damaged_ledger_is_refused(tmp_path):
    """A line that was changed after it was written is an error, not a guess."""
    with BatchServer() as server:
        generate(tmp_path, server, "gemini", 1)
        ledger = tmp_path / "drafts.jsonl.batches"
        ledger.write_bytes(ledger.read_bytes().replace(b'"s1"', b'"s2"'))
        with pytest.raises(BadInputError, match="damaged"):
            generate(tmp_path, server, "gemini", 1)


def test_the_spend_cap_holds_over_jobs_that_an_earlier_run_left_open(tmp_path, provider):
    """Money promised for an open job counts in the next run too."""
    one = PRICE.most(next(tasks(SimpleNamespace(model="m", source=None), 1)).request)
    with BatchServer(plans=[Plan(looks=10**9)]) as server:
        generate(tmp_path, server, provider, 4, stop=3)
        run = generate(tmp_path, server, provider, 20, cap=6.5 * one, stop=6)
    assert "spend cap" in run.stopped
    assert sum(len(job.rows) for job in server.jobs.values()) == 6


def test_a_lot_ends_where_its_bytes_do(tmp_path, provider):
    """Lots are small in bytes as well as in rows."""
    with BatchServer() as server:
        generate(tmp_path, server, provider, 4, limits=replace(QUICK, batch_bytes=1, jobs=2))
    assert [len(job.rows) for job in server.jobs.values()] == [1, 1, 1, 1]


def test_a_file_may_go_up_in_pieces():
    """A batch of more than eight megabytes reaches Gemini whole."""
    wide = EncodedImage(data=PNG + bytes(7 * 2**20), media_type="image/png", sha256="0")

    async def whole(server):
        batch = GeminiBatch("m-1", api_key=KEY, base_url=server.url("gemini"), timeout=LIMIT)
        (task,) = tasks(batch, 1)
        try:
            return await batch.submit("n", [("k", replace(task.request, image=wide))])
        finally:
            await batch.close()

    with BatchServer() as server:
        assert asyncio.run(whole(server)) == "batches/job-0"
        assert server.calls["gemini_upload"] == 2


def test_jobs_of_another_model_in_the_same_ledger_are_left_alone(tmp_path):
    """One ledger serves all models of a journal; each run looks after its own jobs."""
    with BatchServer(plans=[Plan(looks=10**9)]) as server:
        generate(tmp_path, server, "gemini", 2, stop=3)
        assert generate(tmp_path, server, "mistral", 2).kept == 2
        server.jobs["job-0"].plan = Plan()
        assert generate(tmp_path, server, "gemini", 2).kept == 2


@pytest.mark.parametrize("route", ["create", "get", "download"])
@pytest.mark.parametrize("code", [400, 503])
def test_the_key_and_the_prompt_stay_out_of_errors_and_files(tmp_path, provider, route, code, caplog):
    """Whatever a provider repeats, no message, log or ledger holds the key or the prompt."""
    caplog.set_level(logging.DEBUG, logger="tabon")
    with BatchServer(fail={f"{provider}_{route}": [code] * 9}) as server:
        with pytest.raises(TabonError) as caught:
            generate(tmp_path, server, provider, 2)
        refused = pytest.raises(TabonError)
        with refused as wrong:
            generate(tmp_path, server, provider, 3, key="another-canary-key")
    shown = [str(caught.value), repr(caught.value), str(wrong.value), caplog.text]
    shown += [path.read_text() for path in tmp_path.iterdir()]
    for secret in (KEY, "another-canary-key", PROMPT):
        assert not any(secret in text for text in shown)
    assert caught.value.__cause__ is None


def test_a_row_that_cannot_be_read_is_kept_as_malformed():
    """It was bought, so it is journaled as what it is."""

    def read(body):
        """Fail as a client's types do."""
        raise ValueError(body)

    answer = answer_from({"odd": 1}, read)
    assert (answer.outcome, answer.raw) == ("malformed", {"odd": 1})


def test_limits_that_let_nothing_through_are_refused():
    """An empty batch would never end."""
    with pytest.raises(BadInputError):
        BatchLimits(batch=0)


def test_a_job_that_the_first_version_left_open_is_fetched(tmp_path, provider, monkeypatch):
    """Its rows were sent under keys without a seed; they are matched and kept, and none is bought again."""

    class Own(PROVIDERS[provider]):
        """At what counts as the provider's own address."""

        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.source = None

    ledger = tmp_path / "drafts.jsonl.batches"
    with BatchServer(plans=[Plan(looks=10**9)]) as server:
        with monkeypatch.context() as patched:
            patched.setattr(DraftKey, "digest", DraftKey.old_digest)
            generate(tmp_path, server, provider, 4, made=Own, stop=3)
        records = [json.loads(line) for line in ledger.read_bytes().splitlines()]
        for draft in records[0]["drafts"]:
            draft["seed"] = draft["key"].pop("seed")
            del draft["key"]["source"]
        del records[0]["source"]
        lines = [{name: record[name] for name in record if name != "crc"} for record in records]
        ledger.write_bytes(b"".join(map(record_line, lines)))
        server.jobs["job-0"].plan = Plan()
        assert generate(tmp_path, server, provider, 4, made=Own).kept == 4
        assert generate(tmp_path, server, provider, 4, made=Own).already == 4
    assert kept(tmp_path) == {0, 1, 2, 3}
    assert len(server.jobs) == 1


def test_jobs_at_another_address_are_left_alone(tmp_path, provider):
    """A job is asked after at the server that has it."""
    with BatchServer(plans=[Plan(looks=10**9)]) as first, BatchServer() as second:
        generate(tmp_path, first, provider, 2, stop=3)
        assert generate(tmp_path, second, provider, 2).kept == 2
        first.jobs["job-0"].plan = Plan()
        assert generate(tmp_path, first, provider, 2).kept == 2
    assert {record["source"] for record in read_journal(tmp_path / "drafts.jsonl")} == {
        first.url(provider),
        second.url(provider),
    }
