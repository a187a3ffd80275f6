"""From section distances to the chosen draft (eq. 11-12), and the signature of what chose it.

Lower is better. Where the paper is silent: a section that the prior lacks is
left out for all drafts; a draft that lacks a section has distance 1 there; ties
go to the earliest draft; where nothing can be compared, nothing is chosen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import numpy as np

from tabon.text.reports import Section

WORST = 1.0  # the distance of a section that a draft lacks
EMPTY_POLICY = "prior-left-out,draft-worst"
ABSTENTIONS: Mapping[str, str] = MappingProxyType(
    {
        "no-drafts": "there are no drafts to choose from; give at least one",
        "empty-prior": "the prior has neither findings nor impression; give at least one of them",
        "all-drafts-empty": "no draft has findings or impression; check the generator's output",
        "nothing-to-compare": "no draft has a section that the prior and the bank have too; "
        "give matching sections",
        "implausible": "even the best draft is less plausible than the asked rate allows; "
        "look at the drafts, or lower --abstain",
        "trained-on": "the selector was fitted on this patient; fit it without, or use an unfitted one",
        "patient-in-bank": "the patient's own transitions are in the bank; build the bank without this "
        "patient, or say --allow-bank-patients",
    }
)


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader should know of a section, of a draft, or of a draft's section.

    >>> str(Note("no-change", "findings", 0)), str(Note("stopped", draft=1))
    ('no-change:findings:0', 'stopped:1')
    """

    kind: str  # such as draft-lacks; docs/reference/file-formats.md lists them
    section: str | None = None  # None: of all sections
    draft: int | None = None  # None: of the prior, or of all drafts

    def __str__(self) -> str:
        """Write the note as records have it: kind:section:draft, without what it leaves open."""
        return ":".join(str(part) for part in (self.kind, self.section, self.draft) if part is not None)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A training transition near a draft's transition."""

    row: int  # of the bank
    distance: float
    provenance: Sequence[Mapping[str, Any]] = field(repr=False, compare=False)  # of the bank
    prior_distance: float | None = None  # of its prior to the query's, if it was looked up by that

    @property
    def id(self) -> str:
        """Return the transition's id; read when it is asked for."""
        return str(self.provenance[self.row]["id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionDistances:
    """One section's bank distances 𝔇_S, one for each draft."""

    distances: tuple[float, ...]
    nearest: tuple[tuple[Neighbour, ...], ...]  # empty if the draft lacks the section
    parts: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)  # what a distance is made of
    compared: tuple[bool, ...]  # which drafts could be compared


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Selection:
    """The chosen draft and why it was chosen.

    Args:
        selected: its number from 0; None if nothing was chosen.
        total_distances: of each draft, 𝔇(ŷ) of eq. 11; lower is better.
        sections: the distances by section, with the nearest training transitions.
        margin: how far the second best is behind; None if there is no second.
        tied: whether the second best is as good.
        flags: what a reader should know, such as drafts that lack a section.
        abstained: why nothing was chosen, a key of `ABSTENTIONS`.
        p: how usual the pick is among calibration cases; None if nothing was calibrated.
        signature: all that changes the choice, in one line.

    >>> Selection(selected=1, total_distances=(1.0, 0.75), margin=0.25), Selection(abstained="no-drafts")
    (Selection(selected=1, drafts=2, margin=0.25), Selection(abstained='no-drafts'))
    """

    selected: int | None = None
    total_distances: tuple[float, ...] = ()
    sections: Mapping[Section, SectionDistances] = field(default_factory=dict)
    margin: float | None = None
    tied: bool = False
    flags: tuple[Note, ...] = ()
    abstained: str | None = None
    p: float | None = None
    signature: str = ""

    def __repr__(self) -> str:
        """Give the answer in one line."""
        if self.selected is None:
            return f"Selection(abstained={self.abstained!r})"
        lead = "" if self.margin is None else f", margin={self.margin:.3g}"
        return f"Selection(selected={self.selected}, drafts={len(self.total_distances)}{lead})"

    def as_record(self, query_id: str) -> dict[str, Any]:
        """Return the selections contract of docs/reference/file-formats.md."""
        return {
            "id": query_id,
            "selected": self.selected,
            "total_distances": list(self.total_distances),
            "section_distances": {name: list(part.distances) for name, part in self.sections.items()},
            "nearest": {
                name: [{"id": one.id, "distance": one.distance} for one in part.nearest[self.selected]]
                if self.selected is not None
                else []
                for name, part in self.sections.items()
            },
            "parts": {
                name: {part: list(values) for part, values in found.parts.items()}
                for name, found in self.sections.items()
                if found.parts
            },
            "margin": self.margin,
            "tied": self.tied,
            "flags": list(map(str, self.flags)),
            "abstained": self.abstained,
            "p": self.p,
            "signature": self.signature,
        }


def total_distances(sections: Sequence[SectionDistances]) -> tuple[float, ...]:
    """𝔇(ŷ) = 𝔇_F(ŷ) + 𝔇_I(ŷ) over the sections that count (eq. 11)."""
    return tuple(float(sum(parts)) for parts in zip(*(part.distances for part in sections), strict=True))


def select(
    sections: Mapping[Section, SectionDistances], *, flags: tuple[Note, ...] = (), signature: str = ""
) -> Selection:
    """Take the draft with the smallest total distance (eq. 12); ties go to the first.

    Only drafts with at least one section that counts are eligible.

    >>> part = SectionDistances(distances=(0.4, 0.1), nearest=((), ()), compared=(True, True))
    >>> select({"findings": part}).selected
    1
    """
    totals = np.array(total_distances(list(sections.values())))
    eligible = [j for j in range(len(totals)) if any(part.compared[j] for part in sections.values())]
    if not eligible:
        return Selection(selected=None, flags=flags, abstained="nothing-to-compare", signature=signature)
    ranked = sorted(eligible, key=totals.__getitem__)  # stable: the earliest of equals
    best = ranked[0]
    margin = float(totals[ranked[1]] - totals[best]) if len(ranked) > 1 else None
    return Selection(
        selected=best,
        total_distances=tuple(map(float, totals)),
        sections=sections,
        margin=margin,
        tied=margin == 0.0,
        flags=flags,
        signature=signature,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """All that changes a selection, in one line that fits under a table."""

    distance: str
    aggregate: str  # min, knn10
    encoder: str  # name@weights
    splitter: str
    parser: str
    sets: str
    zero: str
    empty: str
    solver: str
    bank: str  # first 12 hex digits of the bank's sha256
    tabon: str = version("tabon")

    def __str__(self) -> str:
        """Write name:value, joined by bars."""
        return "|".join(f"{field.name}:{getattr(self, field.name)}" for field in fields(self))


def differences(one: str, other: str) -> tuple[str, str]:
    """Return what each of two signatures says that the other does not.

    >>> differences("distance:novelty|zero:match", "distance:cost-ot|zero:match")
    ('distance:novelty', 'distance:cost-ot')
    """
    left, right = (set(signature.split("|")) for signature in (one, other))
    return ", ".join(sorted(left - right)), ", ".join(sorted(right - left))
