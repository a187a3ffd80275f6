"""Equations 11 and 12: the total, the choice, ties, and choosing nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.method.selection import (
    ABSTENTIONS,
    Neighbour,
    SectionDistances,
    Selection,
    select,
    total_distances,
)

distances = st.floats(0, 1, allow_nan=False)
SOME = (Neighbour(0, 0.0, [{"id": "t"}]),)


def section(values, *, missing=()):
    """Section distances; drafts in `missing` lack the section."""
    there = tuple(j not in missing for j in range(len(values)))
    nearest = tuple(SOME if known else () for known in there)
    return SectionDistances(distances=tuple(values), nearest=nearest, compared=there)


@given(st.lists(st.tuples(distances, distances), min_size=1, max_size=6))
def test_the_total_is_equation_11(pairs):
    """The total is the findings distance plus the impression distance."""
    findings, impression = zip(*pairs, strict=True)
    assert total_distances([section(findings), section(impression)]) == tuple(f + i for f, i in pairs)


def test_a_neighbour_is_its_row_and_distance():
    """The bank it comes from is neither compared nor shown."""
    assert Neighbour(3, 0.5, [{"id": "t"}]) == Neighbour(3, 0.5, [{"id": "u"}])
    assert "'t'" not in repr(Neighbour(0, 0.5, [{"id": "t"}]))


@given(st.lists(st.tuples(distances, distances), min_size=1, max_size=6))
def test_the_smallest_total_is_chosen_as_equation_12(pairs):
    """The first of the smallest totals is chosen; the margin is the way to the second."""
    findings, impression = zip(*pairs, strict=True)
    chosen = select({"findings": section(findings), "impression": section(impression)})
    totals = [f + i for f, i in pairs]
    assert chosen.selected == totals.index(min(totals))
    assert chosen.tied == (totals.count(min(totals)) > 1)
    if len(totals) > 1:
        assert chosen.margin == sorted(totals)[1] - min(totals)
    else:
        assert chosen.margin is None


def test_ties_go_to_the_earliest_draft():
    """Two equal drafts: the first is taken and the tie is told."""
    chosen = select({"findings": section([0.5, 0.2, 0.2])})
    assert (chosen.selected, chosen.tied, chosen.margin) == (1, True, 0.0)


def test_a_draft_with_nothing_to_compare_is_never_chosen():
    """An empty draft at distance 1 loses a tie against a real draft at distance 1."""
    chosen = select({"findings": section([1.0, 1.0], missing={0})})
    assert chosen.selected == 1
    assert not chosen.tied


def test_a_draft_with_one_of_the_sections_can_be_chosen():
    """A draft that lacks a section has the worst distance there, and may still be the best."""
    parts = {"findings": section([0.9, 0.0]), "impression": section([0.9, 1.0], missing={1})}
    assert select(parts).selected == 1


def test_sections_with_unlike_numbers_of_drafts_are_an_error():
    """A total over drafts that do not match would be a wrong one."""
    with pytest.raises(ValueError, match="shorter"):
        total_distances([section([0.1, 0.2]), section([0.1])])


def test_nothing_to_compare_is_an_abstention():
    """When no draft shares a section with the prior, none is chosen."""
    chosen = select({"findings": section([1.0, 1.0], missing={0, 1})})
    assert chosen.selected is None
    assert chosen.abstained == "nothing-to-compare"
    assert chosen.abstained in ABSTENTIONS


def test_no_section_at_all_is_an_abstention():
    """No section left to sum over: nothing is chosen."""
    assert select({}).abstained == "nothing-to-compare"


def test_a_record_keeps_the_contract():
    """The JSON record has the keys that docs/reference/file-formats.md promises."""
    record = select({"findings": section([0.3, 0.1])}, flags=("x",), signature="s").as_record("q1")
    assert record == {
        "id": "q1",
        "selected": 1,
        "total_distances": [0.3, 0.1],
        "section_distances": {"findings": [0.3, 0.1]},
        "nearest": {"findings": [{"id": "t", "distance": 0.0}]},
        "parts": {},
        "margin": 0.3 - 0.1,
        "tied": False,
        "flags": ["x"],
        "abstained": None,
        "p": None,
        "signature": "s",
    }


def test_an_abstention_s_record_has_every_key():
    """A record without a choice has the same keys as one with."""
    keys = select({"findings": section([0.3])}).as_record("q").keys()
    record = Selection(selected=None, abstained="no-drafts").as_record("q")
    assert record.keys() == keys
    assert (record["tied"], record["margin"], record["abstained"]) == (False, None, "no-drafts")
