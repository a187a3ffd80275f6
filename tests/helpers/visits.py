"""Visits for the tests of cohorts."""

from tabon.data.cohort.visits import Image, Moment, Source, Visit
from tabon.text.reports import Report

REPORTS = [
    Report("Clear lungs.", "Normal."),
    Report("New effusion.", ""),
    Report("", "Stable."),
    Report("", ""),
    Report("Clear lungs. Heart normal.", "Normal chest."),
]


def visit(study, day, second=None, *, report=REPORTS[0], views=("AP",), split="train", patient="p"):  # noqa: PLR0913
    """A visit of one patient."""
    return Visit(
        study=study,
        patient=patient,
        moment=Moment(day, second),
        report=report,
        images=tuple(Image(f"{study}-{number}.png", view) for number, view in enumerate(views)),
        split=split,
        source=Source("rows.csv", 1),
    )
