"""`tabon demo`: the whole method on a simulated cohort, beside its rivals, and a page to look at.

The truth behind each simulated report is known, so a draft scores its state-F1. Each
selector is compared with the expected random pick and with the best draft each time.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from tabon._internal.atomic_files import replacing
from tabon.cli.help import Command
from tabon.cli.shared_options import (
    ENCODER_HELP,
    FOLDER,
    PATIENTS_HELP,
    open_store,
    progress_bar,
    reports_errors,
    store_options,
    takes,
)
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.encoders.sentence_store import CachingEncoder, SentenceStore
from tabon.errors import BadInputError
from tabon.evaluation.draft_scores import state_f1
from tabon.evaluation.statistics import (
    bootstrap_weights,
    effective_number,
    interval,
    patient_rows,
    sum_by_patient,
)
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES
from tabon.method.nearest import AGGREGATES
from tabon.method.selection import Selection
from tabon.method.sentence_sets import Progress
from tabon.selectors import Selector
from tabon.selectors.setup import SelectionSettings
from tabon.service.explorer.export import write_report
from tabon.service.explorer.scores import DEFAULT_SCORE, score_named
from tabon.service.explorer.studies import ExplorerSettings, explorer_of
from tabon.text.records import query_from_record, transition_from_record

PAPER = {
    f"{distance} / {how}": f"transition:{distance}/{how}" for distance in DISTANCES for how in AGGREGATES
}
RIVALS = {name: f"{name}:rouge-l-f" for name in ("consensus", "next-visit")} | {"fused": "fused"}
SHOWN = "fused"  # its selections are written, and shown on the page
MIN_TRANSITIONS = 20  # kNN asks for 10 in each section
RESAMPLES = 2000
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the demo's table."""

    method: str
    state_f1: float
    gap_closed: float  # (method - random) / (oracle - random); NaN if there is no gap
    low: float = np.nan  # 95 % interval over patients
    high: float = np.nan

    def gap(self) -> str:
        """Write the gap closed with its interval.

        >>> Row("novelty / min", 0.5, 0.081, -0.02, 0.18).gap()
        '8%  (-2 to 18)'
        """
        if np.isnan(self.gap_closed):
            return "–"
        between = "" if np.isnan(self.low) else f"({self.low * 100:.0f} to {self.high * 100:.0f})"
        return f"{self.gap_closed:.0%}  {between}".rstrip()


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What a demo run made."""

    rows: tuple[Row, ...]
    transitions: int
    queries: int
    files: tuple[Path, ...]
    signature: str


@click.command(cls=Command, example="tabon demo --patients 400 --out demo-output")
@click.option("--out", default="demo-output", show_default=True, type=FOLDER, help="The folder to write to.")
@click.option("--patients", default=2500, show_default=True, help=PATIENTS_HELP)
@click.option("--seed", default=0, show_default=True, help="Names the cohort.")
@click.option("--encoder", default="minilm", show_default=True, help=ENCODER_HELP)
@store_options
@reports_errors
@takes(settings=SimulationSettings, store=open_store)
def demo(out: Path, settings: SimulationSettings, encoder: str, store: SentenceStore | None) -> None:
    """Run the method end to end on a simulated cohort and show what it is worth.

    Builds a bank from the training split, selects for the test queries with the
    eight methods of the paper and with three other selectors, prints a table and
    writes the bank, the queries, the selections and a page to look at.
    """
    with progress_bar("embedding sentences") as progress:
        result = run_demo(out, settings, encoder=encoder, store=store, progress=progress)
    click.echo(table(result))
    click.echo(f"wrote {', '.join(map(str, result.files))}", err=True)
    click.echo(f"look at {result.files[-1]}: every study with its prior, its drafts and the pick", err=True)


def run_demo(
    folder: Path,
    settings: SimulationSettings,
    *,
    encoder: str,
    store: SentenceStore | None,
    progress: Progress,
) -> DemoResult:
    """Simulate, build, select and compare; everything is written to `folder`."""
    train = list(simulate_transitions(settings, "train"))
    records = list(simulate_queries(settings, "test"))
    if not records or len(train) < MIN_TRANSITIONS:
        raise BadInputError(
            f"the simulated patients ({settings.patients}) give {len(records)} test queries and {len(train)} "
            "training transitions, too few to show anything; ask for 100 patients or more"
        )
    embedded = CachingEncoder(load_encoder(encoder))
    bank = TransitionBank.build(
        map(transition_from_record, train), encoder=embedded, store=store, progress=progress
    )
    queries = [query_from_record(record) for record in records]
    picks = {
        method: Selector(bank, selector, encoder=embedded, store=store).select_many(queries)
        for method, selector in (PAPER | RIVALS).items()
    }
    names = ("bank.tabon", "transitions.jsonl", "queries.jsonl", "selections.jsonl", "report.html")
    files = tuple(folder / name for name in names)
    bank.save(files[0])
    write_lines(files[1], train)
    write_lines(files[2], records)
    shown = zip(queries, picks[SHOWN], strict=True)
    write_lines(files[3], ({**query.facts, **pick.as_record(query.id)} for query, pick in shown))
    page = ExplorerSettings(title="tabon demo, simulated patients", score=score_named(DEFAULT_SCORE))
    studies = explorer_of(bank, SelectionSettings(selector=SHOWN, encoder=encoder), queries, page)
    write_report(studies, files[4])
    return DemoResult(tuple(_rows(picks, records)), len(bank), len(queries), files, picks[SHOWN][0].signature)


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines in one step."""
    with replacing(path) as file:
        for record in records:
            file.write(json.dumps(record).encode() + b"\n")


def _rows(picks: Mapping[str, Sequence[Selection]], records: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """Compare each method with the expected random pick and the best draft; patients are resampled."""
    drafts = [[state_f1(draft["state"], one["state"]) for draft in one["candidates"]] for one in records]
    random, oracle = (np.array([reduce(row) for row in drafts]) for reduce in (np.mean, np.max))
    patients = patient_rows([record["patient"] for record in records])
    count = int(patients.max()) + 1
    alike = effective_number(np.bincount(patients).astype(np.float64))
    weights = bootstrap_weights(count, RESAMPLES, np.random.default_rng(0))
    gap = sum_by_patient(oracle - random, patients, count)
    yield Row("random (expected)", float(random.mean()), 0.0)
    for method, selections in picks.items():
        chosen = np.array(
            [
                float(np.mean(row)) if pick.selected is None else row[pick.selected]
                for row, pick in zip(drafts, selections, strict=True)
            ]
        )
        gain = sum_by_patient(chosen - random, patients, count)
        low, high = interval(_ratio(weights @ gain, weights @ gap), alike)
        closed = _ratio(gain.sum(keepdims=True), gap.sum(keepdims=True))
        yield Row(method, float(chosen.mean()), float(closed[0]), float(low), float(high))
    yield Row("oracle", float(oracle.mean()), 1.0)


def _ratio(gain: Scores, gap: Scores) -> Scores:
    """Return the share of the gap that is closed; NaN if there is no gap."""
    shares: Scores = np.divide(gain, gap, out=np.full_like(gain, np.nan), where=gap > 0)
    return shares


def table(result: DemoResult) -> str:
    """Lay the rows out for a terminal, with a sentence of what they mean."""
    lines = [f"{'method':<22} {'state-F1':>8}  gap closed (95 % interval)"]
    lines += [f"{row.method:<22} {row.state_f1:>8.3f}  {row.gap()}" for row in result.rows]
    by_name = {row.method: row for row in result.rows}
    best = max((by_name[name] for name in PAPER), key=lambda row: row.state_f1)
    share, paper = (f"{row.gap_closed:.0%}" for row in (by_name[SHOWN], best))
    lines += [
        "",
        f"Between a random pick (0 %) and the best draft each time (100 %), {SHOWN} gets {share} of",
        f"the way, and the paper's best method here, {best.method}, {paper}. The patients are",
        "simulated: this shows that the chain runs, it is no evidence about real reports.",
        "",
        f"{result.queries} queries against {result.transitions} training transitions, simulated cohort",
        result.signature,
    ]
    return "\n".join(lines)
