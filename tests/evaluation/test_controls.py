"""Each control changes the one thing that it says, and every number agrees with the plain way."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from student import tail
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.encoders.hashing import HashingEncoder
from tabon.errors import BadInputError, UnknownNameError
from tabon.evaluation import read_cases
from tabon.evaluation.controls import (
    CONDITIONS,
    ControlSettings,
    Dependencies,
    run_controls,
)
from tabon.evaluation.controls.changes import (
    assembled,
    clauses,
    encoded_anew,
    nested_banks,
    other_priors,
    other_sections,
    recut,
    whole_section,
)
from tabon.evaluation.controls.conditions import NONE, OTHER, RIGHT, LeftOut, Row, Trial
from tabon.evaluation.controls.outcomes import generation_names, like_length
from tabon.evaluation.draft_scores import Measured
from tabon.evaluation.inputs import whose
from tabon.evaluation.results import read_results, write_results
from tabon.method.bank import TransitionBank
from tabon.metrics import Pair, load_metric
from tabon.reporting.controls_table import controls_table, factorial_table
from tabon.reporting.plots.curves import curves_of
from tabon.reporting.tables import FORMS, all_tables, render
from tabon.selectors import Selector, load_scorer
from tabon.text.records import Query, transition_from_record
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

COHORT = SimulationSettings(patients=70, num_candidates=4, splits=(0.5, 0.1, 0.4))
NOVELTY = "transition:novelty/min"
HASHING = load_encoder("hashing")


class BackwardsEncoder(HashingEncoder):
    """Another encoder: it reads sentences from their end."""

    fingerprint = replace(HashingEncoder.fingerprint, encoder="backwards")

    def encode(self, sentences, /):
        """Return the rows of the reversed sentences."""
        return super().encode([sentence[::-1] for sentence in sentences])


def lines(settings):
    """Return simulated queries as lines; every third has an older prior too."""
    for number, record in enumerate(simulate_queries(settings)):
        older = {"findings": "The lungs are clear.", "impression": "No acute disease."}
        prior = [older, record["prior"]] if number % 3 == 0 else record["prior"]
        yield json.dumps({**record, "prior": prior}).encode()


@pytest.fixture(scope="module")
def training():
    """Return the training transitions."""
    return [transition_from_record(record) for record in simulate_transitions(COHORT, "train")]


@pytest.fixture(scope="module")
def bank(training):
    """Return their bank."""
    return TransitionBank.build(training, encoder="hashing")


@pytest.fixture(scope="module")
def cases():
    """Return studies with references."""
    return read_cases(lines(COHORT), name="with.jsonl")


@pytest.fixture(scope="module")
def queries(cases):
    """Return their queries."""
    return tuple(case.query for case in cases.cases)


def trial_of(bank, queries, name=NOVELTY, **settings):
    """Put a selector on trial."""
    return Trial(name=name, bank=bank, queries=queries, encoder=HASHING, **settings)


def rows_of(trial, condition):
    """Try one condition."""
    return list(CONDITIONS[condition](trial, trial.right().picks[0]))


def chosen(selections):
    """Return what was chosen, -1 for nothing."""
    return [-1 if selection.selected is None else selection.selected for selection in selections]


def picked(row, queries, seed=0):
    """Return what a row chose."""
    return [row.picks[seed].chosen[query.id] for query in queries]


# other patients' priors


@st.composite
def crowds(draw):
    """Draw queries of some patients; some have no prior."""
    patients = draw(st.lists(st.sampled_from(["a", "b", "c", "d", None]), max_size=14))
    empty = draw(st.sets(st.integers(0, 13)))
    return [
        Query(
            id=f"q{number}",
            patient=patient,
            prior=() if number in empty else (Report(f"Prior {number}."),),
            candidates=(),
        )
        for number, patient in enumerate(patients)
    ]


@given(crowds(), st.integers(0, 50))
def test_nobody_gets_a_prior_of_their_own_and_every_prior_is_used_once(queries, seed):
    """An exchange moves each prior to another patient; it is refused exactly where that cannot be."""
    having = [query for query in queries if query.priors]
    of = {query.prior.findings: whose(query) for query in having}
    most = max((list(of.values()).count(name) for name in of.values()), default=0)
    if 2 * most > len(having):
        with pytest.raises(BadInputError, match="another patient's"):
            other_priors(queries, seed)
        return
    moved = other_priors(queries, seed)
    assert [query.id for query in moved] == [query.id for query in queries]
    assert [bool(query.priors) for query in moved] == [bool(query.priors) for query in queries]
    received = [query for query in moved if query.priors]
    assert all(of[query.prior.findings] != whose(query) for query in received)
    assert sorted(query.prior.findings for query in received) == sorted(of)
    backwards = {query.id: query.priors for query in other_priors(queries[::-1], seed)}
    assert {query.id: query.priors for query in moved} == backwards


def test_seeds_exchange_priors_in_other_ways(queries):
    """Two seeds give two exchanges, one seed the same one twice."""
    first, again, other = (other_priors(queries, seed) for seed in (1, 1, 2))
    assert first == again
    assert [query.priors for query in first] != [query.priors for query in other]


# banks made from a bank


def texts(bank, section, side):
    """Return the sentences of every set of a bank."""
    sets = getattr(bank.pairs[section], side)
    return [tuple(bank.table.sentences[row] for row in sets[number]) for number in range(len(sets))]


def test_a_bank_of_its_own_parts_is_the_same_bank(bank):
    """Putting the parts together gives the bytes that building gives."""
    again = assembled(
        bank.table,
        bank.pairs,
        bank.provenance,
        fingerprint=bank.fingerprint,
        zero_shares=bank.zero_shares,
    )
    assert again.sha256 == bank.sha256


def test_the_other_section_is_what_a_bank_of_exchanged_reports_would_hold(bank, training):
    """Findings stand where impressions were."""
    exchanged = TransitionBank.build(
        [replace(one, prior=tuple(map(turned, one.priors)), current=turned(one.current)) for one in training],
        encoder="hashing",
    )
    made = other_sections(bank)
    for section in SECTIONS:
        assert texts(made, section, "prior") == texts(exchanged, section, "prior")
        assert texts(made, section, "current") == texts(exchanged, section, "current")


def turned(report):
    """Exchange the sections of a report."""
    return Report(findings=report.impression, impression=report.findings)


def test_smaller_banks_lie_within_larger_ones(bank, training, queries):
    """Patients are whole and nested, the last bank is all, and picks are those of a bank built anew."""
    sized = list(nested_banks(bank, seed=3))
    patients = [one.bank.patients for one in sized]
    assert all(small < large for small, large in pairwise(patients))
    assert [len(names) for names in patients] == [one.patients for one in sized]
    assert patients[-1] == bank.patients
    middle = sized[-3]
    kept = [one for one in training if one.patient in middle.bank.patients]
    assert [row["id"] for row in middle.bank.provenance] == [one.id for one in kept]
    built = Selector(TransitionBank.build(kept, encoder="hashing"))
    here = Selector(middle.bank)
    assert chosen(here.select_many(queries)) == chosen(built.select_many(queries))


def test_transitions_without_patients_are_their_own(training):
    """A bank that names no patient is cut by transitions."""
    bare = [replace(one, patient=None, facts={}) for one in training[:8]]
    sizes = [len(one.bank) for one in nested_banks(TransitionBank.build(bare, encoder="hashing"), seed=0)]
    assert sizes == [1, 2, 4, 8]


@pytest.mark.parametrize("cut", [whole_section, clauses])
def test_other_pieces_are_cut_from_the_sentences_of_the_text(bank, training, cut):
    """A derived bank holds the pieces that the raw reports give, embedded by the same encoder."""
    made = recut(bank, cut, HASHING)
    for section in SECTIONS:
        expected = [tuple(sorted(cut(split_sentences(one.current.section(section))))) for one in training]
        assert texts(made, section, "current") == expected
    np.testing.assert_array_equal(made.table.vectors, HASHING.encode(list(made.table.sentences)))


def test_another_encoder_embeds_the_same_sets(bank):
    """Only the vectors and the fingerprint differ."""
    made = encoded_anew(bank, BackwardsEncoder())
    assert made.table.sentences == bank.table.sentences
    assert texts(made, "findings", "prior") == texts(bank, "findings", "prior")
    np.testing.assert_array_equal(made.table.vectors, BackwardsEncoder().encode(list(bank.table.sentences)))
    assert made.fingerprint["encoder"] == "backwards"


# conditions, each beside doing it by hand


def test_the_right_prior_is_the_selector_itself(bank, queries):
    """The base row is what `tabon select` chooses."""
    row = trial_of(bank, queries).right()
    assert (row.label, row.selector) == (RIGHT, "novelty/min")
    assert picked(row, queries) == chosen(Selector(bank).select_many(queries))


def test_other_priors_are_given_to_the_selector(bank, queries):
    """Each seed is a selection with that exchange; selectors that do without a prior get none."""
    [row] = rows_of(trial_of(bank, queries, shuffles=2, seed=4), "prior")
    assert row.label == OTHER
    for place in range(2):
        for query, pick in zip(other_priors(queries, 4 + place), picked(row, queries, place), strict=True):
            assert Selector(bank).select(query.prior, query.candidates).selected == pick
    [bare] = rows_of(trial_of(bank, queries, "consensus:chamfer"), "prior")
    assert bare.label == NONE
    assert picked(bare, queries) == picked(trial_of(bank, queries, "consensus:chamfer").right(), queries)


def test_the_other_section_is_scored(bank, queries):
    """The bank's sections change places, the drafts' do not; a selector without a bank has no such row."""
    [row] = rows_of(trial_of(bank, queries), "section")
    assert picked(row, queries) == chosen(Selector(other_sections(bank)).select_many(queries))
    assert picked(row, queries) != picked(trial_of(bank, queries).right(), queries)
    assert rows_of(trial_of(bank, queries, "consensus:chamfer"), "section") == []


def test_fewer_drafts_are_the_first_ones(bank, queries):
    """Also where a draft's distance depends on the other drafts."""
    rows = rows_of(trial_of(bank, queries, "consensus:chamfer"), "drafts")
    assert [row.x for row in rows] == [2, 3, 4]
    selector = Selector(bank, load_scorer("consensus:chamfer", bank))
    for row in rows:
        few = [replace(query, candidates=query.candidates[: row.x]) for query in queries]
        assert picked(row, queries) == chosen(selector.select_many(few))


def test_the_k_curve_is_knn_with_that_k(bank, queries):
    """One search serves every k, and k = 1 is min."""
    rows = rows_of(trial_of(bank, queries), "neighbours")
    assert [row.x for row in rows] == [1, 2, 3, 5, 10, 20]
    for row in rows[::2]:
        selector = Selector(bank, aggregate="knn", num_neighbours=row.x)
        assert picked(row, queries) == chosen(selector.select_many(queries))
    assert rows_of(trial_of(bank, queries, "consensus:chamfer"), "neighbours") == []


def test_a_whole_section_moves_as_one_vector(bank, training, queries):
    """The distance is that of the nearest difference of two whole sections, worked out by hand."""
    whole, _ = rows_of(trial_of(bank, queries), "splitter")

    def move(prior, current, section):
        ends = [" ".join(split_sentences(report.section(section))) for report in (prior, current)]
        if not all(ends):
            return None
        before, after = HASHING.encode(ends).astype(np.float64)
        change = after - before
        length = np.linalg.norm(change)
        return change / length if length > 1e-6 else 0 * change

    moves = {
        section: [found for one in training if (found := move(one.prior, one.current, section)) is not None]
        for section in SECTIONS
    }
    for query, pick in zip(queries, picked(whole, queries), strict=True):
        totals = np.zeros(len(query.candidates))
        for section in SECTIONS:
            if not query.prior.section(section):
                continue
            for place, draft in enumerate(query.candidates):
                own = move(query.prior, draft, section)
                near = 1.0 if own is None else min(half_cosine(own, other) for other in moves[section])
                totals[place] += near
        assert totals[pick] == pytest.approx(totals.min(), abs=1e-6)


def half_cosine(one, other):
    """Eq. 9 of unit or zero vectors; no change is like no change."""
    return (1 - one @ other) / 2 if one.any() or other.any() else 0.0


def test_another_encoder_serves_bank_and_queries(bank, queries):
    """The row is that of a selector on a bank built with it; the bank's own encoder is no swap."""
    other = BackwardsEncoder()
    [row] = rows_of(trial_of(bank, queries, other_encoder=lambda: other), "encoder")
    selector = Selector(encoded_anew(bank, other), encoder=other)
    assert picked(row, queries) == chosen(selector.select_many(queries))
    [none] = rows_of(trial_of(bank, queries, other_encoder=lambda: HASHING), "encoder")
    assert isinstance(none, LeftOut)
    assert "bank's own" in none.reason


def test_older_priors_count_where_there_are_some(bank, queries):
    """The row stands on the studies with several priors, chosen with a history of a half."""
    [row] = rows_of(trial_of(bank, queries), "history")
    assert row.studies == {query.id for query in queries if len(query.priors) == 2}
    selector = Selector(bank, load_scorer(NOVELTY, bank), history=0.5)
    assert picked(row, queries) == chosen(selector.select_many(queries))
    single = tuple(query for query in queries if len(query.priors) == 1)
    assert rows_of(trial_of(bank, single), "history") == []


def test_a_bank_too_small_for_a_method_is_named(bank, queries):
    """Sizes with fewer than k transitions are left out with the reason, the others are there."""
    found = rows_of(trial_of(bank, queries, "transition:mean-shift/knn"), "bank-size")
    small = [each for each in found if isinstance(each, LeftOut)]
    assert small[0].label.startswith("1/64")
    assert "10 neighbours were asked for" in small[0].reason
    assert [each.label for each in found if isinstance(each, Row)][-1] == "the whole bank"


# numbers


@pytest.fixture(scope="module")
def results(cases, bank):
    """Run all conditions on two selectors, with drafts made without the prior beside them."""
    other = read_cases(lines(replace(COHORT, prompt="p1")), name="folder/without.jsonl")
    settings = ControlSettings(
        selectors=(NOVELTY, "consensus:chamfer"), scores=("rouge-l-f", "state-f1"), resamples=60, shuffles=2
    )
    return run_controls([cases, other], bank, settings, Dependencies(other_encoder=BackwardsEncoder()))


def outcome(results, label, section="findings", selector="novelty/min", score="rouge-l-f"):
    """Return one record of the controls."""
    wanted = (selector, label, section, score)
    [found] = [
        each
        for each in results.facts["controls"]
        if (each["selector"], each["label"], each["section"], each["score"]) == wanted
    ]
    return found


def worths(cases, section="findings"):
    """Return ROUGE-L of every draft of every study, (studies, K)."""
    metric = load_metric("rouge")
    place = [score.name for score in metric.scores].index("rouge-l-f")
    rows = []
    for case in cases.cases:
        pairs = [
            Pair(reference=case.reference.section(section), candidate=draft.section(section))
            for draft in case.query.candidates
        ]
        rows.append(metric.scores[place].value(metric.measure(pairs), np.ones(len(pairs))))
    return np.array(rows)


def drawn(cases, resamples=60, seed=0):
    """Draw patients as a plain loop would, and return the studies of each resample."""
    patients = list(dict.fromkeys(case.patient for case in cases.cases))
    studies = {name: [at for at, case in enumerate(cases.cases) if case.patient == name] for name in patients}
    rng = np.random.default_rng(seed)
    for draw in rng.integers(len(patients), size=(resamples, len(patients))):
        yield [at for patient in draw for at in studies[patients[patient]]]


def test_the_difference_to_the_right_prior_is_paired(cases, bank, queries, results):
    """Gap closed, right - other and both intervals are those of a loop over resampled patients."""
    table, at = worths(cases), np.arange(len(cases.cases))
    right = table[at, chosen(Selector(bank).select_many(queries))]
    exchanged = [chosen(Selector(bank).select_many(other_priors(queries, seed))) for seed in (0, 1)]
    other = np.mean([table[at, picks] for picks in exchanged], axis=0)
    random, oracle = table.mean(axis=1), table.max(axis=1)
    found = outcome(results, OTHER)
    gap, below = (oracle - random).mean(), tail([case.patient for case in cases.cases])
    assert found["gap"]["value"] == pytest.approx((other - random).mean() / gap)
    assert found["difference"]["value"] == pytest.approx((right - other).mean())
    assert found["gap_difference"]["value"] == pytest.approx((right - other).mean() / gap)
    shares = [(right - other)[rows].sum() / (oracle - random)[rows].sum() for rows in drawn(cases)]
    bounds = [found["gap_difference"][end] for end in ("low", "high")]
    assert bounds == pytest.approx(np.quantile(shares, [below, 1 - below]).tolist())
    shares = [(other - random)[rows].sum() / (oracle - random)[rows].sum() for rows in drawn(cases)]
    assert [found["gap"][end] for end in ("low", "high")] == pytest.approx(
        np.quantile(shares, [below, 1 - below]).tolist()
    )


def test_drafts_of_like_length_are_the_baseline(cases, bank, queries, results):
    """The pick is compared with the other drafts within 15 % of its words; studies without are counted."""
    table, picks = worths(cases), chosen(Selector(bank).select_many(queries))
    ahead, lost, gaps, dropped = [], [], [], 0
    for case, values, pick in zip(cases.cases, table, picks, strict=True):
        words = [len(draft.findings.split()) for draft in case.query.candidates]
        like = [
            place
            for place, count in enumerate(words)
            if place != pick and words[pick] and abs(count - words[pick]) <= 0.15 * words[pick]
        ]
        if not like:
            dropped += 1
            continue
        baseline = np.mean([values[place] for place in like])
        ahead.append(values[pick] - baseline)
        lost.append(baseline - values.mean())
        gaps.append(values.max() - values.mean())
    found = outcome(results, "against drafts of like length")
    assert (found["n"], found["left_out"]) == (len(ahead), dropped)
    assert dropped > 0
    assert found["gap"]["value"] == pytest.approx(np.sum(ahead) / np.sum(gaps))
    assert found["gap_difference"]["value"] == pytest.approx(np.sum(lost) / np.sum(gaps))


def test_like_length_leaves_out_silence_and_what_is_not_there():
    """An abstention, an empty pick and drafts that do not exist have nothing of like length."""
    words = np.array([[10, 10, 0], [0, 0, 5], [4, 4, 4]])
    there = np.array([[True, True, False], [True, True, True], [True, True, True]])
    found = like_length(words, there, np.array([0, 1, -1]))
    assert found.tolist() == [[False, True, False], [False] * 3, [False] * 3]


def test_fewer_drafts_have_their_own_random_pick_and_oracle(cases, bank, queries, results):
    """A point of the K-curve is the gap among the first drafts; there is no difference to the right prior."""
    few = [replace(query, candidates=query.candidates[:2]) for query in queries]
    table = worths(cases)[:, :2]
    picks = table[np.arange(len(table)), chosen(Selector(bank).select_many(few))]
    found = outcome(results, "2 drafts")
    expected = (picks - table.mean(axis=1)).sum() / (table.max(axis=1) - table.mean(axis=1)).sum()
    assert found["gap"]["value"] == pytest.approx(expected)
    assert found["gap_difference"] == {"value": None, "low": None, "high": None}
    [line] = [
        line
        for curve in curves_of(results)
        if (curve.name, curve.section, curve.score) == ("K-curve", "findings", "rouge-l-f")
        for line in curve.lines
        if line.method == "novelty/min"
    ]
    assert [point.x for point in line.points] == [2, 3, 4]
    assert line.points[0].gap == found["gap"]["value"]


def test_a_study_with_few_drafts_keeps_those_it_has():
    """Among the first three drafts, a study with two has two."""
    there = np.array([[True, True, False, False], [True, True, True, True]])
    table = Measured("findings", (), (), "", np.zeros((2, 4, 1)), there)
    assert table.first(3).there.tolist() == [[True, True, False], [True, True, True]]


def test_what_ignores_the_prior_loses_nothing(results):
    """Consensus without a prior is consensus, exactly; so is the whole bank."""
    found = outcome(results, NONE, selector="consensus:chamfer")
    assert found["gap_difference"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert outcome(results, "the whole bank")["gap_difference"]["value"] == 0.0


def test_several_priors_stand_on_their_studies(cases, bank, results):
    """The row and its difference are of the studies with several priors alone."""
    found = outcome(results, "all priors, history 0.5", section="report", score="state-f1")
    assert found["n"] == sum(len(case.query.priors) > 1 for case in cases.cases)
    assert found["left_out"] == len(cases.cases) - found["n"]
    found = outcome(results, "all priors, history 0.5")
    some = [at for at, case in enumerate(cases.cases) if len(case.query.priors) > 1 and case.has("findings")]
    table, asked = worths(cases)[some], [cases.cases[at].query for at in some]
    by_all = Selector(bank, load_scorer(NOVELTY, bank), history=0.5)
    newest, every = (
        table[np.arange(len(some)), chosen(each.select_many(asked))] for each in (Selector(bank), by_all)
    )
    assert found["difference"]["value"] == pytest.approx((newest - every).mean())
    assert found["difference"]["value"] != 0


def test_the_factorial_table_crosses_generation_and_selection(cases, bank, results):
    """Each generation has every way of choosing; differences to the first are paired by study."""
    other = read_cases(lines(replace(COHORT, prompt="p1")), name="x")
    cells = {
        (cell["generation"], cell["selector"], cell["selection"]): cell
        for cell in results.facts["factorial"]
        if cell["section"] == "findings" and cell["score"] == "rouge-l-f"
    }
    ways = [("random", ""), ("novelty/min", RIGHT), ("novelty/min", OTHER), ("consensus:chamfer", RIGHT)]
    ways += [("consensus:chamfer", NONE), ("oracle", "")]
    assert list(cells) == [(name, *way) for name in ("with.jsonl", "without.jsonl") for way in ways]
    values = []
    for each in (cases, other):
        picks = chosen(Selector(bank).select_many([case.query for case in each.cases]))
        values.append(worths(each)[np.arange(len(picks)), picks])
    found = cells["without.jsonl", "novelty/min", RIGHT]
    assert found["value"]["value"] == pytest.approx(values[1].mean())
    assert found["difference"]["value"] == pytest.approx((values[1] - values[0]).mean())
    draws = [(values[1] - values[0])[rows].mean() for rows in drawn(cases)]
    assert found["difference"]["low"] == pytest.approx(
        np.quantile(draws, tail([case.patient for case in cases.cases]))
    )
    assert cells["without.jsonl", "consensus:chamfer", NONE]["gap_difference"]["value"] == 0.0
    table = factorial_table(results)
    assert table is not None
    assert "without.jsonl" in render(table, "markdown")


def test_generations_are_told_apart_by_prompt_or_path(cases):
    """As short as can be; the same file twice is numbered."""
    named = [replace(cases, name=name) for name in ("a/x/q.jsonl", "b/x/q.jsonl", "c.jsonl")]
    assert generation_names(named) == ["a/x/q.jsonl", "b/x/q.jsonl", "c.jsonl"]
    assert generation_names(named[1:]) == ["q.jsonl", "c.jsonl"]
    assert generation_names([cases, cases]) == ["with.jsonl (1)", "with.jsonl (2)"]
    prompts = [
        replace(cases, cases=(replace(case, query=replace(case.query, facts={"prompt": name})),))
        for name, case in zip(("P1", "P3"), cases.cases, strict=False)
    ]
    assert generation_names(prompts) == ["P1", "P3"]


def test_results_are_read_tabled_and_drawn_like_others(results, cases, tmp_path):
    """The file goes through write and read, and every table can be made from it, in every form."""
    write_results(tmp_path / "r.json", results)
    again = read_results(tmp_path / "r.json")
    for form in FORMS:
        assert render(controls_table(again), form) == render(controls_table(results), form)
    text = render(controls_table(again), "markdown")
    for label in (OTHER, "other section's bank", "encoder backwards", "clauses as", "1/4 of", "k = 5"):
        assert label in text
    assert all_tables(again, {"ROUGE-L": "rouge-l-f"})
    cell = again.cell(run="drafts", section="findings", method=f"novelty/min | {OTHER}", score="rouge-l-f")
    assert cell.gap == outcome(results, OTHER)["gap"]["value"]
    assert cell.n == len(cases.cases)
    assert {curve.name for curve in curves_of(again)} == {"bank-size curve", "K-curve", "k-curve"}


def test_default_selectors_that_cannot_be_loaded_are_named(cases, bank, monkeypatch):
    """The others are tried all the same; a selector that was asked for by name must be there."""
    monkeypatch.setattr(
        "tabon.evaluation.controls.runner.DEFAULT_SELECTORS", ("consensus:chamfer", "no-such")
    )
    plan = ControlSettings(conditions=("length",), scores=("rouge-l-f",), resamples=5)
    results = run_controls([cases], bank, plan)
    assert [each["selector"] for each in results.facts["left_out"]] == ["no-such"]
    assert list(results.methods) == [f"consensus:chamfer | {RIGHT}"]
    with pytest.raises(UnknownNameError, match="no-such"):
        run_controls([cases], bank, replace(plan, selectors=("no-such",)))


def test_patients_of_the_bank_are_not_chosen_for(cases, training):
    """Their picks are worth the random one, and the table counts them."""
    pairs = zip(training, cases.cases, strict=False)
    taken = [replace(one, patient=case.query.patient) for one, case in pairs]
    own = TransitionBank.build(taken, encoder="hashing")
    plan = ControlSettings(selectors=(NOVELTY,), conditions=("section",), scores=("rouge-l-f",), resamples=5)
    results = run_controls([cases], own, plan)
    silent = results.runs[0].abstained[f"novelty/min | {RIGHT}"]
    assert silent > 0
    assert f"novelty/min | {RIGHT} {silent}" in " ".join(controls_table(results).notes)


def test_other_results_have_no_controls(results):
    """A table of controls is made from controls."""
    with pytest.raises(BadInputError, match="tabon controls"):
        controls_table(replace(results, facts={}))
