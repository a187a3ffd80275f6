"""PadChest: one CSV row per image, with the report of its study.

The reader yields a visit per row and holds no row longer; the linking step
unites the images of a study.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tabon.data.cohort.tables import find_file
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
    visit_or_excluded,
    visits_of_rows,
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
    yield from visits_of_rows(find_file(folder, *FILES), COLUMNS, _visit)


def _visit(values: Mapping[str, str], source: Source) -> Visit | Excluded:
    """Make a visit of a row, or say why it is none."""
    image, folder, study, patient, text = (
        said(values[column]) for column in ("ImageID", "ImageDir", "StudyID", "PatientID", "Report")
    )
    return visit_or_excluded(
        source,
        {"no-study": study, "no-patient": patient, "no-image": image, "no-report": text},
        study=study,
        patient=patient,
        moment=moment_or_reason(values["StudyDate_DICOM"]),
        report=Report(findings=text),
        images=[Image(f"{folder.removesuffix('.0')}/{image}", view_of(values))],
    )


def view_of(values: Mapping[str, str]) -> View | None:
    """Return the view as PadChest's makers revised it, or as the DICOM header says where they did not."""
    projection = said(values["Projection"])
    return normal_view(values["ViewPosition_DICOM"] if projection.upper() in UNSAID else projection)


DATASET = DataSet(name="padchest", read=read, egress="none", dated=True, note=NOTE)
