r"""What tabon takes from another system and gives to it: a received report, and a draft as plain text.

In a draft line ends become `\n`, other control characters become blanks, and what UTF-8 or
XML cannot hold becomes a question mark. All other text stays as it is.
"""

import re
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


DISCLAIMER = "Research use only, not a medical device; unverified machine-written draft."

_LINE_END = re.compile(r"\r\n?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_UNSAYABLE = re.compile("[\ud800-\udfff\ufffd-\uffff]")


def plain(text: str) -> str:
    r"""Return a text that FHIR and DICOM can hold.

    >>> plain("Clear.\r\nNo\x0cedema.")
    'Clear.\nNo edema.'
    """
    return _UNSAYABLE.sub("?", _CONTROL.sub(" ", _LINE_END.sub("\n", text)))


def plain_draft(draft: Report) -> Report:
    """Return the draft's two sections in plain text; a draft without text is refused."""
    kept = Report(findings=plain(draft.findings), impression=plain(draft.impression))
    if kept.is_empty:
        raise BadInputError("the draft has neither findings nor an impression; choose a draft with text")
    return kept


def presented_text(draft: Report, *, signature: str) -> str:
    """Return a draft as one text: the disclaimer, the signature and the sections under their headers."""
    parts = (
        ("DISCLAIMER", f"{DISCLAIMER}\nChosen by tabon: {signature}"),
        ("FINDINGS", draft.findings),
        ("IMPRESSION", draft.impression),
    )
    return "\n\n".join(f"{header}:\n{text}" for header, text in parts if text) + "\n"


def one_line(text: str) -> str:
    """Return a text on one line: so a signature cannot look like a section."""
    return " ".join(plain(text).split())
