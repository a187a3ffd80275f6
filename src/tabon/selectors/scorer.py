"""What a selector is: a distance for every draft, with its parts.

Lower is better. A draft that cannot be compared in a section (it lacks the
section, or the prior does and the selector needs one) has NaN there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tabon.method.selection import Neighbour, Selection
from tabon.selectors.prepared import Batch
from tabon.text.records import Query
from tabon.text.reports import Section

Distances = NDArray[np.float64]  # (drafts of a batch,)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """One section of every draft of a batch."""

    distances: Distances
    parts: Mapping[str, Distances] = field(default_factory=dict)  # what the distance is made of
    nearest: tuple[tuple[Neighbour, ...], ...] = ()  # of each draft; () where the selector has none
    worst: float | None = None  # the distance of a draft without the section; None: behind all others
    unchanged: frozenset[int] = frozenset()  # drafts whose transition is zero
    bank_is_empty: bool = False  # the bank has nothing to compare the section with


class AnySelector(Protocol):
    """What answers queries: a `Selector`, one that abstains, or one of your own."""

    @property
    def signature(self) -> str:
        """Return all that changes its numbers, in one line."""

    def select_many(self, queries: Sequence[Query], /) -> list[Selection]:
        """Choose for many queries."""


class Scorer(Protocol):
    """Gives every draft a distance; made by `tabon.selectors.load_scorer`."""

    @property
    def name(self) -> str:
        """Return what `--selector` calls it."""

    @property
    def needs_prior(self) -> bool:
        """Say whether a section without a prior cannot be scored."""

    @property
    def uses_prior(self) -> bool:
        """Say whether the prior has any say."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Return what changes its distances, for the signature."""

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return one section's distances; those of a query do not depend on the other queries."""
