"""PadChest: one CSV row per image, with the report of its study.

The reader yields a visit per row and holds no row longer; the linking step
unites the images of a study.
"""

from collections.abc import Iterator
from pathlib import Path

from tabon.data.cohort.tables import Row, find_file, read_csv
from tabon.data.cohort.visits import (
    DataSet,
    Excluded,
    Image,
    Source,
    View,
    Visit,
    moment_or_reason,
    normal_view,
    said,
)
from tabon.text.reports import Report

NOTE = (
    "PadChest is given under a research use agreement of BIMCV that forbids to share the data, so "
    "nothing is sent anywhere. Its reports are Spanish, stemmed and tokenised, without sections: the "
    "whole text is taken as findings. It has dates without times and no splits."
)
FILE = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv"
FILES = (FILE, FILE + ".gz")
VIEW_COLUMNS = ("ImageID", "ViewPosition_DICOM", "Projection")
COLUMNS = (*VIEW_COLUMNS, "ImageDir", "StudyDate_DICOM", "StudyID", "PatientID", "Report")
UNSAID = {"", "UNK", "UNKNOWN"}


def read(folder: Path) -> Iterator[Visit | Excluded]:
    """Yield one visit per image."""
    path = find_file(folder, *FILES)
    for row in read_csv(path, COLUMNS):
        yield _visit(row, Source(path.name, row.line))


def _visit(row: Row, source: Source) -> Visit | Excluded:
    """Make a visit of a row, or say why it is none."""
    if not row.whole:
        return Excluded(source, "wrong-field-count")
    image, folder, study, patient, text = (
        said(row.values[column]) for column in ("ImageID", "ImageDir", "StudyID", "PatientID", "Report")
    )
    moment = moment_or_reason(row.values["StudyDate_DICOM"])
    needed = {"no-study": study, "no-patient": patient, "no-image": image, "no-report": text}
    missing = next((reason for reason, value in needed.items() if not value), None)
    if missing is not None or isinstance(moment, str):
        return Excluded(source, missing or str(moment), study or None)
    return Visit(
        study=study,
        patient=patient,
        moment=moment,
        report=Report(findings=text),
        images=(Image(f"{folder.removesuffix('.0')}/{image}", view_of(row)),),
        split=None,
        source=source,
    )


def view_of(row: Row) -> View | None:
    """Return the view as PadChest's makers revised it, or as the DICOM header says where they did not."""
    projection = said(row.values["Projection"])
    return normal_view(row.values["ViewPosition_DICOM"] if projection.upper() in UNSAID else projection)


DATASET = DataSet(name="padchest", read=read, egress="none", dated=True, note=NOTE)
