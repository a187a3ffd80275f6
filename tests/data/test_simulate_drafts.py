"""The simulated generator: every error occurs, every label is true, errors go together."""

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.data.simulate import ERRORS, PROMPTS, SimulationSettings, simulate_queries
from tabon.data.simulate.drafts import label, other_course, other_severity, other_side
from tabon.data.simulate.patients import KINDS, begin
from tabon.data.simulate.settings import Draws
from tabon.evaluation.draft_scores import state_f1
from tabon.text.reports import parse_report

SIDES = ("left", "right", "bilateral")
SEVERITIES = ("mild", "moderate", "severe")
CHANGES = ("new", "improved", "worse", "moved", "resolved")
CLINICAL = ERRORS[:6]


@cache
def queries(prompt="p3", noise=0.5):
    """A cohort of queries to look at."""
    return tuple(
        simulate_queries(SimulationSettings(patients=500, splits=(0.0, 0.0, 1.0), prompt=prompt, noise=noise))
    )


def drafts(prompt="p3", error=None):
    """All drafts with their query, or those with an error."""
    return [
        (query, draft)
        for query in queries(prompt)
        for draft in query["candidates"]
        if error is None or error in draft["errors"]
    ]


def kinds(state):
    """The findings that a state says are there."""
    return {fact for fact in state if ":" not in fact}


def details(state, words):
    """What a state says of each finding, among some words."""
    pairs = (fact.split(": ") for fact in state if ":" in fact)
    return {kind: word for kind, word in pairs if word in words}


def disagree(one, other, words):
    """Findings in both states of which they say different words."""
    both = kinds(one) & kinds(other)
    here, there = details(one, words), details(other, words)
    return {kind for kind in both if here.get(kind) != there.get(kind)}


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_occurs(error):
    """With the prior in sight every error of the list is made by some draft and not by most."""
    share = len(drafts(error=error)) / len(drafts())
    assert 0.005 < share < 0.5


@pytest.mark.parametrize("prompt", ["p1", "p2"])
def test_who_has_not_seen_the_prior_does_not_copy_it(prompt):
    """Only p3 copies the prior; the other errors occur under every prompt."""
    found = {error for _, draft in drafts(prompt) for error in draft["errors"]}
    assert found == set(ERRORS) - {"copied prior"}


@pytest.mark.parametrize("prompt", PROMPTS)
def test_absences_are_labelled_exactly(prompt):
    """Missed and dropped findings are those that are true and not said, and no others."""
    for query, draft in drafts(prompt):
        lost = kinds(query["state"]) - kinds(draft["state"])
        chronic = {kind for kind in lost if KINDS[kind].group == "chronic"}
        assert ("dropped chronic finding" in draft["errors"]) == bool(chronic)
        assert ("missed finding" in draft["errors"]) == bool(lost - chronic)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_hallucinations_are_labelled_exactly(prompt):
    """A hallucinated finding is one that is said and not true."""
    for query, draft in drafts(prompt):
        invented = kinds(draft["state"]) - kinds(query["state"])
        assert ("hallucinated finding" in draft["errors"]) == bool(invented)


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize(("error", "words"), [("wrong side", SIDES), ("wrong severity", SEVERITIES)])
def test_sides_and_severities_are_labelled_exactly(prompt, error, words):
    """A wrong side or severity is one that differs from the truth of a finding that is there."""
    for query, draft in drafts(prompt):
        assert (error in draft["errors"]) == bool(disagree(draft["state"], query["state"], words))


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_change_that_is_not_true_is_labelled(prompt):
    """A word of change that contradicts the truth always has its label."""
    for query, draft in drafts(prompt):
        said, true = details(draft["state"], CHANGES), details(query["state"], CHANGES)
        mentioned = kinds(query["state"]) | true.keys()
        wrong = {kind for kind, word in said.items() if kind in mentioned and true.get(kind) != word}
        assert not wrong or "false change word" in draft["errors"]


def test_a_false_change_word_costs_a_fact():
    """Where the label stands, the change facts of draft and truth differ."""
    for query, draft in drafts(error="false change word"):
        assert details(draft["state"], CHANGES) != details(query["state"], CHANGES)


def test_a_copied_prior_is_the_prior():
    """A draft with that label is the prior report word for word."""
    for query, draft in drafts(error="copied prior"):
        prior = query["prior"]
        assert draft["text"] == f"Findings: {prior['findings']}\nImpression: {prior['impression']}"


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_missing_section_is_missing(prompt):
    """Drafts with that label have one heading, the others have both."""
    for _, draft in drafts(prompt):
        headings = re.findall(r"(Findings|Impression):", draft["text"])
        assert len(headings) == (1 if "missing section" in draft["errors"] else 2)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_chatty_draft_does_not_begin_with_a_heading(prompt):
    """Talk stands before the report where the label says so, and nowhere else."""
    for _, draft in drafts(prompt):
        begins = draft["text"].startswith(("Findings:", "Impression:"))
        assert begins != ("chatty preamble" in draft["errors"])


@pytest.mark.parametrize("prompt", PROMPTS)
def test_drafts_can_be_parsed(prompt):
    """The report parser finds the sections that a draft has."""
    for _, draft in drafts(prompt):
        report = parse_report(draft["text"])
        both = bool(report.findings) and bool(report.impression)
        assert both == ("missing section" not in draft["errors"])


def test_without_noise_a_draft_that_sees_the_prior_is_right():
    """At noise 0 all p3 drafts state the truth and no error is named."""
    for query in queries("p3", 0.0)[:200]:
        for draft in query["candidates"]:
            assert draft["errors"] == []
            assert draft["state"] == query["state"]


@pytest.mark.parametrize("prompt", ["p1", "p2"])
def test_without_a_prior_only_change_is_lost(prompt):
    """At noise 0 a draft without the prior states all but the changes."""
    for query in queries(prompt, 0.0)[:200]:
        for draft in query["candidates"]:
            assert draft["errors"] == []
            assert details(draft["state"], CHANGES) == {}
            assert set(draft["state"]) == {
                fact for fact in query["state"] if fact.partition(": ")[2] not in CHANGES
            }


def mean_f1(prompt, noise, pick):
    """The mean over queries of a pick among the drafts' F1."""
    scores = [
        [state_f1(draft["state"], query["state"]) for draft in query["candidates"]]
        for query in queries(prompt, noise)
    ]
    return np.mean([pick(row) for row in scores])


@pytest.mark.parametrize("prompt", PROMPTS)
def test_more_noise_is_worse(prompt):
    """The mean F1 of a draft falls with the noise."""
    means = [mean_f1(prompt, noise, np.mean) for noise in (0.0, 0.25, 0.5, 1.0)]
    assert means == sorted(means, reverse=True)
    assert means[0] - means[-1] > 0.2


def test_a_prior_in_sight_helps():
    """Drafts with the prior are clinically better than those without, with and without examples."""
    assert mean_f1("p3", 0.5, np.mean) > mean_f1("p2", 0.5, np.mean) >= mean_f1("p1", 0.5, np.mean)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_there_is_something_to_select(prompt):
    """The best of five is well above a random draft and below the truth."""
    anyone, best = mean_f1(prompt, 0.5, np.mean), mean_f1(prompt, 0.5, np.max)
    assert anyone + 0.1 < best < 0.98


def correlation(prompt, error):
    """The mean correlation of an error between two drafts of one visit."""
    made = np.array(
        [[error in draft["errors"] for draft in query["candidates"]] for query in queries(prompt)]
    )
    table = np.corrcoef(made.T.astype(float))
    return table[~np.eye(len(table), dtype=bool)].mean()


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("error", CLINICAL)
def test_errors_go_together_within_a_visit(prompt, error):
    """Drafts of one visit make the same clinical error more often than chance, and not always."""
    assert 0.15 < correlation(prompt, error) < 0.9


def test_manners_are_a_draft_s_own():
    """Chatty preambles do not depend on the visit."""
    assert abs(correlation("p1", "chatty preamble")) < 0.1


@settings(deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 1000), which=st.floats(0, 1, exclude_max=True)
)
def test_wrong_answers_are_wrong(kind, seed, which):
    """A wrong side, severity or change word is never the right one."""
    finding = begin(Draws(seed), KINDS[kind], onset=2, course="new")
    if finding.side:
        assert other_side(finding.side, which) != finding.side
    if finding.severity:
        assert other_severity(finding.severity, which) != finding.severity
    assert other_course(finding, which) != finding.course


@settings(deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), seed=st.integers(0, 1000))
def test_the_truth_has_no_label(kind, seed):
    """A report that states the truth, or keeps silent on change, has no error."""
    finding = begin(Draws(seed), KINDS[kind], onset=2)
    assert label([finding], [finding]) == ()
    assert label([finding], []) in (("missed finding",), ("dropped chronic finding",))
    assert label([], [finding]) == ("hallucinated finding",)
