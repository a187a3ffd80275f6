"""Drafts that tabon did not generate: long and wide tables, a file per sample, JSON lists, ReXrank's JSON."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from tabon.data.cohort.tables import Row
from tabon.data.cohort.visits import Excluded, Moment, Source, id_text, said
from tabon.data.imports.columns import DRAFT_SPELLINGS, find_columns, missing, plain
from tabon.data.imports.dates import Order, find_order, moment_of, read_date
from tabon.data.imports.source_rows import KEY_COLUMN, Rows, SourceRows, read_rows
from tabon.data.imports.visit_table import Guess, check_ids, read_as
from tabon.errors import BadInputError
from tabon.text.records import is_too_long
from tabon.text.reports import SECTIONS, Report, report_from_record

OPTION = "--draft-columns"
DRAFT_ROLES = tuple(role for role in DRAFT_SPELLINGS if role != "prediction")  # is a text
TEXTS = ("text", *SECTIONS)
KEYS = ("study", "patient", "date", "time", "model")  # what a draft is of
_WIDE = re.compile(
    r"(?:draft|candidate|sample|generation|prediction|output|hypothesis|report)[ _-]*(?P<number>\d+)"
    r"(?:[ _-]*(?P<section>findings|impression|text))?"
    r"|(?P<own_section>findings|impression)[ _-]*(?P<own_number>\d+)",
    re.IGNORECASE,
)
_RUN_ON = re.compile(r"(?<=[.!?])(?=(?:Findings|Impression):)", re.IGNORECASE)  # of ReXrank's own example


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One draft, and what is said of the visit that it is for."""

    source: Source
    study: str
    patient: str
    moment: Moment | None
    number: str  # as it is written; empty if drafts are not numbered
    file: int  # its place among the files of drafts
    record: Mapping[str, Any]  # as a query has it
    report: Report  # what it says

    def visit(self) -> str:
        """Name the visit that the draft is for, as the draft does."""
        day = date.fromordinal(self.moment.day).isoformat() if self.moment else ""
        return self.study or f"{self.patient} on {day}"


@dataclass(frozen=True, slots=True)
class DraftTable:
    """The drafts of some files, what was left out, and what was guessed."""

    drafts: tuple[Draft, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    guesses: tuple[Guess, ...] = ()


class _Shape(NamedTuple):
    """Where a table of drafts has its visits and its texts."""

    columns: Mapping[str, str]  # by role
    wide: Mapping[str, Mapping[str, str]]  # number of a draft to its columns, by section


def read_draft_rows(
    sources: Sequence[Rows],
    *,
    columns: Mapping[str, str] | None = None,
    order: Order | None = None,
    visits_order: Order | None = None,
    encoding: str | None = None,
) -> DraftTable:
    """Read the drafts of one file or several; of several each has other samples or other visits.

    Args:
        sources: paths, or rows of any origin.
        columns: role to column, for those that are not found by their names; "-" leaves a role out.
        order: of day and month, whatever the dates say.
        visits_order: the same if the dates leave it open.
        encoding: of the files, if they are neither UTF-8 nor marked as UTF-16.

    Raises:
        BadInputError: a column cannot be found, or two texts claim to be the same draft.

    >>> row = {"study": "s1", "draft_1": "Clear.", "draft_2": "FINDINGS: Edema."}
    >>> [draft.record["text"] for draft in read_draft_rows([[row]]).drafts]
    ['Clear.', 'FINDINGS: Edema.']
    """
    found: list[Draft | Excluded] = []
    guesses: list[Guess] = []
    for file, source in enumerate(sources, start=1):
        rows = read_rows(source, encoding=encoding)
        shape = _shape(rows, columns or {})
        check_ids(rows, shape.columns)
        day = shape.columns.get("date", "")
        dates = ((rows.place(row), read_date(row.values.get(day))) for row in rows.rows if row.whole)
        of_file = order or find_order(dates, default=visits_order)[0]
        guesses += [*read_as(rows, shape.columns), Guess("  form", _form(shape, several=len(sources) > 1))]
        guesses += [Guess("  dates", of_file or "clear as written")] if day else []
        found += _drafts(rows, shape, file, of_file)
    return DraftTable(
        tuple(draft for draft in found if isinstance(draft, Draft)),
        tuple(dict.fromkeys(row for row in found if isinstance(row, Excluded))),
        tuple(guesses),
    )


def _shape(rows: SourceRows, given: Mapping[str, str]) -> _Shape:
    """Find the columns of a table of drafts: numbered ones, a list, or a text or two sections a row."""
    columns = find_columns(rows, DRAFT_SPELLINGS, given, option=OPTION)
    if "study" not in {*columns, *given} and "id" in rows.columns:
        columns["study"] = "id"
    if "study" not in columns and not {"patient", "date"} <= set(columns):
        raise missing(rows, "study (or patient and date)", option=OPTION)
    wide: dict[str, dict[str, str]] = {}
    for match in filter(None, map(_WIDE.fullmatch, rows.columns)):
        number, section = match["number"] or match["own_number"], match["section"] or match["own_section"]
        wide.setdefault(number, {})[(section or "text").lower()] = match.string
    wide = {} if {"text", "drafts", *SECTIONS} & set(given) else wide
    used = set() if wide else {"drafts"} if "drafts" in columns else _text_roles(columns, given)
    columns = {role: columns[role] for role in columns if role in {*KEYS, *used}}
    if not wide and not used:
        texts = "text (or drafts, or findings and impression, or draft_1 to draft_n)"
        raise missing(rows, texts, option=OPTION)
    return _Shape(columns, wide)


def _text_roles(columns: dict[str, str], given: Mapping[str, str]) -> set[str]:
    """Return the roles that make up a draft; what is called a prediction goes before sections and reports."""
    prediction, sections = columns.pop("prediction", None), set(SECTIONS) & set(columns)
    if prediction and plain(prediction) in {"draft", "candidate"} and (sections or "text" in columns):
        columns.setdefault("number", prediction)
    elif prediction and "text" not in given:
        columns["text"] = prediction
        return {"text", "number"}
    texts = {"text"} if "text" in given or not sections else sections
    return texts | {"number"} if texts & set(columns) else set()


def _form(shape: _Shape, *, several: bool) -> str:
    """Say in which form drafts are."""
    columns = shape.columns
    if shape.wide:
        return f"wide: drafts {', '.join(shape.wide)} in one row"
    if "drafts" in columns:
        return "a list of drafts in each row"
    if columns.get("study") == KEY_COLUMN and plain(columns.get("text", "")) == "modelprediction":
        return "ReXrank's JSON: one draft per study"
    return "long: one row per draft" + (", each file with its own samples" if several else "")


def _drafts(rows: SourceRows, shape: _Shape, file: int, order: Order | None) -> Iterator[Draft | Excluded]:
    """Yield the drafts of a file, each once, and what is left out with its reason."""
    seen: dict[tuple[object, ...], tuple[Row, Mapping[str, Any]]] = {}
    for row in rows.rows:
        source = Source(rows.name, row.line)
        if not row.whole:
            yield Excluded(source, "wrong-field-count" if "CSV" in rows.kind else "not-an-object")
            continue
        values = {role: row.values.get(name) for role, name in shape.columns.items()}
        study, patient = id_text(values.get("study")), id_text(values.get("patient"))
        moment = moment_of(read_date(values.get("date")), values.get("time"), order)
        when = None if isinstance(moment, str) else moment
        if not study and not (patient and when):
            yield Excluded(source, "draft-names-no-visit")
            continue
        for number, record in _records(row, values, shape.wide):
            report = _report(record)
            if isinstance(report, str):
                yield Excluded(source, report, study or None)
                continue
            said_number = number or tuple(record.get(name) for name in TEXTS)
            key = (study, patient, when, str(record.get("model")), said_number)
            before, first = seen.setdefault(key, (row, record))
            if first != record:
                raise BadInputError(
                    f"{rows.place(before)} and {rows.unit} {row.line} have different texts for draft "
                    f"{number} of one visit; keep one, or number them apart"
                )
            if first is not record:
                yield Excluded(source, "duplicate-draft", study or None)
                continue
            yield Draft(
                source=source, study=study, patient=patient, moment=when,
                number=number, file=file, record=record, report=report,
            )  # fmt: skip


def _records(
    row: Row, values: Mapping[str, Any], wide: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the number of each draft of a row and what a query keeps of it."""
    model = {"model": said(values["model"])} if said(values.get("model")) else {}
    if wide:
        for number, columns in wide.items():
            yield number, {section: row.values.get(name) for section, name in columns.items()} | model
    elif "drafts" in values:
        items = values["drafts"]
        for place, item in enumerate(items if isinstance(items, list | tuple) else [None], start=1):
            yield str(place), (dict(item) if isinstance(item, Mapping) else {"text": item}) | model
    else:
        texts = {name: values[name] for name in TEXTS if name in values}
        if isinstance(texts.get("text"), Mapping):
            texts = dict(texts["text"])
        elif isinstance(texts.get("text"), str):
            texts["text"] = _RUN_ON.sub(" ", texts["text"])
        yield id_text(values.get("number")), texts | model


def _report(record: dict[str, Any]) -> Report | str:
    """Return a draft's report, or why it cannot be used; a text that says that there is none becomes null."""
    for name in TEXTS:
        if name in record and not said(record[name]):
            record[name] = None
    if not any(record.get(name) for name in TEXTS):
        return "draft-without-text"
    try:
        report = report_from_record(record)
    except BadInputError:
        return "draft-not-text"
    return "draft-too-long" if is_too_long(report) else report
