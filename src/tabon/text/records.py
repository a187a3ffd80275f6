"""The records of tabon's JSON Lines files (contracts in docs/reference/file-formats.md).

A line that does not fit is named by its number, never by its text. Keys that
tabon does not know are kept and passed through.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import Any

from tabon.errors import BadInputError
from tabon.text.file_kinds import check_kind
from tabon.text.reports import SECTIONS, Report, ReportLike, report_from_record
from tabon.text.sentences import most_sentences, split_sentences

TRANSITION_KEYS = frozenset({"id", "patient", "prior", "current"})
DRAFTS = "drafts"  # another name of a query's key `candidates`
QUERY_KEYS = frozenset({"id", "patient", "prior", "candidates", DRAFTS, "reference"})
TEXT_KEYS = frozenset({"findings", "impression", "text"})
MAX_CHARACTERS = 50_000  # of one section; the longest of Open-i has 1,054
MAX_SENTENCES = 1_000  # of one section: comparing two takes memory for every pair of sentences
MAX_DRAFTS = 256  # of one query
MAX_LEVELS = 100  # of lists and objects inside each other in what is passed through
ALMOST = 0.8  # how much a key must look like the missing one to be named
KINDS = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Transition:
    """A patient's prior report and the next one, of which banks are built.

    Args:
        prior: the report before, or all before, oldest first; as text, as a `Report` or as a record.
        current: the next report.
        patient: whose they are; without it a bank cannot keep this patient's queries away.
        id: what explanations cite; a bank numbers those without one.
        earlier: the reports before `prior`, if that is one report.
        facts: what else is known; a bank keeps it beside the id.

    >>> move = Transition(prior="Clear lungs.", current="New effusion.", patient="p7", id="t1")
    >>> move, move.prior.findings
    (Transition(id='t1', patient='p7'), 'Clear lungs.')
    """

    prior: Report  # the newest
    current: Report
    patient: str | None
    id: str
    earlier: tuple[Report, ...]  # oldest first
    facts: Mapping[str, Any]  # dates, view and unknown keys

    def __init__(  # the keys of the file, and what a copy takes along
        self,
        *,
        prior: ReportLike | Sequence[ReportLike],
        current: ReportLike,
        patient: str | int | None = None,
        id: str = "",  # noqa: A002  # the file's key
        earlier: Sequence[Report] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Read texts into reports; refuse those that are too long to be compared."""
        newest, before = _newest(prior, earlier)
        _fill(
            self, prior=newest, current=_checked(current, "'current'"), patient=_name_or_none(patient), id=id,
            earlier=before, facts=dict(facts or {}),
        )  # fmt: skip

    def __repr__(self) -> str:
        """Name it, without its text."""
        return f"Transition(id={self.id!r}, patient={self.patient!r})"

    @property
    def priors(self) -> tuple[Report, ...]:
        """Return all priors, newest last."""
        return (*self.earlier, self.prior)

    def provenance(self) -> dict[str, Any]:
        """Return what a bank keeps of where this came from: no report text."""
        whose = {} if self.patient is None else {"patient": self.patient}
        return {"id": self.id, **whose, **self.facts}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Query:
    """A prior report, the drafts to choose from, and what is known beside them.

    Args:
        prior: the patient's last report, or all before, oldest first; None if there is none.
        candidates: the drafts of the next report.
        patient: whose it is; a bank with reports of this patient abstains.
        reference: what was really written, if it is known: for `tabon.evaluate`.
        id: what messages and results call it.
        earlier: the reports before `prior`, if that is one report.
        facts: what else is known; it is passed through.
        draft_facts: what is known of each draft beside its text.

    >>> asked = Query(prior="Clear lungs.", candidates=["Clear lungs.", "FINDINGS: Effusion."], patient="p7")
    >>> asked, asked.candidates[1].findings
    (Query(id='', patient='p7', drafts=2), 'Effusion.')
    """

    prior: Report  # the newest; an empty report if there is none
    candidates: tuple[Report, ...]
    patient: str | None
    reference: Any  # as it is in the file: not looked at here
    id: str
    earlier: tuple[Report, ...]  # oldest first
    facts: Mapping[str, Any]
    draft_facts: tuple[Mapping[str, Any], ...]

    def __init__(  # noqa: PLR0913  # the keys of the file, and what a copy takes along
        self,
        *,
        prior: ReportLike | Sequence[ReportLike] | None,
        candidates: Sequence[ReportLike],
        patient: str | int | None = None,
        reference: ReportLike | None = None,
        id: str = "",  # noqa: A002  # the file's key
        earlier: Sequence[Report] = (),
        facts: Mapping[str, Any] | None = None,
        draft_facts: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Read texts into reports; refuse those that are too long to be compared."""
        if isinstance(candidates, str | Report | Mapping):
            raise BadInputError("'candidates' is one draft; give a list of drafts")
        newest, before = _newest(() if prior is None else prior, earlier)
        drafts = tuple(_checked(draft, f"draft {number}") for number, draft in enumerate(candidates))
        _fill(
            self, prior=newest, candidates=drafts, patient=_name_or_none(patient), reference=reference, id=id,
            earlier=before, facts=dict(facts or {}), draft_facts=tuple(draft_facts),
        )  # fmt: skip

    def __repr__(self) -> str:
        """Name it, without its text."""
        return f"Query(id={self.id!r}, patient={self.patient!r}, drafts={len(self.candidates)})"

    @property
    def priors(self) -> tuple[Report, ...]:
        """Return all priors, newest last; none where there is none."""
        return () if self.prior == Report() and not self.earlier else (*self.earlier, self.prior)


def _fill(value: Transition | Query, **fields: object) -> None:
    """Set the fields of a frozen value that is being made."""
    for name, field in fields.items():
        object.__setattr__(value, name, field)


def _newest(
    prior: ReportLike | Sequence[ReportLike], earlier: Sequence[Report]
) -> tuple[Report, tuple[Report, ...]]:
    """Return the newest prior and those before it, of one report or of all."""
    if isinstance(prior, Report | str | Mapping):
        prior = (*earlier, prior)
    *before, newest = (_checked(report, "'prior'") for report in prior or (Report(),))
    return newest, tuple(before)


def _checked(report: ReportLike, place: str) -> Report:
    """Read a report that can be compared; an error names its place."""
    return check_length(_report(report, place), place)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that could not be read."""

    number: int
    message: str
    id: str | None = None  # where the line has one that can be read


def is_too_long(report: Report) -> bool:
    """Whether a report has a section with more text than can be compared.

    >>> is_too_long(Report("Clear lungs.")), is_too_long(Report("No. " * 1_001))
    (False, True)
    """
    return any(_excess(report.section(section)) is not None for section in SECTIONS)


def check_length(report: Report, place: str) -> Report:
    """Return a report whose sections can be compared; an error names its place in the record."""
    for section in SECTIONS:
        excess = _excess(report.section(section))
        if excess is not None:
            raise BadInputError(f"{place}: {section} has {excess}; shorten it")
    return report


def _excess(text: str) -> str | None:
    """Say what a section has too much of, and how much is allowed."""
    if len(text) > MAX_CHARACTERS:
        return f"{len(text):,} characters, more than {MAX_CHARACTERS:,}"
    if len(text) <= MAX_SENTENCES or most_sentences(text) <= MAX_SENTENCES:  # no need to split it
        return None
    sentences = len(split_sentences(text))
    return f"{sentences:,} sentences, more than {MAX_SENTENCES:,}" if sentences > MAX_SENTENCES else None


def transition_from_record(record: Mapping[str, Any]) -> Transition:
    """Read one object of the transitions contract.

    >>> transition_from_record({"id": 1, "prior": "Clear.", "current": "Clear."}).prior.findings
    'Clear.'
    """
    return Transition(
        id=_name(record, "id"),
        patient=_patient(record),
        prior=_priors(record, at_least=1),
        current=_value(record, "current"),
        facts=_facts(record, TRANSITION_KEYS),
    )


def query_from_record(record: Mapping[str, Any]) -> Query:
    """Read one object of the queries contract."""
    identity = _name(record, "id")
    key = DRAFTS if DRAFTS in record else "candidates"
    if key == DRAFTS and "candidates" in record:
        raise BadInputError("'candidates' and 'drafts' are two names of one key; give one of them")
    drafts = _value(record, key)
    if not isinstance(drafts, list):
        raise BadInputError(f"{key!r} is {_kind(drafts)}; give a list of drafts")
    if len(drafts) > MAX_DRAFTS:
        raise BadInputError(f"{key!r} holds {len(drafts):,} drafts; give at most {MAX_DRAFTS}")
    return Query(
        id=identity,
        prior=_priors(record, at_least=0),
        candidates=tuple(
            Report() if draft is None else _report(draft, f"draft {number}")
            for number, draft in enumerate(drafts)
        ),
        patient=_patient(record),
        facts=_facts(record, QUERY_KEYS),
        draft_facts=tuple(
            {key: value for key, value in draft.items() if key not in TEXT_KEYS}
            if isinstance(draft, dict)
            else {}
            for draft in drafts
        ),
        reference=record.get("reference"),
    )


def read_transitions(lines: Iterable[bytes], *, name: str) -> Iterator[Transition]:
    """Yield the transitions of a JSON Lines file; the first bad line is an error."""
    for number, line in _full_lines(lines, "transitions", name):
        try:
            yield transition_from_record(_object(line))
        except BadInputError as error:
            raise BadInputError(f"{name} line {number}: {error}") from None


def read_query_lines(
    lines: Iterable[bytes], *, name: str = "the file of queries"
) -> Iterator[Query | BadLine]:
    """Yield the queries of a JSON Lines file; a bad line does not stop the others.

    A file that begins like one of another kind is an error, which calls it by `name`.
    """
    seen: set[str] = set()
    for number, line in _full_lines(lines, "queries", name):
        identity = None
        try:
            record = _object(line)
            identity = _name(record, "id")
            query = query_from_record(record)
        except BadInputError as error:
            yield BadLine(number, str(error), identity)
        else:
            repeated = BadLine(number, "the id occurred before; give each query its own id", identity)
            yield repeated if identity in seen else query
            seen.add(identity)


def whole_query(query: Query | BadLine, *, name: str) -> Query:
    """Return a query; a bad line is an error, for work that must be complete."""
    if isinstance(query, BadLine):
        raise BadInputError(f"{name} line {query.number}: {query.message}")
    return query


def reference_of(query: Query) -> Report | None:
    """Return what was really written, where the query says it."""
    if query.reference is None:
        return None
    try:
        return check_length(_report(query.reference, "'reference'"), "'reference'")
    except BadInputError as error:
        raise BadInputError(f"query {query.id!r}: {error}") from None


def _full_lines(lines: Iterable[bytes], kind: str, name: str) -> Iterator[tuple[int, bytes]]:
    """Number the lines from 1 and leave blank ones out; refuse a file of another kind."""
    is_first = True
    for number, line in enumerate(lines, start=1):
        if line.strip():
            if is_first:
                check_kind(line, kind, name)
            is_first = False
            yield number, line


def _object(line: bytes) -> Mapping[str, Any]:
    """Parse one line into an object."""
    try:
        record = json.loads(line)
    except UnicodeDecodeError as error:
        raise BadInputError(f"not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadInputError(f"not JSON at column {error.colno}; fix or remove the line") from None
    except ValueError:  # the one that is left: Python refuses numbers of thousands of digits
        raise BadInputError("a number has too many digits; write it as a string") from None
    except RecursionError:
        raise BadInputError("nested too deeply; fix or remove the line") from None
    if not isinstance(record, dict):
        raise BadInputError(f"{_kind(record)} instead of an object; write one object a line")
    return record


def _value(record: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401
    """Return a value that must be there.

    A key that looks like it is named; other keys are not, they may be report text.
    """
    if key not in record:
        close = get_close_matches(key, map(str, record), n=1, cutoff=ALMOST)
        raise BadInputError(f"no key {key!r}; add it" + (f" (or rename {close[0]!r})" if close else ""))
    return record[key]


def _patient(record: Mapping[str, Any]) -> str | None:
    """Return the patient as a string, or None where none is given."""
    return _name_or_none(record.get("patient"))


def _name_or_none(patient: object) -> str | None:
    """Return a patient as a string, or None where none is given."""
    return None if patient is None else _name({"patient": patient}, "patient")


def _name(record: Mapping[str, Any], key: str) -> str:
    """Return what names a record or a patient, as a string: 7 and "7" are the same."""
    value = _value(record, key)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        kind = "empty" if value == "" else _kind(value)
        raise BadInputError(f"{key!r} is {kind}; give a string or a whole number")
    return str(value)


def _facts(record: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return what is kept beside the known keys; all of it can be written as JSON again."""
    facts = {key: value for key, value in record.items() if key not in known}
    _check_kept(facts, MAX_LEVELS)
    return facts


def _check_kept(value: object, levels: int) -> None:
    """Refuse what JSON cannot say and what is nested so deep that writing it may fail."""
    if levels < 0:
        raise BadInputError(f"nested more than {MAX_LEVELS} levels deep; flatten it or leave it out")
    if isinstance(value, float) and not isfinite(value):
        raise BadInputError("holds NaN or infinity, which JSON cannot say; write null instead")
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        _check_kept(part, levels - 1)


def _priors(record: Mapping[str, Any], *, at_least: int) -> tuple[Report, ...]:
    """Return the prior report or reports, newest last."""
    prior = _value(record, "prior")
    priors = prior if isinstance(prior, list) else [] if prior is None else [prior]
    if len(priors) < at_least:
        raise BadInputError("'prior' holds no report; give the report that came before")
    return tuple(_report(report, "'prior'") for report in priors)


def _report(value: object, place: str) -> Report:
    """Read one report; an error names its place in the record."""
    try:
        return report_from_record(value)
    except BadInputError as error:
        raise BadInputError(f"{place}: {error}") from None


def _kind(value: object) -> str:
    """Name a JSON value's type without showing it."""
    return "null" if value is None else KINDS.get(type(value), "something else")
