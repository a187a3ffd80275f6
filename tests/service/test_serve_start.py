"""`tabon serve` takes its port before it loads anything, and says in one sentence why it cannot."""

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from commands import assert_refused, tabon
from service_server import PATIENCE, bank, get, until
from tabon.service import ServeSettings, listening

SLOW = """
import sys
from tabon.cli import serve
load = serve.TransitionBank.load
def slow(path, **options):
    open(sys.argv[-1]).close()
    return load(path, **options)
serve.TransitionBank.load = slow
serve.serve_command(sys.argv[1:-1])
"""


@pytest.fixture
def loading(tmp_path):
    """Yield a process that loads until someone writes to the pipe `gate`, its address and that pipe."""
    bank().save(tmp_path / "bank.tabon")
    gate, log = tmp_path / "gate", tmp_path / "log"
    os.mkfifo(gate)
    command = [sys.executable, "-c", SLOW, "--bank", str(tmp_path / "bank.tabon"), "--port", "0", str(gate)]
    with log.open("wb") as file, subprocess.Popen(command, stderr=file) as process:
        found = until(lambda: re.search(r"listening on (http://\S+);", log.read_text()), "the port is taken")
        try:
            yield process, found.group(1), gate
        finally:
            process.kill()


def test_who_asks_while_the_bank_is_loaded_waits_for_the_answer(loading):
    """The connection is taken at once; the answer comes when the service is ready."""
    _, address, gate = loading
    with ThreadPoolExecutor(1) as pool:
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)):
            asked = pool.submit(get, f"{address}/readyz")
            assert not asked.done()
            gate.write_text("")
        assert asked.result(PATIENCE).json() == {"status": "ready"}


def test_sigterm_ends_a_service_that_loads_at_once(loading):
    """The gate stays shut, so only the signal can end it."""
    process, _, _ = loading
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == -signal.SIGTERM


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_in_use_is_one_sentence_before_anything_is_loaded(host):
    """There is no such bank either, which nobody has looked for yet."""
    with listening(ServeSettings(port=0)) as (taken,):
        port = taken.getsockname()[1]
        done = tabon("serve", "--bank", "nowhere.tabon", "--host", host, "--port", port)
    assert_refused(done, f"port {port} of {host} is in use; end what listens there")


def test_a_port_that_is_not_allowed_is_one_sentence(monkeypatch):
    """As a port below 1024 is for most users."""

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refused)
    done = tabon("serve", "--bank", "nowhere.tabon", "--port", "80")
    assert_refused(done, "port 80 of 127.0.0.1 is not allowed for this user; take one above 1023")


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        ("192.0.2.1", "192.0.2.1 is not an address of this machine; bind 127.0.0.1"),  # RFC 5737: nobody's
        ("x" * 70, "is unknown; write an address of this machine"),
    ],
)
def test_a_host_that_is_not_this_machine_is_one_sentence(host, sentence, tmp_path):
    """With a token, without which a public address is refused."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    token.chmod(0o600)
    done = tabon("serve", "--bank", "nowhere.tabon", "--host", host, "--token-file", token)
    assert_refused(done, sentence)


def test_a_host_that_nobody_knows_is_one_sentence(monkeypatch):
    """As a name that does not resolve."""

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    done = tabon("serve", "--bank", "nowhere.tabon", "--host", "localhost")
    assert_refused(done, "the host 'localhost' is unknown; write an address of this machine")


def test_a_name_with_two_addresses_is_heard_on_those_that_are_here(monkeypatch):
    """As `localhost` on a machine without IPv6."""
    first, second = ((socket.AF_INET, 1, 6, "", (host, 0)) for host in ("192.0.2.1", "127.0.0.1"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [first, second])
    with listening(ServeSettings(host="localhost", port=0)) as sockets:
        assert [one.getsockname()[0] for one in sockets] == ["127.0.0.1"]
