"""What a command costs before it answers: CPU seconds and peak memory of a process of its own.

One query with MiniLM and no sentence store, beside the same command on the torch engine.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.method.bank import TransitionBank
from tabon.text.records import transition_from_record
from timing import Line, share

COHORT = SimulationSettings(patients=60)
COMMAND = "from tabon.cli import main; main()"
IN_TORCH = (  # the same command, with every model run by torch
    "from tabon.encoders.processor import encoder; from tabon.encoders.torch_engine import encoder as torch; "
    f"encoder.ProcessorEncoder = torch.SentenceTransformerEncoder; {COMMAND}"
)
MEASURE = """
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""  # a small process starts the command: a child's peak is never below that of who starts it


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    seconds: float  # of CPU time
    megabytes: float  # resident, at the most


def start_up_lines(*, quick: bool) -> Iterator[Line]:
    """`--help`, one query, and one query with `fused`, each against its limit and against torch."""
    with TemporaryDirectory() as folder:
        bank, queries = Path(folder) / "bank.tabon", Path(folder) / "query.jsonl"
        cohort = map(transition_from_record, simulate_transitions(COHORT, "train"))
        TransitionBank.build(list(cohort), encoder="minilm").save(bank)
        queries.write_text(json.dumps(next(simulate_queries(COHORT, "test"))) + "\n", encoding="utf-8")
        select = ["select", str(queries), "--bank", str(bank), "--no-store"]
        repetitions = 1 if quick else 3
        helped = cost(COMMAND, ["--help"], repetitions)
        yield share("`tabon --help`, CPU seconds", helped.seconds, 0.3, "0.3 s", "≤ 1")
        for name, options, limit in (("", [], 2.0), (" --selector fused", ["--selector", "fused"], 3.0)):
            ours = cost(COMMAND, [*select, *options], repetitions)
            torch = cost(IN_TORCH, [*select, *options], repetitions)
            what = f"`tabon select{name}` of one query, MiniLM, no store"
            yield share(f"{what}, CPU seconds", ours.seconds, limit, f"{limit} s", "≤ 1")
            yield share(f"{what}, CPU seconds", ours.seconds, torch.seconds, "the torch engine", "—")
            yield share(f"{what}, peak MB", ours.megabytes, 400, "400 MB", "≤ 1")
            yield share(f"{what}, peak MB", ours.megabytes, torch.megabytes, "the torch engine", "—")


def cost(code: str, words: list[str], repetitions: int) -> Cost:
    """Run a command some times; return its least CPU time and its least peak."""
    command = [sys.executable, "-c", MEASURE, sys.executable, "-c", code, *words]
    told = [json.loads(subprocess.check_output(command)) for _ in range(repetitions)]  # noqa: S603
    return Cost(min(seconds for seconds, _ in told), min(megabytes for _, megabytes in told))
