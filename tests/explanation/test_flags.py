"""Flags: a table of drafts, laws that hold for any text, and the lexicon's own order."""

import re
import tomllib
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openi import openi_reports
from openi_codes import codes
from tabon.explanation.flags import FLAG_KINDS, Flag, draft_flags, is_lasting
from tabon.explanation.flags.check import is_chatty
from tabon.explanation.flags.statements import read
from tabon.text.findings import lexicon
from tabon.text.observations import OBSERVATIONS
from tabon.text.reports import Report
from tabon.text.sentences import split_sentences

BOOK = tomllib.loads(files("tabon.text").joinpath("findings.toml").read_text(encoding="utf-8"))
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "flags.md"
CODED = {  # the codes of Open-i that say it
    "scoliosis": "scoliosis",
    "granuloma": "granuloma",
    "hiatal hernia": "hernia, hiatal",
    "degenerative spine": "spondyl|degenerative|osteophyte",
    "osteopenia": "osteopor|bone diseases, metabolic",
    "hyperinflation": "hyperdisten|emphysema|pulmonary disease, chronic|hyperlucent",
    "scarring": "cicatrix",
    "pulmonary fibrosis": "pulmonary fibrosis|lung diseases, interstitial",
    "surgical clips": "surgical instruments",
    "aortic tortuosity": "tortuous",
    "aortic calcification": "atherosclerosis|aorta[^;]*calcin|calcinosis[^;]*aorta",
    "elevated hemidiaphragm": "diaphragm[^;]*elevated",
}
SPOKEN = {  # names that no one writes
    "joint or spine hardware": "spinal hardware",
    "heart valve": "prosthetic heart valve",
    "Consolidation": "infiltrate",
    "other device": "loop recorder",
    "focal lucency": "apical lucency",
}
AGAINST_THE_PRIOR = {"dropped-finding", "denied-finding", "contradicted-change", "copy-forward"}

CASES = [  # prior, draft, the flags that a reader would raise
    # silence
    ("Scoliosis.", "Clear lungs.", {("dropped-finding", "scoliosis")}),
    ("Left chest wall pacemaker.", "Clear lungs.", {("dropped-finding", "pacemaker")}),
    ("Small left pleural effusion.", "The heart is normal.", {("dropped-finding", "Pleural Effusion")}),
    ("Small left pleural effusion.", "No pleural effusion.", set()),
    ("Small left pleural effusion.", "The costophrenic angles are sharp.", set()),
    ("Left pleural effusion.", "The left effusion has resolved.", set()),
    ("Endotracheal tube in place.", "The patient has been extubated.", set()),
    ("Right PICC and chest tube.", "Lines and tubes are unchanged.", set()),
    ("No scoliosis.", "Clear lungs.", set()),
    ("Possible pneumonia.", "The heart is normal.", set()),
    ("Right lower lobe consolidation.", "Right lower lobe infiltrate.", set()),
    ("Right lower lobe consolidation.", "The lungs are clear.", set()),
    ("Apical scarring.", "The lungs are clear.", {("dropped-finding", "scarring")}),
    ("Apical scarring.", "Apical pleural thickening.", set()),
    ("Old rib fracture.", "No acute fracture.", {("dropped-finding", "old fracture")}),
    ("Old rib fracture.", "Chronic rib fracture deformities.", set()),
    ("Calcified granuloma.", "Nodule consistent with granuloma.", set()),
    # denial
    ("The heart is enlarged.", "Heart size is normal.", {("denied-finding", "Cardiomegaly")}),
    ("The heart is enlarged.", "Heart size has improved and is now normal.", set()),
    ("Right chest port.", "The chest port has been removed.", set()),
    # words of change
    ("Clear lungs.", "Stable left pleural effusion.", {("contradicted-change", "Pleural Effusion")}),
    ("No effusion.", "The left effusion has decreased.", {("contradicted-change", "Pleural Effusion")}),
    ("Clear lungs.", "The pneumothorax has resolved.", {("contradicted-change", "Pneumothorax")}),
    ("Left effusion.", "New left effusion.", {("contradicted-change", "Pleural Effusion")}),
    ("Left effusion.", "New right effusion.", set()),
    ("Left effusion.", "Stable left effusion, no new consolidation.", set()),
    ("Clear lungs.", "New left effusion.", set()),
    ("Clear lungs.", "Stable exam without pneumothorax.", set()),
    ("Clear lungs.", "Increased interstitial markings.", set()),
    (
        "Clear lungs.",
        "Interstitial markings have increased.",
        {("contradicted-change", "interstitial opacity")},
    ),
    ("Right basilar opacity.", "New right upper lobe opacity.", set()),
    ("Infiltrate.", "Unchanged consolidation.", set()),
    ("Cardiomegaly.", "Stable cardiomegaly and new edema.", set()),
    # sides
    ("Left effusion.", "Right effusion.", {("side-flip", "Pleural Effusion")}),
    ("Left effusion.", "Stable right effusion.", {("side-flip", "Pleural Effusion")}),
    ("Left effusion.", "Right effusion, new.", set()),
    ("Left effusion.", "Bilateral effusions.", set()),
    ("Left effusion.", "Effusion.", set()),
    ("Bilateral effusions.", "Left effusion.", {("side-flip", "Pleural Effusion")}),
    ("Bilateral effusions.", "Improved left effusion.", set()),
    ("Granuloma in the left lung.", "Granuloma in the right lung.", {("side-flip", "granuloma")}),
    ("Left pacemaker, leads in right atrium and right ventricle.", "Left pacemaker.", set()),
    ("Right PICC.", "Left PICC, tip in the SVC.", {("side-flip", "PICC")}),
    ("Left basilar opacity.", "Right apical opacity.", set()),
    # manners
    ("Clear lungs. Normal heart.", "Clear lungs. Normal heart.", {("copy-forward", None)}),
    ("Clear lungs. Normal heart.", "Normal  heart. clear lungs.", {("copy-forward", None)}),
    ("Clear lungs. Normal heart.", "Clear lungs. Normal heart. No effusion.", set()),
    ("No acute disease.", "No acute disease.", set()),
    ("Clear lungs.", "", {("empty-draft", None)}),
    ("Clear lungs.", "XXXX", {("empty-draft", None)}),
    ("Clear lungs.", "As an AI, I cannot read images.", {("chatty-draft", None)}),
    ("Clear lungs.", "Certainly! Here is the report. No effusion.", {("chatty-draft", None)}),
    ("Clear lungs.", "```\nNo effusion.\n```", {("chatty-draft", None)}),
    ("Clear lungs.", "No effusion. Would you like a shorter version?", {("chatty-draft", None)}),
    ("Clear lungs.", "Pneumonia? Please correlate clinically.", set()),
]
ALONE = [  # sentences of a first report, and whether they look back
    ("Stable cardiomegaly.", True),
    ("Interval placement of a PICC.", True),
    ("Compared with the prior study, clear lungs.", True),
    ("Increasing left effusion.", True),
    ("The effusion has increased.", True),
    ("Increased interstitial markings.", False),
    ("No new consolidation.", False),
    ("No prior studies are available.", False),
    ("Continued follow-up is suggested.", False),
    ("Follow-up to resolution is recommended.", False),
    ("Left effusion.", False),
]
TALK = [
    ("Sure, here's the chest X-ray report:", True),
    ("I'm sorry, but I can't help with that.", True),
    ("Based on the provided image, here is my assessment:", True),
    ("Please note that this report was generated automatically.", True),
    ("Let me know if you need anything else.", True),
    ("Clinical correlation is recommended.", False),
    ("Findings were discussed with Dr. Gray, who said she will be sure.", False),
    ("There is certainly no pneumothorax.", False),
    ("Please note that fractures may not be demonstrated on this study.", False),
    ("Recommend CT if clinically indicated.", False),
    ("The liver is here seen partially.", False),
]
SAMPLES = [
    "Left pleural effusion.",
    "Stable right pleural effusion.",
    "No pleural effusion.",
    "The effusion has resolved.",
    "The heart is enlarged.",
    "Heart size is normal.",
    "Left pacemaker.",
    "New right PICC.",
    "Scoliosis.",
    "Degenerative changes.",
    "Clear lungs.",
    "Here is the report:",
]
texts = st.lists(st.sampled_from(SAMPLES), max_size=4).map(" ".join)
reports = st.builds(Report, findings=texts, impression=texts)


def raised(flags):
    """Return kind and observation of each flag."""
    return {(flag.kind, flag.observation) for flag in flags}


@pytest.mark.parametrize(("prior", "draft", "expected"), CASES)
def test_flags_of_a_draft(prior, draft, expected):
    """The table's drafts get the table's flags and no others."""
    assert raised(draft_flags(Report(prior), Report(draft), (), has_prior=True)) == expected


@pytest.mark.parametrize(("text", "looks_back"), ALONE)
def test_a_word_of_change_needs_a_prior(text, looks_back):
    """Without a prior, what looks back is flagged and what only describes is not."""
    flags = draft_flags(Report(), Report("Normal heart. " + text), (), has_prior=False)
    expected = [("change-without-prior", (1,))] if looks_back else []
    assert [(flag.kind, flag.sentences) for flag in flags] == expected


@pytest.mark.parametrize(("text", "chatty"), TALK)
def test_talk(text, chatty):
    """A chat model's phrases are talk; a radiologist's are not."""
    assert is_chatty(text) is chatty


def test_flags_name_their_sentences():
    """Each flag points at its sentences in the draft and in the prior, section by section."""
    prior = Report("Clear lungs. Right effusion. Scoliosis.", "Right effusion.")
    draft = Report("Normal heart.", "No edema. Left effusion. Stable nodule.")
    assert draft_flags(prior, draft, (), has_prior=True) == (
        Flag(
            kind="dropped-finding",
            section="findings",
            prior_section="findings",
            prior_sentences=(2,),
            observation="scoliosis",
            detail="scoliosis of the prior is not mentioned",
        ),
        Flag(
            kind="contradicted-change",
            section="impression",
            sentences=(2,),
            observation="Lung Lesion",
            detail="Lung Lesion is called stable; the prior has none",
        ),
        Flag(
            kind="side-flip",
            section="impression",
            sentences=(1,),
            prior_section="findings",
            prior_sentences=(1,),
            observation="Pleural Effusion",
            detail="Pleural Effusion is left here and right in the prior",
        ),
    )


def test_talk_outside_the_sections_is_found():
    """What stands before the first header is looked at too."""
    draft = Report("Clear lungs.", other="Of course! Below is the report:")
    [flag] = draft_flags(Report(), draft, (), has_prior=False)
    assert (flag.kind, flag.section) == ("chatty-draft", "other")


@pytest.mark.parametrize(("others", "flagged"), [(0, True), (1, True), (2, False), (4, False)])
def test_a_finding_needs_half_of_the_other_drafts(others, flagged):
    """A finding that is new and that fewer than half of four other drafts hold is flagged."""
    draft, clear = Report("Right effusion."), Report("Clear lungs.")
    sisters = [Report(f"Right effusion. Sister {number}.") for number in range(others)]
    drafts = [draft, *sisters, *[clear] * (4 - others)]
    expected = {("unsupported-finding", "Pleural Effusion")} if flagged else set()
    assert raised(draft_flags(clear, draft, drafts, has_prior=True)) == expected
    assert raised(draft_flags(draft, draft, drafts, has_prior=True)) == set()


def test_two_drafts_are_too_few_to_outvote_one():
    """With two drafts nothing is called unsupported."""
    draft, other = Report("Right effusion."), Report("Clear lungs.")
    assert draft_flags(other, draft, [draft, other], has_prior=True) == ()


def test_a_twin_supports():
    """Only one copy of the draft itself is left out of its sisters."""
    draft = Report("Right effusion.")
    drafts = [draft, draft, draft, Report("Clear lungs.")]
    assert draft_flags(Report("Clear lungs."), draft, drafts, has_prior=True) == ()


def test_a_minor_finding_is_missed_only_where_another_draft_sees_it():
    """Degenerative change may be passed over in silence by all drafts, not by one."""
    prior, draft = Report("Degenerative changes."), Report("Clear lungs.")
    dropped = {("dropped-finding", "degenerative spine")}
    assert raised(draft_flags(prior, draft, [draft] * 3, has_prior=True)) == set()
    assert raised(draft_flags(prior, draft, [draft, draft, prior], has_prior=True)) == dropped
    assert raised(draft_flags(prior, draft, [draft], has_prior=True)) == dropped


@pytest.mark.parametrize(("sides", "flagged"), [("rr", True), ("rl", False), ("r", False), ("rrl", False)])
def test_a_side_that_no_other_draft_shares(sides, flagged):
    """Of a finding new to the prior, a side against two others or more is flagged."""
    words = {"l": "Left effusion today.", "r": "Right effusion."}
    draft = Report("Left effusion.")
    drafts = [draft, Report("An effusion."), *(Report(words[side]) for side in sides)]
    flags = draft_flags(Report("Normal heart."), draft, drafts, has_prior=True)
    assert (("side-flip", "Pleural Effusion") in raised(flags)) is flagged


@settings(deadline=None)
@given(reports, reports, st.lists(reports, max_size=4), st.booleans())
def test_laws_of_flags(prior, draft, others, has_prior):
    """Flags come in order, point at sentences that exist, and need a prior where they speak of one."""
    flags = draft_flags(prior, draft, [draft, *others], has_prior=has_prior)
    order = [FLAG_KINDS.index(flag.kind) for flag in flags]
    assert order == sorted(order)
    for flag in flags:
        known = len(split_sentences(getattr(draft, flag.section))) if flag.section else 0
        before = len(split_sentences(prior.section(flag.prior_section))) if flag.prior_section else 0
        assert set(flag.sentences) <= set(range(known))
        assert set(flag.prior_sentences) <= set(range(before))
    kinds = {flag.kind for flag in flags}
    assert has_prior or not kinds & AGAINST_THE_PRIOR
    assert not has_prior or "change-without-prior" not in kinds


@settings(deadline=None)
@given(reports.filter(lambda report: not report.is_empty))
def test_a_report_does_not_contradict_itself(report):
    """A draft that repeats its prior drops nothing, denies nothing and flips no side."""
    flags = draft_flags(report, report, (), has_prior=True)
    assert not {flag.kind for flag in flags} & {"dropped-finding", "denied-finding", "side-flip"}


@settings(deadline=None)
@given(st.text(st.characters()), st.text(st.characters()))
def test_any_text_can_be_flagged(prior, draft):
    """Nothing raises, and asking twice gives the same, remembered or not."""
    flags = draft_flags(Report(prior), Report(draft, other=prior), (), has_prior=True)
    read.cache_clear()
    assert draft_flags(Report(prior), Report(draft, other=prior), (), has_prior=True) == flags


def test_no_report_text_in_a_flag():
    """Whatever the reports say, a detail holds only the names of findings and the words of the rules."""
    names = {*OBSERVATIONS, *(row["name"] for row in BOOK["findings"])}
    for prior, draft, _ in CASES:
        marked = [re.sub(r"(?<=[a-z])\.", " zyxwvut.", text) for text in (prior, draft)]
        for flag in draft_flags(*map(Report, marked), (), has_prior=True):
            assert "zyxwvut" not in flag.detail
            assert flag.observation is None or flag.observation in names
            assert flag.detail.startswith(flag.observation or "")


@pytest.mark.openi
def test_the_lexicon_agrees_with_people():
    """On the Open-i reports, the findings of docs/guide/flags.md are found where people coded them."""
    row = re.compile(r"^\| ([a-z ]+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", flags=re.MULTILINE)
    held = [(read(report).held, " ; ".join(codes()[number])) for number, report in openi_reports()]
    measured = []
    for name, pattern in CODED.items():
        cells = Counter((name in found, re.search(pattern, coded) is not None) for found, coded in held)
        hits, coded = cells[True, True], cells[True, True] + cells[False, True]
        precision = hits / (hits + cells[True, False])
        measured.append((name, str(coded), f"{precision:.2f}", f"{hits / coded:.2f}"))
    assert row.findall(PAGE.read_text()) == measured


@pytest.mark.openi
def test_no_radiologist_chats():
    """Of the real Open-i reports none is taken for a chat model's."""
    for _, report in openi_reports():
        kinds = {flag.kind for flag in draft_flags(Report(), report, (), has_prior=False)}
        assert "chatty-draft" not in kinds


def test_long_sentences_do_not_hang():
    """Time does not explode with the length of one sentence."""
    text = "calcified aorta " * 1500 + "chronic interstitial " * 1500 + "old rib " * 1500
    assert draft_flags(Report(text), Report(text), (), has_prior=True)


def test_the_lexicon_hangs_together():
    """Akin names are known, no name is akin to itself, and what is minor lasts."""
    book = lexicon()
    names = {*OBSERVATIONS, *(kind.name for kind in book.kinds)}
    assert names >= {*book.akin, *book.lasting, *book.umbrella}
    assert all(name not in others and others <= names for name, others in book.akin.items())
    assert all(name in book.akin[other] for name, others in book.akin.items() for other in others)
    assert book.minor <= book.lasting
    assert is_lasting("Cardiomegaly")
    assert not is_lasting("Pleural Effusion")


@pytest.mark.parametrize("row", BOOK["findings"], ids=lambda row: row["name"])
def test_every_finding_is_found_by_its_name(row):
    """The name of a finding is one of its own words, and "no" denies it."""
    name = SPOKEN.get(row["name"], row["name"])
    [said] = [said for said in read(Report(f"There is {name}.")).statements if said.name == row["name"]]
    [denied] = [said for said in read(Report(f"No {name}.")).statements if said.name == row["name"]]
    assert (said.polarity, denied.polarity) == ("positive", "negative")
