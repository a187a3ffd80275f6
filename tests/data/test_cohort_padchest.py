"""PadChest and PadChest-GR: what is read, what is left out, what is refused."""

import gzip
import json
import tracemalloc

import pytest

from cohort_layouts_b import (
    GR_COLUMNS,
    GR_ITEMS,
    GR_REPORTS,
    GR_ROWS,
    GR_TABLE,
    PADCHEST,
    PADCHEST_COLUMNS,
    PADCHEST_IMAGES,
    csv_text,
    cut,
    gr_row,
    padchest,
    padchest_gr,
    padchest_row,
    write,
)
from tabon import split_sentences
from tabon.data.cohort.datasets.image_tables import PADCHEST as PADCHEST_ITSELF
from tabon.data.cohort.datasets.padchest_gr import DATASET as PADCHEST_GR
from tabon.data.cohort.visits import Excluded, Image, Source, Visit, moment_from
from tabon.errors import BadInputError


def parted(dataset, folder):
    """Read a folder and part visits from what is left out."""
    found = list(dataset.read(folder))
    visits = [visit for visit in found if isinstance(visit, Visit)]
    return visits, [row for row in found if isinstance(row, Excluded)]


def read(folder):
    """Read PadChest."""
    return parted(PADCHEST_ITSELF, folder)


def read_gr(folder):
    """Read PadChest-GR."""
    return parted(PADCHEST_GR, folder)


def reasons(excluded):
    """Return the file, line and reason of each."""
    return [(row.source.file, row.source.line, row.reason) for row in excluded]


# --- PadChest -------------------------------------------------------------------------


@pytest.mark.parametrize("name", [PADCHEST, PADCHEST + ".gz"])
def test_what_is_read(tmp_path, name):
    """Each image is a visit of its study, packed or not."""
    visits, excluded = read(padchest(tmp_path, name=name))
    assert excluded == []
    assert [visit.study for visit in visits] == ["s1", "s1", "s2", "s3", "s4"]
    first = visits[0]
    assert (first.patient, first.split, first.source) == ("p1", None, Source(name, 2))
    assert first.moment == moment_from("20140915")
    assert first.moment.second is None
    assert first.images == (Image("0/s1_k6ga29.png", "PA"),)


def test_the_whole_text_is_findings(tmp_path):
    """The stemmed report has no sections; its sentences can be told apart."""
    visits, _ = read(padchest(tmp_path))
    report = visits[0].report
    assert (report.findings, report.impression) == ("sin cambi . derram pleural .", "")
    assert split_sentences(report.findings) == ("sin cambi .", "derram pleural .")
    assert "stemmed" in PADCHEST_ITSELF.note


def test_views(tmp_path):
    """The revised projection counts; where it is unknown, the DICOM header; COSTAL and L are no AP or PA."""
    visits, _ = read(padchest(tmp_path))
    assert [visit.images[0].view for visit in visits] == ["PA", None, "AP", "AP", None]


def test_dates_that_pandas_wrote_as_decimals(tmp_path):
    """20150102.0 is a date."""
    visits, _ = read(padchest(tmp_path))
    assert visits[2].moment == moment_from("2015-01-02")


def test_quoted_line_breaks_do_not_shift_the_lines(tmp_path):
    """A row after a quoted line break is named by the line on which it begins."""
    rows = [PADCHEST_IMAGES[4], PADCHEST_IMAGES[0]]
    visits, _ = read(padchest(tmp_path, rows))
    assert visits[0].report.findings == 'linea\ncon "comillas"'
    assert [visit.source.line for visit in visits] == [2, 4]


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (0, "", "no-image"),
        (2, "None", "no-date"),
        (2, "nan", "no-date"),
        (2, "20141399", "bad-date"),
        (3, "", "no-study"),
        (4, "None", "no-patient"),
        (7, "nan", "no-report"),
        (7, "", "no-report"),
    ],
)
def test_rows_that_do_not_fit_are_left_out_by_line(tmp_path, place, value, reason):
    """A row with an empty or broken field is named with its line; the others are read."""
    broken = list(PADCHEST_IMAGES[1])
    broken[place] = value
    visits, excluded = read(padchest(tmp_path, [PADCHEST_IMAGES[0], broken, PADCHEST_IMAGES[2]]))
    assert reasons(excluded) == [(PADCHEST, 3, reason)]
    assert [visit.study for visit in visits] == ["s1", "s2"]


def test_wrong_field_counts_are_left_out_by_line(tmp_path):
    """A row with too many or too few fields is left out."""
    rows = [padchest_row(number, image) for number, image in enumerate(PADCHEST_IMAGES)]
    rows[0].append("more")
    rows[1].pop()
    write(tmp_path / PADCHEST, csv_text(PADCHEST_COLUMNS, rows))
    visits, excluded = read(tmp_path)
    assert reasons(excluded) == [(PADCHEST, 2, "wrong-field-count"), (PADCHEST, 3, "wrong-field-count")]
    assert len(visits) == 3


def test_a_missing_file_is_named(tmp_path):
    """An empty folder is refused by the name of the file that it lacks."""
    with pytest.raises(BadInputError, match=PADCHEST):
        read(tmp_path)


@pytest.mark.parametrize("column", ["Report", "Projection", "StudyDate_DICOM", "PatientID"])
def test_a_missing_column_is_named(tmp_path, column):
    """A file without a column is refused by the column's name."""
    header = [f"old_{name}" if name == column else name for name in PADCHEST_COLUMNS]
    write(tmp_path / PADCHEST, csv_text(header, [padchest_row(0, PADCHEST_IMAGES[0])]))
    with pytest.raises(BadInputError, match=f"no column '{column}'"):
        read(tmp_path)


@pytest.mark.parametrize(("name", "keep"), [(PADCHEST, -20), (PADCHEST + ".gz", -20), (PADCHEST, 0)])
def test_a_truncated_file_is_named(tmp_path, name, keep):
    """A file that was not copied to its end is an error with its name and without report text."""
    cut(padchest(tmp_path, name=name) / name, keep)
    with pytest.raises(BadInputError, match=PADCHEST) as error:
        read(tmp_path)
    assert "derram" not in str(error.value)


def test_memory_does_not_grow_with_the_file(tmp_path):
    """40,000 images are read in half a megabyte."""
    rows = 40_000
    header = "ImageID,ImageDir,StudyDate_DICOM,StudyID,PatientID,ViewPosition_DICOM,Projection,Report\n"
    with gzip.open(tmp_path / f"{PADCHEST}.gz", "wt", compresslevel=1) as file:
        file.write(header)
        file.writelines(f"i{n}.png,0,20140915,s{n},p{n},,PA,cardiomegali . {n}\n" for n in range(rows))
    tracemalloc.start()
    try:
        count = sum(1 for _ in PADCHEST_ITSELF.read(tmp_path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == rows
    assert peak < 2**19


# --- PadChest-GR ----------------------------------------------------------------------


def test_what_is_read_of_gr(tmp_path):
    """A report is a visit with its English sentences, its patient, date and split."""
    visits, excluded = read_gr(padchest_gr(tmp_path))
    assert excluded == []
    first = visits[0]
    assert (first.study, first.patient, first.split) == ("s1", "p1", "train")
    assert first.report.findings == "Small left pleural effusion. No nodules."
    assert first.moment == moment_from("20140915")
    assert first.images == (Image("Padchest_GR_files/s1_k6ga29.png", None),)
    assert first.source == Source(GR_REPORTS)


def test_validation_is_valid(tmp_path):
    """Splits are called as everywhere."""
    visits, _ = read_gr(padchest_gr(tmp_path))
    assert [visit.split for visit in visits] == ["train", "train", "valid"]


def test_views_come_from_padchest(tmp_path):
    """With PadChest's own file in the folder the views are known."""
    visits, excluded = read_gr(padchest(padchest_gr(tmp_path)))
    assert [visit.images[0].view for visit in visits] == ["PA", "AP", "AP"]
    assert excluded == []


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (0, "", "no-study"),
        (1, "", "no-image"),
        (3, "", "no-patient"),
        (4, "", "no-date"),
        (4, "2010", "bad-date"),
        (5, "holdout", "unknown-split"),
    ],
)
def test_rows_of_gr_that_do_not_fit_are_left_out_by_line(tmp_path, place, value, reason):
    """A row of the table with a broken field is named with its line, and its report as without a row."""
    broken = list(GR_ROWS[2])
    broken[place] = value
    visits, excluded = read_gr(padchest_gr(tmp_path, [*GR_ROWS[:2], broken, GR_ROWS[3]]))
    assert reasons(excluded) == [(GR_TABLE, 4, reason), (GR_REPORTS, None, "not-in-master-table")]
    assert [visit.study for visit in visits] == ["s1", "s3"]


def test_a_report_with_half_a_character_in_its_id_is_left_out(tmp_path):
    """JSON can say what no database takes; the report is named as one without a row."""
    odd = [{**GR_ITEMS[0], "StudyID": "s1\ud800"}, *GR_ITEMS[1:]]
    padchest_gr(tmp_path)
    (tmp_path / GR_REPORTS).write_text(json.dumps(odd), encoding="utf-8")
    _, excluded = read_gr(tmp_path)
    assert (GR_REPORTS, None, "not-in-master-table") in reasons(excluded)


def test_rows_of_gr_that_contradict_each_other(tmp_path):
    """Of two rows of one study with two patients the first counts."""
    rows = [*GR_ROWS, ("s1", "s1_k6ga29.png", "mass", "p9", "20140915", "train")]
    visits, excluded = read_gr(padchest_gr(tmp_path, rows))
    assert reasons(excluded) == [(GR_TABLE, 6, "contradicts-earlier-row")]
    assert visits[0].patient == "p1"


def test_rows_of_gr_without_report_are_named(tmp_path):
    """Every row of a study without a report is left out by its line."""
    _, excluded = read_gr(padchest_gr(tmp_path, items=GR_ITEMS[1:]))
    assert reasons(excluded) == [(GR_TABLE, 2, "no-report"), (GR_TABLE, 3, "no-report")]


@pytest.mark.parametrize(
    "findings", [None, [], [{"sentence_en": None}], [{"sentence_es": "Solo."}], "text", [3]]
)
def test_reports_of_gr_without_english_sentences(tmp_path, findings):
    """A report without an English sentence is left out, and so is its row."""
    items = [*GR_ITEMS[:2], {**GR_ITEMS[2], "findings": findings}]
    _, excluded = read_gr(padchest_gr(tmp_path, items=items))
    assert reasons(excluded) == [(GR_REPORTS, None, "no-sentences"), (GR_TABLE, 5, "no-report")]
    assert [row.study for row in excluded] == ["s3", "s3"]


def test_items_of_gr_that_are_no_objects(tmp_path):
    """An item that is no object is left out."""
    _, excluded = read_gr(padchest_gr(tmp_path, items=["text", *GR_ITEMS]))
    assert reasons(excluded) == [(GR_REPORTS, None, "not-an-object")]


def test_wrong_field_counts_of_gr(tmp_path):
    """A row with a field too many is left out."""
    rows = [*map(gr_row, GR_ROWS), [*gr_row(GR_ROWS[0]), "more"]]
    write(padchest_gr(tmp_path) / GR_TABLE, csv_text(GR_COLUMNS, rows))
    _, excluded = read_gr(tmp_path)
    assert reasons(excluded) == [(GR_TABLE, 6, "wrong-field-count")]


@pytest.mark.parametrize("name", [GR_TABLE, GR_REPORTS])
def test_missing_files_of_gr_are_named(tmp_path, name):
    """A folder without one of the files is refused by its name."""
    (padchest_gr(tmp_path) / name).unlink()
    with pytest.raises(BadInputError, match=name):
        read_gr(tmp_path)


def test_the_packed_table_of_gr_is_to_be_unpacked(tmp_path):
    """Where only master_table.csv.zip is there, the way out is said."""
    (padchest_gr(tmp_path) / GR_TABLE).rename(tmp_path / "master_table.csv.zip")
    with pytest.raises(BadInputError, match="unzip"):
        read_gr(tmp_path)


@pytest.mark.parametrize("column", ["PatientID", "StudyDate_DICOM", "split"])
def test_missing_columns_of_gr_are_named(tmp_path, column):
    """A table without a column is refused by the column's name."""
    header = [f"old_{name}" if name == column else name for name in GR_COLUMNS]
    write(padchest_gr(tmp_path) / GR_TABLE, csv_text(header, map(gr_row, GR_ROWS)))
    with pytest.raises(BadInputError, match=f"no column '{column}'"):
        read_gr(tmp_path)


@pytest.mark.parametrize("keep", [0, 1, 40, 300, -2, -1])
def test_truncated_reports_of_gr_are_named(tmp_path, keep):
    """A JSON file that was not copied to its end is an error with its name and without report text."""
    cut(padchest_gr(tmp_path) / GR_REPORTS, keep)
    with pytest.raises(BadInputError, match=GR_REPORTS) as error:
        read_gr(tmp_path)
    assert "effusion" not in str(error.value)


def test_another_kind_of_json_is_refused(tmp_path):
    """An object in the array's place is an error, not an empty data set."""
    write(padchest_gr(tmp_path) / GR_REPORTS, json.dumps({"item": GR_ITEMS}))
    with pytest.raises(BadInputError, match=GR_REPORTS):
        read_gr(tmp_path)


def test_memory_does_not_grow_with_the_reports(tmp_path):
    """10,000 reports of a kilobyte are read in three megabytes."""
    count = 10_000
    item = '{"StudyID": "s%d", "ImageID": "i", "findings": [{"sentence_en": "Clear.", "sentence_es": "%s"}]}'
    with (tmp_path / GR_REPORTS).open("w") as file:
        file.write("[")
        file.writelines(item % (n, "a" * 1000) + ("," if n + 1 < count else "]") for n in range(count))
    header = ["StudyID", "ImageID", "PatientID", "StudyDate_DICOM", "split"]
    rows = ([f"s{n}", "i", f"p{n}", "20140915", "train"] for n in range(count))
    write(tmp_path / GR_TABLE, csv_text(header, rows))
    tracemalloc.start()
    try:
        visits = sum(isinstance(row, Visit) for row in PADCHEST_GR.read(tmp_path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert visits == count
    assert peak < 3 * 2**20


@pytest.mark.parametrize("dataset", [PADCHEST_ITSELF, PADCHEST_GR], ids=lambda d: d.name)
def test_the_data_go_nowhere(dataset):
    """BIMCV's agreement forbids to share the data, and the note says so."""
    assert dataset.egress == "none"
    assert dataset.order == "dates"
    assert "research use agreement" in dataset.note
