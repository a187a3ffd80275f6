"""The parser and the splitter on all 3,955 Open-i reports."""

import hashlib
import json
import re
from collections import Counter

import pytest

from every_rule import every_rule
from openi import openi_reports, openi_sections
from tabon.text.reports import SECTIONS, parse_report
from tabon.text.sentences import LEADING, MODIFIERS, SPLITTER, split_sentences

pytestmark = pytest.mark.openi

LABELS = ("COMPARISON", "INDICATION", "FINDINGS", "IMPRESSION")
A_REPORT_IN_A_REPORT = "2415"  # its impression holds a whole second report, headers and all
A_WORD_TOO_MUCH = ("1705", "2754", "3545")  # on one line "... chest FINDINGS:" reads as "chest findings:"


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    """All sentences of all sections, in order."""
    return [
        sentence
        for _, report in openi_reports()
        for section in SECTIONS
        for sentence in split_sentences(report.section(section))
    ]


def collapsed(text: str) -> str:
    """The text with one blank for each run of blanks."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("joint", "known"),
    [
        ("\n", {A_REPORT_IN_A_REPORT}),
        ("\n\n", {A_REPORT_IN_A_REPORT}),
        (" ", {A_REPORT_IN_A_REPORT, *A_WORD_TOO_MUCH}),
    ],
    ids=["lines", "paragraphs", "one line"],
)
def test_the_sections_of_an_assembled_report_are_found(joint, known):
    """Joined with headers and parsed again, every report but the known ones has the sections it had."""
    wrong = set()
    for (number, sections), (_, report) in zip(openi_sections(), openi_reports(), strict=True):
        parsed = parse_report(joint.join(f"{label}: {sections[label]}" for label in LABELS))
        if any(collapsed(parsed.section(name)) != collapsed(report.section(name)) for name in SECTIONS):
            wrong.add(number)
    assert wrong == known


def test_counts_of_reports():
    """How many reports there are, and how many have each section."""
    reports = [report for _, report in openi_reports()]
    counts = Counter(section for report in reports for section in SECTIONS if report.section(section))
    assert len(reports) == 3955
    assert counts == {"findings": 3425, "impression": 3921}
    assert sum(report.is_empty for report in reports) == 28


def test_counts_of_sentences(sentences):
    """The golden numbers of this splitter; they change only with its version."""
    assert SPLITTER == "tabon-sentences-1+sentencex-1.0.32"
    assert (len(sentences), len(set(sentences))) == (22845, 8597)


def test_the_shortcuts_change_nothing():
    """Asking every rule about every section gives the same sentences, as from the start."""
    texts = [text for _, sections in openi_sections() for text in sections.values()]
    split = [split_sentences(text) for text in texts]
    with every_rule():
        assert [split_sentences(text) for text in texts] == split
    digest = hashlib.sha256(json.dumps(split).encode()).hexdigest()
    assert digest == "d5f2b0f36c3ae9e5449269676d65ee888012cd901d7419bcd4958cc8e9e959eb"


def test_no_sentence_is_two(sentences):
    """No sentence is long enough to be several that were not split."""
    assert max(len(sentence.split()) for sentence in sentences) <= 100


def test_no_sentence_is_cut_at_an_abbreviation(sentences):
    """No sentence ends in an abbreviation that leads to the next word."""
    ending = re.compile(rf"(?<![^\W_])(?:{LEADING}|{MODIFIERS})\.\Z", re.IGNORECASE)
    assert [sentence for sentence in set(sentences) if ending.search(sentence)] == []


def test_a_sentence_is_one_sentence(sentences):
    """Splitting any sentence of the corpus again gives that sentence."""
    assert [sentence for sentence in set(sentences) if split_sentences(sentence) != (sentence,)] == []


def test_no_letter_is_lost(sentences):
    """All that is dropped is list numbers, labels of lists and de-identification tokens."""
    whole = "".join(report.section(section) for _, report in openi_reports() for section in SECTIONS)
    kept, given = (re.sub(r"[\W\d_]|XXXX", "", text) for text in ("".join(sentences), whole))
    assert kept == given
