"""A clinical score without weights to fetch: what a draft's errors would cost, finding by finding.

    two texts ─▶ their findings ─▶ each one's best counterpart ─▶ errors by kind, weighed ─▶ a score in [0, 1]

    score = (granted + agreed) / (granted + agreed + harm)

Each error weighs a part of its finding's weight, by `clinical.toml`. Every finding of the reference looks
for the finding of the draft that differs from it least, and the other way round. A finding without any
counterpart is missed or invented; of what two counterparts differ in, each of the two carries half.
What is denied, or normal, counts for nothing: it only denies.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import log
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from tabon.metrics.protocol import Metric, Pair, Score, Statistics, mean_of, measure_texts
from tabon.text.attributes import ATTRIBUTES, FindingStatement, merged, says_something, statements
from tabon.text.findings import lexicon
from tabon.text.observations import LABELLER, Side
from tabon.text.sentences import SPLITTER

CLINICAL: Final = "clinical-1"
"""Any change of a weight or of a rule bumps the number."""

LARGEST_RATIO = 3.0  # of two sizes; beyond it nothing is added
GRADES = 2.0  # from mild to severe
DIRECTION = {"new": 1, "worse": 1, "stable": 0, "improved": -1, "resolved": -1, "moved": 0}
SILENT = "silent"


class Finding(NamedTuple):
    """A finding of a text with what an error about it weighs."""

    said: FindingStatement
    weight: float


@dataclass(frozen=True, slots=True)
class ClinicalText:
    """A text as the score reads it."""

    findings: tuple[Finding, ...]
    silent: bool  # nothing in it could be read


# --- the weights ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weights:
    """`clinical.toml`."""

    granted: float
    findings: Mapping[str, float]
    amount: tuple[float, float, float]  # mild, moderate, severe
    same: Mapping[str, str]
    errors: Mapping[str, float]  # from the worst on
    silence: float
    doubtful: float

    def of(self, said: FindingStatement) -> float:
        """Return what missing or inventing this finding costs."""
        mild, moderate, severe = self.amount
        grade = 2.0 if said.grade is None else said.grade
        share = moderate + (grade - 2) * (severe - moderate if grade > 2 else moderate - mild)  # noqa: PLR2004
        return self.findings[said.name] * share * (1.0 if said.certainty == "stated" else self.doubtful)


@cache
def weights() -> Weights:
    """Read the weights, once."""
    book = tomllib.loads(files("tabon.metrics").joinpath("clinical.toml").read_text(encoding="utf-8"))
    amount, silence = book["amount"], book["silence"]
    return Weights(
        granted=book["granted"],
        findings=MappingProxyType(
            {name: level["weight"] for level in book["levels"] for name in level["findings"]}
        ),
        amount=(amount["mild"], amount["moderate"], amount["severe"]),
        same=MappingProxyType(book["same"]),
        errors=MappingProxyType(book["errors"]),
        silence=silence["weight"],
        doubtful=silence["doubtful"],
    )


# --- reading ----------------------------------------------------------------------------


def read_findings(text: str) -> ClinicalText:
    """Return what a text states, for sure or perhaps, each finding once, and its weight.

    >>> [(one.said.name, one.weight) for one in read_findings("Large effusion. No edema.").findings]
    [('Pleural Effusion', 1.4)]
    """
    kept: list[FindingStatement] = []
    for said in statements(text):
        if said.certainty == "denied":
            continue
        one = replace(said, name=weights().same.get(said.name, said.name))
        index = next((index for index, other in enumerate(kept) if _is_one(one, other)), None)
        if index is None:
            kept.append(one)
        else:
            kept[index] = _together(kept[index], one)
    found = tuple(Finding(said, weights().of(said)) for said in kept)
    return ClinicalText(found, silent=not says_something(text))


def _is_one(one: FindingStatement, other: FindingStatement) -> bool:
    """Whether two statements of a text may be about one finding."""
    return one.name == other.name and (one.side == other.side or None in (one.side, other.side))


def _together(one: FindingStatement, other: FindingStatement) -> FindingStatement:
    """Return two statements about one finding as one; it is as sure as the surer of the two."""
    sure = "stated" in (one.certainty, other.certainty)
    return replace(merged(one, other), certainty="stated" if sure else "doubtful")


# --- the errors between two findings ----------------------------------------------------


def errors_between(reference: FindingStatement, draft: FindingStatement) -> Iterator[tuple[str, float]]:
    """Yield each error of a draft's finding as its kind and how much of that kind's weight it has.

    >>> small, large = (next(iter(statements(f"{grade} left effusion."))) for grade in ("Small", "Large"))
    >>> list(errors_between(small, large))
    [('severity', 1.0)]
    """
    if reference.name != draft.name:
        yield "name", 1.0
    if kind := _side_error(reference.side, draft.side):
        yield kind, 1.0
    if reference.zones and draft.zones and reference.zones.isdisjoint(draft.zones):
        yield "zone", 1.0
    yield from _amount_errors(reference, draft)
    if kind := _change_error(reference, draft):
        yield kind, 1.0
    if reference.certainty != draft.certainty:
        yield "doubt", 1.0


def _amount_errors(reference: FindingStatement, draft: FindingStatement) -> Iterator[tuple[str, float]]:
    """Yield the errors of grade and of size; what only the draft gives is none."""
    if reference.grade is not None and draft.grade is None:
        yield "detail", 1.0
    elif reference.grade is not None and draft.grade is not None and reference.grade != draft.grade:
        yield "severity", abs(reference.grade - draft.grade) / GRADES
    if reference.size and draft.size and reference.size != draft.size:
        yield "size", min(1.0, abs(log(reference.size / draft.size)) / log(LARGEST_RATIO))


def _side_error(reference: Side | None, draft: Side | None) -> str | None:
    """Return the kind of error between two sides; a side that only the draft gives is none."""
    if reference is None or reference == draft:
        return None
    if draft is None:
        return "detail"
    return "one_side" if "bilateral" in (reference, draft) else "side"


def _change_error(reference: FindingStatement, draft: FindingStatement) -> str | None:
    """Return the kind of error between two changes; "new" and "worse" go the same way."""
    if reference.change == draft.change:
        return None
    told = [DIRECTION[one.change] for one in (reference, draft) if one.change is not None]
    if len(told) == 1:
        return "change_word" if told[0] else "stable_word"
    return ("change_word", "part_change", "change")[abs(told[0] - told[1])]


def _part(reference: FindingStatement, draft: FindingStatement) -> dict[str, float]:
    """Return the errors between two counterparts, by kind, as parts of the weight: 1 at most in all."""
    found: dict[str, float] = {}
    for kind, share in errors_between(reference, draft):
        found[kind] = found.get(kind, 0.0) + weights().errors[kind] * share
    total = sum(found.values())
    return {kind: part / total for kind, part in found.items()} if total > 1 else found


# --- two texts --------------------------------------------------------------------------


def pair_row(reference: ClinicalText, draft: ClinicalText) -> tuple[float, ...]:
    """Return the score, what is agreed, and the harm of each kind of error, in the order of `STATISTICS`."""
    harm = dict.fromkeys((*weights().errors, SILENT), 0.0)
    agreed = _add(harm, reference.findings, draft.findings, missing="missed", swap=False)
    agreed += _add(harm, draft.findings, reference.findings, missing="invented", swap=True)
    harm[SILENT] = weights().silence if reference.silent != draft.silent else 0.0
    good = weights().granted + agreed
    return (good / (good + sum(harm.values())), agreed, *harm.values())


def _add(
    harm: dict[str, float], ours: Sequence[Finding], theirs: Sequence[Finding], *, missing: str, swap: bool
) -> float:
    """Add the harm that the findings of one text carry; return half of the weight that they agree in."""
    agreed = 0.0
    for one in ours:
        options = [
            _part(other.said, one.said) if swap else _part(one.said, other.said)
            for other in theirs
            if other.said.name in {one.said.name, *lexicon().akin_to(one.said.name)}
        ]
        if not options:
            harm[missing] += one.weight * weights().errors[missing]
            continue
        least = min(options, key=lambda parts: sum(parts.values()))
        for kind, part in least.items():
            harm[kind] += one.weight * part / 2
        agreed += one.weight * max(0.0, 1 - sum(least.values())) / 2
    return agreed


STATISTICS: Final = ("score", "agreed", *weights().errors, SILENT)


@dataclass(frozen=True, slots=True)
class ClinicalScore:
    """The clinical score; made by `load`."""

    name = "clinical"
    statistics = STATISTICS
    scores = (Score("clinical", mean_of(0)),)

    @property
    def signature(self) -> str:
        """Return the versions of the weights and of everything that reads the text."""
        return (
            f"clinical|weights:{CLINICAL.rpartition('-')[2]}|attributes:{ATTRIBUTES.rpartition('-')[2]}"
            f"|labeller:{LABELLER}|splitter:{SPLITTER}"
        )

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair: the score, what is agreed, and the harm by kind of error."""
        return measure_texts(pairs, read_findings, pair_row, len(STATISTICS))


def load(_model: Path | None = None) -> Metric:
    """Return the clinical score; it needs no files."""
    return ClinicalScore()
