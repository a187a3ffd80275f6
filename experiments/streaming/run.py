"""What stopping drafts early saves, and what it costs: simulated cohorts and Open-i.

    python experiments/streaming/run.py NLMCXR_reports.tgz --stage final

Finished drafts are replayed as if all drafts of a query were written in step, one
word at a time. The page is RESULTS.md beside this file.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "openi"))

import numpy as np
from build import build, seed_folder
from numpy.typing import NDArray
from plan import read_plan

from tabon._internal.atomic_files import replacing
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.data.simulate.drafts import layout
from tabon.encoders import Encoder, load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import TabonError
from tabon.evaluation import Case, Cases, EvaluationSettings, Picks, RunInput, evaluate
from tabon.evaluation.draft_scores import eligible, measure_section
from tabon.evaluation.results import Cell, Results, write_results
from tabon.evaluation.statistics import (
    bootstrap_weights,
    effective_number,
    interval,
    patient_rows,
    sum_by_patient,
)
from tabon.method.bank import TransitionBank
from tabon.metrics import load_metric
from tabon.metrics.protocol import MeasurementStore
from tabon.selectors import Selector
from tabon.selectors.streaming import Halving, StreamingSelector, replay, saved
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import report_from_record

PAPER, FUSED = "novelty/min", "fused"
Values = NDArray[np.float64]
SEEDS = {"dev": (1, 1), "final": (21, 1003)}  # of the simulator and of Open-i
RESAMPLES = 2000
FEW = 5  # drafts; where there are more, fewer rules are tried
TO_THE_END, DEFAULT = "all drafts to the end", "halve at 8, 16, 24"
RULES = {  # from few words to many
    "all at 8": Halving(points=(8,), factor=inf),
    DEFAULT: Halving(),
    "halve at 16, 32": Halving(points=(16, 32)),
    "two at 24": Halving(points=(24,), factor=inf, keep=2),
    TO_THE_END: Halving(points=()),
}
COLUMNS = (
    ("findings", "rouge-l-f"), ("impression", "rouge-l-f"),
    ("findings", "labels-14-micro"), ("impression", "labels-14-micro"), ("report", "state-f1"),
)  # fmt: skip
NAMES = ("F ROUGE-L", "change", "I ROUGE-L", "F labels", "I labels", "state")
HEADINGS = f"| last word | beginnings | rule | words saved | {' | '.join(NAMES)} |"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Queries with the texts of their drafts, and a bank."""

    name: str
    bank: TransitionBank
    cases: tuple[Case, ...]
    texts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    last_word: str
    beginnings: str
    rule: str
    saved: float
    picks: Picks

    @property
    def method(self) -> str:
        """Return what the evaluation calls it."""
        return self.picks.method


@dataclass(frozen=True, slots=True)
class Tools:
    """What all tasks share."""

    encoder: Encoder
    sentences: SentenceStore
    measurements: MeasurementStore

    def task(self, name: str, transitions: Iterator[Any], queries: Iterator[Any], most: int) -> Task:
        """Build a bank, and take the first queries."""
        bank = TransitionBank.build(
            map(transition_from_record, transitions), encoder=self.encoder, store=self.sentences
        )
        records = list(islice(queries, most))
        found = [query_from_record(record) for record in records]
        cases = tuple(Case(query, report_from_record(query.reference)) for query in found)
        return Task(name, bank, cases, tuple(tuple(map(_text, record["candidates"])) for record in records))

    def chooser(self, task: Task, name: str) -> Selector:
        """Return a selector by name."""
        shared: dict[str, Any] = {"encoder": self.encoder, "store": self.sentences}
        if name == PAPER:
            return Selector(task.bank, **shared)
        return Selector(task.bank, name, **shared)


def _text(draft: Any) -> str:  # noqa: ANN401
    """Return a draft as its generator would write it."""
    if "text" in draft:
        return str(draft["text"])
    return layout({"findings": draft["findings"], "impression": draft["impression"]})


def simulated(tools: Tools, seed: int, drafts: int, most: int) -> Task:
    """Return a simulated cohort."""
    settings = SimulationSettings(seed=seed, patients=1200, num_candidates=drafts, splits=(0.7, 0.05, 0.25))
    name = f"Simulated, seed {seed}, K = {drafts}"
    train, test = simulate_transitions(settings, "train"), simulate_queries(settings, "test")
    return tools.task(name, train, test, most)


def open_i(tools: Tools, archive: Path, out: Path, asked: tuple[str, int, str], most: int) -> Task:
    """Return a seed of the Open-i experiment, which is made as experiments/openi says."""
    setting, seed, stage = asked
    build(archive, out, read_plan(), [setting], (seed,), stage)
    folder = seed_folder(out, setting, seed, stage=stage)
    train, test = (_records(folder / f"{name}.jsonl") for name in ("train", "test"))
    return tools.task(f"Open-i `{setting}`, {stage}, seed {seed}", train, test, most)


def _records(path: Path) -> Iterator[Any]:
    """Yield the records of a file."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def plans(*, short: bool) -> Iterator[tuple[str, str, str]]:
    """Yield who has the last word, who compares beginnings, and the rule."""
    yield FUSED, "–", TO_THE_END
    for rule in [DEFAULT] if short else [rule for rule in RULES if rule != TO_THE_END]:
        yield FUSED, FUSED, rule
    yield PAPER, "–", TO_THE_END
    yield PAPER, FUSED, DEFAULT
    yield PAPER, PAPER, DEFAULT


def run_task(tools: Tools, task: Task) -> tuple[list[Row], Results]:
    """Replay every plan on a task and judge what was picked."""
    queries = [case.query for case in task.cases]
    choosers = {name: tools.chooser(task, name) for name in (FUSED, PAPER)}
    rows: list[Row] = []
    for last_word, beginnings, label in plans(short=len(task.texts[0]) > FEW):
        selector, partial = choosers[last_word], choosers.get(beginnings)
        streaming = StreamingSelector(selector, partial=partial, rule=RULES[label])
        found = replay(streaming, queries, task.texts)
        selections, name = [one.selection for one in found], f"{last_word} < {beginnings} < {label}"
        picks = Picks.of(name, queries, selections, selections[0].signature)
        rows.append(Row(last_word, beginnings, label, saved(found), picks))
        print(f"{task.name}: {picks.method}: {saved(found):.3f}", file=sys.stderr, flush=True)
    cases = Cases(name=task.name, cases=task.cases, left_out=0, sha256="")
    metrics = [load_metric("rouge"), load_metric("labels")]
    run = RunInput(name=task.name, cases=cases, picks=tuple(row.picks for row in rows))
    settings = EvaluationSettings(resamples=RESAMPLES)
    return rows, evaluate([run], metrics, settings, store=tools.measurements)


def changes(task: Task, rows: Sequence[Row], store: MeasurementStore) -> Iterator[str]:
    """Yield what each row gains on its selector's whole drafts, in % of the gap, patient by patient."""
    cases = eligible(task.cases, "findings")
    measured = measure_section(load_metric("rouge"), cases, "findings", store=store)
    column = [score.name for score in measured.scores].index("rouge-l-f")
    values = measured.per_draft()[..., column]
    random, best = np.nanmean(values, axis=1), np.nanmax(values, axis=1)
    worth = {row.method: _worth(values, random, row.picks.rows(cases)) for row in rows}
    whole = {row.last_word: worth[row.method] for row in rows if row.rule == TO_THE_END}
    patients = patient_rows([case.patient for case in cases])
    weights = bootstrap_weights(int(patients.max()) + 1, RESAMPLES, np.random.default_rng(0))
    for row in rows:
        pair = np.stack([worth[row.method] - whole[row.last_word], best - random], axis=1)
        sums = sum_by_patient(pair, patients, weights.shape[1])
        gained, gap = (weights @ sums).T
        low, high = interval(100 * gained / gap, effective_number(np.bincount(patients).astype(np.float64)))
        total = 100 * sums[:, 0].sum() / sums[:, 1].sum()
        yield "–" if row.rule == TO_THE_END else f"{total:+.1f} [{low:.1f}, {high:.1f}]"


def _worth(values: Values, random: Values, picks: NDArray[np.intp]) -> Values:
    """Return what each pick is worth; where there is none, the expected random one."""
    chosen: Values = np.take_along_axis(values, np.maximum(picks, 0)[:, None], axis=1)[:, 0]
    return np.where(picks < 0, random, chosen)


def lines(task: Task, rows: Sequence[Row], results: Results, changed: Iterator[str]) -> Iterator[str]:
    """Yield one task's part of the page."""
    words = [len(text.split()) for drafts in task.texts for text in drafts]
    yield f"\n## {task.name}\n"
    yield f"{len(task.cases)} queries, {sum(words) / len(words):.1f} words a draft on average.\n"
    yield HEADINGS
    yield "|---" * (HEADINGS.count("|") - 1) + "|"
    count = len(task.texts[0])
    yield f"| – | – | one draft only (random) | {100 * (1 - 1 / count):.0f} % |{' 0 |' * (len(COLUMNS) + 1)}"
    for row, change in zip(rows, changed, strict=True):
        cells = [
            results.cell(run=task.name, section=part, method=row.method, score=score)
            for part, score in COLUMNS
        ]
        first = f"| `{row.last_word}` | {row.beginnings} | {row.rule} | {100 * row.saved:.1f} % |"
        gaps = [_gap(cell) for cell in cells]
        yield f"{first} {' | '.join([gaps[0], change, *gaps[1:]])} |"


def _gap(cell: Cell | None) -> str:
    """Write a share of the gap in percent, with its interval."""
    if cell is None or cell.gap is None or cell.gap_low is None or cell.gap_high is None:
        return "–"
    return f"{100 * cell.gap:.1f} [{100 * cell.gap_low:.1f}, {100 * cell.gap_high:.1f}]"


def tasks(tools: Tools, asked: argparse.Namespace) -> Iterator[Task]:
    """Yield the data sets, one at a time."""
    seed, openi_seed = SEEDS[asked.stage]
    yield simulated(tools, seed, 5, asked.queries)
    yield open_i(tools, asked.archive, asked.out, ("base", openi_seed, asked.stage), asked.queries)
    yield simulated(tools, seed, 16, asked.queries // 3)
    yield open_i(tools, asked.archive, asked.out, ("k16", openi_seed, asked.stage), asked.queries // 3)


HEAD = """
# Stopping drafts early: words saved against the gap closed

Share of the random → oracle gap closed, in %, with 95 % intervals (patients resampled). F: Findings,
I: Impressions, labels: `labels-14-micro`, state: `state-f1` of the simulator. Words saved: share of all
words of all drafts that are not written when drafts write in step. Change: F ROUGE-L against the same
selector with all drafts to the end, study by study. What the rules are: [README](README.md).
"""


def main() -> int:
    """Run all data sets of a stage; say why where that cannot be done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", type=Path, help="NLMCXR_reports.tgz")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("output"), help="a folder")
    parser.add_argument("--stage", choices=tuple(SEEDS), default="final")
    parser.add_argument(
        "--queries", type=int, default=400, help="of each data set; a third of them for K = 16"
    )
    parser.add_argument("--page", type=Path, default=Path(__file__).with_name("RESULTS.md"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    options = f"--stage {asked.stage} --queries {asked.queries}"
    page = [f"`python experiments/streaming/run.py NLMCXR_reports.tgz {options}`", HEAD.rstrip()]
    try:
        stores = (
            SentenceStore(asked.out / "sentences.sqlite"),
            MeasurementStore(asked.out / "measured.sqlite"),
        )
        tools = Tools(load_encoder("minilm"), *stores)
        for number, task in enumerate(tasks(tools, asked)):
            rows, results = run_task(tools, task)
            write_results(asked.out / f"results-{number}.json", results)
            page += lines(task, rows, results, changes(task, rows, tools.measurements))
            with replacing(asked.page) as file:
                file.write("\n".join(page).encode() + b"\n")
    except TabonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
