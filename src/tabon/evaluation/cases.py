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


def whose(query: Query) -> str:
    """Return the patient; a query without one stands for itself."""
    return f"study:{query.id}" if query.patient is None else f"patient:{query.patient}"


@dataclass(frozen=True, slots=True)
class Case:
    """One study with a reference."""

    query: Query
    reference: Report

    @property
    def patient(self) -> str:
        """Return whom the study is of."""
        return whose(self.query)

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
        most = self.num_candidates
        asked = [case.query.facts.get("expected") for case in self.cases]
        pairs = zip(self.cases, asked, strict=True)
        return sum(len(case.query.candidates) < (n if isinstance(n, int) else most) for case, n in pairs)


def read_cases(lines: Iterable[bytes], *, name: str) -> Cases:
    """Read a queries file whole; a line that does not fit is an error, since a table must be complete."""
    digest = sha256()

    def hashed() -> Iterator[bytes]:
        for line in lines:
            digest.update(line)
            yield line

    queries = [whole_query(query, name=name) for query in read_queries(hashed())]
    try:
        cases = tuple(
            Case(query, reference_of(query) or Report())
            for query in queries
            if query.reference is not None and query.candidates
        )
    except BadInputError as error:
        raise BadInputError(f"{name}, {error}") from None
    if not cases:
        raise BadInputError(
            f"{name} holds no query with a 'reference' and drafts; add what the radiologist really wrote"
        )
    return Cases(name=name, cases=cases, left_out=len(queries) - len(cases), sha256=digest.hexdigest())


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
