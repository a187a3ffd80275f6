"""Data sets that are one CSV file with a row per image: CheXpert Plus, PadChest, covid-chestxray.

The images of a study need not be neighbours: each row becomes a visit with one image, and linking
unites those of a study.
"""

import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from tabon.data.cohort.visits import (
    DataSet,
    Excluded,
    Image,
    Moment,
    Source,
    View,
    Visit,
    csv_reader,
    moment_or_reason,
    normal_view,
    said,
    visit_or_excluded,
)
from tabon.text.reports import Report, parse_report

# --- CheXpert Plus ----------------------------------------------------------------------

CHEXPERT_FILE = "df_chexpert_plus_240401.csv"
CHEXPERT_COLUMNS = (
    "path_to_image",
    "frontal_lateral",
    "ap_pa",
    "deid_patient_id",
    "patient_report_date_order",
    "report",
    "section_findings",
    "section_impression",
    "split",
)
_ORDER = re.compile(r"(\d{1,18})(?:\.0*)?")  # 3, or 3.0 from a table with gaps


def _chexpert_visit(values: Mapping[str, str], source: Source) -> Visit | Excluded:
    """Make a visit of a row: the study is the folder of its image, such as train/patient00007/study2."""
    patient, order = said(values["deid_patient_id"]), said(values["patient_report_date_order"])
    path, split = values["path_to_image"].strip(), values["split"].strip()
    folder, number = PurePosixPath(path).parent.name, _ORDER.fullmatch(order)
    sections = Report(findings=values["section_findings"], impression=values["section_impression"])
    is_lateral = values["frontal_lateral"].strip().lower() == "lateral"
    known_split = split in {"train", "valid"}
    return visit_or_excluded(
        source,
        {"no-patient": patient, "no-study": folder, "bad-split": known_split, "no-order": order},
        study=f"{patient}_{folder}" if patient and folder else "",
        patient=patient,
        moment=Moment(int(number[1])) if number else "bad-order",
        report=parse_report(values["report"]) if sections.is_empty else sections,
        images=[Image(path, None if is_lateral else normal_view(values["ap_pa"]))],
        split=split,
    )


CHEXPERT_PLUS = DataSet(
    name="chexpert-plus",
    read=csv_reader([CHEXPERT_FILE + end for end in ("", ".gz", ".zst")], CHEXPERT_COLUMNS, _chexpert_visit),
    egress="none",
    order="ordinals",
    note=(
        "CheXpert Plus has no dates. The order of visits is its column patient_report_date_order: ordinal "
        "and unverified. A third-party audit found about half of the nominal pairs inverted against the "
        "dates in report headers, so do not rest a claim on the direction of change. There is a train and a "
        "valid split, but no test split. Most reports have no Findings. Image paths say .jpg where the "
        "released files are .png. Its research licence is taken to forbid sending reports to others."
    ),
)

# --- PadChest ---------------------------------------------------------------------------

PADCHEST_FILES = tuple(f"PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv{end}" for end in ("", ".gz"))
VIEW_COLUMNS = ("ImageID", "ViewPosition_DICOM", "Projection")
PADCHEST_COLUMNS = (*VIEW_COLUMNS, "ImageDir", "StudyDate_DICOM", "StudyID", "PatientID", "Report")


def _padchest_visit(values: Mapping[str, str], source: Source) -> Visit | Excluded:
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
        images=[Image(f"{folder.removesuffix('.0')}/{image}", padchest_view(values))],
    )


def padchest_view(values: Mapping[str, str]) -> View | None:
    """Return the view as PadChest's makers revised it, or as the DICOM header says where they did not."""
    projection = said(values["Projection"])
    revised = projection.upper() not in {"", "UNK", "UNKNOWN"}
    return normal_view(projection if revised else values["ViewPosition_DICOM"])


PADCHEST = DataSet(
    name="padchest",
    read=csv_reader(PADCHEST_FILES, PADCHEST_COLUMNS, _padchest_visit),
    egress="none",
    order="dates",
    note=(
        "PadChest is given under a research use agreement of BIMCV that forbids to share the data, so "
        "nothing is sent anywhere. Its reports are Spanish, stemmed and tokenised, without sections: the "
        "whole text is taken as findings. It has dates without times and no splits."
    ),
)

# --- covid-chestxray --------------------------------------------------------------------

COVID_COLUMNS = ("patientid", "offset", "view", "modality", "folder", "filename", "clinical_notes")
DAY = 86_400  # seconds


def _covid_visit(values: Mapping[str, str], source: Source) -> Visit | Excluded:
    """Make a visit of a row: the study is the patient's day, written in one way."""
    patient, moment = values["patientid"].strip(), _days_since_symptoms(values["offset"])
    path = f"{values['folder'].strip() or 'images'}/{values['filename'].strip()}"
    study = ""
    if patient and isinstance(moment, Moment):
        study = f"{patient}-{moment.day if moment.second is None else moment.day + moment.second / DAY}"
    return visit_or_excluded(
        source,
        {"no-patient": patient, "not-x-ray": values["modality"].strip().lower() == "x-ray"},
        study=study,
        patient=patient,
        moment=moment,
        report=Report(findings=values["clinical_notes"]),
        images=[Image(path, normal_view(values["view"]))],
    )


def _days_since_symptoms(offset: str) -> Moment | str:
    """Return the day that is so many days after the first symptoms, or before them; or why there is none.

    >>> _days_since_symptoms("3") == _days_since_symptoms("3.0"), _days_since_symptoms("2.5")
    (True, Moment(day=2, second=43200.0))
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


COVID_CHESTXRAY = DataSet(
    name="covid-chestxray",
    read=csv_reader(["metadata.csv"], COVID_COLUMNS, _covid_visit),
    egress="zero-retention",
    order="days",
    note=(
        "The clinical notes of covid-chestxray-dataset are case histories from publications, not Findings "
        "and Impression; they stand as findings here. Days count from the first symptoms or the admission, "
        "and some are guesses. There are no splits. Licences differ by row, some are non-commercial and some "
        "unknown, so nobody who is sent these notes may keep them."
    ),
)
