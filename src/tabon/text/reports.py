"""Raw report text to its two sections.

A radiologist's report and a language model's draft arrive as text with headers
in many spellings. `parse_report` cuts such a text at its headers and never
loses a word: what is neither Findings nor Impression is kept as `other`.

    text ─▶ pieces (header, name, body), which spell the text again ─▶ Report
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, cast

from tabon.errors import BadInputError, UnknownNameError

PARSER: Final = "tabon-report-1"  # any change in behaviour bumps this number

Section = Literal["findings", "impression"]
SECTIONS: Final[tuple[Section, ...]] = ("findings", "impression")

DEIDENTIFIED: Final = r"\[\*\*[^\]*]{0,80}\*\*\]|\b[Xx]{3,}\b|_{3,}"
"""What takes the place of a name or a date: `[**Name**]`, `XXXX`, `___`."""

_DEIDENTIFIED = re.compile(DEIDENTIFIED)
_NOTHING = re.compile(r"n/a|n\.a|na|nan|nil|none|null|not (?:applicable|available|provided)", re.IGNORECASE)


def is_placeholder(text: str) -> bool:
    """Whether a section's text says only that there is no text.

    >>> [is_placeholder(text) for text in ("--", "None.", "XXXX", "No.", "Normal.")]
    [True, True, True, False, False]
    """
    if not begins_with_a_word(text.lstrip()):
        words = _DEIDENTIFIED.sub("", text)
        if not any(character.isalnum() for character in words):
            return True
    return _NOTHING.fullmatch(text.strip(" \t\r\n.()[]<>*_\"'")) is not None


def begins_with_a_word(text: str) -> bool:
    """Whether a text's first character is a letter or digit that no de-identification token begins with.

    >>> begins_with_a_word("Clear lungs."), begins_with_a_word("XXXX"), begins_with_a_word("- Clear lungs.")
    (True, False, False)
    """
    first = text[:1]
    return first.isalnum() and first not in "Xx"


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The two sections that are compared, and the rest.

    Placeholders such as "None." or "XXXX" become the empty string, so that an
    empty section has one spelling.

    Args:
        findings: the text of this section, without its header.
        impression: the text of this section, without its header.
        other: all else, headers included; it is kept and not compared.

    >>> report = Report(findings="Lungs are clear.", impression="N/A")
    >>> report, report.impression
    (Report(findings=3 words, impression=0 words), '')
    """

    findings: str = ""
    impression: str = ""
    other: str = ""  # headers included

    def __post_init__(self) -> None:
        """Replace placeholders, and strip blanks."""
        for name in SECTIONS:
            text = getattr(self, name)
            object.__setattr__(self, name, "" if is_placeholder(text) else text.strip())

    def __repr__(self) -> str:
        """Count the words; a report's text is not for logs."""
        counts = (f"{name}={len(text.split())} words" for name, text in self.sections().items())
        return f"Report({', '.join(counts)})"

    def section(self, name: Section) -> str:
        """The text of one section; another name is an UnknownNameError.

        Args:
            name: findings or impression.
        """
        if name not in SECTIONS:
            raise UnknownNameError("section", name, SECTIONS)
        return self.findings if name == "findings" else self.impression

    def sections(self) -> dict[str, str]:
        """The two sections by name, as records hold them."""
        return {"findings": self.findings, "impression": self.impression}

    @property
    def is_empty(self) -> bool:
        """Whether both sections are empty."""
        return not (self.findings or self.impression)


# --- the words that head a section ---------------------------------------------------

_Name = Literal["findings", "impression", "both", "other"]
_NAMES: Final[tuple[_Name, ...]] = ("both", "impression", "findings", "other")

# In each group the longer phrase comes before its own beginning. A blank in a
# phrase is one to three blanks in a report; " and " is also "&", "/" or "+".
_PHRASES: Final[Mapping[_Name, str]] = {
    "both": r"findings? and (?:impressions?|conclusions?)|(?:impressions?|conclusions?) and findings?",
    "impression": (
        r"(?:final |overall |radiographic |radiological |radiologic |diagnostic )?"
        r"(?:impressions?|conclusions?|opinion|summary|assessment)"
        r"(?: and (?:recommendations?|plan|comments?|opinion|conclusions?|summary|impressions?))?"
    ),
    "findings": (
        r"(?:radiographic |radiological |radiologic |imaging |chest |chest x-?ray |cxr |x-?ray |key |"
        r"detailed )?findings?|observations?"
    ),
    "other": (
        r"clinical (?:impression|findings|history and indication|history|indications?|information|data|"
        r"details|statement|context|question|background)|"
        r"(?:history|indications?) and (?:history|indications?|reason)|"
        r"(?:reason|indications?) for (?:the )?(?:exam|examination|study|test|visit)|"
        r"patient (?:history|information)|history of present illness|history|indications?|"
        r"(?:date|type|time) of (?:exam|examination|study)|"
        r"comparisons? and techniques?|techniques? and comparisons?|"
        r"comparisons?(?: studies| study| exams?)?|prior studies|prior study|"
        r"(?:imaging |exam |examination )?techniques?|(?:exam|examination|study|procedure)(?: type| date)|"
        r"examinations?|exams?|procedures?|study|views?|projections?|"
        r"(?:follow-?up )?recommendations?(?: and plan)?|"
        r"notifications?|communications?|critical results?|"
        r"addendum|addenda|attestation|disclaimer|electronically signed by|dictated by|"
        r"preliminary report|final report|wet read|prelim(?:inary)? read|preliminary interpretation"
    ),
}


def _spelled(phrases: str) -> str:
    """The phrases with the blanks and the "and"s that reports write."""
    groups = (group.replace(" ", r"[ \t]{1,3}") for group in phrases.split(" and "))
    return r"(?:[ \t]{1,3}and[ \t]{1,3}|[ \t]{0,3}[&/+][ \t]{0,3})".join(groups)


_SPELLED = "|".join(f"(?P<{name}>{_spelled(_PHRASES[name])})" for name in _NAMES)
_PHRASE = re.compile(rf"[\W_](?:{_SPELLED})(?![^\W_])", re.IGNORECASE)  # after what is no letter or digit
_BEGINNINGS = (  # of all phrases: most words have none of them
    r"a(?:dd|ss|tt)|c(?:he|li|o[mn]|ri|xr)|d(?:at|et|i[acs])|e(?:le|xa)|f(?:in|ol)|his|i(?:ma|mp|nd)|key|not|"
    r"o(?:bs|pi|ve)|p(?:at|r[eio])|r(?:ad|e[ac])|s(?:tu|um)|t(?:ec|im|yp)|vie|wet|x(?:-r|ra)"
)
_SMALL_PHRASE = re.compile(rf"[^a-z0-9](?={_BEGINNINGS})(?:{_SPELLED})(?![a-z0-9])")  # six times as fast
_BOLD = r"(?:\*{1,3}|__(?!_))"
_DASH = r"[-\u2013\u2014]"
_ENDING = re.compile(
    rf"(?P<colon>{_BOLD}?[ \t]{{0,4}}[:\uff1a])"
    r"|(?P<note>(?=[ \t]{0,4}\([^()\n]{0,60}\)[ \t]{0,4}:))"
    rf"|(?P<dash>{_BOLD}?[ \t]{{0,4}}{_DASH}{{1,2}}(?=\s))"
    rf"|(?P<alone>{_BOLD}?[ \t]{{0,4}}(?=[\r\n]|\Z))"
    rf"|(?P<bold>{_BOLD}(?=[ \t]{{1,4}}[^\sa-z]))"
    r"|(?P<bare>(?=[ \t]{1,8}(?:[A-Z][a-z]|\d{1,2}[.)])))"
)
_LINE_DECORATION = re.compile(rf"[\s\ufeff>#*\u2022-]*(?P<number>\d{{1,2}}[.)][ \t]*)?{_BOLD}?")
_BOLD_BEFORE = re.compile(r"(?:\*{1,3}|(?<!_)__)\Z")
_BOLD_AFTER = re.compile(rf"[ \t]?{_BOLD}")
_LIST_NUMBER = re.compile(r"\(?\d{1,2}[.)]")
_LONGEST_DECORATION = 16
_SENTENCE_END = ".!?;:)]*_\"'"

# A word before "findings:" or "COMPARISON:" that makes it part of a sentence.
_QUALIFIER = re.compile(
    r"a|above|abnormal|acute|additional|all|and|any|are|chest|clinical|critical|following|for|frontal|important|"
    r"in|incidental|is|key|lateral|main|my|negative|new|no|normal|of|old|on|or|other|our|overall|positive|"
    r"previous|prior|relevant|same|significant|such|the|these|this|to|two|under|with|without|your",
    re.IGNORECASE,
)


class _Header(NamedTuple):  # or a phrase that may be one
    start: int
    end: int
    name: _Name


def _decoration_start(text: str, phrase: _Header) -> int | None:
    """Where the line of a phrase begins, if only decoration is before the phrase."""
    start = phrase.start
    floor = max(0, start - _LONGEST_DECORATION)
    newline = text.rfind("\n", floor, start)
    if newline < 0 < floor:
        return None
    line = 0 if newline < 0 else newline + 1
    if line == start:
        return line
    decoration = _LINE_DECORATION.fullmatch(text, line, start)
    if decoration is None or (decoration["number"] and phrase.name == "other"):
        return None
    return line


def _is_wrapped(text: str, line: int) -> bool:
    """Whether the line that begins here goes on with the sentence of the line before."""
    before = text[max(0, line - 200) : line]
    words = before.rstrip()
    if not words or before[len(words) :].count("\n") > 1:
        return False
    return words[-1] not in _SENTENCE_END


def _heads_a_line(text: str, phrase: _Header, ending: str, line: int) -> bool:
    """Whether a phrase at the beginning of a line is a header."""
    words = text[phrase.start : phrase.end]
    if ending in {"colon", "note"}:
        return words[0].isupper() or not _is_wrapped(text, line)
    if ending == "bare":
        return words.isupper()
    if ending == "bold":
        return _BOLD_BEFORE.search(text, line, phrase.start) is not None
    return words[0].isupper()


def _heads_inline(text: str, phrase: _Header, start: int) -> bool:
    """Whether a phrase with a colon, in the middle of a line, is a header.

    It is after the end of a sentence, and in capitals where the text is not. Elsewhere
    it needs a capital (all capitals for the lesser headers) and a word before it that
    does not claim it, as "NO SIGNIFICANT" claims "FINDINGS:".
    """
    before = text[max(0, start - 40) : start]
    words = before.split()
    if start and not before[-1:].isspace():
        return False
    if not words or words[-1][-1] in _SENTENCE_END:
        return not (words and phrase.name == "other" and _LIST_NUMBER.fullmatch(words[-1]))
    word, spelled = words[-1].strip("(,-"), text[phrase.start : phrase.end]
    if spelled.isupper() and not word.isupper():
        return True
    loud = spelled.isupper() or (spelled[0].isupper() and phrase.name != "other")
    return loud and _QUALIFIER.fullmatch(word) is None


def _header(text: str, phrase: _Header) -> _Header | None:
    """The header that a phrase is, with its decoration; None in running text."""
    ending = _ENDING.match(text, phrase.end)
    if ending is None:
        return None
    bold = _BOLD_BEFORE.search(text, max(0, phrase.start - 4), phrase.start)
    start, kind = _decoration_start(text, phrase), str(ending.lastgroup)
    if start is not None:
        heads = _heads_a_line(text, phrase, kind, start)
    else:
        start = bold.start() if bold else phrase.start
        loud = bold is not None and text[phrase.start].isupper()
        heads = kind == "colon" and (loud or _heads_inline(text, phrase, start))
    if not heads:
        return None
    is_open = bold is not None and not ending[0].startswith(("*", "_"))
    closing = _BOLD_AFTER.match(text, ending.end()) if is_open else None
    return _Header(start, closing.end() if closing else ending.end(), phrase.name)


class Piece(NamedTuple):
    """A header, the section it opens, and the text up to the next header."""

    header: str
    name: _Name
    body: str


def pieces(text: str) -> Iterator[Piece]:
    """Cut a text at its headers; the pieces in a row spell the text again.

    The first piece is what comes before the first header, often nothing.

    >>> for piece in pieces("Findings: Clear. Impression: Normal."):
    ...     print(tuple(piece))
    ('', 'other', '')
    ('Findings:', 'findings', ' Clear. ')
    ('Impression:', 'impression', ' Normal.')
    """
    here = _Header(0, 0, "other")
    phrases = _SMALL_PHRASE.finditer(f" {text.lower()}") if text.isascii() else _PHRASE.finditer(f" {text}")
    for phrase in phrases:  # its first character is the one before it: its start is that in the text itself
        found = _header(text, _Header(phrase.start(), phrase.end() - 1, cast("_Name", phrase.lastgroup)))
        if found is None:
            continue
        start = max(found.start, here.end)  # two headers may claim the same decoration
        yield Piece(text[here.start : here.end], here.name, text[here.end : start])
        here = _Header(start, found.end, found.name)
    yield Piece(text[here.start : here.end], here.name, text[here.end :])


def parse_report(text: str) -> Report:
    r"""Find the sections of a raw report; never raises and never loses a word.

    A header that comes twice is one section. "FINDINGS AND IMPRESSION" counts
    for both. Text before the first header and under other headers goes to
    `other`. Text with no header at all is findings.

    Args:
        text: as a radiologist or a model wrote it.

    >>> parse_report("**Findings:** Clear lungs.\n\n**Impression:** Normal chest.").sections()
    {'findings': 'Clear lungs.', 'impression': 'Normal chest.'}
    >>> parse_report("Lungs are clear.").findings
    'Lungs are clear.'
    """
    found = tuple(pieces(text))
    if len(found) == 1:
        return Report(findings=text)
    texts: dict[str, list[str]] = {"findings": [], "impression": [], "other": []}
    for header, name, body in found:
        if name == "other":
            texts["other"].append(f"{header}{body}".strip())
        elif not is_placeholder(body):
            for section in SECTIONS if name == "both" else (name,):
                texts[section].append(body.strip())
    return Report(**{name: "\n\n".join(filter(None, parts)) for name, parts in texts.items()})


def _string_at(record: Mapping[object, object], key: str) -> str:
    """The string under a key; null or no key is the empty string."""
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadInputError(f"{key!r} of a report is {type(value).__name__}; write it as a string or as null")
    return value


ReportLike = Report | str | Mapping[str, Any]
"""A report, its raw text, or a record with "findings" and "impression" or raw "text"."""


def report_from_record(value: object) -> Report:
    """A report as it is, or the one of a JSON value: raw text, or an object as in `ReportLike`.

    Raises:
        BadInputError: the value is none of these. The message has no report text.

    >>> report_from_record({"findings": "Clear.", "impression": None}).sections()
    {'findings': 'Clear.', 'impression': ''}
    """
    if isinstance(value, Report):
        return value
    if isinstance(value, str):
        return parse_report(value)
    if not isinstance(value, Mapping):
        raise BadInputError(
            f"a report is {type(value).__name__}; write it as a string "
            'or as an object with "findings" and "impression"'
        )
    if "findings" in value or "impression" in value:
        return Report(findings=_string_at(value, "findings"), impression=_string_at(value, "impression"))
    if value.get("text") is None:
        raise BadInputError(
            'a report object has neither "findings" nor "impression" nor "text"; give it at least one of them'
        )
    return parse_report(_string_at(value, "text"))
