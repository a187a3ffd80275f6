"""Any table with a row per report or image: CSV, TSV, JSON Lines or Parquet, and a column map.

>>> column_map("patient=PID,date=ExamDate,report=text,view=VP").report
'text'

The reader yields a visit per row and holds no row longer.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

from tabon.data.cohort.tables import Row, check_columns, read_csv, read_json_lines, read_parquet
from tabon.data.cohort.visits import (
    DataSet,
    Egress,
    Excluded,
    Image,
    Moment,
    Order,
    Source,
    Visit,
    id_text,
    normal_split,
    normal_view,
    said,
    split_files,
    visit_or_excluded,
)
from tabon.data.imports.columns import role_map
from tabon.data.imports.dates import moment_of, read_date
from tabon.errors import BadInputError
from tabon.text.reports import Report, parse_report

ENDINGS = (
    *(kind + packed for kind in (".csv", ".tsv", ".jsonl") for packed in ("", ".gz", ".zst")),
    ".parquet",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """Which column of a table says what.

    Needed are `patient`, either `date` or `ordinal`, and either `report` or
    `findings` or `impression` or both of these. Without `study` every row is
    a study of its own, named after its file and line. Without `view` all visits
    of a patient form one chain.
    """

    patient: str
    study: str | None = None
    date: str | None = None  # 20190403, 2019-04-03 or 3-Apr-2019, with or without a time of day
    time: str | None = None  # 093015, 09:30 or 9:30 pm
    ordinal: str | None = None  # a whole number in the date's place
    findings: str | None = None
    impression: str | None = None
    report: str | None = None  # a raw report, cut by `parse_report`
    view: str | None = None
    image: str | None = None  # a path
    split: str | None = None

    def __post_init__(self) -> None:
        """Refuse a map with too little or with two answers to one question."""
        if (self.date is None) == (self.ordinal is None):
            raise BadInputError("a column map needs either date or ordinal; name one of them")
        if self.time is not None and self.date is None:
            raise BadInputError("a column map has time without date; name the date's column too")
        sections = self.findings or self.impression
        if (self.report is None) == (sections is None):
            raise BadInputError("a column map needs either report, or findings or impression or both")

    def columns(self) -> list[str]:
        """Return the columns that a table must have."""
        return [column for column in asdict(self).values() if column is not None]


KEYS = tuple(field.name for field in fields(ColumnMap))


def column_map(text: str) -> ColumnMap:
    """Read a map such as "patient=PID,date=ExamDate,report=text"; each key once, `patient` always."""
    columns = role_map(text, KEYS)
    if "patient" not in columns:
        raise BadInputError("a column map needs patient; write patient=<column>")
    return ColumnMap(**columns)


def generic(columns: ColumnMap, *, name: str = "generic", egress: Egress = "none", note: str = "") -> DataSet:
    """Return a data set of one's own; nothing of it is sent anywhere unless `egress` says so."""

    def read(folder: Path) -> Iterator[Visit | Excluded]:
        """Yield one visit per row of a file, or of the files of a folder."""
        for path, split in split_files(folder, _ending):
            for row in _rows(path, columns.columns()):
                yield _visit(columns, row, path.name, split)

    order: Order = "dates" if columns.ordinal is None else "ordinals"
    has_views = columns.view is not None
    return DataSet(name=name, read=read, egress=egress, order=order, note=note, has_views=has_views)


# --- files ----------------------------------------------------------------------------


def _ending(path: Path) -> str | None:
    """Return the ending by which a file is known as a table."""
    return next((ending for ending in ENDINGS if path.name.endswith(ending)), None)


def _rows(path: Path, columns: list[str]) -> Iterator[Row]:
    """Yield the rows of a table of any kind."""
    kind = (_ending(path) or "").removesuffix(".gz").removesuffix(".zst")
    if kind == ".parquet":
        return read_parquet(path, columns)
    if kind == ".jsonl":
        return _json_lines(path, columns)
    if kind:
        return read_csv(path, columns, delimiter="\t" if kind == ".tsv" else ",")
    raise BadInputError(f"{path} is no table that can be read; known are {', '.join(ENDINGS)}")


def _json_lines(path: Path, columns: list[str]) -> Iterator[Row]:
    """Yield the objects of a file, which may leave out keys, but not one key everywhere."""
    names: Mapping[str, Any] = {}
    unseen = set(columns)
    for row in read_json_lines(path):
        names = names or row.values
        unseen.difference_update(row.values)
        yield row
    check_columns(path, [*names, *(column for column in columns if column not in unseen)], columns)


# --- rows -----------------------------------------------------------------------------


def _visit(columns: ColumnMap, row: Row, file: str, split: str | None) -> Visit | Excluded:
    """Make a visit of a row, or say why it is none."""
    source = Source(file, row.line)
    if not row.whole:
        return Excluded(source, "not-an-object" if ".jsonl" in file else "wrong-field-count")

    def value(column: str | None) -> Any:  # noqa: ANN401  # whatever the table holds
        """Return what is in a column; None where there is no such column."""
        return None if column is None else row.values.get(column)

    study = id_text(value(columns.study)) if columns.study else f"{file.partition('.')[0]}-{row.line}"
    patient = id_text(value(columns.patient))
    name = split if columns.split is None else normal_split(said(value(columns.split)))
    return visit_or_excluded(
        source,
        {"no-patient": patient, "no-study": study, "unknown-split": name or columns.split is None},
        study=study,
        patient=patient,
        moment=_moment(columns, value),
        report=report_of(
            *(value(column) for column in (columns.report, columns.findings, columns.impression))
        ),
        images=[Image(said(value(columns.image)), normal_view(said(value(columns.view))))],
        split=name,
    )


def _moment(columns: ColumnMap, value: Callable[[str | None], object]) -> Moment | str:
    """Return when a row's visit was, or why that is not known."""
    if columns.ordinal is not None:
        text = id_text(value(columns.ordinal))
        if not text:
            return "no-ordinal"
        return Moment(int(text)) if re.fullmatch(r"-?[0-9]{1,18}", text) else "bad-ordinal"
    day = value(columns.date)
    if not said(day):
        return "no-date"
    written = read_date(day)
    if written is None or not written.has_order:  # 3/4/2019: `tabon import` looks at the whole column
        return "bad-date"
    return moment_of(written, value(columns.time), None)


def report_of(*texts: object) -> Report | str:
    """Return the report of a row, whole or by its two sections, or why it is none."""
    if any(isinstance(text, int | list | dict | date) for text in texts):
        return "report-not-text"
    whole, findings, impression = map(said, texts)
    return parse_report(whole) if whole else Report(findings=findings, impression=impression)
