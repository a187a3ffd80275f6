r"""The text of a draft as other systems may show it.

Line ends become `\n`, other control characters become blanks, and what UTF-8 or
XML cannot hold becomes a question mark. All other text stays as it is.
"""

import re

from tabon.errors import BadInputError
from tabon.text.reports import Report

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
    """Return the draft's two sections in plain text.

    Raises:
        BadInputError: the draft has no text.
    """
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
