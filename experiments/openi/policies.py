"""What the paper's eight methods pick under every zero policy, with the right prior and with another's."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from selecting import SeedRun, others_priors

from tabon.encoders.protocol import Matrix
from tabon.method.distances import DISTANCES
from tabon.method.nearest import (
    AGGREGATES,
    ZERO_POLICIES,
    Aggregate,
    ExactIndex,
    Index,
    Neighbours,
    SectionBank,
    aggregate_distances,
    bank_neighbours,
)
from tabon.method.selection import WORST
from tabon.selectors import make_batch
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

Policy = Literal["neutral", "match", "farthest", "usual"]
POLICIES: tuple[Policy, ...] = (*ZERO_POLICIES, "usual")  # the last is measured here and not in tabon
METHODS: tuple[tuple[str, Aggregate], ...] = tuple(product(DISTANCES, AGGREGATES))
Rows = NDArray[np.intp]
Table = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the paper's methods under one policy."""

    method: tuple[str, Aggregate]
    policy: Policy
    other_prior: bool = False  # the control: another patient's prior


ARMS = tuple(Arm(*each) for each in product(METHODS, POLICIES, (False, True)))


class Once:
    """An index that is asked about the same drafts again: policies differ where there is no direction."""

    def __init__(self, index: Index) -> None:
        """Keep the index that searches."""
        self._index = index
        self._found: Neighbours | None = None

    def __len__(self) -> int:
        """Count the bank rows."""
        return len(self._index)

    def search(self, queries: Matrix, k: int) -> Neighbours:
        """Search the first time."""
        self._found = self._found or self._index.search(queries, k)
        return Neighbours(self._found.distances.copy(), self._found.rows)


def picks(run: SeedRun) -> dict[Arm, Rows]:
    """Return the draft of each query that each arm takes (eq. 8-12)."""
    asked = {False: run.queries, True: others_priors(run.queries, run.seed)}
    tools, count, k = run.tools, len(run.queries), run.tools.plan.neighbours
    batches = {other: make_batch(each, run.bank, tools.encoder, tools.store) for other, each in asked.items()}
    totals: dict[Arm, Table] = {}
    for distance, section in product(DISTANCES, SECTIONS):
        part = run.bank.section(section, distance)
        usual = usual_distances(part, k)
        for other, batch in batches.items():
            rows = batch.comparable(section)
            moves = batch.transitions(section, rows, distance)
            once = replace(part, index=part.index and Once(part.index))
            for policy in POLICIES:
                near = bank_neighbours(moves, once, k, "neutral" if policy == "usual" else policy).distances
                for aggregate in AGGREGATES:
                    far = np.full(len(batch.drafts), np.nan)
                    far[rows] = aggregate_distances(near, aggregate)
                    if policy == "usual":
                        far[rows[moves.zero]] = usual[aggregate]
                    arm = Arm((distance, aggregate), policy, other)
                    totals[arm] = totals.get(arm, 0.0) + _in_total(far.reshape(count, -1))
    return {arm: total.argmin(axis=1) for arm, total in totals.items()}


def _in_total(far: Table) -> Table:
    """Return what a section adds to the total (eq. 11): nothing where no draft can be compared."""
    lacking = np.isnan(far)
    return np.where(lacking.all(axis=1, keepdims=True), 0.0, np.where(lacking, WORST, far))


def usual_distances(part: SectionBank, k: int) -> dict[Aggregate, float]:
    """Return the distance of no change that is as usual as the bank says.

    It is the distance that a share p of the bank's own changes exceed, each measured against the others,
    p being the share of the bank's transitions without change. So no change beats as many real changes
    as there are real reports without change.
    """
    if not isinstance(part.index, ExactIndex):
        return dict.fromkeys(AGGREGATES, 0.0)  # nothing in the bank ever changes
    changes, k = part.index.rows(), min(k, len(part.index) - 1)
    found = part.index.search(changes, k + 1)
    others = found.rows != np.arange(len(changes))[:, None]
    others[others.all(axis=1), -1] = False  # as many equal ones stand before it
    near = found.distances[others].reshape(len(changes), k)
    changed = len(part.index) / len(part)
    return {how: float(np.quantile(aggregate_distances(near, how), changed)) for how in AGGREGATES}


def repeats_impression(report: Report, prior: Report) -> bool:
    """Say whether a report has the prior's Impression, sentence for sentence, in any order."""
    there, here = (sorted(split_sentences(one.impression)) for one in (prior, report))
    return bool(here) and here == there
