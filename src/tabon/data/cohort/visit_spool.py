"""Visits of a whole data set, patient by patient, in bounded memory.

A temporary SQLite database on disk does the sorting; it is private and goes
when it is closed.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import Any

from tabon.data.cohort.visits import Image, Moment, Source, Visit
from tabon.text.reports import Report


class VisitSpool:
    """Visits on disk, in a temporary database that no one else sees."""

    def __init__(self) -> None:
        """Prepare the table."""
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute("BEGIN")
        self._connection.execute("CREATE TABLE visits (patient TEXT, visit TEXT)")

    def add(self, visit: Visit) -> None:
        """Keep one visit."""
        storable = visit.patient.encode("utf-8", "backslashreplace").decode()  # whatever is in it
        row = storable, json.dumps(asdict(visit))
        self._connection.execute("INSERT INTO visits VALUES (?, ?)", row)

    def patients(self) -> Iterator[list[Visit]]:
        """Yield the visits of each patient, patients in order of their ids."""
        rows = self._connection.execute("SELECT patient, visit FROM visits ORDER BY patient")
        for _, visits in groupby(rows, key=lambda row: row[0]):
            yield [_visit(json.loads(text)) for _, text in visits]

    def close(self) -> None:
        """Let the database go."""
        self._connection.close()


def _visit(values: dict[str, Any]) -> Visit:
    """Read a visit back."""
    values |= {
        "moment": Moment(**values["moment"]),
        "report": Report(**values["report"]),
        "images": tuple(Image(**image) for image in values["images"]),
        "source": Source(**values["source"]),
    }
    return Visit(**values)
