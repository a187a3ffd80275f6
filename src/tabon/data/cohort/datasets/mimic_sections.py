r"""Sections of MIMIC-CXR reports, by the rules of that data set.

A header is a line that begins with words in capitals and a colon. What they
mean follows the script that comes with MIMIC-CXR, in our own words:

* Of several sections of one name the last one with text counts. Wet reads and
  addenda come before the final report.
* "FINDINGS AND IMPRESSION" and "CONCLUSION" are the impression. This differs
  from `tabon.parse_report`, where the former counts for both sections.
* A header that describes the study ("CHEST, TWO VIEWS", "PA AND LATERAL") opens
  the findings. An empty one is a title.
* Misspelled headers ("IMPRESSON", "FINIDNGS") count as what they resemble.
* The last-paragraph rule: if neither findings nor impression has a header, what
  follows the first paragraph of the last section is the impression.

Where we differ from the script: a header of an organ ("LUNGS:") goes on with the section above
it; page breaks "(Over) ... (Cont)" are taken out; a report without header and paragraphs is the
impression; the list of study ids with hand-made cuts is not used; a comparison is never the
conclusion. What is not a section goes to `other`.
"""

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal, NamedTuple

from tabon.text.reports import Report

_Name = Literal["findings", "impression", "organ", "other"]

_HEADER = re.compile(r"^[ \t]*([A-Z][A-Z ()/,&-]{2,79}):(?=\s|\Z)", re.MULTILINE)
_PAGE_BREAK = re.compile(r"\(Over\).{0,400}?\(Cont\)", re.DOTALL)
_TITLE = re.compile(r"\s*(?:(?:FINAL|PRELIMINARY) (?:REPORT|ADDENDUM)|_{5,})[ \t]*(?=\n|\Z)")
_PARAGRAPH = re.compile(r"\n[ \t\r]*(?:\n[ \t\r]*)+")

_IMPRESSION = re.compile(r"IMPRESSION|CONCLUSION")
_OTHER = re.compile(
    r"ADDENDUM|COMMENT|COMPARISON|CLINICAL|\bDATE|^EXAM|TYPE OF EXAM|HISTORY|INDICATION|INFORMATION|NOTE|"
    r"NOTIFICATION|PROCEDURE|\bREAD|REASON|RECOMMENDATION|REFERENCE|TECHNIQUE|WETREAD"
)
_STUDY = re.compile(r"CHEST|PORTABLE|FRONTAL|LATERAL|\b(?:AP|PA)\b|\bVIEWS?\b|RIBS|RADIOGRAPH")
_ORGAN = re.compile(
    r"(?:THE )?(?:LUNGS?|AIRWAYS?|HEART|CARDIAC|CARDIOMEDIASTIN\w+|MEDIASTIN\w+|HIL[AI]|PLEURA\w*|"
    r"DIAPHRAGM|BONES?|OSSEOUS|SOFT TISSUES?|(?:UPPER )?ABDOMEN|LINES?|TUBES?|(?:SUPPORT )?DEVICES?|"
    r"CATHETERS?)\b[A-Z ()/,&-]*"
)
_RESEMBLES = 0.8  # share of common letters of a misspelled header


class _Section(NamedTuple):
    header: str  # with its colon
    name: _Name
    body: str


@lru_cache(maxsize=4096)
def section_name(header: str) -> _Name:
    """Return what a header in capitals opens.

    >>> [section_name(h) for h in ("FINDINGS", "FINDINGS/IMPRESSION", "IMPRESSON", "CHEST, TWO VIEWS")]
    ['findings', 'impression', 'impression', 'findings']
    >>> [section_name(h) for h in ("WET READ", "REASON FOR CHEST X-RAY", "LUNGS", "RECOMMENDATION(S)")]
    ['other', 'other', 'organ', 'other']
    """
    if _IMPRESSION.search(header) or _resembles(header, "IMPRESSION"):
        return "impression"
    if "FINDING" in header or _resembles(header, "FINDINGS"):
        return "findings"
    if _OTHER.search(header):
        return "other"
    if _ORGAN.fullmatch(header):
        return "organ"
    return "findings" if _STUDY.search(header) else "other"


def _resembles(header: str, word: str) -> bool:
    """Whether a header is a misspelling of a word."""
    return SequenceMatcher(None, header, word).ratio() >= _RESEMBLES


def mimic_report(text: str) -> Report:
    r"""Find the sections of a MIMIC-CXR report; never raises.

    >>> mimic_report(" FINAL REPORT\n INDICATION: Cough.\n \n IMPRESSION: Normal.\n").other
    'INDICATION: Cough.'
    >>> mimic_report(" FINAL REPORT\n HISTORY: Cough.\n \n No pneumonia.\n \n Heart normal.\n").impression
    'No pneumonia.\n\nHeart normal.'
    """
    lines = (line.strip() for line in _PAGE_BREAK.sub("\n", text).splitlines())
    sections = list(_united(_sections("\n".join(lines))))
    chosen = {section.name: section for section in sections if section.body}  # the last of each name
    findings, impression = chosen.get("findings"), chosen.get("impression")
    if findings is None and impression is None:  # the last-paragraph rule
        final = sections.pop()
        first, _, rest = final.body.partition("\n\n")
        if not rest and not sections:
            first, rest = "", first
        return Report(impression=rest, other=_rest([*sections, final._replace(body=first)]))
    return Report(
        findings="" if findings is None else findings.body,
        impression="" if impression is None else impression.body,
        other=_rest(section for section in sections if section is not findings and section is not impression),
    )


def _sections(text: str) -> Iterator[_Section]:
    """Cut a text at its headers; what comes before the first one has no header."""
    name: _Name = "other"
    header, start = "", 0
    for found in _HEADER.finditer(text):
        yield _Section(header, name, _without_title(text[start : found.start()]))
        header, name, start = found[0].strip(), section_name(found[1].strip()), found.end()
    yield _Section(header, name, _without_title(text[start:]))


def _without_title(text: str) -> str:
    """Take "FINAL REPORT" and ruled lines from the ends of a section."""
    kept = [part for part in text.split("\n") if not _TITLE.fullmatch(part)]
    return _PARAGRAPH.sub("\n\n", "\n".join(kept)).strip()


def _united(sections: Iterator[_Section]) -> Iterator[_Section]:
    """Give organ headers to the findings or impression above them."""
    above = next(sections)
    for section in sections:
        if section.name == "organ" and above.name in {"findings", "impression"}:
            above = above._replace(body=f"{above.body}\n{section.header} {section.body}".strip())
        else:
            yield above
            above = section
    yield above


def _rest(sections: Iterable[_Section]) -> str:
    """Join what is no section, headers included."""
    texts = (f"{section.header} {section.body}".strip() for section in sections)
    return "\n\n".join(filter(None, texts))
