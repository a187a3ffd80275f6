"""The laws of facts and of their F1."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.data.simulate.patients import COURSES, SEVERITIES, Finding, facts, finding_facts
from tabon.evaluation.draft_scores import state_f1

FACTS = st.lists(st.sampled_from(["a", "a: left", "a: mild", "b", "b: new", "c"]), max_size=8)
FINDINGS = st.builds(
    Finding,
    kind=st.sampled_from(["pleural effusion", "consolidation"]),
    side=st.sampled_from(["", "left", "right", "bilateral"]),
    severity=st.sampled_from(["", *SEVERITIES]),
    course=st.sampled_from(COURSES),
)


@settings(deadline=None)
@given(FACTS)
def test_a_state_agrees_with_itself(said):
    """F1 is 1 for equal facts, the empty state included, in any order and number."""
    assert state_f1(said, [*reversed(said), *said]) == 1.0


@settings(deadline=None)
@given(FACTS, FACTS)
def test_f1_is_symmetric_and_bounded(said, true):
    """Who is the reference does not matter, and the value is in [0, 1]."""
    assert state_f1(said, true) == state_f1(true, said)
    assert 0.0 <= state_f1(said, true) <= 1.0


@settings(deadline=None)
@given(FACTS, FACTS)
def test_f1_is_one_only_for_equal_states(said, true):
    """Nothing but the same facts reaches 1, and nothing but disjoint ones falls to 0."""
    assert (state_f1(said, true) == 1.0) == (set(said) == set(true))
    if said or true:
        assert (state_f1(said, true) == 0.0) == (not set(said) & set(true))


@settings(deadline=None)
@given(FACTS, FACTS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(said, true):
    """The short form agrees with the textbook's."""
    hits = len(set(said) & set(true))
    if hits:
        precision, recall = hits / len(set(said)), hits / len(set(true))
        assert abs(state_f1(said, true) - 2 * precision * recall / (precision + recall)) < 1e-12


@settings(deadline=None)
@given(FINDINGS)
def test_stable_is_no_fact(finding):
    """A finding called stable has the facts of one of which no change is told."""
    if finding.course in ("", "stable"):
        assert not any(fact.endswith("stable") for fact in finding_facts(finding))
    assert len(finding_facts(finding)) == 1 or finding.present


@settings(deadline=None)
@given(st.lists(FINDINGS))
def test_facts_are_sorted_and_single(findings):
    """The order of the findings does not show in the facts."""
    assert facts(findings) == facts(reversed(findings)) == sorted(set(facts(findings)))
