"""Which draft each selector took, read from its selections."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tabon.errors import BadInputError
from tabon.evaluation.cases import Case
from tabon.evaluation.results import REFERENCES

NOTHING = -1  # the selector abstained
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Picks:
    """One selector's picks in one run."""

    method: str
    signature: str
    chosen: Mapping[str, int]  # by query; NOTHING where it abstained
    distances: Mapping[str, tuple[float, ...]]  # total distance of each draft, by query
    sections: Mapping[str, int] = field(default_factory=dict)  # how many sections make a total, by query

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
    named = method or method_of(signatures[0])
    if named in REFERENCES:
        raise BadInputError(f"{named!r} is the name of a reference row; name {name} otherwise (NAME=FILE)")
    return Picks(
        method=named,
        signature=signatures[0],
        chosen=_by_query(records, _chosen, name),
        distances=_by_query(records, _distances, name),
        sections=_by_query(records, _sections, name),
    )


def _by_query(
    records: Sequence[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], T], name: str
) -> dict[str, T]:
    """Read one thing of every selection, by query; each query has one selection."""
    values: dict[str, T] = {}
    for record in records:
        query = str(record["id"])
        if query in values:
            raise BadInputError(f"{name} answers query {query!r} twice; give each query one selection")
        try:
            values[query] = read(record)
        except (TypeError, ValueError, AttributeError, OverflowError):
            raise BadInputError(
                f"{name}, query {query!r}: not a selection; give what `tabon select` printed"
            ) from None
    return values


def method_of(signature: str) -> str:
    """Return the short name of a method.

    >>> method_of("distance:novelty|aggregate:knn10|encoder:minilm")
    'novelty/knn'
    """
    parts = dict(part.partition(":")[::2] for part in signature.split("|"))
    if "selector" in parts:
        return parts["selector"]
    if "distance" in parts and "aggregate" in parts:
        return f"{parts['distance']}/{parts['aggregate'].rstrip('0123456789')}"
    return signature or "selections"


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
    raise BadInputError(f"{name} line {number} is not a selection; give what `tabon select` printed")


def _chosen(record: Mapping[str, Any]) -> int:
    """Return the chosen draft."""
    selected = record["selected"]
    if selected is None:
        return NOTHING
    if not isinstance(selected, int) or isinstance(selected, bool) or selected < 0:
        raise ValueError(selected)
    return selected


def _distances(record: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the total distance of each draft."""
    return tuple(float(value) for value in record.get("total_distances") or ())


def _sections(record: Mapping[str, Any]) -> int:
    """Return how many sections make a total."""
    return len(dict(record.get("section_distances") or {}))
