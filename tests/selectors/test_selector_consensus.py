"""Agreement with the other drafts and with the prior, against loops over pairs."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tabon import Query, Report, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.errors import BadInputError, UnknownNameError
from tabon.method.sentence_sets import sentence_set
from tabon.metrics import Pair, load_metric
from tabon.metrics.protocol import measure_pairs
from tabon.selectors import Selector, load_scorer, make_batch
from tabon.selectors import similarity as module
from tabon.selectors.similarity import SYMMETRIC, draft_sections, load_distance
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import SECTIONS
from tabon.text.sentences import split_sentences

SETTINGS = SimulationSettings(patients=40, splits=(0.8, 0.0, 0.2))
TRANSITIONS = [transition_from_record(record) for record in simulate_transitions(SETTINGS, "train")][:40]
QUERIES = [query_from_record(record) for record in simulate_queries(SETTINGS, "test")][:8]
ENCODER = load_encoder("hashing")
VARIANTS = ("chamfer", "mean", "rouge-l-f", "bleu-4", "labels-14-samples")
NAMES = [f"{kind}:{variant}" for kind in ("consensus", "nearest-prior") for variant in VARIANTS]
CLEAR, EFFUSION = (
    Report("Clear lungs.", "Normal."),
    Report("New right effusion. Clear left lung.", "Effusion."),
)


@pytest.fixture(scope="module")
def bank():
    """A small bank with the test encoder."""
    return TransitionBank.build(TRANSITIONS, encoder="hashing")


def chosen(bank, name, *queries):
    """Return the selections of a scorer."""
    return Selector(bank, load_scorer(name, bank)).select_many(queries)


def query(*drafts, prior=CLEAR, **known):
    """Return a query of these drafts."""
    return Query(id="q", prior=prior, candidates=drafts, **known)


def chamfer_as_loops(one, other):
    """Chamfer of two texts, from loops over unit sentence rows."""
    left, right = (sentence_set(split_sentences(text), ENCODER).astype(float) for text in (one, other))
    there = np.mean([min(0.5 * (1 - a @ b) for b in right) for a in left])
    back = np.mean([min(0.5 * (1 - a @ b) for a in left) for b in right])
    return (there + back) / 2


def mean_as_loops(one, other):
    """½(1 - cosine) of the mean rows."""
    means = [sentence_set(split_sentences(text), ENCODER).astype(float).mean(axis=0) for text in (one, other)]
    return 0.5 * (1 - means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1]))


def score_as_loops(family, name):
    """1 - the score of one pair, measured alone."""
    metric = load_metric(family)
    [score] = [score for score in metric.scores if score.name == name]

    def distance(draft, other):
        row = metric.measure([Pair(reference=other, candidate=draft)])
        return 1 - float(score.value(row, np.ones(1))[0])

    return distance


ORACLES = {
    "chamfer": chamfer_as_loops,
    "mean": mean_as_loops,
    "rouge-l-f": score_as_loops("rouge", "rouge-l-f"),
    "bleu-4": score_as_loops("bleu", "bleu-4"),
    "labels-14-samples": score_as_loops("labels", "labels-14-samples"),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_consensus_is_the_mean_over_the_other_drafts(bank, variant):
    """Each draft's distance is the mean of the pair distances to the others, draft first."""
    for asked, selection in zip(QUERIES[:3], chosen(bank, f"consensus:{variant}", *QUERIES[:3]), strict=True):
        for section, part in selection.sections.items():
            texts = [draft.section(section) for draft in asked.candidates]
            expected = [
                np.mean([ORACLES[variant](text, other) for j, other in enumerate(texts) if j != i])
                for i, text in enumerate(texts)
            ]
            np.testing.assert_allclose(part.distances, expected, atol=1e-6)
            np.testing.assert_allclose(part.parts["agreement"], 1 - np.array(expected), atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_nearest_prior_is_the_distance_to_the_newest_prior(bank, variant):
    """Each draft is compared with the newest prior only, draft first."""
    asked = [replace(one, prior=(EFFUSION, one.prior)) for one in QUERIES[:3]]
    for one, selection in zip(asked, chosen(bank, f"nearest-prior:{variant}", *asked), strict=True):
        for section, part in selection.sections.items():
            expected = [
                ORACLES[variant](draft.section(section), one.prior.section(section))
                for draft in one.candidates
            ]
            np.testing.assert_allclose(part.distances, expected, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_neither_batch_nor_order_of_drafts_changes_a_bit(bank, name):
    """Alone or among others the selection is the same; shuffled drafts keep their distances."""
    together = chosen(bank, name, *QUERIES)
    for asked, selection in zip(QUERIES, together, strict=True):
        assert chosen(bank, name, asked) == [selection]
        order = random.Random(3).sample(range(len(asked.candidates)), len(asked.candidates))
        [turned] = chosen(bank, name, replace(asked, candidates=tuple(asked.candidates[j] for j in order)))
        assert turned.total_distances == tuple(selection.total_distances[j] for j in order)


@pytest.mark.parametrize("name", ["consensus:chamfer", "nearest-prior:transport"])
def test_sets_do_not_mind_the_order_of_sentences(bank, name):
    """Sentences the other way round: the same bits."""
    turned = [
        replace(
            asked,
            candidates=tuple(
                Report(*("\n\n".join(split_sentences(draft.section(s))[::-1]) for s in SECTIONS))
                for draft in asked.candidates
            ),
        )
        for asked in QUERIES
    ]
    assert chosen(bank, name, *turned) == chosen(bank, name, *QUERIES)


def test_the_odd_one_out_loses():
    """Two drafts that agree beat one that does not, without any prior."""
    bank = TransitionBank.build(TRANSITIONS[:3], encoder="hashing")
    for variant in VARIANTS:
        [selection] = chosen(bank, f"consensus:{variant}", query(EFFUSION, CLEAR, CLEAR, prior=()))
        assert (selection.selected, selection.tied) == (1, True)


def test_a_draft_alone_has_nothing_to_disagree_with(bank):
    """Distance 0, chosen, and no agreement to speak of."""
    [selection] = chosen(bank, "consensus", query(EFFUSION, prior=()))
    assert (selection.selected, selection.total_distances, selection.abstained) == (0, (0.0,), None)
    assert selection.sections["findings"].parts["agreement"] == (None,)


@pytest.mark.parametrize("name", NAMES)
def test_equal_drafts_are_tied(bank, name):
    """Copies have the same distance and the first is taken; under sets they agree wholly."""
    [selection] = chosen(bank, name, query(EFFUSION, EFFUSION, EFFUSION))
    assert (selection.selected, selection.tied, selection.margin) == (0, True, 0.0)
    if name == "consensus:chamfer":
        assert selection.total_distances == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_bad_drafts_do_not_stand_in_the_way(bank, name):
    """An empty draft is never chosen and a missing section stands behind; all empty is an abstention."""
    [selection] = chosen(bank, name, query(Report(), Report("", "Normal."), EFFUSION, CLEAR))
    assert selection.selected in {2, 3}
    findings = selection.sections["findings"]
    assert findings.compared == (False, False, True, True)
    assert findings.distances[0] == 1 + max(findings.distances[2:])
    [nothing] = chosen(bank, name, query(Report(), Report("None.", "")))
    assert nothing.abstained == "all-drafts-empty"


def test_missing_sections_are_not_others(bank):
    """A draft without the section is not one of those that a draft can agree with."""
    [three] = chosen(bank, "consensus", query(EFFUSION, Report("", "Normal."), CLEAR))
    [two] = chosen(bank, "consensus", query(EFFUSION, CLEAR))
    kept = [three.sections["findings"].distances[j] for j in (0, 2)]
    assert tuple(kept) == two.sections["findings"].distances


def test_only_the_prior_selector_needs_a_prior(bank):
    """Without a prior, consensus answers and nearest-prior says why it does not."""
    asked = query(EFFUSION, CLEAR, prior=())
    assert chosen(bank, "consensus", asked)[0].selected is not None
    assert chosen(bank, "nearest-prior", asked)[0].abstained == "empty-prior"
    half = query(EFFUSION, CLEAR, prior=Report("Clear lungs.", ""))
    assert set(chosen(bank, "nearest-prior", half)[0].sections) == {"findings"}
    assert set(chosen(bank, "consensus", half)[0].sections) == set(SECTIONS)


def test_old_priors_count_by_their_weight(bank):
    """With history ½ the distance is the weighted mean over priors, newest weight 1."""
    scorer = load_scorer("nearest-prior:chamfer", bank)
    both = query(EFFUSION, CLEAR, prior=(EFFUSION, CLEAR))
    [found] = Selector(bank, scorer, history=0.5).select_many([both])
    parts = [chosen(bank, scorer.name, replace(both, prior=(prior,)))[0] for prior in both.priors]
    old, new = (np.array(part.sections["findings"].distances) for part in parts)
    np.testing.assert_allclose(found.sections["findings"].distances, (0.5 * old + new) / 1.5)


def test_a_bank_without_the_section_is_no_hindrance():
    """Neither selector looks at the bank."""
    only = [replace(TRANSITIONS[0], prior=(Report("Clear.", ""),), current=Report("New effusion.", ""))]
    bank = TransitionBank.build(only, encoder="hashing")
    for name in ("consensus", "nearest-prior"):
        assert set(chosen(bank, name, query(EFFUSION, CLEAR))[0].sections) == set(SECTIONS)


def test_scores_are_those_of_the_suite(bank):
    """Many pairs, batches and repeats give what `measure_pairs` gives."""
    distance, batch = load_distance("bleu-4"), make_batch(QUERIES, bank, ENCODER)
    drafts, rng = draft_sections(batch, "findings"), np.random.default_rng(0)
    rows, columns = rng.integers(0, len(batch.drafts), (2, module.PAIRS_AT_ONCE + 100))
    texts = [batch.draft_text(row, "findings") for row in range(len(batch.drafts))]
    pairs = [
        Pair(reference=texts[column], candidate=texts[row]) for row, column in zip(rows, columns, strict=True)
    ]
    expected = 1 - distance.measured.value(measure_pairs(distance.metric, pairs), np.ones(len(pairs)))
    np.testing.assert_array_equal(distance.between(drafts, rows, drafts, columns), expected)


def test_a_distinct_pair_is_measured_once(bank, monkeypatch):
    """Copies of a draft cost nothing, and a score known to be symmetric half."""
    metric, asked = load_metric("rouge"), []

    class Counting:
        signature = metric.signature

        def measure(self, pairs):
            asked.extend(pairs)
            return metric.measure(pairs)

    [score] = (score for score in metric.scores if score.name == "rouge-l-f")
    monkeypatch.setattr(module, "load_scores", lambda *_, **__: {score.name: (Counting(), score)})
    scorer = load_scorer("consensus:rouge-l-f", bank)
    asked.clear()
    Selector(bank, scorer).select_many([query(EFFUSION, CLEAR, CLEAR)])
    assert len(asked) == len(set(asked)) == 4  # in each section: two that differ, and one with its copy


@pytest.mark.parametrize("name", sorted(SYMMETRIC))
def test_symmetric_scores_are_symmetric_to_the_last_bit(bank, name):
    """The sides exchanged: the same bits, on all pairs of simulated drafts."""
    distance, batch = load_distance(name), make_batch(QUERIES, bank, ENCODER)
    drafts = draft_sections(batch, "findings")
    rows, columns = np.triu_indices(len(batch.drafts), 1)
    there = distance.between(drafts, rows, drafts, columns)
    back = distance.between(drafts, columns, drafts, rows)
    np.testing.assert_array_equal(there, back)


def test_names_settings_and_what_is_refused(bank):
    """The name shows the default; the metric's signature is a field; wrong names are told apart."""
    assert load_scorer("consensus", bank).name == "consensus:chamfer"
    assert load_scorer("nearest-prior", bank).name == "nearest-prior:chamfer"
    scorer = load_scorer("consensus:rouge-l-f", bank)
    assert scorer.settings["metric"].startswith("rouge;tokens:a-z0-9;")
    signature = Selector(bank, scorer).signature
    assert signature.startswith("selector:consensus:rouge-l-f|metric:rouge;")
    with pytest.raises(UnknownNameError, match="Did you mean 'chamfer'"):
        load_scorer("consensus:chamfr", bank)
    with pytest.raises(UnknownNameError, match="unknown set distance or score 'rouge-9'"):
        load_scorer("nearest-prior:rouge-9", bank)
    with pytest.raises(BadInputError, match="temporal-f1 has no value for some pairs"):
        load_scorer("consensus:temporal-f1", bank)
    assert load_scorer("consensus:corpus-chrf++", bank).name == "consensus:corpus-chrf++"
