"""Real kill -9 at a chosen step of writing: in forks of one process that has imported what they run.

A step is a call that files feel: open, lock, write, sync, rename, remove. A fork counts its steps
and sends itself SIGKILL at the one that was asked for, so that a seed names the moment.

As a script this is the process that forks; it reads requests as JSON, one per line.
"""

import fcntl
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import _TemporaryFileWrapper

CALLS = ((os, "open fsync replace unlink mkdir rmdir dup"), (fcntl, "flock"))


@dataclass(frozen=True)
class Run:
    """How a fork ended."""

    killed: bool
    code: int
    steps: int  # of a fork that was not killed
    said: str  # on its standard streams


@contextmanager
def forks(folder):
    """Give a function that runs `module:function` on arguments in a fork and returns how it ended."""
    command = [sys.executable, __file__, folder / "said"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
    ) as server:

        def run(function, *arguments, die_at=0, warm=False):
            request = {"function": function, "arguments": arguments, "die_at": die_at, "warm": warm}
            print(json.dumps(request, default=str), file=server.stdin, flush=True)
            status, steps = json.loads(server.stdout.readline())
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            said = "" if warm else (folder / "said").read_text(encoding="utf-8", errors="replace")
            return Run(killed, 0 if killed else os.waitstatus_to_exitcode(status), steps, said)

        yield run
        server.stdin.close()


class Steps:
    """Counts the steps of this process, and dies at one of them."""

    def __init__(self, die_at):
        self.count, self._die_at = 0, die_at

    def take(self, before_death=lambda: None):
        """Count a step."""
        self.count += 1
        if self.count == self._die_at:
            before_death()
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self):
        """Count calls of the system and writes to temporary files from now on."""
        for module, names in CALLS:
            for name in names.split():
                setattr(module, name, self._counted(getattr(module, name)))
        _TemporaryFileWrapper.write = lambda file, data: self._write(file.file, data)

    def _counted(self, function):
        """Return a function that takes a step first."""

        def counted(*args, **kwargs):
            self.take()
            return function(*args, **kwargs)

        return counted

    def _write(self, file, data):
        """Write, and take a step with half of the bytes on their way to the disk."""
        half = len(data) // 2
        file.write(data[:half])
        self.take(before_death=file.flush)
        return half + file.write(data[half:])


def _work(request, function, said, answer):
    """Run the function in this fork and end."""
    os.dup2(said, 1)
    os.dup2(said, 2)
    steps, code = Steps(request["die_at"]), 1
    try:
        steps.watch()
        function(*request["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:  # noqa: BLE001  # as Python itself would end
        traceback.print_exc()
    sys.stdout.flush()
    os.write(answer, str(steps.count).encode())
    os._exit(code)


def answer_with(status, steps):
    """Tell how a request ended."""
    sys.stdout.write(f"{json.dumps([status, steps])}\n")
    sys.stdout.flush()


def _serve(path):
    """Fork for each request; one that warms is done here, so that forks find modules and caches there."""
    for line in sys.stdin:
        request = json.loads(line)
        module, _, name = request["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        if request["warm"]:
            with redirect_stdout(sys.stderr), suppress(SystemExit):
                function(*request["arguments"])
            answer_with(0, 0)
            continue
        answers, answer = os.pipe()
        said = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        if (fork := os.fork()) == 0:
            _work(request, function, said, answer)
        os.close(said)
        os.close(answer)
        status = os.waitpid(fork, 0)[1]
        answer_with(status, int(os.read(answers, 20) or 0))
        os.close(answers)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
