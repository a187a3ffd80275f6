"""A cohort folder: transitions per split, what was left out, the rules and the audit."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from tabon._internal.atomic_files import replacing
from tabon.data.cohort.audit import Audit
from tabon.data.cohort.datasets import GENERIC
from tabon.data.cohort.link import SPLITS, Chain, Rules, image_of, link
from tabon.data.cohort.visit_spool import VisitSpool
from tabon.data.cohort.visits import DataSet, Egress, Excluded, Visit
from tabon.errors import BadInputError
from tabon.text.reports import SECTIONS, Report

Progress = Callable[[int], None]  # rows read

PROGRESS_EVERY = 1000  # rows


def build_cohort(
    dataset: DataSet,
    folder: Path,
    out: Path,
    rules: Rules,
    *,
    egress: Egress | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Read a data set, apply the rules, write the cohort; return the audit.

    Nothing is published unless everything went well.
    """
    rules = rules if dataset.has_views else replace(rules, views="any")
    audit = Audit(views=rules.views)
    with closing(VisitSpool()) as kept, cohort_files(out) as files:
        for number, row in enumerate(dataset.read(folder), start=1):
            if isinstance(row, Visit):
                kept.add(row)
            else:
                files.exclude(row, audit)
            if progress is not None and number % PROGRESS_EVERY == 0:
                progress(number)
        for visits in kept.patients():
            linked = link(visits, rules)
            for excluded in linked.excluded:
                files.exclude(excluded, audit)
            if linked.chain is not None:
                files.chain(linked.chain, dataset, rules, audit)
        record = audit.close()
        if not any(counts["transitions"] for counts in record["splits"].values()):
            reasons = ", ".join(f"{reason}: {count}" for reason, count in record["excluded"].items())
            raise BadInputError(
                f"{folder} gives no transition ({reasons or 'no rows'}); {_hint(dataset, record['excluded'])}"
            )
        files.finish(cohort_facts(dataset, rules, egress), record)
    return record


def _hint(dataset: DataSet, excluded: Mapping[str, int]) -> str:
    """Say what to check if a data set gave nothing."""
    if dataset.name != GENERIC:
        return f"check that it is a {dataset.name} folder"
    if "no-ap-pa-view" in excluded:
        return "leave view out of --columns if it names no AP or PA"
    return "check --columns: a transition needs two visits of one patient"


class CohortFiles:
    """The open files of a cohort folder."""

    def __init__(self, streams: Mapping[str, IO[bytes]]) -> None:
        """Keep the streams by name."""
        self._streams = streams

    def transition(self, record: Mapping[str, Any], days: int | None, audit: Audit) -> None:
        """Write one transition to its split and count it."""
        self._streams[f"{record['split']}/transitions.jsonl"].write(_line(record))
        audit.transition(record, days)

    def chain(self, chain: Chain, dataset: DataSet, rules: Rules, audit: Audit) -> None:
        """Write every consecutive pair of a chain."""
        audit.patient(chain.split, len(chain.visits))
        for position in range(1, len(chain.visits)):
            record = transition_record(chain, position, dated=dataset.dated, history=rules.history)
            days = chain.visits[position].moment.day - chain.visits[position - 1].moment.day
            self.transition(record, days if dataset.dated else None, audit)

    def exclude(self, excluded: Excluded, audit: Audit) -> None:
        """Write one row that is left out and count it."""
        self._streams["excluded.jsonl"].write(_line(asdict(excluded)))
        audit.exclude(excluded)

    def finish(self, facts: Mapping[str, Any], audit: Mapping[str, Any]) -> None:
        """Write what describes the whole."""
        self._streams["cohort.json"].write(_page(facts))
        self._streams["audit.json"].write(_page(audit))


@contextmanager
def cohort_files(out: Path) -> Iterator[CohortFiles]:
    """Open a cohort's files; they take their names together, the audit last, when all went well."""
    names = [
        "audit.json",
        "cohort.json",
        "excluded.jsonl",
        *(f"{split}/transitions.jsonl" for split in SPLITS),
    ]
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
    priors = [_report(visit.report) for visit in chain.visits[first:position]]
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
        "current": _report(current.report),
        "prior_study": prior.study,
        **when,
        "view": chain.view,
        "image": image_of(current, chain.view).path,
        "split": chain.split,
    }


def _report(report: Report) -> dict[str, str]:
    """Return the sections that are compared."""
    return {section: report.section(section) for section in SECTIONS}


def _line(record: Mapping[str, Any]) -> bytes:
    """Return one line of JSON."""
    return json.dumps(record).encode() + b"\n"


def _page(record: Mapping[str, Any]) -> bytes:
    """Return JSON for a person to read."""
    return json.dumps(record, indent=2).encode() + b"\n"
