"""What is read from another system: a report and what is known of it."""

from dataclasses import dataclass

from tabon.errors import BadInputError
from tabon.text.reports import Report

MAX_FILE = 64_000_000  # bytes of one file; a bundle may hold scans beside the text
MAX_TEXT = 10_000_000  # bytes of one report's text


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A report from another system; what that system does not say is None."""

    report: Report
    source: str  # the place that the text was taken from, such as "presentedForm text/plain"
    id: str | None = None
    patient: str | None = None  # FHIR: the subject's reference; DICOM: the patient id
    date: str | None = None  # of the examination, as ISO 8601, perhaps shortened
    status: str | None = None  # FHIR: its status; DICOM: completion and verification flag


def check_file_size(data: bytes, name: str) -> None:
    """Refuse a file that is too large to be a report."""
    if len(data) > MAX_FILE:
        raise BadInputError(
            f"{name} has {len(data):,} bytes, more than {MAX_FILE:,}; give the report without its images"
        )


def check_text_size(size: int, name: str) -> None:
    """Refuse a text that is too long to be a report's."""
    if size > MAX_TEXT:
        raise BadInputError(
            f"{name} holds a text of over {MAX_TEXT:,} bytes; give one report, not an archive"
        )
