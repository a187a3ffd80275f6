"""Rules of thumb: length, place, chance and the generator's own confidence."""

from dataclasses import replace

import pytest

from tabon import Query, Report, Transition, TransitionBank
from tabon.errors import BadInputError
from tabon.selectors import Selector, load_scorer

CLEAR, EFFUSION = Report("Clear lungs.", "Normal."), Report("New right pleural effusion.", "Effusion.")
NAMES = ("longest", "shortest", "first", "random:7")


@pytest.fixture(scope="module")
def bank():
    """A bank of one transition, without impressions: these rules do not look at it."""
    only = Transition(id="t", prior=Report("Clear.", ""), current=Report("New effusion.", ""))
    return TransitionBank.build([only], encoder="hashing")


def chosen(bank, name, *queries):
    """Return the selections of a scorer."""
    return Selector(bank, load_scorer(name, bank)).select_many(queries)


def query(*drafts, facts=(), name="q", prior=()):
    """Return a query of these drafts."""
    return Query(id=name, prior=prior, candidates=drafts, draft_facts=facts)


def test_length_is_counted_in_words(bank):
    """Longest takes 4 + 1 words before 2 + 1, shortest the other way round."""
    [longest] = chosen(bank, "longest", query(CLEAR, EFFUSION))
    assert (longest.selected, longest.total_distances) == (1, (-3.0, -5.0))
    [shortest] = chosen(bank, "shortest", query(EFFUSION, CLEAR))
    assert (shortest.selected, shortest.total_distances) == (1, (5.0, 3.0))


def test_the_first_draft_with_all_sections_is_first(bank):
    """Places are distances; a draft that lacks a section stands behind."""
    [selection] = chosen(bank, "first", query(EFFUSION, CLEAR, EFFUSION))
    assert (selection.selected, selection.total_distances) == (0, (0.0, 2.0, 4.0))
    [lacking] = chosen(bank, "first", query(Report("Clear.", ""), CLEAR, EFFUSION))
    assert lacking.selected == 1


def test_a_missing_section_is_not_a_short_one(bank):
    """It has no words for `longest` and stands behind for `shortest`."""
    drafts = Report("Clear lungs today.", ""), CLEAR
    assert chosen(bank, "shortest", query(*drafts))[0].selected == 1
    [longest] = chosen(bank, "longest", query(*drafts))
    assert longest.total_distances == (-3.0, -3.0)


def test_chance_goes_by_seed_and_query_alone(bank):
    """The same draws in any batch and for any prior; other seeds and other queries draw anew."""
    asked = [query(CLEAR, EFFUSION, CLEAR, name=f"q{i}") for i in range(8)]
    together = chosen(bank, "random:7", *asked)
    assert [chosen(bank, "random:7", one)[0] for one in asked] == together
    assert chosen(bank, "random:7", replace(asked[0], prior=(CLEAR, EFFUSION)))[0] == together[0]
    assert len({one.total_distances for one in together}) == len(asked)
    assert chosen(bank, "random:8", *asked)[0].total_distances != together[0].total_distances
    assert chosen(bank, "random", asked[0])[0] == chosen(bank, "random:0", asked[0])[0]


def test_chance_is_even(bank):
    """Over 600 queries each of three drafts is taken about as often; four standard errors."""
    asked = [query(CLEAR, EFFUSION, CLEAR, name=str(i)) for i in range(600)]
    picks = [one.selected for one in chosen(bank, "random:0", *asked)]
    assert all(abs(picks.count(draft) - 200) < 4 * (600 * 2 / 9) ** 0.5 for draft in range(3))


def test_committed_draws(bank):
    """The draws of seed 0 for the query `q`, so that they do not change unseen."""
    [selection] = chosen(bank, "random:0", query(CLEAR, EFFUSION))
    assert selection.sections["findings"].distances == (0.8519190861641887, 0.775521009022753)


def test_confidence_is_read_from_the_facts(bank):
    """The likeliest draft wins: by its sum, or a token where all have tokens."""
    sums = ({"logprob": -9.0}, {"log_probability": -4.0}, {})
    [selection] = chosen(bank, "log-probability", query(CLEAR, EFFUSION, CLEAR, facts=sums))
    assert selection.selected == 1
    assert selection.sections["findings"].distances == (9.0, 4.0, 10.0)
    assert selection.sections["findings"].compared == (True, True, False)
    tokens = ({"logprob": -9.0, "tokens": 9}, {"log_probability": -4.0, "tokens": 2}, {"tokens": 3})
    [mean] = chosen(bank, "log-probability", query(CLEAR, EFFUSION, CLEAR, facts=tokens))
    assert mean.selected == 0
    assert mean.sections["findings"].distances == (1.0, 2.0, 3.0)
    mixed = ({"logprob": -9.0, "tokens": 9}, {"logprob": -4.0})
    [mixed] = chosen(bank, "log-probability", query(CLEAR, EFFUSION, facts=mixed))
    assert mixed.sections["findings"].distances == (9.0, 4.0)


@pytest.mark.parametrize(
    "facts", [(), ({}, {}), ({"logprob": None}, {"logprob": "-4"}), ({"logprob": True}, {"tokens": 4})]
)
def test_without_confidence_nothing_is_compared(bank, facts):
    """No number beside any draft: an abstention, not a guess."""
    [selection] = chosen(bank, "log-probability", query(CLEAR, EFFUSION, facts=facts))
    assert selection.abstained == "nothing-to-compare"


def test_tokens_that_are_no_count_are_left_out(bank):
    """Zero or false tokens cannot be divided by: sums are compared."""
    facts = ({"logprob": -9.0, "tokens": 0}, {"logprob": -4.0, "tokens": 4})
    [selection] = chosen(bank, "log-probability", query(CLEAR, EFFUSION, facts=facts))
    assert selection.sections["findings"].distances == (9.0, 4.0)


@pytest.mark.parametrize("name", NAMES)
def test_edge_cases(bank, name):
    """No prior needed, one draft, copies, empty drafts, any batch: all answered or refused with a reason."""
    assert chosen(bank, name, query(EFFUSION))[0].selected == 0
    [copies] = chosen(bank, name, query(EFFUSION, EFFUSION))
    assert copies.tied == (name in {"longest", "shortest"})
    [bad] = chosen(bank, name, query(Report(), EFFUSION, Report("None.", "")))
    assert bad.selected == 1
    assert chosen(bank, name, query(Report()))[0].abstained == "all-drafts-empty"
    assert chosen(bank, name, query())[0].abstained == "no-drafts"
    asked = [query(CLEAR, EFFUSION), query(EFFUSION, CLEAR, EFFUSION, prior=(CLEAR, CLEAR))]
    assert [chosen(bank, name, one)[0] for one in asked] == chosen(bank, name, *asked)


@pytest.mark.parametrize("name", ["longest:2", "shortest:a", "first:1", "log-probability:mean"])
def test_rules_without_variants_refuse_them(bank, name):
    """What stands after the colon would mean nothing."""
    with pytest.raises(BadInputError, match="has no variants"):
        load_scorer(name, bank)


@pytest.mark.parametrize("name", ["random:x", "random:-1", "random:1.5"])
def test_a_seed_is_a_whole_number(bank, name):
    """Anything else is refused with the way out."""
    with pytest.raises(BadInputError, match="say random:0"):
        load_scorer(name, bank)


def test_the_name_shows_the_seed(bank):
    """The default seed is not hidden."""
    assert load_scorer("random", bank).name == "random:0"
