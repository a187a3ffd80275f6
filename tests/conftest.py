"""What holds for every test: no network, no deadlines for hypothesis."""

import socket

import pytest
from hypothesis import settings

settings.register_profile("tabon", deadline=None)
settings.load_profile("tabon")

LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Refuse every connection that leaves the machine."""
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family != socket.AF_UNIX and address[0] not in LOOPBACK:
            raise AssertionError(f"a test tried to reach {address[0]}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
