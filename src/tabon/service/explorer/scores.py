"""What gain is measured in: one score of a metric that needs no weights."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tabon.errors import BadInputError, UnknownNameError
from tabon.evaluation.draft_scores import measure_section
from tabon.evaluation.inputs import Case
from tabon.metrics import WEIGHTLESS, Metric, load_metrics
from tabon.text.records import Query, reference_of
from tabon.text.reports import SECTIONS

DEFAULT_SCORE: Final = "rouge-l-f"
Scores = tuple[float, ...]  # one per draft


@dataclass(frozen=True, slots=True)
class DraftScore:
    """A score of one metric, by its name."""

    name: str
    metric: Metric

    def of(self, query: Query) -> Scores | None:
        """Return the scores of a query's drafts; None if there is none, or no reference with a section.

        A draft's score is the mean over the sections that the reference has.
        """
        reference = reference_of(query)
        case = None if reference is None else Case(query, reference)
        sections = [section for section in SECTIONS if case is not None and case.has(section)]
        if case is None or not sections or not query.candidates:
            return None
        column = [score.name for score in self.metric.scores].index(self.name)
        rows = [
            measure_section(self.metric, [case], section).per_draft()[0, :, column] for section in sections
        ]
        return tuple(np.mean(rows, axis=0).tolist())


def score_named(name: str) -> DraftScore:
    """Find the metric, of those that need no weights, that has a score."""
    metrics, missing = load_metrics(WEIGHTLESS, {})
    found = {score.name: metric for metric in metrics for score in metric.scores}
    if name in found:
        return DraftScore(name, found[name])
    if missing:
        raise BadInputError(
            f"no score {name!r} is installed here: " + "; ".join(sorted(set(missing.values())))
        )
    raise UnknownNameError("score", name, found)
