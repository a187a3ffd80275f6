"""The paper's method and its two-sided form as scorers."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given

import as_printed
from strategies import generic_sets, tied_sets
from tabon import Query, Report, Selector, Transition, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.errors import BadInputError, UnknownNameError
from tabon.method.sentence_sets import RaggedSets, sentence_set
from tabon.selectors import load_scorer
from tabon.selectors.transition import two_sided_transitions
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import SECTIONS
from tabon.text.sentences import split_sentences

SETTINGS = SimulationSettings(patients=40, splits=(0.8, 0.0, 0.2))
TRANSITIONS = [transition_from_record(record) for record in simulate_transitions(SETTINGS, "train")][:40]
QUERIES = [query_from_record(record) for record in simulate_queries(SETTINGS, "test")][:12]
ENCODER = load_encoder("hashing")
METHODS = list(product(("mean-shift", "novelty", "dir-hausdorff", "cost-ot"), ("min", "knn")))
NAMES = ("transition:novelty/min", "transition:cost-ot/knn", "two-sided:min", "two-sided:knn")
CLEAR, EFFUSION = Report("Clear lungs.", "Normal."), Report("New right effusion.", "Effusion.")


@pytest.fixture(scope="module")
def bank():
    """A small bank with the test encoder."""
    return TransitionBank.build(TRANSITIONS, encoder="hashing")


def chosen(bank, name, *queries):
    """Return the selections of a scorer."""
    return Selector(bank, load_scorer(name, bank)).select_many(queries)


def query(*drafts, prior=CLEAR):
    """Return a query of these drafts."""
    return Query(id="q", prior=prior, candidates=drafts)


def small_bank(*pairs):
    """A bank of (prior, current) reports."""
    rows = [Transition(id=f"t{i}", prior=a, current=b) for i, (a, b) in enumerate(pairs)]
    return TransitionBank.build(rows, encoder="hashing")


HARD = [
    query(EFFUSION, CLEAR, Report(), Report("", "Normal.")),
    query(EFFUSION, CLEAR, prior=Report("Clear lungs.", "")),
    query(CLEAR, CLEAR),
    query(CLEAR, prior=(EFFUSION, CLEAR)),
    query(CLEAR, prior=()),
    query(Report()),
    query(),
    query(Report("", "Normal."), prior=Report("Clear lungs.", "")),
]


@pytest.mark.parametrize(("distance", "aggregate"), METHODS)
def test_the_scorer_has_the_bits_of_the_selector(bank, distance, aggregate):
    """Pick, totals, section distances, neighbours, margin and abstention are those of `Selector`."""
    asked = [*QUERIES, *HARD]
    ours = chosen(bank, f"transition:{distance}/{aggregate}", *asked)
    for one, other in zip(
        ours, Selector(bank, distance=distance, aggregate=aggregate).select_many(asked), strict=True
    ):
        assert (one.selected, one.total_distances) == (other.selected, other.total_distances)
        assert (one.margin, one.tied, one.abstained) == (other.margin, other.tied, other.abstained)
        assert {name: (part.distances, part.nearest) for name, part in one.sections.items()} == {
            name: (part.distances, part.nearest) for name, part in other.sections.items()
        }


def two_sided_as_loops(prior, current):
    """What is new beside what was dropped, from the printed equation."""
    return np.concatenate([as_printed.novelty(prior, current), as_printed.novelty(current, prior)])


def directions(prior, current):
    """The two-sided transition of one pair of sets."""
    vectors = np.concatenate([prior, current]).astype(np.float32)
    rows = np.arange(len(vectors)).tolist()
    sets = RaggedSets.of([rows[: len(prior)]]), RaggedSets.of([rows[len(prior) :]])
    return two_sided_transitions(vectors, prior=sets[0], current=sets[1])


@given(generic_sets(), generic_sets())
def test_two_sided_is_novelty_both_ways(prior, current):
    """Direction and the lengths of both halves are those of the loops."""
    (moves, lengths), expected = directions(prior, current), two_sided_as_loops(list(prior), list(current))
    unit = expected / max(np.linalg.norm(expected), 1e-6)
    np.testing.assert_allclose(moves.directions[0], unit, atol=1e-5)
    halves = [np.linalg.norm(half) for half in np.split(expected, 2)]
    np.testing.assert_allclose(lengths[:, 0], halves, atol=1e-6)


@given(tied_sets(), tied_sets())
def test_two_sided_is_zero_only_for_the_same_sentences(prior, current):
    """Zero exactly when each sentence stands on the other side too."""
    same = {tuple(row) for row in prior} == {tuple(row) for row in current}
    assert bool(directions(prior, current)[0].zero[0]) == same


def bank_as_loops(section):
    """The bank's two-sided transitions, in float64."""
    for row in TRANSITIONS:
        texts = [split_sentences(report.section(section)) for report in (row.prior, row.current)]
        if all(texts):
            yield two_sided_as_loops(*(list(sentence_set(text, ENCODER).astype(float)) for text in texts))


def half_cosine(one, other):
    """Eq. 9 with the neutral policy."""
    norms = np.linalg.norm(one), np.linalg.norm(other)
    return 0.5 if min(norms) < 1e-6 else 0.5 * (1 - one @ other / norms[0] / norms[1])


@pytest.mark.parametrize("aggregate", ["min", "knn"])
def test_two_sided_distances_are_those_of_the_loops(bank, aggregate):
    """Within 1e-5 of eq. 9-10 over the whole bank."""
    banks = {section: list(bank_as_loops(section)) for section in SECTIONS}
    for asked, selection in zip(
        QUERIES[:3], chosen(bank, f"two-sided:{aggregate}", *QUERIES[:3]), strict=True
    ):
        for section, part in selection.sections.items():
            prior = list(sentence_set(split_sentences(asked.prior.section(section)), ENCODER).astype(float))
            for draft, distance in zip(asked.candidates, part.distances, strict=True):
                current = sentence_set(split_sentences(draft.section(section)), ENCODER).astype(float)
                move = two_sided_as_loops(prior, list(current))
                near = sorted(half_cosine(move, row) for row in banks[section])
                expected = near[0] if aggregate == "min" else np.mean(near[:10])
                assert distance == pytest.approx(expected, abs=1e-5)


def test_a_dropped_finding_is_seen():
    """A draft that silently drops a sentence has no novelty, but a two-sided change like a real drop."""
    prior = Report("Heart is large. Right pleural effusion. Clear left lung.", "")
    dropped, kept = Report("Heart is large. Clear left lung.", ""), prior
    added = Report("Heart is large. New mass. Right pleural effusion. Clear left lung.", "")
    bank = small_bank((prior, added), (Report("Lines. Right pleural effusion.", ""), Report("Lines.", "")))
    [novelty] = chosen(bank, "transition:novelty/min", query(dropped, kept, prior=prior))
    assert novelty.total_distances == (0.0, 0.0)  # as the bank's drop, which has no novelty either
    [two_sided] = chosen(bank, "two-sided:min", query(dropped, kept, prior=prior))
    findings = two_sided.sections["findings"]
    assert findings.distances[1] == 0.5
    assert findings.distances[0] < 0.4
    assert findings.nearest[0][0].id == "t1"
    assert findings.parts["new"] == pytest.approx((0.0, 0.0), abs=1e-12)
    assert findings.parts["dropped"][0] > 0.1
    assert findings.parts["dropped"][1] == pytest.approx(0.0, abs=1e-12)


def test_dropping_another_sentence_is_another_change():
    """Two drafts that drop different sentences tie under novelty and not two-sided."""
    prior = Report("Heart is large. Right pleural effusion. Clear left lung.", "")
    drafts = (
        Report("Heart is large. Clear left lung.", ""),
        Report("Right pleural effusion. Heart is large.", ""),
    )
    bank = small_bank((Report("Lines. Right pleural effusion.", ""), Report("Lines.", "")))
    assert chosen(bank, "transition", query(*drafts, prior=prior))[0].tied
    [two_sided] = chosen(bank, "two-sided", query(*drafts, prior=prior))
    assert (two_sided.selected, two_sided.tied) == (0, False)


@pytest.mark.parametrize("name", NAMES)
def test_neither_batch_nor_order_changes_a_bit(bank, name):
    """Alone or together, drafts shuffled, sentences turned round: the same distances."""
    together = chosen(bank, name, *QUERIES[:6])
    for asked, selection in zip(QUERIES, together, strict=False):
        assert chosen(bank, name, asked) == [selection]
        order = random.Random(5).sample(range(len(asked.candidates)), len(asked.candidates))
        drafts = [
            Report(*("\n\n".join(split_sentences(asked.candidates[j].section(s))[::-1]) for s in SECTIONS))
            for j in order
        ]
        [turned] = chosen(bank, name, replace(asked, candidates=tuple(drafts)))
        assert turned.total_distances == tuple(selection.total_distances[j] for j in order)


@pytest.mark.parametrize("name", NAMES)
def test_edge_cases(bank, name):
    """Every hard query is answered or refused with its reason; what a draft lacks costs 1."""
    found = chosen(bank, name, *HARD)
    assert [one.abstained for one in found[4:]] == [
        "empty-prior",
        "all-drafts-empty",
        "no-drafts",
        "nothing-to-compare",
    ]
    assert found[0].sections["findings"].distances[2:] == (1.0, 1.0)
    assert found[0].sections["findings"].nearest[2] == ()
    assert set(found[1].sections) == {"findings"}
    copied = 1.0 if name.startswith("two-sided") else sum(distance_of_no_change(bank, name))
    assert (found[2].selected, found[2].tied) == (0, True)
    assert [*found[2].total_distances, *found[3].total_distances] == pytest.approx([copied] * 3)


def distance_of_no_change(bank, name):
    """Yield ½ less ½ of the share of the neighbours that zero rows fill, section by section."""
    distance, _, aggregate = name.removeprefix("transition:").partition("/")
    k = 1 if aggregate == "min" else 10
    for section in SECTIONS:
        yield 0.5 - 0.5 * min(k, len(bank.section(section, distance).zero_rows)) / k


@pytest.mark.parametrize("kind", ["transition:novelty/", "two-sided:"])
def test_a_small_bank(kind):
    """`min` is content with one transition; `knn` says what it needs; a lacking section is left out."""
    bank = small_bank((Report("Clear.", ""), Report("New effusion.", "")))
    [selection] = chosen(bank, f"{kind}min", query(EFFUSION, CLEAR))
    assert set(selection.sections) == {"findings"}
    assert len(selection.sections["findings"].nearest[0]) == 1
    with pytest.raises(BadInputError, match="10 neighbours were asked for, the bank has 1 findings"):
        load_scorer(f"{kind}knn", bank)


def test_a_bank_of_copies_is_neutral():
    """Where no transition has a direction, every draft is half way."""
    bank = small_bank((CLEAR, CLEAR))
    assert chosen(bank, "two-sided", query(EFFUSION))[0].total_distances == (1.0,)


def test_names_and_signatures(bank):
    """Defaults are shown; the settings stand in the signature; wrong names are refused."""
    assert load_scorer("transition", bank).name == "transition:novelty/min"
    assert load_scorer("transition:cost-ot", bank).name == "transition:cost-ot/min"
    assert load_scorer("two-sided", bank).name == "two-sided:min"
    signature = Selector(bank, load_scorer("transition:cost-ot/knn", bank)).signature
    assert signature.startswith(
        "distance:cost-ot|aggregate:knn10|encoder:hashing@none|"  # the paper's method under another name
    )
    signature = Selector(bank, load_scorer("two-sided", bank)).signature
    assert signature.startswith(
        "selector:two-sided:min|distance:novelty-both-ways|aggregate:min|zero:neutral|"
    )
    with pytest.raises(UnknownNameError, match="Did you mean 'novelty'"):
        load_scorer("transition:noveltie", bank)
    with pytest.raises(UnknownNameError, match="unknown aggregation 'mean'"):
        load_scorer("two-sided:mean", bank)
