"""The labeller against the codes that people gave Open-i's reports: numbers of docs/reference/labeller.md.

The words of the lexicon were chosen on the reports of even index. The table is about those of odd index.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from openi import openi_reports
from openi_codes import codes
from tabon.text.observations import NO_FINDING, NOT_A_FINDING, OBSERVATIONS, label_text

pytestmark = pytest.mark.openi
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "labeller.md"
CODES = {  # observation: the codes that say it, small letters, from their beginning
    "Enlarged Cardiomediastinum": r"mediastinum/(?!lymph|blood).*(?:prominent|enlarged)",
    "Cardiomegaly": r"cardiomegaly|cardiac shadow/.*(?:enlarged|borderline)",
    "Lung Opacity": r"(?:opacity|density)"
    r"(?!/(?:ribs|clavicle|breast|abdomen|adipose|mediastinum|thorax|bilat|round))"
    r"|infiltrate|airspace disease|markings/(?!.*bronchov)|lung/.*interstitial|thickening/lung"
    r"|cicatrix(?!/(?:pleura|ribs|costo|abd|medi|dia))|pulmonary fibrosis|lung diseases, interstitial",
    "Lung Lesion": r"nodule(?!/(?:breast|abdomen))|mass(?!/(?:breast|abdomen|medi))|cavitation"
    r"|(?:opacity|density)/lung.*/round",
    "Edema": r"pulmonary edema|pulmonary congestion|heart failure",
    "Consolidation": r"consolidation",
    "Pneumonia": r"pneumonia",
    "Atelectasis": r"pulmonary atelectasis|volume loss",
    "Pneumothorax": r"(?:hydro|hemo)?pneumothorax",
    "Pleural Effusion": r"pleural effusion|hydropneumothorax|hemopneumothorax|hemothorax",
    "Pleural Other": r"(?:thickening|cicatrix|calcinosis)/pleura|pleura/",
    "Fracture": r"fractures, bone",
    "Support Devices": r"catheters, indwelling|implanted medical device|medical device|tube, inserted|stents",
}
SAYS = {observation: re.compile(code) for observation, code in CODES.items()}


@dataclass(frozen=True, slots=True)
class Coded:
    """A report beside what its coders said."""

    text: str
    codes: tuple[str, ...]

    @property
    def truth(self):
        """The observations that the codes say; No Finding by the labeller's own rule."""
        said = {name for name, code in SAYS.items() if any(map(code.match, self.codes))}
        return said if said - set(NOT_A_FINDING) else said | {NO_FINDING}


@cache
def coded_reports(parity):
    """The coded reports with text, of even (0) or odd (1) index."""
    reports = openi_reports()[parity::2]
    coded = [
        Coded(f"{report.findings}\n\n{report.impression}", codes()[number]) for number, report in reports
    ]
    return [one for one in coded if one.text.strip() and one.codes and "no indexing" not in one.codes]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How labels agree with codes."""

    hits: int
    labelled: int
    coded: int

    @property
    def f1(self):
        """The harmonic mean of precision and recall."""
        return 2 * self.hits / max(self.labelled + self.coded, 1)

    @property
    def row(self):
        """The number coded, precision, recall and F1, as the table prints them."""
        precision, recall = self.hits / max(self.labelled, 1), self.hits / max(self.coded, 1)
        return f"{self.coded} | {precision:.2f} | {recall:.2f} | {self.f1:.2f}"


@cache
def labels(parity):
    """The labels of one half of the reports."""
    return [label_text(one.text) for one in coded_reports(parity)]


def agreement(parity, held=("positive", "uncertain")):
    """The agreement on each observation over one half of the reports."""
    said = [{name for name in OBSERVATIONS if one[name] in held} for one in labels(parity)]
    truth = [one.truth for one in coded_reports(parity)]
    return {
        name: Agreement(
            sum(name in found and name in true for found, true in zip(said, truth, strict=True)),
            sum(name in found for found in said),
            sum(name in true for true in truth),
        )
        for name in OBSERVATIONS
    }


def pooled(agreements):
    """All observations counted together."""
    return Agreement(
        sum(one.hits for one in agreements),
        sum(one.labelled for one in agreements),
        sum(one.coded for one in agreements),
    )


def table(parity):
    """The rows of the table in docs/reference/labeller.md."""
    rows, certain = agreement(parity), agreement(parity, held=("positive",))
    findings = [name for name in OBSERVATIONS if name != NO_FINDING]
    lines = [f"| {name} | {rows[name].row} | {certain[name].f1:.2f} |" for name in OBSERVATIONS]
    for title, names in {"all 14, pooled": OBSERVATIONS, "without No Finding, pooled": findings}.items():
        both = [pooled([kind[name] for name in names]) for kind in (rows, certain)]
        lines.append(f"| {title} | {both[0].row} | {both[1].f1:.2f} |")
    return lines


def test_the_page_shows_what_is_measured():
    """Each row of the table is what the held-out half gives now."""
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert [row for row in table(parity=1) if row not in shown] == []


def test_the_page_counts_the_reports_and_the_doubtful_labels():
    """The numbers in the text: reports, labels without a code and how many of those are doubts."""
    rows, certain = agreement(1), agreement(1, held=("positive",))
    alarms, sure = (
        sum(kind[name].labelled - kind[name].hits for name in OBSERVATIONS[:-1]) for kind in (rows, certain)
    )
    misses = sum(rows[name].coded - rows[name].hits for name in OBSERVATIONS[:-1])
    text = " ".join(PAGE.read_text().split())
    assert f"{len(coded_reports(1)):,} reports of odd index" in text
    assert f"{alarms} labels have no code, {alarms - sure} of them are doubts" in text
    assert f"{misses} codes have no label" in text


def test_edema_against_the_code_of_edema_alone():
    """Congestion and heart failure are in the label and not in this code: the figures of the page."""
    truth = [any(code.startswith("pulmonary edema") for code in one.codes) for one in coded_reports(1)]
    found = {}
    for held in (("positive", "uncertain"), ("positive",)):
        said = [one["Edema"] in held for one in labels(1)]
        hits = sum(map(int.__mul__, map(int, said), map(int, truth)))
        found[held] = Agreement(hits, sum(said), sum(truth))
    whole, sure = found.values()
    text = " ".join(PAGE.read_text().split())
    precision, recall = whole.hits / whole.labelled, whole.hits / whole.coded
    assert f"({whole.coded} of those of odd index) F1 is only .{round(100 * whole.f1)}: " in text
    assert f"precision {precision:.2f}, recall {recall:.2f}. " in text
    assert f"Without the doubtful labels it is .{round(100 * sure.f1)}" in text


def test_what_the_archive_calls_normal_has_no_finding():
    """Reports whose only code is `normal` are labelled No Finding, 98 of 100 at least."""
    pairs = zip(coded_reports(1), labels(1), strict=True)
    normal = [found[NO_FINDING] == "positive" for one, found in pairs if one.codes == ("normal",)]
    assert sum(normal) / len(normal) >= 0.98
    assert f"in {sum(normal)} of {len(normal)} cases" in " ".join(PAGE.read_text().split())


def test_well_covered_observations_agree_with_the_codes():
    """Where at least 60 reports are coded, F1 is 0.75 or more; all together 0.85 or more."""
    rows = agreement(1)
    assert {name: one.f1 for name, one in rows.items() if one.coded >= 60 and one.f1 < 0.75} == {}
    assert pooled([rows[name] for name in OBSERVATIONS if name != NO_FINDING]).f1 >= 0.85
