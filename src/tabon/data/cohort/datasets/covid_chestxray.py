"""covid-chestxray-dataset: one CSV file, one row an image, with notes from published cases.

As with CheXpert Plus each row becomes a visit with one image, and linking
unites those of one patient and day whose notes are equal.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from tabon.data.cohort.tables import find_file, read_csv
from tabon.data.cohort.visits import DataSet, Excluded, Image, Moment, Source, Visit, normal_view
from tabon.text.reports import Report

FILE = "metadata.csv"
COLUMNS = ("patientid", "offset", "view", "modality", "folder", "filename", "clinical_notes")
DAY = 86_400  # seconds


def read(folder: Path) -> Iterator[Visit | Excluded]:
    """Yield each row as a visit with one image."""
    path = find_file(folder, FILE)
    for row in read_csv(path, COLUMNS):
        source = Source(path.name, row.line)
        yield _visit(row.values, source) if row.whole else Excluded(source, "wrong-field-count")


def _visit(values: Mapping[str, str], source: Source) -> Visit | Excluded:
    """Return the visit of one row, or why there is none."""
    patient = values["patientid"].strip()
    if not patient:
        return Excluded(source, "no-patient")
    if values["modality"].strip().lower() != "x-ray":
        return Excluded(source, "not-x-ray")
    moment = _moment(values["offset"])
    if isinstance(moment, str):
        return Excluded(source, moment)
    study = f"{patient}-{_days(moment)}"
    report = Report(findings=values["clinical_notes"])
    if report.is_empty:
        return Excluded(source, "no-report", study)
    return Visit(
        study=study,
        patient=patient,
        moment=moment,
        report=report,
        images=(_image(values),),
        split=None,
        source=source,
    )


def _moment(offset: str) -> Moment | str:
    """Return the day that is so many days after the first symptoms, or why there is none.

    >>> _moment("3") == _moment("3.0"), _moment("2.5"), _moment(" ")
    (True, Moment(day=2, second=43200.0), 'no-offset')
    """
    text = offset.strip()
    if text.lower() in {"", "nan", "none"}:
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


def _image(values: Mapping[str, str]) -> Image:
    """Return the image of a row."""
    folder = values["folder"].strip() or "images"
    return Image(f"{folder}/{values['filename'].strip()}", normal_view(values["view"]))


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
