"""Old priors, no prior, one draft, identical drafts, bad drafts: a defined outcome for every selector."""

from dataclasses import replace
from functools import cache

import pytest

from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import BadInputError
from tabon.method.bank import TransitionBank
from tabon.method.selection import Note
from tabon.selectors import SELECTORS, Selector, load_scorer
from tabon.text.records import Query, query_from_record, transition_from_record
from tabon.text.reports import Report

SETTINGS = SimulationSettings(patients=60, num_candidates=4)
NAMES = [
    "transition:novelty/min",
    "transition:cost-ot/knn",
    "two-sided:knn",
    *(
        f"report-space:{distance}/knn"
        for distance in ("chamfer", "hausdorff", "transport", "hungarian", "mean")
    ),
    "consensus:chamfer",
    "consensus:rouge-l-f",
    "consensus:labels-14-samples",
    "modex",
    "nearest-prior:chamfer",
    "next-visit:chamfer",
    "next-visit:rouge-l-f",
    "longest",
    "shortest",
    "first",
    "random:3",
    "fused",
]
WITH_PRIOR = [name for name in NAMES if name.startswith(("transition", "two-sided", "nearest", "next"))]
WITHOUT_PRIOR = [name for name in NAMES if name not in WITH_PRIOR]


@cache
def bank():
    """Return a small simulated bank."""
    records = map(transition_from_record, simulate_transitions(SETTINGS, "train"))
    return TransitionBank.build(records, encoder="hashing")


@cache
def query() -> Query:
    """Return one simulated query."""
    return query_from_record(next(simulate_queries(replace(SETTINGS, patients=400), "test")))


def chosen(name, asked, **options):
    """Select for one query."""
    return Selector(bank(), load_scorer(name, bank()), **options).select_many([asked])[0]


def with_drafts(*drafts):
    """Return the query with other drafts."""
    return replace(query(), candidates=drafts, draft_facts=({},) * len(drafts))


def test_every_selector_is_looked_at():
    """A new selector has to say what it does at the edges; two need a file or facts of the drafts."""
    assert {name.partition(":")[0] for name in NAMES} == SELECTORS.keys() - {"learnt", "log-probability"}


@pytest.mark.parametrize("name", NAMES)
def test_an_ordinary_query_is_answered_alike_alone_and_in_company(name):
    """One pick, a distance for every draft, and the same bits in any company."""
    alone = chosen(name, query())
    assert alone.selected in range(4)
    assert len(alone.total_distances) == 4
    other = replace(query(), id="other", candidates=query().candidates[::-1])
    many = Selector(bank(), load_scorer(name, bank())).select_many([other, query()])
    assert many[1] == alone


@pytest.mark.parametrize("name", WITH_PRIOR)
def test_selectors_that_need_a_prior_say_so(name):
    """Without a prior they choose nothing and name the reason."""
    assert chosen(name, replace(query(), prior=())).abstained == "empty-prior"


@pytest.mark.parametrize("name", WITHOUT_PRIOR)
def test_the_others_do_without_a_prior(name):
    """Without a prior they choose all the same."""
    assert chosen(name, replace(query(), prior=())).selected is not None


@pytest.mark.parametrize("name", NAMES)
def test_old_priors_count_only_when_asked_for(name):
    """The newest prior decides unless a history is given; then old ones are weighed in."""
    older = replace(query(), prior=(Report("Large effusion.", "Effusion."), *query().priors))
    assert chosen(name, older).total_distances == chosen(name, query()).total_distances
    if load_scorer(name, bank()).uses_prior:
        assert chosen(name, older, history=0.5).selected is not None
    else:
        with pytest.raises(BadInputError, match="looks at no prior"):
            chosen(name, older, history=0.5)


@pytest.mark.parametrize("name", NAMES)
def test_one_draft_is_the_pick(name):
    """There is nothing to compare it with: it is taken, without a margin."""
    only = chosen(name, with_drafts(query().candidates[1]))
    assert (only.selected, only.margin) == (0, None)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("first", "random:3")])
def test_identical_drafts_tie_and_the_first_is_taken(name):
    """Equal drafts have equal distances, and the record says that they tied."""
    equal = chosen(name, with_drafts(*[query().candidates[0]] * 3))
    assert (equal.selected, equal.tied) == (0, True)


@pytest.mark.parametrize("name", NAMES)
def test_no_drafts_and_empty_drafts_are_abstentions(name):
    """Nothing to choose from is said, not hidden."""
    assert chosen(name, with_drafts()).abstained == "no-drafts"
    assert chosen(name, with_drafts(Report(), Report())).abstained == "all-drafts-empty"


@pytest.mark.parametrize("name", NAMES)
def test_drafts_that_are_all_nonsense_still_get_distances(name):
    """Bad drafts are ranked like any; saying that all are bad is `--abstain`'s business."""
    nonsense = chosen(name, with_drafts(Report("Lorem ipsum.", "Dolor."), Report("Xyzzy plugh.", "Foo bar.")))
    assert nonsense.selected in (0, 1)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("first", "random:3", "shortest")])
def test_a_draft_without_a_section_is_behind_there(name):
    """In the section that it lacks no other draft is farther."""
    lacking = chosen(name, with_drafts(Report(query().candidates[0].findings, ""), *query().candidates[1:]))
    distances = lacking.sections["impression"].distances
    assert distances[0] == max(distances)
    assert Note("draft-lacks", "impression", 0) in lacking.flags


@pytest.mark.parametrize("name", NAMES)
def test_a_patient_of_the_bank_is_refused(name):
    """No selector answers for a patient whose own transitions it could look up."""
    known = replace(query(), patient=next(iter(bank().patients)))
    assert chosen(name, known).abstained == "patient-in-bank"
    assert chosen(name, known, allow_bank_patients=True).selected is not None
