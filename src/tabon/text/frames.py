"""Rows from anywhere: of a pandas or a polars frame, neither of which is imported, or mappings."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from tabon.errors import BadInputError

MISSING = ("nan", "NaT", "<NA>")  # how pandas writes that there is nothing
NAMES = ("id", "patient")  # of which pandas makes fractions where one is missing


@runtime_checkable
class PolarsFrame(Protocol):
    """A frame that gives its rows as polars does."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a mapping for each row."""


@runtime_checkable
class PandasFrame(Protocol):
    """A frame that gives its rows as pandas does."""

    def to_dict(self, orient: Literal["records"]) -> Any:  # noqa: ANN401  # of many overloads
        """Return a mapping for each row."""


Records = PolarsFrame | PandasFrame | Iterable[Mapping[str, Any]]


def rows_of(table: PolarsFrame | PandasFrame | Iterable[Any]) -> Iterable[Any]:
    """Return the rows of a frame, an index with names among its columns, or rows as they are.

    Raises:
        BadInputError: it has no rows.

    >>> rows_of([{"patient": 7}])
    [{'patient': 7}]
    """
    if isinstance(table, PolarsFrame):
        return table.to_dicts()
    if isinstance(table, PandasFrame):
        frame: Any = table
        is_named = any(name is not None and name not in frame.columns for name in frame.index.names)
        rows: list[dict[str, Any]] = (frame.reset_index() if is_named else frame).to_dict("records")
        return rows
    if isinstance(table, Mapping) or not isinstance(table, Iterable):
        lazy, rest = "collect it first", "give a path, a frame or a list of mappings, one for each row"
        hint = lazy if hasattr(table, "collect") else rest
        raise BadInputError(f"a {type(table).__name__} has no rows; {hint}")
    return table


def plain_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with values that JSON can hold, as the line of a file would have them.

    >>> plain_record({"patient": 7.0, "current_date": date(2019, 4, 3), "prior": float("nan")})
    {'patient': 7, 'current_date': '2019-04-03', 'prior': None}
    """
    record = {str(key): _plain(value) for key, value in row.items()}
    for name in NAMES:
        if isinstance(record.get(name), float) and record[name].is_integer():
            record[name] = int(record[name])
    return record


def _plain(value: Any) -> Any:  # noqa: ANN401  # whatever a frame holds
    """Return a cell's value as JSON would have it; nothing where a frame has nothing."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, str | Mapping):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if str(value) in MISSING:
        return None
    return value.isoformat() if isinstance(value, date) else value
