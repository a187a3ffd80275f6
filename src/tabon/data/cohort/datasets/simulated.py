"""The simulated cohort as a cohort folder: transitions of every split, and drafts to choose from."""

import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

from tabon._internal.atomic_files import replacing
from tabon.data.cohort.audit import Audit
from tabon.data.cohort.build import CohortFiles, cohort_facts, cohort_files
from tabon.data.cohort.link import Rules
from tabon.data.cohort.visits import DataSet
from tabon.data.simulate import SPLITS, SimulationSettings, Split, simulate_queries, simulate_transitions

QUERY_SPLITS: tuple[Split, ...] = ("valid", "test")  # the training split fills the bank

SIMULATED = DataSet(
    name="simulated",
    read=lambda _: iter(()),  # made, not read
    egress="any",
    dated=True,
    note="simulated patients and drafts; nothing in it is about a person",
)


def write_simulated(out: Path, settings: SimulationSettings) -> dict[str, Any]:
    """Write a simulated cohort folder and return its audit; memory does not grow with it."""
    audit = Audit()
    names = ("seed", "patients", "num_candidates", "prompt", "noise", "splits")
    with ExitStack() as stack:
        files = stack.enter_context(cohort_files(out))
        for split in SPLITS:
            _write_split(simulate_transitions(settings, split), split, files, audit)
        for split in QUERY_SPLITS:
            stream = stack.enter_context(replacing(out / split / "queries.jsonl"))
            for query in simulate_queries(settings, split):
                stream.write(json.dumps(query).encode() + b"\n")
        record = audit.close()
        facts = cohort_facts(SIMULATED, Rules(seed=settings.seed, shares=settings.splits), None)
        files.finish(facts | {"simulation": {name: getattr(settings, name) for name in names}}, record)
    return record


def _write_split(records: Iterable[Mapping[str, Any]], split: str, files: CohortFiles, audit: Audit) -> None:
    """Write the transitions of one split, patient by patient."""
    for _, transitions in groupby(records, key=lambda record: record["patient"]):
        count = 0
        for count, record in enumerate(transitions, start=1):  # noqa: B007  # the last count is used
            days = date.fromisoformat(record["current_date"]) - date.fromisoformat(record["prior_date"])
            files.transition(record, days.days, audit)
        audit.patient(split, count + 1)
