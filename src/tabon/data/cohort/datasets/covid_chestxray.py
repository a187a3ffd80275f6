"""covid-chestxray-dataset: one CSV file, one row an image, with notes from published cases.

As with CheXpert Plus each row becomes a visit with one image, and linking
unites those of one patient and day whose notes are equal.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from tabon.data.cohort.tables import find_file
from tabon.data.cohort.visits import (
    DataSet,
    Excluded,
    Image,
    Moment,
    Source,
    Visit,
    normal_view,
    said,
    visit_or_excluded,
    visits_of_rows,
)
from tabon.text.reports import Report

FILE = "metadata.csv"
COLUMNS = ("patientid", "offset", "view", "modality", "folder", "filename", "clinical_notes")
DAY = 86_400  # seconds


def read(folder: Path) -> Iterator[Visit | Excluded]:
    """Yield each row as a visit with one image."""
    yield from visits_of_rows(find_file(folder, FILE), COLUMNS, _visit)


def _visit(values: Mapping[str, str], source: Source) -> Visit | Excluded:
    """Make a visit of a row: the study is the patient's day."""
    patient, moment = values["patientid"].strip(), _moment(values["offset"])
    path = f"{values['folder'].strip() or 'images'}/{values['filename'].strip()}"
    return visit_or_excluded(
        source,
        {"no-patient": patient, "not-x-ray": values["modality"].strip().lower() == "x-ray"},
        study=f"{patient}-{_days(moment)}" if patient and isinstance(moment, Moment) else "",
        patient=patient,
        moment=moment,
        report=Report(findings=values["clinical_notes"]),
        images=[Image(path, normal_view(values["view"]))],
    )


def _moment(offset: str) -> Moment | str:
    """Return the day that is so many days after the first symptoms, or why there is none.

    >>> _moment("3") == _moment("3.0"), _moment("2.5"), _moment(" ")
    (True, Moment(day=2, second=43200.0), 'no-offset')
    """
    text = said(offset)
    if not text:
        return "no-offset"
    try:
        days = float(text)
        day = math.floor(days)
    except (ValueError, OverflowError):
        return "bad-offset"
    return Moment(day, (days - day) * DAY if days != day else None)


def _days(moment: Moment) -> str:
    """Write a day in one way, whatever way the file wrote it in.

    >>> _days(Moment(3)), _days(Moment(2, 43200.0))
    ('3', '2.5')
    """
    return str(moment.day) if moment.second is None else str(moment.day + moment.second / DAY)


DATASET = DataSet(
    name="covid-chestxray",
    read=read,
    egress="zero-retention",
    dated=True,
    note=(
        "The clinical notes of covid-chestxray-dataset are case histories from publications, not Findings "
        "and Impression; they stand as findings here. Days count from the first symptoms or the admission, "
        "and some are guesses. There are no splits. Licences differ by row, some are non-commercial and some "
        "unknown, so nobody who is sent these notes may keep them."
    ),
)
