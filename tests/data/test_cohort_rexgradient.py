"""ReXGradient-160K, read from its true layout."""

import json

import pytest

from cohort_layouts import (
    LONG,
    NAN,
    count_in_little_memory,
    cut_short,
    pack,
    read_all,
    rexgradient_entry,
    rexgradient_split,
    write_rexgradient,
)
from tabon.data.cohort import tables
from tabon.data.cohort.datasets.rexgradient import DATASET, KEYS
from tabon.data.cohort.visits import Source, moment_from
from tabon.errors import BadInputError
from tabon.text.reports import Report

TRAIN = "metadata/train_metadata_view_position.json"
PACKINGS = ["", ".gz", ".zst"]


@pytest.fixture
def visits(tmp_path):
    """Return the visits of the tiny data set, by study."""
    write_rexgradient(tmp_path)
    return {visit.study: visit for visit in read_all(DATASET, tmp_path)[0]}


def reasons(folder):
    """Return why each study was left out."""
    return {excluded.study: excluded.reason for excluded in read_all(DATASET, folder)[1]}


def test_a_study_becomes_a_visit(visits):
    """Patient, day, sections, images, split and file are those of the entry."""
    visit = visits["pGRDNA_ACC1"]
    assert visit.patient == "GRDNA"
    assert visit.moment == moment_from("2012-01-01")
    assert visit.report == Report("Lungs are clear. Heart size is normal.", "No acute disease.")
    assert visit.split == "train"
    assert visit.source == Source(TRAIN)


def test_every_split_is_read(visits):
    """The three files give the splits train, valid and test."""
    assert {visit.split for visit in visits.values()} == {"train", "valid", "test"}
    assert visits["pGRDNvalid_ACC1"].source.file == "metadata/valid_metadata_view_position.json"


def test_image_paths_are_relative_to_the_folder(visits):
    """The leading ../ of a path, which is relative to metadata/, is gone."""
    assert visits["pGRDNA_ACC1"].images[1].path == (
        "deid_png/GRDNA/ACC1/studies/1.2.ACC1/series/1.3/instances/1.png"
    )


def test_a_shorter_list_of_views_is_padded(visits):
    """An image beyond the end of the views has none."""
    assert [image.view for image in visits["pGRDNA_ACC1"].images] == ["PA", None]


def test_views_in_many_spellings(visits):
    """AP and PA are told from laterals, other projections, null and NaN."""
    views = {study: [image.view for image in visit.images] for study, visit in visits.items()}
    assert views["pGRDNA_ACC2"] == ["PA", None]
    assert views["pGRDNA_ACC3"] == ["AP"]
    assert views["pGRDNB_ACC1"] == [None, None, None]
    assert views["pGRDNB_ACC2"] == [None, None, "AP"]


@pytest.mark.parametrize("views", [None, NAN, "PA", []], ids=str)
def test_the_lists_may_not_be_lists(tmp_path, views):
    """No list of views is no views, and one text is a list of one."""
    entry = rexgradient_entry("GRDNA", "ACC1", 20120101, "PA", ImageViewPosition=views)
    write_rexgradient(tmp_path, train={"pGRDNA_ACC1": entry})
    visit = read_all(DATASET, tmp_path)[0][0]
    assert [image.view for image in visit.images] == ["PA" if views == "PA" else None]


def test_a_study_without_images_is_still_a_visit(tmp_path):
    """Whether it qualifies is for the linking to say."""
    entry = rexgradient_entry("GRDNA", "ACC1", 20120101, ImagePath=None)
    write_rexgradient(tmp_path, train={"pGRDNA_ACC1": entry})
    assert read_all(DATASET, tmp_path)[0][0].images == ()


@pytest.mark.parametrize("date", [20120101, "20120101", 20120101.0, "20120101.0", " 2012-01-01 "], ids=repr)
def test_a_date_in_every_spelling(tmp_path, date):
    """Whole numbers, floats and texts are the same day, with no time."""
    write_rexgradient(tmp_path, train={"pGRDNA_ACC1": rexgradient_entry("GRDNA", "ACC1", date, "PA")})
    assert read_all(DATASET, tmp_path)[0][0].moment == moment_from("2012-01-01")


def test_none_and_nan_are_empty_sections(visits):
    """The text "None" and the number NaN stand for no text."""
    assert visits["pGRDNA_ACC2"].report == Report(findings="Lungs are clear. Heart size is normal.")
    assert visits["pGRDNA_ACC3"].report == Report(impression="No acute disease.")


def test_the_patient_is_the_same_from_either_place(visits):
    """The id of the study has the patient's id after a `p`."""
    assert visits["pGRDNB_ACC1"].patient == visits["pGRDNB_ACC2"].patient == "GRDNB"


def test_every_exclusion_has_its_reason(tmp_path):
    """A study that cannot be a visit is named with the reason."""
    write_rexgradient(tmp_path)
    assert reasons(tmp_path) == {
        "pGRDNB_ACC3": "no-date",
        "pGRDNB_ACC4": "no-date",
        "pGRDNB_ACC5": "bad-date",
        "pGRDNB_ACC6": "no-report",
        "pGRDNB_ACC7": "not-text",
        "ACC8": "no-patient",
        "pGRDNB_ACC9": "not-an-object",
    }


def test_no_study_is_lost(tmp_path):
    """Each study ends as one visit or one exclusion, in the order of the file."""
    write_rexgradient(tmp_path)
    found = [item.study for item in DATASET.read(tmp_path)]
    assert found == [study for split in ("train", "valid", "test") for study in rexgradient_split(split)]


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("packing", PACKINGS)
def test_packing_and_layout_do_not_matter(tmp_path, packing, indent, visits):
    """Plain, gzip and zstd files give the same visits, on one line or on many."""
    folder = tmp_path / "other"
    write_rexgradient(folder, packing=packing, indent=indent)
    assert [visit.report for visit in read_all(DATASET, folder)[0]] == [v.report for v in visits.values()]


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_studies_across_the_ends_of_chunks(tmp_path, monkeypatch, chunk):
    """How much of the file is held at once changes nothing."""
    write_rexgradient(tmp_path, indent=1)
    before = read_all(DATASET, tmp_path)
    monkeypatch.setattr(tables, "CHUNK", chunk)
    assert read_all(DATASET, tmp_path) == before


def test_a_byte_order_mark_is_skipped(tmp_path):
    """A file that begins with a byte order mark reads like any other."""
    path = write_rexgradient(tmp_path)
    before = read_all(DATASET, tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_all(DATASET, tmp_path) == before


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_no_study_has_is_named(tmp_path, key):
    """A file of another version is refused by the first key it lacks."""
    entry = rexgradient_entry("GRDNA", "ACC1", 20120101, "PA")
    del entry[key]
    write_rexgradient(tmp_path, train={"pGRDNA_ACC1": entry})
    with pytest.raises(BadInputError, match=f"{TRAIN} has '{key}'"):
        read_all(DATASET, tmp_path)


def test_an_empty_file_is_refused(tmp_path):
    """No study at all is an error, not an empty split."""
    write_rexgradient(tmp_path, train={})
    with pytest.raises(BadInputError, match=TRAIN):
        read_all(DATASET, tmp_path)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_missing_file_is_named_before_any_is_read(tmp_path, split):
    """The lesser files beside it are not enough: they have no views, and the message says so."""
    write_rexgradient(tmp_path)
    (tmp_path / f"metadata/{split}_metadata_view_position.json").unlink()
    with pytest.raises(
        BadInputError, match=f"no views, but not metadata/{split}_metadata_view_position.json"
    ):
        next(DATASET.read(tmp_path))


def test_a_foreign_folder_is_refused(tmp_path):
    """A folder with none of the files is told which one is missing."""
    with pytest.raises(BadInputError, match=f"no file {TRAIN}"):
        read_all(DATASET, tmp_path)


@pytest.mark.parametrize("share", [0.05, 0.6, 0.999])
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_truncated_file_is_named(tmp_path, packing, share):
    """A broken download is an error with the file's name and no report text."""
    path = cut_short(write_rexgradient(tmp_path, packing=packing), share)
    with pytest.raises(BadInputError, match="truncated or damaged") as caught:
        read_all(DATASET, tmp_path)
    assert path.name in str(caught.value)
    assert "Lungs" not in str(caught.value)


@pytest.mark.parametrize("content", [b"[1]", b'{"a": 1} {}', b'{"a" 1}', b"{1: 2}", b'{"a": nope}', b""])
def test_a_file_that_is_no_object_is_named(tmp_path, content):
    """Damage that is not truncation is refused too."""
    pack(write_rexgradient(tmp_path), content)
    with pytest.raises(BadInputError, match=TRAIN):
        read_all(DATASET, tmp_path)


def test_reports_stay_at_home():
    """The agreement forbids disclosure to any third party, and the note says so."""
    assert DATASET.egress == "none"
    assert "third party" in DATASET.note
    assert DATASET.order == "dates"


def test_memory_does_not_grow_with_the_file(tmp_path):
    """A file of 5,000 studies and 35 MB is read in a few megabytes."""
    body = json.dumps(rexgradient_entry("GRDNA", "ACC1", 20120101, "PA", NAN, Findings=LONG))[1:]
    studies = ", ".join(f'"pGRDN{number}_ACC1": {{{body}' for number in range(5_000))
    pack(write_rexgradient(tmp_path), f"{{{studies}}}".encode())
    count, peak = count_in_little_memory(DATASET, tmp_path)
    assert count == 5_000 + 2
    assert peak < 8e6
