"""PadChest-GR: English sentences per study, beside a table with a row per study and label.

    master_table.csv (patient, date, split) ─────────┐
    PADCHEST_...csv (views; optional)     ─────────┼─▶ a temporary SQLite file
    grounded_reports_20240819.json (one array) ─▶ looked up there ─▶ one visit per report

The JSON file is read item by item.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tabon.data.cohort.datasets.image_tables import PADCHEST_FILES, VIEW_COLUMNS, padchest_view
from tabon.data.cohort.tables import Row, find_file, read_csv, read_json_array
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
    "PadChest-GR is given under a research use agreement of BIMCV that forbids to share the data, so "
    "nothing is sent anywhere. The findings are its English sentences, one per finding, translated by "
    "its makers. Its tables do not tell AP from PA: put PadChest's own CSV file into the folder, or no "
    "visit has a view. It has 4,555 studies of 4,459 patients, so few pairs; most prior studies lie in "
    "PadChest."
)
TABLE, REPORTS = "master_table.csv", "grounded_reports_20240819.json"
COLUMNS = ("StudyID", "ImageID", "PatientID", "StudyDate_DICOM", "split")

TABLES = """
PRAGMA journal_mode = OFF;
CREATE TABLE study (study TEXT, image TEXT, patient TEXT, day INT, split TEXT, view TEXT, used INT DEFAULT 0,
                    PRIMARY KEY (study, image)) WITHOUT ROWID;
CREATE TABLE line (number INT PRIMARY KEY, study TEXT, image TEXT);
"""
LEFT_OVER = (
    "SELECT number, line.study FROM line JOIN study USING (study, image) WHERE NOT study.used ORDER BY number"
)


def read(folder: Path) -> Iterator[Visit | Excluded]:
    """Yield one visit per report."""
    if not (folder / TABLE).is_file() and (folder / f"{TABLE}.zip").is_file():
        raise BadInputError(f"{folder / TABLE}.zip is packed; unzip it there")
    table, reports = find_file(folder, TABLE, f"{TABLE}.gz"), find_file(folder, REPORTS)
    with closing(sqlite3.connect("")) as rows:
        rows.executescript(TABLES)
        for row in read_csv(table, COLUMNS):
            reason = _add(rows, row) if row.whole else "wrong-field-count"
            if reason is not None:
                yield Excluded(Source(table.name, row.line), reason, said(row.values.get("StudyID")) or None)
        if any((folder / name).is_file() for name in PADCHEST_FILES):
            _load_views(rows, folder)
        for item in read_json_array(reports):
            yield _visit(rows, item, Source(reports.name))
        left = rows.execute(LEFT_OVER)
        yield from (Excluded(Source(table.name, line), "no-report", study) for line, study in left)


def _add(rows: sqlite3.Connection, row: Row) -> str | None:
    """Add a row; return why it does not fit, None where it does."""
    study, image, patient = (said(row.values[column]) for column in ("StudyID", "ImageID", "PatientID"))
    moment, split = moment_or_reason(row.values["StudyDate_DICOM"]), normal_split(row.values["split"])
    needed = {"no-study": study, "no-image": image, "no-patient": patient, "unknown-split": split}
    missing = next((reason for reason, value in needed.items() if not value), None)
    if missing is not None or isinstance(moment, str):
        return missing or str(moment)
    facts = (study, image, patient, moment.day, split)
    rows.execute(
        "INSERT OR IGNORE INTO study (study, image, patient, day, split) VALUES (?, ?, ?, ?, ?)", facts
    )
    query = "SELECT 1 FROM study WHERE (study, image, patient, day, split) = (?, ?, ?, ?, ?)"
    if rows.execute(query, facts).fetchone() is None:
        return "contradicts-earlier-row"
    rows.execute("INSERT INTO line VALUES (?, ?, ?)", (row.line, study, image))
    return None


def _load_views(rows: sqlite3.Connection, folder: Path) -> None:
    """Look the views up in PadChest's own table."""
    rows.execute("CREATE INDEX by_image ON study (image)")
    for row in read_csv(find_file(folder, *PADCHEST_FILES), VIEW_COLUMNS):
        if row.whole:  # its other rows are counted where PadChest itself is read
            found = padchest_view(row.values), said(row.values["ImageID"])
            rows.execute("UPDATE study SET view = ? WHERE image = ?", found)


def _visit(rows: sqlite3.Connection, item: object, source: Source) -> Visit | Excluded:
    """Make a visit of a report, or say why it is none."""
    if not isinstance(item, dict):
        return Excluded(source, "not-an-object")
    study, image = (  # half a character, which JSON can say, becomes a question mark: SQLite takes none
        said(item.get(key)).encode("utf-8", "replace").decode() for key in ("StudyID", "ImageID")
    )
    query = "SELECT patient, day, split, view FROM study WHERE study = ? AND image = ?"
    found = rows.execute(query, (study, image)).fetchone()
    findings = item.get("findings")
    said_of = findings if isinstance(findings, list) else []
    sentences = (said(finding.get("sentence_en")) for finding in said_of if isinstance(finding, dict))
    text = " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in sentences if text)
    if found is None or not text:
        reason = "not-in-master-table" if found is None else "no-sentences"
        return Excluded(source, reason, study or None)
    rows.execute("UPDATE study SET used = 1 WHERE study = ? AND image = ?", (study, image))
    patient, day, split, view = found
    return Visit(
        study=study,
        patient=patient,
        moment=Moment(day),
        report=Report(findings=text),
        images=(Image(f"Padchest_GR_files/{image}", normal_view(view)),),
        split=split,
        source=source,
    )


DATASET = DataSet(name="padchest-gr", read=read, egress="none", order="dates", note=NOTE)
