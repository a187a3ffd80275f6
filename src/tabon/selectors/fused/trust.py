"""How much each part of `fused` may be trusted for one query: seven signs and a table of constants.

    weight = base × exp(sum over signs of slope × how unusual the sign is)

Signs are read off the drafts, the prior and the bank, without references. The
weights of a query are then divided by their sum: a weight is a share of the say.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, fsum, log
from types import MappingProxyType
from typing import Final

from tabon.text.reports import SECTIONS, Section

CONSENSUS, NEXT = "consensus:rouge-l-f", "next-visit:rouge-l-f"
PRIOR_WORDS, PRIOR_MEANING = "nearest-prior:rouge-l-f", "nearest-prior:chamfer"
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

    findings: float
    impression: float
    slopes: tuple[float, ...]  # one for each of SIGNS


# Learnt on development seeds alone: docs/decisions/fused.md
TABLE: Mapping[str, Row] = MappingProxyType(
    {
        CONSENSUS: Row(2.6, 2.8, (-1.3, 0.85, 0, -0.8, -0.1, 0.3, 0.35)),
        NEXT: Row(0.34, 0.88, (0.2, -0.8, 1.0, 1.25, 0.2, 0, 0)),
        PRIOR_WORDS: Row(0.43, 1.3, (-0.45, -0.8, -0.2, -0.95, 0.25, 0.45, -0.25)),
        PRIOR_MEANING: Row(0.11, 0.36, (0.9, 0.95, -0.45, 0, 0, -0.6, -0.15)),
        LABELS_PRIOR: Row(0.91, 0.91, (0.2, -0.15, 0, -1.25, -0.3, -0.6, 0)),
        LABELS_DRAFTS: Row(0.23, 0.23, (-0.65, -0.3, 0.9, 0.65, 0.1, 0.45, 0.25)),
        WORDS_PRIOR: Row(0.21, 0.26, (1.05, 1.05, 0.35, -0.75, -0.5, -0.1, 0)),
        WORDS_DRAFTS: Row(1.0, 3.4, (0.1, 0, -1.1, 0.1, 0, 0, 0)),
    }
)
PARTS = tuple(TABLE)
EVERY: tuple[tuple[Section, str], ...] = tuple((section, part) for section in SECTIONS for part in PARTS)
ABOUT_PRIOR = frozenset({PRIOR_WORDS, PRIOR_MEANING})  # weighed by how alike a patient's reports are


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


def trust(
    signs: Mapping[str, float], there: Iterable[tuple[Section, str]], strength: Mapping[Section, float]
) -> tuple[Trust, ...]:
    """Weigh the parts of one query.

    Args:
        signs: those that the query has; one that is missing changes nothing.
        there: the parts that it has, with their sections.
        strength: how alike a patient's consecutive reports are, by section.

    >>> [found] = trust({}, [("findings", CONSENSUS)], {"findings": 0.3, "impression": 0.3})
    >>> found.part, found.weight
    ('consensus:rouge-l-f', 1.0)
    """
    unusual = {
        name: min(max((signs[name] - middle) / spread, -UNUSUAL), UNUSUAL)
        for name, (middle, spread) in SIGNS.items()
        if name in signs
    }
    factors = {
        part: {
            name: exp(slope * unusual[name])
            for name, slope in zip(SIGNS, row.slopes, strict=True)
            if name in unusual and slope
        }
        for part, row in TABLE.items()
    }
    found = []
    for section, part in there:
        weight = getattr(TABLE[part], section) * (strength[section] if part in ABOUT_PRIOR else 1.0)
        for factor in factors[part].values():
            weight *= factor
        found.append((section, part, weight))
    total = fsum(weight for *_, weight in found)
    return tuple(Trust(part, section, weight / total, factors[part]) for section, part, weight in found)
