"""Write the Open-i experiment as files that tabon reads.

    python experiments/openi/build.py ARCHIVE --out FOLDER --settings base --seeds 1000-1004

For each setting and seed: `train.jsonl` for `tabon bank build`, `valid.jsonl` and
`test.jsonl` for `tabon select` and `tabon evaluate`. The same archive and settings
give the same bytes.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from drafts import DraftMaker
from linking import Corpus, Deal, Rows, Visits, deal_dev, deal_final, link, make_corpus
from plan import Plan, numbers, read_plan
from reading import OpeniReport, read_reports

from tabon.errors import TabonError
from tabon.reporting.experiment.runner import write_lines

DEALS = {"final": deal_final, "dev": deal_dev}


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One seed: what the bank learns from, and queries with drafts."""

    bank: Visits
    valid: Visits
    test: Visits
    valid_drafts: list[list[OpeniReport]]  # of each query
    test_drafts: list[list[OpeniReport]]
    pool: Rows


def make_task(corpus: Corpus, plan: Plan, setting: str, seed: int, *, stage: str = "final") -> Task:
    """Deal the reports, link visits and retrieve drafts: all of one stream of random numbers."""
    rng, noise = np.random.default_rng(seed), plan.splits.link_noise
    dealt: Deal = DEALS[stage](len(corpus.reports), plan.splits, plan.stage(stage), rng)
    valid = link(corpus, dealt.valid, noise, rng)
    test = link(corpus, dealt.test, noise, rng)
    maker = DraftMaker(corpus, dealt.pool, plan.setting(setting), rng)
    valid_drafts, test_drafts = maker.drafts(valid), maker.drafts(test)
    return Task(
        bank=link(corpus, dealt.bank, noise, rng),
        valid=valid,
        test=test,
        valid_drafts=valid_drafts,
        test_drafts=test_drafts,
        pool=dealt.pool,
    )


def seed_folder(out: Path, setting: str, seed: int, *, stage: str = "final") -> Path:
    """Return where a seed's files lie."""
    return out / setting / (str(seed) if stage == "final" else f"{stage}-{seed}")


def write_task(folder: Path, corpus: Corpus, task: Task) -> None:
    """Write the three files of a seed."""
    write_lines(folder / "train.jsonl", _transitions(corpus, task.bank))
    write_lines(folder / "valid.jsonl", _queries(corpus, task.valid, task.valid_drafts))
    write_lines(folder / "test.jsonl", _queries(corpus, task.test, task.test_drafts))


def _transitions(corpus: Corpus, visits: Visits) -> Iterator[dict[str, Any]]:
    """Yield the records of the transitions contract."""
    for prior, current in _linked(corpus, visits):
        yield {**_names(prior, current), "prior": _record(prior), "current": _record(current)}


def _queries(corpus: Corpus, visits: Visits, drafts: list[list[OpeniReport]]) -> Iterator[dict[str, Any]]:
    """Yield the records of the queries contract; facts stand beside the drafts and the reference."""
    for (prior, reference), candidates in zip(_linked(corpus, visits), drafts, strict=True):
        yield {
            **_names(prior, reference),
            "prior": _record(prior),
            "candidates": [{**_record(draft), "facts": sorted(draft.facts)} for draft in candidates],
            "reference": _record(reference),
            "facts": sorted(reference.facts),
        }


def _linked(corpus: Corpus, visits: Visits) -> Iterator[tuple[OpeniReport, OpeniReport]]:
    """Yield each prior with what came next."""
    for prior, current in zip(visits.prior, visits.current, strict=True):
        yield corpus.reports[prior], corpus.reports[current]


def _names(prior: OpeniReport, current: OpeniReport) -> dict[str, str]:
    """Return the id of a pair of visits and its made-up patient."""
    return {"id": f"{prior.number}-{current.number}", "patient": str(prior.number)}


def _record(report: OpeniReport) -> dict[str, Any]:
    """Return a report with its number."""
    return {"report": report.number, "findings": report.findings, "impression": report.impression}


def build(  # what is built, from what, and where to
    archive: Path, out: Path, plan: Plan, settings: list[str], seeds: tuple[int, ...], stage: str
) -> None:
    """Write every seed of every setting."""
    for setting in settings:
        plan.setting(setting)
    corpus = make_corpus(read_reports(archive))
    for setting in settings:
        for seed in seeds:
            folder = seed_folder(out, setting, seed, stage=stage)
            write_task(folder, corpus, make_task(corpus, plan, setting, seed, stage=stage))


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return the options that building and running share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", type=Path, help="NLMCXR_reports.tgz")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("output"), help="a folder")
    parser.add_argument("--settings", nargs="+", default=["base"], help="base, noisy, text, k16")
    parser.add_argument("--seeds", type=str, default="", help="such as 1000-1004; default: the plan's")
    parser.add_argument("--stage", choices=tuple(DEALS), default="final", help="dev: no reserved reports")
    return parser


def main() -> int:
    """Build what was asked for; say why where that cannot be done."""
    asked = arguments(__doc__).parse_args()
    plan = read_plan()
    try:
        seeds = numbers(asked.seeds) if asked.seeds else plan.seeds
        build(asked.archive, asked.out, plan, asked.settings, seeds, asked.stage)
    except TabonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"wrote {len(asked.settings) * len(seeds)} seeds to {asked.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
