"""The service on a loopback port: in a thread of the test, or as a process whose encoder waits for a file."""

import logging
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Event, Thread

import httpx
import numpy as np

from tabon import Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders.hashing import HashingEncoder
from tabon.encoders.sentence_store import CachingEncoder
from tabon.service import AnswerSettings, QueryService, ServeSettings, guarded_app, serve
from tabon.service.guard import guard_settings
from tabon.service.server import listening, server_of
from tabon.text.records import transition_from_record
from waiting import LIMIT, until

SIMULATED = SimulationSettings(patients=60)
PATIENCE = LIMIT  # seconds until a wait is given up; a busy machine may take many of them
WORD = "Zq"  # a sentence with it waits at the gate; the golden query has none


@cache
def bank():
    """Return a small simulated bank."""
    return TransitionBank.build(
        map(transition_from_record, simulate_transitions(SIMULATED, "train")), encoder=HashingEncoder()
    )


@cache
def queries():
    """Return the simulated test queries, as records."""
    return list(simulate_queries(SIMULATED, "test"))


def http(**options):
    """Return a client for loopback; it reads no certificates, which takes longer than a hundred requests."""
    return httpx.Client(**{"verify": False, "trust_env": False, "timeout": PATIENCE, **options})


def ask(method, url, **options):
    """Send one request over a connection of its own."""
    with http() as client:
        return client.request(method, url, **options)


def get(url, **options):
    """Send one GET."""
    return ask("GET", url, **options)


def post(url, **options):
    """Send one POST."""
    return ask("POST", url, **options)


RARELY = 1e6  # seconds between looks at the golden query: none joins a queue that a test counts


class GatedEncoder(HashingEncoder):
    """The hashing encoder, which can be held up, made to fail, or to answer otherwise."""

    def __init__(self, opened=None):
        self.gate = Event()
        self.gate.set()
        self.opened = self.gate.wait if opened is None else opened
        self.calls, self.poison, self.turned = 0, None, False
        self.seen = []  # the sentences of each call

    def encode(self, sentences, /):
        """Wait at the gate, then encode."""
        self.calls += 1
        self.seen.append(list(sentences))
        if any(WORD in text for text in sentences):
            self.opened(PATIENCE)
        if self.poison and any(self.poison in text for text in sentences):
            raise RuntimeError(f"failed on {sentences}")
        rows = super().encode(sentences)
        return np.roll(rows, 1, axis=1) if self.turned else rows


def gated(number=1):
    """Return a query that waits at the gate."""
    return {"id": number, "prior": f"FINDINGS: {WORD} clear.", "candidates": [f"FINDINGS: {WORD} edema."]}


def query_service(encoder=None, *, cached=1000, of=None, selector="transition", others=(), **settings):
    """Return a query service over the small bank, or another."""
    known = bank() if of is None else of
    own = HashingEncoder() if encoder is None else encoder
    cache = CachingEncoder(own, cached) if cached else None
    chosen = AnswerSettings(**{"timeout": PATIENCE, "check_seconds": RARELY, **settings})
    names = (selector, *others)
    selectors = {name: Selector(known, name, encoder=own if cache is None else cache) for name in names}
    return QueryService(known, selectors, settings=chosen, cache=cache)


@contextmanager
def serving(app, **settings):
    """Run an application on a free loopback port and yield its address."""
    chosen = ServeSettings(**{"port": 0, "client_seconds": PATIENCE, **settings})
    server = server_of(app, chosen, patience=PATIENCE)
    with listening(chosen) as sockets:
        thread = Thread(target=server.run, args=(sockets,), daemon=True)
        port = sockets[0].getsockname()[1]
        thread.start()
        until(lambda: server.started or not thread.is_alive(), "the server starts")
        assert server.started
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(2 * PATIENCE)
    assert not thread.is_alive()


@contextmanager
def service(answers=None, *, token=None, allowed=(), host="127.0.0.1", body=1_000_000, route_modules=()):
    """Run the service and yield its address."""
    guard = replace(guard_settings(host, token=token, allowed=allowed, body=body), body_seconds=PATIENCE)
    with serving(
        guarded_app(query_service() if answers is None else answers, guard, route_modules)
    ) as address:
        yield address


@dataclass(frozen=True)
class Running:
    """A service in a process of its own."""

    address: str
    process: subprocess.Popen
    log: Path

    def talk(self):
        """Return what it wrote to standard error so far."""
        return self.log.read_text()


@contextmanager
def program(command, folder, patience=PATIENCE):
    """Start a service that takes a free port, and yield it when its log names the port.

    The log is a file: a pipe that nobody reads would hold the process up when
    it is full. The port is the process's own choice: one that a test had chosen
    could be taken by another test before the process binds it.
    """
    log = folder / "service.log"
    with (
        log.open("wb") as file,
        subprocess.Popen([sys.executable, *command], stdout=file, stderr=subprocess.STDOUT) as process,
    ):

        def found():
            assert process.poll() is None, log.read_text()
            return re.search(r"running on (http://\S+)", log.read_text())

        try:
            yield Running(until(found, "the process starts", patience).group(1), process, log)
        finally:
            process.kill()


def main():
    """Serve a bank with an encoder that waits until a file is there, both named on the command line."""
    path, gate = sys.argv[1:]
    logging.basicConfig(level=logging.INFO)

    def opened(_):
        until(Path(gate).exists, "the gate opens")

    where = ServeSettings(port=0)
    with listening(where) as sockets:
        answers = query_service(GatedEncoder(opened), cached=0, of=TransitionBank.load(path))
        serve(answers, where, sockets=sockets)


if __name__ == "__main__":
    main()
