"""Any table with a column map: kinds of files, values, splits, and what is left out."""

import gzip
import json
import tracemalloc
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from cohort_layouts_b import csv_text, cut, write
from tabon.data.cohort.build import audit_table, build_cohort
from tabon.data.cohort.datasets.generic import ColumnMap, column_map, generic
from tabon.data.cohort.link import Rules
from tabon.data.cohort.visits import Excluded, Image, Moment, Source, Visit, moment_from
from tabon.errors import BadInputError, UnknownNameError
from tabon.text.reports import Report

MAP = ColumnMap(patient="pid", study="sid", date="day", report="text", view="vp", image="png")
HEADER = ["pid", "sid", "day", "text", "vp", "png"]
ROWS = [
    ["p1", "s1", "2012-01-01", "FINDINGS: Clear.\nIMPRESSION: Normal.", "PA", "a.png"],
    ["p1", "s2", "20120301", "Lungs are clear.", "AP SUPINE", "b.png"],
]
OBJECTS = [dict(zip(HEADER, row, strict=True)) for row in ROWS]


def lines(objects):
    """Write objects as JSON Lines."""
    return "".join(json.dumps(each) + "\n" for each in objects)


def save(path, header=HEADER, rows=ROWS):
    """Write a table of the kind that its name says, and return its path."""
    objects = [dict(zip(header, row, strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(objects), path)
        return path
    text = lines(objects) if ".jsonl" in path.name else csv_text(header, rows)
    if ".tsv" in path.name:
        text = text.replace(",", "\t")
    return write(path, zstandard.compress(text.encode()) if path.suffix == ".zst" else text)


def parted(columns, path):
    """Read a file and part visits from what is left out."""
    found = list(generic(columns).read(path))
    visits = [visit for visit in found if isinstance(visit, Visit)]
    return visits, [(row.source.line, row.reason) for row in found if isinstance(row, Excluded)]


# --- the column map -------------------------------------------------------------------


def test_a_column_map_is_read_from_text():
    """Keys and columns stand as key=column, with or without blanks."""
    found = column_map("patient=PID, date = ExamDate ,report=text,view=VP")
    assert found == ColumnMap(patient="PID", date="ExamDate", report="text", view="VP")


def test_an_unknown_key_is_met_with_the_nearest():
    """A misspelled key is answered with the one that was meant."""
    with pytest.raises(UnknownNameError, match=r"'finding'.*Did you mean 'findings'"):
        column_map("patient=PID,date=d,finding=f")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("date=d,report=r", "needs patient"),
        ("", "needs patient"),
        ("patient=p,report=r", "either date or ordinal"),
        ("patient=p,date=d,ordinal=o,report=r", "either date or ordinal"),
        ("patient=p,ordinal=o,time=t,report=r", "time without date"),
        ("patient=p,date=d", "either report, or findings"),
        ("patient=p,date=d,report=r,findings=f", "either report, or findings"),
        ("patient=p,date=d,report", "'report' .* key=column"),
        ("patient=p,date=,report=r", "'date=' .* key=column"),
        ("patient=p,patient=q,date=d,report=r", "patient stands twice"),
    ],
)
def test_column_maps_that_do_not_hold(text, message):
    """A map with too little, too much or of another form is refused."""
    with pytest.raises(BadInputError, match=message):
        column_map(text)


# --- files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "x.csv",
        "x.csv.gz",
        "x.csv.zst",
        "x.tsv",
        "x.tsv.gz",
        "x.jsonl",
        "x.jsonl.gz",
        "x.jsonl.zst",
        "x.parquet",
    ],
)
def test_every_kind_of_file_says_the_same(tmp_path, name):
    """CSV, TSV, JSON Lines and Parquet, packed or not, given as a file or by its folder."""
    path = save(tmp_path / name)
    for place in (path, tmp_path):
        visits, excluded = parted(MAP, place)
        assert excluded == []
        assert [(visit.patient, visit.study) for visit in visits] == [("p1", "s1"), ("p1", "s2")]
        assert visits[0].report == Report(findings="Clear.", impression="Normal.")
        assert visits[1].moment == moment_from("2012-03-01")
        assert visits[1].images == (Image("b.png", "AP"),)
        assert visits[0].source.file == name


def test_lines_of_a_csv_file(tmp_path):
    """The second row stands after a quoted line break, and its line says so."""
    visits, _ = parted(MAP, save(tmp_path / "x.csv"))
    assert [visit.source for visit in visits] == [Source("x.csv", 2), Source("x.csv", 4)]


def test_a_file_for_each_split(tmp_path):
    """train, validation and test files give their rows their split; other files are no matter."""
    for name in ("train.csv", "validation.jsonl", "test.parquet"):
        save(tmp_path / name)
    write(tmp_path / "README.md", "invented")
    visits, _ = parted(MAP, tmp_path)
    assert sorted({(visit.source.file, visit.split) for visit in visits}) == [
        ("test.parquet", "test"),
        ("train.csv", "train"),
        ("validation.jsonl", "valid"),
    ]


@pytest.mark.parametrize(
    "names", [[], ["a.csv", "b.csv"], ["notes.csv", "train.csv"], ["train.csv", "train.jsonl"]]
)
def test_folders_that_leave_a_doubt(tmp_path, names):
    """A folder without a table, or with tables of unclear purpose, is refused with their names."""
    for name in names:
        save(tmp_path / name)
    with pytest.raises(BadInputError, match=r"it has: " + (r".*, ".join(names) or "none")):
        parted(MAP, tmp_path)


def test_another_kind_of_file_is_refused(tmp_path):
    """A file of an unknown kind is answered with the kinds that can be read."""
    with pytest.raises(BadInputError, match=r"x\.xlsx .*\.parquet"):
        parted(MAP, write(tmp_path / "x.xlsx", "PK"))


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_a_missing_column_is_named(tmp_path, name):
    """A column of the map that a file lacks is named."""
    columns = ColumnMap(patient="pid", date="ExamDate", report="text")
    with pytest.raises(BadInputError, match="no column 'ExamDate' among its "):
        parted(columns, save(tmp_path / name))


def test_an_empty_file_is_refused(tmp_path):
    """A file without a byte is no data set without rows."""
    for name in ("x.csv", "x.jsonl", "x.parquet", "x.csv.gz", "x.csv.zst"):
        path = save(tmp_path / name)
        cut(path, 0)
        with pytest.raises(BadInputError, match=name):
            parted(MAP, path)


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv.zst", "x.jsonl", "x.jsonl.gz", "x.parquet"])
def test_a_truncated_file_is_named(tmp_path, name):
    """A file that was not copied to its end is an error with its name and without report text."""
    path = save(tmp_path / name)
    cut(path, -8)
    with pytest.raises(BadInputError, match=name) as error:
        parted(MAP, path)
    assert "clear" not in str(error.value).lower()


# --- values ---------------------------------------------------------------------------


def jsonl(tmp_path, columns, *objects):
    """Read objects as JSON Lines."""
    return parted(columns, write(tmp_path / "x.jsonl", lines(objects)))


def test_sections_in_columns_of_their_own(tmp_path):
    """Findings and impression may stand apart, and one may be missing in a row."""
    columns = ColumnMap(patient="p", date="d", findings="f", impression="i")
    visits, _ = jsonl(
        tmp_path,
        columns,
        {"p": "1", "d": "20120101", "f": "Clear.", "i": None},
        {"p": "1", "d": "20120102", "i": "Normal."},
    )
    assert [visit.report for visit in visits] == [Report(findings="Clear."), Report(impression="Normal.")]


def test_rows_without_study_are_studies(tmp_path):
    """Without a study column each row is a study, named after its file and line."""
    columns = ColumnMap(patient="pid", date="day", report="text")
    visits, _ = parted(columns, save(tmp_path / "x.csv"))
    assert [visit.study for visit in visits] == ["x-2", "x-4"]


def test_ordinal_numbers_in_the_place_of_dates(tmp_path):
    """A visit's number may stand for its date; the data set then has no dates."""
    columns = ColumnMap(patient="p", ordinal="n", report="r")
    objects = [{"p": 1, "n": n, "r": "Clear."} for n in (1, "2", 3.0, -4, "x", 1.5, None, "9" * 5000)]
    visits, excluded = jsonl(tmp_path, columns, *objects)
    assert [visit.moment for visit in visits] == [Moment(1), Moment(2), Moment(3), Moment(-4)]
    assert excluded == [(5, "bad-ordinal"), (6, "bad-ordinal"), (7, "no-ordinal"), (8, "bad-ordinal")]
    assert generic(columns).order == "ordinals"
    assert generic(MAP).order == "dates"


@pytest.mark.parametrize(
    ("day", "time", "second"),
    [
        ("20120101", "93015", 34215.0),
        ("2012-01-01", "09:30:15", 34215.0),
        ("2012-01-01", "09:30:15.5", 34215.5),
        ("2012-01-01", None, None),
        ("2012-01-01 00:00:00", "", None),
    ],
)
def test_times_in_a_column_of_their_own(tmp_path, day, time, second):
    """HHMMSS and ISO times are read; an empty one is none."""
    columns = ColumnMap(patient="p", date="d", time="t", report="r")
    visits, _ = jsonl(tmp_path, columns, {"p": "1", "d": day, "t": time, "r": "Clear."})
    assert visits[0].moment == Moment(moment_from("20120101").day, second)


@pytest.mark.parametrize(
    ("day", "second"),
    [
        ("2012-01-01T09:30:15", 34215.0),
        ("2012-01-01 09:30", 34200.0),
        ("2012-01-01 00:00:00", None),
        ("20120101", None),
    ],
)
def test_times_that_stand_with_the_date(tmp_path, day, second):
    """A date with a time of day has both; midnight is how a mere date is stored."""
    visits, _ = jsonl(tmp_path, MAP, {**OBJECTS[0], "day": day})
    assert visits[0].moment == Moment(moment_from("20120101").day, second)


def test_values_of_parquet(tmp_path):
    """Dates, times of day, whole numbers as decimals and nulls are read as what they mean."""
    objects = [
        {"pid": 7.0, "sid": 1, "day": datetime(2012, 1, 1, 9, 30), "text": "Clear.", "vp": None},  # noqa: DTZ001
        {"pid": 7.0, "sid": 2, "day": datetime(2012, 1, 2), "text": "Clear.", "vp": "ap"},  # noqa: DTZ001
    ]
    columns = ColumnMap(patient="pid", study="sid", date="day", report="text", view="vp")
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist(objects), path)
    visits, excluded = parted(columns, path)
    assert excluded == []
    assert [(visit.patient, visit.study) for visit in visits] == [("7", "1"), ("7", "2")]
    day = date(2012, 1, 1).toordinal()
    assert [visit.moment for visit in visits] == [Moment(day, 34200.0), Moment(day + 1)]
    assert [visit.images[0].view for visit in visits] == [None, "AP"]


def test_splits_in_a_column(tmp_path):
    """A split column is read in its many spellings; another word is left out."""
    columns = ColumnMap(patient="p", date="d", report="r", split="s")
    objects = [
        {"p": "1", "d": "20120101", "r": "Clear.", "s": name} for name in ("TRAIN", "val", "test", "x", None)
    ]
    visits, excluded = jsonl(tmp_path, columns, *objects)
    assert [visit.split for visit in visits] == ["train", "valid", "test"]
    assert excluded == [(4, "unknown-split"), (5, "unknown-split")]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("pid", "", "no-patient"),
        ("pid", None, "no-patient"),
        ("pid", ["p1"], "no-patient"),
        ("sid", "None", "no-study"),
        ("day", "", "no-date"),
        ("day", "nan", "no-date"),
        ("day", "01/02/2012", "bad-date"),
        ("text", "", "no-report"),
        ("text", None, "no-report"),
        ("text", float("nan"), "no-report"),
        ("text", ["Clear."], "report-not-text"),
        ("text", 5, "report-not-text"),
    ],
)
def test_rows_that_do_not_fit_are_left_out_by_line(tmp_path, column, value, reason):
    """A row with an empty or broken value is named with its line; the others are read."""
    visits, excluded = jsonl(tmp_path, MAP, OBJECTS[0], {**OBJECTS[1], column: value}, OBJECTS[0])
    assert excluded == [(2, reason)]
    assert len(visits) == 2


def test_a_bad_time_is_left_out(tmp_path):
    """A time that is none is named as such."""
    columns = ColumnMap(patient="p", date="d", time="t", report="r")
    object_ = {"p": "1", "d": "20120101", "r": "Clear."}
    _, excluded = jsonl(tmp_path, columns, {**object_, "t": "25:00:00"}, {**object_, "t": "soon"})
    assert excluded == [(1, "bad-time"), (2, "bad-time")]


def test_wrong_field_counts_and_lines_that_are_no_objects(tmp_path):
    """A CSV row with a field too many and a line that is no JSON object are named by line."""
    path = write(tmp_path / "x.csv", csv_text(HEADER, [[*ROWS[1], "more"], ROWS[1]]))
    assert parted(MAP, path)[1] == [(2, "wrong-field-count")]
    path = write(tmp_path / "x.jsonl", lines(OBJECTS[:1]) + "[1]\n{broken\n" + lines(OBJECTS[1:]))
    visits, excluded = parted(MAP, path)
    assert excluded == [(2, "not-an-object"), (3, "not-an-object")]
    assert len(visits) == 2


# --- the data set ---------------------------------------------------------------------


def test_nothing_is_sent_unless_one_says_so():
    """The egress of one's own data is none by default and may be set."""
    assert generic(MAP).egress == "none"
    assert generic(MAP, name="ours", egress="any", note="Open data.").egress == "any"


@pytest.mark.parametrize(("view", "rule"), [(None, "any"), ("vp", "ap-pa")])
def test_without_a_view_column_all_visits_are_one_chain(tmp_path, view, rule):
    """No view column is no view information; with one the paper's rule holds, and the audit says which."""
    columns = ColumnMap(patient="pid", study="sid", date="day", report="text", view=view, image="png")
    rows = [*ROWS, ["p1", "s3", "20120401", "Edema.", "AP", "c.png"]]
    audit = build_cohort(generic(columns), save(tmp_path / "x.csv", rows=rows), tmp_path / "out", Rules())
    transitions = [
        json.loads(line)
        for split in ("train", "valid", "test")
        for line in (tmp_path / "out" / split / "transitions.jsonl").read_text().splitlines()
    ]
    assert [(row["id"], row["view"], row["image"]) for row in transitions] == {
        "any": [("s2", None, "b.png"), ("s3", None, "c.png")],
        "ap-pa": [("s3", "AP", "c.png")],
    }[rule]
    assert audit["views"] == rule
    assert ("views are not known" in "\n".join(audit_table(audit))) == (rule == "any")


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        (["p1", "s9", "20120401", "Edema.", "L", ""], "leave view out of --columns"),
        (ROWS[0], "needs two visits"),
    ],
)
def test_a_table_that_gives_nothing_blames_the_columns(tmp_path, row, hint):
    """The message speaks of the column map, not of a folder."""
    with pytest.raises(BadInputError, match=hint):
        build_cohort(generic(MAP), save(tmp_path / "x.csv", rows=[row]), tmp_path / "out", Rules())


def test_memory_does_not_grow_with_the_file(tmp_path):
    """40,000 rows are read in half a megabyte."""
    rows = 40_000
    columns = ColumnMap(patient="p", date="d", findings="f")
    with gzip.open(tmp_path / "x.csv.gz", "wt", compresslevel=1) as file:
        file.write("p,d,f\n")
        file.writelines(f"p{n},20120101,Clear lungs {n}.\n" for n in range(rows))
    tracemalloc.start()
    try:
        count = sum(1 for _ in generic(columns).read(tmp_path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == rows
    assert peak < 2**19
