"""Tables of one's own: kinds of files, columns by name, ids, and every form of drafts."""

import gzip
import json
from dataclasses import replace
from datetime import date, datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spreadsheets import write_spreadsheet
from tabon.data.cohort.visits import Excluded, Source
from tabon.data.imports.columns import VISIT_SPELLINGS, find_columns, listed, role_map
from tabon.data.imports.draft_table import read_draft_rows
from tabon.data.imports.source_rows import read_rows
from tabon.data.imports.visit_table import read_visit_rows
from tabon.errors import BadInputError, UnknownNameError
from tabon.text.reports import Report

ROWS = [
    {"PID": "p1", "When": "2019-03-01", "Findings": "Clear, on both sides.", "Impression": "Normal."},
    {"PID": "p1", "When": "2019-04-13", "Findings": "Œdème.\nNew.", "Impression": "Edema."},
]


def text_table(rows=ROWS, mark=","):
    """Write rows as CSV with this mark between fields."""
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    return "".join(mark.join(f'"{field}"' for field in line) + "\r\n" for line in lines)


def write(path, data):
    """Write text or bytes and return the path."""
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def reasons(table):
    """Return lines and reasons of what is left out."""
    return [(row.source.line, row.reason) for row in table.excluded]


# --- files ----------------------------------------------------------------------------


FILES = {
    "x.csv": text_table().encode(),
    "x.tsv": text_table(mark="\t").encode(),
    "semicolons.csv": text_table(mark=";").encode(),
    "bars.txt": text_table(mark="|").encode(),
    "bom.csv": text_table().encode("utf-8-sig"),
    "utf16.csv": text_table(mark=";").encode("utf-16"),
    "cp1252.csv": text_table().encode("cp1252"),
    "x.csv.gz": gzip.compress(text_table().encode(), mtime=0),
    "x.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "list.json": json.dumps(ROWS, indent=2).encode(),
    "list.jsonl": json.dumps(ROWS).encode(),
    "object.json": json.dumps({f"s{number}": row for number, row in enumerate(ROWS)}).encode(),
}


@pytest.mark.parametrize("name", [*FILES, "x.parquet"])
def test_every_kind_of_file_says_the_same(tmp_path, name):
    """CSV with any mark, JSON in three forms and Parquet, in three encodings, give the same visits."""
    path = tmp_path / name
    if name == "x.parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        write(path, FILES[name])
    table = read_visit_rows(path)
    assert [visit.report for visit in table.visits] == [
        Report("Clear, on both sides.", "Normal."),
        Report("Œdème.\nNew.", "Edema."),
    ]
    assert table.excluded == ()
    assert [visit.study for visit in table.visits] == (
        ["s0", "s1"] if name == "object.json" else ["p1-2019-03-01", "p1-2019-04-13"]
    )


SHEET = [list(ROWS[0]), *(list(row.values()) for row in ROWS)]


@pytest.fixture
def calamine():
    """Skip where spreadsheets cannot be read."""
    return pytest.importorskip("python_calamine", reason="run `make setup`: python-calamine not installed")


@pytest.mark.usefixtures("calamine")
def test_a_spreadsheet_says_the_same(tmp_path):
    """One sheet with a title's blank line, texts of two lines, true dates: the visits of the other kinds."""
    days = [
        [value if at != 1 else date.fromisoformat(value) for at, value in enumerate(line)]
        for line in SHEET[1:]
    ]
    path = write_spreadsheet(tmp_path / "x.xlsx", {"empty": [], "Visits": [[], SHEET[0], *days, [None, " "]]})
    table = read_visit_rows(path)
    other = read_visit_rows(write(tmp_path / "x.csv", text_table()))
    assert [replace(visit, source=None) for visit in table.visits] == [
        replace(visit, source=None) for visit in other.visits
    ]
    assert [visit.source for visit in table.visits] == [Source("x.xlsx", 3), Source("x.xlsx", 4)]
    assert table.guesses[0].found == "spreadsheet, sheet 'Visits', 2 rows"


@pytest.mark.usefixtures("calamine")
def test_a_spreadsheet_keeps_what_csv_loses(tmp_path):
    """An id of twelve digits is whole and no 1.23E+11; the number of a draft is 1, not 1.0."""
    rows = [["patient", "date", "draft", "text"], [123456789012, date(2019, 4, 3), 1, "Clear."]]
    [draft] = read_draft_rows([write_spreadsheet(tmp_path / "x.xlsx", {"a": rows})]).drafts
    assert (draft.visit(), draft.number) == ("123456789012 on 2019-04-03", "1")


@pytest.mark.usefixtures("calamine")
@pytest.mark.parametrize(
    ("sheets", "message"),
    [
        (
            {"a": SHEET, "b": SHEET},
            "has 2 sheets that hold anything; keep one, or save the one you mean as CSV",
        ),
        ({"a": [[None, " "]]}, "has 0 sheets that hold anything"),
        ({}, "x.xlsx cannot be read; save it as CSV"),
    ],
)
def test_spreadsheets_that_cannot_be_read(tmp_path, sheets, message):
    """Two sheets, nothing, a file that only ends as one."""
    path = tmp_path / "x.xlsx"
    _ = write_spreadsheet(path, sheets) if sheets else write(path, b"PK")
    with pytest.raises(BadInputError, match=message):
        read_rows(path)


def test_rows_from_anywhere():
    """Mappings with values of any type, such as a frame's rows, are read as a file's rows are."""
    rows = ({**row, "When": datetime.fromisoformat(row["When"])} for row in ROWS)
    records = read_visit_rows(rows)
    assert [visit.study for visit in records.visits] == ["p1-2019-03-01", "p1-2019-04-13"]
    assert records.guesses[0].found == "rows, 2 rows"


def test_what_is_no_object_is_left_out_by_its_place(tmp_path):
    """A list, a number or null among a JSON list's visits is named; the visits around it are read."""
    path = write(tmp_path / "x.json", json.dumps([ROWS[0], [1], 7, None, ROWS[1]]).encode())
    table = read_visit_rows(path)
    assert len(table.visits) == 2
    assert [(row.source.line, row.reason) for row in table.excluded] == [
        (line, "not-an-object") for line in (2, 3, 4)
    ]


def test_an_index_with_a_name_is_a_column():
    """A pandas frame that is sorted under its patients still names them."""
    frame = pd.DataFrame(ROWS)
    found = [read_visit_rows(each).visits for each in (frame, frame.set_index("PID"), frame[::-1])]
    assert [[visit.study for visit in visits] for visits in found[:2]] == [
        ["p1-2019-03-01", "p1-2019-04-13"]
    ] * 2
    assert len(found[2]) == 2


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"PID": [1], "When": ["2019-03-01"]}, "a dict has no rows; give a path, a frame or a list"),
        (pl.DataFrame(ROWS).lazy(), "a LazyFrame has no rows; collect it first"),
        (None, "a NoneType has no rows"),
    ],
)
def test_what_is_no_table_is_refused(table, message):
    """Columns without rows, a frame that is not collected, nothing."""
    with pytest.raises(BadInputError, match=message):
        read_visit_rows(table)


def test_the_encoding_is_said(tmp_path):
    """What is not UTF-8 is taken for cp1252, or for Latin-1 if cp1252 lacks a byte; the line is named."""
    said = {
        data: read_rows(write(tmp_path / "x.csv", b"PID\n1\n" + data)).encoding
        for data in (b"\xe9\n", b"\x81\xe9\n", b"\xc3\xa9\n")
    }
    assert list(said.values()) == [
        "cp1252, as line 3 is not UTF-8",
        "latin-1, as line 3 is not UTF-8",
        "UTF-8",
    ]


@pytest.mark.parametrize(
    ("name", "data", "encoding", "message"),
    [
        ("x.csv", b"", None, "x.csv is empty"),
        ("x.pdf", b"PK", None, r"known are \.csv.* and \.xlsx"),
        ("x.csv", text_table().encode("utf-16-le"), None, "--encoding utf-16-le"),
        ("x.csv", text_table().encode("cp1252"), "utf-8", "line 3 is not utf-8; name another --encoding"),
        ("x.csv", b"a,b\n", "latin-9", "'latin-9' is no encoding"),
        ("x.csv", b'PID,When,Findings\np1,2019-03-01,"Clear\n', None, "line 2: a quote is not closed"),
        ("x.csv", b"PID,When,Findings\np1,2019-03-01,a\np1,2019", None, "line 3 has 2 of 3 fields"),
        ("x.json", b'[{"PID": 1},\n {"PID" 2}]', None, "line 2: not JSON at column"),
        ("x.csv.gz", gzip.compress(b"a,b\n" * 99, mtime=0)[:-9], None, "truncated"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path, name, data, encoding, message):
    """One sentence with the file or the line, and what to do."""
    with pytest.raises(BadInputError, match=message):
        read_rows(write(tmp_path / name, data), encoding=encoding)


def test_a_file_that_is_not_there(tmp_path):
    """From Python, a wrong path is a sentence too."""
    with pytest.raises(BadInputError, match="is not there"):
        read_visit_rows(tmp_path / "x.csv")


def test_lines_are_those_of_the_file(tmp_path):
    """Blank lines and line breaks in quotes are counted as an editor counts them."""
    text = 'PID,When,Report\n\n\np1,2019-03-01,"a\nb"\n\np1,soon,c\np1,2019-03-02\n'
    table = read_visit_rows(write(tmp_path / "x.csv", text))
    assert [visit.source for visit in table.visits] == [Source("x.csv", 4)]
    assert reasons(table) == [(7, "bad-date"), (8, "wrong-field-count")]


def test_a_folder_has_a_file_for_each_split(tmp_path):
    """Files named after splits give their rows the split; other names are refused."""
    for name in ("train.csv", "validation.csv", "test.csv"):
        write(tmp_path / name, text_table())
    table = read_visit_rows(tmp_path)
    assert sorted({(visit.source.file, visit.split) for visit in table.visits}) == [
        ("test.csv", "test"),
        ("train.csv", "train"),
        ("validation.csv", "valid"),
    ]
    write(tmp_path / "notes.csv", text_table())
    with pytest.raises(BadInputError, match=r"it has: notes\.csv, test\.csv"):
        read_visit_rows(tmp_path)


# --- columns --------------------------------------------------------------------------


def found(*columns, **given):
    """Find the roles of a table with these columns."""
    rows = read_rows([dict.fromkeys(columns, "x")])
    return find_columns(rows, VISIT_SPELLINGS, given, option="--columns")


def test_columns_are_found_by_name():
    """Case, blanks and underscores do not matter; a role's own name goes before its other spellings."""
    assert found("Patient_ID", "STUDY DATE", "section_findings") == {
        "patient": "Patient_ID",
        "date": "STUDY DATE",
        "findings": "section_findings",
    }
    assert found("date", "report_date", "patient", "MRN") == {"patient": "patient", "date": "date"}


def test_a_map_goes_first_and_may_leave_a_role_out():
    """A column is what the map says; `-` says that there is none."""
    assert found("a", "date", "day", patient="a", date="day") == {"patient": "a", "date": "day"}
    assert found("patient", "view", view="-") == {"patient": "patient"}


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        (
            ["pid", "mrn"],
            {},
            r"several columns for patient \(pid, mrn\); name one with columns={'patient': NAME}",
        ),
        (["pid"], {"date": "day"}, "no column 'day' for date; its columns are pid"),
    ],
)
def test_doubtful_columns_are_refused(columns, given, message):
    """Two columns for one role, and a column that is not there."""
    with pytest.raises(BadInputError, match=message):
        found(*columns, **given)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"when": 1, "report": 1}, "no column for patient; its columns are when, report; name it with"),
        ({"pid": 1, "report": 1}, "no column for date; .*columns={'date': NAME}"),
        ({"pid": 1, "when": 1}, r"no column for report \(or findings, or impression\)"),
        ({"p1": 1, "2019-03-01": 1, "Secret opacity.": 1}, "not named in its first line"),
        ({"p1": 1, "Secret 2.": 1}, "not named in its first line"),
    ],
)
def test_missing_columns_are_refused_with_those_that_are_there(row, message):
    """The columns are listed unless they seem to be a row of values."""
    with pytest.raises(BadInputError, match=message) as error:
        read_visit_rows([row])
    assert "Secret" not in str(error.value)


def test_a_frame_s_index_without_a_name_is_no_matter():
    """The first column of a written frame has no name."""
    assert listed(read_rows([{"": 0, "Patient.ID": 1, "Unnamed: 2": 2}])) == "Patient.ID, Unnamed: 2"


def test_role_maps():
    """A map is key=column, and an unknown key is met with the nearest."""
    assert role_map("patient=PID, date = When", VISIT_SPELLINGS) == {"patient": "PID", "date": "When"}
    with pytest.raises(UnknownNameError, match="Did you mean 'findings'"):
        role_map("finding=x", VISIT_SPELLINGS)


# --- visits ---------------------------------------------------------------------------


def visits(*rows, **options):
    """Read rows of one patient."""
    return read_visit_rows([{"patient": "p", "report": "Clear.", **row} for row in rows], **options)


def test_ids_tell_visits_of_one_day_apart():
    """By the time if there is one, by a short hash of the text if not; equal texts are one visit."""
    table = visits({"date": "2019-03-01 09:30"}, {"date": "2019-03-01", "image": "a"}, {"date": "2019-03-01"})
    assert [one.study for one in table.visits] == ["p-2019-03-01T09:30:00", *["p-2019-03-01"] * 2]
    table = visits({"date": "2019-03-01"}, {"date": "2019-03-01", "report": "Edema."})
    assert [one.study for one in table.visits] == ["p-2019-03-01-d60862db", "p-2019-03-01-2c6ab548"]


def test_study_ids_of_several_patients():
    """Where two patients have a visit 1, ids have the patient in front."""
    table = visits({"visit": 1, "date": "2019-03-01"}, {"visit": "1.0", "patient": "q", "date": "2019-03-01"})
    assert [one.study for one in table.visits] == ["p-1", "q-1"]
    assert visits({"visit": 1, "date": "2019-03-01"}).visits[0].study == "1"


@settings(max_examples=50)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "patient": st.sampled_from("pq"),
                "date": st.sampled_from(["2019-03-01", "2019-04-01", "2019-04-01 10:00", "x"]),
                "report": st.sampled_from(["Clear.", "Edema.", ""]),
            }
        ),
        min_size=1,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_ids_do_not_depend_on_the_order_of_rows(rows, random):
    """However rows are sorted: the same visits under the same ids, and as many left out."""
    one, other = read_visit_rows(rows), read_visit_rows(random.sample(rows, len(rows)))

    def known(table):
        return sorted((visit.study, visit.report.findings) for visit in table.visits)

    assert known(one) == known(other)
    assert sorted(row.reason for row in one.excluded) == sorted(row.reason for row in other.excluded)


def test_rows_that_do_not_fit_are_named():
    """Each reason with its row; a row that was written twice is left out once."""
    good = {"date": "2019-03-01"}
    table = visits(
        good, {**good, "patient": None}, {"date": ""}, {"date": "x"}, {**good, "report": "None"}, good
    )
    assert reasons(table) == [
        (2, "no-patient"), (3, "no-date"), (4, "bad-date"), (5, "no-report"), (6, "duplicate-row"),
    ]  # fmt: skip


def test_views_and_splits_that_say_nothing_known():
    """A view column without AP or PA is no view information, and neither are unknown splits splits."""
    table = visits({"date": "2019-03-01", "view": "frontal", "set": "A"})
    assert (table.has_views, table.has_splits, table.excluded) == (False, False, ())
    table = visits({"date": "2019-03-01", "view": "PA", "set": "val"}, {"date": "2019-03-02", "set": "A"})
    assert (table.has_views, table.has_splits, reasons(table)) == (True, True, [(2, "unknown-split")])


# --- drafts ---------------------------------------------------------------------------


def texts(sources, **options):
    """Return (visit, number, text or sections) of each draft, and the form that was seen."""
    table = read_draft_rows(sources, **options)
    form = next(guess.found for guess in table.guesses if guess.what == "  form")
    shown = [
        (
            draft.visit(),
            draft.number,
            draft.record.get("text") or (draft.record["findings"], draft.record["impression"]),
        )
        for draft in table.drafts
    ]
    return shown, form.partition(":")[0]


TWO = [("s1", "1", "Clear."), ("s1", "2", "Edema.")]
SECTIONS = {"findings": "Clear.", "impression": "Normal."}


@pytest.mark.parametrize(
    ("rows", "form"),
    [
        ([{"study": "s1", "draft": n, "text": text} for _, n, text in TWO], "long"),
        ([{"id": "s1", "sample": n, "prediction": text} for _, n, text in TWO], "long"),
        ([{"study_id": "s1", "Draft 1": "Clear.", "Draft 2": "Edema."}], "wide"),
        ([{"study": "s1", "drafts": ["Clear.", "Edema."]}], "a list of drafts in each row"),
        ([{"id": "s1", "candidates": [{"text": text} for *_, text in TWO]}], "a list of drafts in each row"),
    ],
)  # fmt: skip
def test_every_form_of_drafts_says_the_same(rows, form):
    """Long, wide and lists give two drafts of one study."""
    assert texts([rows]) == (TWO, form)


@pytest.mark.parametrize(
    "row",
    [
        {"study": "s1", "sample": 1, **SECTIONS},
        {"study": "s1", "draft_1_findings": "Clear.", "draft_1_impression": "Normal."},
        {"study": "s1", "findings_1": "Clear.", "impression_1": "Normal."},
        {"study": "s1", "candidates": [SECTIONS]},
    ],
)
def test_findings_and_impression_may_stand_apart(row):
    """In long, wide and list form."""
    assert texts([[row]])[0] == [("s1", "1", ("Clear.", "Normal."))]


def test_rexrank_s_json(tmp_path):
    """Of ReXrank's object of studies the prediction is the draft, never the report beside it."""
    study = {
        "report": "Truth.",
        "section_findings": "Truth.",
        "model_prediction": "Clear.",
        "image_path": ["a"],
    }
    path = write(tmp_path / "model.json", json.dumps({"s1": study}))
    assert texts([path]) == ([("s1", "", "Clear.")], "ReXrank's JSON")


def test_a_file_for_each_sample(tmp_path):
    """Files of one shape are samples in their order, and equal texts of two files are two drafts."""
    paths = [write(tmp_path / f"{n}.csv", "study,report\ns1,Clear.\n") for n in (1, 2)]
    table = read_draft_rows(paths)
    assert [(draft.file, draft.record["text"]) for draft in table.drafts] == [(1, "Clear."), (2, "Clear.")]


def test_drafts_that_cannot_be_used_are_named():
    """No text, no visit, no text at all, too much text, written twice: each with its row."""
    rows = [
        {"study": "s1", "n": 1, "text": "Clear."},
        {"study": "s1", "n": 1, "text": "Clear."},
        {"study": "s1", "n": 2, "text": " "},
        {"study": "", "n": 3, "text": "Clear."},
        {"study": "s1", "n": 4, "text": 7},
        {"study": "s1", "n": 5, "text": "Clear lungs. " * 1_001},
    ]
    assert reasons(read_draft_rows([rows])) == [
        (2, "duplicate-draft"), (3, "draft-without-text"), (4, "draft-names-no-visit"),
        (5, "draft-not-text"), (6, "draft-too-long"),
    ]  # fmt: skip


def test_two_texts_for_one_draft_are_refused():
    """Both rows are named, the texts are not; of two models they are two drafts."""
    rows = [{"study": "s1", "n": 1, "text": "Secret."}, {"study": "s1", "n": 1, "text": "Other."}]
    with pytest.raises(
        BadInputError, match=r"rows row 1 and row 2 have different texts for draft 1"
    ) as error:
        read_draft_rows([rows])
    assert "Secret" not in str(error.value)
    assert len(read_draft_rows([[{**row, "model": n} for n, row in enumerate(rows)]]).drafts) == 2


def test_dates_of_drafts_follow_the_visits_if_nothing_decides():
    """Their own column goes first."""
    row = {"patient": "p", "date": "3/4/2019", "text": "Clear."}
    assert texts([[row]], visits_order="day-first")[0][0][0] == "p on 2019-04-03"
    late = {**row, "date": "3/14/2019"}
    assert texts([[row, late]], visits_order="day-first")[0][0][0] == "p on 2019-03-04"
    with pytest.raises(BadInputError, match="--day-first"):
        read_draft_rows([[row]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"patient": "p", "text": "x"}, r"study \(or patient and date\).*draft_columns={'study': NAME}"),
        ({"study": "s", "score": 1}, r"text \(or drafts.*draft_columns={'text': NAME}"),
    ],
)
def test_tables_that_are_no_drafts(row, message):
    """The columns that are there and the option that helps."""
    with pytest.raises(BadInputError, match=message):
        read_draft_rows([[row]])


def test_a_draft_s_text_may_be_named():
    """A map says which column is the text, whatever else looks like one."""
    rows = [{"study": "s1", "report_1": "Truth.", "findings": "Truth.", "mine": "Clear."}]
    assert texts([rows], columns={"text": "mine"})[0] == [("s1", "", "Clear.")]


def test_left_out_rows_are_values():
    """What is left out is what a cohort's excluded.jsonl has."""
    assert read_draft_rows([[{"study": "", "text": "x"}]]).excluded == (
        Excluded(Source("rows", 1), "draft-names-no-visit"),
    )
