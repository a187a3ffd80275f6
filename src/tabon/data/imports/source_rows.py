"""The rows of a table of any kind, or of any iterable of mappings, with the place of each.

A table is read whole: how its dates and ids are written is seen only in all of its rows.
"""

import codecs
import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from tabon._internal.extras import require
from tabon.data.cohort.tables import FIELD_LIMIT, Row, open_bytes, read_parquet, whole
from tabon.data.cohort.visits import said
from tabon.errors import BadInputError
from tabon.text.frames import Records, rows_of

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
TEXT_KINDS = (".csv", ".tsv", ".txt")
JSON_KINDS = (".jsonl", ".ndjson", ".json")
SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
UNUSED_CP1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")
IN_PYTHON = "rows"  # the kind of a table that is no file
KEY_COLUMN = "(key)"  # of a JSON object of objects, such as ReXrank's: the name of each member

Rows = str | Path | Records


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRows:
    """A table: its name, its columns, its rows, and how its file was read."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    kind: str
    encoding: str = "none"
    unit: str = "row"  # or line: what the number of a row counts

    def place(self, row: Row) -> str:
        """Say where a row is."""
        return f"{self.name} {self.unit} {row.line}"

    def placed(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield each row's place and values; of one with too few or too many fields there are none."""
        for row in self.rows:
            yield self.place(row), row.values if row.whole else {}


def read_rows(source: Rows, *, encoding: str | None = None) -> SourceRows:
    """Read a file by its ending, or take the rows of a frame or from anywhere.

    >>> read_rows([{"patient": 7}, {"patient": 8, "view": "PA"}]).columns
    ('patient', 'view')
    """
    if not isinstance(source, str | Path):
        rows = [
            Row(number, row, isinstance(row, Mapping)) for number, row in enumerate(rows_of(source), start=1)
        ]
        return _table("rows", rows, kind=IN_PYTHON)
    path = Path(source)
    kind = table_kind(path)
    if not path.is_file():
        raise BadInputError(f"{path} is not there; check its name")
    if kind in SPREADSHEETS:
        return _sheet(path)
    if kind == ".parquet":
        return _table(path.name, list(read_parquet(path)), kind="Parquet")
    if not kind:
        raise BadInputError(
            f"{path} is no table that can be read; known are {', '.join((*TEXT_KINDS, *JSON_KINDS))} "
            f"(also .gz and .zst), .parquet and {', '.join(SPREADSHEETS)}"
        )
    text, encoding = _decoded(path, encoding)
    if kind in TEXT_KINDS:
        return _csv_table(path.name, text, encoding)
    rows, kind = _json_rows(path.name, text)
    return _table(
        path.name, rows, kind=kind, encoding=encoding, unit="line" if kind == "JSON Lines" else "row"
    )


def table_kind(path: Path) -> str:
    """Return the ending by which a table is known, without .gz or .zst; nothing for other files."""
    plain = Path(path.stem if path.suffix in {".gz", ".zst"} else path.name)
    known = (*TEXT_KINDS, *JSON_KINDS, *SPREADSHEETS, ".parquet")
    return plain.suffix.lower() if plain.suffix.lower() in known else ""


def _sheet(path: Path) -> SourceRows:
    """Read the one sheet of a spreadsheet that holds anything: dates as such, ids with all their digits."""
    calamine = require("python_calamine", extra="excel", feature=f"reading {path.name}")
    try:
        book = calamine.load_workbook(path)
        sheets = {name: book.get_sheet_by_name(name).to_python(False) for name in book.sheet_names}
    except calamine.CalamineError:
        raise BadInputError(f"{path} cannot be read; save it as CSV (UTF-8) and give that file") from None
    filled = [name for name, lines in sheets.items() if any(map(_says_something, lines))]
    if len(filled) != 1:
        raise BadInputError(
            f"{path} has {len(filled)} sheets that hold anything; keep one, or save the one you mean as CSV"
        )
    lines = (
        (number, line) for number, line in enumerate(sheets[filled[0]], start=1) if _says_something(line)
    )
    header = _told_apart(map(said, next(lines)[1]))
    rows = (Row(number, dict(zip(header, map(_whole_number, line), strict=False))) for number, line in lines)
    return SourceRows(
        name=path.name, columns=tuple(header), rows=tuple(rows), kind=f"spreadsheet, sheet {filled[0]!r}"
    )


def _whole_number(value: object) -> object:
    """Return a cell's value; a spreadsheet knows no whole numbers, so 7.0 is 7."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _table(name: str, rows: list[Row], **facts: str) -> SourceRows:
    """Make a table whose columns are all the keys of its rows."""
    columns = dict.fromkeys(str(key) for row in rows if row.whole for key in row.values)
    return SourceRows(name=name, columns=tuple(columns), rows=tuple(rows), **facts)


def _decoded(path: Path, encoding: str | None) -> tuple[str, str]:
    """Return a file's text and how it was decoded: UTF-8, else UTF-16 by its mark, else cp1252."""
    with whole(path), open_bytes(path) as file:
        data = file.read()
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    codec = encoding or ("utf-16" if marked else "utf-8-sig")
    try:
        text = data.decode(codec)
    except LookupError:
        raise BadInputError(f"{codec!r} is no encoding; name one such as utf-8, cp1252 or utf-16") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        if encoding or marked:
            raise BadInputError(f"{path} line {line} is not {codec}; name another --encoding") from None
        known = "latin-1" if UNUSED_CP1252 & set(data) else "cp1252"
        text, codec = data.decode(known), f"{known}, as line {line} is not UTF-8"
    if not text.strip():
        raise BadInputError(f"{path} is empty; copy it again")
    if "\0" in text:
        raise BadInputError(f"{path} holds zero bytes; if it is UTF-16 say so with --encoding utf-16-le")
    return text.removeprefix("\ufeff"), "UTF-8" if codec == "utf-8-sig" else codec


def _csv_table(name: str, text: str, encoding: str) -> SourceRows:
    """Read CSV; its delimiter is the one that its first line has most of, which may be Excel's `sep=;`."""
    csv.field_size_limit(FIELD_LIMIT)
    head = re.sub(r'"[^"]*"', "", re.split(r"[\r\n]", text.lstrip(), maxsplit=1)[0])
    delimiter = max(DELIMITERS, key=head.count)
    reader = csv.reader(StringIO(text, newline=""), strict=True, delimiter=delimiter)
    rows: list[Row] = []
    line, header = 1, []
    try:
        header = next(filter(_says_something, reader))
        if header[0].lower() == "sep=":
            header = next(filter(_says_something, reader))
        header = _told_apart(column.strip() for column in header)
        line, fields = reader.line_num + 1, header
        for fields in reader:
            if _says_something(fields):
                values = map(_plain_value, fields)
                rows.append(Row(line, dict(zip(header, values, strict=False)), len(fields) == len(header)))
            line = reader.line_num + 1
    except csv.Error:
        raise BadInputError(
            f"{name} line {line}: a quote is not closed, or stands inside a field; double it or fix the line"
        ) from None
    if len(fields) < len(header) and not text.endswith(("\n", "\r")):
        raise BadInputError(
            f"{name} line {rows[-1].line} has {len(fields)} of {len(header)} fields and no end: "
            "the file seems to be cut off; copy it again or fix the line"
        )
    return SourceRows(
        name=name,
        columns=tuple(header),
        rows=tuple(rows),
        kind=f"CSV with {DELIMITERS[delimiter]}",
        encoding=encoding,
        unit="line",
    )


def _says_something(fields: Iterable[object]) -> bool:
    """Say whether a line holds anything."""
    return any(str(field).strip() for field in fields)


def _told_apart(columns: Iterable[str]) -> list[str]:
    """Number the columns of one name.

    >>> _told_apart(["Date", "Text", "Text", "", ""])
    ['Date', 'Text', 'Text (2)', '', '']
    """
    seen: Counter[str] = Counter()
    named = []
    for column in columns:
        seen[column] += 1
        named.append(f"{column} ({seen[column]})" if column and seen[column] > 1 else column)
    return named


def _plain_value(field: str) -> str:
    """Return a field without the formula by which Excel is made to keep it: ="007" is 007."""
    return field[2:-1] if field.startswith('="') and field.endswith('"') and len(field) > 2 else field  # noqa: PLR2004


def _json_rows(name: str, text: str) -> tuple[list[Row], str]:
    """Read a list of objects, an object of objects or one object a line, and say which."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if text.lstrip().startswith("{"):
            return list(_json_lines(text)), "JSON Lines"
        raise BadInputError(
            f"{name} line {error.lineno}: not JSON at column {error.colno}; fix it or copy the file again"
        ) from None
    except (ValueError, RecursionError):
        raise BadInputError(f"{name} is nested too deeply or has a number of too many digits") from None
    if isinstance(value, dict) and value and all(isinstance(member, dict) for member in value.values()):
        members = enumerate(value.items(), start=1)
        return [Row(number, {KEY_COLUMN: key, **row}) for number, (key, row) in members], "JSON object"
    if isinstance(value, dict):
        return [Row(1, value)], "JSON Lines"
    items = enumerate(value if isinstance(value, list) else [value], start=1)
    return [Row(number, row, isinstance(row, dict)) for number, row in items], "JSON list"


def _json_lines(text: str) -> Iterator[Row]:
    """Yield the objects of JSON Lines; what is none is no whole row."""
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            value = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            value = ()
        if value is not None:
            yield Row(number, value if isinstance(value, dict) else {}, isinstance(value, dict))
