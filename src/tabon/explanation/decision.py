"""What decided: how much of the pick's lead over another draft each part of the distance makes.

    lead = D(other) - D(pick)        the sum, over parts and sections, of
    adds = part(other) - part(pick)  which has the share adds / lead

Shares have a sign and add up to 1. A selector whose distance is not a sum of parts has one part in each
section, its own distance; in a section that one of the two drafts lacks, that is the part.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tabon.method.distances import DISTANCES
from tabon.method.selection import Selection
from tabon.text.reports import Section

LACKS = "lacks-section"
REASONS: Mapping[str, str] = MappingProxyType(  # kind of part: what a person would call it
    {
        "transition": "how near its change from the prior is to changes in training reports",
        "two-sided": "how near what it adds and drops is to changes in training reports",
        "report-space": "how near it is to training reports",
        "consensus": "the agreement of the other drafts",
        "unlike-drafts": "how it differs from the other drafts",
        "nearest-drafts": "the agreement of the drafts that are most similar to it",
        "modex": "how near it is to what most drafts say",
        "nearest-prior": "how near it is to the prior",
        "unlike-prior": "how it differs from the prior",
        "likely-next": "how often reports like it follow such a prior",
        "next-visit": "what came next for similar priors",
        "expected-labels": "the expected observations",
        "expected-words": "the expected words",
        "longest": "how long it is",
        "shortest": "how short it is",
        "first": "its place among the drafts",
        "random": "a random draw",
        "log-probability": "the log-probability that its generator gave",
        **dict.fromkeys([*DISTANCES, "dropped"], "the learnt value of its change"),
        LACKS: "a section that one of the two lacks",
    }
)
UNKNOWN = "its distance"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartShare:
    """What one part of one section adds to the lead."""

    section: Section
    part: str  # of the distance, LACKS, or the selector's name where its distance has no parts
    adds: float  # by how much the other draft is farther in this part than the pick
    share: float | None  # of the lead; None if there is no lead


def kind_of(part: str) -> str:
    """Return the kind of a part or selector: its name without its variant.

    >>> kind_of("next-visit:rouge-l-f"), kind_of("expected-words:prior")
    ('next-visit', 'expected-words')
    """
    return part.partition(":")[0]


def decision(selection: Selection, other: int, name: str, *, parts_add_up: bool) -> tuple[PartShare, ...]:
    """Return each part's share of the pick's lead over another draft; nothing if nothing was picked."""
    pick = selection.selected
    if pick is None or pick == other:
        return ()
    lead = selection.total_distances[other] - selection.total_distances[pick]
    found = []
    for section, own in selection.sections.items():
        compared = own.compared[pick], own.compared[other]
        if not any(compared):
            continue
        whole = {name if all(compared) else LACKS: own.distances}
        for part, values in (own.parts if parts_add_up and all(compared) else whole).items():
            adds = (values[other] or 0.0) - (values[pick] or 0.0)
            share = adds / lead if lead > 0 else None
            found.append(PartShare(section=section, part=part, adds=adds, share=share))
    return tuple(found)


def reasons(found: tuple[PartShare, ...]) -> dict[str, float]:
    """Return the share of each reason in words, over both sections, the largest first."""
    shares: dict[str, float] = {}
    for each in found:
        reason = REASONS.get(kind_of(each.part), UNKNOWN)
        shares[reason] = shares.get(reason, 0.0) + (each.share or 0.0)
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def main_reason(found: tuple[PartShare, ...]) -> str:
    """Say what decided most, without a number, in words that follow "draft 1 was chosen over draft 0".

    >>> parts = {"consensus:chamfer": 0.7, "next-visit:chamfer": 0.3}
    >>> made = (PartShare(section="findings", part=part, adds=x, share=x) for part, x in parts.items())
    >>> main_reason(tuple(made))
    'mainly because of the agreement of the other drafts'
    """
    (first, _), *others = reasons(found).items()
    return f"{'mainly ' if others else ''}because of {first}"


def because(found: tuple[PartShare, ...], lead: float) -> str:
    """Say what decided, in words that follow "draft 1 was chosen over draft 0".

    >>> parts = {"consensus:chamfer": 0.7, "next-visit:chamfer": 0.4, "nearest-prior:chamfer": -0.1}
    >>> made = (PartShare(section="findings", part=part, adds=x, share=x) for part, x in parts.items())
    >>> because(tuple(made), 1.0)  # doctest: +NORMALIZE_WHITESPACE
    'mainly because of the agreement of the other drafts (70 % of its lead of 1.0000); for it too: what came
    next for similar priors (40 %); against it: how near it is to the prior (-10 %)'
    """
    shares = {reason: round(100 * share) for reason, share in reasons(found).items()}
    (first, most), *others = shares.items()
    said = [(reason, share) for reason, share in others if share]
    if not said:
        return f"because of {first} (its lead is {lead:.4f})"
    sides = {
        "for it too": [f"{reason} ({share} %)" for reason, share in said if share > 0],
        "against it": [f"{reason} ({share} %)" for reason, share in said if share < 0],
    }
    more = (f"; {side}: {', '.join(named)}" for side, named in sides.items() if named)
    return f"mainly because of {first} ({most} % of its lead of {lead:.4f}){''.join(more)}"
