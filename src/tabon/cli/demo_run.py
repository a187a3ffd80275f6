"""The whole method on a simulated cohort: bank, selection, and what the picks are worth.

The truth behind each simulated report is known, so a draft is worth its
state-F1. Every method is put beside the expected random pick and the oracle.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.atomic_files import replacing
from tabon.cli.demo_page import Row, demo_page
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.evaluation.draft_scores import state_f1
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES
from tabon.method.scoring import AGGREGATES
from tabon.method.selection import Selection
from tabon.method.sentence_sets import Progress
from tabon.selectors import Selector
from tabon.text.records import query_from_record, transition_from_record

SHOWN = ("novelty", "min")  # the method whose selections are written
MIN_TRANSITIONS = 20  # kNN asks for 10 in each section


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What a demo run made."""

    rows: tuple[Row, ...]
    transitions: int
    queries: int
    files: tuple[Path, ...]
    signature: str


def run_demo(
    folder: Path,
    settings: SimulationSettings,
    *,
    encoder: str = "minilm",
    store: SentenceStore | None = None,
    progress: Progress | None = None,
) -> DemoResult:
    """Simulate, build, select and compare; everything is written to `folder`."""
    train = list(simulate_transitions(settings, "train"))
    records: list[dict[str, Any]] = list(simulate_queries(settings, "test"))
    if not records or len(train) < MIN_TRANSITIONS:
        raise BadInputError(
            f"the simulated patients ({settings.patients}) give {len(records)} test queries and {len(train)} "
            "training transitions, too few to show anything; ask for 100 patients or more"
        )
    bank = TransitionBank.build(
        map(transition_from_record, train), encoder=encoder, store=store, progress=progress
    )
    queries = [query_from_record(record) for record in records]
    picks: dict[tuple[str, str], list[Selection]] = {}
    for distance, aggregate in product(DISTANCES, AGGREGATES):
        selector = Selector(bank, distance=distance, aggregate=aggregate, encoder=encoder, store=store)
        picks[distance, aggregate] = selector.select_many(queries)
    worth = [[state_f1(draft["state"], one["state"]) for draft in one["candidates"]] for one in records]
    rows = tuple(_rows(picks, np.array(worth)))
    shown = picks[SHOWN]
    bank.save(folder / "bank.tabon")
    write_lines(folder / "transitions.jsonl", train)
    write_lines(folder / "queries.jsonl", records)
    answers = ({**one.facts, **pick.as_record(one.id)} for one, pick in zip(queries, shown, strict=True))
    write_lines(folder / "selections.jsonl", answers)
    with replacing(folder / "report.html") as file:
        file.write(demo_page(rows, records, shown).encode())
    names = ("bank.tabon", "transitions.jsonl", "queries.jsonl", "selections.jsonl", "report.html")
    files = tuple(folder / name for name in names)
    return DemoResult(rows, len(bank), len(queries), files, shown[0].signature)


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines in one step."""
    with replacing(path) as file:
        for record in records:
            file.write(json.dumps(record).encode() + b"\n")


def _rows(picks: Mapping[tuple[str, str], Sequence[Selection]], worth: NDArray[np.float64]) -> Iterator[Row]:
    """Put each method beside the expected random pick and the best possible one."""
    random, oracle = worth.mean(axis=1), worth.max(axis=1)
    yield Row("random (expected)", float(random.mean()), 0.0)
    for (distance, aggregate), selections in picks.items():
        chosen = np.array(  # where nothing is chosen, the expected random draft
            [
                row.mean() if pick.selected is None else row[pick.selected]
                for row, pick in zip(worth, selections, strict=True)
            ]
        )
        yield _compared(f"{distance} / {aggregate}", chosen, random, oracle)
    yield Row("oracle", float(oracle.mean()), 1.0)


def _compared(
    method: str, chosen: NDArray[np.float64], random: NDArray[np.float64], oracle: NDArray[np.float64]
) -> Row:
    """Compare picks with the expected random pick, query by query."""
    gap = float((oracle - random).mean())
    if gap == 0.0:
        return Row(method, float(chosen.mean()))
    gains = (chosen - random) / gap
    error = float(gains.std() / np.sqrt(len(gains)))
    return Row(method, float(chosen.mean()), float(gains.mean()), error)
