"""Judge selectors on every kind of drafts in the simulated cohort, and write one table.

    python experiments/openi/simulated.py --seeds 50

The kinds of experiment.toml made from simulated reports, whose states stand for
MeSH codes, and the drafts of the simulated generator itself, without the prior
(p1) and with it (p3). The page is SIMULATED.md beside this file.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from build import seed_folder
from drafts import DraftMaker
from kinds import judge_settings, write_page
from linking import Visits, make_corpus
from plan import Plan, numbers, read_plan
from reading import OpeniReport

from run import tell
from tabon.data.simulate import Prompt, SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import TabonError
from tabon.reporting.experiment.runner import write_lines

PROMPTS: tuple[Prompt, ...] = ("p1", "p3")
NOISE = {"low": 0.3, "high": 0.6}  # of the simulated generator
SIZES = (5, 16)
QUERIES = 150
COHORT: dict[str, Any] = {"patients": 2400, "splits": (0.6, 0.2, 0.2)}  # bank, draft pool, queries

HEAD = """
# The simulated cohort: kinds of drafts

As [KINDS.md](KINDS.md), on simulated reports: their states stand for MeSH codes, a next visit is the same
patient's, and `p1` and `p3` are the simulated generator's own drafts, without and with the prior in sight.
150 queries a seed. No choice was made on these seeds, and they were scored once; development used cohorts
20 to 27 ([how](../../docs/notes/2026-11-20-fused-sections.md)).
"""


def settings(plan: Plan) -> list[str]:
    """Return the names of all settings."""
    own = [f"{prompt}-{level}-{size}" for prompt in PROMPTS for size in SIZES for level in NOISE]
    return [*plan.kind_settings, *own]


def build(  # what is built, and where to
    out: Path, plan: Plan, names: list[str], seeds: tuple[int, ...], count: int = QUERIES
) -> None:
    """Write the files of every setting and seed."""
    for seed in seeds:
        for name in names:
            folder = seed_folder(out, name, seed)
            write_lines(
                folder / "train.jsonl", simulate_transitions(SimulationSettings(seed=seed, **COHORT), "train")
            )
            write_lines(folder / "test.jsonl", list(queries(plan, name, seed, count))[:count])


def queries(plan: Plan, name: str, seed: int, count: int = QUERIES) -> Iterator[Mapping[str, object]]:
    """Yield the queries of one setting: of the simulated generator, or with drafts made as for Open-i."""
    kind, level, size = name.split("-")
    if kind in PROMPTS:
        own = {"prompt": kind, "noise": NOISE[level], "num_candidates": int(size)}
        yield from simulate_queries(SimulationSettings(seed=seed, **COHORT, **own), "test")
        return
    cohort = SimulationSettings(seed=seed, **COHORT)
    asked = list(simulate_transitions(cohort, "test"))[:count]
    pool = list(simulate_transitions(cohort, "valid"))
    reports = [
        *(_report(record, side) for side in ("prior", "current") for record in asked),
        *(_report(record, "current") for record in pool),
    ]
    rows = np.arange(len(reports))
    visits = Visits(rows[: len(asked)], rows[len(asked) : 2 * len(asked)])
    rng = np.random.default_rng(seed)
    maker = DraftMaker(make_corpus(reports), rows[2 * len(asked) :], plan.setting(name), rng)
    for record, drafts in zip(asked, maker.drafts(visits), strict=True):
        yield {
            "id": record["id"],
            "patient": record["patient"],
            "prior": record["prior"],
            "candidates": [{"findings": one.findings, "impression": one.impression} for one in drafts],
            "reference": record["current"],
        }


def _report(record: Mapping[str, Any], side: str) -> OpeniReport:
    """Return a simulated report; its facts are its state."""
    majors = tuple(fact.replace(": ", "/") for fact in record["state"][side])
    return OpeniReport(number=0, **record[side], majors=majors)


def main() -> int:
    """Run what was asked for; say why where that cannot be done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("output") / "simulated")
    parser.add_argument("--seeds", type=str, default="50", help="such as 50,51")
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("SIMULATED.md"))
    asked, plan = parser.parse_args(), read_plan()
    try:
        seeds, names = numbers(asked.seeds), settings(plan)
        build(asked.out, plan, names, seeds)
        lines = judge_settings(asked.out, plan, names, seeds, "final")
    except TabonError as error:
        tell(f"error: {error}")
        return 1
    write_page(asked.page, f"simulated.py --seeds {asked.seeds}", HEAD, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
