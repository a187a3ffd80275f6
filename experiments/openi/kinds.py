"""Judge selectors on every kind of drafts, and write one table.

    python experiments/openi/kinds.py ARCHIVE --seeds 5000,5001

All kinds of experiment.toml at both levels of noise and both sizes of pools.
Whatever was made from the same inputs before is not made again. The page is
KINDS.md beside this file.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from build import arguments, build, seed_folder
from numpy.typing import NDArray
from plan import Plan, numbers, read_plan
from selecting import Method, SeedRun, Tools

from run import tell
from tabon._internal.atomic_files import replacing
from tabon.errors import TabonError
from tabon.evaluation import Cases
from tabon.metrics import Pair, load_scores
from tabon.text.reports import Report

OURS, CONTROL = Method("fused"), Method("fused", other_prior=True)
RIVALS = tuple(map(Method, ("consensus:rouge-l-f", "next-visit:rouge-l-f", "nearest-prior:rouge-l-f")))
NEAR = 2.0  # points that a selector may be behind the best of a cell
COVERAGES = (0.2, 0.4, 0.6, 0.8, 1.0)
Table = NDArray[np.float64]

HEAD = """
# Open-i: kinds of drafts

Share of the random → oracle gap closed, in %: Impressions ROUGE-L / Findings ROUGE-L / F1 of the report's 14
observations (mean over queries). One draft serves both sections. *Other prior*: `fused` with another
patient's prior. *Paper's best*: in each column the best of its eight methods in that row, chosen afterwards.
*Behind*: by how much `fused` is behind the best of the others in that row, if by more than two points.
How drafts are made: [README](README.md). No choice was made on these seeds, and they were scored once; the
table of trust was learnt on seeds 100 to 103 of stage `dev` and on simulated cohorts 20 to 27
([how](../../docs/notes/2026-11-20-fused-sections.md)). All seeds ask about the same 1,000 reserved reports.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One setting: what every draft is worth, and which one each method takes."""

    name: str
    worth: Table  # (scores, queries, drafts)
    picks: dict[Method, NDArray[np.intp]]  # of each query
    doubt: Table  # distance of each pick of `fused`

    def closed(self, method: Method, rows: NDArray[np.intp] | slice = slice(None)) -> Table:
        """Return the share of each score's gap that a method closes, in percent."""
        worth, picks = self.worth[:, rows], self.picks[method][rows]
        chance, best = worth.mean(axis=(1, 2)), worth.max(axis=2).mean(axis=1)
        found: Table = 100 * (self._taken(worth, picks).mean(axis=1) - chance) / (best - chance)
        return found

    def best(self, methods: Sequence[Method]) -> Table:
        """Return the best of several methods, score by score."""
        found: Table = np.max([self.closed(method) for method in methods], axis=0)
        return found

    def risk(self) -> list[float]:
        """Return 1 - F1 of the labels of the picks of `fused` that are kept, least doubt first."""
        order = np.argsort(self.doubt, kind="stable")
        lost = 1 - self._taken(self.worth, self.picks[OURS])[-1][order]
        return [float(lost[: round(share * len(lost))].mean()) for share in COVERAGES]

    def half_width(self) -> Table:
        """Return half of the 95 % interval of what `fused` closes, by 200 resamples of queries."""
        rng, count = np.random.default_rng(0), len(self.doubt)
        found = [self.closed(OURS, rng.integers(count, size=count)) for _ in range(200)]
        widths: Table = np.diff(np.quantile(found, [0.025, 0.975], axis=0), axis=0)[0] / 2
        return widths

    @staticmethod
    def _taken(worth: Table, picks: NDArray[np.intp]) -> Table:
        """Return what the picked drafts are worth, (scores, queries)."""
        return worth[:, np.arange(len(picks)), picks]


def judge(runs: Sequence[SeedRun], name: str, methods: Sequence[Method]) -> Judged:
    """Select with every method on every seed of a setting, and measure every draft once."""
    worth, picks, doubt = [], [], []
    for run in runs:
        files = [run.select(method, run.chooser(method.selector)) for method in methods]
        answers = [list(map(json.loads, file.read_bytes().splitlines())) for file in files]
        worth.append(measure(run.cases))
        picks.append([[answer["selected"] for answer in found] for found in answers])
        doubt += [min(answer["total_distances"]) for answer in answers[methods.index(OURS)]]
    together = dict(zip(methods, np.concatenate(picks, axis=1), strict=True))
    return Judged(name, np.concatenate(worth, axis=1), together, np.array(doubt))


def measure(cases: Cases) -> Table:
    """Measure every draft against the reference, (scores, queries, drafts)."""

    def values(score: str, read: Callable[[Report], str]) -> Table:
        metric, found = load_scores([score])[score]
        pairs = [
            Pair(reference=read(case.reference), candidate=read(draft))
            for case in cases.cases
            for draft in case.query.candidates
        ]
        return found.value(metric.measure(pairs), np.ones(len(pairs))).reshape(len(cases.cases), -1)

    return np.stack(
        [
            values("rouge-l-f", lambda report: report.impression),
            values("rouge-l-f", lambda report: report.findings),
            values("labels-14-samples", lambda report: f"{report.findings}\n{report.impression}"),
        ]
    )


def page(judged: Sequence[Judged], paper: Sequence[Method]) -> Iterator[str]:
    """Yield the table, its means, and what is lost among the picks that are kept."""
    shown = [OURS, CONTROL, *RIVALS]
    names = ["`fused`", "other prior", *(f"`{rival.selector}`" for rival in RIVALS), "paper's best", "behind"]
    yield f"| drafts | {' | '.join(names)} |"
    yield "|---" * (1 + len(names)) + "|"
    rows = [[*(one.closed(method) for method in shown), one.best(paper)] for one in judged]
    for one, row in zip(judged, rows, strict=True):
        behind = np.max(row[2:], axis=0) - row[0]
        late = " / ".join(f"**{value:.1f}**" if value > NEAR else "–" for value in behind)
        yield f"| {one.name} | {' | '.join(map(_cell, row))} | {late} |"
    means = np.mean(rows, axis=0)
    yield f"| mean | {' | '.join(map(_cell, means))} | |"
    width = np.median([one.half_width() for one in judged], axis=0)
    late = [value > NEAR for row in rows for value in np.max(row[2:], axis=0) - row[0]]
    best = max(means[2:], key=lambda mean: mean.mean())
    yield f"\nThe 95 % interval of one figure of `fused` is ± {_cell(width)} (median of the rows)."
    yield f"`fused` is more than {NEAR:g} points behind in {sum(late)} of {len(late)} figures. Over all"
    yield f"rows it is in the mean ahead of the best rival by {_cell(means[0] - best)} points.\n"
    yield "**Abstaining.** 1 less F1 of the labels among the picks that `fused` is least in doubt about.\n"
    yield f"| drafts | {' | '.join(f'{share:.0%}' for share in COVERAGES)} |"
    yield "|---" * (1 + len(COVERAGES)) + "|"
    for one in judged:
        yield f"| {one.name} | {' | '.join(f'{value:.3f}' for value in one.risk())} |"


def _cell(values: Table) -> str:
    """Write one figure for each score."""
    return " / ".join(f"{value:.0f}" for value in values)


def judge_settings(
    out: Path, plan: Plan, names: Sequence[str], seeds: tuple[int, ...], stage: str
) -> list[str]:
    """Judge every setting, and return the page's lines."""
    tools = Tools(plan.selection, out / "sentences.sqlite", tell)
    paper, judged = list(map(Method, plan.selection.paper)), []
    for name in names:
        runs = [SeedRun(seed_folder(out, name, seed, stage=stage), seed, tools) for seed in seeds]
        judged.append(judge(runs, name, [OURS, CONTROL, *RIVALS, *paper]))
    return list(page(judged, paper))


def write_page(path: Path, command: str, head: str, lines: Sequence[str]) -> None:
    """Write a page under the command that makes it."""
    first = f"`python experiments/openi/{command}`"
    with replacing(path) as written:
        written.write("\n".join([first, head.rstrip(), "", *lines]).encode() + b"\n")


def main() -> int:
    """Run what was asked for; say why where that cannot be done."""
    parser = arguments(__doc__)
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("KINDS.md"))
    asked, plan = parser.parse_args(), read_plan()
    try:
        seeds = numbers(asked.seeds) if asked.seeds else plan.seeds
        build(asked.archive, asked.out, plan, list(plan.kind_settings), seeds, asked.stage)
        lines = judge_settings(asked.out, plan, list(plan.kind_settings), seeds, asked.stage)
    except TabonError as error:
        tell(f"error: {error}")
        return 1
    named = f"--seeds {','.join(map(str, seeds))} --stage {asked.stage}"
    write_page(asked.page, f"kinds.py NLMCXR_reports.tgz {named}", HEAD, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
