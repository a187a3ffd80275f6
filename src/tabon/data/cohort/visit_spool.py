"""Visits of a whole data set, patient by patient, in bounded memory.

A temporary SQLite database on disk does the sorting; it is private and goes
when it is closed.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import groupby
from typing import Any

from tabon.data.cohort.visits import Image, Moment, Source, Visit
from tabon.text.reports import Report

SCHEMA = "CREATE TABLE visits (patient TEXT, visit TEXT)"
AT_ONCE = 1000


class Spill:
    """Visits on disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Prepare the table."""
        self._connection = connection
        connection.execute(SCHEMA)
        self._waiting: list[tuple[str, str]] = []

    def add(self, visit: Visit) -> None:
        """Keep one visit."""
        storable = visit.patient.encode("utf-8", "backslashreplace").decode()  # whatever is in it
        self._waiting.append((storable, json.dumps(asdict(visit))))
        if len(self._waiting) >= AT_ONCE:
            self._write()

    def patients(self) -> Iterator[list[Visit]]:
        """Yield the visits of each patient, patients in order of their ids."""
        self._write()
        rows = self._connection.execute("SELECT patient, visit FROM visits ORDER BY patient")
        for _, visits in groupby(rows, key=lambda row: row[0]):
            yield [_visit(json.loads(text)) for _, text in visits]

    def _write(self) -> None:
        self._connection.executemany("INSERT INTO visits VALUES (?, ?)", self._waiting)
        self._waiting.clear()


@contextmanager
def spill() -> Iterator[Spill]:
    """Open a temporary database that no one else sees."""
    with closing(sqlite3.connect("", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        yield Spill(connection)


def _visit(values: dict[str, Any]) -> Visit:
    """Read a visit back."""
    values |= {
        "moment": Moment(**values["moment"]),
        "report": Report(**values["report"]),
        "images": tuple(Image(**image) for image in values["images"]),
        "source": Source(**values["source"]),
    }
    return Visit(**values)
