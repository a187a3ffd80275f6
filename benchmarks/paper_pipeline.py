"""From JSON Lines to tables at the paper's scale and beyond: `python benchmarks/paper_pipeline.py --out PNG`.

What each command takes, and how that grows; `run.py paper-pipeline` makes no picture. The cohort is
simulated, the encoder is `hashing` (what is measured is tabon, not a model), and each command is a process of
its own, without a sentence store. A slope is the exponent of growth over the last two sizes.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from growth import Curve, draw, read_arguments, write_csv
from start_up import COMMAND, Cost, cost
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from timing import Line, share

TRANSITIONS, QUERIES, DRAFTS = 22_745, 1_727, 5
TIMES = (1, 3, 10)
BOUND_MB = 1500


def paper_pipeline_lines(*, quick: bool, picture: Path | None = None) -> Iterator[Line]:
    """Run every step at every size; `quick` at a two-hundredth of the last two."""
    part, sizes = (200, TIMES[1:]) if quick else (1, TIMES)
    with TemporaryDirectory() as folder:
        costs = [pipeline(Path(folder) / str(times), times / part) for times in sizes]
    curves = []
    for step, last in costs[-1].items():
        seconds = [found[step].seconds for found in costs]
        megabytes = [found[step].megabytes for found in costs]
        slope = float(np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2]))
        shown = ", ".join(f"{one:.3g}" for one in seconds)
        what = f"`tabon {step}`, CPU seconds at {', '.join(map(str, sizes))} times {TRANSITIONS // part}"
        yield Line(f"{what} transitions: {shown}; slope", slope, 1.15, "1.15", slope / 1.15, "≤ 1")
        yield share(f"`tabon {step}`, peak MB at 10 times", last.megabytes, BOUND_MB, f"{BOUND_MB} MB", "≤ 1")
        transitions = tuple(TRANSITIONS * times // part for times in sizes)
        curves.append(Curve("transitions", step, transitions, tuple(seconds), tuple(megabytes)))
    if picture is not None:
        write_csv(curves, picture.with_suffix(".csv"))
        draw(curves, picture)


def pipeline(folder: Path, times: float) -> dict[str, Cost]:
    """Write a cohort of this size, run the commands over it, and return what each took."""
    folder.mkdir()
    transitions, queries, bank = folder / "transitions.jsonl", folder / "queries.jsonl", folder / "bank.tabon"
    cohort = SimulationSettings(patients=max(60, int(1.2 * TRANSITIONS * times)), num_candidates=DRAFTS)
    write(transitions, islice(simulate_transitions(cohort, "train"), max(20, int(TRANSITIONS * times))))
    write(queries, islice(simulate_queries(cohort, "test"), max(4, int(QUERIES * times))))
    build = ["bank", "build", str(transitions), "--out", str(bank), "--encoder", "hashing", "--no-store"]
    search = ["--search", f"index:{folder / 'cells'}?ivf=always"]
    found = {"bank build": cost(COMMAND, build, 1)}
    found["bank index"] = cost(COMMAND, ["bank", "index", str(bank), *search], 1)
    picks, results = [], str(folder / "results.json")
    for name, what, options in (
        ("paper", "", []),
        ("index", " --search index:FOLDER", search),
        ("ot", " --selector transition:cost-ot/knn", ["--selector", "transition:cost-ot/knn"]),
        ("fused", " --selector fused", ["--selector", "fused"]),
    ):
        select = ["select", str(queries), "--bank", str(bank), "--no-store", *options]
        found[f"select{what}"] = cost(COMMAND, [*select, "--out", str(folder / name)], 1)
        picks += ["--selections", f"{name}={folder / name}"]
    found["evaluate"] = cost(COMMAND, ["evaluate", str(queries), *picks, "--out", results], 1)
    found["table"] = cost(COMMAND, ["table", results], 1)
    return found


def write(path: Path, records: Iterable[object]) -> None:
    """Write JSON Lines."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def main() -> None:
    """Measure, print the lines, draw the picture and write a table beside it."""
    arguments = read_arguments(__doc__)
    print("| what | ours | other | against | ratio | goal |\n|---|---|---|---|---|---|")
    for line in paper_pipeline_lines(quick=arguments.quick, picture=arguments.out):
        print(line, flush=True)


if __name__ == "__main__":
    main()
