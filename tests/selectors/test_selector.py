"""The method whole (eq. 7-12) against the equations as printed, and its policies."""

import random
from itertools import pairwise

import numpy as np
import pytest

import as_printed
from openi import openi_reports
from tabon import Query, Report, Selector, Transition, TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.encoders import load_encoder
from tabon.errors import BadInputError
from tabon.integrations.rewards import TransitionReward
from tabon.method.selection import Note
from tabon.method.sentence_sets import embed, sentence_set
from tabon.text.records import query_from_record, transition_from_record
from tabon.text.reports import SECTIONS
from tabon.text.sentences import split_sentences

DISTANCES = ("mean-shift", "novelty", "dir-hausdorff", "cost-ot")
AGGREGATES = ("min", "knn")
K = 7
SETTINGS = SimulationSettings(patients=60, splits=(0.8, 0.0, 0.2))
TRANSITIONS = [transition_from_record(record) for record in simulate_transitions(SETTINGS, "train")]
QUERIES = [query_from_record(record) for record in simulate_queries(SETTINGS, "test")]


class GenericEncoder:
    """Each sentence a random direction: sets in general position."""

    def encode(self, sentences):
        """Seed a generator with each sentence."""
        return np.stack(
            [np.random.default_rng(list(text.encode())).standard_normal(24) for text in sentences]
        )


class TopicEncoder:
    """Sentences that begin with the same word are near to each other; as long as MiniLM's rows."""

    def encode(self, sentences):
        """Add a random direction of the sentence to twice that of its first word."""
        return np.stack([self._random(text) + 2.0 * self._random(text.split()[0]) for text in sentences])

    def _random(self, text):
        return np.random.default_rng(list(text.encode())).standard_normal(384)


class TiedEncoder:
    """Few directions with exact dot products: duplicates and ties everywhere."""

    def encode(self, sentences):
        """Map each sentence to one of eight rows."""
        alphabet = np.concatenate([np.eye(4), [[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [-1, 1, 1, -1]]])
        return np.stack([alphabet[sum(text.encode()) % 8] for text in sentences])


class Oracle:
    """Sets, bank vectors and totals from the loops of as_printed.py."""

    def __init__(self, transitions, encoder, distance):
        self.encoder = load_encoder(encoder)
        self._sets = {}
        self.bank = {section: list(self._rows(transitions, section, distance)) for section in SECTIONS}
        self._distance = distance

    def _rows(self, transitions, section, distance):
        for transition in transitions:
            sets = [self.sets(report)[section] for report in (transition.prior, transition.current)]
            if all(sets):
                yield as_printed.DISTANCES[distance](*sets)

    def sets(self, report):
        """Return the sentence sets of a report, in float64."""
        if report not in self._sets:
            self._sets[report] = {section: self._set(report.section(section)) for section in SECTIONS}
        return self._sets[report]

    def _set(self, text):
        sentences = split_sentences(text)
        return list(sentence_set(sentences, self.encoder).astype(np.float64)) if sentences else []

    def totals(self, query, aggregate):
        """Return 𝔇 of each draft."""
        drafts = [self.sets(draft) for draft in query.candidates]
        prior = self.sets(query.prior)
        return as_printed.total_distances(prior, drafts, self.bank, self._distance, aggregate, K)


def assert_as_printed(transitions, queries, encoder, distance):
    """Compare both aggregations with the oracle."""
    oracle = Oracle(transitions, encoder, distance)
    bank = TransitionBank.build(transitions, encoder=encoder)
    for aggregate in AGGREGATES:
        selector = Selector(bank, distance=distance, aggregate=aggregate, num_neighbours=K, encoder=encoder)
        for query, selection in zip(queries, selector.select_many(queries), strict=True):
            expected = oracle.totals(query, aggregate)
            np.testing.assert_allclose(selection.total_distances, expected, atol=1e-5)
            assert expected[selection.selected] <= min(expected) + 1e-5


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("encoder", [GenericEncoder(), "hashing"], ids=["generic", "hashing"])
def test_all_eight_methods_are_the_equations_as_printed(distance, encoder):
    """4 distances × 2 aggregations equal the float64 loops within 1e-5 on simulated reports."""
    assert_as_printed(TRANSITIONS, QUERIES[:12], encoder, distance)


@pytest.mark.parametrize("distance", ["mean-shift", "novelty", "dir-hausdorff"])
def test_duplicates_and_ties_follow_the_printed_equations(distance):
    """With eight directions in all, ties are everywhere and the first row decides, as in the loops."""
    assert_as_printed(TRANSITIONS, QUERIES[:12], TiedEncoder(), distance)


class Remembering:
    """The real encoder, asked once for all the sentences of a test."""

    def __init__(self, reports):
        encoder = load_encoder("minilm")
        self.fingerprint = encoder.fingerprint
        texts = {
            text
            for report in reports
            for section in SECTIONS
            for text in split_sentences(report.section(section))
        }
        table = embed(texts, encoder)
        self._rows = dict(zip(table.sentences, table.vectors, strict=True))

    def encode(self, sentences):
        """Look sentences up."""
        return np.stack([self._rows[sentence] for sentence in sentences])


@pytest.fixture(scope="module")
def real_reports():
    """Open-i reports with both sections, and MiniLM vectors of their sentences."""
    reports = [report for _, report in openi_reports() if report.findings and report.impression][:130]
    return reports, Remembering(reports)


@pytest.mark.openi
@pytest.mark.parametrize("distance", DISTANCES)
def test_the_methods_hold_on_real_reports_with_the_real_encoder(real_reports, distance):
    """Open-i text with MiniLM: within 1e-5 of the loops."""
    reports, encoder = real_reports
    links = enumerate(pairwise(reports[:70]))
    transitions = [Transition(id=str(i), prior=a, current=b) for i, (a, b) in links]
    queries = [
        Query(id=str(i), prior=reports[i], candidates=tuple(reports[i + 1 : i + 6]))
        for i in range(70, 124, 6)
    ]
    assert_as_printed(transitions, queries, encoder, distance)


@pytest.fixture(scope="module")
def bank():
    """A small bank with the test encoder."""
    return TransitionBank.build(TRANSITIONS, encoder="hashing")


def test_three_lines_of_python(bank):
    """Build, ask, read the answer: text in, index out."""
    selection = Selector(bank).select(
        "Findings: Clear lungs. Impression: Normal.",
        ["Findings: New right effusion. Impression: Effusion.", Report("Clear lungs.", "Normal.")],
    )
    assert selection.selected in {0, 1}
    assert len(selection.total_distances) == 2


@pytest.mark.parametrize("size", [1, 7, 32])
def test_the_batch_does_not_change_a_bit(bank, size):
    """A query alone, in a batch of seven or among all: the same selection."""
    selector = Selector(bank, distance="cost-ot", aggregate="knn")
    whole = selector.select_many(QUERIES)
    lots = [QUERIES[start : start + size] for start in range(0, len(QUERIES), size)]
    assert [one for lot in lots for one in selector.select_many(lot)] == whole


def test_the_order_of_drafts_does_not_change_their_distances(bank):
    """Shuffled drafts keep their distances and neighbours to the last bit."""
    selector = Selector(bank, distance="novelty")
    for query in QUERIES:
        order = random.Random(0).sample(range(len(query.candidates)), len(query.candidates))
        straight = selector.select(query.prior, query.candidates)
        turned = selector.select(query.prior, [query.candidates[j] for j in order])
        assert turned.total_distances == tuple(straight.total_distances[j] for j in order)
        for section, part in straight.sections.items():
            assert turned.sections[section].nearest == tuple(part.nearest[j] for j in order)


def shuffled_sentences(report, rng):
    """The same sentences in another order."""
    parts = [list(split_sentences(report.section(section))) for section in SECTIONS]
    for part in parts:
        rng.shuffle(part)
    return Report(*("\n\n".join(part) for part in parts))


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_order_of_sentences_does_not_change_a_bit(bank, distance):
    """Prior and drafts with their sentences shuffled: the same selection."""
    rng = random.Random(1)
    selector = Selector(bank, distance=distance, aggregate="knn")
    for query in QUERIES[:10]:
        turned = Query(
            id=query.id,
            prior=shuffled_sentences(query.prior, rng),
            candidates=tuple(shuffled_sentences(draft, rng) for draft in query.candidates),
        )
        assert selector.select_many([turned]) == selector.select_many([query])


def test_min_is_knn_with_one_neighbour(bank):
    """The two aggregations meet at k = 1."""
    nearest = Selector(bank, aggregate="min", num_neighbours=1).select_many(QUERIES)
    one = Selector(bank, aggregate="knn", num_neighbours=1).select_many(QUERIES)
    assert [s.total_distances for s in nearest] == [s.total_distances for s in one]


def test_the_result_names_the_nearest_transitions(bank):
    """Each draft carries its k nearest bank rows, nearest first, and the first is the min distance."""
    ids = {row["id"] for row in bank.provenance}
    selection = Selector(bank, num_neighbours=4).select_many(QUERIES[:1])[0]
    for part in selection.sections.values():
        for distance, nearest in zip(part.distances, part.nearest, strict=True):
            assert len(nearest) == 4
            assert {neighbour.id for neighbour in nearest} <= ids
            assert nearest[0].distance == distance


CLEAR = Report("Clear lungs.", "Normal.")


@pytest.mark.parametrize(
    ("prior", "drafts", "abstained"),
    [
        (CLEAR, [], "no-drafts"),
        (Report(), [CLEAR], "empty-prior"),
        (Report("N/A", "/"), [CLEAR], "empty-prior"),
        (CLEAR, [Report(), Report("None.", "")], "all-drafts-empty"),
        (Report("Clear lungs.", ""), [Report("", "Normal.")], "nothing-to-compare"),
    ],
    ids=["no drafts", "empty prior", "placeholder prior", "empty drafts", "no common section"],
)
def test_what_cannot_be_answered_is_not_answered(bank, prior, drafts, abstained):
    """Never draft 0 for want of anything better: nothing is chosen, with the reason."""
    selection = Selector(bank).select(prior, drafts)
    assert selection.selected is None
    assert selection.abstained == abstained


def test_a_draft_that_lacks_a_section_has_the_worst_distance_there(bank):
    """Distance 1 in the missing section, and a flag."""
    selection = Selector(bank).select(CLEAR, [Report("New effusion.", ""), CLEAR])
    assert selection.sections["impression"].distances[0] == 1.0
    assert Note("draft-lacks", "impression", 0) in selection.flags


def test_a_section_that_the_prior_lacks_is_left_out(bank):
    """Only the other section counts, for all drafts, and a flag says so."""
    selection = Selector(bank).select(
        Report("Clear lungs.", ""), [Report("New effusion.", "Effusion."), CLEAR]
    )
    assert set(selection.sections) == {"findings"}
    assert Note("prior-lacks", "impression") in selection.flags


def test_a_copy_of_the_prior_is_a_change_of_the_bank_and_flagged(bank):
    """The bank has transitions without change: under `match` a copy is at no distance from them."""
    selection = Selector(bank).select(CLEAR, [CLEAR, Report("New effusion.", "Effusion.")])
    assert selection.total_distances[0] == 0.0
    assert {Note("no-change", "findings", 0), Note("no-change", "impression", 0)} <= set(selection.flags)


@pytest.mark.parametrize(("zero", "total"), [("neutral", 1.0), ("match", 0.0), ("farthest", 2.0)])
def test_each_zero_policy_reaches_the_total(bank, zero, total):
    """The bank has zero rows, so a copied prior is half way, at home or far away."""
    assert len(bank.section("findings", "novelty").zero_rows) > 0
    assert len(bank.section("impression", "novelty").zero_rows) > 0
    selection = Selector(bank, zero=zero).select(CLEAR, [CLEAR])
    assert selection.total_distances == (total,)


def test_each_selector_has_its_own_zero_policy(bank):
    """`match` for the paper's method, `neutral` for two-sided and for rewards; others have none."""
    assert "|zero:match|" in Selector(bank).signature
    assert "|zero:match|" in Selector(bank, "transition:cost-ot/knn").signature
    assert "|zero:neutral|" in Selector(bank, "two-sided").signature
    assert "|zero:neutral|" in TransitionReward(bank).signature
    assert all(
        "|zero:" not in Selector(bank, name).signature for name in ("fused", "next-visit", "consensus")
    )


def test_a_section_that_the_bank_lacks_is_left_out():
    """A bank without impressions judges findings alone, and says so."""
    only = [Transition(id="t", prior=Report("Clear.", ""), current=Report("New effusion.", ""))]
    selector = Selector(TransitionBank.build(only, encoder="hashing"))
    selection = selector.select(CLEAR, [Report("New effusion.", "Effusion.")])
    assert selection.selected == 0
    assert Note("bank-lacks", "impression") in selection.flags


@pytest.mark.parametrize("distance", ["novelty", "dir-hausdorff"])
def test_drafts_that_each_make_a_change_of_the_bank_are_tied(distance):
    """All are exactly 0 away, so the earlier one is taken: rounding has no say."""
    topics = ("Lungs", "Ribs", "Bones", "Clips", "Lines", "Hila", "Tubes", "Leads")
    changes = [(f"{topic} are old.", f"{topic} are new.") for topic in topics]
    reports = [[Report(findings=text) for text in pair] for pair in changes]
    made = [
        Transition(id=str(number), prior=prior, current=current)
        for number, (prior, current) in enumerate(reports)
    ]
    encoder = load_encoder(TopicEncoder())
    selector = Selector(TransitionBank.build(made, encoder=encoder), distance=distance, encoder=encoder)
    prior = " ".join(before for before, _ in changes)
    drafts = [Report(findings=prior.replace(*pair)) for pair in changes]
    selection = selector.select(Report(findings=prior), drafts)
    assert set(selection.total_distances) == {0.0}
    assert (selection.selected, selection.tied) == (0, True)


def test_repeated_drafts_are_tied(bank):
    """K copies of one draft: equal distances, the first is taken, the tie is told."""
    selection = Selector(bank).select(CLEAR, [Report("New effusion.", "Effusion.")] * 3)
    assert (selection.selected, selection.tied, selection.margin) == (0, True, 0.0)


def test_one_draft_is_chosen_without_a_margin(bank):
    """With one draft there is no second to be compared with."""
    selection = Selector(bank).select(CLEAR, [Report("New effusion.", "Effusion.")])
    assert (selection.selected, selection.margin) == (0, None)


def test_repeated_sentences_count_as_often_as_they_stand_there(bank):
    """Sets are multisets: saying a thing twice moves the mean."""
    once, twice = Report("New effusion. Clear.", ""), Report("New effusion. New effusion. Clear.", "")
    totals = Selector(bank, distance="mean-shift").select(CLEAR, [once, twice]).total_distances
    assert totals[0] != totals[1]


def test_a_patient_of_the_bank_is_refused_unless_allowed(bank):
    """A patient's own training transitions must not choose the patient's report."""
    patient = bank.provenance[0]["patient"]
    assert Selector(bank).select(CLEAR, [CLEAR], patient=patient).abstained == "patient-in-bank"
    assert Selector(bank, allow_bank_patients=True).select(CLEAR, [CLEAR], patient=patient).selected == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"aggregate": "knn", "num_neighbours": 10_000}, "k = 10000 neighbours were asked for, the bank has"),
        ({"num_neighbours": 0}, "give 1 or more"),
    ],
)
def test_a_k_that_cannot_be_is_refused(bank, settings, message):
    """K beyond the bank or below 1 is refused when the selector is made."""
    with pytest.raises(BadInputError, match=message):
        Selector(bank, **settings)


def test_the_signature_tells_what_changes_a_selection(bank):
    """The golden signature of a default selector, but for the bank's sum."""
    signature = Selector(bank, distance="cost-ot", aggregate="knn").signature
    assert signature.replace(bank.sha256[:12], "BANK") == (
        "distance:cost-ot|aggregate:knn10|encoder:hashing@none"
        "|splitter:tabon-sentences-1+sentencex-1.0.32|parser:tabon-report-1|sets:multiset"
        "|zero:match|empty:prior-left-out,draft-worst|solver:pot-network-simplex|bank:BANK|tabon:0.1.0"
    )


def test_very_long_and_foreign_drafts_are_answered(bank):
    """20,000-character sections are answered and flagged; other alphabets are text like any other."""
    long = Report("The lungs are clear on both sides. " * 600, "Normal.")
    foreign = Report("Легкие чистые. 肺野清晰。", "Norme.")
    selection = Selector(bank).select(CLEAR, [long, foreign])
    assert selection.selected is not None
    assert Note("long-section", "findings", 0) in selection.flags
