"""RadGraph F1: numbers that can be done on paper, laws, and the metric over a tiny model.

That the graphs are those of radgraph 0.1.18 is held by tests/metrics/test_metrics_dygie.py.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabon.metrics import Pair
from tabon.metrics.models.dygie import KINDS, Entity, Relation
from tabon.metrics.radgraph import STATISTICS, RadGraph, load, pair_f1
from tiny_radgraph import tiny_radgraph

TEXTS = (
    "Et tube 4 cm above the carina. Bibasilar atelectasis with small effusions. No pneumothorax. Stable?",
    "Mild cardiomegaly, unchanged. New right lower lobe opacity (2.5 x 3 cm) suspicious for pneumonia.",
    "The lungs are clear. No pleural effusion.",
    "",
)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny products on many threads only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """The metric over a tiny model of each kind."""
    return {kind: load(tiny_radgraph(tmp_path_factory.mktemp("models"), kind)) for kind in KINDS}


# ---- F1s of graphs ---------------------------------------------------------------------------------------


def entity(tokens, *relations, label="OBS-DP"):
    """An entity; where it stands does not matter here."""
    return Entity(tokens, label, 0, 0, tuple(Relation(name, target) for name, target in relations))


def test_f1_by_hand():
    """Three entities against three: what each level counts is in the comments."""
    reference = (
        entity("opacity", ("located_at", 1)),
        entity("lung", label="ANAT-DP"),
        entity("mild", ("modify", 0)),
    )
    candidate = (entity("opacity", ("located_at", 1)), entity("base", label="ANAT-DP"), entity("mild"))
    found = dict(zip(STATISTICS, pair_f1(reference, candidate), strict=True))
    assert found["entity"] == pytest.approx(4 / 6)  # opacity and mild of 3 and 3
    assert found["entity-relation"] == pytest.approx(2 / 6)  # mild has lost its mark
    assert found["bar"] == 0.0  # opacity is in another place
    assert found["averaged"] == pytest.approx((4 / 6 + 2 / 6 + 0) / 3)
    assert found["averaged-radcliq"] == pytest.approx((4 / 6 + 0) / 2)


def test_an_entity_with_two_relations_is_two_facts_at_the_bar():
    """One of two relations is shared; the comments count the facts of each side."""
    lung, base = entity("lung", label="ANAT-DP"), entity("base", label="ANAT-DP")
    one = (entity("opacity", ("located_at", 1)), lung)
    two = (entity("opacity", ("located_at", 1), ("located_at", 2)), lung, base)
    found = dict(zip(STATISTICS, pair_f1(one, two), strict=True))
    assert found["bar"] == pytest.approx(4 / 6)  # opacity-lung and lung of 2 and 4
    assert found["averaged-radcliq"] == pytest.approx(
        (4 / 5 + 2 / 3) / 2
    )  # entities 2 of 2 and 3, relations 1 of 1 and 2


def test_the_target_s_label_counts_only_for_radcliq():
    """`bar` compares the target's tokens, RadEval's relation F1 its label too."""
    here, there = (
        (entity("opacity", ("located_at", 1)), entity("base", label=label)) for label in ("ANAT-DP", "ANAT-U")
    )
    found = dict(zip(STATISTICS, pair_f1(here, there), strict=True))
    assert (found["bar"], found["averaged-radcliq"]) == (0.5, 0.25)


@st.composite
def graphs(draw, least=0):
    """Entities of few words and labels, related at random."""
    size = draw(st.integers(least, 5))
    targets = st.lists(
        st.tuples(st.sampled_from(["modify", "located_at"]), st.integers(0, size - 1)), max_size=3
    )
    words, labels = st.sampled_from(["lung", "Lung", "heart", "rib"]), st.sampled_from(["ANAT-DP", "OBS-DP"])
    return tuple(entity(draw(words), *draw(targets), label=draw(labels)) for _ in range(size))


@given(graphs(least=1))
def test_a_graph_against_itself_scores_one(graph):
    """All F1s are 1, but RadCliQ's is 1/2 where there is no relation: its relation F1 is then 0."""
    related = any(entity.relations for entity in graph)
    assert pair_f1(graph, graph) == (1, 1, 1, 1, 1 if related else 0.5)


@given(graphs())
def test_no_entity_scores_zero(graph):
    """A report without entities shares nothing, not even with another one."""
    assert pair_f1((), graph) == pair_f1(graph, ()) == (0, 0, 0, 0, 0)


@given(graphs(), graphs())
def test_f1_is_symmetric_and_in_range(one, two):
    """Draft and reference may change places; every F1 is in 0..1."""
    assert pair_f1(one, two) == pair_f1(two, one)
    assert all(0 <= value <= 1 for value in pair_f1(one, two))


@given(graphs(), graphs(), st.randoms(use_true_random=False))
def test_the_order_of_entities_and_relations_does_not_matter(one, two, random):
    """A shuffled graph is the same graph."""
    order = random.sample(range(len(one)), len(one))
    moved = {old: new for new, old in enumerate(order)}
    shuffled = []
    for old in order:
        relations = [(r.label, moved[r.target]) for r in one[old].relations]
        random.shuffle(relations)
        shuffled.append(entity(one[old].tokens, *relations, label=one[old].label))
    assert pair_f1(tuple(shuffled), two) == pair_f1(one, two)


@given(graphs(), graphs())
def test_f1_is_the_slow_one(one, two):
    """Precision and recall counted fact by fact in lists give the same five numbers."""
    kinds = [slow_simple, slow_partial, slow_complete, slow_relations]
    simple, partial, complete, relation = (slow_f1(facts(one), facts(two)) for facts in kinds)
    expected = [simple, partial, complete, (simple + partial + complete) / 3, (simple + relation) / 2]
    np.testing.assert_allclose(pair_f1(one, two), expected, atol=1e-12)


def slow_f1(reference, candidate):
    """F1 by counting in lists without repeats."""
    precision = sum(fact in reference for fact in candidate) / max(len(candidate), 1)
    recall = sum(fact in candidate for fact in reference) / max(len(reference), 1)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def unique(facts):
    """The facts, each once."""
    return [fact for i, fact in enumerate(facts) if fact not in facts[:i]]


def slow_simple(graph):
    """Tokens and label."""
    return unique([f"{e.tokens}|{e.label}".lower() for e in graph])


def slow_partial(graph):
    """And whether it has a relation."""
    return unique([f"{e.tokens}|{e.label}|{len(e.relations) > 0}".lower() for e in graph])


def slow_complete(graph):
    """Or one fact a relation."""
    alone = [f"{e.tokens}|{e.label}".lower() for e in graph if not e.relations]
    return unique(
        alone
        + [
            f"{e.tokens}|{e.label}|{r.label}|{graph[r.target].tokens}".lower()
            for e in graph
            for r in e.relations
        ]
    )


def slow_relations(graph):
    """The relations alone, with both labels."""
    named = [f"{e.tokens}|{e.label}".lower() for e in graph]
    return unique(
        [f"{named[i]}|{r.label}|{named[r.target]}" for i, e in enumerate(graph) for r in e.relations]
    )


# ---- the metric ------------------------------------------------------------------------------------------


class Counted:
    """A model that remembers what it was asked."""

    def __init__(self):
        self.asked = []

    def graph(self, text):
        """One entity a word, no relations."""
        self.asked.append(text)
        return tuple(entity(word) for word in text.split())


def test_each_text_is_read_once_and_in_lower_case():
    """Eight drafts against one reference need nine readings, not sixteen."""
    model = Counted()
    pairs = [Pair(reference="Lungs CLEAR", candidate=f"lungs {i}") for i in range(8)]
    rows = RadGraph(model=model, weights="0").measure([*pairs, *pairs])
    assert sorted(model.asked) == sorted(["lungs clear", *(f"lungs {i}" for i in range(8))])
    np.testing.assert_array_equal(rows[:, 0], np.full(16, 0.5))


def test_case_does_not_matter(metrics):
    """A draft that differs by case alone scores what its reference scores."""
    text = TEXTS[0]
    rows = metrics["radgraph"].measure(
        [Pair(reference=text, candidate=text), Pair(reference=text, candidate=text.upper())]
    )
    assert rows[0].tolist() == rows[1].tolist()
    assert rows[0, :4].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("text", ["", " \n", "\u200b"], ids=["empty", "spaces", "a sign that BERT drops"])
def test_an_empty_report_scores_zero(metrics, text):
    """Nothing written shares nothing, not even with nothing."""
    pairs = [Pair(reference=text, candidate="No pneumothorax."), Pair(reference=text, candidate=text)]
    for metric in metrics.values():
        assert not metric.measure(pairs).any()


def test_a_row_does_not_depend_on_its_company(metrics):
    """A pair measured alone has the row that it has among others."""
    pairs = [Pair(reference=one, candidate=two) for one in TEXTS for two in TEXTS]
    together = metrics["radgraph-xl"].measure(pairs)
    alone = np.concatenate([metrics["radgraph-xl"].measure([pair]) for pair in reversed(pairs)])
    assert together.tolist() == alone[::-1].tolist()
    assert metrics["radgraph-xl"].measure([]).shape == (0, len(STATISTICS))


def test_scores_are_means(metrics):
    """Each score is the mean of its column, by its own name."""
    metric = metrics["radgraph-xl"]
    rows = np.random.RandomState(0).random_sample((4, len(STATISTICS)))
    found = {score.name: score.value(rows.sum(axis=0), np.array(4.0)) for score in metric.scores}
    names = ("entity", "entity-relation", "bar", "averaged", "averaged-radcliq")
    assert found == {f"radgraph-{name}": pytest.approx(rows[:, i].mean()) for i, name in enumerate(names)}


def test_the_signature_names_model_rules_and_weights(metrics):
    """Two models do not share a signature, and no path of this machine is in it."""
    first, second = (metrics[kind].signature for kind in KINDS)
    assert first.startswith("radgraph|model:radgraph-xl|rules:radgraph-0.1.18|case:lower|empty:0|weights:")
    assert "model:radgraph|" in second
    assert first != second
    assert "|backbone:bert|" in first
    assert "/" not in first
