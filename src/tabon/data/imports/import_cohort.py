"""A cohort folder and its queries from a table of visits and a table of drafts."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from tabon._internal.atomic_files import replacing
from tabon.data.cohort.build import QUERY_SPLITS, CohortFiles, cohort_facts, cohort_files, transition_record
from tabon.data.cohort.link import Chain, Rules, link
from tabon.data.cohort.visits import DataSet, Excluded, Visit
from tabon.data.imports.dates import FORMS
from tabon.data.imports.draft_table import Draft, DraftTable
from tabon.data.imports.visit_table import Guess, VisitTable
from tabon.errors import BadInputError
from tabon.text.records import MAX_DRAFTS

IMPORTED = DataSet(name="imported", read=lambda _: iter(()), egress="none", order="dates")
SHOWN_IDS, LONGEST_ID = 3, 40  # in a message; characters
LONGEST_NUMBER = 9  # digits by which drafts are sorted
KEPT = ("prior_date", "current_date", "image", "prior_image")  # of a transition, in its query
HINTS = {
    "bad-date": f"write dates as {FORMS}",
    "no-ap-pa-view": "leave the views out with --columns view=-",
    "fewer-than-two-visits": "a transition needs two visits of a patient on two days",
    "wrong-field-count": "put texts with a comma, a semicolon or a line break in quotes",
    "unknown-split": "write train, valid or test, or leave the splits out with --columns split=-",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCohort:
    """What an import wrote, or would write."""

    guesses: tuple[Guess, ...]
    audit: Mapping[str, Any]
    excluded: tuple[Excluded, ...]
    queries: Mapping[str, int]  # by split
    drafts: int = 0
    copies: int = 0  # drafts that are word for word what was really written
    contents: Mapping[str, bytes] = field(repr=False)  # of each file, if nothing was written


@dataclass(frozen=True, slots=True)
class _Join:
    """Each draft with the ids of the visits that it may be for, and what joined them."""

    key: str
    matches: Sequence[tuple[Draft, frozenset[str]]]


def import_cohort(visits: VisitTable, drafts: DraftTable, out: Path | None, rules: Rules) -> ImportedCohort:
    """Link visits, join drafts to them, and write a cohort folder with its queries.

    Splits that the table does not have are drawn by patient; with drafts, their
    patients are the test split and all others the training split.

    Args:
        visits: from `read_visit_rows`.
        drafts: from `read_draft_rows`; without any there are no queries.
        out: the folder; None writes nothing.
        rules: how visits are linked and splits drawn.

    Raises:
        BadInputError: no transition is left, no draft joins a visit, or one joins two.
    """
    rules = rules if visits.has_views else replace(rules, views="any")
    if not visits.visits:
        raise _nothing_left(f"{visits.name} gives no visit", visits.excluded)
    join = _join(visits.visits, drafts) if drafts.drafts or drafts.excluded else None
    excluded = [*visits.excluded, *drafts.excluded]
    chains: list[Chain] = []
    by_patient = sorted(_with_splits(visits, join), key=attrgetter("patient"))
    for _, own in groupby(by_patient, key=attrgetter("patient")):
        linked = link(own, rules)
        excluded += linked.excluded
        chains += [linked.chain] if linked.chain else []
    if not chains:
        raise _nothing_left(f"{visits.name} gives no transition", excluded)
    queries, copies = _queries(join, chains, rules, excluded) if join else ({}, 0)
    guesses = (*visits.guesses, *drafts.guesses, *_said(visits, join, rules))
    audit, contents = _write(out, chains, queries, excluded, rules, guesses)
    return ImportedCohort(
        guesses=guesses,
        audit=audit,
        excluded=tuple(excluded),
        queries={split: len(records) for split, records in queries.items()},
        drafts=sum(len(query["candidates"]) for records in queries.values() for query in records),
        copies=copies,
        contents=contents,
    )


def _write(
    out: Path | None,
    chains: Iterable[Chain],
    queries: Mapping[str, Sequence[Mapping[str, Any]]],
    excluded: Iterable[Excluded],
    rules: Rules,
    guesses: Iterable[Guess],
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Write a cohort folder, all of it or nothing; return its audit, and the files if there is no folder."""
    memory: defaultdict[str, BytesIO] = defaultdict(BytesIO)
    with ExitStack() as stack:
        files = stack.enter_context(cohort_files(out)) if out else CohortFiles(memory)
        for row in excluded:
            files.exclude(row)
        for chain in chains:
            files.chain(chain, IMPORTED, rules)
        for split, records in queries.items():
            name = f"{split}/queries.jsonl"
            stream = stack.enter_context(replacing(out / name)) if out else memory[name]
            stream.writelines(json.dumps(record, default=str).encode() + b"\n" for record in records)
        counts = {split: len(records) for split, records in queries.items()}
        facts = {"queries": counts, "guesses": [guess._asdict() for guess in guesses]}
        record = files.finish(cohort_facts(IMPORTED, rules, None) | facts)
    older = [out / split / "queries.jsonl" for split in QUERY_SPLITS if split not in queries] if out else []
    for path in older:  # of another import into this folder
        path.unlink(missing_ok=True)
    return record, {name: stream.getvalue() for name, stream in memory.items()}


def _said(visits: VisitTable, join: _Join | None, rules: Rules) -> Iterator[Guess]:
    """Say how splits were made and how drafts were joined."""
    if visits.has_splits:
        yield Guess("splits", "as given")
    elif join:
        yield Guess("splits", "patients with drafts are test, all others train")
    else:
        yield Guess("splits", f"drawn by patient: {rules.shares}, seed {rules.seed}")
    if join:
        yield Guess("drafts join by", join.key)


def _with_splits(visits: VisitTable, join: _Join | None) -> Iterable[Visit]:
    """Return the visits; those of patients with drafts are the test split if the table has no splits."""
    if visits.has_splits or join is None:
        return visits.visits
    drafted = {study for _, studies in join.matches for study in studies}
    tested = {visit.patient for visit in visits.visits if visit.study in drafted}
    return (replace(visit, split="test" if visit.patient in tested else "train") for visit in visits.visits)


# --- drafts and visits ----------------------------------------------------------------


def _join(visits: Sequence[Visit], table: DraftTable) -> _Join:
    """Join drafts with visits by the key that joins most of them."""
    drafts = table.drafts
    if not drafts:
        raise _nothing_left("no draft can be used", table.excluded)
    by_study: dict[object, set[str]] = defaultdict(set)
    by_date: dict[object, set[str]] = defaultdict(set)
    for visit in visits:
        by_study[visit.study].add(visit.study)
        by_date[visit.patient, visit.moment.day].add(visit.study)
        by_date[visit.patient, visit.moment].add(visit.study)

    def of_date(draft: Draft) -> set[str]:
        """Return the visits of a draft's day, or of its time if there are any."""
        if draft.moment is None:
            return set()
        return by_date.get((draft.patient, draft.moment)) or by_date.get(
            (draft.patient, draft.moment.day), set()
        )

    ways = {
        "study": lambda draft: by_study.get(draft.study, ()),
        "patient and study": lambda draft: by_study.get(f"{draft.patient}-{draft.study}", ()),
        "patient and date": of_date,
    }
    joins = [_Join(key, [(draft, frozenset(of(draft))) for draft in drafts]) for key, of in ways.items()]
    best = max(joins, key=lambda join: sum(bool(studies) for _, studies in join.matches))
    if not any(studies for _, studies in best.matches):
        raise BadInputError(
            f"no draft joins a visit: drafts are for {_shown(draft.visit() for draft in drafts)}, "
            f"visits are {_shown(visit.study for visit in visits)}; give both the same study ids, "
            "or patient and date, and name them with --columns and --draft-columns"
        )
    return best


def _shown(ids: Iterable[str]) -> str:
    """Show some ids; what is too long for one is not shown, it may be report text."""
    known = sorted(set(ids))
    shown = [repr(one) if len(one) <= LONGEST_ID else f"({len(one)} characters)" for one in known[:SHOWN_IDS]]
    return ", ".join(shown) + (", …" if len(known) > SHOWN_IDS else "") if shown else "none"


def _queries(
    join: _Join, chains: Sequence[Chain], rules: Rules, excluded: list[Excluded]
) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """Return the queries of each split, and how many of their drafts are word for word the report.

    Drafts without a transition are added to what is left out.
    """
    places = {visit.study: (chain, at) for chain in chains for at, visit in enumerate(chain.visits)}
    drafts: dict[str, list[Draft]] = defaultdict(list)
    left_out: list[Excluded] = []
    for draft, studies in join.matches:
        later = [study for study in studies if study in places and places[study][1]]
        if len(later) > 1:
            raise BadInputError(
                f"{draft.source.file} {draft.source.line}: {len(later)} visits are of {draft.visit()!r}; "
                "add a study id or a time to the drafts"
            )
        if later and places[later[0]][0].split in QUERY_SPLITS:
            drafts[later[0]].append(draft)
            continue
        what = "training" if later else "first" if set(studies) & set(places) else "left-out"
        left_out.append(
            Excluded(draft.source, f"draft-for-{what if studies else 'unknown'}-visit", draft.visit())
        )
    if not drafts:
        raise _nothing_left("no draft is for a visit that can be a query", left_out)
    excluded += dict.fromkeys(left_out)  # a row of several drafts is named once
    expected = max(map(len, drafts.values()))
    if expected > MAX_DRAFTS:
        raise BadInputError(f"a visit has {expected:,} drafts; give at most {MAX_DRAFTS}")
    queries: dict[str, list[dict[str, Any]]] = {}
    copies = 0
    for study, (chain, at) in places.items():
        if study in drafts:
            record = transition_record(chain, at, dated=True, history=rules.history)
            queries.setdefault(chain.split, []).append(_query(record, drafts[study], expected))
            written = chain.visits[at].report.sections()
            copies += sum(draft.report.sections() == written for draft in drafts[study])
    return queries, copies


def _query(record: Mapping[str, Any], drafts: list[Draft], expected: int) -> dict[str, Any]:
    """Return a query, drafts in the order of their files, models and numbers."""
    drafts = sorted(
        drafts,
        key=lambda draft: (draft.file, str(draft.record.get("model")), draft.number.zfill(LONGEST_NUMBER)),
    )
    return {
        "id": record["id"],
        "patient": record["patient"],
        "prior": record["prior"],
        "candidates": [
            {**draft.record, "sample": draft.number or str(place)}
            for place, draft in enumerate(drafts, start=1)
        ],
        "reference": record["current"],
        "expected": expected,
        **{key: record[key] for key in KEPT if record.get(key)},
    }


def _nothing_left(what: str, excluded: Iterable[Excluded]) -> BadInputError:
    """Say that nothing is left, the reasons with their counts, and a hint for the most frequent one."""
    reasons = Counter(row.reason for row in excluded).most_common()
    counts = ", ".join(f"{reason}: {count}" for reason, count in reasons) or "no rows"
    hints = [HINTS[reason] for reason, _ in reasons if reason in HINTS]
    return BadInputError(f"{what} ({counts}); {hints[0] if hints else 'check the columns'}")
