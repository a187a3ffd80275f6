"""What an evaluation reads: studies with drafts and references, and which draft each selector took."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tabon.errors import BadInputError
from tabon.evaluation.results import REFERENCES
from tabon.method.selection import Selection
from tabon.text.file_kinds import check_kind
from tabon.text.records import Query, read_query_lines, reference_of, whole_query
from tabon.text.reports import SECTIONS, Report, Section

Part = Section | Literal["report"]  # a section, or the whole report
PARTS: tuple[Part, ...] = (*SECTIONS, "report")
NOTHING = -1  # the selector abstained


def whose(query: Query) -> str:
    """Return the patient; a query without one is one of its own."""
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

    queries = [whole_query(query, name=name) for query in read_query_lines(hashed(), name=name)]
    return cases_of(queries, name=name, digest=digest.hexdigest())


def cases_of(queries: Sequence[Query], *, name: str, digest: str | None = None) -> Cases:
    """Return the queries that can be measured; what names their content is worked out if it is not given."""
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
    left_out = len(queries) - len(cases)
    return Cases(name=name, cases=cases, left_out=left_out, sha256=digest or _digest(queries))


def _digest(queries: Sequence[Query]) -> str:
    """Return what names the content of queries."""
    text = json.dumps([asdict(query) for query in queries], sort_keys=True, default=repr)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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


@dataclass(frozen=True, slots=True)
class Method:
    """What a signature says of the selector that it identifies."""

    name: str  # "novelty/knn"
    parts: tuple[str, ...]  # all that changes its picks, each as name:value
    per_draft: bool  # whether a draft's distance does not depend on the other drafts


def read_signature(signature: str) -> Method:
    """Take a signature apart; this is the only place that does.

    >>> read_signature("distance:novelty|aggregate:knn10|encoder:minilm").name
    'novelty/knn'
    """
    parts = tuple(signature.split("|"))
    fields = dict(part.partition(":")[::2] for part in parts)
    if "selector" in fields:
        return Method(fields["selector"], parts, per_draft=False)
    if "distance" in fields and "aggregate" in fields:
        name = f"{fields['distance']}/{fields['aggregate'].rstrip('0123456789')}"
        return Method(name, parts, per_draft=True)
    return Method(signature or "selections", parts, per_draft=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picks:
    """One selector's picks in one run."""

    method: str
    signature: str
    chosen: Mapping[str, int]  # by query; NOTHING where it abstained
    distances: Mapping[str, tuple[float, ...]]  # total distance of each draft, by query
    sections: Mapping[str, int] = field(default_factory=dict)  # how many sections make a total, by query
    per_draft: bool = False  # whether a distance does not depend on the other drafts: K-curves can be drawn

    @classmethod
    def of(
        cls, method: str, queries: Sequence[Query], selections: Sequence[Selection], signature: str
    ) -> "Picks":
        """Return the drafts that selections took, without their distances."""
        chosen = {
            query.id: NOTHING if selection.selected is None else selection.selected
            for query, selection in zip(queries, selections, strict=True)
        }
        return cls(method=method, signature=signature, chosen=chosen, distances={})

    def rows(self, cases: Sequence[Case]) -> NDArray[np.intp]:
        """Return the pick of each study."""
        return np.array([self.chosen.get(case.query.id, NOTHING) for case in cases], dtype=np.intp)

    def distance_rows(self, cases: Sequence[Case]) -> NDArray[np.float64]:
        """Return the total distances of each study's drafts, (studies, K); NaN where there is none."""
        most = max(len(case.query.candidates) for case in cases)
        table = np.full((len(cases), most), np.nan)
        for row, case in enumerate(cases):
            distances = self.distances.get(case.query.id, ())
            table[row, : len(distances)] = distances
        return table


def read_picks(lines: Iterable[bytes], *, name: str, method: str | None = None) -> Picks:
    """Read a selections file; all of its lines carry one signature."""
    records = [_record(line, number, name) for number, line in enumerate(lines, start=1) if line.strip()]
    signatures = list(dict.fromkeys(str(record.get("signature", "")) for record in records))
    if not records:
        raise BadInputError(f"{name} holds no selections; give what `tabon select` printed")
    if len(signatures) != 1:
        raise BadInputError(
            f"{name} holds selections of {len(signatures)} signatures; give each selector its own file"
        )
    found = read_signature(signatures[0])
    named = method or found.name
    if named in REFERENCES:
        raise BadInputError(f"{named!r} is the name of a reference row; name {name} otherwise (NAME=FILE)")
    chosen: dict[str, int] = {}
    distances: dict[str, tuple[float, ...]] = {}
    sections: dict[str, int] = {}
    for record in records:
        query = str(record["id"])
        if query in chosen:
            raise BadInputError(f"{name} answers query {query!r} twice; give each query one selection")
        try:
            chosen[query] = _chosen(record["selected"])
            distances[query] = tuple(float(value) for value in record.get("total_distances") or ())
            sections[query] = len(dict(record.get("section_distances") or {}))
        except (TypeError, ValueError, AttributeError, OverflowError):
            raise BadInputError(
                f"{name}, query {query!r}: not a selection; give what `tabon select` printed"
            ) from None
    return Picks(
        method=named,
        signature=signatures[0],
        chosen=chosen,
        distances=distances,
        sections=sections,
        per_draft=found.per_draft,
    )


def check_picks(picks: Picks, cases: Sequence[Case], *, name: str) -> None:
    """Refuse selections that belong to other queries."""
    drafts = {case.query.id: len(case.query.candidates) for case in cases}
    for query, chosen in picks.chosen.items():
        if query in drafts and max(chosen + 1, len(picks.distances.get(query, ()))) > drafts[query]:
            raise BadInputError(
                f"{name} speaks of more drafts (draft {chosen} is chosen) of query {query!r} than its "
                f"{drafts[query]}; "
                "these selections were made for other queries"
            )
    if not drafts.keys() & picks.chosen.keys():
        raise BadInputError(f"{name} answers none of the queries; give the selections made for them")


def _record(line: bytes, number: int, name: str) -> dict[str, Any]:
    """Read one selection."""
    try:
        record = json.loads(line)
        if isinstance(record, dict) and "id" in record and "selected" in record:
            return record
    except (ValueError, RecursionError):
        pass
    check_kind(line, "selections", name)
    raise BadInputError(f"{name} line {number} is not a selection; give what `tabon select` printed")


def _chosen(selected: object) -> int:
    """Return the chosen draft."""
    if selected is None:
        return NOTHING
    if not isinstance(selected, int) or isinstance(selected, bool) or selected < 0:
        raise ValueError(selected)
    return selected
