"""Servers of reader studies: in a thread of the test, and as forks of one process, to be killed.

As a script this is the process that forks: for each line it reads it starts `tabon serve --study` on a free
port in a fork of its own and prints the fork's number; modules are imported once.
"""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from waiting import until

LIMITS = {"token": None, "allowed": (), "body": 1_000_000, "has_readers": True}


@contextmanager
def study_service(folder, **settings):
    """Serve a study from a thread of this process, and yield its address."""
    from service_server import serving
    from tabon.service.guard import guard_settings
    from tabon.service.study.routes import study_app

    with serving(study_app(folder, guard_settings("127.0.0.1", **LIMITS)), **settings) as address:
        yield address


class Killable:
    """`tabon serve --study` in a fork, which can be killed and started again on another port."""

    def __init__(self, folder, starter, log):
        self._folder, self._starter, self._log = folder, starter, log
        self.address = self._fork = None

    def start(self, port=0):
        """Start the service and wait until it says where it is."""
        self._log.write_text("")
        request = {"folder": str(self._folder), "log": str(self._log), "port": port}
        print(json.dumps(request), file=self._starter.stdin, flush=True)
        self._fork = int(self._starter.stdout.readline())
        found = until(
            lambda: re.search(r"running on (http://\S+)", self._log.read_text()), "the service runs"
        )
        self.address = found.group(1)
        return self

    def kill(self):
        """Send SIGKILL and wait for the end; nothing happens where nothing runs."""
        if self._fork is not None:
            os.kill(self._fork, signal.SIGKILL)
            assert self._starter.stdout.readline().split() == ["ended", str(self._fork)]
            self._fork = None

    @property
    def port(self):
        """Return the port of the service that runs now."""
        return int(self.address.rpartition(":")[2])


@contextmanager
def killable(folder, log):
    """Yield a service of this study that runs; what runs at the end is killed."""
    command = [sys.executable, Path(__file__)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        service = Killable(folder, starter, log)
        try:
            yield service.start()
        finally:
            service.kill()
            starter.stdin.close()


def main():
    """Fork for each line, and say when a fork has ended."""
    import starlette.routing  # noqa: F401
    import uvicorn.protocols.http.h11_impl  # noqa: F401

    from tabon.cli.serve import serve_command

    for line in sys.stdin:
        request = json.loads(line)
        fork = os.fork()
        if fork == 0:
            log = os.open(request["log"], os.O_WRONLY | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            serve_command(["--study", request["folder"], "--port", str(request["port"])])
        print(fork, flush=True)  # noqa: T201
        os.waitpid(fork, 0)
        print("ended", fork, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
