"""Tiny data sets in the true layouts, with invented text: ReXGradient-160K, CheXpert Plus, covid-chestxray.

Column names, file names, compression and oddities are those of the published files.
"""

import csv
import gc
import gzip
import io
import json
import tracemalloc
from pathlib import Path

import zstandard

from tabon.data.cohort.visits import DataSet, Excluded, Visit

NAN = float("nan")
LONG = "The lungs are clear. " * 300  # so that a few thousand rows make a large file


# --- for every data set ----------------------------------------------------------------


def read_all(dataset: DataSet, folder: Path) -> tuple[list[Visit], list[Excluded]]:
    """Read a data set whole: its visits, and what was left out."""
    found = list(dataset.read(folder))
    return (
        [item for item in found if isinstance(item, Visit)],
        [item for item in found if isinstance(item, Excluded)],
    )


def count_in_little_memory(dataset: DataSet, folder: Path, times: int = 3) -> tuple[int, int]:
    """Read a data set without keeping it: how many items, and the peak of memory in bytes.

    What other threads of the process allocate meanwhile is counted too, so the least of some peaks
    is taken: a reader that keeps its file keeps it every time.
    """
    counts, peaks = zip(*(_counted(dataset, folder) for _ in range(times)), strict=True)
    assert len(set(counts)) == 1
    return counts[0], min(peaks)


def _counted(dataset: DataSet, folder: Path) -> tuple[int, int]:
    """Count the items once, from clean memory."""
    gc.collect()
    tracemalloc.start()
    try:
        count = sum(1 for _ in dataset.read(folder))
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def pack(path: Path, content: bytes) -> Path:
    """Write a file, packed as its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    if path.suffix == ".zst":
        content = zstandard.ZstdCompressor().compress(content)
    path.write_bytes(content)
    return path


def cut_short(path: Path, share: float = 0.6) -> Path:
    """Truncate a file, as a broken download does."""
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    return path


def csv_bytes(header: list[str], rows: list[dict], *, bom: bool = False, line_end: str = "\n") -> bytes:
    """Write rows as CSV; a row may also be a list of fields, whatever their number."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=line_end)
    writer.writerow(header)
    for row in rows:
        writer.writerow(row if isinstance(row, list) else [row.get(name, "") for name in header])
    return text.getvalue().encode("utf-8-sig" if bom else "utf-8")


# --- ReXGradient-160K ------------------------------------------------------------------

REXGRADIENT_CSV = [
    "id",
    "StudyInstanceUid",
    "AccessionNumber",
    "PatientID",
    "PatientSex",
    "PatientAge",
    "StudyDate",
    "StudyDescription",
    "Indication",
    "Comparison",
    "Findings",
    "Impression",
]


def rexgradient_entry(patient: str, accession: str, date: object, *views: object, **changes: object) -> dict:
    """One study as its JSON entry, with as many images as views."""
    folder = f"../deid_png/{patient}/{accession}/studies/1.2.{accession}/series/1.3/instances"
    return {
        "PatientID": patient,
        "StudyInstanceUid": f"1.2.{accession}",
        "AccessionNumber": accession,
        "PatientSex": "F",
        "PatientAge": "061Y",
        "StudyDate": date,
        "StudyDescription": "XR CHEST 2 VIEWS",
        "Indication": "Cough.",
        "Comparison": "None",
        "Findings": "Lungs are clear. Heart size is normal.",
        "Impression": "No acute disease.",
        "ImagePath": [f"{folder}/{number}.png" for number, _ in enumerate(views)],
        "ImageViewPosition": list(views),
        "ImageModality": ["DX" for _ in views],
        "ImageShape": [[512, 420] for _ in views],
        "ImageBodyPart": ["CHEST" for _ in views],
    } | changes


def rexgradient_split(split: str) -> dict[str, dict]:
    """The studies of one split, with every oddity that was seen in the published files."""
    if split != "train":
        return {f"pGRDN{split}_ACC1": rexgradient_entry(f"GRDN{split}", "ACC1", 20150101, "PA", "LATERAL")}
    entry = rexgradient_entry
    shorter = entry("GRDNA", "ACC1", 20120101, "PA", "LATERAL", ImageViewPosition=["PA"])
    return {
        "pGRDNA_ACC1": shorter,
        "pGRDNA_ACC2": entry("GRDNA", "ACC2", "20120301", "POSTERO_ANTERIOR", "LL", Impression="None"),
        "pGRDNA_ACC3": entry("GRDNA", "ACC3", 20120401.0, "ANTERO_POSTERIOR", Findings=NAN),
        "pGRDNB_ACC1": entry("GRDNB", "ACC1", 20130101, None, "AP AXIAL", "AP (KUB)", PatientID=None),
        "pGRDNB_ACC2": entry("GRDNB", "ACC2", 20130201, NAN, "UNKNOWN", "AP"),
        "pGRDNB_ACC3": entry("GRDNB", "ACC3", None, "PA"),
        "pGRDNB_ACC4": entry("GRDNB", "ACC4", NAN, "PA"),
        "pGRDNB_ACC5": entry("GRDNB", "ACC5", "20131301", "PA"),
        "pGRDNB_ACC6": entry("GRDNB", "ACC6", 20130301, "PA", Findings="None", Impression=NAN),
        "pGRDNB_ACC7": entry("GRDNB", "ACC7", 20130301, "PA", Findings=["Clear."]),
        "ACC8": entry("GRDNB", "ACC8", 20130301, "PA", PatientID=NAN),
        "pGRDNB_ACC9": None,
    }


def write_rexgradient(
    folder: Path, *, packing: str = "", indent: int | None = None, **splits: dict[str, dict]
) -> Path:
    """Write ReXGradient-160K as it is downloaded; returns the training file that is read."""
    metadata = folder / "metadata"
    for split in ("train", "valid", "test"):
        studies = splits.get(split, rexgradient_split(split))
        rows = [entry | {"id": study} for study, entry in studies.items() if isinstance(entry, dict)]
        pack(metadata / f"{split}_metadata.csv", csv_bytes(REXGRADIENT_CSV, rows))
        pack(metadata / f"{split}_metadata.json", b"{}")
        whole = json.dumps(studies, indent=indent).encode()  # NaN stands in it as Python writes it
        pack(metadata / f"{split}_metadata_view_position.json{packing}", whole)
    pack(metadata / "interstitial_pattern_bbox.json", b"[]")
    return metadata / f"train_metadata_view_position.json{packing}"


# --- CheXpert Plus ---------------------------------------------------------------------

CHEXPERT_PLUS_FILE = "df_chexpert_plus_240401.csv"
CHEXPERT_PLUS_COLUMNS = [
    "path_to_image",
    "path_to_dcm",
    "frontal_lateral",
    "ap_pa",
    "deid_patient_id",
    "patient_report_date_order",
    "report",
    "section_narrative",
    "section_clinical_history",
    "section_history",
    "section_comparison",
    "section_technique",
    "section_procedure_comments",
    "section_findings",
    "section_impression",
    "section_end_of_impression",
    "section_summary",
    "section_accession_number",
    "age",
    "sex",
    "race",
    "ethnicity",
    "interpreter_needed",
    "insurance_type",
    "recent_bmi",
    "deceased",
    "split",
]


def chexpert_plus_row(patient: str, study: int, view: str = "frontal", **changes: object) -> dict:
    """One image as its row; the impression is in capitals and on several lines."""
    split = str(changes.get("split", "train"))
    path = f"{split}/{patient}/study{study}/view1_{view}"
    impression = "\n1.  NO ACUTE CARDIOPULMONARY DISEASE.\n2.  STABLE LINES."
    return {
        "path_to_image": f"{path}.jpg",
        "path_to_dcm": f"{path}.dcm",
        "frontal_lateral": view.capitalize(),
        "ap_pa": "AP" if view == "frontal" else "",
        "deid_patient_id": patient,
        "patient_report_date_order": study,
        "report": f"NARRATIVE:\nChest, one view.\n\nIMPRESSION:{impression}\n",
        "section_impression": impression,
        "age": 61,
        "sex": "Female",
        "split": split,
    } | changes


def chexpert_plus_rows() -> list[dict]:
    """Rows with every oddity that was seen in the published file."""
    row = chexpert_plus_row
    neither = {"section_findings": "", "section_impression": "nan"}
    return [
        row("patient00001", 2),
        row("patient00002", 1, ap_pa="PA", section_findings="The lungs are clear."),
        row("patient00001", 2, "lateral"),
        row("patient00001", 1, patient_report_date_order="1.0", ap_pa=""),
        row("patient00003", 1, **neither),
        row("patient00004", 1, split="valid"),
        row("patient00005", 1, patient_report_date_order=""),
        row("patient00005", 2, patient_report_date_order="second"),
        row("patient00005", 3, report="nan", **neither),
        row("patient00005", 4, split="holdout"),
        row("patient00005", 5, path_to_image="view1_frontal.jpg"),
        row("patient00005", 6, deid_patient_id=""),
        ["train/patient00005/study7/view1_frontal.jpg", "too few"],
        row("patient00005", 8),
    ]


def write_chexpert_plus(
    folder: Path, rows: list[dict] | None = None, *, packing: str = "", bom: bool = False, without: str = ""
) -> Path:
    """Write CheXpert Plus, perhaps without one column; returns the file."""
    header = [name for name in CHEXPERT_PLUS_COLUMNS if name != without]
    content = csv_bytes(header, chexpert_plus_rows() if rows is None else rows, bom=bom)
    return pack(folder / f"{CHEXPERT_PLUS_FILE}{packing}", content)


# --- covid-chestxray-dataset -------------------------------------------------------------

COVID_COLUMNS = [
    "patientid",
    "offset",
    "sex",
    "age",
    "finding",
    "RT_PCR_positive",
    "survival",
    "intubated",
    "intubation_present",
    "went_icu",
    "in_icu",
    "needed_supplemental_O2",
    "extubated",
    "temperature",
    "pO2_saturation",
    "leukocyte_count",
    "neutrophil_count",
    "lymphocyte_count",
    "view",
    "modality",
    "date",
    "location",
    "folder",
    "filename",
    "doi",
    "url",
    "license",
    "clinical_notes",
    "other_notes",
    "",  # the published header ends with a comma
]


def covid_row(patient: str, offset: object, view: str = "PA", **changes: object) -> dict:
    """One image as its row."""
    return {
        "patientid": patient,
        "offset": offset,
        "sex": "M",
        "finding": "Pneumonia/Viral/COVID-19",
        "view": view,
        "modality": "X-ray",
        "date": "January 22, 2020",
        "location": "Invented Hospital, Nowhere",
        "folder": "images",
        "filename": f"case{patient}-day{offset}-{view}.jpeg",
        "license": "CC BY-NC-SA",
        "clinical_notes": f"Invented case {patient}. Patchy opacity, \u201cmild\u201d, at 38\u00b76\u00b0C.",
    } | changes


def covid_rows() -> list[dict]:
    """Rows with every oddity that was seen in the published file."""
    row = covid_row
    notes = 'A man with fever.\n\nDay 3: the opacity, on the left, is "larger".'
    return [
        row("2", 0),
        row("2", 3, clinical_notes=notes),
        row("2", 3, "L", clinical_notes=notes),
        row("2", "5.0", "AP Supine"),
        row("2", 2.5, "AP Erect"),
        row("4", "-1", "AP", folder=""),
        row("5", "", license="CC BY-SA"),
        row("5", " "),
        row("6", "few days"),
        row("6", 4, "Axial", modality="CT", folder="volumes", filename="case6.nii.gz"),
        row("6", 7, clinical_notes=""),
        row("", 7),
        ["7", "0", "too few"],
        row("7", 1, license=""),
    ]


def write_covid_chestxray(
    folder: Path,
    rows: list[dict] | None = None,
    *,
    bom: bool = False,
    line_end: str = "\n",
    without: str = "-",
) -> Path:
    """Write covid-chestxray-dataset's table, perhaps without one column; returns the file."""
    header = [name for name in COVID_COLUMNS if name != without]
    content = csv_bytes(header, covid_rows() if rows is None else rows, bom=bom, line_end=line_end)
    return pack(folder / "metadata.csv", content)
