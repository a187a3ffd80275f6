"""The records of tabon's JSON Lines files (contracts in docs/file-formats.md).

A line that does not fit is named by its number, never by its text. Keys that
tabon does not know are kept and passed through.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tabon.errors import BadInputError
from tabon.reports import Report, report_from_record

TRANSITION_KEYS = frozenset({"id", "prior", "current"})
QUERY_KEYS = frozenset({"id", "patient", "prior", "candidates", "reference"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A patient's prior report (or reports, newest last) and the next one."""

    id: str
    priors: tuple[Report, ...]
    current: Report
    facts: Mapping[str, Any] = field(default_factory=dict)  # patient, dates, view and unknown keys

    @property
    def prior(self) -> Report:
        """Return the newest prior."""
        return self.priors[-1]

    def provenance(self) -> dict[str, Any]:
        """Return what a bank keeps of where this came from: no report text."""
        return {"id": self.id, **self.facts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A prior report, the drafts to choose from, and what is known beside them."""

    id: str
    priors: tuple[Report, ...]
    candidates: tuple[Report, ...]
    patient: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # unknown keys, passed through

    @property
    def prior(self) -> Report:
        """Return the newest prior; an empty report where there is none."""
        return self.priors[-1] if self.priors else Report()


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that could not be read."""

    number: int
    message: str


def transition_from_record(record: Mapping[str, Any]) -> Transition:
    """Read one object of the transitions contract.

    >>> transition_from_record({"id": 1, "prior": "Clear.", "current": "Clear."}).prior.findings
    'Clear.'
    """
    facts = {key: value for key, value in record.items() if key not in TRANSITION_KEYS}
    return Transition(
        id=_identity(record),
        priors=_priors(record, at_least=1),
        current=report_from_record(_value(record, "current")),
        facts=facts,
    )


def query_from_record(record: Mapping[str, Any]) -> Query:
    """Read one object of the queries contract."""
    drafts = _value(record, "candidates")
    if not isinstance(drafts, list):
        raise BadInputError(f"'candidates' is {_kind(drafts)}; give a list of drafts")
    patient = record.get("patient")
    return Query(
        id=_identity(record),
        priors=_priors(record, at_least=0),
        candidates=tuple(_draft(draft, number) for number, draft in enumerate(drafts)),
        patient=None if patient is None else str(patient),
        facts={key: value for key, value in record.items() if key not in QUERY_KEYS},
    )


def read_transitions(lines: Iterable[bytes], *, name: str) -> Iterator[Transition]:
    """Yield the transitions of a JSON Lines file; the first bad line is an error."""
    for number, line in _full_lines(lines):
        try:
            yield transition_from_record(_object(line))
        except BadInputError as error:
            raise BadInputError(f"{name} line {number}: {error}") from None


def read_queries(lines: Iterable[bytes]) -> Iterator[Query | BadLine]:
    """Yield the queries of a JSON Lines file; a bad line does not stop the others."""
    seen: set[str] = set()
    for number, line in _full_lines(lines):
        try:
            query = query_from_record(_object(line))
            if query.id in seen:
                raise BadInputError(f"query id {query.id!r} occurs twice; give each query its own id")  # noqa: TRY301
        except BadInputError as error:
            yield BadLine(number, str(error))
            continue
        seen.add(query.id)
        yield query


def _full_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Number the lines from 1 and leave blank ones out."""
    return ((number, line) for number, line in enumerate(lines, start=1) if line.strip())


def _object(line: bytes) -> Mapping[str, Any]:
    """Parse one line into an object."""
    try:
        record = json.loads(line)
    except UnicodeDecodeError as error:
        raise BadInputError(f"not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadInputError(f"not JSON at column {error.colno}; fix or remove the line") from None
    except RecursionError:
        raise BadInputError("nested too deeply; fix or remove the line") from None
    if not isinstance(record, dict):
        raise BadInputError(f"{_kind(record)} instead of an object; write one object a line")
    return record


def _value(record: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401
    """Return a value that must be there."""
    if key not in record:
        raise BadInputError(
            f"no key {key!r} (found {', '.join(sorted(map(repr, record))) or 'none'}); add it"
        )
    return record[key]


def _identity(record: Mapping[str, Any]) -> str:
    """Return the record's id as a string."""
    identity = _value(record, "id")
    if isinstance(identity, bool) or not isinstance(identity, str | int) or identity == "":
        raise BadInputError(f"'id' is {_kind(identity)}; give a string or a whole number")
    return str(identity)


def _priors(record: Mapping[str, Any], *, at_least: int) -> tuple[Report, ...]:
    """Return the prior report or reports, newest last."""
    prior = _value(record, "prior")
    priors = prior if isinstance(prior, list) else [] if prior is None else [prior]
    if len(priors) < at_least:
        raise BadInputError("'prior' holds no report; a transition needs one")
    return tuple(map(report_from_record, priors))


def _draft(value: object, number: int) -> Report:
    """Read one draft; an error names its place among the drafts."""
    try:
        return Report() if value is None else report_from_record(value)
    except BadInputError as error:
        raise BadInputError(f"draft {number}: {error}") from None


def _kind(value: object) -> str:
    """Name a JSON value's type without showing it."""
    return "null" if value is None else f"a {type(value).__name__}"
