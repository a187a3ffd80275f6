"""What is kept at what risk, when the least plausible picks are left out."""

from collections.abc import Sequence

import numpy as np

from tabon.errors import BadInputError
from tabon.evaluation.cases import Case, Part
from tabon.evaluation.draft_scores import STATE, Measured, eligible, measure_section, measure_states
from tabon.evaluation.picks import NOTHING, Picks
from tabon.metrics.protocol import Metric
from tabon.selectors.abstention import RiskCoverage, risk_coverage

POINTS = 10


def risk_of(picks: Picks, measured: Measured, score: str) -> RiskCoverage:
    """Return the mean loss (1 - score) of the most plausible picks, for each tenth of the cases.

    A case's strangeness is the distance of its pick, a section on average; cases without a pick are left out.
    """
    cases, every = measured.cases, np.arange(len(measured.cases))
    column = [each.name for each in measured.scores].index(score)
    rows = picks.rows(cases)
    taken = np.maximum(rows, 0)
    totals = np.where(rows == NOTHING, np.nan, picks.distance_rows(cases)[every, taken])
    counts = np.array([max(picks.sections.get(case.query.id, 1), 1) for case in cases])
    distances = totals / counts  # a total over two sections is not less plausible for that
    worth = measured.per_draft()[every, taken, column]
    known = ~(np.isnan(distances) | np.isnan(worth))
    if not known.any():
        raise BadInputError("no pick has a distance and a value; give selections with distances and a score")
    return risk_coverage(distances[known], 1.0 - worth[known], points=POINTS)


def measured_for_risk(cases: Sequence[Case], part: Part, metric: Metric | None) -> Measured:
    """Measure one part: a metric in a section, or state-F1 of the whole report."""
    studies = eligible(cases, part)
    if part != "report" and metric is not None:
        return measure_section(metric, studies, part)
    measured = measure_states(studies)
    if measured is None:
        raise BadInputError(f"{STATE} is known on simulated cohorts only; name another --score")
    return measured
