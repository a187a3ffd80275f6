"""How much each part of `fused` may be trusted for one query: seven signs and a table of constants.

    weight = base × exp(sum over signs of slope × how unusual the sign is)

Signs are read off the drafts, the prior and the bank, without references. The
weights of a query are then divided by their sum: a weight is a share of the say.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, fsum, log, prod
from types import MappingProxyType
from typing import Final

from tabon.text.reports import SECTIONS, Section

CONSENSUS, UNLIKE_DRAFTS = "consensus:rouge-l-f", "unlike-drafts:rouge-l-f"
NEAREST_DRAFTS = "nearest-drafts:rouge-l-f"
NEXT, LIKELY_NEXT = "next-visit:rouge-l-f", "likely-next:meaning"
NEAREST_PRIOR, UNLIKE_PRIOR = "nearest-prior:rouge-l-f", "unlike-prior:rouge-l-f"
LABELS_PRIOR, LABELS_DRAFTS = "expected-labels:prior", "expected-labels:drafts"
WORDS_PRIOR, WORDS_DRAFTS = "expected-words:prior", "expected-words:drafts"
FEWEST, MOST = 5, 16  # drafts that the table knows: fewer count as 5, more as 16
UNUSUAL: Final = 3.0  # a sign counts up to here: beyond, nothing is known

# Signs, with the middle and the spread that they had in development.
SIGNS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "groups": (0.4, 0.2),  # those that differ from most have fellows: `agreement.groups`
        "nearer": (1.3, 1.0),  # spreads by which drafts are nearer to each other than any two reports
        "copied": (0.2, 0.2),  # how much nearer to the prior than any report is, as a share
        "retold": (0.5, 1.0),  # spreads by which drafts are nearer to the prior than to next visits
        "votes-next": (0.5, 0.5),  # correlation over the drafts: agreement ranks them as next visits do
        "votes-prior": (0.4, 0.5),  # and as the prior does
        "drafts": (0.4, 0.5),  # ln of their number / 5
    }
)


@dataclass(frozen=True, slots=True)
class Row:
    """What one part weighs where every sign is usual, and how each sign changes that."""

    base: float
    slopes: tuple[float, ...]  # one for each of SIGNS


# Learnt on development seeds alone: docs/decisions/fused.md
TABLE: Mapping[Section, Mapping[str, Row]] = MappingProxyType(
    {
        "findings": MappingProxyType(
            {
                CONSENSUS: Row(2.2, (-0.3, 0.4, 0.2, -0.15, -0.05, 0.6, 0.15)),
                UNLIKE_DRAFTS: Row(0.18, (0.2, -0.25, 0.5, 0.5, 0.05, 0.15, -0.45)),
                NEAREST_DRAFTS: Row(0.71, (0, 0.15, -0.25, -0.4, -0.8, 0.05, 0.6)),
                NEXT: Row(1.2, (0.35, 0.2, 0.6, 0, 0.55, 0.15, -0.6)),
                LIKELY_NEXT: Row(1.2, (-0.6, 0.05, -0.35, -1.05, -0.25, -0.45, 0.3)),
                NEAREST_PRIOR: Row(0.96, (-0.5, -0.45, 0.2, -0.5, -0.45, 0.15, 0.3)),
                UNLIKE_PRIOR: Row(0.23, (-0.25, 0, 0.4, 0.65, -0.35, 0.4, 0.25)),
                LABELS_PRIOR: Row(0.83, (-0.65, -0.45, -0.75, -0.6, 0.15, -0.8, -0.1)),
                LABELS_DRAFTS: Row(0.26, (-0.5, 0.1, 0.6, 0.65, 0.15, 0.4, -0.15)),
                WORDS_PRIOR: Row(1.2, (1.05, 0.5, 0.85, -0.5, -0.2, -0.3, 0.2)),
                WORDS_DRAFTS: Row(1.7, (-0.75, 0.2, -0.2, -0.2, -0.25, -0.35, 0.3)),
            }
        ),
        "impression": MappingProxyType(
            {
                CONSENSUS: Row(1.3, (-0.25, 0.25, -0.75, -1.05, 0.25, 0.3, -1.3)),
                UNLIKE_DRAFTS: Row(0.23, (1.15, 0.65, 0.65, 0.4, -0.7, -0.4, 0.4)),
                NEAREST_DRAFTS: Row(1.7, (1.15, 0.8, 0.05, 0.1, -0.15, 0.35, 0.35)),
                NEXT: Row(0.73, (-1.5, 0.5, 0.6, 0.7, 0.35, 0.15, 0)),
                LIKELY_NEXT: Row(1.7, (0.5, 0.85, -0.05, -0.45, -0.1, -0.35, -0.4)),
                NEAREST_PRIOR: Row(0.92, (-0.15, -0.55, 0.1, -0.85, 0.3, -0.3, 0.1)),
                UNLIKE_PRIOR: Row(0.24, (0, -0.25, 0.4, 0.95, -0.35, 0.5, 0.1)),
                LABELS_PRIOR: Row(0.95, (0.2, 0.8, -0.4, -0.65, 0, -0.65, -0.1)),
                LABELS_DRAFTS: Row(0.33, (-0.85, 0.05, 0.85, 0.8, 0, 0.55, -0.35)),
                WORDS_PRIOR: Row(1.5, (-0.55, -1, 0.35, -0.95, 0.3, -0.5, 0.15)),
                WORDS_DRAFTS: Row(1.7, (-0.2, -0.35, -1.15, -0.3, -0.35, -0.25, 0.25)),
            }
        ),
    }
)
PARTS = tuple(TABLE["findings"])
EVERY: tuple[tuple[Section, str], ...] = tuple((section, part) for section in SECTIONS for part in PARTS)


@dataclass(frozen=True, slots=True)
class Trust:
    """What one part of a query's distance weighs in one section, and why."""

    part: str
    section: Section
    weight: float  # its share of the say: those of a query add up to 1
    factors: Mapping[str, float]  # what each sign multiplied it by, before the shares were taken


def number_of_drafts(count: int) -> float:
    """Return the sign of a number of drafts.

    >>> number_of_drafts(5), number_of_drafts(1), number_of_drafts(64) == number_of_drafts(16)
    (0.0, 0.0, True)
    """
    return log(min(max(count, FEWEST), MOST) / FEWEST)


def trust(signs: Mapping[str, float], there: Iterable[tuple[Section, str]]) -> tuple[Trust, ...]:
    """Weigh the parts of one query.

    Args:
        signs: those that the query has; one that is missing changes nothing.
        there: the parts that it has, with their sections.

    >>> [found] = trust({}, [("findings", CONSENSUS)])
    >>> found.part, found.weight
    ('consensus:rouge-l-f', 1.0)
    """
    unusual = {
        name: min(max((signs[name] - middle) / spread, -UNUSUAL), UNUSUAL)
        for name, (middle, spread) in SIGNS.items()
        if name in signs
    }
    found = []
    for section, part in there:
        row = TABLE[section][part]
        factors = {
            name: exp(slope * unusual[name])
            for name, slope in zip(SIGNS, row.slopes, strict=True)
            if name in unusual and slope
        }
        found.append((section, part, row.base * prod(factors.values()), factors))
    total = fsum(weight for _, _, weight, _ in found)
    return tuple(Trust(part, section, weight / total, factors) for section, part, weight, factors in found)
