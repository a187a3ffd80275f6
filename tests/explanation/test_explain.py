"""Explanations: shares that add up, distances that are the selector's own, and defined edges."""

import json
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import as_printed
from strategies import generic_sets, tied_sets
from tabon import Selector, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.errors import BadInputError
from tabon.explanation.explanation import explain, explain_many, shares
from tabon.method.distances import DISTANCES, cosine_cost, get_distance, transition
from tabon.method.nearest import AGGREGATES
from tabon.method.selection import Note, Selection
from tabon.method.sentence_sets import sentence_set
from tabon.method.transitions import NORM_FLOOR
from tabon.selectors.scorer import Scores
from tabon.text.records import Query, query_from_record, transition_from_record
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

SETTINGS = SimulationSettings(patients=120)
TRANSITIONS = [transition_from_record(record) for record in simulate_transitions(SETTINGS, "train")]
QUERIES = [query_from_record(record) for record in simulate_queries(SETTINGS, "test")]
METHODS = list(product(DISTANCES, AGGREGATES))


@pytest.fixture(scope="module")
def bank():
    """A small bank with the test encoder."""
    return TransitionBank.build(TRANSITIONS, encoder="hashing")


@dataclass(frozen=True)
class ByLength:
    """A scorer with parts: a draft's distance is its length, halved twice."""

    name = "by-length"
    needs_prior = False
    settings = {}  # noqa: RUF012

    def score(self, batch, section):
        """Return half the length, and the length as a part."""
        length = np.array([len(batch.draft_text(row, section)) for row in range(len(batch.drafts))], float)
        length[length == 0] = np.nan
        return Scores(length / 2, parts={"length": length, "half": length / 2})


def query(prior, *drafts):
    """Return a query of findings."""
    return Query(
        id="q",
        prior=() if prior is None else (Report(findings=prior),),
        candidates=tuple(Report(findings=draft) for draft in drafts),
    )


def by_the_text(distance, prior, current):
    """Return the shares, prior first, with weights and transition typed from the paper."""
    n, m = len(prior), len(current)
    cost = as_printed.cost_matrix(prior, current)
    before, after = np.zeros(n), np.zeros(m)
    if distance == "mean-shift":
        before[:], after[:] = 1 / n, 1 / m
    elif distance == "novelty":
        for j in range(m):
            before[cost[:, j].argmin()] += 1 / m
            after[j] += 1 / m
    elif distance == "dir-hausdorff":
        worst = max(range(m), key=lambda j: cost[:, j].min())
        before[cost[:, worst].argmin()], after[worst] = 1, 1
    change = getattr(as_printed, distance.replace("-", "_"))(prior, current)
    rows = [*(-weight * row for weight, row in zip(before, prior, strict=True))]
    rows += [weight * row for weight, row in zip(after, current, strict=True)]
    length = np.sqrt(sum(change**2))
    return [float(row @ change) / length / length for row in rows]


@pytest.mark.parametrize("distance", DISTANCES)
@given(prior=generic_sets() | tied_sets(), current=generic_sets() | tied_sets())
def test_shares_add_up_to_one(distance, prior, current):
    """Whatever the sentences, the signed shares of both sides sum to 1, or there is no change."""
    width = min(prior.shape[1], current.shape[1])
    prior, current = prior[:, :width], current[:, :width]
    found = shares(get_distance(distance), prior=prior, current=current)
    change = transition(get_distance(distance), prior=prior, current=current)
    if found is None:
        assert np.linalg.norm(change) < 2 * NORM_FLOOR
        return
    assert (len(found.prior), len(found.current)) == (len(prior), len(current))
    assert sum(found.prior) + sum(found.current) == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("distance", ["mean-shift", "novelty", "dir-hausdorff"])
@given(prior=generic_sets(), current=generic_sets())
def test_shares_are_the_projections_that_the_paper_implies(distance, prior, current):
    """Each share is the part of the printed transition's length that its sentence brings."""
    found = shares(get_distance(distance), prior=prior, current=current)
    assume(found is not None)
    np.testing.assert_allclose(
        [*found.prior, *found.current], by_the_text(distance, prior, current), atol=1e-6
    )


@given(prior=generic_sets(max_size=4), current=generic_sets(max_size=4))
def test_shares_of_cost_ot_follow_the_plan(prior, current):
    """A sentence's share is that of the mass that reaches or leaves it, by linear programming."""
    found = shares(get_distance("cost-ot"), prior=prior, current=current)
    assume(found is not None)
    cost = as_printed.cost_matrix(prior, current)
    plan, _ = as_printed.plan_by_linear_programming(cost)
    weight = plan * cost
    change = as_printed.displacement(plan, cost, prior, current)
    rows = np.concatenate([-weight.sum(1)[:, None] * prior, weight.sum(0)[:, None] * current])
    np.testing.assert_allclose([*found.prior, *found.current], rows @ change / (change @ change), atol=1e-5)


@given(prior=generic_sets(), current=generic_sets())
def test_one_pair_carries_the_whole_of_dir_hausdorff(prior, current):
    """One sentence on each side has half of the change each, the others have nothing."""
    found = shares(get_distance("dir-hausdorff"), prior=prior, current=current)
    assume(found is not None)
    for side in (found.prior, found.current):
        assert sorted(map(abs, side))[:-1] == [0.0] * (len(side) - 1)
        assert max(side) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(("distance", "aggregate"), METHODS)
def test_distances_and_neighbours_are_the_selectors_own(distance, aggregate, bank):
    """Worked out again from the texts, each shown distance is the selector's to 1e-6."""
    selector = Selector(bank, distance=distance, aggregate=aggregate, num_neighbours=3)
    for one, selection in zip(
        explain_many(selector, QUERIES[:4]), selector.select_many(QUERIES[:4]), strict=True
    ):
        assert one.drafts[0].draft == one.selected == selection.selected
        assert [draft.total for draft in one.drafts] == sorted(selection.total_distances)
        for name, section in one.sections.items():
            own = direction(distance, section.prior, section.current)
            again = [
                0.5 * (1 - float(own @ direction(distance, near.prior, near.current)))
                for near in section.nearest
            ]
            np.testing.assert_allclose([near.distance for near in section.nearest], again, atol=1e-6)
            told = selection.sections[name]
            assert section.distance == told.distances[one.draft]
            if again:
                expected = again[0] if aggregate == "min" else np.mean(again)
            else:  # no change: the bank has enough transitions without one
                assert not direction(distance, section.prior, section.current).any()
                expected = 0.0
            assert section.distance == pytest.approx(expected, abs=1e-6)


def direction(distance, prior, current):
    """Return the unit transition of two lists of sentences; zero where there is none."""
    before, after = (sentence_set(side, load_encoder("hashing")).astype(float) for side in (prior, current))
    change = transition(get_distance(distance), prior=before, current=after)
    length = np.linalg.norm(change)
    return change / length if length >= NORM_FLOOR else 0 * change


@pytest.mark.parametrize("distance", DISTANCES)
def test_lines_add_up_and_every_sentence_keeps_its_share(distance, bank):
    """The lines of an alignment sum to 1, and a report with its sentences reversed has the same shares."""
    selector = Selector(bank, distance=distance)
    for one in QUERIES[:5]:
        found = explain(selector, one)
        turned = replace(one, candidates=tuple(backwards(draft) for draft in one.candidates))
        again = explain(selector, turned, draft=found.draft)
        for name, section in found.sections.items():
            if section.shares is not None:
                lines = sum(section.share_of(pair) for pair in section.alignment)
                assert lines == pytest.approx(1.0, abs=1e-9)
                other = again.sections[name]
                assert dict(zip(section.current, section.shares.current, strict=True)) == pytest.approx(
                    dict(zip(other.current, other.shares.current, strict=True)), abs=1e-9
                )


def backwards(report):
    """Return a report with its sentences in reverse."""
    return Report(*(" ".join(reversed(split_sentences(report.section(name)))) for name in SECTIONS))


def test_a_case_by_hand(bank):
    """Two sentences kept, one new: its share is that of its vector and of its neighbour's."""
    one = query("Clear lungs. Normal heart.", "Clear lungs. Normal heart. New left effusion.")
    section = explain(Selector(bank, distance="novelty"), one).sections["findings"]
    assert [pair.kind for pair in section.alignment] == ["same", "same", "new"]
    vectors = sentence_set(["Clear lungs.", "New left effusion.", "Normal heart."], load_encoder("hashing"))
    nearest = int(
        cosine_cost(prior=vectors[[0, 2]].astype(float), current=vectors[[1]].astype(float)).argmin()
    )
    expected = [0.0, 0.0, 0.5]
    expected[nearest] = 0.5
    assert [section.share_of(pair) for pair in section.alignment] == pytest.approx(expected, abs=1e-6)


def test_many_are_explained_as_each_alone(bank):
    """A batch changes no bit of an explanation."""
    selector = Selector(bank, aggregate="knn", num_neighbours=4)
    assert explain_many(selector, QUERIES[:6]) == [explain(selector, one) for one in QUERIES[:6]]


def test_the_margin_and_another_draft(bank):
    """Another draft is explained on request, with how far it is behind."""
    selector, one = Selector(bank), QUERIES[0]
    pick = explain(selector, one)
    assert (pick.draft, pick.behind) == (pick.selected, 0.0)
    totals = sorted(draft.total for draft in pick.drafts)
    assert pick.margin == pytest.approx(totals[1] - totals[0])
    other = explain(selector, one, draft=pick.runner_up)
    assert other.behind == pytest.approx(pick.margin)
    assert other.selected == pick.selected
    assert other.sections["findings"].current == split_sentences(one.candidates[pick.runner_up].findings)


@pytest.mark.parametrize("draft", [-1, 2, 99])
def test_a_draft_that_is_not_there_is_refused(draft, bank):
    """The message names the query and its drafts, and shows no text."""
    with pytest.raises(BadInputError, match=r"draft -?\d+ of query 'q' was asked for; it has drafts 0 to 1"):
        explain(Selector(bank), query("Clear.", "Clear.", "Big heart."), draft=draft)
    with pytest.raises(BadInputError, match="it has no drafts"):
        explain(Selector(bank), query("Clear."), draft=0)


def test_neighbours_are_limited_and_their_text_can_be_kept_back(bank):
    """At most so many are shown; without text an id and a distance are left, and no sentence of the bank."""
    selector = Selector(bank)
    whole = explain(selector, QUERIES[0], neighbours=2)
    bare = explain(selector, QUERIES[0], neighbours=2, bank_text=False)
    for name, section in whole.sections.items():
        assert len(section.nearest) == 2
        [row] = [row for row, facts in enumerate(bank.provenance) if facts["id"] == section.nearest[0].id]
        assert sorted(section.nearest[0].current) == sorted(
            split_sentences(TRANSITIONS[row].current.section(name))
        )
        assert [(near.id, near.distance) for near in section.nearest] == [
            (near.id, near.distance) for near in bare.sections[name].nearest
        ]
        assert all(not (near.prior or near.current or near.alignment) for near in bare.sections[name].nearest)
    assert explain(selector, QUERIES[0], neighbours=0).sections["findings"].nearest == ()
    with pytest.raises(BadInputError, match="-1 neighbours"):
        explain(selector, QUERIES[0], neighbours=-1)


def test_where_nothing_was_chosen_the_reason_stands_there(bank):
    """No drafts, no prior, empty drafts: no section is made up; a draft asked for is aligned all the same."""
    selector = Selector(bank)
    reasons = [
        explain(selector, one) for one in (query("Clear."), query(None, "Clear."), query("Clear.", ""))
    ]
    assert [one.abstained for one in reasons] == ["no-drafts", "empty-prior", "all-drafts-empty"]
    assert all(
        (one.draft, one.behind, one.runner_up, one.sections) == (None, None, None, {}) for one in reasons
    )
    section = explain(selector, query(None, "Clear."), draft=0).sections["findings"]
    assert [pair.kind for pair in section.alignment] == ["new"]
    assert (section.shares, section.distance, section.nearest) == (None, None, ())


def test_a_draft_without_the_section_drops_everything(bank):
    """It has no shares and no distance of its own there, and the table says that it lacks the section."""
    one = replace(QUERIES[0], candidates=(QUERIES[0].candidates[0], Report(impression="Clear.")))
    found = explain(Selector(bank), one, draft=1)
    section = found.sections["findings"]
    assert {pair.kind for pair in section.alignment} == {"dropped"}
    assert (section.shares, section.distance, section.nearest) == (None, None, ())
    assert {draft.draft: draft.lacks for draft in found.drafts} == {0: (), 1: ("findings",)}


def test_no_change_has_no_shares(bank):
    """A copy of the prior is all `same`; there is no direction to share out; equal drafts are tied."""
    found = explain(Selector(bank), query("Clear lungs.", "Clear lungs.", "Clear lungs."))
    section = found.sections["findings"]
    assert ([pair.kind for pair in section.alignment], section.shares) == (["same"], None)
    assert (found.tied, found.selected, found.runner_up, found.margin) == (True, 0, 1, 0.0)


def test_one_draft_has_no_runner_up(bank):
    """The margin of an only draft is not a number but missing, also beside an empty one."""
    for drafts in (["Big heart."], ["Big heart.", ""]):
        found = explain(Selector(bank), query("Clear lungs.", *drafts))
        assert (found.runner_up, found.margin, found.selected) == (None, None, 0)


def test_the_newest_prior_is_the_one_beside_the_draft(bank):
    """Of several priors the last counts, as in selection."""
    two = replace(query("Old lungs.", "Big heart."), prior=(Report("Old lungs."), Report("Clear lungs.")))
    assert explain(Selector(bank), two).sections["findings"].prior == ("Clear lungs.",)


def test_a_bank_without_the_section_leaves_shares_but_no_distance():
    """What the draft changes is known without a bank; how usual that is, is not."""
    only = [
        replace(one, current=Report(impression=one.current.impression or "Clear."))
        for one in TRANSITIONS[:30]
    ]
    one = replace(QUERIES[0], candidates=QUERIES[0].candidates[:2])
    found = explain(Selector(TransitionBank.build(only, encoder="hashing")), one)
    section = found.sections["findings"]
    assert Note("bank-lacks", "findings") in found.flags
    assert (section.distance, section.nearest, section.shares is None) == (None, (), False)
    assert list(found.drafts[0].sections) == ["impression"]


def test_other_selectors_show_their_parts(bank):
    """A pool selector has no shares; each draft has its parts, and the alignment is there."""
    found = explain(Selector(bank, ByLength()), QUERIES[0])
    assert found.distance == ""
    for draft in found.drafts:
        for name, value in draft.sections.items():
            assert draft.parts[name] == {"length": 2 * value, "half": value}
    assert all(section.shares is None and section.alignment for section in found.sections.values())


def test_the_papers_method_behind_another_door_has_the_same_shares(bank):
    """A scorer that names one of the four distances is shared out as the selector is."""
    scorer = ByLength()
    object.__setattr__(scorer, "distance", "mean-shift")
    pool = explain(Selector(bank, scorer), QUERIES[0], draft=1)
    own = explain(Selector(bank, distance="mean-shift"), QUERIES[0], draft=1)
    assert [part.shares for part in pool.sections.values()] == [part.shares for part in own.sections.values()]


def test_anything_that_selects_can_be_explained():
    """An object with no bank and no encoder is explained with the plain encoder, and says so."""

    class First:
        signature = "first"

        def select_many(self, queries):
            return [Selection(selected=0, total_distances=(0.0,) * len(one.candidates)) for one in queries]

    found = explain(First(), query("Clear lungs.", "Clear lungs. Big heart."))
    assert (found.aligned_by, found.runner_up) == ("hashing", None)
    assert [pair.kind for pair in found.sections["findings"].alignment] == ["same", "new"]


def test_the_record_is_json_and_whole(bank):
    """Everything goes through JSON and comes back equal."""
    record = explain(Selector(bank), QUERIES[0]).as_record()
    assert json.loads(json.dumps(record)) == json.loads(json.dumps(record, allow_nan=False))
    assert {"id", "draft", "selected", "margin", "flags", "drafts", "sections", "signature"} <= set(record)
    section = record["sections"]["findings"]
    assert {"prior", "current", "alignment", "shares", "distance", "nearest", "evidence"} == set(section)


@given(st.lists(st.text(max_size=20), max_size=3), st.text(max_size=30))
def test_any_text_has_an_explanation(drafts, prior):
    """No text makes it fail; sentences come out as they were split."""
    one = query(prior, *drafts)
    for number in range(len(drafts)):
        found = explain(Selector(SMALL), one, draft=number)
        for name, section in found.sections.items():
            assert section.current == split_sentences(one.candidates[number].section(name))


SMALL = TransitionBank.build(TRANSITIONS[:12], encoder="hashing")
