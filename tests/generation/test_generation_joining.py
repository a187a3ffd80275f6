"""From drafts to queries: nothing out of order, nothing lost without a count."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.errors import BadInputError
from tabon.generation.queries import JoinCounts, queries_from
from tabon.text.records import read_query_lines

BOTH = "Findings: Clear.\nImpression: Normal."
TRANSITIONS = [
    {
        "id": f"s{number}",
        "patient": f"p{number}",
        "prior": {"findings": "Clear.", "impression": "Normal."},
        "current": {"findings": "Edema.", "impression": "Worse."},
        "split": "test",
    }
    for number in (2, 0, 1)
]


def draft(study, sample, *, outcome="ok", text=BOTH, model="m", prompt="P1"):
    """Make one journaled draft."""
    return {
        "study": study,
        "model": model,
        "prompt": prompt,
        "sample": sample,
        "outcome": outcome,
        "text": text,
        "usage": {"output_tokens": 9},
    }


def joined(*drafts, expected=2, transitions=TRANSITIONS, **options):
    """Join drafts with the three transitions; return the queries and the counts."""
    counts = JoinCounts()
    queries = queries_from(
        transitions,
        lambda study: [one for one in drafts if one["study"] == study],
        expected=expected,
        counts=counts,
        **options,
    )
    return list(queries), counts


def test_a_query_is_what_the_contract_says():
    """All keys, no more; a full set of drafts has no shortfall."""
    queries, _ = joined(draft("s2", 1, text="Findings: B."), draft("s2", 0), transitions=TRANSITIONS[:1])
    assert queries == [
        {
            "id": "s2",
            "patient": "p2",
            "prior": TRANSITIONS[0]["prior"],
            "candidates": [
                {"text": BOTH, "sample": 0, "outcome": "ok"},
                {"text": "Findings: B.", "sample": 1, "outcome": "ok"},
            ],
            "reference": TRANSITIONS[0]["current"],
            "model": "m",
            "prompt": "P1",
            "expected": 2,
        }
    ]


def test_selection_reads_what_is_written():
    """The queries pass the reader of `tabon select`; model, prompt and shortfall travel along."""
    queries, _ = joined(draft("s0", 0), draft("s2", 0))
    read = list(read_query_lines(json.dumps(query).encode() for query in queries))
    assert [query.id for query in read] == ["s2", "s0", "s1"]
    assert [len(query.candidates) for query in read] == [1, 1, 0]
    assert read[0].candidates[0].impression == "Normal."
    assert read[0].facts == {"model": "m", "prompt": "P1", "expected": 2, "shortfall": 1}


@given(st.permutations([draft(study, sample) for study in ("s0", "s1", "s2") for sample in range(3)]))
def test_the_order_of_the_journal_does_not_matter(drafts):
    """Queries come in the cohort's order, candidates in the order of samples."""
    queries, _ = joined(*drafts, expected=3)
    assert [query["id"] for query in queries] == ["s2", "s0", "s1"]
    assert all([one["sample"] for one in query["candidates"]] == [0, 1, 2] for query in queries)


@pytest.mark.parametrize("outcome", ["blocked", "refused", "empty", "malformed"])
def test_what_cannot_be_used_is_left_out_and_counted(outcome):
    """A draft without usable text is no candidate, and the query says that one is missing."""
    queries, counts = joined(draft("s2", 0, outcome=outcome, text="Sorry."), draft("s2", 1))
    assert [one["sample"] for one in queries[0]["candidates"]] == [1]
    assert queries[0]["shortfall"] == 1
    assert counts.outcomes == {outcome: 1, "ok": 1}


def test_a_truncated_draft_is_a_candidate():
    """A draft that was cut short can be chosen, and says that it was cut."""
    queries, _ = joined(draft("s2", 0, outcome="truncated"), expected=1)
    assert [one["outcome"] for one in queries[0]["candidates"]] == ["truncated"]
    assert "shortfall" not in queries[0]


@pytest.mark.parametrize("text", ["", " \n", None])
def test_a_good_outcome_without_text_is_no_candidate(text):
    """Nothing is chosen from nothing, whatever the journal calls it."""
    queries, counts = joined(draft("s2", 0, text=text), expected=1)
    assert queries[0]["candidates"] == []
    assert counts.outcomes == {"ok": 1}
    assert sum(counts.sections.values()) == 0


def test_everything_is_counted():
    """Studies, drafts, outcomes, sections found and what is missing add up."""
    _, counts = joined(
        draft("s0", 0),
        draft("s0", 1, text="Impression: Normal."),
        draft("s0", 2, text="Surplus."),
        draft("s1", 0, outcome="truncated", text="Findings: Cl"),
        draft("s1", 1, outcome="ok", text="Findings: none\nImpression: N/A"),
        draft("s1", 2, outcome="blocked", text=None),
    )
    assert counts.record() == {
        "studies": 3,
        "drafts": 4,
        "surplus": 2,
        "outcomes": {"ok": 3, "truncated": 1},
        "sections": {"both": 1, "findings-only": 1, "impression-only": 1, "neither": 1},
        "with_shortfall": 1,
        "without_drafts": 1,
    }


def test_a_study_without_drafts_is_still_a_query():
    """No study disappears; its model and prompt are named where the caller names them."""
    queries, counts = joined(model="m", prompt="P3")
    assert [(query["model"], query["prompt"], query["shortfall"]) for query in queries] == [
        ("m", "P3", 2)
    ] * 3
    assert counts.without_drafts == 3
    assert joined()[0][0]["model"] is None


@pytest.mark.parametrize("other", [{"model": "n"}, {"prompt": "P2"}])
def test_models_and_prompts_are_not_mixed(other):
    """Drafts of two models or prompts in one query are an error, and so are unwanted ones."""
    with pytest.raises(BadInputError, match="'s2' has drafts of several"):
        joined(draft("s2", 0), draft("s2", 1, **other))
    with pytest.raises(BadInputError, match="join one at a time"):
        joined(draft("s2", 0), **other)


def test_a_sample_is_there_once():
    """The same sample twice means mixed parameters; the message has no draft text."""
    with pytest.raises(BadInputError, match="'s2' has two drafts with sample 1") as caught:
        joined(draft("s2", 1, text="CANARY"), draft("s2", 1, text="CANARY"))
    assert "CANARY" not in str(caught.value)


def test_at_least_one_draft_is_expected():
    """K = 0 asks for nothing."""
    with pytest.raises(BadInputError, match="expected is 0"):
        joined(expected=0)


def test_queries_are_made_one_at_a_time():
    """The cohort is not held: a query is there before the next transition is read."""
    taken = []

    def transitions():
        for transition in TRANSITIONS:
            taken.append(transition["id"])
            yield transition

    queries = queries_from(transitions(), lambda _study: [], expected=1)
    next(queries)
    assert taken == ["s2"]
