"""Which draft each selector took, read from its selections."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.errors import BadInputError
from tabon.evaluation.cases import Case

NOTHING = -1  # the selector abstained


@dataclass(frozen=True, slots=True, kw_only=True)
class Picks:
    """One selector's picks in one run."""

    method: str
    signature: str
    chosen: Mapping[str, int]  # by query; NOTHING where it abstained
    distances: Mapping[str, tuple[float, ...]]  # total distance of each draft, by query

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
    if len(signatures) != 1:
        raise BadInputError(
            f"{name} holds selections of {len(signatures)} signatures; give each selector its own file"
        )
    return Picks(
        method=method or method_of(signatures[0]),
        signature=signatures[0],
        chosen={str(record["id"]): _chosen(record) for record in records},
        distances={str(record["id"]): tuple(record.get("total_distances") or ()) for record in records},
    )


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
        if query in drafts and chosen >= drafts[query]:
            raise BadInputError(
                f"{name} chooses draft {chosen} of query {query!r}, which has {drafts[query]}; "
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
    except ValueError:
        pass
    raise BadInputError(f"{name} line {number} is not a selection; give what `tabon select` printed")


def _chosen(record: Mapping[str, Any]) -> int:
    """Return the chosen draft."""
    selected = record["selected"]
    return NOTHING if selected is None else int(selected)
