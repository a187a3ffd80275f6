"""covid-chestxray-dataset, read from its true layout."""

import csv
import json
from collections import defaultdict
from pathlib import Path

import pytest

from cohort_layouts import (
    LONG,
    count_in_little_memory,
    covid_row,
    covid_rows,
    cut_short,
    read_all,
    write_covid_chestxray,
)
from commands import tabon
from covid_shape import covid_shape
from tabon.data.cohort.build import build_cohort
from tabon.data.cohort.datasets.image_tables import COVID_CHESTXRAY as DATASET
from tabon.data.cohort.datasets.image_tables import COVID_COLUMNS as COLUMNS
from tabon.data.cohort.link import Rules
from tabon.data.cohort.visits import Image, Moment, Source
from tabon.errors import BadInputError
from tabon.text.reports import Report


@pytest.fixture
def visits(tmp_path):
    """Return the visits of the tiny data set."""
    write_covid_chestxray(tmp_path)
    return read_all(DATASET, tmp_path)[0]


def test_a_row_becomes_a_visit_with_one_image(visits):
    """Patient, day, notes, image and line are those of the row; there is no split."""
    visit = visits[0]
    assert (visit.patient, visit.study, visit.split) == ("2", "2-0", None)
    assert visit.moment == Moment(0)
    assert visit.images == (Image("images/case2-day0-PA.jpeg", "PA"),)
    assert visit.source == Source("metadata.csv", 2)


def test_the_notes_are_findings(visits):
    """A case history has no impression, and its characters are kept."""
    assert visits[0].report == Report(findings=covid_rows()[0]["clinical_notes"])


def test_quoted_newlines_stay_in_the_notes(visits):
    """A note on several lines, with commas and quotes, is one text."""
    assert visits[1].report.findings == covid_rows()[1]["clinical_notes"]


def test_the_images_of_a_day_share_its_study(visits):
    """Two images of a patient with one offset have one study id and text."""
    first, second = (visit for visit in visits if visit.study == "2-3")
    assert first.report == second.report
    assert [first.images[0].view, second.images[0].view] == ["PA", None]


@pytest.mark.parametrize(
    ("offset", "study", "moment"),
    [
        (3, "2-3", Moment(3)),
        ("3.0", "2-3", Moment(3)),
        (" 3 ", "2-3", Moment(3)),
        ("2.5", "2-2.5", Moment(2, 43200.0)),
        ("-1", "2--1", Moment(-1)),
        ("-0.5", "2--0.5", Moment(-1, 43200.0)),
    ],
)
def test_an_offset_in_every_spelling(tmp_path, offset, study, moment):
    """Whole numbers are days however they are written; a fraction is a time of day."""
    write_covid_chestxray(tmp_path, [covid_row("2", offset)])
    (visit,) = read_all(DATASET, tmp_path)[0]
    assert (visit.study, visit.moment) == (study, moment)


@pytest.mark.parametrize(
    ("view", "normal"),
    [("PA", "PA"), ("AP", "AP"), ("AP Supine", "AP"), ("AP Erect", "AP"), ("L", None), ("", None)],
)
def test_every_published_view(tmp_path, view, normal):
    """The spellings of AP are one view, a lateral is none."""
    write_covid_chestxray(tmp_path, [covid_row("2", 0, view)])
    assert read_all(DATASET, tmp_path)[0][0].images[0].view == normal


def test_the_folder_of_images_has_a_default(visits):
    """Where the row names no folder, images/ is meant."""
    assert next(visit for visit in visits if visit.patient == "4").images[0].path.startswith("images/")


def test_every_exclusion_has_its_reason_and_line(tmp_path):
    """A row that cannot be a visit is named by the line it begins on, past quoted newlines."""
    path = write_covid_chestxray(tmp_path)
    excluded = [(item.source.line, item.reason) for item in read_all(DATASET, tmp_path)[1]]
    lines = path.read_text().split("\n")
    assert [(lines[line - 1].split(",")[:2], reason) for line, reason in excluded] == [
        (["5", ""], "no-offset"),
        (["5", " "], "no-offset"),
        (["6", "few days"], "bad-offset"),
        (["6", "4"], "not-x-ray"),
        (["6", "7"], "no-report"),
        (["", "7"], "no-patient"),
        (["7", "0"], "wrong-field-count"),
    ]


@pytest.mark.parametrize("offset", ["inf", "-inf", "NaN", "nan"])
def test_an_infinite_offset_is_left_out(tmp_path, offset):
    """What float() accepts but no day has is an exclusion, not a crash."""
    write_covid_chestxray(tmp_path, [covid_row("2", offset)])
    (excluded,) = read_all(DATASET, tmp_path)[1]
    assert excluded.reason == ("bad-offset" if "inf" in offset else "no-offset")


@pytest.mark.parametrize(
    "offsets", [("-3", "0"), ("0", "2"), ("3", "7"), ("1", "4000000"), ("-1e300", "1e300")]
)
def test_days_of_illness_are_numbers(tmp_path, offsets):
    """Days count from the first symptoms: none is a date, and those before them are in order too."""
    rows = [covid_row("2", day, clinical_notes=f"Day {day}.") for day in offsets]
    write_covid_chestxray(tmp_path / "data", rows)
    rules = Rules(shares=(1.0, 0.0, 0.0))
    build_cohort(DATASET, tmp_path / "data", tmp_path / "out", rules)
    [line] = (tmp_path / "out" / "train" / "transitions.jsonl").read_text().splitlines()
    found = json.loads(line)
    assert (found["prior_order"], found["current_order"]) == tuple(int(float(day)) for day in offsets)


def test_no_row_is_lost(tmp_path):
    """Each row ends as one visit or one exclusion."""
    write_covid_chestxray(tmp_path)
    assert len(list(DATASET.read(tmp_path))) == len(covid_rows())


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", [False, True])
def test_line_ends_and_marks_do_not_matter(tmp_path, bom, line_end, visits):
    """A table that went through a spreadsheet gives the same visits."""
    folder = tmp_path / "other"
    write_covid_chestxray(folder, bom=bom, line_end=line_end)
    assert [visit.report for visit in read_all(DATASET, folder)[0]] == [visit.report for visit in visits]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_named(tmp_path, column):
    """A table of another version is refused by the column it lacks."""
    write_covid_chestxray(tmp_path, without=column)
    with pytest.raises(BadInputError, match=f"no column '{column}'"):
        read_all(DATASET, tmp_path)


def test_a_missing_file_is_named(tmp_path):
    """A folder without the table is told which file is missing."""
    with pytest.raises(BadInputError, match=r"metadata\.csv"):
        read_all(DATASET, tmp_path)


@pytest.mark.parametrize("share", [0.02, 0.6, 0.99])
def test_a_truncated_file_is_named(tmp_path, share):
    """A broken download is an error with the file's name and no text of a note."""
    cut_short(write_covid_chestxray(tmp_path), share)
    with pytest.raises(BadInputError, match=r"metadata\.csv") as caught:
        read_all(DATASET, tmp_path)
    assert "opacity" not in str(caught.value)


def test_the_note_says_what_the_notes_are():
    """A user learns that these are case histories, without splits, under mixed licences."""
    assert DATASET.order == "days"
    assert DATASET.egress == "zero-retention"
    assert all(word in DATASET.note for word in ("case histories", "no splits", "Licences"))


def test_memory_does_not_grow_with_the_file(tmp_path):
    """A table of 5,000 rows and 35 MB is read in a few megabytes."""
    rows = [covid_row(str(number), 3, clinical_notes=LONG) for number in range(5_000)]
    write_covid_chestxray(tmp_path, rows)
    count, peak = count_in_little_memory(DATASET, tmp_path)
    assert count == 5_000
    assert peak < 8e6


# --- the shape of the published file ------------------------------------------------------

SHAPE = Path(__file__).with_name("covid_chestxray")


def test_the_committed_table_has_the_published_shape(tmp_path):
    """Rows, patients, offsets of 0, below 0 and blank, and notes are as many; its script made it."""
    path = write_covid_chestxray(tmp_path, covid_shape())
    assert path.read_bytes() == (SHAPE / "metadata.csv").read_bytes()
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    offsets = defaultdict(set)
    for row in rows:
        offsets[row["patientid"]] |= {row["offset"].strip()} - {""}
    said = [float(row["offset"]) for row in rows if row["offset"].strip()]
    assert (len(rows), len(offsets)) == (950, 472)
    assert sum(len(days) > 1 for days in offsets.values()) == 151
    assert (said.count(0), sum(day < 0 for day in said)) == (149, 13)
    assert sum(bool(row["clinical_notes"]) for row in rows) == 768


def test_the_published_shape_gives_108_patients_and_174_transitions(tmp_path):
    """Day 0 and the days before it are days like others, and none of them is a date."""
    done = tabon("cohort", "covid-chestxray", SHAPE, "--out", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    audit = json.loads((tmp_path / "out" / "audit.json").read_text())
    splits = audit["splits"].values()
    assert sum(counts["patients"] for counts in splits) == 108
    assert sum(counts["transitions"] for counts in splits) == 174
    for split in audit["splits"]:
        for line in (tmp_path / "out" / split / "transitions.jsonl").read_text().splitlines():
            record = json.loads(line)
            assert record["prior_order"] <= record["current_order"]
            assert "prior_date" not in record
    assert audit["splits"]["train"]["days_between_visits"]["least"] >= 2
