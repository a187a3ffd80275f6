"""What strangeness is usual: of the bank's own transitions, or of the picks for some queries.

Two sources. `bank`: how far each training transition is from those of all other
patients; it needs nothing else, and asks whether a draft looks like a real
transition. `queries`: how strange the picks were for queries of the same
generator with the same number of drafts; it holds the asked rate.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabon.atomic_files import replacing
from tabon.bank import TransitionBank
from tabon.conformal import best_of_p, conformal_p
from tabon.errors import BadInputError
from tabon.reports import SECTIONS, Section
from tabon.scoring import ZERO_TO_OTHER, aggregate_distances
from tabon.selection import Selection
from tabon.selector import Selector

FORMAT = "tabon-calibration/1"
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Usual total distances, by the sections that count ("findings+impression")."""

    source: str  # "bank" or "queries"
    signature: str  # of the selections it was made with, or for
    distances: Mapping[str, tuple[float, ...]]

    def p(self, selections: Sequence[Selection]) -> Array:
        """Return the p-value of each pick; NaN where nothing was chosen or compared before."""
        values = np.full(len(selections), np.nan)
        for row, selection in enumerate(selections):
            usual = self.distances.get(kind_of(selection), ())
            if selection.selected is not None and usual:
                self._check(selection)
                found = conformal_p(np.array([pick_distance(selection)]), np.array(usual))
                eligible = sum(
                    any(part.has(j) for part in selection.sections.values())
                    for j in range(len(selection.total_distances))
                )
                values[row] = best_of_p(found, np.array([eligible]))[0] if self.source == "bank" else found[0]
        return values

    def _check(self, selection: Selection) -> None:
        """Refuse picks that were made in another way."""
        if selection.signature != self.signature:
            raise BadInputError(
                f"the calibration is of {self.signature}, the selections are of {selection.signature}; "
                "calibrate again with `tabon calibrate`"
            )


def kind_of(selection: Selection) -> str:
    """Name the sections that count; distances over other sections cannot be compared."""
    return "+".join(selection.sections)


def pick_distance(selection: Selection) -> float:
    """Return the total distance of the pick."""
    if selection.selected is None:
        raise BadInputError("nothing was chosen; there is no distance")
    return selection.total_distances[selection.selected]


def abstaining(selections: Sequence[Selection], calibration: Calibration, rate: float) -> list[Selection]:
    """Give every pick its p, and choose nothing where it is at most `rate`."""
    if not 0 <= rate < 1:
        raise BadInputError(f"the abstention rate is {rate}; give a number from 0 to 1")
    answers = []
    for selection, p in zip(selections, calibration.p(selections).tolist(), strict=True):
        known = None if np.isnan(p) else p
        strange = known is not None and known <= rate
        answers.append(
            replace(selection, p=known, selected=None, abstained="implausible")
            if strange
            else replace(selection, p=known)
        )
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
    own = {section: _leave_patient_out(selector, section) for section in SECTIONS}
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


def _leave_patient_out(selector: Selector, section: Section) -> Array:
    """Return each bank row's distance to the rows of other patients; NaN where it has none."""
    bank = selector.bank
    part = bank.section(section, selector.distance)
    distances = np.full(len(bank), np.nan)
    if part.index is None:
        return distances
    patients = _patients(bank)
    most = max(Counter(patients.tolist()).values())
    k = 1 if selector.aggregate == "min" else selector.num_neighbours
    found = part.index.search(part.index.rows(), min(k + most, len(part.index)))
    for place, row in enumerate(part.rows.tolist()):
        others = patients[part.rows[found.rows[place]]] != patients[row]
        near = found.distances[place][others][:k]
        if len(near) == k:
            distances[row] = aggregate_distances(near[None], selector.aggregate)[0]
    distances[part.zero_rows] = ZERO_TO_OTHER[selector.zero]  # as a draft without change among those with
    return distances


def _patients(bank: TransitionBank) -> NDArray[np.intp]:
    """Number the patients of the bank's rows; a row without one stands for itself."""
    numbers: dict[str, int] = {}
    names = [
        f"patient:{facts['patient']}" if facts.get("patient") is not None else f"row:{row}"
        for row, facts in enumerate(bank.provenance)
    ]
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp)


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration in one step."""
    with replacing(path) as file:
        file.write(json.dumps({"format": FORMAT, **asdict(calibration)}).encode() + b"\n")


def read_calibration(path: Path) -> Calibration:
    """Read a calibration back; what is not whole is refused."""
    try:
        record = json.loads(path.read_bytes())
        if record.pop("format") == FORMAT:
            record["distances"] = {kind: tuple(values) for kind, values in record["distances"].items()}
            return Calibration(**record)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}); name a calibration") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise BadInputError(f"{path} is not a whole calibration; make it again with `tabon calibrate`")
