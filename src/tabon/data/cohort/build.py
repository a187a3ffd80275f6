"""A cohort folder: transitions per split, what was left out, the rules and the audit."""

import json
import sqlite3
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from hashlib import sha256
from importlib.metadata import version
from itertools import accumulate, groupby
from pathlib import Path
from typing import IO, Any

from tabon._internal.atomic_files import replacing
from tabon.data.cohort.datasets import GENERIC
from tabon.data.cohort.link import Chain, Rules, image_of, link
from tabon.data.cohort.visits import DataSet, Egress, Excluded, Visit
from tabon.data.simulate import SPLITS, SimulationSettings, Split, simulate_queries, simulate_transitions
from tabon.errors import BadInputError

PAPER = {  # patients, visits, transitions: table "Multi-visit cohort" of the paper's appendix
    "train": (19_492, 42_237, 22_745),
    "valid": (1_411, 3_090, 1_679),
    "test": (1_459, 3_186, 1_727),
}
QUANTILES = {"least": 0.0, "quarter": 0.25, "median": 0.5, "three_quarters": 0.75, "most": 1.0}


@dataclass
class SplitCounts:
    """The sums of one split."""

    patients: int = 0
    visits: int = 0
    transitions: int = 0
    identical: int = 0  # pairs whose two reports are word for word the same
    days: Counter[int] = field(default_factory=Counter)


class Audit:
    """Adds up while a cohort is written; memory does not grow with it."""

    def __init__(self) -> None:
        """Start from nothing; texts are remembered as hashes, on disk."""
        self.splits = {split: SplitCounts() for split in PAPER}
        self.excluded: Counter[str] = Counter()
        self._texts = sqlite3.connect("", isolation_level=None)
        self._texts.execute("BEGIN")
        self._texts.execute("CREATE TABLE bank (text INTEGER PRIMARY KEY)")
        self._texts.execute("CREATE TABLE test (text INTEGER)")

    def patient(self, split: str, visits: int) -> None:
        """Count a patient and the visits of the chain."""
        self.splits[split].patients += 1
        self.splits[split].visits += visits

    def transition(self, record: Mapping[str, Any], days: int | None) -> None:
        """Count a transition."""
        split = record["split"]
        counts = self.splits[split]
        prior = record["prior"][-1] if isinstance(record["prior"], list) else record["prior"]
        counts.transitions += 1
        current = _text_hash(record["current"])
        counts.identical += _text_hash(prior) == current
        if days is not None:
            counts.days[days] += 1
        if split == "train":
            self._texts.execute("INSERT OR IGNORE INTO bank VALUES (?)", [current])
        elif split == "test":
            self._texts.execute("INSERT INTO test VALUES (?)", [current])

    def close(self) -> dict[str, Any]:
        """Return the audit as it goes into audit.json."""
        query = "SELECT count(*), count(bank.text) FROM test LEFT JOIN bank USING (text)"
        references, seen = self._texts.execute(query).fetchone()
        self._texts.close()
        share = seen / max(references, 1)
        return {
            "splits": {
                split: {
                    "patients": counts.patients,
                    "visits": counts.visits,
                    "transitions": counts.transitions,
                    "paper": dict(zip(("patients", "visits", "transitions"), PAPER[split], strict=True)),
                    "identical_share": counts.identical / max(counts.transitions, 1),
                    "days_between_visits": _quantiles(counts.days),
                }
                for split, counts in self.splits.items()
            },
            "excluded": dict(sorted(self.excluded.items())),
            "test_references_also_in_the_bank": {"count": seen, "of": references, "share": share},
        }


def audit_table(record: Mapping[str, Any], *, paper: bool = True) -> Iterator[str]:
    """Yield the lines that a person reads, the paper's counts beside ours if wanted."""
    yield f"{'split':<8}{'patients':>10}{'visits':>10}{'transitions':>13}" + "   the paper's" * paper
    for split, counts in record["splits"].items():
        theirs = "   " + "  ".join(f"{number:,}" for number in PAPER[split])
        ours = f"{counts['patients']:>10,}{counts['visits']:>10,}{counts['transitions']:>13,}"
        yield f"{split:<8}{ours}" + theirs * paper
    if record["views"] == "any":
        yield "views are not known: all visits of a patient form one chain"
    for split, counts in record["splits"].items():
        if counts["transitions"]:
            days = counts["days_between_visits"]
            when = f", days between visits: median {days['median']}" if days else ""
            yield f"{split}: {counts['identical_share']:.1%} of pairs are word for word the same{when}"
    overlap = record["test_references_also_in_the_bank"]
    yield f"test reports that also stand in the training split: {overlap['count']:,} of {overlap['of']:,}"
    for reason, count in record["excluded"].items():
        yield f"left out, {reason}: {count:,}"


def _quantiles(counted: Counter[int]) -> dict[str, int]:
    """Return some quantiles of counted numbers, the number at or above each rank; nothing for none."""
    numbers = sorted(counted)
    passed = list(accumulate(counted[number] for number in numbers))
    return {
        name: numbers[bisect_right(passed, share * (passed[-1] - 1))]
        for name, share in QUANTILES.items()
        if numbers
    }


def _text_hash(report: Mapping[str, str]) -> int:
    """Return 63 bits that name a report's words."""
    words = " ".join(f"{report['findings']} \0 {report['impression']}".lower().split())
    return int.from_bytes(sha256(words.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1


PROGRESS_EVERY = 1000  # rows
QUERY_SPLITS: tuple[Split, ...] = ("valid", "test")  # the training split fills the bank
SIMULATED = DataSet(
    name="simulated",
    read=lambda _: iter(()),  # made, not read
    egress="any",
    order="dates",
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
    rules = rules if dataset.has_views else replace(rules, views="any")
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
                f"{folder} gives no transition ({reasons or 'no rows'}); {_hint(dataset, record['excluded'])}"
            )
    return record


def _hint(dataset: DataSet, excluded: Mapping[str, int]) -> str:
    """Say what to check if a data set gave nothing."""
    if dataset.name != GENERIC:
        return f"check that it is a {dataset.name} folder"
    if "no-ap-pa-view" in excluded:
        return "leave view out of --columns if it names no AP or PA"
    return "check --columns: a transition needs two visits of one patient"


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
            dated = dataset.order == "dates"
            record = transition_record(chain, position, dated=dated, history=rules.history)
            days = chain.visits[position].moment.day - chain.visits[position - 1].moment.day
            self.transition(record, None if dataset.order == "ordinals" else days)

    def exclude(self, excluded: Excluded) -> None:
        """Write one row that is left out and count it."""
        self._streams["excluded.jsonl"].write(json.dumps(asdict(excluded)).encode() + b"\n")
        self.audit.excluded[excluded.reason] += 1

    def finish(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Write what describes the whole, and return the audit."""
        record = self.audit.close() | {"views": facts["rules"]["views"]}
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
        "order": dataset.order,
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
    if dated:
        before, after = (date.fromordinal(day).isoformat() for day in days)
        when: dict[str, Any] = {"prior_date": before, "current_date": after}
    else:
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
        "prior_image": image_of(prior, chain.view).path,
        "split": chain.split,
    }
