"""DICOM structured reports to reports.

Text under a concept name that means Findings or Impression, its own or that of
a container around it, is that section. A document without such names is read as
raw text by `tabon.text.reports`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tabon.data.formats.dicom_files import dicom_values, parse_dicom, pydicom, sequence, value_text
from tabon.data.formats.received import Received, check_text_size
from tabon.errors import BadInputError
from tabon.text.reports import SECTIONS, Report, Section, parse_report, pieces

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
_DATE_LENGTH = 8


@dataclass(frozen=True, slots=True)
class _Text:
    """One TEXT item: its section where a concept names it, and the nearest heading."""

    text: str
    section: Section | None
    heading: str


def read_sr(data: bytes, *, name: str = "the DICOM file") -> Received:
    """Read a Basic Text, Enhanced or Comprehensive SR document.

    Args:
        data: a DICOM file with its preamble, not deflated.
        name: what an error calls the file.

    Raises:
        BadInputError: not such a file, cut off, or without text.
    """
    dataset = parse_dicom(data, name)
    with dicom_values(f"{name} has a content tree that cannot be read; copy or export it again"):
        if value_text(dataset, "SOPClassUID") not in SR_CLASSES:
            raise BadInputError(
                f"{name} is a DICOM object of another class; give one of {', '.join(SR_CLASSES.values())}"
            )
        texts = list(_texts(dataset, None, "", name, _MAX_LEVELS))
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
        is_date = len(day) == _DATE_LENGTH and day.isascii() and day.isdigit()
        flags = (value_text(dataset, flag) for flag in ("CompletionFlag", "VerificationFlag"))
        return Received(
            report=report,
            source="sections" if not coded.is_empty else "raw text",
            id=value_text(dataset, "SOPInstanceUID") or None,
            patient=value_text(dataset, "PatientID") or None,
            date=f"{day[:4]}-{day[4:6]}-{day[6:]}" if is_date else None,
            status=" ".join(filter(None, flags)) or None,
        )


def _texts(
    item: Any,  # noqa: ANN401
    section: Section | None,
    heading: str,
    name: str,
    levels: int,
) -> Iterator[_Text]:
    """Yield the TEXT items of a content item, in the order of the document."""
    if levels == 0:
        raise BadInputError(f"{name} has a content tree of over {_MAX_LEVELS} levels; export it again")
    for concept in sequence(item, "ConceptNameCodeSequence")[:1]:
        code = value_text(concept, "CodingSchemeDesignator"), value_text(concept, "CodeValue")
        section = SECTION_CODES.get(code, section)
        heading = value_text(concept, "CodeMeaning") or heading
    if value_text(item, "ValueType") == "TEXT":
        yield _Text(_strict_text(item, name), section, heading)
    for child in sequence(item, "ContentSequence"):
        if value_text(child, "RelationshipType") not in _ASIDE:
            yield from _texts(child, section, heading, name, levels - 1)


def _strict_text(item: Any, name: str) -> str:  # noqa: ANN401
    """Return an item's text; bytes that are not of the declared character set are an error."""
    try:
        with pydicom().config.strict_reading():
            value = value_text(item, "TextValue")
    except (UnicodeError, LookupError):
        raise BadInputError(
            f"{name} has text that is not in its Specific Character Set; export it again as UTF-8"
        ) from None
    return value.replace("\r\n", "\n").replace("\r", "\n")


def _raw_text(texts: list[_Text]) -> str:
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
