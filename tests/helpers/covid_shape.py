"""A covid-chestxray table in the published file's shape, with made-up text.

As published: 950 rows of 472 patients, of which 151 have two offsets or more; 149 offsets of 0,
13 below 0, many blank; 768 rows with notes; CT beside X-rays, and laterals beside frontals.
Of these, 108 patients have two days with a note and a frontal X-ray of one kind: 174 transitions.

`python tests/helpers/covid_shape.py FOLDER` writes metadata.csv.
"""

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from cohort_layouts import covid_row, write_covid_chestxray

CHAINS = {2: 70, 3: 20, 4: 10, 5: 6, 6: 2}  # visits of one view: patients
STEPS = (0, 3, 5, 9, 14, 21)  # days after the first visit
STARTS = (-1, -3, -0.5, *(-2,) * 10, *(0,) * 60, *range(1, 36))  # of the 108 chains
VIEWS = ("PA", "AP", "AP Supine", "AP Erect")


def chained(numbers: Iterator[int]) -> list[dict]:
    """Patients with a chain, and what must not lengthen it: laterals, CT, blank days, days without notes."""
    rows = []
    lengths = [length for length, patients in CHAINS.items() for _ in range(patients)]
    for place, (length, start) in enumerate(zip(lengths, STARTS, strict=True)):
        patient, view = str(next(numbers)), VIEWS[place % 4]
        days = [f"{start + step:g}" for step in STEPS[:length]]
        rows += [covid_row(patient, day, view, clinical_notes=note(patient, day)) for day in days]
        last = days[-1]
        if place % 3 == 0:
            rows.append(covid_row(patient, last, "L", clinical_notes=note(patient, last)))
        if place % 7 == 0:
            rows.append(ct(patient, last))
        if place % 9 == 0:
            rows.append(covid_row(patient, "", view, clinical_notes=note(patient, "unknown")))
        if place % 10 == 0:
            rows.append(covid_row(patient, "40", view, clinical_notes=""))
    return rows


def broken(numbers: Iterator[int]) -> list[dict]:
    """43 patients with two offsets and no chain: views that differ, CT on the second day, one note."""
    rows = []
    for kind in [0] * 12 + [1] * 11 + [2] * 20:
        patient = str(next(numbers))
        rows.append(covid_row(patient, 2, "PA", clinical_notes=note(patient, "2")))
        second = covid_row(patient, 6, "AP" if kind == 0 else "PA", clinical_notes=note(patient, "6"))
        rows.append(ct(patient, "6") if kind == 1 else second | ({"clinical_notes": ""} if kind == 2 else {}))
    return rows


def single(numbers: Iterator[int], *, patients: int, zeros: int, rows: int, noted: int) -> list[dict]:
    """Patients with one offset, or with none said: so many rows in all, with a note and with offset 0."""
    names = [str(next(numbers)) for _ in range(patients)]
    of_rows = (names * -(-rows // patients))[:rows]
    days = ["0" if place < zeros else ("", " ", "5")[place % 3] for place in range(patients)]
    made = []
    for place, patient in enumerate(of_rows):
        day = days[place % patients] if place < patients else ""
        view = "PA" if place < patients else "L"
        made.append(covid_row(patient, day, view, clinical_notes=note(patient, day) if place < noted else ""))
    return made


def ct(patient: str, day: str) -> dict:
    """A slice of a CT."""
    changes = {"modality": "CT", "folder": "volumes", "clinical_notes": note(patient, day)}
    return covid_row(patient, day, "Axial", **changes)


def note(patient: str, day: str) -> str:
    """A case history that nobody has."""
    return f"Made-up case {patient}. Patchy opacity, \u201cmild\u201d; day: {day.strip() or 'not said'}."


def covid_shape() -> list[dict]:
    """The rows, patients in the order of their numbers."""
    numbers = count(1)
    rows = [*chained(numbers), *broken(numbers)]
    zeros = 149 - sum(row["offset"] == "0" for row in rows)
    noted = 768 - sum(bool(row["clinical_notes"]) for row in rows)
    patients = 472 - len({row["patientid"] for row in rows})
    return rows + single(numbers, patients=patients, zeros=zeros, rows=950 - len(rows), noted=noted)


if __name__ == "__main__":
    write_covid_chestxray(Path(sys.argv[1]), covid_shape())
