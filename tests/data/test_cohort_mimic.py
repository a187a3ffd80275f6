"""MIMIC-CXR: its sections, its tables, its reports, and what is left out."""

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cohort_layouts_b import (
    MIMIC_IMAGES,
    MIMIC_METADATA,
    MIMIC_METADATA_COLUMNS,
    MIMIC_REPORT,
    MIMIC_SPLIT,
    MIMIC_SPLIT_COLUMNS,
    csv_text,
    cut,
    mimic,
    mimic_image,
    mimic_report_path,
    mimic_tables,
    write,
)
from tabon.data.cohort.datasets.mimic_cxr import DATASET
from tabon.data.cohort.datasets.mimic_sections import mimic_report
from tabon.data.cohort.visits import Excluded, Moment, Source, Visit, moment_from
from tabon.errors import BadInputError
from tabon.text.reports import Report


def read(folder):
    """Read a folder and part visits from what is left out."""
    found = list(DATASET.read(folder))
    visits = {visit.study: visit for visit in found if isinstance(visit, Visit)}
    return visits, [row for row in found if isinstance(row, Excluded)]


def reasons(excluded):
    """Return the file, line and reason of each."""
    return sorted((row.source.file, row.source.line, row.reason) for row in excluded)


# --- sections -------------------------------------------------------------------------


def test_the_sections_of_a_report_are_found():
    """Headers in capitals at the beginning of a line open the sections; the rest is kept as other."""
    report = mimic_report(MIMIC_REPORT)
    assert report.findings == "There is a small left pleural effusion, unchanged from\nthe previous study."
    assert report.impression == "No pneumonia."
    assert report.other.startswith("EXAMINATION: CHEST (PA AND LAT)\n\nINDICATION:")
    assert "FINAL REPORT" not in report.other


@pytest.mark.parametrize(
    ("header", "section"),
    [
        ("FINDINGS", "findings"),
        ("FINDING", "findings"),
        ("FINIDNGS", "findings"),
        ("CHEST, TWO VIEWS", "findings"),
        ("PORTABLE AP CHEST RADIOGRAPH", "findings"),
        ("PA AND LATERAL VIEWS OF THE CHEST", "findings"),
        ("IMPRESSION", "impression"),
        ("IMPRESSON", "impression"),
        ("CONCLUSION", "impression"),
        ("FINDINGS AND IMPRESSION", "impression"),
        ("FINDINGS/ IMPRESSION", "impression"),
    ],
)
def test_headers_and_their_sections(header, section):
    """Each of these headers opens this one section, as in MIMIC-CXR's own script."""
    report = mimic_report(f" INDICATION: Cough.\n \n {header}: Clear lungs.\n")
    assert report == Report(**{section: "Clear lungs."}, other="INDICATION: Cough.")


@pytest.mark.parametrize(
    "header",
    ["WET READ", "RECOMMENDATION(S)", "NOTIFICATION", "REASON FOR CHEST X-RAY", "COMPARISON", "ADDENDUM"],
)
def test_other_headers_end_a_section(header):
    """What stands under another header is neither findings nor impression."""
    report = mimic_report(f" FINDINGS: Clear.\n IMPRESSION: Normal.\n \n {header}: Discussed.\n")
    assert report == Report(findings="Clear.", impression="Normal.", other=f"{header}: Discussed.")


def test_the_last_section_of_a_name_counts():
    """Of two impressions the later one is the final one; the earlier one is kept as other."""
    report = mimic_report(" WET READ: Old.\n IMPRESSION: Early.\n \n FINAL REPORT\n IMPRESSION: Final.\n")
    assert report.impression == "Final."
    assert report.other == "WET READ: Old.\n\nIMPRESSION: Early."


def test_an_empty_section_does_not_count():
    """A second header without text does not hide the first; a title is no findings section."""
    report = mimic_report(" CHEST, PA LATERAL:\n \n FINDINGS: Clear.\n FINDINGS:\n \n IMPRESSION: Normal.\n")
    assert (report.findings, report.impression) == ("Clear.", "Normal.")


def test_organ_headers_belong_to_the_findings():
    """LUNGS: and HEART: go on with the findings above them."""
    report = mimic_report(" FINDINGS:\n LUNGS: Clear.\n HEART: Normal size.\n IMPRESSION: Normal.\n")
    assert report.findings == "LUNGS: Clear.\nHEART: Normal size."


def test_the_last_paragraph_rule():
    """Without a header for either section, what follows the last one's first paragraph is the impression."""
    text = " FINAL REPORT\n HISTORY: Cough.\n \n Comparison is made.\n \n No change.\n"
    assert mimic_report(text) == Report(
        impression="Comparison is made.\n\nNo change.", other="HISTORY: Cough."
    )


def test_no_last_paragraph():
    """A report of one section that is neither has no impression."""
    assert mimic_report(" FINAL REPORT\n HISTORY: Cough.\n") == Report(other="HISTORY: Cough.")


def test_a_report_without_headers_is_the_impression():
    """A single paragraph without any header is the impression, without its title."""
    assert mimic_report("      FINAL REPORT\n No change since\n yesterday.\n") == Report(
        impression="No change since\nyesterday."
    )


def test_page_breaks_are_taken_out():
    """What a page break prints does not cut a section."""
    text = " FINDINGS: Clear\n (Over)\n \n FINAL REPORT\n PORTABLE CHEST: x\n (Cont)\n lungs.\n"
    assert mimic_report(text).findings.split() == ["Clear", "lungs."]


def test_capitals_in_running_text_are_no_header():
    """A colon after capitals in the middle of a line cuts nothing."""
    assert mimic_report(" FINDINGS: Seen with AP VIEW: clear.\n").findings == "Seen with AP VIEW: clear."


@given(st.text(alphabet=st.sampled_from("AFINDGS IMPRESSION:\n\t .a(Over)(Cont)_ÄÖ"), max_size=200))
def test_any_text_is_parsed(text):
    """The parser never raises and invents no word."""
    report = mimic_report(text)
    words = f"{report.findings} {report.impression} {report.other}".split()
    assert all(word in text for word in words)


# --- the tables -----------------------------------------------------------------------


def test_what_is_read(tmp_path):
    """A study is a visit with all of its images, its split, its sections and where it stood."""
    visits, excluded = read(mimic(tmp_path))
    assert excluded == []
    assert set(visits) == {"50414267", "50300000", "57375967", "51029426"}
    visit = visits["50414267"]
    assert (visit.patient, visit.split) == ("10000032", "train")
    assert visit.report.impression == "No pneumonia."
    assert [(image.path, image.view) for image in visit.images] == [
        ("files/p10/p10000032/s50414267/02aa804e-bde0afdd.jpg", "PA"),
        ("files/p10/p10000032/s50414267/174413ec-4ec4c1f7.jpg", None),
    ]
    assert visit.source == Source(MIMIC_METADATA, 2)


def test_the_moment_is_that_of_the_earliest_image(tmp_path):
    """The second image of the first study was taken first."""
    visits, _ = read(mimic(tmp_path))
    assert visits["50414267"].moment == moment_from("21800506", "212959")


def test_times_are_padded_on_the_left(tmp_path):
    """93015.5 is half past nine and 5 is five seconds after midnight; no time is none."""
    visits, _ = read(mimic(tmp_path))
    assert visits["50300000"].moment.second == 9 * 3600 + 30 * 60 + 15.5
    assert visits["51029426"].moment.second == 5.0
    assert visits["57375967"].moment.second is None


def test_study_ids_are_no_order(tmp_path):
    """The visit with the smaller study id is the later one, and its moment says so."""
    visits, _ = read(mimic(tmp_path))
    assert visits["50414267"].moment.precedes(visits["50300000"].moment)


def test_splits_are_called_as_everywhere(tmp_path):
    """MIMIC-CXR's "validate" is valid."""
    visits, _ = read(mimic(tmp_path))
    assert [visits[study].split for study in ("57375967", "51029426")] == ["valid", "test"]


def test_visits_without_a_known_view_are_read(tmp_path):
    """An empty view and AP AXIAL are neither AP nor PA; the visit is there all the same."""
    visits, _ = read(mimic(tmp_path))
    assert [visits[study].images[0].view for study in ("57375967", "51029426")] == [None, None]


@pytest.mark.parametrize("version", ["2.0.0", "2.1.0"])
@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("reports", ["files", "mimic-cxr-reports/files"])
def test_file_names(tmp_path, version, packed, reports):
    """Both versions, packed or not, and both places of the reports are found."""
    names = {
        "metadata": f"mimic-cxr-{version}-metadata.csv{packed}",
        "split": f"mimic-cxr-{version}-split.csv{packed}",
    }
    visits, excluded = read(mimic(tmp_path, reports=reports, **names))
    assert (len(visits), excluded) == (4, [])


def test_the_order_of_the_rows_does_not_matter(tmp_path):
    """Rows of one study need not stand together."""
    first, _ = read(mimic(tmp_path / "a"))
    second, _ = read(mimic(tmp_path / "b", MIMIC_IMAGES[::-1]))
    assert {study: visit.moment for study, visit in first.items()} == {
        study: visit.moment for study, visit in second.items()
    }


# --- what is left out -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (0, "", "no-dicom"),
        (1, "p10", "bad-id"),
        (2, "../../etc", "bad-id"),
        (2, "9" * 30, "bad-id"),
        (4, "", "no-date"),
        (4, "21809999", "bad-date"),
        (5, "250000", "bad-time"),
        (5, "noon", "bad-time"),
    ],
)
def test_rows_that_do_not_fit_are_left_out_by_line(tmp_path, place, value, reason):
    """A metadata row with a broken field is named with its line; the others are read."""
    mimic(tmp_path)
    broken = list(MIMIC_IMAGES[2])
    broken[place] = value
    rows = [*MIMIC_IMAGES[:2], broken, *MIMIC_IMAGES[3:]]
    write(tmp_path / MIMIC_METADATA, csv_text(MIMIC_METADATA_COLUMNS, map(mimic_image, rows)))
    visits, excluded = read(tmp_path)
    assert (MIMIC_METADATA, 4, reason) in reasons(excluded)
    assert set(visits) == {"50414267", "57375967", "51029426"}


def test_wrong_field_counts_are_left_out_by_line(tmp_path):
    """A row with a field too many does not shift its values into other columns."""
    mimic(tmp_path)
    rows = [mimic_image(image) for image in MIMIC_IMAGES]
    rows[1].insert(3, "a comma too many")
    write(tmp_path / MIMIC_METADATA, csv_text(MIMIC_METADATA_COLUMNS, rows))
    visits, excluded = read(tmp_path)
    assert (MIMIC_METADATA, 3, "wrong-field-count") in reasons(excluded)
    assert len(visits["50414267"].images) == 1


def test_a_study_without_report_is_left_out(tmp_path):
    """Every image of a study without a report file is named."""
    mimic(tmp_path)
    (tmp_path / mimic_report_path(MIMIC_IMAGES[0])).unlink()
    visits, excluded = read(tmp_path)
    assert reasons(excluded) == [(MIMIC_METADATA, 2, "no-report"), (MIMIC_METADATA, 3, "no-report")]
    assert [row.study for row in excluded] == ["50414267", "50414267"]
    assert len(visits) == 3


@pytest.mark.parametrize(("data", "reason"), [(b" \n", "empty-report"), (b"FINDINGS: \xff\xfe", "not-utf-8")])
def test_unreadable_reports_are_left_out(tmp_path, data, reason):
    """A blank report and one that is no text are named as such."""
    mimic(tmp_path)
    (tmp_path / mimic_report_path(MIMIC_IMAGES[2])).write_bytes(data)
    _, excluded = read(tmp_path)
    assert reasons(excluded) == [(MIMIC_METADATA, 4, reason)]


def test_a_report_without_sections_is_still_a_visit(tmp_path):
    """Missing sections are the cohort's business."""
    mimic(tmp_path)
    write(tmp_path / mimic_report_path(MIMIC_IMAGES[2]), " FINAL REPORT\n HISTORY: Cough.\n")
    visits, excluded = read(tmp_path)
    assert visits["50300000"].report.is_empty
    assert excluded == []


def test_images_without_split_and_splits_without_image(tmp_path):
    """An image that the split file lacks, and a split row whose image is not there, are both named."""
    mimic(tmp_path)
    rows = [[image[0], image[2], image[1], image[6]] for image in MIMIC_IMAGES]
    rows[2][0] = "another-dicom"
    write(tmp_path / MIMIC_SPLIT, csv_text(MIMIC_SPLIT_COLUMNS, rows))
    _, excluded = read(tmp_path)
    assert reasons(excluded) == [(MIMIC_METADATA, 4, "no-split"), (MIMIC_SPLIT, 4, "not-in-metadata")]


def test_unknown_splits_are_named(tmp_path):
    """A split of another name is left out, and so is its image."""
    mimic(tmp_path, [(*MIMIC_IMAGES[0][:6], "holdout"), *MIMIC_IMAGES[1:]])
    _, excluded = read(tmp_path)
    assert reasons(excluded) == [(MIMIC_METADATA, 2, "no-split"), (MIMIC_SPLIT, 2, "unknown-split")]


def test_a_row_that_comes_twice_counts_once(tmp_path):
    """The second row of one image is left out as a duplicate, in both tables."""
    visits, excluded = read(mimic(tmp_path, [*MIMIC_IMAGES, MIMIC_IMAGES[0]]))
    assert reasons(excluded) == [(MIMIC_METADATA, 7, "duplicate-row"), (MIMIC_SPLIT, 7, "duplicate-row")]
    assert len(visits["50414267"].images) == 2


# --- the table of MIMIC-CXR's own script ----------------------------------------------

SECTIONED = [
    ["s50414267", "No pneumonia.", "Small effusion,\nunchanged.", "", ""],
    ["s50300000", "", "", "Little change.", "Comparison."],
    ["s57375967", "", "", "", "Only a comparison."],
    ["s59999999", "Of no study.", "", "", ""],
]


def sectioned(folder):
    """Write the tables and the sections, without reports."""
    header = ["study", "impression", "findings", "last_paragraph", "comparison"]
    write(mimic_tables(folder) / "mimic_cxr_sectioned.csv", csv_text(header, SECTIONED))
    return folder


def test_the_sectioned_file_is_read_where_reports_are_not(tmp_path):
    """Its sections are taken as they are; its last paragraph is the impression of last resort."""
    visits, excluded = read(sectioned(tmp_path))
    assert visits["50414267"].report == Report(
        findings="Small effusion,\nunchanged.", impression="No pneumonia."
    )
    assert visits["50300000"].report == Report(impression="Little change.")
    assert reasons(excluded) == [
        (MIMIC_METADATA, 5, "empty-report"),
        (MIMIC_METADATA, 6, "no-report"),
        ("mimic_cxr_sectioned.csv", 6, "not-in-metadata"),
    ]


def test_reports_are_preferred_to_the_sectioned_file(tmp_path):
    """Where both are there, our own rules cut the reports."""
    visits, _ = read(mimic(sectioned(tmp_path)))
    assert visits["50300000"].report.impression == "No pneumonia."


# --- what cannot be read --------------------------------------------------------------


@pytest.mark.parametrize("name", [MIMIC_METADATA, MIMIC_SPLIT])
def test_a_missing_file_is_named(tmp_path, name):
    """Without one of the tables nothing is read, and its name is said."""
    (mimic(tmp_path) / name).unlink()
    with pytest.raises(BadInputError, match=name):
        read(tmp_path)


def test_missing_reports_are_named(tmp_path):
    """Without reports and without the sectioned file, both are named."""
    with pytest.raises(BadInputError, match=r"s50414267\.txt.*mimic_cxr_sectioned\.csv"):
        read(mimic_tables(tmp_path))


@pytest.mark.parametrize("column", ["ViewPosition", "StudyDate", "StudyTime", "subject_id"])
def test_a_missing_column_is_named(tmp_path, column):
    """A metadata file without a column is refused by the column's name."""
    mimic(tmp_path)
    header = [f"old_{name}" if name == column else name for name in MIMIC_METADATA_COLUMNS]
    write(tmp_path / MIMIC_METADATA, csv_text(header, map(mimic_image, MIMIC_IMAGES)))
    with pytest.raises(BadInputError, match=f"no column '{column}'"):
        read(tmp_path)


@pytest.mark.parametrize("name", [MIMIC_METADATA, MIMIC_SPLIT])
@pytest.mark.parametrize("keep", [0, 5, 60, -9, -1])
def test_a_truncated_table_is_named(tmp_path, name, keep):
    """A table that was not copied to its end is an error with its name and without report text."""
    cut(mimic(tmp_path) / name, keep)
    with pytest.raises(BadInputError, match=name) as error:
        read(tmp_path)
    assert "pneumonia" not in str(error.value)


def test_the_data_go_nowhere():
    """PhysioNet's agreement allows no ordinary service, and the note says so."""
    assert DATASET.egress == "none"
    assert DATASET.order == "dates"
    assert "PhysioNet" in DATASET.note


def test_memory_does_not_grow_with_the_tables(tmp_path):
    """40,000 images are read in two megabytes, although rows of a study stand apart."""
    rows = 40_000
    with (
        gzip.open(tmp_path / MIMIC_METADATA, "wt", compresslevel=1) as metadata,
        gzip.open(tmp_path / MIMIC_SPLIT, "wt", compresslevel=1) as split,
    ):
        metadata.write("dicom_id,subject_id,study_id,ViewPosition,StudyDate,StudyTime\n")
        split.write("dicom_id,study_id,subject_id,split\n")
        for number in range(rows):
            patient, study = 10_000_000 + number % 7_000, 50_000_000 + number % 21_000
            metadata.write(f"{number:032d},{patient},{study},AP,21800506,{number}\n")
            split.write(f"{number:032d},{study},{patient},train\n")
    write(tmp_path / "mimic_cxr_sectioned.csv", "study,impression,findings,last_paragraph,comparison\n")
    tracemalloc.start()
    try:
        count = sum(1 for row in DATASET.read(tmp_path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == rows
    assert peak < 2 * 2**20


def test_unknown_times_do_not_hide_known_ones(tmp_path):
    """The moment of a study with one timed image is that time."""
    images = [MIMIC_IMAGES[0], (*MIMIC_IMAGES[1][:5], "", "train")]
    visits, _ = read(mimic(tmp_path, images))
    assert visits["50414267"].moment == Moment(moment_from("21800506").day, 21 * 3600 + 30 * 60 + 14.531)
