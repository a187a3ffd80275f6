"""The draft that is most like the newest prior: what "copy the last report" would choose."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tabon.method.bank import TransitionBank
from tabon.selectors.prepared import Batch
from tabon.selectors.scorer import Scores
from tabon.selectors.similarity import TextDistance, draft_sections, load_distance, prior_sections
from tabon.text.reports import Section

DEFAULT = "chamfer"


@dataclass(frozen=True, slots=True)
class NearestPrior:
    """Prefers the draft that is nearest to the prior; made by `load`."""

    measure: TextDistance

    needs_prior = True
    uses_prior = True

    @property
    def name(self) -> str:
        """Return the selector with its distance."""
        return f"nearest-prior:{self.measure.name}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the distance's settings."""
        return self.measure.settings

    def score(self, batch: Batch, section: Section) -> Scores:
        """Return each draft's distance to the prior's section."""
        rows = np.flatnonzero(batch.has_draft(section) & batch.has_prior(section))
        distances = np.full(len(batch.drafts), np.nan)
        distances[rows] = self.measure.between(
            draft_sections(batch, section), rows, prior_sections(batch, section), batch.owner[rows]
        )
        return Scores(distances)


def load(bank: TransitionBank, variant: str) -> NearestPrior:
    """Return the nearest prior under a set distance or a score; Chamfer where none is named."""
    del bank
    return NearestPrior(load_distance(variant or DEFAULT))
