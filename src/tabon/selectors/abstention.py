"""How implausible is the pick? Conformal p-values, against what is usual in the bank or for some queries.

A p-value is the share of calibration cases at least as implausible as the case at
hand; for a case that is exchangeable with them, P(p ≤ a) ≤ a (docs/decisions/abstention.md).
Source `bank`: how far each training transition is from those of all other patients. Source `queries`: how
implausible the picks were for queries of the same generator with the same number of drafts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tabon._internal.atomic_files import replacing
from tabon._internal.typed_values import read_typed
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.method.nearest import ExactIndex, SectionBank, aggregate_distances, bank_neighbours
from tabon.method.selection import Selection, differences
from tabon.method.transitions import Transitions
from tabon.selectors import Selector
from tabon.selectors.transition import Transition
from tabon.text.reports import SECTIONS, Section

Array = NDArray[np.float64]
FORMAT = "tabon-calibration/1"


def conformal_p(distances: Array, calibration: Array) -> Array:
    """P = (1 + #{calibration ≥ d}) / (n + 1), ties counted as at least as implausible.

    >>> conformal_p(np.array([0.5, 9.0]), np.array([0.1, 0.5, 0.7])).tolist()
    [0.75, 0.25]
    """
    ordered = np.sort(calibration)
    at_least = len(ordered) - np.searchsorted(ordered, distances, side="left")
    return (1.0 + at_least.astype(np.float64)) / (len(ordered) + 1.0)


def best_of_p(p: Array, num_candidates: NDArray[np.intp]) -> Array:
    """P of the best of K drafts from the p of that draft alone.

    Were the drafts independent real transitions, P(largest p ≤ x) = x^K. Drafts of one
    generator are alike, so this abstains too seldom rather than too often.

    >>> best_of_p(np.array([0.5]), np.array([3])).tolist()
    [0.125]
    """
    best: Array = p**num_candidates
    return best


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The mean loss of what is kept when the least plausible cases are left out."""

    coverage: tuple[float, ...]  # ascending, up to 1
    risk: tuple[float, ...]

    @property
    def area(self) -> float:
        """Return the area under the curve (AURC); lower is better."""
        return float(np.mean(self.risk))


def risk_coverage(distances: Array, losses: Array, *, points: int | None = None) -> RiskCoverage:
    """Keep the most plausible cases first; equally plausible ones are kept or left out together.

    `losses` are what each pick costs, such as 1 - F1; `points` evenly spaced coverages are reported, or all.

    >>> risk_coverage(np.array([0.2, 0.1, 0.9]), np.array([0.5, 0.0, 1.0])).risk
    (0.0, 0.25, 0.5)
    """
    order = np.argsort(distances, kind="stable")
    kept = np.arange(1, len(order) + 1)
    risk = np.cumsum(losses[order]) / kept
    last = np.r_[np.flatnonzero(np.diff(distances[order]) > 0), len(order) - 1]
    if points is not None:
        wanted = np.ceil(len(order) * np.arange(1, points + 1) / points)
        last = last[np.minimum(np.searchsorted(kept[last], wanted), len(last) - 1)]
    return RiskCoverage(tuple((kept[last] / len(order)).tolist()), tuple(risk[last].tolist()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Usual total distances, by what can be compared: the sections that count, and the drafts for picks."""

    source: Literal["bank", "queries"]
    signature: str  # of the selections it was made with, or for
    distances: Mapping[str, tuple[float, ...]]

    def p(self, selections: Sequence[Selection]) -> Array:
        """Return the p-value of each pick; NaN if nothing was chosen or compared before."""
        values = np.full(len(selections), np.nan)
        for row, selection in enumerate(selections):
            if selection.selected is None:
                continue
            if selection.signature != self.signature:
                there, here = differences(self.signature, selection.signature)
                raise BadInputError(
                    f"the calibration was made with {there}, the selections with {here}; "
                    "calibrate again with the same options"
                )
            bank = self.source == "bank"
            usual = self.distances.get(sections_of(selection) if bank else kind_of(selection), ())
            if usual:
                found = conformal_p(np.array([pick_distance(selection)]), np.array(usual))
                values[row] = best_of_p(found, np.array([drafts_of(selection)]))[0] if bank else found[0]
        return values


def sections_of(selection: Selection) -> str:
    """Name the sections that count; distances over other sections cannot be compared."""
    return "+".join(selection.sections)


def drafts_of(selection: Selection) -> int:
    """Count the drafts that could be chosen: the pick is the best of so many."""
    return sum(
        any(part.compared[draft] for part in selection.sections.values())
        for draft in range(len(selection.total_distances))
    )


def kind_of(selection: Selection) -> str:
    """Name what a pick can be compared with: the same sections, the best of as many drafts."""
    return f"{sections_of(selection)}, best of {drafts_of(selection)}"


def pick_distance(selection: Selection) -> float:
    """Return the total distance of the pick."""
    if selection.selected is None:
        raise BadInputError("nothing was chosen; there is no distance")
    return selection.total_distances[selection.selected]


def abstaining(selections: Sequence[Selection], calibration: Calibration, rate: float) -> list[Selection]:
    """Give every pick its p, and choose nothing if it is at most `rate`."""
    if not 0 <= rate < 1:
        raise BadInputError(f"the abstention rate is {rate}; give a number from 0 to below 1")
    most = max(map(len, calibration.distances.values()), default=0)
    if calibration.source == "queries" and 0 < rate * (most + 1) < 1:
        raise BadInputError(
            f"{most} calibration cases cannot hold a rate of {rate}: the smallest p is 1/{most + 1}; "
            "calibrate on more queries"
        )
    answers = []
    for selection, p in zip(selections, calibration.p(selections).tolist(), strict=True):
        judged = replace(selection, p=None if np.isnan(p) else p)
        implausible = p <= rate  # NaN is not
        answers.append(replace(judged, selected=None, abstained="implausible") if implausible else judged)
    return answers


def from_queries(selections: Sequence[Selection]) -> Calibration:
    """Calibrate on the picks for queries of the same generator and number of drafts."""
    signatures = {selection.signature for selection in selections if selection.selected is not None}
    if len(signatures) != 1:
        raise BadInputError("there are no picks to calibrate on; give queries that can be answered")
    usual: dict[str, list[float]] = {}
    for selection in selections:
        if selection.selected is not None:
            usual.setdefault(kind_of(selection), []).append(pick_distance(selection))
    return Calibration(
        source="queries",
        signature=signatures.pop(),
        distances={kind: tuple(sorted(values)) for kind, values in usual.items()},
    )


def from_bank(selector: Selector) -> Calibration:
    """Calibrate on the bank: each transition's distance to those of all other patients."""
    bank = selector.bank
    scorer = selector.scorer
    if not isinstance(scorer, Transition) or selector.history:  # others say nothing of the bank's own
        raise BadInputError(
            "only the paper's method without --history calibrates on the bank; give --calibration FILE, "
            "made with `tabon calibrate`"
        )
    own = {section: _leave_patient_out(bank, scorer, section) for section in SECTIONS}
    both = own["findings"] + own["impression"]
    usual = {"findings": own["findings"], "impression": own["impression"], "findings+impression": both}
    if not any(np.isfinite(values).any() for values in usual.values()):
        raise BadInputError(
            f"the bank's {len(bank)} transitions are of too few patients to calibrate on; build a larger one"
        )
    return Calibration(
        source="bank",
        signature=selector.signature,
        distances={
            kind: tuple(np.sort(values[~np.isnan(values)]).tolist()) for kind, values in usual.items()
        },
    )


def _leave_patient_out(bank: TransitionBank, scorer: Transition, section: Section) -> Array:
    """Return each bank row's distance to the rows of other patients; NaN if there are too few."""
    part = bank.section(section, scorer.distance)
    distances = np.full(len(bank), np.nan)
    if len(part) == 0:
        return distances
    names = [  # a row without a patient is a patient of its own
        f"patient:{facts['patient']}" if facts.get("patient") is not None else f"row:{row}"
        for row, facts in enumerate(bank.provenance)
    ]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    patients = np.array([numbers[name] for name in names])
    k = 1 if scorer.aggregate == "min" else scorer.num_neighbours
    most = int(np.bincount(patients).max())
    rows = np.concatenate([part.rows, part.zero_rows])
    found = bank_neighbours(_moves_of(part), part, min(k + most, len(part)), scorer.zero)
    for place, row in enumerate(rows.tolist()):
        others = patients[found.rows[place]] != patients[row]
        near = found.distances[place][others][:k]
        if len(near) == k:
            distances[row] = aggregate_distances(near[None], scorer.aggregate)[0]
    return distances


def _moves_of(part: SectionBank) -> Transitions:
    """Return the bank's own transitions: those with a direction, then those without."""
    if not isinstance(part.index, ExactIndex | None):
        raise BadInputError(
            "only the exact search can calibrate on the bank; leave --search out, or give --calibration FILE"
        )
    moving = np.zeros((0, 1), dtype=np.float32) if part.index is None else part.index.rows()
    still = np.zeros((len(part.zero_rows), moving.shape[1]), dtype=np.float32)
    zero = np.arange(len(part)) >= len(moving)
    return Transitions(np.concatenate([moving, still]), zero)


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration in one step."""
    with replacing(path) as file:
        file.write(json.dumps({"format": FORMAT, **asdict(calibration)}).encode() + b"\n")


def read_calibration(path: Path) -> Calibration:
    """Read a calibration back; what is not whole is refused."""
    return read_typed(
        Calibration,
        path,
        form=FORMAT,
        what="calibration",
        hint="make it again with `tabon calibrate`",
    )
