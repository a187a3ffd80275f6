"""Transitions and queries from where users have them: values, frames, other rows, files."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from tabon.errors import BadInputError
from tabon.text.frames import Records, plain_record, rows_of
from tabon.text.records import (
    Query,
    Transition,
    read_query_lines,
    read_transitions,
    transition_from_record,
    whole_query,
)


def transitions_of(source: str | Path | Iterable[Transition] | Records) -> Iterator[Transition]:
    """Yield transitions as they are, or read from a JSON Lines file or from rows, which are numbered.

    >>> next(transitions_of([{"prior": "Clear lungs.", "current": "New effusion.", "patient": 7}]))
    Transition(id='1', patient='7')
    """
    if isinstance(source, str | Path):
        with _opened(source) as lines:
            yield from read_transitions(lines, name=str(source))
        return
    for number, row in enumerate(rows_of(source), start=1):
        if isinstance(row, Transition):
            yield row
            continue
        try:
            yield transition_from_record({"id": number, **plain_record(row)})
        except BadInputError as error:
            raise BadInputError(f"row {number}: {error}") from None


def read_queries(source: str | Path | Records) -> list[Query]:
    """Read queries; one that does not fit is an error.

    Args:
        source: the path of a JSON Lines file, a pandas or polars frame, or other rows, with the columns
            `prior`, `candidates` (a list) and, if there are, `id`, `patient`, `reference` and more.

    >>> read_queries([{"prior": "Clear lungs.", "candidates": ["Clear lungs.", "Effusion."], "patient": 7}])
    [Query(id='1', patient='7', drafts=2)]
    """
    if isinstance(source, str | Path):
        with _opened(source) as lines:
            return [whole_query(query, name=str(source)) for query in read_query_lines(lines)]
    records = ({"id": number, **plain_record(row)} for number, row in enumerate(rows_of(source), start=1))
    written = (json.dumps(record).encode() for record in records)
    return [whole_query(query, name="rows") for query in read_query_lines(written)]


def _opened(path: str | Path) -> IO[bytes]:
    """Open a file to read."""
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}); check its name") from None
