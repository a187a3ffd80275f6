"""The parser: a table of raw reports, and what holds for any text."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tabon.errors import BadInputError, UnknownNameError
from tabon.text import reports
from tabon.text.reports import (
    PARSER,
    SECTIONS,
    Report,
    is_placeholder,
    parse_report,
    pieces,
    report_from_record,
)

F, N = "Lungs are clear.", "No acute disease."

# (raw text, findings, impression, other)
RAW_REPORTS = [
    # spellings
    (f"FINDINGS: {F}\nIMPRESSION: {N}", F, N, ""),
    (f"Findings:\n{F}\n\nImpression:\n{N}\n", F, N, ""),
    (f"findings: {F}\nimpression: {N}", F, N, ""),
    (f"Finding: {F}\nImpressions: {N}", F, N, ""),
    (f"FINDINGS\n{F}\nIMPRESSION\n{N}", F, N, ""),
    (f"FINDINGS - {F}\nIMPRESSION - {N}", F, N, ""),
    (f"FINDINGS \u2013 {F}\nIMPRESSION\u2014 {N}", F, N, ""),
    (f"FINDINGS {F}\nIMPRESSION {N}", F, N, ""),
    (f"FINDINGS : {F}\r\nIMPRESSION : {N}\r\n", F, N, ""),
    (f"FINDINGS:{F}\nIMPRESSION:{N}", F, N, ""),
    (f"    FINDINGS:  {F}\n \n    IMPRESSION:  {N}\n", F, N, ""),
    (f"Findings: {F}\nConclusion: {N}", F, N, ""),
    (f"FINDINGS: {F}\nCONCLUSIONS: {N}", F, N, ""),
    (f"FINDINGS: {F}\nOPINION: {N}", F, N, ""),
    (f"Radiographic Findings: {F}\nSummary: {N}", F, N, ""),
    (f"FINDINGS: {F}\nIMPRESSION AND RECOMMENDATION: {N}", F, N, ""),
    (f"FINDINGS: {F}\nIMPRESSION/RECOMMENDATIONS: {N}", F, N, ""),
    (f"FINDINGS: {F}\nImpression & Recommendations: {N}", F, N, ""),
    (f"FINDINGS (PA and lateral): {F}\nIMPRESSION: {N}", f"(PA and lateral): {F}", N, ""),
    # markdown
    (f"## Findings\n{F}\n\n## Impression\n{N}", F, N, ""),
    (f"**Findings:** {F}\n\n**Impression:** {N}", F, N, ""),
    (f"**Findings**: {F}\n**Impression**: {N}", F, N, ""),
    (f"**FINDINGS**\n{F}\n\n### **IMPRESSION**\n{N}", F, N, ""),
    (f"__Findings__\n{F}\n__Impression__\n{N}", F, N, ""),
    (f"- **Findings**: {F}\n- **Impression**: {N}", F, N, ""),
    (f"**Findings** {F}\n**Impression** {N}", F, N, ""),
    (f"1. Findings: {F}\n2. Impression: {N}", F, N, ""),
    (f"### Findings:\n- {F}\n### Impression:\n1. {N}", f"- {F}", f"1. {N}", ""),
    # order and number
    (f"IMPRESSION: {N}\nFINDINGS: {F}", F, N, ""),
    (f"FINDINGS: {F}\nIMPRESSION: {N}\nFINDINGS: Stable.", f"{F}\n\nStable.", N, ""),
    (f"FINDINGS: None.\nIMPRESSION: {N}\nFINDINGS: {F}", F, N, ""),
    (f"FINDINGS: {F}", F, "", ""),
    (f"IMPRESSION: {N}", "", N, ""),
    (f"FINDINGS AND IMPRESSION: {F}", F, F, ""),
    (f"FINDINGS/IMPRESSION:\n{F}", F, F, ""),
    (f"**Findings & Impression:** {F}", F, F, ""),
    (f"FINDINGS AND IMPRESSION: {F}\nIMPRESSION: {N}", F, f"{F}\n\n{N}", ""),
    (F, F, "", ""),
    ("", "", "", ""),
    # one line
    (f"Findings: {F} Impression: {N}", F, N, ""),
    ("Findings: lungs clear Impression: normal", "lungs clear", "normal", ""),
    ("FINDINGS: Clear lungs IMPRESSION: Normal chest", "Clear lungs", "Normal chest", ""),
    (f"**Findings:** {F} **Impression:** {N}", F, N, ""),
    ("done. findings: clear. impression: normal.", "clear.", "normal.", "done."),
    # other headers
    (f"INDICATION: Cough.\nFINDINGS: {F}\nIMPRESSION: {N}", F, N, "INDICATION: Cough."),
    (
        f"EXAM: Chest.\nCLINICAL HISTORY: Cough.\nTECHNIQUE: PA.\nFINDINGS: {F}\nIMPRESSION: {N}",
        F,
        N,
        "EXAM: Chest.\n\nCLINICAL HISTORY: Cough.\n\nTECHNIQUE: PA.",
    ),
    (f"IMPRESSION: {N}\nRECOMMENDATIONS: CT.", "", N, "RECOMMENDATIONS: CT."),
    (f"FINDINGS: {F}\nCOMPARISON: None.\nIMPRESSION: {N}", F, N, "COMPARISON: None."),
    (f"IMPRESSION: {N}\nNOTIFICATION: So.\nADDENDUM: Seen.", "", N, "NOTIFICATION: So.\n\nADDENDUM: Seen."),
    (f"WET READ: Clear.\nFINAL REPORT\nFINDINGS: {F}", F, "", "WET READ: Clear.\n\nFINAL REPORT"),
    (f"Findings: {F} Impression: {N} Recommendation: CT.", F, N, "Recommendation: CT."),
    (f"Sure! Here is the report you asked for.\n\n**Findings:** {F}\n\n**Impression:** {N}", F, N,
     "Sure! Here is the report you asked for."),
    # subheads and lists stay inside
    ("FINDINGS:\nLUNGS: Clear.\nHEART: Big.\nIMPRESSION: Big.", "LUNGS: Clear.\nHEART: Big.", "Big.", ""),
    ("IMPRESSION:\n1. Nodule.\n2. Recommendation: CT.", "", "1. Nodule.\n2. Recommendation: CT.", ""),
    ("FINDINGS: **Heart** is big.\nIMPRESSION: Big.", "**Heart** is big.", "Big.", ""),
    # placeholders
    (f"FINDINGS: /\nIMPRESSION: {N}", "", N, ""),
    (f"FINDINGS: {F}\nIMPRESSION: N/A", F, "", ""),
    ("FINDINGS: XXXX.\nIMPRESSION: ___", "", "", ""),
    ("FINDINGS: ___ effusion.\nIMPRESSION: Normal.", "___ effusion.", "Normal.", ""),
    ("FINDINGS: See above.\nIMPRESSION: No.", "See above.", "No.", ""),
]  # fmt: skip

NO_HEADERS = [
    "There are no significant findings: lungs are clear.",
    "NO SIGNIFICANT FINDINGS: NORMAL.",
    "Clear lungs with no other\nfindings: stable.",
    "The clinical Impression was wrong. Findings are stable.",
    "An impression of the\naorta on the esophagus.",
    "FINDINGS ARE STABLE.",
    "Impression on the esophagus is seen.",
    "The **findings** are stable.",
    "**Findings** are stable.",
    "PA AND LATERAL VIEWS: CLEAR.",
    "Sub-findings: none of note.",
    "Heart normal. LUNGS: Clear. BONES: Intact.",
    "History of cough. Exam is limited. Comparison is made with an old film.",
]

FRAGMENTS = (
    "Findings", "FINDINGS", "impression", "IMPRESSION", "Comparison", "AND", "/", ":", " - ", "**", "__",
    "##", "\n", "\n\n", " ", ". ", "1. ", "Clear lungs", "no", "XXXX", "___", "None.", "(PA)", "\r\n",
)  # fmt: skip
headed = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)
anything = st.text(st.characters())  # lone surrogates included


def words(text: str) -> list[str]:
    """The words of a text without placeholders and punctuation, in alphabetical order."""
    return sorted(re.findall(r"[^\W_]+", text))


@pytest.mark.parametrize(("text", "findings", "impression", "other"), RAW_REPORTS)
def test_raw_reports(text, findings, impression, other):
    """The sections of each raw report are the ones a reader sees."""
    assert parse_report(text) == Report(findings, impression, other)


@pytest.mark.parametrize("text", NO_HEADERS)
@pytest.mark.parametrize("header", ["", "FINDINGS: ", "Findings:\n"])
def test_false_headers(header, text):
    """A header's word in running text, or another word with a colon, does not cut it."""
    assert parse_report(header + text) == Report(findings=text)


@pytest.mark.parametrize(
    "header",
    [
        *("addendum", "assessment", "attestation", "chest x-ray findings", "clinical history", "comparison"),
        *("critical results", "cxr findings", "date of exam", "detailed findings", "diagnostic impression"),
        *("disclaimer", "electronically signed by", "exam", "final impression", "follow-up recommendations"),
        *("history", "imaging findings", "indication", "key findings", "notifications", "observations"),
        *("opinion", "overall impression", "patient history", "prior study", "procedure", "reason for exam"),
        *("radiographic findings", "recommendations", "study", "summary", "technique", "time of exam"),
        *("type of study", "views", "wet read", "x-ray findings", "xray findings"),
    ],
)
def test_a_header_is_found_in_any_case(header):
    """Large letters, small ones or both, in text of ASCII and in other text."""
    for written in (header.upper(), header.capitalize(), header):
        for body in ("Clear lungs.", "Herz normal gro\u00df."):
            assert [piece.header for piece in pieces(f"{body}\n\n{written}: {body}")] == ["", f"{written}:"]


@settings(deadline=None)
@given(headed)
def test_the_quick_search_for_headers_finds_what_the_slow_one_finds(text):
    """ASCII text is searched in small letters; the pieces are those of the search in any case."""
    found = list(pieces(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports, "_SMALL_PHRASE", reports._PHRASE)
        assert list(pieces(text)) == found


def test_the_table_is_large_enough():
    """At least thirty raw reports are labelled, each once."""
    assert len({text for text, *_ in RAW_REPORTS}) == len(RAW_REPORTS) >= 30


@settings(deadline=None)
@given(st.one_of(anything, headed))
@example("**Findings:****Impression:**")
@example("\ud800 FINDINGS: \x00")
def test_the_pieces_spell_the_text(text):
    """Segmentation is lossless for any string: headers and bodies in a row are the input."""
    assert "".join(piece.header + piece.body for piece in pieces(text)) == text


@settings(deadline=None)
@given(st.one_of(anything, headed))
def test_no_word_is_lost(text):
    """Each word of a body that is no placeholder is in the section that the body belongs to."""
    report, found = parse_report(text), list(pieces(text))
    if len(found) == 1:
        assert report == Report(findings=text)
        return
    for name in SECTIONS:
        bodies = [
            piece.body for piece in found if piece.name in {name, "both"} and not is_placeholder(piece.body)
        ]
        assert words(report.section(name)) == words(" ".join(bodies))
    rest = (piece for piece in found if piece.name == "other")
    assert words(report.other) == words(" ".join(piece.header + piece.body for piece in rest))


@settings(deadline=None)
@given(headed)
def test_a_header_is_only_header_words(text):
    """Nothing but decoration and the words of a header is taken for a header."""
    for piece in pieces(text):
        assert set(re.findall(r"[^\W\d_]+", piece.header.casefold())) <= {
            "findings",
            "impression",
            "comparison",
            "and",
        }


@settings(deadline=None)
@given(st.text(), st.text())
def test_parsing_its_own_sections_changes_nothing(findings, impression):
    """A report written with plain headers is read as it was, unless the text holds headers."""
    report = Report(" ".join(findings.split()), " ".join(impression.split()))
    text = f"FINDINGS: {report.findings}\nIMPRESSION: {report.impression}"
    if len(list(pieces(text))) == 3:
        assert parse_report(text) == report


@pytest.mark.parametrize(
    "unit",
    [
        "FINDINGS: ",
        "findings ",
        "*",
        "_",
        "#",
        " ",
        "\n",
        "- ",
        "1. ",
        "FINDINGS (",
        "final ",
        "AND FINDINGS ",
        "**Findings",
        ":",
    ],
)
def test_long_hostile_text_is_parsed(unit):
    """Each look around a phrase has a fixed width, so two hundred thousand characters are no trouble."""
    assert isinstance(parse_report(unit * (200_000 // len(unit))), Report)


@pytest.mark.parametrize(
    "text",
    ["/", "-", "--", "None", "None.", "N/A", "NA", "n.a.", "nil", "nan", "null", "not available",
     "Not applicable.", "not provided", "XXXX", "XXXX XXXX.", "___", "[**Name**]", "", " \n", "."],
)  # fmt: skip
def test_placeholders_are_empty_sections(text):
    """A section that only says that there is none has one spelling."""
    assert Report(findings=text, impression=text) == Report()
    assert Report(findings=text).is_empty


@pytest.mark.parametrize("text", ["Normal.", "No.", "see above", "XXXX normal", "1.", "None seen."])
def test_short_text_is_no_placeholder(text):
    """Short answers are text."""
    assert Report(impression=text).impression == text
    assert not Report(impression=text).is_empty


def test_section_by_name():
    """A section is had by its name, and another name is refused with the known ones."""
    report = Report("a", "b")
    assert [report.section(name) for name in SECTIONS] == ["a", "b"]
    with pytest.raises(UnknownNameError, match="Did you mean 'findings'"):
        report.section("finding")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (f"FINDINGS: {F}", Report(F)),
        ({"findings": F, "impression": N}, Report(F, N)),
        ({"findings": F}, Report(F)),
        ({"impression": N, "findings": None}, Report("", N)),
        ({"text": f"IMPRESSION: {N}", "model": "m"}, Report("", N)),
        ({"findings": F, "text": "IMPRESSION: x"}, Report(F)),
    ],
)
def test_records(value, expected):
    """A string, an object with sections and an object with text are reports."""
    assert report_from_record(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"findings": ["secret"]}, "'findings' of a report is list; write it as a string or as null"),
        ({"findings": "secret", "impression": 3}, "'impression' of a report is int; "),
        ({"text": {"a": "secret"}}, "'text' of a report is dict; "),
        ({"text": None}, "neither"),
        ({"Report": "secret"}, 'neither "findings" nor "impression" nor "text"'),
        ({}, "give it at least one of them"),
        (["secret"], "a report is list; write it as a string or as an object"),
        (None, "a report is NoneType; "),
    ],
)
def test_bad_records(value, message):
    """What is no report is refused in one sentence that names the key and the type, never the text."""
    with pytest.raises(BadInputError, match=re.escape(message)) as caught:
        report_from_record(value)
    assert "secret" not in str(caught.value)


def test_the_parser_has_a_version():
    """A signature can name the parser."""
    assert re.fullmatch(r"tabon-report-\d+", PARSER)
