"""CheXpert Plus: one CSV file, one row an image.

A study has a row for each of its images, and these need not be neighbours:
each row becomes a visit with one image, and linking unites those of a study.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from tabon.data.cohort.tables import find_file, read_csv
from tabon.data.cohort.visits import DataSet, Excluded, Image, Moment, Source, View, Visit, normal_view
from tabon.text.reports import Report, parse_report

FILE = "df_chexpert_plus_240401.csv"
COLUMNS = (
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
SPLITS = frozenset({"train", "valid"})
_ORDER = re.compile(r"(\d{1,18})(?:\.0*)?")  # 3, or 3.0 from a table with gaps
_NOTHING = frozenset({"", "nan", "none"})


def read(folder: Path) -> Iterator[Visit | Excluded]:
    """Yield each row as a visit with one image."""
    path = find_file(folder, FILE, f"{FILE}.gz", f"{FILE}.zst")
    for row in read_csv(path, COLUMNS):
        source = Source(path.name, row.line)
        yield _visit(row.values, source) if row.whole else Excluded(source, "wrong-field-count")


def _visit(values: Mapping[str, str], source: Source) -> Visit | Excluded:
    """Return the visit of one row, or why there is none."""
    patient, split = values["deid_patient_id"].strip(), values["split"].strip()
    study = _study(patient, values["path_to_image"])
    if patient.lower() in _NOTHING:
        return Excluded(source, "no-patient")
    if study is None:
        return Excluded(source, "no-study")
    if split not in SPLITS:
        return Excluded(source, "bad-split", study)
    moment = _moment(values["patient_report_date_order"])
    if isinstance(moment, str):
        return Excluded(source, moment, study)
    report = _report(values)
    if report.is_empty:
        return Excluded(source, "no-report", study)
    image = Image(values["path_to_image"].strip(), _view(values))
    return Visit(
        study=study,
        patient=patient,
        moment=moment,
        report=report,
        images=(image,),
        split=split,
        source=source,
    )


def _study(patient: str, path: str) -> str | None:
    """Return the study's id, from the folder that the image lies in.

    >>> _study("patient00007", "train/patient00007/study2/view1_frontal.jpg")
    'patient00007_study2'
    """
    folder = PurePosixPath(path.strip()).parent.name
    return f"{patient}_{folder}" if folder else None


def _moment(order: str) -> Moment | str:
    """Return the place of a report among those of its patient, or why there is none."""
    if order.strip().lower() in _NOTHING:
        return "no-order"
    number = _ORDER.fullmatch(order.strip())
    return Moment(int(number[1])) if number else "bad-order"


def _report(values: Mapping[str, str]) -> Report:
    """Return the two sections, from the whole report where both columns are empty."""
    sections = Report(findings=values["section_findings"], impression=values["section_impression"])
    return parse_report(values["report"]) if sections.is_empty else sections


def _view(values: Mapping[str, str]) -> View | None:
    """Return the view of a frontal image."""
    is_lateral = values["frontal_lateral"].strip().lower() == "lateral"
    return None if is_lateral else normal_view(values["ap_pa"])


DATASET = DataSet(
    name="chexpert-plus",
    read=read,
    egress="none",
    dated=False,
    note=(
        "CheXpert Plus has no dates. The order of visits is its column patient_report_date_order: ordinal "
        "and unverified. A third-party audit found about half of the nominal pairs inverted against the "
        "dates in report headers, so do not rest a claim on the direction of change. There is a train and a "
        "valid split, but no test split. Most reports have no Findings. Image paths say .jpg where the "
        "released files are .png. Its research licence is taken to forbid sending reports to others."
    ),
)
