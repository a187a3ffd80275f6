"""MIMIC-CXR and MIMIC-CXR-JPG: tables of images and splits, one text file per report.

    mimic-cxr-2.0.0-metadata.csv.gz ─┐
    mimic-cxr-2.0.0-split.csv.gz    ─┼─▶ a temporary SQLite file ─▶ one visit per study
    files/p10/p10000032/s50414267.txt ─┘

The unnamed database is on disk once it is larger than a few megabytes and vanishes when it is
closed. Study ids are random numbers: the moment of a study is that of its earliest image.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tabon.data.cohort.datasets.mimic_sections import mimic_report
from tabon.data.cohort.tables import Row, find_file, read_csv
from tabon.data.cohort.visits import (
    DataSet,
    Excluded,
    Image,
    Moment,
    Source,
    Visit,
    moment_or_reason,
    normal_split,
    normal_view,
    said,
)
from tabon.errors import BadInputError
from tabon.text.reports import Report

NOTE = (
    "MIMIC-CXR is credentialed data of PhysioNet: its reports may not be sent to online services or shared "
    "with anyone who has not signed the data use agreement; PhysioNet's notice of 24 September 2025 allows "
    "only services without any retention and recommends local models. Dates are shifted, the same for all "
    "studies of a patient. Reports without a header for findings or impression: what follows the first "
    "paragraph of the last section counts as the impression (last-paragraph rule)."
)
TABLE_NAMES = tuple(
    f"mimic-cxr-{version}-{{}}.csv{packed}" for version in ("2.0.0", "2.1.0") for packed in (".gz", "")
)
IMAGE_COLUMNS = ("dicom_id", "subject_id", "study_id", "ViewPosition", "StudyDate", "StudyTime")
SPLIT_COLUMNS = ("dicom_id", "study_id", "subject_id", "split")
SECTION_COLUMNS = ("study", "impression", "findings", "last_paragraph")
LONGEST_ID = 18  # digits; theirs have eight
REPORT_FOLDERS = ("mimic-cxr-reports/files", "files", "mimic-cxr-reports")

TABLES = """
PRAGMA journal_mode = OFF;
CREATE TABLE split (dicom TEXT PRIMARY KEY, name TEXT, line INT, used INT DEFAULT 0) WITHOUT ROWID;
CREATE TABLE image (dicom TEXT PRIMARY KEY, patient INT, study INT, view TEXT, day INT, second REAL, line INT,
                    split TEXT) WITHOUT ROWID;
CREATE TABLE section (study INT PRIMARY KEY, findings TEXT, impression TEXT, line INT, used INT DEFAULT 0);
"""
BY_STUDY = (
    "SELECT patient, study, split, dicom, view, day, second, line FROM image "
    "ORDER BY patient, study, split, line"
)


class _ImageRow(NamedTuple):
    """One image as it lies in the database."""

    patient: int
    study: int
    split: str
    dicom: str
    view: str | None
    day: int
    second: float | None
    line: int


Texts = Callable[[_ImageRow], Report | str]  # a report, or why there is none


def read(folder: Path) -> Iterator[Visit | Excluded]:
    """Yield one visit per study, with all of its images."""
    images, splits = (
        find_file(folder, *(name.format(table) for name in TABLE_NAMES)) for table in ("metadata", "split")
    )
    with closing(sqlite3.connect("")) as rows:
        rows.executescript(TABLES)
        yield from _load(rows, splits, SPLIT_COLUMNS, _add_split)
        yield from _load(rows, images, IMAGE_COLUMNS, _add_image)
        yield from _left_over(rows, splits, "split")
        folders = (folder / name for name in REPORT_FOLDERS)
        reports = next((path for path in folders if any(path.glob("p[0-9]*/p[0-9]*/s[0-9]*.txt"))), None)
        if reports is not None:
            yield from _visits(rows, images, lambda image: _from_file(reports, image))
            return
        try:  # the table that MIMIC-CXR's own script makes of the reports
            sections = find_file(folder, "mimic_cxr_sectioned.csv", "mimic_cxr_sectioned.csv.gz")
        except BadInputError:
            raise BadInputError(
                f"{folder} has neither reports (files/p10/p10000032/s50414267.txt, or the same in "
                "mimic-cxr-reports) nor mimic_cxr_sectioned.csv; unpack mimic-cxr-reports.zip there"
            ) from None
        yield from _load(rows, sections, SECTION_COLUMNS, _add_section)
        yield from _visits(rows, images, lambda image: _from_sections(rows, image))
        yield from _left_over(rows, sections, "section")


# --- rows to the database -------------------------------------------------------------

Add = Callable[[sqlite3.Connection, Row], str | None]  # None where the row was added, else why not


def _load(
    rows: sqlite3.Connection, path: Path, columns: tuple[str, ...], add: Add
) -> Iterator[Visit | Excluded]:
    """Put a table into the database; yield the rows that do not fit."""
    for row in read_csv(path, columns):
        reason = add(rows, row) if row.whole else "wrong-field-count"
        if reason is not None:
            yield Excluded(Source(path.name, row.line), reason, _digits(row.values.get("study_id")) or None)


def _digits(value: object) -> str:
    """Return an id, which is a number; the empty string for everything else."""
    text = said(value).removesuffix(".0")
    return text if text.isascii() and text.isdecimal() and len(text) <= LONGEST_ID else ""


def _inserted(rows: sqlite3.Connection, command: str, values: tuple[object, ...]) -> str | None:
    """Insert a row unless its key is there already."""
    return None if rows.execute(command, values).rowcount else "duplicate-row"


def _add_split(rows: sqlite3.Connection, row: Row) -> str | None:
    """Add an image's split."""
    dicom, name = said(row.values["dicom_id"]), normal_split(row.values["split"])
    if not dicom:
        return "no-dicom"
    if name is None:
        return "unknown-split"
    command = "INSERT OR IGNORE INTO split (dicom, name, line) VALUES (?, ?, ?)"
    return _inserted(rows, command, (dicom, name, row.line))


def _add_image(rows: sqlite3.Connection, row: Row) -> str | None:
    """Add an image, if it has an id, a moment and a split."""
    dicom = said(row.values["dicom_id"])
    patient, study = (_digits(row.values[column]) for column in ("subject_id", "study_id"))
    split = rows.execute("SELECT name FROM split WHERE dicom = ?", (dicom,)).fetchone()
    rows.execute("UPDATE split SET used = 1 WHERE dicom = ?", (dicom,))
    moment = moment_or_reason(row.values["StudyDate"], row.values["StudyTime"])
    if not (dicom and patient and study):
        return "bad-id" if dicom else "no-dicom"
    if isinstance(moment, str) or split is None:
        return moment if isinstance(moment, str) else "no-split"
    view = normal_view(row.values["ViewPosition"])
    values = (dicom, int(patient), int(study), view, moment.day, moment.second, row.line, split[0])
    return _inserted(rows, "INSERT OR IGNORE INTO image VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)


def _add_section(rows: sqlite3.Connection, row: Row) -> str | None:
    """Add a report that MIMIC-CXR's script has cut; its last paragraph is the impression of last resort."""
    study = _digits(said(row.values["study"]).removeprefix("s"))
    if not study:
        return "bad-id"
    findings, impression, last = (
        said(row.values[column]) for column in ("findings", "impression", "last_paragraph")
    )
    if not (findings or impression):
        impression = last
    command = "INSERT OR IGNORE INTO section (study, findings, impression, line) VALUES (?, ?, ?, ?)"
    return _inserted(rows, command, (int(study), findings, impression, row.line))


def _left_over(rows: sqlite3.Connection, path: Path, table: str) -> Iterator[Excluded]:
    """Yield the rows of a table that no image asked for."""
    query = f"SELECT line FROM {table} WHERE NOT used ORDER BY line"  # noqa: S608  # a table of ours
    yield from (Excluded(Source(path.name, line), "not-in-metadata") for (line,) in rows.execute(query))


# --- the database to visits -----------------------------------------------------------


def _visits(rows: sqlite3.Connection, path: Path, texts: Texts) -> Iterator[Visit | Excluded]:
    """Yield the studies with a report; every image of the others is left out by its line."""
    found = map(_ImageRow._make, rows.execute(BY_STUDY))
    for _, group in groupby(found, key=lambda image: image[:3]):
        images = list(group)
        first, report = images[0], texts(images[0])
        if isinstance(report, str):
            yield from (Excluded(Source(path.name, image.line), report, str(first.study)) for image in images)
            continue
        yield Visit(
            study=str(first.study),
            patient=str(first.patient),
            moment=earliest(Moment(image.day, image.second) for image in images),
            report=report,
            images=tuple(
                Image(f"{_path(image)}/{image.dicom}.jpg", normal_view(image.view)) for image in images
            ),
            split=first.split,
            source=Source(path.name, first.line),
        )


def earliest(moments: Iterator[Moment]) -> Moment:
    """Return the first day, and the first time that is known on it.

    >>> earliest(iter([Moment(4, 10.0), Moment(3, None), Moment(3, 70.0), Moment(3, 60.0)]))
    Moment(day=3, second=60.0)
    """
    found = list(moments)
    day = min(moment.day for moment in found)
    times = [moment.second for moment in found if moment.day == day and moment.second is not None]
    return Moment(day, min(times, default=None))


def _path(image: _ImageRow) -> str:
    """Return where a study lies: files/p10/p10000032/s50414267."""
    return f"files/p{str(image.patient)[:2]}/p{image.patient}/s{image.study}"


def _from_file(folder: Path, image: _ImageRow) -> Report | str:
    """Read and cut the report of a study."""
    path = folder / (_path(image).removeprefix("files/") + ".txt")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return "no-report"
    except UnicodeDecodeError:
        return "not-utf-8"
    return mimic_report(text) if text.strip() else "empty-report"


def _from_sections(rows: sqlite3.Connection, image: _ImageRow) -> Report | str:
    """Take the report of a study from the table of MIMIC-CXR's script."""
    query = "SELECT findings, impression FROM section WHERE study = ?"
    found = rows.execute(query, (image.study,)).fetchone()
    if found is None:
        return "no-report"
    rows.execute("UPDATE section SET used = 1 WHERE study = ?", (image.study,))
    return Report(findings=found[0], impression=found[1]) if any(found) else "empty-report"


DATASET = DataSet(name="mimic-cxr", read=read, egress="none", order="dates", note=NOTE)
