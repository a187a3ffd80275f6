"""A cohort folder: transitions per split, what was left out, the rules and the audit."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from tabon._internal.atomic_files import replacing
from tabon.data.cohort.audit import Audit
from tabon.data.cohort.link import Chain, Rules, image_of, link
from tabon.data.cohort.visits import DataSet, Egress, Excluded, Visit
from tabon.data.simulate import SPLITS, SimulationSettings, Split, simulate_queries, simulate_transitions
from tabon.errors import BadInputError

PROGRESS_EVERY = 1000  # rows
QUERY_SPLITS: tuple[Split, ...] = ("valid", "test")  # the training split fills the bank
SIMULATED = DataSet(
    name="simulated",
    read=lambda _: iter(()),  # made, not read
    egress="any",
    dated=True,
    note="simulated patients and drafts; nothing in it is about a person",
)


def build_cohort(
    dataset: DataSet,
    folder: Path,
    out: Path,
    rules: Rules,
    *,
    egress: Egress | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Read a data set, apply the rules, write the cohort; return the audit.

    Nothing is published unless everything went well. `progress` gets the number of rows read.
    """
    with closing(VisitSpool()) as kept, cohort_files(out) as files:
        for number, row in enumerate(dataset.read(folder), start=1):
            if isinstance(row, Visit):
                kept.add(row)
            else:
                files.exclude(row)
            if progress is not None and number % PROGRESS_EVERY == 0:
                progress(number)
        for visits in kept.patients():
            linked = link(visits, rules)
            for excluded in linked.excluded:
                files.exclude(excluded)
            if linked.chain is not None:
                files.chain(linked.chain, dataset, rules)
        record = files.finish(cohort_facts(dataset, rules, egress))
        if not any(counts["transitions"] for counts in record["splits"].values()):
            reasons = ", ".join(f"{reason}: {count}" for reason, count in record["excluded"].items())
            raise BadInputError(
                f"{folder} gives no transition ({reasons or 'no rows'}); "
                f"check that it is a {dataset.name} folder"
            )
    return record


def write_simulated(out: Path, settings: SimulationSettings) -> dict[str, Any]:
    """Write a simulated cohort folder and return its audit; memory does not grow with it."""
    with ExitStack() as stack:
        files = stack.enter_context(cohort_files(out))
        for split in SPLITS:
            records = simulate_transitions(settings, split)
            for _, transitions in groupby(records, key=lambda record: record["patient"]):
                count = 0
                for count, record in enumerate(transitions, start=1):  # noqa: B007  # the last count is used
                    last, this = (date.fromisoformat(str(record[f"{k}_date"])) for k in ("prior", "current"))
                    files.transition(record, (this - last).days)
                files.audit.patient(split, count + 1)
        for split in QUERY_SPLITS:
            stream = stack.enter_context(replacing(out / split / "queries.jsonl"))
            for query in simulate_queries(settings, split):
                stream.write(json.dumps(query).encode() + b"\n")
        facts = cohort_facts(SIMULATED, Rules(seed=settings.seed, shares=settings.splits), None)
        return files.finish(facts | {"simulation": asdict(settings)})


class VisitSpool:
    """Visits of a whole data set on disk, in a temporary private database that sorts them by patient."""

    def __init__(self) -> None:
        """Prepare the table."""
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute("BEGIN")
        self._connection.execute("CREATE TABLE visits (patient TEXT, visit TEXT)")

    def add(self, visit: Visit) -> None:
        """Keep one visit."""
        storable = visit.patient.encode("utf-8", "backslashreplace").decode()  # whatever is in it
        row = storable, json.dumps(asdict(visit))
        self._connection.execute("INSERT INTO visits VALUES (?, ?)", row)

    def patients(self) -> Iterator[list[Visit]]:
        """Yield the visits of each patient, patients in order of their ids."""
        rows = self._connection.execute("SELECT patient, visit FROM visits ORDER BY patient")
        for _, visits in groupby(rows, key=lambda row: row[0]):
            yield [Visit.from_record(json.loads(text)) for _, text in visits]

    def close(self) -> None:
        """Close the database, which removes it."""
        self._connection.close()


class CohortFiles:
    """The open files of a cohort folder, and the audit of what is written to them."""

    def __init__(self, streams: Mapping[str, IO[bytes]]) -> None:
        """Keep the streams by name."""
        self._streams, self.audit = streams, Audit()

    def transition(self, record: Mapping[str, Any], days: int | None) -> None:
        """Write one transition to its split and count it."""
        self._streams[f"{record['split']}/transitions.jsonl"].write(json.dumps(record).encode() + b"\n")
        self.audit.transition(record, days)

    def chain(self, chain: Chain, dataset: DataSet, rules: Rules) -> None:
        """Write every consecutive pair of a chain."""
        self.audit.patient(chain.split, len(chain.visits))
        for position in range(1, len(chain.visits)):
            record = transition_record(chain, position, dated=dataset.dated, history=rules.history)
            days = chain.visits[position].moment.day - chain.visits[position - 1].moment.day
            self.transition(record, days if dataset.dated else None)

    def exclude(self, excluded: Excluded) -> None:
        """Write one row that is left out and count it."""
        self._streams["excluded.jsonl"].write(json.dumps(asdict(excluded)).encode() + b"\n")
        self.audit.excluded[excluded.reason] += 1

    def finish(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Write what describes the whole, and return the audit."""
        record = self.audit.close()
        for name, described in (("cohort.json", facts), ("audit.json", record)):
            self._streams[name].write(json.dumps(described, indent=2).encode() + b"\n")
        return record


@contextmanager
def cohort_files(out: Path) -> Iterator[CohortFiles]:
    """Open a cohort's files; they take their names together, the audit last, when all went well."""
    transitions = [f"{split}/transitions.jsonl" for split in SPLITS]
    names = ["audit.json", "cohort.json", "excluded.jsonl", *transitions]
    try:
        with ExitStack() as stack:
            yield CohortFiles({name: stack.enter_context(replacing(out / name)) for name in names})
    except BaseException:
        for folder in (*(out / split for split in SPLITS), out):
            with suppress(OSError):  # not there, or not empty: an older cohort's
                folder.rmdir()
        raise


def cohort_facts(dataset: DataSet, rules: Rules, egress: Egress | None) -> dict[str, Any]:
    """Return what travels with a cohort: its source, its rules, and where it may be sent."""
    return {
        "dataset": dataset.name,
        "egress": egress or dataset.egress,
        "egress_is_the_data_sets_own": egress in (None, dataset.egress),
        "dated": dataset.dated,
        "note": dataset.note,
        "rules": asdict(rules),
        "tabon": version("tabon"),
    }


def transition_record(chain: Chain, position: int, *, dated: bool, history: int) -> dict[str, Any]:
    """Return the transition to the visit at a position, as in docs/reference/file-formats.md."""
    prior, current = chain.visits[position - 1], chain.visits[position]
    first = max(0, position - history) if history else 0
    priors = [visit.report.sections() for visit in chain.visits[first:position]]
    days = prior.moment.day, current.moment.day
    if dated and all(1 <= day <= date.max.toordinal() for day in days):
        before, after = (date.fromordinal(day).isoformat() for day in days)
        when: dict[str, Any] = {"prior_date": before, "current_date": after}
    else:  # numbers, or days before the first symptoms
        when = {"prior_order": days[0], "current_order": days[1]}
    return {
        "id": current.study,
        "patient": chain.patient,
        "prior": priors[-1] if history == 1 else priors,
        "current": current.report.sections(),
        "prior_study": prior.study,
        **when,
        "view": chain.view,
        "image": image_of(current, chain.view).path,
        "split": chain.split,
    }
