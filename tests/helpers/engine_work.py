"""Work that notes in a file when it begins and ends, for workers of an engine to import.

Run as a program it is a driver that can be killed: it answers queries in parts
on the cluster that it is told.
"""

import json
import os
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tabon.integrations.engines import SpreadEncoder, open_engine, select_parts
from tabon.selectors.setup import SelectionSettings
from waiting import until


@dataclass(frozen=True)
class Noted:
    """Work that stands still at a gate, if it is given one, and says in a log which worker did what."""

    work: object
    log: str
    gate: str = ""  # a file that work waits for once `free` pieces are done, so that every node gets one
    free: int = 0

    def __call__(self, shared, piece):
        """Do the work between two lines of the log."""
        name = shared.key(piece) if hasattr(shared, "key") else sha256(repr(piece).encode()).hexdigest()
        self._note("start", name)
        self._wait(name)
        result = self.work(shared, piece)
        self._note("end", name)
        return result

    def _wait(self, name):
        """Stand still until the gate is there, where there is one; not for ever."""
        if self.gate and len(notes(self.log, "end")) >= self.free:
            self._note("gate", name)
            until(Path(self.gate).exists, "the gate is opened", limit=600)

    def _note(self, what, name):
        """Add a line; the parent of a worker is its node."""
        line = json.dumps({"what": what, "piece": name, "node": os.getppid()}) + "\n"
        handle = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, line.encode())
        os.close(handle)


class NotingEngine:
    """Another engine, whose work is noted."""

    def __init__(self, engine, log, gate="", free=0):
        self._engine, self._log, self._rest = engine, str(log), (str(gate), free)

    @property
    def slots(self):
        """As many as the other engine has."""
        return self._engine.slots

    def run(self, work, pieces, *, shared):
        """Have the pieces done, noted."""
        return self._engine.run(Noted(work, self._log, *self._rest), pieces, shared=shared)

    def encoder(self, spec):
        """Return an encoder whose pieces are noted."""
        return SpreadEncoder(self, spec)


def notes(log, what):
    """Return the noted lines of one kind as (piece, node)."""
    path = Path(log)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = map(json.loads, lines)
    return [(record["piece"], record["node"]) for record in records if record["what"] == what]


def drive(url, bank, queries, out, log, gate, free, queries_a_part):  # noqa: PLR0913, PLR0917
    """Answer a file of queries on a cluster."""
    engine = NotingEngine(open_engine(url), log, gate, int(free))
    with Path(queries).open("rb") as lines:
        select_parts(
            engine, Path(bank), SelectionSettings(), lines, Path(out), queries_a_part=int(queries_a_part)
        )


if __name__ == "__main__":
    drive(*sys.argv[1:])
