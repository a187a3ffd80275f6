"""ReXrank's JSON: one object of study ids, each with what is known of it and a report, `model_prediction`.

Files of studies have images, context and sections; a submission is such a file with predictions.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tabon.errors import BadInputError
from tabon.text.reports import Report

PREDICTION = "model_prediction"
SHOWN_IDS = 3  # in a message

Studies = Mapping[str, Mapping[str, Any]]


def parse_studies(data: bytes, *, name: str) -> Studies:
    """Read a file of studies as ReXrank publishes them."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(study, dict) for study in found.values()):
        raise BadInputError(f"{name} is not ReXrank's JSON; give one object with an object for each study id")
    return found


def report_text(report: Report) -> str:
    """Write a report on one line as ReXrank does, sections that are empty left out.

    >>> report_text(Report(findings="Clear lungs.", impression="Normal."))
    'Findings: Clear lungs. Impression: Normal.'
    """
    sections = report.sections()
    return " ".join(f"{name.title()}: {text.strip()}" for name, text in sections.items() if text.strip())


def study_record(reference: Report | None) -> dict[str, Any]:
    """Return what ReXrank's programs read of a study beside the prediction."""
    report = reference or Report()
    return {
        "section_findings": report.findings or None,
        "section_impression": report.impression or None,
        "report": report_text(report),
    }


def submission(chosen: Mapping[str, Report], studies: Studies) -> dict[str, dict[str, Any]]:
    """Add the chosen report of each study; studies without one are left out, order is kept.

    Raises:
        BadInputError: no report is for any of the studies.
    """
    found = {
        study: {**known, PREDICTION: report_text(chosen[study])}
        for study, known in studies.items()
        if study in chosen
    }
    if not found:
        raise BadInputError(
            f"no pick is for one of the studies: picks are for {_shown(chosen)}, "
            f"studies are {_shown(studies)}; give both the same ids"
        )
    return found


def _shown(ids: Iterable[str]) -> str:
    """Show some ids."""
    known = sorted(ids)
    return ", ".join(map(repr, known[:SHOWN_IDS])) + (", …" if len(known) > SHOWN_IDS else "") or "none"
