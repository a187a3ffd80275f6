"""What came after similar priors, against loops over the whole bank."""

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tabon import Query, Report, Transition, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.method.sentence_sets import RaggedSets, sentence_set
from tabon.metrics import Pair, load_metric
from tabon.selectors import Selector, load_scorer
from tabon.selectors.set_distances.distances import unit_means
from tabon.selectors.text_scorers import SIMILAR_PRIORS
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import SECTIONS
from tabon.text.sentences import split_sentences

SETTINGS = SimulationSettings(patients=40, splits=(0.8, 0.0, 0.2))
TRANSITIONS = [transition_from_record(record) for record in simulate_transitions(SETTINGS, "train")][:40]
QUERIES = [query_from_record(record) for record in simulate_queries(SETTINGS, "test")][:6]
ENCODER = load_encoder("hashing")
VARIANTS = ("chamfer", "rouge-l-f")
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


@cache
def rows_of(text):
    """The unit rows of a text's sentences, in float64."""
    return sentence_set(split_sentences(text), ENCODER).astype(float)


def mean_distance(one, other):
    """½(1 - cosine) of two mean embeddings."""
    left, right = rows_of(one).mean(axis=0), rows_of(other).mean(axis=0)
    return 0.5 * (1 - left @ right / np.linalg.norm(left) / np.linalg.norm(right))


def chamfer_as_loops(one, other):
    """Chamfer of two texts."""
    cost = np.array([[0.5 * (1 - a @ b) for b in rows_of(other)] for a in rows_of(one)])
    return (cost.min(axis=1).mean() + cost.min(axis=0).mean()) / 2


def rouge_as_loops(draft, other):
    """1 - ROUGE-L of two texts, their sentences as they were written."""
    texts = [" ".join(split_sentences(text)) for text in (draft, other)]
    row = load_metric("rouge").measure([Pair(candidate=texts[0], reference=texts[1])])
    return 1 - row[0, 8]


ORACLES = {"chamfer": chamfer_as_loops, "rouge-l-f": rouge_as_loops}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_distance_is_the_mean_over_what_came_next(bank, variant):
    """The 20 transitions with the nearest priors, and the mean distance to their current sections."""
    for asked, selection in zip(
        QUERIES[:2], chosen(bank, f"next-visit:{variant}", *QUERIES[:2]), strict=True
    ):
        for section, part in selection.sections.items():
            there = [t for t in TRANSITIONS if t.prior.section(section) and t.current.section(section)]
            far = [mean_distance(asked.prior.section(section), t.prior.section(section)) for t in there]
            by_id = {t.id: t for t in there}
            limit = sorted(far)[SIMILAR_PRIORS - 1]
            for draft, report in enumerate(asked.candidates):
                cited = part.nearest[draft]
                assert len({one.id for one in cited}) == SIMILAR_PRIORS
                expected = [
                    ORACLES[variant](report.section(section), by_id[one.id].current.section(section))
                    for one in cited
                ]
                np.testing.assert_allclose([one.distance for one in cited], expected, atol=1e-6)
                assert expected == pytest.approx(sorted(expected), abs=1e-6)
                assert part.distances[draft] == pytest.approx(np.mean(expected), abs=1e-6)
                assert part.parts["nearest-next"][draft] == pytest.approx(min(expected), abs=1e-6)
                looked_up = [far[there.index(by_id[one.id])] for one in cited]
                assert max(looked_up) <= limit + 1e-6
                assert part.parts["prior-distance"][draft] == pytest.approx(np.mean(looked_up), abs=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_neither_batch_nor_order_changes_a_bit(bank, variant):
    """Alone or together, drafts shuffled or sentences turned round: the same distances."""
    name = f"next-visit:{variant}"
    together = chosen(bank, name, *QUERIES)
    for asked, selection in zip(QUERIES, together, strict=True):
        assert chosen(bank, name, asked) == [selection]
        order = random.Random(5).sample(range(len(asked.candidates)), len(asked.candidates))
        step = -1 if variant == "chamfer" else 1  # a score of texts sees the order of sentences
        drafts = [
            Report(*("\n\n".join(split_sentences(asked.candidates[j].section(s))[::step]) for s in SECTIONS))
            for j in order
        ]
        [turned] = chosen(bank, name, replace(asked, candidates=tuple(drafts)))
        assert turned.total_distances == tuple(selection.total_distances[j] for j in order)
        for section, part in selection.sections.items():
            assert turned.sections[section].nearest == tuple(part.nearest[j] for j in order)


def small_bank(*pairs):
    """A bank of (prior, current) reports."""
    rows = [Transition(id=f"t{i}", prior=a, current=b) for i, (a, b) in enumerate(pairs)]
    return TransitionBank.build(rows, encoder="hashing")


def test_what_came_next_wins():
    """Where the same prior was followed by an effusion, the draft with the effusion is nearest."""
    bank = small_bank((CLEAR, EFFUSION))
    [selection] = chosen(bank, "next-visit", query(CLEAR, EFFUSION))
    assert selection.selected == 1
    assert selection.sections["findings"].nearest[1][0].id == "t0"
    assert selection.sections["findings"].distances[1] == 0.0
    assert selection.sections["findings"].parts["prior-distance"] == (0.0, 0.0)


def test_only_similar_priors_count():
    """With more than 20 transitions, those whose prior is like this one speak alone."""
    like = [(CLEAR, Report(f"New effusion number {i}.", "Effusion.")) for i in range(SIMILAR_PRIORS)]
    unlike = [(Report("Sternotomy wires and a pacemaker.", "Pacemaker."), CLEAR)] * 30
    [selection] = chosen(small_bank(*unlike, *like), "next-visit", query(CLEAR, EFFUSION))
    assert selection.selected == 1
    ids = {one.id for one in selection.sections["findings"].nearest[0]}
    assert ids == {f"t{30 + i}" for i in range(SIMILAR_PRIORS)}


def test_a_small_bank_gives_all_it_has():
    """Fewer than 20 transitions: all of them."""
    [selection] = chosen(
        small_bank((CLEAR, EFFUSION), (EFFUSION, CLEAR)), "next-visit", query(CLEAR, EFFUSION)
    )
    assert {one.id for one in selection.sections["findings"].nearest[0]} == {"t0", "t1"}


def test_a_bank_without_the_section_leaves_it_out():
    """A bank of findings judges findings; a draft of impressions alone cannot be compared."""
    bank = small_bank((Report("Clear.", ""), Report("New effusion.", "")))
    [selection] = chosen(bank, "next-visit", query(CLEAR, EFFUSION))
    assert set(selection.sections) == {"findings"}
    [nothing] = chosen(bank, "next-visit", query(Report("", "Normal.")))
    assert nothing.abstained == "nothing-to-compare"


def test_edge_cases(bank):
    """No prior, half a prior, old priors, one draft, copies, empty drafts, a missing section."""
    assert chosen(bank, "next-visit", query(CLEAR, prior=()))[0].abstained == "empty-prior"
    half = query(CLEAR, EFFUSION, prior=Report("Clear lungs.", ""))
    assert set(chosen(bank, "next-visit", half)[0].sections) == {"findings"}
    [newest] = chosen(bank, "next-visit", query(CLEAR, EFFUSION))
    [several] = chosen(bank, "next-visit", query(CLEAR, EFFUSION, prior=(EFFUSION, CLEAR)))
    assert several.total_distances == newest.total_distances
    assert chosen(bank, "next-visit", query(EFFUSION))[0].selected == 0
    [copies] = chosen(bank, "next-visit", query(EFFUSION, EFFUSION))
    assert (copies.selected, copies.tied) == (0, True)
    assert chosen(bank, "next-visit", query(Report(), Report("/", "")))[0].abstained == "all-drafts-empty"
    [lacking] = chosen(bank, "next-visit", query(Report("", "Normal."), EFFUSION))
    assert lacking.sections["findings"].compared == (False, True)
    assert lacking.sections["findings"].nearest[0] == ()


def test_directions_of_means():
    """Each is the unit mean of its rows; rows that cancel out have none."""
    vectors = np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32)
    found = unit_means(vectors, RaggedSets.of([[0, 1], [0], [0, 2]]))
    np.testing.assert_allclose(found, [[2**-0.5, 2**-0.5], [1, 0], [0, 0]], atol=1e-7)


def test_the_signature_says_how_priors_are_found(bank):
    """Name, look-up and metric stand in it."""
    signature = Selector(bank, load_scorer("next-visit:rouge-l-f", bank)).signature
    assert signature.startswith("selector:next-visit:rouge-l-f|priors:mean-cosine/20|metric:rouge;")
    assert load_scorer("next-visit", bank).name == "next-visit:chamfer"
