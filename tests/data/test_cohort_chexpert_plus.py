"""CheXpert Plus, read from its true layout."""

import random

import pytest

from cohort_layouts import (
    CHEXPERT_PLUS_COLUMNS,
    CHEXPERT_PLUS_FILE,
    LONG,
    chexpert_plus_row,
    chexpert_plus_rows,
    count_in_little_memory,
    cut_short,
    read_all,
    write_chexpert_plus,
)
from tabon.data.cohort.datasets.image_tables import CHEXPERT_COLUMNS as COLUMNS
from tabon.data.cohort.datasets.image_tables import CHEXPERT_PLUS as DATASET
from tabon.data.cohort.visits import Image, Moment, Source
from tabon.errors import BadInputError
from tabon.text.reports import Report

IMPRESSION = "1.  NO ACUTE CARDIOPULMONARY DISEASE.\n2.  STABLE LINES."
PACKINGS = ["", ".gz", ".zst"]


@pytest.fixture
def visits(tmp_path):
    """Return the visits of the tiny data set."""
    write_chexpert_plus(tmp_path)
    return read_all(DATASET, tmp_path)[0]


def only_visit(folder, **changes):
    """Return the visit of one changed row."""
    write_chexpert_plus(folder, [chexpert_plus_row("patient00001", 2, **changes)])
    (visit,) = read_all(DATASET, folder)[0]
    return visit


def test_the_layout_has_the_published_columns():
    """The table has 27 columns, and those that are read are among them."""
    assert len(CHEXPERT_PLUS_COLUMNS) == 27
    assert set(COLUMNS) <= set(CHEXPERT_PLUS_COLUMNS)


def test_a_row_becomes_a_visit_with_one_image(visits):
    """Patient, order, sections, image, split and line are those of the row."""
    visit = visits[0]
    assert (visit.patient, visit.study, visit.split) == ("patient00001", "patient00001_study2", "train")
    assert visit.moment == Moment(2)
    assert visit.report == Report(impression=IMPRESSION)
    assert visit.images == (Image("train/patient00001/study2/view1_frontal.jpg", "AP"),)
    assert visit.source == Source(CHEXPERT_PLUS_FILE, 2)


def test_the_rows_of_a_study_share_its_id(visits):
    """Two images of one study, not neighbours in the file, have one study id, order and text."""
    first, second = (visit for visit in visits if visit.study == "patient00001_study2")
    assert (first.moment, first.report) == (second.moment, second.report)
    assert first.images != second.images


def test_capitals_are_kept(visits):
    """An impression in capitals is text like any other."""
    assert visits[0].report.impression == IMPRESSION


def test_both_sections_are_read(visits):
    """Findings and impression stand in columns of their own."""
    assert visits[1].report == Report("The lungs are clear.", IMPRESSION)


def test_the_whole_report_is_parsed_where_both_sections_are_empty(visits):
    """The section columns come first, the report column is the way out."""
    report = next(visit for visit in visits if visit.patient == "patient00003").report
    assert report.impression == IMPRESSION
    assert report.findings == ""


@pytest.mark.parametrize(
    ("frontal_lateral", "ap_pa", "view"),
    [("Frontal", "AP", "AP"), ("Frontal", "PA", "PA"), ("Frontal", "", None), ("Lateral", "AP", None)],
)
def test_only_a_frontal_image_has_a_view(tmp_path, frontal_lateral, ap_pa, view):
    """A lateral image is neither AP nor PA, whatever the other column says."""
    visit = only_visit(tmp_path, frontal_lateral=frontal_lateral, ap_pa=ap_pa)
    assert visit.images[0].view == view


@pytest.mark.parametrize("order", [92, "92", "92.0", " 92 "], ids=repr)
def test_an_order_in_every_spelling(tmp_path, order):
    """A whole number that pandas wrote as a float is the same number."""
    assert only_visit(tmp_path, patient_report_date_order=order).moment == Moment(92)


@pytest.mark.parametrize("order", ["-1", "1.5", "inf", "1e3", "first", "9" * 5000])
def test_an_order_that_is_no_number_is_left_out(tmp_path, order):
    """Only whole numbers have a place in an order."""
    write_chexpert_plus(tmp_path, [chexpert_plus_row("patient00001", 1, patient_report_date_order=order)])
    assert [excluded.reason for excluded in read_all(DATASET, tmp_path)[1]] == ["bad-order"]


def test_a_study_is_found_below_any_folder(tmp_path):
    """The study's folder is the one that the image lies in."""
    path = "CheXpert-v1.0/train/patient00001/study2/view1_frontal.jpg"
    visit = only_visit(tmp_path, path_to_image=path)
    assert (visit.study, visit.images[0].path) == ("patient00001_study2", path)


def test_there_are_two_splits(visits):
    """Train and valid are read as they are; there is no test split."""
    assert {visit.split for visit in visits} == {"train", "valid"}


def test_every_exclusion_has_its_reason_and_line(tmp_path):
    """A row that cannot be a visit is named by the line it begins on, past quoted newlines."""
    path = write_chexpert_plus(tmp_path)
    excluded = {item.source.line: item.reason for item in read_all(DATASET, tmp_path)[1]}
    lines = path.read_text().splitlines()
    assert list(excluded.values()) == [
        "no-order",
        "bad-order",
        "no-report",
        "bad-split",
        "no-study",
        "no-patient",
        "wrong-field-count",
    ]
    assert [lines[line - 1].split(",")[0] for line in excluded] == [
        "train/patient00005/study1/view1_frontal.jpg",
        "train/patient00005/study2/view1_frontal.jpg",
        "train/patient00005/study3/view1_frontal.jpg",
        "holdout/patient00005/study4/view1_frontal.jpg",
        "view1_frontal.jpg",
        "train/patient00005/study6/view1_frontal.jpg",
        "train/patient00005/study7/view1_frontal.jpg",
    ]


def test_no_row_is_lost(tmp_path):
    """Each row ends as one visit or one exclusion."""
    write_chexpert_plus(tmp_path)
    assert len(list(DATASET.read(tmp_path))) == len(chexpert_plus_rows())


@pytest.mark.parametrize("bom", [False, True])
@pytest.mark.parametrize("packing", PACKINGS)
def test_packing_does_not_matter(tmp_path, packing, bom, visits):
    """Plain, gzip and zstd files give the same visits, with a byte order mark or without."""
    folder = tmp_path / "other"
    write_chexpert_plus(folder, packing=packing, bom=bom)
    assert [visit.images for visit in read_all(DATASET, folder)[0]] == [visit.images for visit in visits]


def test_a_blank_line_is_no_row(tmp_path, visits):
    """Blank lines at the end are neither rows nor a sign of truncation."""
    path = tmp_path / CHEXPERT_PLUS_FILE
    path.write_bytes(path.read_bytes() + b"\n\n")
    assert read_all(DATASET, tmp_path)[0] == visits


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_named(tmp_path, column):
    """A file of another version is refused by the column it lacks."""
    write_chexpert_plus(tmp_path, without=column)
    with pytest.raises(BadInputError, match=f"no column '{column}'"):
        read_all(DATASET, tmp_path)


def test_a_missing_file_is_named(tmp_path):
    """A folder without the table is told which file is missing."""
    with pytest.raises(BadInputError, match=CHEXPERT_PLUS_FILE):
        read_all(DATASET, tmp_path)


@pytest.mark.parametrize("share", [0.05, 0.6, 0.99])
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_truncated_file_is_named(tmp_path, packing, share):
    """A broken download is an error with the file's name and no report text."""
    path = cut_short(write_chexpert_plus(tmp_path, packing=packing), share)
    with pytest.raises(BadInputError) as caught:
        read_all(DATASET, tmp_path)
    assert path.name in str(caught.value)
    assert "ACUTE" not in str(caught.value)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_a_large_file_is_not_taken_for_a_shorter_one(tmp_path, packing, share):
    """A packed file that is cut between two rows or in a last column is still truncated."""
    rng = random.Random(0)
    rows = [
        chexpert_plus_row(f"patient{number:05d}", 1, report=rng.randbytes(300).hex())
        for number in range(2000)
    ]
    path = cut_short(write_chexpert_plus(tmp_path, rows, packing=packing), share)
    found = DATASET.read(tmp_path)
    next(found)
    with pytest.raises(BadInputError, match=f"{path.name} is truncated"):
        list(found)


def test_the_note_says_that_the_order_is_unverified():
    """A user learns that days are ordinal, that there is no test split, and what paths say."""
    assert DATASET.order == "ordinals"
    assert DATASET.egress == "none"
    assert all(word in DATASET.note for word in ("ordinal", "unverified", "no test split", ".png"))


@pytest.mark.parametrize("packing", ["", ".zst"])
def test_memory_does_not_grow_with_the_file(tmp_path, packing):
    """A file of 5,000 rows and 35 MB is read in a few megabytes."""
    rows = [chexpert_plus_row(f"patient{number:05d}", 1, section_findings=LONG) for number in range(5_000)]
    write_chexpert_plus(tmp_path, rows, packing=packing)
    count, peak = count_in_little_memory(DATASET, tmp_path)
    assert count == 5_000
    assert peak < 8e6
