"""DICOM structured reports to reports, and the chosen draft to a Basic Text SR document.

Text under a concept name that means Findings or Impression, its own or that of a container around
it, is that section. A document without such names is read as raw text by `tabon.text.reports`.

A draft is partial, unverified and preliminary:

    Diagnostic imaging report
    ├─ Comment               the disclaimer
    ├─ Algorithm Parameters  the selection's signature
    ├─ Findings    ─ Finding     text
    └─ Impressions ─ Impression  text
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from io import BytesIO
from types import MappingProxyType
from typing import Any, NamedTuple

from tabon._internal.dicom import in_one_sentence, is_dicom, unchecked_values
from tabon._internal.extras import require
from tabon.data.formats.documents import (
    DISCLAIMER,
    Received,
    check_file_size,
    check_text_size,
    one_line,
    plain_draft,
)
from tabon.errors import BadInputError
from tabon.text.reports import SECTIONS, Report, Section, parse_report, pieces

DEFLATED = b"1.2.840.10008.1.2.1.99"
_META_END = 1024  # the file meta information is far shorter


def pydicom() -> Any:  # noqa: ANN401
    """Return the package, or say which extra to install."""
    return require("pydicom", extra="images", feature="reading and writing DICOM")


@contextmanager
def dicom_values(message: str) -> Iterator[None]:
    """Let pydicom work on values unchecked; what it raises becomes one sentence."""
    with unchecked_values(pydicom()), in_one_sentence(message, pydicom()):
        yield


def parse_dicom(data: bytes, name: str) -> Any:  # noqa: ANN401
    """Return the dataset of a DICOM file; one that is too large, deflated or cut off is refused."""
    check_file_size(data, name)
    if not is_dicom(data):
        raise BadInputError(f"{name} is not a DICOM file; give one that begins with a preamble and DICM")
    if DEFLATED in data[:_META_END]:  # inflating has no limit
        raise BadInputError(f"{name} is a deflated DICOM file; inflate it first, for instance with dcmconv")
    stream = BytesIO(data)
    broken = f"{name} is not a whole DICOM file, or its meta values or character set are not valid"
    with dicom_values(f"{broken}; copy or export it again"):
        with pydicom().config.strict_reading():  # else an unknown character set would be shown in a warning
            dataset = pydicom().dcmread(stream)
        if stream.read(1) or any(map(_is_cut, dataset.values())):  # pydicom takes what is there
            raise BadInputError(f"{name} ends inside a value; copy it again")
    return dataset


def _is_cut(element: Any) -> bool:  # noqa: ANN401
    """Whether an element has fewer bytes than it says."""
    length, value = getattr(element, "length", None), element.value
    return isinstance(value, bytes) and length not in (None, 0xFFFFFFFF) and len(value) < length


def sequence(dataset: Any, keyword: str) -> Any:  # noqa: ANN401
    """Return the items of a sequence, none where there is none."""
    with pydicom().config.strict_reading():  # as above; the items' values are not looked at yet
        return dataset.get(keyword) or ()


def value_text(dataset: Any, keyword: str) -> str:  # noqa: ANN401
    """Return a value as text, the first of several, nothing where there is none."""
    value = dataset.get(keyword)
    if isinstance(value, list | tuple | pydicom().multival.MultiValue):
        value = value[0] if value else None
    return "" if value is None else str(value).strip()


BASIC_TEXT_SR = "1.2.840.10008.5.1.4.1.1.88.11"
SR_CLASSES = MappingProxyType(
    {
        BASIC_TEXT_SR: "Basic Text SR",
        "1.2.840.10008.5.1.4.1.1.88.22": "Enhanced SR",
        "1.2.840.10008.5.1.4.1.1.88.33": "Comprehensive SR",
        "1.2.840.10008.5.1.4.1.1.88.34": "Comprehensive 3D SR",
    }
)
SECTION_CODES: MappingProxyType[tuple[str, str], Section] = MappingProxyType(
    {
        ("LN", "59776-5"): "findings",
        ("DCM", "121070"): "findings",  # Findings
        ("DCM", "121071"): "findings",  # Finding
        ("LN", "19005-8"): "impression",
        ("DCM", "121072"): "impression",  # Impressions
        ("DCM", "121073"): "impression",  # Impression
        ("DCM", "121076"): "impression",  # Conclusions
        ("DCM", "121077"): "impression",  # Conclusion
    }
)
_ASIDE = frozenset({"HAS OBS CONTEXT", "HAS ACQ CONTEXT", "HAS CONCEPT MOD"})  # about the text, not of it
_MAX_LEVELS = 64


class _TextItem(NamedTuple):
    """One TEXT item: its section where a concept names it, and the nearest heading."""

    text: str
    section: Section | None = None
    heading: str = ""


def read_sr(data: bytes, *, name: str = "the DICOM file") -> Received:
    """Read a Basic Text, Enhanced or Comprehensive SR file with its preamble; one without text is refused."""
    dataset = parse_dicom(data, name)
    with dicom_values(f"{name} has a content tree that cannot be read; copy or export it again"):
        if value_text(dataset, "SOPClassUID") not in SR_CLASSES:
            raise BadInputError(
                f"{name} is a DICOM object of another class; give one of {', '.join(SR_CLASSES.values())}"
            )
        texts = list(_texts(dataset, _TextItem(""), name, _MAX_LEVELS))
        check_text_size(sum(len(text.text.encode()) for text in texts), name)
        joined = {
            section: "\n\n".join(text.text for text in texts if text.section == section and text.text)
            for section in (*SECTIONS, None)
        }
        coded = Report(findings=joined["findings"], impression=joined["impression"], other=joined[None])
        report = coded if not coded.is_empty else parse_report(_raw_text(texts))
        if report.is_empty:
            raise BadInputError(f"{name} has no report text; give a document with TEXT items")
        day = value_text(dataset, "StudyDate") or value_text(dataset, "ContentDate")
        is_date = re.fullmatch("[0-9]{8}", day) is not None
        flags = (value_text(dataset, flag) for flag in ("CompletionFlag", "VerificationFlag"))
        return Received(
            report=report,
            source="sections" if not coded.is_empty else "raw text",
            id=value_text(dataset, "SOPInstanceUID") or None,
            patient=value_text(dataset, "PatientID") or None,
            date=f"{day[:4]}-{day[4:6]}-{day[6:]}" if is_date else None,
            status=" ".join(filter(None, flags)) or None,
        )


def _texts(item: Any, around: _TextItem, name: str, levels: int) -> Iterator[_TextItem]:  # noqa: ANN401
    """Yield the TEXT items of a content item, in the order of the document.

    `around` has the section and the heading of the item above. Bytes that are not of the declared
    character set are an error.
    """
    if levels == 0:
        raise BadInputError(f"{name} has a content tree of over {_MAX_LEVELS} levels; export it again")
    for concept in sequence(item, "ConceptNameCodeSequence")[:1]:
        code = value_text(concept, "CodingSchemeDesignator"), value_text(concept, "CodeValue")
        heading = value_text(concept, "CodeMeaning") or around.heading
        around = _TextItem("", SECTION_CODES.get(code, around.section), heading)
    if value_text(item, "ValueType") == "TEXT":
        try:
            with pydicom().config.strict_reading():
                value = value_text(item, "TextValue")
        except (UnicodeError, LookupError):
            raise BadInputError(
                f"{name} has text that is not in its Specific Character Set; export it again as UTF-8"
            ) from None
        yield around._replace(text=value.replace("\r\n", "\n").replace("\r", "\n"))
    for child in sequence(item, "ContentSequence"):
        if value_text(child, "RelationshipType") not in _ASIDE:
            yield from _texts(child, around, name, levels - 1)


def _raw_text(texts: list[_TextItem]) -> str:
    """Return all text as one, with the headings that `tabon.text.reports` knows."""
    lines: list[str] = []
    last = ""
    for text in texts:
        header = f"{text.heading}:"
        if text.heading != last and len(tuple(pieces(header))) > 1:
            lines.append(header)
        last = text.heading
        lines.append(text.text)
    return "\n\n".join(lines)


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
    """Write the two sections of a draft as a DICOM file that `pydicom.dcmread` and an archive can read.

    `about` is any DICOM file of the study, whose patient and study are taken over. New UIDs follow from
    the seed, the study and the draft; without a seed they are random. `written` is the content's time.

    Raises:
        BadInputError: the draft is empty, or `about` cannot be used.
    """
    kept, signature = plain_draft(draft), one_line(signature)
    check_text_size(len(f"{kept.findings}{kept.impression}".encode()), "the draft")
    source = parse_dicom(about, name)
    with dicom_values(f"{name} has patient or study values that cannot be read; export it again"):
        known = {keyword: value_text(source, keyword) for keyword in TAKEN_OVER}
        if any("\ufffd" in value for value in known.values()):
            raise BadInputError(
                f"{name} has a value that is not in its Specific Character Set; export it again as UTF-8"
            )
        if not known["StudyInstanceUID"]:
            raise BadInputError(f"{name} has no Study Instance UID; give a DICOM object of the study")
        document = _document(known, kept, signature, written or datetime.now().astimezone())
        content = "\0".join((str(document.StudyInstanceUID), kept.findings, kept.impression, signature))
        digest = sha256(content.encode()).hexdigest()
        document.SOPClassUID = BASIC_TEXT_SR
        document.SOPInstanceUID = _uid(seed, "instance", digest)
        document.SeriesInstanceUID = _uid(seed, "series", digest)
        document.file_meta = pydicom().dataset.FileMetaDataset()
        document.file_meta.MediaStorageSOPClassUID = BASIC_TEXT_SR
        document.file_meta.MediaStorageSOPInstanceUID = document.SOPInstanceUID
        document.file_meta.TransferSyntaxUID = _EXPLICIT_LITTLE_ENDIAN
        stream = BytesIO()
        document.save_as(stream, enforce_file_format=True)
    return stream.getvalue()


def _document(known: dict[str, str], draft: Report, signature: str, when: datetime) -> Any:  # noqa: ANN401
    """Return a document of a patient and a study with its content tree, but without UIDs of its own."""
    sections = ((_FINDINGS, draft.findings), (_IMPRESSION, draft.impression))
    containers = [
        _item(
            heading, ValueType="CONTAINER", ContinuityOfContent="SEPARATE", ContentSequence=[_text(own, text)]
        )
        for (heading, own), text in sections
        if text
    ]
    return _dataset(
        SpecificCharacterSet="ISO_IR 192",  # UTF-8
        **known,
        Modality="SR",
        SeriesNumber=1,
        InstanceNumber=1,
        SeriesDescription="Machine-written draft, unverified",
        SeriesDate=f"{when:%Y%m%d}",
        SeriesTime=f"{when:%H%M%S}",
        ContentDate=f"{when:%Y%m%d}",
        ContentTime=f"{when:%H%M%S}",
        Manufacturer="tabon",
        CompletionFlag="PARTIAL",
        CompletionFlagDescription="Machine-written draft for research use only",
        VerificationFlag="UNVERIFIED",
        PreliminaryFlag="PRELIMINARY",
        ReferencedPerformedProcedureStepSequence=[],
        PerformedProcedureCodeSequence=[],
        ValueType="CONTAINER",
        ConceptNameCodeSequence=[_code(_REPORT)],
        ContinuityOfContent="SEPARATE",
        ContentSequence=[_text(_COMMENT, DISCLAIMER), _text(_PARAMETERS, signature or "none"), *containers],
    )


def _uid(seed: str | None, kind: str, content: str) -> str:
    """Return a new UID: random, or from the seed and the content."""
    generate = pydicom().uid.generate_uid
    return str(generate(prefix=None) if seed is None else generate(entropy_srcs=[seed, kind, content]))


def _dataset(**values: object) -> Any:  # noqa: ANN401
    """Return a DICOM dataset with these values by keyword."""
    dataset = pydicom().dataset.Dataset()
    for keyword, value in values.items():
        setattr(dataset, keyword, value)
    return dataset


def _code(concept: _Concept) -> Any:  # noqa: ANN401
    """Return a coded concept."""
    return _dataset(**dict(zip(("CodingSchemeDesignator", "CodeValue", "CodeMeaning"), concept, strict=True)))


def _item(concept: _Concept, **values: object) -> Any:  # noqa: ANN401
    """Return a content item that the item above it contains."""
    return _dataset(RelationshipType="CONTAINS", ConceptNameCodeSequence=[_code(concept)], **values)


def _text(concept: _Concept, text: str) -> Any:  # noqa: ANN401
    """Return a TEXT item; DICOM ends a line with CR LF."""
    return _item(concept, ValueType="TEXT", TextValue=text.replace("\n", "\r\n"))
