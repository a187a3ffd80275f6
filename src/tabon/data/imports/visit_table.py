"""Visits from a table of one's own; what was guessed of columns, dates and ids is named."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tabon.data.cohort.datasets.generic import report_of
from tabon.data.cohort.tables import Row
from tabon.data.cohort.visits import (
    Excluded,
    Image,
    Source,
    Visit,
    id_text,
    normal_split,
    normal_view,
    said,
    split_files,
    visit_or_excluded,
)
from tabon.data.imports.columns import VISIT_SPELLINGS, find_columns, missing
from tabon.data.imports.dates import Order, find_order, moment_of, read_date
from tabon.data.imports.source_rows import Rows, SourceRows, read_rows, table_kind
from tabon.errors import BadInputError
from tabon.text.reports import Report

OPTION = "--columns"
NOWHERE = Source("")
_ROUNDED = re.compile(r"\d[.,]\d+E\+\d+", re.IGNORECASE)


class Guess(NamedTuple):
    """Something that was not said, and what it was taken for."""

    what: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitTable:
    """The visits of a table, what was left out, and what was guessed."""

    name: str
    visits: tuple[Visit, ...]
    excluded: tuple[Excluded, ...]
    guesses: tuple[Guess, ...]
    order: Order | None  # of day and month in dates such as 3/4/2019
    has_views: bool  # else all visits of a patient form one chain
    has_splits: bool


class _Part(NamedTuple):
    """One file of a table."""

    rows: SourceRows
    columns: Mapping[str, str]
    split: str | None  # that the file is named after

    def value(self, row: Row, role: str) -> Any:  # noqa: ANN401  # whatever the table holds
        """Return what a row has in a role's column; None if there is no such column."""
        return row.values.get(self.columns[role]) if role in self.columns else None


def read_visit_rows(
    source: Rows,
    *,
    columns: Mapping[str, str] | None = None,
    order: Order | None = None,
    encoding: str | None = None,
) -> VisitTable:
    """Read visits from a file, from a folder with a file for each split, or from rows of any origin.

    Args:
        source: a path, or mappings such as the rows of a data frame.
        columns: role to column, for those that are not found by their names; "-" leaves a role out.
        order: of day and month, if the dates do not say it.
        encoding: of the file, if it is neither UTF-8 nor marked as UTF-16.

    Raises:
        BadInputError: a column cannot be found or dates cannot be understood.

    >>> table = read_visit_rows([{"PID": 7, "Date": "3-Apr-2019", "Report": "Clear lungs."}])
    >>> table.visits[0].study
    '7-2019-04-03'
    """
    files: list[tuple[Rows, str | None]] = [(source, None)]
    if isinstance(source, str | Path):
        files = [*split_files(Path(source), table_kind)]
    tables = [(read_rows(file, encoding=encoding), split) for file, split in files]
    parts = [_Part(rows, _visit_columns(rows, columns or {}), split) for rows, split in tables]
    for part in parts:
        check_ids(part.rows, part.columns)
    dates = (
        (part.rows.place(row), read_date(part.value(row, "date")))
        for part in parts
        for row in part.rows.rows
        if row.whole
    )
    order, how = (order, "as asked") if order else find_order(dates)
    has_splits = any(_split(part, row) for part in parts for row in part.rows.rows if row.whole)
    found = list(_without_repeats(parts, order, has_splits=has_splits))
    visits, naming = _with_ids([row for row in found if isinstance(row, Visit)], parts)
    has_views = any(image.view for visit in visits for image in visit.images)
    views = "AP or PA, one for each patient" if has_views else "not known: a patient's visits are one chain"
    guesses = [guess for part in parts for guess in read_as(part.rows, part.columns)]
    guesses += [
        Guess("dates", " ".join(filter(None, (order or "clear as written", how)))),
        Guess("ids", naming),
        Guess("views", views),
    ]
    return VisitTable(
        name=parts[0].rows.name if len(parts) == 1 else str(source),
        visits=tuple(visits),
        excluded=tuple(row for row in found if isinstance(row, Excluded)),
        guesses=tuple(guesses),
        order=order,
        has_views=has_views,
        has_splits=has_splits,
    )


def read_as(rows: SourceRows, columns: Mapping[str, str]) -> Iterator[Guess]:
    """Say how a table was read."""
    encoding = "" if rows.encoding == "none" else f", {rows.encoding}"
    yield Guess(rows.name, f"{rows.kind}{encoding}, {len(rows.rows):,} rows")
    yield from (Guess(f"  {role}", f"column {name!r}") for role, name in columns.items())


def check_ids(rows: SourceRows, columns: Mapping[str, str]) -> None:
    """Refuse ids that a spreadsheet has rounded: two patients may have become one."""
    for role in {"patient", "study"} & columns.keys():
        for row in rows.rows:
            if row.whole and _ROUNDED.fullmatch(said(row.values.get(columns[role]))):
                raise BadInputError(
                    f"{rows.place(row)}: the {role} id is a rounded number such as 1.23E+11: different "
                    "ones may look alike; make the column text in the spreadsheet and save it again"
                )


def _visit_columns(rows: SourceRows, given: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a table of visits; sections go before a raw report."""
    found = find_columns(rows, VISIT_SPELLINGS, given, option=OPTION)
    for role in ("patient", "date"):
        if role not in found:
            raise missing(rows, role, option=OPTION)
    if not {"findings", "impression", "report"} & set(found):
        raise missing(rows, "report (or findings, or impression)", option=OPTION)
    if {"findings", "impression"} & set(found) and "report" not in given:
        found.pop("report", None)
    return found


def _split(part: _Part, row: Row) -> str | None:
    """Return the split that a row's column or file says."""
    return normal_split(said(part.value(row, "split"))) if "split" in part.columns else part.split


def _without_repeats(
    parts: Sequence[_Part], order: Order | None, *, has_splits: bool
) -> Iterator[Visit | Excluded]:
    """Yield each row as a visit, or with the reason why it is none; of equal visits the first."""
    seen: set[Visit | Excluded] = set()
    for part in parts:
        for row in part.rows.rows:
            source = Source(part.rows.name, row.line)
            if not row.whole:
                yield Excluded(source, "wrong-field-count" if "CSV" in part.rows.kind else "not-an-object")
                continue
            visit = _visit(part, row, order, has_splits=has_splits)
            same = replace(visit, source=NOWHERE)
            yield Excluded(source, "duplicate-row", visit.study or None) if same in seen else visit
            seen |= {same} if isinstance(visit, Visit) else set()


def _visit(part: _Part, row: Row, order: Order | None, *, has_splits: bool) -> Visit | Excluded:
    """Make a visit of a row, or say why it is none."""
    study, patient = (id_text(part.value(row, role)) for role in ("study", "patient"))
    day, split = part.value(row, "date"), _split(part, row)
    return visit_or_excluded(
        Source(part.rows.name, row.line),
        {
            "no-patient": patient,
            "no-study": study or "study" not in part.columns,
            "unknown-split": split or not has_splits,
            "no-date": said(day),
        },
        study=study,
        patient=patient,
        moment=moment_of(read_date(day), part.value(row, "time"), order),
        report=report_of(*(part.value(row, role) for role in ("report", "findings", "impression"))),
        images=[Image(said(part.value(row, "image")), normal_view(said(part.value(row, "view"))))],
        split=split,
    )


def _with_ids(visits: Sequence[Visit], parts: Sequence[_Part]) -> tuple[list[Visit], str]:
    """Give each visit an id that does not depend on the order of rows, and say how it is made."""
    patients: dict[str, set[str]] = defaultdict(set)
    for visit in visits:
        patients[visit.study].add(visit.patient)
    if all("study" in part.columns for part in parts):
        if all(len(owners) == 1 for owners in patients.values()):
            return list(visits), "the study's"
        named = [replace(visit, study=f"{visit.patient}-{visit.study}") for visit in visits]
        return named, "patient and study, as several patients have a study of one name"
    texts: dict[str, set[Report]] = defaultdict(set)
    for visit in visits:
        texts[_name(visit)].add(visit.report)
    return [
        replace(visit, study=_name(visit) + (_digest(visit.report) if len(texts[_name(visit)]) > 1 else ""))
        for visit in visits
    ], "patient and date"


def _name(visit: Visit) -> str:
    """Name a visit by its patient and date, and its time if there is one."""
    when = datetime.fromordinal(visit.moment.day) + timedelta(seconds=visit.moment.second or 0)
    text = when.date().isoformat() if visit.moment.second is None else when.isoformat(timespec="seconds")
    return f"{visit.patient}-{text}"


def _digest(report: Report) -> str:
    """Return what tells two reports of one moment apart."""
    text = f"{report.findings}\0{report.impression}\0{report.other}"
    return "-" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
