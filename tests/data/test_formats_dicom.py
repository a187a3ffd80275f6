"""DICOM structured reports in and out: which items are the sections, what is kept, what is refused."""

import json
import threading
from datetime import UTC, datetime
from io import BytesIO
from time import monotonic

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.cli.convert import convert
from tabon.data.formats import DISCLAIMER, MAX_TEXT, patient_of, read_any, read_sr, write_fhir, write_sr
from tabon.data.formats.documents import plain
from tabon.errors import BadInputError
from tabon.text.reports import Report

pydicom = pytest.importorskip("pydicom", reason="needs the extra images")
from pydicom.dataset import Dataset, FileMetaDataset  # noqa: E402

CANARY = "CANARYOPACITY"
SIGNATURE = "distance:novelty|encoder:minilm@53aa|bank:0123456789ab"
DRAFT = Report(findings="Lungs are clear.\nNo effusion.", impression="No acute disease.")
WRITTEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BASIC, ENHANCED, COMPREHENSIVE = (f"1.2.840.10008.5.1.4.1.1.88.{n}" for n in (11, 22, 33))
EXPLICIT, IMPLICIT, BIG = "1.2.840.10008.1.2.1", "1.2.840.10008.1.2", "1.2.840.10008.1.2.2"
DEFLATED = "1.2.840.10008.1.2.1.99"


def item(value_type, name=None, text=None, children=(), relationship="CONTAINS"):
    """Make a content item by hand; `name` is (scheme, code, meaning)."""
    made = Dataset()
    made.RelationshipType, made.ValueType = relationship, value_type
    if name is not None:
        code = Dataset()
        code.CodingSchemeDesignator, code.CodeValue, code.CodeMeaning = name
        made.ConceptNameCodeSequence = [code]
    if text is not None:
        made.TextValue = text
    if children:
        made.ContentSequence = list(children)
    return made


def document(*children, sop_class=BASIC, charset="ISO_IR 192", **values):
    """Make a document by hand."""
    made = item("CONTAINER", ("LN", "18748-4", "Report"), children=children)
    made.SpecificCharacterSet = charset
    made.SOPClassUID, made.SOPInstanceUID = sop_class, "1.2.3.4"
    made.PatientName, made.PatientID, made.StudyInstanceUID = "Müller^Ana", "P7", "1.2.3"
    made.StudyDate, made.AccessionNumber = "20200304", "A1"
    made.CompletionFlag, made.VerificationFlag = "COMPLETE", "VERIFIED"
    for keyword, value in values.items():
        setattr(made, keyword, value)
    return made


def file(dataset, syntax=EXPLICIT):
    """Write a dataset as a DICOM file."""
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = syntax
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    stream = BytesIO()
    dataset.save_as(stream, enforce_file_format=True)
    return stream.getvalue()


def coded(text="Clear."):
    """Make a document with both sections, as current codes name them."""
    return document(
        item(
            "CONTAINER", ("LN", "59776-5", "Findings"), children=[item("TEXT", ("DCM", "121071", "F"), text)]
        ),
        item(
            "CONTAINER", ("LN", "19005-8", "Imp"), children=[item("TEXT", ("DCM", "121073", "I"), "Normal.")]
        ),
    )


PRIOR = file(coded())


def read_back(data):
    """Read a file with pydicom, as another program would."""
    return pydicom.dcmread(BytesIO(data))


# --- reading -------------------------------------------------------------------------------


@pytest.mark.parametrize("syntax", [EXPLICIT, IMPLICIT, BIG])
def test_coded_sections_are_read_in_every_transfer_syntax(syntax):
    """Findings and impression by their codes, and the facts beside them."""
    data = file(coded("Größe normal.\r\nKlar."), syntax)
    received = read_sr(data)
    assert received.report == Report(findings="Größe normal.\nKlar.", impression="Normal.")
    assert (received.id, received.patient, received.date) == ("1.2.3.4", "P7", "2020-03-04")
    assert (received.status, received.source) == ("COMPLETE VERIFIED", "sections")
    assert read_any(data, name="x") == (received,)


@pytest.mark.parametrize("sop_class", [BASIC, ENHANCED, COMPREHENSIVE])
@pytest.mark.parametrize(
    ("findings", "impression"),
    [("121070", "121072"), ("121071", "121073"), ("121070", "121077"), ("121071", "121076")],
)
def test_older_codes_name_the_sections_too(sop_class, findings, impression):
    """TEXT items directly under the root, named by DCM codes; context and other texts stay apart."""
    data = file(
        document(
            item("TEXT", ("DCM", "121060", "History"), "Cough."),
            item("TEXT", ("DCM", findings, "x"), "Clear."),
            item("TEXT", ("DCM", findings, "x"), "No edema."),
            item("TEXT", ("DCM", impression, "y"), "Normal."),
            item("TEXT", ("DCM", "121065", "Procedure"), "X-ray.", relationship="HAS OBS CONTEXT"),
            sop_class=sop_class,
        )
    )
    assert read_sr(data).report == Report(
        findings="Clear.\n\nNo edema.", impression="Normal.", other="Cough."
    )


def test_text_without_known_names_is_read_as_raw_text():
    """One text with headers inside, or local codes with telling meanings: the parser finds the sections."""
    whole = file(
        document(item("TEXT", ("99X", "1", "Report text"), "FINDINGS: Clear.\r\nIMPRESSION: Normal."))
    )
    assert read_sr(whole).report == Report(findings="Clear.", impression="Normal.")
    local = file(
        document(
            item("TEXT", ("99X", "1", "Observations"), "Clear."),
            item("TEXT", ("99X", "2", "Opinion"), "Normal."),
        )
    )
    assert read_sr(local).report == Report(findings="Clear.", impression="Normal.")
    bare = file(document(item("TEXT", None, "Clear.")))
    assert read_sr(bare).report == Report(findings="Clear.")
    assert read_sr(bare).source == "raw text"


def test_other_character_sets_are_read():
    """Latin-1 text that says so is read as Latin-1."""
    data = file(document(item("TEXT", ("DCM", "121071", "F"), "Größe normal."), charset="ISO_IR 100"))
    assert read_sr(data).report.findings == "Größe normal."


# --- writing -------------------------------------------------------------------------------


def test_written_document_is_marked_and_belongs_to_the_study():
    """Flags, disclaimer, signature, patient, study and file meta, as pydicom reads them."""
    made = read_back(write_sr(DRAFT, signature=SIGNATURE, about=PRIOR, seed="s", written=WRITTEN))
    assert made.SOPClassUID == made.file_meta.MediaStorageSOPClassUID == BASIC
    assert made.SOPInstanceUID == made.file_meta.MediaStorageSOPInstanceUID
    assert made.file_meta.TransferSyntaxUID == EXPLICIT
    flags = (made.CompletionFlag, made.VerificationFlag, made.PreliminaryFlag)
    assert flags == ("PARTIAL", "UNVERIFIED", "PRELIMINARY")
    assert (made.PatientName, made.PatientID, made.StudyInstanceUID) == ("Müller^Ana", "P7", "1.2.3")
    assert (made.StudyDate, made.AccessionNumber, made.Modality) == ("20200304", "A1", "SR")
    assert (made.ContentDate, made.ContentTime) == ("20260102", "030405")
    assert made.PatientSex in ("", None)
    disclaimer, parameters, findings, impression = made.ContentSequence
    assert (disclaimer.ValueType, disclaimer.TextValue) == ("TEXT", DISCLAIMER)
    assert parameters.TextValue == SIGNATURE
    assert findings.ContentSequence[0].TextValue == "Lungs are clear.\r\nNo effusion."
    assert impression.ContentSequence[0].TextValue == "No acute disease."
    assert patient_of(PRIOR, name="x") == "P7"


def test_uids_follow_from_the_seed_and_the_content():
    """The same seed and draft give the same bytes; another seed, draft or none gives other UIDs."""

    def uids(draft=DRAFT, seed="s"):
        made = read_back(write_sr(draft, signature=SIGNATURE, about=PRIOR, seed=seed, written=WRITTEN))
        return made.SOPInstanceUID, made.SeriesInstanceUID

    first = write_sr(DRAFT, signature=SIGNATURE, about=PRIOR, seed="s", written=WRITTEN)
    assert first == write_sr(DRAFT, signature=SIGNATURE, about=PRIOR, seed="s", written=WRITTEN)
    seen = [*uids(), *uids(seed="t"), *uids(Report(findings="Edema.")), *uids(seed=None), *uids(seed=None)]
    assert len(set(seen)) == len(seen) == 10
    assert all(uid.is_valid for uid in seen)


def test_an_image_of_the_study_can_say_whom_the_draft_is_about():
    """Any DICOM object will do, in Latin-1 too."""
    image = document(sop_class="1.2.840.10008.5.1.4.1.1.1.1", charset="ISO_IR 100")
    made = read_back(write_sr(DRAFT, signature=SIGNATURE, about=file(image)))
    assert (str(made.PatientName), made.StudyInstanceUID) == ("Müller^Ana", "1.2.3")


def test_highdicom_reads_the_document():
    """An independent SR library takes the content tree with its names, types and relationships."""
    sr = pytest.importorskip("highdicom.sr", reason="needs highdicom")
    made = read_back(write_sr(DRAFT, signature=SIGNATURE, about=PRIOR))
    content = sr.ContentSequence.from_sequence(made.ContentSequence)
    assert [child.name.value for child in content] == ["121106", "111002", "59776-5", "19005-8"]
    [finding] = sr.ContentSequence.from_sequence(content[2].ContentSequence)
    assert isinstance(finding, sr.TextContentItem)
    assert finding.value == "Lungs are clear.\r\nNo effusion."
    assert finding.relationship_type == sr.RelationshipTypeValues.CONTAINS


TEXTS = st.text(max_size=60) | st.lists(
    st.sampled_from(["Findings:", "IMPRESSION:", "\n", "\r\n", " ", "Clear.", "\\", "\x00", "\x1b$B", "ü"]),
    max_size=6,
).map("".join)


@given(st.builds(Report, findings=TEXTS, impression=TEXTS))
def test_sr_keeps_both_sections(report):
    """Report to SR to Report keeps both sections, headers and backslashes too; `plain` is applied."""
    kept = Report(findings=plain(report.findings), impression=plain(report.impression))
    if kept.is_empty:
        with pytest.raises(BadInputError, match="neither findings nor an impression"):
            write_sr(report, signature=SIGNATURE, about=PRIOR)
        return
    received = read_sr(write_sr(report, signature=SIGNATURE, about=PRIOR, seed="s"))
    assert (received.report.findings, received.report.impression) == (kept.findings, kept.impression)


def test_a_long_draft_is_kept():
    """UT holds more than 64 KiB."""
    long = Report(findings="Clear. " * 30_000)
    assert read_sr(write_sr(long, signature=SIGNATURE, about=PRIOR)).report.findings == long.findings


# --- what is refused ---------------------------------------------------------------------------


def nested(levels):
    """Make a document whose text lies this deep."""
    inner = item("TEXT", ("DCM", "121071", "F"), CANARY)
    for _ in range(levels):
        inner = item("CONTAINER", None, children=[inner])
    return file(document(inner))


def bad_text():
    """Make a document whose bytes are not of its character set."""
    data = file(document(item("TEXT", ("DCM", "121071", "F"), f"{CANARY} size é.")))
    assert data.count("é".encode()) == 1
    return data.replace("é".encode(), b"\xe9\xe9")


BAD = {
    "empty": (lambda: b"", "not a DICOM file"),
    "JSON": (lambda: b'{"resourceType": "x"}' + CANARY.encode() * 20, "not a DICOM file"),
    "only the preamble": (lambda: bytes(128) + b"DICM", "another class|not a whole DICOM"),
    "an image": (lambda: file(document(sop_class="1.2.840.10008.5.1.4.1.1.1.1")), "another class"),
    "a key object": (lambda: file(document(sop_class="1.2.840.10008.5.1.4.1.1.88.59")), "another class"),
    "no content": (lambda: file(document()), "no report text"),
    "blank text": (lambda: file(document(item("TEXT", ("DCM", "121071", "F"), " "))), "no report text"),
    "deflated": (lambda: file(coded(CANARY * 10), DEFLATED), "deflated"),
    "not its character set": (bad_text, "Specific Character Set"),
    "deep": (lambda: nested(70), "over 64 levels"),
    "very long": (lambda: file(coded("a" * (MAX_TEXT + 1))), "over 10,000,000 bytes"),
    "odd character set": (lambda: PRIOR.replace(b"ISO_IR 192", CANARY[:10].encode()), "character set"),
    "too large": (lambda: bytes(64_000_001), "more than 64,000,000"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.filterwarnings("default")
def test_bad_input_is_one_sentence_without_text(case, caplog, recwarn):
    """Each kind of bad input is a BadInputError that names the trouble, and no text is shown or logged."""
    make, message = BAD[case]
    with pytest.raises(BadInputError, match=message) as caught:
        read_sr(make(), name="prior.dcm")
    assert "prior.dcm" in str(caught.value)
    said = [str(caught.value), caplog.text, *(str(warning.message) for warning in recwarn)]
    assert not any(CANARY[:10] in text for text in said)


@pytest.mark.parametrize("syntax", [EXPLICIT, IMPLICIT, BIG])
def test_every_truncated_file_is_refused(syntax):
    """Whichever byte a file is cut at, it is an error: never a report with less in it."""
    whole = file(coded(), syntax)
    for size in range(len(whole)):
        with pytest.raises(BadInputError):
            read_sr(whole[:size])


def test_thousands_of_sequences_inside_each_other_are_refused():
    """A hostile nest ends in one error, not in a crash of the process."""
    head = file(document())
    opening = b"\x40\x00\x30\xa7SQ\x00\x00\xff\xff\xff\xff\xfe\xff\x00\xe0\xff\xff\xff\xff"
    with pytest.raises(BadInputError):
        read_sr(head + opening * 20_000)


@settings(max_examples=200)
@given(st.data())
def test_damaged_bytes_give_a_report_or_one_error(data):
    """Bytes changed at random: a report is read or a BadInputError raised, and nothing else."""
    damaged = bytearray(PRIOR)
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(128, len(PRIOR) - 1))] = data.draw(st.integers(0, 255))
    try:
        received = read_sr(bytes(damaged))
    except BadInputError:
        return
    assert not received.report.is_empty


def test_about_needs_a_study():
    """A draft must belong to a study."""
    with pytest.raises(BadInputError, match="no Study Instance UID"):
        write_sr(DRAFT, signature=SIGNATURE, about=file(document(StudyInstanceUID="")))


def test_threads_leave_pydicom_as_it_was():
    """Reading in several threads gives the same report, and the process-wide setting comes back."""
    before = pydicom.config.settings.reading_validation_mode
    found = []
    threads = [
        threading.Thread(target=lambda: found.extend(read_sr(PRIOR) for _ in range(5))) for _ in range(4)
    ]
    start = monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert len({received.report for received in found}) == 1
    assert pydicom.config.settings.reading_validation_mode == before
    assert monotonic() - start < 30


# --- the command line ----------------------------------------------------------------------------


def run(command, *arguments):
    """Run a subcommand of `tabon convert`."""
    return CliRunner().invoke(convert, [command, *map(str, arguments)])


def test_convert_goes_from_files_to_a_query_and_back(tmp_path):
    """Two SR priors and a FHIR draft become a query, newest prior last; the chosen draft comes out as SR."""
    old, new, draft, out = (tmp_path / name for name in ("old.dcm", "new.dcm", "draft.json", "out.dcm"))
    old.write_bytes(file(coded("Old.")))
    newer = coded("New.")
    newer.StudyDate = "20210101"
    new.write_bytes(file(newer))
    draft.write_bytes(write_fhir(DRAFT, signature=SIGNATURE))
    lines = tmp_path / "drafts.jsonl"
    lines.write_text('"Edema."\n{"findings": "Mass.", "seed": 3}\n', encoding="utf-8")
    made = run("query", "--id", "q", "--prior", new, "--prior", old, "--draft-file", draft, "--drafts", lines)
    assert made.exit_code == 0, made.output
    record = json.loads(made.stdout)
    assert [prior["findings"] for prior in record["prior"]] == ["Old.", "New."]
    assert record["patient"] == "P7"
    assert len(record["candidates"]) == 3
    queries, selections = tmp_path / "q.jsonl", tmp_path / "s.jsonl"
    queries.write_text(made.stdout, encoding="utf-8")
    selections.write_text(json.dumps({"id": "q", "selected": 0, "signature": SIGNATURE}), encoding="utf-8")
    wanted = ("--id", "q", "--about", new, "--to", "dicom-sr", "--out", out)
    made = run("draft", queries, selections, *wanted)
    assert made.exit_code == 0, made.output
    received = read_sr(out.read_bytes())
    assert (received.report.findings, received.patient) == (DRAFT.findings, "P7")
    assert received.status == "PARTIAL UNVERIFIED"


def test_convert_refuses_another_patient_an_abstention_and_a_withdrawn_prior(tmp_path):
    """One sentence and exit status 1 for each."""
    about, prior, queries, selections = (tmp_path / name for name in ("a.dcm", "p.json", "q", "s"))
    about.write_bytes(PRIOR)
    queries.write_text(json.dumps({"id": 1, "patient": "P8", "prior": "A.", "candidates": ["B."]}))
    selections.write_text(json.dumps({"id": "1", "selected": 0}))
    wanted = ("--id", "1", "--about", about, "--to", "dicom-sr", "--out", tmp_path / "o")
    refused = run("draft", queries, selections, *wanted)
    assert (refused.exit_code, "different patients" in refused.output) == (1, True)
    assert run("draft", queries, selections, *wanted, "--same-patient").exit_code == 0
    selections.write_text(json.dumps({"id": "1", "selected": None}))
    refused = run("draft", queries, selections, *wanted)
    assert (refused.exit_code, "no draft was chosen" in refused.output) == (1, True)
    withdrawn = {"resourceType": "DiagnosticReport", "status": "entered-in-error", "conclusion": CANARY}
    prior.write_text(json.dumps(withdrawn))
    refused = run("query", "--id", "1", "--prior", prior)
    assert (refused.exit_code, "leave it out" in refused.output, CANARY in refused.output) == (1, True, False)
    prior.write_text(json.dumps({**withdrawn, "status": "final", "subject": {"reference": "Patient/9"}}))
    refused = run("query", "--id", "1", "--prior", prior, "--prior", about)
    assert (refused.exit_code, "2 patients" in refused.output) == (1, True)
