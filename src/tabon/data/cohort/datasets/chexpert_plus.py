"""CheXpert Plus: one CSV file, one row an image.

A study has a row for each of its images, and these need not be neighbours:
each row becomes a visit with one image, and linking unites those of a study.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

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


def read(folder: Path) -> Iterator[Visit | Excluded]:
    """Yield each row as a visit with one image."""
    yield from visits_of_rows(find_file(folder, FILE, f"{FILE}.gz", f"{FILE}.zst"), COLUMNS, _visit)


def _visit(values: Mapping[str, str], source: Source) -> Visit | Excluded:
    """Make a visit of a row: the study is the folder of its image, such as train/patient00007/study2."""
    patient, order = said(values["deid_patient_id"]), said(values["patient_report_date_order"])
    path, split = values["path_to_image"].strip(), values["split"].strip()
    folder, number = PurePosixPath(path).parent.name, _ORDER.fullmatch(order)
    sections = Report(findings=values["section_findings"], impression=values["section_impression"])
    is_lateral = values["frontal_lateral"].strip().lower() == "lateral"
    return visit_or_excluded(
        source,
        {"no-patient": patient, "no-study": folder, "bad-split": split in SPLITS, "no-order": order},
        study=f"{patient}_{folder}" if patient and folder else "",
        patient=patient,
        moment=Moment(int(number[1])) if number else "bad-order",
        report=parse_report(values["report"]) if sections.is_empty else sections,
        images=[Image(path, None if is_lateral else normal_view(values["ap_pa"]))],
        split=split,
    )


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
