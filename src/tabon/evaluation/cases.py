"""The studies of a run: drafts beside what the radiologist wrote."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from tabon.errors import BadInputError
from tabon.text.records import Query, read_queries, reference_of, whole_query
from tabon.text.reports import SECTIONS, Report, Section

Part = Section | Literal["report"]  # a section, or the whole report
PARTS: tuple[Part, ...] = (*SECTIONS, "report")


@dataclass(frozen=True, slots=True)
class Case:
    """One study with a reference."""

    query: Query
    reference: Report

    @property
    def patient(self) -> str:
        """Return whom the study is of; a study without a patient stands for itself."""
        return f"study:{self.query.id}" if self.query.patient is None else f"patient:{self.query.patient}"

    def has(self, part: Part) -> bool:
        """Whether the reference says anything there."""
        return not self.reference.is_empty if part == "report" else bool(self.reference.section(part).strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """The studies of one queries file."""

    name: str
    cases: tuple[Case, ...]  # with a reference and at least one draft
    left_out: int  # studies without one of them
    sha256: str

    @property
    def num_candidates(self) -> int:
        """Return the largest number of drafts of a study, K."""
        return max(len(case.query.candidates) for case in self.cases)

    def fact(self, key: str) -> str:
        """Return the model or prompt that all studies name, or "" where they do not agree."""
        values = {str(case.query.facts.get(key, "")) for case in self.cases}
        return values.pop() if len(values) == 1 else ""

    def short(self) -> int:
        """Count the studies with fewer drafts than were asked for."""
        return sum(len(case.query.candidates) < _expected(case, self.num_candidates) for case in self.cases)


def read_cases(lines: Iterable[bytes], *, name: str) -> Cases:
    """Read a queries file whole; a line that does not fit is an error, since a table must be complete."""
    digest = sha256()
    queries = [whole_query(query, name=name) for query in read_queries(_hashed(lines, digest))]
    cases = tuple(_case(query, name) for query in queries if query.reference is not None and query.candidates)
    if not cases:
        raise BadInputError(
            f"{name} holds no query with a 'reference' and drafts; add what the radiologist really wrote"
        )
    return Cases(name=name, cases=cases, left_out=len(queries) - len(cases), sha256=digest.hexdigest())


def _hashed(lines: Iterable[bytes], digest: Any) -> Iterator[bytes]:  # noqa: ANN401  # hashlib's own type is private
    """Pass lines through and hash them."""
    for line in lines:
        digest.update(line)
        yield line


def _case(query: Query, name: str) -> Case:
    """Read the reference."""
    try:
        return Case(query, reference_of(query) or Report())
    except BadInputError as error:
        raise BadInputError(f"{name}, {error}") from None


def _expected(case: Case, most: int) -> int:
    """Return how many drafts a study should have."""
    expected = case.query.facts.get("expected")
    return expected if isinstance(expected, int) else most


def states(case: Case) -> tuple[Sequence[str], Sequence[Sequence[str]]] | None:
    """Return the true state and each draft's, where the cohort is simulated."""
    found: list[Any] = [
        case.query.facts.get("state"),
        *(draft.get("state") for draft in case.query.draft_facts),
    ]
    if not all(isinstance(state, list) and all(isinstance(fact, str) for fact in state) for state in found):
        return None
    truth, *drafts = found
    return truth, drafts
