"""What decided: shares that add up to the lead, and evidence that is what the distances rest on."""

from dataclasses import replace

import pytest

from tabon import Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.explanation.decision import LACKS, REASONS, UNKNOWN, kind_of, reasons
from tabon.explanation.explanation import explain, explain_many
from tabon.explanation.text import explanation_text
from tabon.method.selection import select
from tabon.selectors.scorer import SELECTORS
from tabon.selectors.text_scorers import SIMILAR_PRIORS
from tabon.text.records import Query, query_from_record, transition_from_record
from tabon.text.reports import Report

SETTINGS = SimulationSettings(patients=120)
TRANSITIONS = [transition_from_record(record) for record in simulate_transitions(SETTINGS, "train")]
QUERIES = [query_from_record(record) for record in simulate_queries(SETTINGS, "test")][:6]
UNFITTED = sorted(SELECTORS.keys() - {"learnt", "log-probability"})


@pytest.fixture(scope="module")
def bank():
    """A small bank with the test encoder."""
    return TransitionBank.build(TRANSITIONS, encoder="hashing")


def query(prior, *drafts):
    """Return a query of findings."""
    reports = tuple(Report(findings=draft) for draft in drafts)
    return Query(id="q", prior=Report(findings=prior), candidates=reports)


@pytest.mark.parametrize("name", UNFITTED)
def test_shares_add_up_to_one(name, bank):
    """Whatever the selector and the draft, what each part adds is the whole lead of the pick."""
    selector = Selector(bank, name)
    lacking = replace(QUERIES[0], candidates=(*QUERIES[0].candidates, Report(impression="Clear.")))
    for one in (*QUERIES, lacking):
        for draft in (None, *range(len(one.candidates))):
            found = explain(selector, one, draft=draft)
            totals = {each.draft: each.total for each in found.drafts}
            lead = totals[found.against] - totals[found.selected]
            assert sum(each.adds for each in found.decision) == pytest.approx(lead, abs=1e-9)
            if lead > 0:
                assert sum(each.share for each in found.decision) == pytest.approx(1.0, abs=1e-6)
                assert UNKNOWN not in reasons(found.decision)
            else:
                assert {each.share for each in found.decision} == {None}


def test_parts_of_fused_add_up_to_its_distance(bank):
    """A draft's distance in a section that it has is the sum of what its parts add."""
    for found in explain_many(Selector(bank, "fused"), QUERIES):
        assert found.parts_add_up
        for each in found.drafts:
            for section, distance in each.sections.items():
                assert sum(each.parts[section].values()) == pytest.approx(distance, abs=1e-9)


def test_a_part_that_is_taken_out_takes_its_share_of_the_lead(bank):
    """Without a part the pick leads by its share less, and by less than nothing it is another's."""
    selector = Selector(bank, "fused")
    for one in QUERIES:
        selection, found = selector.select_many([one])[0], explain(selector, one)
        for reason, share in reasons(found.decision).items():
            sections = {}
            for name, own in selection.sections.items():
                left = [values for part, values in own.parts.items() if REASONS[kind_of(part)] != reason]
                sections[name] = replace(own, distances=tuple(map(sum, zip(*left, strict=True))))
            again = select(sections)
            lead = again.total_distances[found.against] - again.total_distances[found.selected]
            assert lead == pytest.approx((1.0 - share) * found.margin, abs=1e-9)
            assert lead >= 0 or again.selected != found.selected


def test_an_agreeing_draft_that_is_removed_agrees_no_more(bank):
    """Sentences are counted with the drafts that say them; one that says otherwise does not count."""
    one = query("Clear lungs.", "No effusion. Big heart.", "No effusion.", "no effusion", "New left mass.")
    selector = Selector(bank, "consensus")
    found = explain(selector, one, draft=0).sections["findings"].evidence
    assert (found.others, [each.drafts for each in found.agreement]) == (3, [(1, 2), ()])
    fewer = replace(one, candidates=(*one.candidates[:2], one.candidates[3]))
    found = explain(selector, fewer, draft=0).sections["findings"].evidence
    assert (found.others, [each.drafts for each in found.agreement]) == (2, [(1,), ()])
    text = explanation_text(explain(selector, one, draft=0))
    assert '2 of 3 other drafts say this too: "No effusion."' in text
    assert 'No other draft says this: "Big heart."' in text


def test_a_next_visit_that_leaves_the_bank_changes_the_distance_as_shown(bank):
    """The distance is the mean over the next visits shown; without one, the next in line counts."""
    one, name = QUERIES[0], "next-visit"
    before = explain(Selector(bank, name), one, draft=0, neighbours=SIMILAR_PRIORS + 1)
    gone = before.sections["findings"].nearest[0].id
    smaller = TransitionBank.build([each for each in TRANSITIONS if each.id != gone], encoder="hashing")
    after = explain(Selector(smaller, name), one, draft=0, neighbours=SIMILAR_PRIORS + 1)
    near, left = ({each.id: each for each in found.sections["findings"].nearest} for found in (before, after))
    assert len(near) == SIMILAR_PRIORS
    assert near.keys() - left.keys() == {gone}
    [came] = left.keys() - near.keys()
    change = after.sections["findings"].distance - before.sections["findings"].distance
    assert change == pytest.approx((left[came].distance - near[gone].distance) / SIMILAR_PRIORS, abs=1e-9)
    assert change > 0
    assert left[came].prior_distance >= max(each.prior_distance for each in near.values())


def test_expected_things_are_those_of_the_draft(bank):
    """What a draft is said to hold it holds, and another draft of the query has the same expectations."""
    selector, one = Selector(bank, "fused"), QUERIES[0]
    drafts = [
        explain(selector, one, draft=draft).sections["findings"] for draft in range(len(one.candidates))
    ]
    for section in drafts:
        text = " ".join(section.current).lower()
        assert all((each.name in text) >= each.held for each in section.evidence.words)
    words = [{each.name: each.probability for each in section.evidence.words} for section in drafts]
    assert words[0]
    assert words == words[:1] * len(words)


def test_what_is_kept_of_the_prior_is_counted_from_the_alignment(bank):
    """Fused looks at the prior: its evidence counts what became of each prior sentence."""
    found = explain(Selector(bank, "fused"), QUERIES[0], draft=0).sections["findings"]
    kept, kinds = found.evidence.kept, [pair.kind for pair in found.alignment]
    assert (kept.same, kept.reworded, kept.dropped) == tuple(
        map(kinds.count, ("same", "reworded", "dropped"))
    )
    assert kept.same + kept.reworded + kept.dropped == len(found.prior)


def test_without_the_banks_text_next_visits_are_ids(bank):
    """The ids and both distances stay; no sentence of the bank is in the record."""
    found = explain(Selector(bank, "fused"), QUERIES[0], bank_text=False).sections["findings"].nearest
    assert len(found) == 3
    assert all(each.id and each.prior_distance is not None for each in found)
    assert not any(each.prior or each.current or each.alignment for each in found)


def test_a_draft_without_change_is_near_to_no_change(bank):
    """A copy of the prior has a distance by the zero policy, and no list of nearest changes."""
    for zero in ("neutral", "match", "farthest"):
        found = explain(
            Selector(bank, zero=zero), query("Clear lungs.", "Clear lungs.", "Big heart."), draft=0
        )
        assert found.sections["findings"].nearest == ()
        assert "Nearest changes" not in explanation_text(found)


@pytest.mark.parametrize(
    ("name", "caption"),
    [
        ("transition", "Nearest changes in training reports"),
        ("report-space", "Nearest training reports"),
        ("next-visit", "What came next for similar priors"),
        ("fused", "What came next for similar priors"),
        ("consensus", None),
    ],
)
def test_the_caption_is_true_of_the_selector(name, caption, bank):
    """Training transitions are called what they are to the selector; where there are none, nothing."""
    text = explanation_text(explain(Selector(bank, name), QUERIES[0]))
    said = {
        "Nearest changes in training reports",
        "Nearest training reports",
        "What came next for similar priors",
    }
    assert {each for each in said if f"  {each}\n" in text} == ({caption} if caption else set())


def test_a_lacking_section_is_a_part_of_its_own(bank):
    """Where one of the two drafts lacks a section, that decides there, and the text says so."""
    one = replace(QUERIES[0], candidates=(QUERIES[0].candidates[0], Report(impression="Clear.")))
    found = explain(Selector(bank, "fused"), one)
    assert {each.part for each in found.decision if each.section == "findings"} == {LACKS}
    assert REASONS[LACKS] in found.verdict


def test_verdicts(bank):
    """One sentence to read aloud: the pick, the other draft and the reasons; a tie and an only draft too."""
    tied = explain(Selector(bank), query("Clear lungs.", "Big heart.", "Big heart."))
    assert tied.verdict == "draft 0 of 2 was chosen; draft 1 is as near, and the first of equals is taken"
    only = explain(Selector(bank), query("Clear lungs.", "Big heart."))
    assert only.verdict == "draft 0 of 1 was chosen; there was no other to choose"
    found = explain(Selector(bank, "consensus"), QUERIES[0])
    assert found.verdict == (
        f"draft {found.selected} of 5 was chosen over draft {found.runner_up} because of the agreement of "
        f"the other drafts (its lead is {found.margin:.4f})"
    )
    assert found.as_record()["verdict"] == found.verdict
