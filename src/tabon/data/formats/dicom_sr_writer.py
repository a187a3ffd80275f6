"""The chosen draft as a DICOM Basic Text SR document: partial, unverified, preliminary.

Diagnostic imaging report
├─ Comment               the disclaimer
├─ Algorithm Parameters  the selection's signature
├─ Findings    ─ Finding     text
└─ Impressions ─ Impression  text
"""

from datetime import datetime
from hashlib import sha256
from io import BytesIO
from typing import Any

from tabon.data.formats.dicom_files import dicom_values, parse_dicom, pydicom, value_text
from tabon.data.formats.dicom_sr import BASIC_TEXT_SR
from tabon.data.formats.draft_text import DISCLAIMER, one_line, plain_draft
from tabon.data.formats.received import check_text_size
from tabon.errors import BadInputError
from tabon.text.reports import Report

TAKEN_OVER = (  # of the patient and the study; all but the first may be empty
    "StudyInstanceUID",
    "PatientName",
    "PatientID",
    "PatientBirthDate",
    "PatientSex",
    "StudyDate",
    "StudyTime",
    "StudyID",
    "AccessionNumber",
    "ReferringPhysicianName",
)
_EXPLICIT_LITTLE_ENDIAN = "1.2.840.10008.1.2.1"
_UTF_8 = "ISO_IR 192"

_Concept = tuple[str, str, str]  # scheme, code, meaning
_REPORT: _Concept = ("LN", "18748-4", "Diagnostic imaging report")
_COMMENT: _Concept = ("DCM", "121106", "Comment")
_PARAMETERS: _Concept = ("DCM", "111002", "Algorithm Parameters")
_FINDINGS: tuple[_Concept, _Concept] = (("LN", "59776-5", "Findings"), ("DCM", "121071", "Finding"))
_IMPRESSION: tuple[_Concept, _Concept] = (("LN", "19005-8", "Impressions"), ("DCM", "121073", "Impression"))


def write_sr(
    draft: Report,
    *,
    signature: str,
    about: bytes,
    seed: str | None = None,
    written: datetime | None = None,
    name: str = "the DICOM object that the draft is about",
) -> bytes:
    """Write a draft as a DICOM file that `pydicom.dcmread` and an archive can read.

    Args:
        draft: the chosen draft; its two sections are written.
        signature: the selection's signature.
        about: any DICOM file of the study that the draft is about, an image or a
            report; its patient and its study are taken over.
        seed: with it the new UIDs follow from the seed, the study and the draft;
            without it they are random.
        written: the content date and time; now where it is not given.
        name: what an error calls `about`.

    Raises:
        BadInputError: the draft is empty, or `about` cannot be used.
    """
    kept, signature = plain_draft(draft), one_line(signature)
    check_text_size(len(f"{kept.findings}{kept.impression}".encode()), "the draft")
    source = parse_dicom(about, name)
    with dicom_values(f"{name} has patient or study values that cannot be read; export it again"):
        document = _document(source, name)
        when = written or datetime.now().astimezone()
        document.ContentDate = document.SeriesDate = f"{when:%Y%m%d}"
        document.ContentTime = document.SeriesTime = f"{when:%H%M%S}"
        _say_what(document, kept, signature)
        content = "\0".join((str(document.StudyInstanceUID), kept.findings, kept.impression, signature))
        _name(document, seed, sha256(content.encode()).hexdigest())
        stream = BytesIO()
        document.save_as(stream, enforce_file_format=True)
    return stream.getvalue()


def _document(source: Any, name: str) -> Any:  # noqa: ANN401
    """Return a document of the source's patient and study, with no content yet."""
    document = pydicom().dataset.Dataset()
    document.SpecificCharacterSet = _UTF_8
    for keyword in TAKEN_OVER:
        value = value_text(source, keyword)
        if "\ufffd" in value:
            raise BadInputError(
                f"{name} has a value that is not in its Specific Character Set; export it again as UTF-8"
            )
        setattr(document, keyword, value)
    if not document.StudyInstanceUID:
        raise BadInputError(f"{name} has no Study Instance UID; give a DICOM object of the study")
    document.Modality = "SR"
    document.SeriesNumber = document.InstanceNumber = 1
    document.SeriesDescription = "Machine-written draft, unverified"
    document.Manufacturer = "tabon"
    document.CompletionFlag = "PARTIAL"
    document.CompletionFlagDescription = "Machine-written draft for research use only"
    document.VerificationFlag = "UNVERIFIED"
    document.PreliminaryFlag = "PRELIMINARY"
    document.ReferencedPerformedProcedureStepSequence = []
    document.PerformedProcedureCodeSequence = []
    return document


def _say_what(document: Any, draft: Report, signature: str) -> None:  # noqa: ANN401
    """Put in the content tree."""
    document.ValueType = "CONTAINER"
    document.ConceptNameCodeSequence = [_code(_REPORT)]
    document.ContinuityOfContent = "SEPARATE"
    document.ContentSequence = [_text(_COMMENT, DISCLAIMER), _text(_PARAMETERS, signature or "none")]
    for (heading, concept), text in ((_FINDINGS, draft.findings), (_IMPRESSION, draft.impression)):
        if text:
            container = _item("CONTAINER", heading)
            container.ContinuityOfContent = "SEPARATE"
            container.ContentSequence = [_text(concept, text)]
            document.ContentSequence.append(container)


def _name(document: Any, seed: str | None, content: str) -> None:  # noqa: ANN401
    """Put in new UIDs, and the file meta information that follows from them."""
    document.SOPClassUID = BASIC_TEXT_SR
    document.SOPInstanceUID = _uid(seed, "instance", content)
    document.SeriesInstanceUID = _uid(seed, "series", content)
    meta = pydicom().dataset.FileMetaDataset()
    meta.MediaStorageSOPClassUID = BASIC_TEXT_SR
    meta.MediaStorageSOPInstanceUID = document.SOPInstanceUID
    meta.TransferSyntaxUID = _EXPLICIT_LITTLE_ENDIAN
    document.file_meta = meta


def _uid(seed: str | None, kind: str, content: str) -> str:
    """Return a new UID: random, or from the seed and the content."""
    generate = pydicom().uid.generate_uid
    return str(generate(prefix=None) if seed is None else generate(entropy_srcs=[seed, kind, content]))


def _code(concept: _Concept) -> Any:  # noqa: ANN401
    """Return a coded concept."""
    item = pydicom().dataset.Dataset()
    item.CodingSchemeDesignator, item.CodeValue, item.CodeMeaning = concept
    return item


def _item(value_type: str, concept: _Concept) -> Any:  # noqa: ANN401
    """Return a content item that the item above it contains."""
    item = pydicom().dataset.Dataset()
    item.RelationshipType = "CONTAINS"
    item.ValueType = value_type
    item.ConceptNameCodeSequence = [_code(concept)]
    return item


def _text(concept: _Concept, text: str) -> Any:  # noqa: ANN401
    """Return a TEXT item; DICOM ends a line with CR LF."""
    item = _item("TEXT", concept)
    item.TextValue = text.replace("\n", "\r\n")
    return item
