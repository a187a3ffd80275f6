"""The k-curve: picks under several numbers of neighbours, from one search at the largest."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tabon.evaluation import Picks
from tabon.method.selection import WORST, SectionDistances, Selection
from tabon.selectors import Selector
from tabon.text.records import Query


def picks_by_neighbours(
    selector: Selector, queries: Sequence[Query], counts: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield, for each query, the pick under each number of neighbours."""
    for query, selection in zip(queries, selector.select_many(queries), strict=True):
        picks = {str(k): pick_with(selection, k) for k in counts}
        yield {"id": query.id, "selected": picks, "signature": selector.signature}


def pick_with(selection: Selection, neighbours: int) -> int | None:
    """Return the draft that kNN with fewer neighbours takes (eq. 10-12); None where nothing is chosen."""
    if selection.selected is None:
        return None
    totals = sum(_section(part, neighbours) for part in selection.sections.values())
    eligible = [any(part.nearest[j] for part in selection.sections.values()) for j in range(len(totals))]
    return int(np.where(eligible, totals, np.inf).argmin())


def _section(part: SectionDistances, neighbours: int) -> Any:  # noqa: ANN401  # an array of the drafts
    """Return one section's distances with the nearest few."""
    means = [
        np.mean([neighbour.distance for neighbour in near[:neighbours]]) if near else WORST
        for near in part.nearest
    ]
    return np.array(means)


def read_neighbour_picks(files: Mapping[str, Path]) -> Iterator[Picks]:
    """Yield the picks of every distance and number of neighbours."""
    for distance, path in files.items():
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        for k in records[0]["selected"]:
            chosen = {record["id"]: record["selected"][k] for record in records}
            yield Picks(
                method=f"{distance}/knn@{k}",
                signature=f"neighbours:{k}|{records[0]['signature']}",
                chosen={query: -1 if pick is None else pick for query, pick in chosen.items()},
                distances={},
            )
