"""The report-space rival: against the loop over all training reports, with ties, in any blocks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slow_set_distances as slow
from strategies import unit_rows
from tabon import Query, Report, Transition, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import BadInputError, UnknownNameError
from tabon.method.sentence_sets import RaggedSets
from tabon.selectors import Selector, load_scorer, make_batch
from tabon.selectors.set_distances import nearest_sets
from tabon.selectors.set_distances import nearest_sets as set_coverage
from tabon.selectors.set_distances.distances import SET_DISTANCES, paired_distances
from tabon.selectors.set_distances.nearest_sets import (
    LOWER_BOUNDS,
    OUTRIGHT,
    DistinctSets,
    SetIndex,
    SetLayout,
)
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import SECTIONS
from tabon.text.sentences import split_sentences

COHORT = SimulationSettings(patients=70, splits=(0.8, 0.0, 0.2))
ONCE = [transition_from_record(record) for record in simulate_transitions(COHORT, "train")]
TRANSITIONS = [*ONCE, *(replace(ONCE[i], id=f"copy-{i}") for i in range(0, len(ONCE), 3))]
QUERIES = [query_from_record(record) for record in simulate_queries(COHORT, "test")][:4]
CLEAR, EDEMA = Report(findings="Lungs are clear.", impression="No edema."), Report(findings="Mild edema.")
NORMAL = "No acute disease."


class GenericEncoder:
    """Each sentence a random direction: sets in general position."""

    def encode(self, sentences):
        """Seed a generator with each sentence."""
        return np.stack([np.random.default_rng(list(text.encode())).standard_normal(8) for text in sentences])


class TiedEncoder:
    """Few directions with exact dot products: duplicates and ties everywhere."""

    def encode(self, sentences):
        """Map each sentence to one of six rows."""
        alphabet = np.concatenate([np.eye(4), [[1, 1, 1, 1], [1, 1, -1, -1]]])
        return np.stack([alphabet[sum(text.encode()) % 6] for text in sentences])


ENCODERS = {"generic": GenericEncoder(), "tied": TiedEncoder()}


@pytest.fixture(scope="module")
def banks():
    """One bank for each encoder."""
    return {name: TransitionBank.build(TRANSITIONS, encoder=encoder) for name, encoder in ENCODERS.items()}


def chooser(bank, name, encoder=None):
    """A selector by name."""
    return Selector(bank, load_scorer(name, bank), encoder=encoder)


def small_bank(*currents):
    """A bank with these current reports, under the hashing encoder."""
    pairs = enumerate(currents)
    return TransitionBank.build(
        [Transition(id=f"t{row}", prior=CLEAR, current=current) for row, current in pairs],
        encoder="hashing",
    )


def pick(bank, name, *drafts, prior=()):
    """What one query is answered."""
    [selection] = chooser(bank, name).select_many([Query(id="q", prior=prior, candidates=drafts)])
    return selection


def loop(bank, encoder, distance, draft, section):
    """Measure a draft's section against every current report of the bank: (distance, id), nearest first."""
    rows = {text: bank.table.vectors[row] for row, text in enumerate(bank.table.sentences)}
    texts = [text for text in split_sentences(draft.section(section)) if text not in rows]
    table = make_batch([Query(id="q", prior=(), candidates=(draft,))], bank, encoder).table
    rows |= {text: table.vectors[table.sentences.index(text)] for text in texts}
    asked = [rows[text] for text in split_sentences(draft.section(section))]
    found = []
    for row, transition in enumerate(TRANSITIONS):
        sentences = [rows[text] for text in split_sentences(transition.current.section(section))]
        if asked and sentences:
            found.append((slow.set_distance(distance, asked, sentences), row, transition.id))
    return [(float(distance), name) for distance, _, name in sorted(found)]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("distance", SET_DISTANCES)
def test_distances_and_neighbours_are_those_of_the_loop(banks, encoder, distance):
    """Every draft has the ids of the loop, ties by row, and its distances to 1e-12."""
    bank, one = banks[encoder], chooser(banks[encoder], f"report-space:{distance}/knn", ENCODERS[encoder])
    [selection] = one.select_many(QUERIES[:1])
    for section in SECTIONS:
        part = selection.sections[section]
        for number, draft in enumerate(QUERIES[0].candidates):
            expected = loop(bank, one.encoder, distance, draft, section)[:10]
            near = part.nearest[number]
            assert [neighbour.id for neighbour in near] == [name for _, name in expected]
            values = [value for value, _ in expected]
            np.testing.assert_allclose([neighbour.distance for neighbour in near], values, rtol=0, atol=1e-12)
            if values:
                assert part.distances[number] == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize("distance", SET_DISTANCES)
def test_min_is_the_nearest_of_the_ten(banks, distance):
    """`min` has the first neighbour of `knn`, and its distance."""
    least, ten = (
        chooser(banks["tied"], f"report-space:{distance}/{name}", ENCODERS["tied"]) for name in ("min", "knn")
    )
    pairs = zip(least.select_many(QUERIES), ten.select_many(QUERIES), strict=True)
    for one, many in pairs:
        for section in SECTIONS:
            first = tuple(near[:1] for near in many.sections[section].nearest)
            assert one.sections[section].nearest == first
            distances = tuple(near[0].distance if near else 1.0 for near in first)
            assert one.sections[section].distances == distances


@pytest.mark.parametrize("distance", SET_DISTANCES)
def test_a_query_alone_is_a_query_in_company(banks, distance):
    """Selections have the same bits whatever is asked beside them, and in any order."""
    one = chooser(banks["generic"], f"report-space:{distance}/knn", ENCODERS["generic"])
    together = one.select_many(QUERIES)
    assert [one.select_many([query])[0] for query in QUERIES] == together
    assert one.select_many(QUERIES[::-1]) == together[::-1]


ragged = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=40)


@pytest.mark.parametrize("distance", SET_DISTANCES)
@settings(max_examples=30)
@given(bank=ragged, asked=ragged, k=st.integers(1, 12), seed=st.integers(0, 99))
def test_search_is_a_full_sort(distance, bank, asked, k, seed):
    """The k nearest sets, and the bits of their distances, are those of measuring every set."""
    vectors = unit_rows(np.random.default_rng(seed), 10).astype(np.float32)
    assert_full_sort(distance, vectors, RaggedSets.of(bank), RaggedSets.of(asked), min(k, len(bank)))


def assert_full_sort(distance, vectors, bank, asked, k):
    """Compare a search with measuring every pair."""
    found = SetIndex(distance, vectors, bank).search(vectors, asked, k)
    for number in range(len(asked)):
        alone = asked.take(np.full(len(bank), number))
        every = paired_distances(distance, vectors, alone, vectors, bank)
        order = np.argsort(every, kind="stable")[:k]
        np.testing.assert_array_equal(found.rows[number], order)
        np.testing.assert_array_equal(found.distances[number], every[order])


def random_sets(rng, count, sentences):
    """Sets of one to six sentences; small numbers are frequent, so many are equal."""
    sizes = rng.integers(1, 7, size=count)
    return RaggedSets.of([np.minimum(rng.geometric(0.02, size=n), sentences).tolist() for n in sizes])


@pytest.mark.parametrize("distance", SET_DISTANCES)
@pytest.mark.parametrize(("sentences", "columns", "solve"), [(1, 7, 1), (9, 64, 3), (256, 8192, 500)])
def test_blocks_do_not_change_a_result(monkeypatch, distance, sentences, columns, solve):
    """Any block of the product, any number of solves between looks at the bounds: the full sort."""
    monkeypatch.setattr(set_coverage, "SENTENCES_AT_ONCE", sentences)
    monkeypatch.setattr(set_coverage, "COLUMNS_AT_ONCE", columns)
    monkeypatch.setattr(nearest_sets, "SOLVE_AT_ONCE", solve)
    rng = np.random.default_rng(4)
    vectors = unit_rows(rng, 301, 32).astype(np.float32)
    assert_full_sort(distance, vectors, random_sets(rng, 400, 300), random_sets(rng, 6, 300), 10)


@pytest.mark.parametrize("distance", SET_DISTANCES)
def test_near_ties_within_rounding_are_all_measured_again(distance):
    """Reports that the product cannot tell apart are ranked by their own distances."""
    rng = np.random.default_rng(8)
    centre = unit_rows(rng, 1, 64) + 1e-7 * rng.standard_normal((200, 64))
    vectors = np.concatenate([centre, unit_rows(rng, 3, 64)]).astype(np.float32)
    bank = RaggedSets.of([sorted(rng.integers(200, size=2).tolist()) for _ in range(150)])
    assert_full_sort(distance, vectors, bank, RaggedSets.of([[200, 201], [202]]), 10)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_values_and_bounds_are_what_they_claim(seed, size):
    """Outright values are the distances, lower bounds are under them, to the product's rounding."""
    rng = np.random.default_rng(seed)
    vectors = unit_rows(rng, 31).astype(np.float32)
    bank = DistinctSets.of(random_sets(rng, 20, 30)).sets
    asked = RaggedSets.of([rng.integers(30, size=size).tolist()])
    [coverage] = SetLayout.of(vectors, bank).coverages(vectors, asked)
    for distance in ("chamfer", "hausdorff", "transport", "hungarian"):
        exact = paired_distances(distance, vectors, asked.take(np.zeros(len(bank), int)), vectors, bank)
        if distance in OUTRIGHT:
            np.testing.assert_allclose(OUTRIGHT[distance](coverage), exact, atol=2e-6)
        else:
            assert (LOWER_BOUNDS[distance](coverage) <= exact + 2e-6).all()


def test_equal_sets_are_found_and_keep_their_rows():
    """Distinct sets stand longest first, each with its rows in ascending order."""
    found = DistinctSets.of(RaggedSets.of([[3], [1, 2], [3], [2, 1], [4]]))
    assert [found.sets[i].tolist() for i in range(len(found.sets))] == [[1, 2], [3], [4]]
    assert [found.rows[i].tolist() for i in range(len(found.rows))] == [[1, 3], [0, 2], [4]]
    assert found.number.tolist() == [1, 0, 1, 0, 2]


def test_every_row_of_the_bank_counts():
    """Ten rows that share a report, word for word, are ten neighbours."""
    bank = small_bank(EDEMA, *[Report(findings=NORMAL)] * 12)
    selection = pick(bank, "report-space:transport/knn", Report(findings=NORMAL), EDEMA)
    assert selection.selected == 0
    part = selection.sections["findings"]
    assert [neighbour.id for neighbour in part.nearest[0]] == [f"t{row}" for row in range(1, 11)]
    assert part.distances[0] == 0.0
    assert part.nearest[1][0].distance == 0.0 < part.distances[1]


def test_the_training_reports_are_the_current_ones():
    """What stands in a bank's priors only is no training report; its prior may lack the section."""
    bank = small_bank(EDEMA, Report(impression=NORMAL))
    [near] = pick(bank, "report-space:chamfer/min", CLEAR).sections["findings"].nearest
    assert [neighbour.id for neighbour in near] == ["t0"]
    assert near[0].distance > 0.0
    other = TransitionBank.build(
        [
            Transition(id="a", prior=EDEMA, current=EDEMA),
            Transition(id="b", prior=EDEMA, current=CLEAR),
        ],
        encoder="hashing",
    )
    [near] = pick(other, "report-space:chamfer/min", CLEAR).sections["impression"].nearest
    assert [(neighbour.id, neighbour.distance) for neighbour in near] == [("b", 0.0)]


@pytest.mark.parametrize("name", ["report-space:chamfer/min", "report-space:hungarian/knn"])
def test_priors_are_not_looked_at(name):
    """No prior, one or several: the same answer without a flag."""
    bank = small_bank(CLEAR, EDEMA)
    drafts = (Report(findings="Edema is worse."), EDEMA)
    answers = [pick(bank, name, *drafts, prior=priors) for priors in ((), (CLEAR,), (EDEMA, CLEAR))]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].selected == 1
    assert not any(flag.kind.startswith("prior") for flag in answers[0].flags)


def test_one_draft_is_chosen_and_identical_drafts_tie():
    """A single draft has no margin; of equal ones the first is taken."""
    bank = small_bank(CLEAR, EDEMA)
    assert pick(bank, "report-space:mean/min", EDEMA).selected == 0
    tied = pick(bank, "report-space:mean/min", CLEAR, CLEAR)
    assert (tied.selected, tied.tied, tied.margin) == (0, True, 0.0)


def test_empty_drafts_abstain_and_a_lacking_section_is_worst():
    """Nothing to compare is said; a draft that lacks a section has distance 1 there."""
    bank = small_bank(CLEAR)
    assert pick(bank, "report-space:chamfer/min", Report(), Report()).abstained == "all-drafts-empty"
    assert pick(bank, "report-space:chamfer/min").abstained == "no-drafts"
    selection = pick(bank, "report-space:chamfer/min", Report(findings="Lungs are clear."), CLEAR)
    assert selection.selected == 1
    assert selection.sections["impression"].distances == (1.0, 0.0)
    assert selection.sections["impression"].nearest[0] == ()


def test_a_bank_without_the_section_leaves_it_out():
    """A section that no training report has counts for no draft."""
    bank = small_bank(EDEMA)
    selection = pick(bank, "report-space:hausdorff/knn", CLEAR)
    assert set(selection.sections) == {"findings"}
    alone = pick(bank, "report-space:hausdorff/knn", Report(impression=NORMAL))
    assert alone.abstained == "nothing-to-compare"


def test_a_bank_smaller_than_k_uses_all_of_it():
    """With three reports `knn` is the mean of three."""
    bank = small_bank(EDEMA, EDEMA, Report(findings=NORMAL))
    [near] = pick(bank, "report-space:chamfer/knn", EDEMA).sections["findings"].nearest
    assert [neighbour.id for neighbour in near] == ["t0", "t1", "t2"]
    assert near[2].distance > near[1].distance == 0.0


def test_a_search_for_more_than_there_is_is_refused():
    """The index itself does not shorten k."""
    vectors = np.eye(2, dtype=np.float32)
    with pytest.raises(BadInputError, match="k = 2 reports were asked for, the bank has 1"):
        SetIndex("chamfer", vectors, RaggedSets.of([[0]])).search(vectors, RaggedSets.of([[1]]), 2)


def test_names_and_signatures_say_everything():
    """Defaults are spelled out; what changes a distance stands in the signature."""
    bank = small_bank(EDEMA)
    assert load_scorer("report-space", bank).name == "report-space:chamfer/min"
    assert not load_scorer("report-space:mean/knn", bank).needs_prior
    signature = chooser(bank, "report-space:hungarian/knn").signature
    assert signature.startswith(
        "selector:report-space:hungarian/knn|reports:current|k:10|unmatched:0.5|encoder:hashing"
    )


@pytest.mark.parametrize(
    ("variant", "message"),
    [
        ("chamfers/min", "unknown set distance 'chamfers'. Did you mean 'chamfer'"),
        ("chamfer/mean", "unknown aggregation 'mean'"),
        ("chamfer", "unknown aggregation ''"),
    ],
)
def test_unknown_variants_are_refused(variant, message):
    """A typing error is named."""
    with pytest.raises(UnknownNameError, match=message):
        load_scorer(f"report-space:{variant}", small_bank(EDEMA))
