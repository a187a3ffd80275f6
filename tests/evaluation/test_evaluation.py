"""Every number of an evaluation agrees with the plain way of computing it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from student import tail
from tabon.data.simulate import SimulationSettings, simulate_queries
from tabon.errors import BadInputError
from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases, read_picks
from tabon.evaluation.compare import Estimate
from tabon.evaluation.evaluate import seeded_picks
from tabon.evaluation.inputs import check_picks, read_signature
from tabon.evaluation.results import MEAN_RUN, ORACLE, RANDOM, RANDOM_SEEDS
from tabon.metrics import Pair, Score, load_metric
from tabon.metrics.protocol import MeasurementStore, divided, mean_of, measure_pairs

SETTINGS = EvaluationSettings(resamples=200)
PATIENTS = SimulationSettings(patients=500, num_candidates=4)


class Overlap:
    """Shared words over all words: a mean and a ratio of sums, simple enough to check by hand."""

    name = "overlap"
    signature = "overlap|words"
    statistics = ("shared", "all", "ratio")
    calls = 0

    @property
    def scores(self):
        """Return a mean over drafts and a corpus score."""
        return (
            Score("ratio", mean_of(2)),
            Score("corpus-ratio", lambda sums, _: sums[..., 0] / np.maximum(sums[..., 1], 1)),
        )

    def measure(self, pairs):
        """Count words."""
        type(self).calls += len(pairs)
        rows = []
        for pair in pairs:
            ours, theirs = set(pair.candidate.split()), set(pair.reference.split())
            shared, both = len(ours & theirs), len(ours | theirs)
            rows.append((shared, both, shared / both if both else 0.0))
        return np.array(rows, dtype=np.float64).reshape(len(pairs), 3)


def lines(settings=PATIENTS, **facts):
    """Return simulated queries as lines."""
    return [json.dumps({**record, **facts}).encode() for record in simulate_queries(settings)]


@pytest.fixture(scope="module")
def cases():
    """Return simulated studies."""
    return read_cases(lines(), name="simulated")


def picks_by(cases, choose, method="m", signature=None):
    """Return picks by a rule over studies."""
    return Picks(
        method=method,
        signature=signature or f"selector:{method}",
        chosen={case.query.id: choose(case) for case in cases.cases},
        distances={},
    )


def texts(cases, section, choose):
    """Return the (reference, candidate) texts that a rule picks."""
    return [
        Pair(
            reference=case.reference.section(section),
            candidate=case.query.candidates[choose(case)].section(section),
        )
        for case in cases.cases
        if case.has(section)
    ]


def last(case):
    """Pick the last draft."""
    return len(case.query.candidates) - 1


def run_of(cases, *picks, name="run"):
    """Return a run."""
    return RunInput(name=name, cases=cases, picks=tuple(picks))


@pytest.fixture(scope="module")
def results(cases):
    """Evaluate two rules with a metric of means and sums."""
    rules = [picks_by(cases, lambda _: 0, "first"), picks_by(cases, last, "last")]
    return evaluate([run_of(cases, *rules)], [Overlap(), load_metric("bleu")], SETTINGS)


def cell(results, method, score, section="findings", run=None):
    """Return one cell."""
    found = results.cell(run=run or results.main_run(), section=section, method=method, score=score)
    assert found is not None
    return found


@pytest.mark.parametrize("section", ["findings", "impression"])
@pytest.mark.parametrize("score", ["ratio", "corpus-ratio", "bleu-1", "corpus-bleu-2"])
def test_a_cell_is_the_score_of_the_picked_texts(cases, results, section, score):
    """Indexing the table equals measuring the picked drafts on their own, means and corpus scores alike."""
    metric = Overlap() if "ratio" in score else load_metric("bleu")
    rows = metric.measure(texts(cases, section, last))
    value = next(each.value for each in metric.scores if each.name == score)
    expected = value(rows.sum(axis=0), np.array(float(len(rows))))
    assert cell(results, "last", score, section).value == pytest.approx(float(expected), abs=1e-12)
    assert cell(results, "last", score, section).n == len(rows)


def test_corpus_bleu_of_the_picks_is_sacrebleus(cases, results):
    """A corpus score from summed statistics is the reference implementation's on the picked texts."""
    import sacrebleu

    picked = texts(cases, "findings", last)
    expected = sacrebleu.corpus_bleu(
        [pair.candidate for pair in picked], [[pair.reference for pair in picked]]
    ).score
    assert 100 * cell(results, "last", "corpus-bleu-4").value == pytest.approx(expected, abs=1e-9)


def table_of(cases, section="findings"):
    """Return the ratio of every draft of every study."""
    return np.array(
        [
            [
                Overlap().measure(
                    [Pair(reference=case.reference.section(section), candidate=draft.section(section))]
                )[0, 2]
                for draft in case.query.candidates
            ]
            for case in cases.cases
        ]
    )


def test_random_is_the_mean_over_drafts_and_the_oracle_the_best_draft(cases, results):
    """The reference rows are the plain mean and the plain maximum; seeds scatter around the mean."""
    table = table_of(cases)
    assert cell(results, RANDOM, "ratio").value == pytest.approx(table.mean(), abs=1e-12)
    assert cell(results, ORACLE, "ratio").value == pytest.approx(table.max(axis=1).mean(), abs=1e-12)
    seeded = np.mean(
        [table[np.arange(len(table)), seeded_picks(cases.cases, seed)].mean() for seed in range(5)]
    )
    assert cell(results, RANDOM_SEEDS, "ratio").value == pytest.approx(seeded, abs=1e-12)


@pytest.mark.parametrize(("method", "draft"), [("first", 0), ("last", -1)])
def test_the_shares_are_what_they_say(cases, results, method, draft):
    """Delta, relative change, gap closed and the counts follow from the values."""
    found, table = cell(results, method, "ratio"), table_of(cases)
    random, oracle = table.mean(axis=1), table.max(axis=1)
    ahead = table[:, draft] - random
    assert found.delta == pytest.approx(ahead.mean(), abs=1e-12)
    assert found.relative == pytest.approx(ahead.mean() / random.mean(), abs=1e-12)
    assert found.gap == pytest.approx(ahead.mean() / (oracle - random).mean(), abs=1e-12)
    wins, losses = int((ahead > 1e-12).sum()), int((ahead < -1e-12).sum())
    assert (found.wins, found.losses, found.ties) == (wins, losses, len(ahead) - wins - losses)


def below(cases):
    """Return the share of resamples below the interval."""
    return tail([case.patient for case in cases.cases if case.has("findings")])


def test_the_interval_is_the_one_of_a_plain_loop_over_resampled_patients(cases):
    """Weighted sums give what drawing patients one by one and scoring anew gives."""
    settings = EvaluationSettings(resamples=40, seed=7)
    results = evaluate([run_of(cases, picks_by(cases, last, "last"))], [Overlap()], settings)
    patients = list(dict.fromkeys(case.patient for case in cases.cases))
    rng = np.random.default_rng(7)
    draws = rng.integers(len(patients), size=(40, len(patients)))
    of_patient = {name: [case for case in cases.cases if case.patient == name] for name in patients}
    values = []
    for draw in draws:
        studies = [case for index in draw for case in of_patient[patients[index]] if case.has("findings")]
        pairs = [
            Pair(reference=case.reference.findings, candidate=case.query.candidates[last(case)].findings)
            for case in studies
        ]
        rows = Overlap().measure(pairs).sum(axis=0)
        values.append(rows[0] / rows[1])
    found = cell(results, "last", "corpus-ratio")
    assert found.low == pytest.approx(np.quantile(values, below(cases)), abs=1e-12)
    assert found.high == pytest.approx(np.quantile(values, 1 - below(cases)), abs=1e-12)


def test_intervals_of_the_shares_are_those_of_a_plain_loop(cases):
    """Delta and gap of each resample of patients, worked out one by one, have the same percentiles."""
    settings = EvaluationSettings(resamples=40, seed=8)
    rules = [picks_by(cases, lambda _: 0, "first"), picks_by(cases, last, "last")]
    results = evaluate([run_of(cases, *rules)], [Overlap()], settings)
    names = [case.patient for case in cases.cases]
    patients = list(dict.fromkeys(names))
    studies = [[row for row, name in enumerate(names) if name == patient] for patient in patients]
    table, shares = table_of(cases), (below(cases), 1 - below(cases))
    draws = np.random.default_rng(8).integers(len(patients), size=(40, len(patients)))
    drawn = [table[[row for index in draw for row in studies[index]]] for draw in draws]
    for method, draft in (("first", 0), ("last", -1)):
        deltas = [rows[:, draft].mean() - rows.mean() for rows in drawn]
        gaps = [
            delta / (rows.max(axis=1).mean() - rows.mean()) for delta, rows in zip(deltas, drawn, strict=True)
        ]
        found = cell(results, method, "ratio")
        bounds = [found.delta_low, found.delta_high, found.gap_low, found.gap_high]
        expected = [np.quantile(values, share) for values in (deltas, gaps) for share in shares]
        assert bounds == pytest.approx(expected, abs=1e-12)
    oracle, seeds = cell(results, ORACLE, "ratio"), cell(results, RANDOM_SEEDS, "ratio")
    best = [rows.max(axis=1).mean() for rows in drawn]
    assert [oracle.low, oracle.high] == pytest.approx([np.quantile(best, share) for share in shares])
    assert (seeds.low, seeds.high) == (None, None)


class Rate:
    """Hits of tries, read from the draft's text; without a try there is no value."""

    name = "rate"
    signature = "rate"
    statistics = ("hits", "tries")
    scores = (Score("rate", lambda sums, _: divided(sums[..., 0], sums[..., 1])),)

    def measure(self, pairs):
        """Read both numbers."""
        return np.array([pair.candidate.split() for pair in pairs], dtype=np.float64)


@pytest.mark.parametrize(("drafts", "oracle"), [(["0 0", "1 2"], 0.75), (["0 0", "0 2"], 1.0)])
def test_silence_is_worth_more_than_a_wrong_draft_and_less_than_a_right_one(drafts, oracle):
    """To the oracle a draft without a value stands between nothing and anything."""
    record = {"patient": 1, "prior": "x", "reference": {"findings": "r"}}
    studies = [
        record | {"id": number, "candidates": [{"findings": text} for text in texts]}
        for number, texts in enumerate([drafts, ["2 2", "2 2"]])
    ]
    cases = read_cases([json.dumps(study).encode() for study in studies], name="x")
    results = evaluate([run_of(cases, picks_by(cases, last))], [Rate()], SETTINGS)
    assert cell(results, ORACLE, "rate").value == oracle


def test_the_oracle_prefers_rightful_silence_to_an_invented_change():
    """Where a score has no value for a silent draft, the oracle does not take a wrong one instead."""
    record = {"patient": 1, "prior": "Small effusion.", "reference": "The lungs are clear."}
    drafts = ["The effusion has worsened.", "The lungs are clear."]
    on_progress = [json.dumps(record | {"id": 1, "candidates": drafts}).encode()]
    change = record | {"id": 2, "reference": "The effusion has worsened.", "candidates": drafts}
    cases = read_cases([*on_progress, json.dumps(change).encode()], name="x")
    results = evaluate([run_of(cases, picks_by(cases, last))], [load_metric("temporal")], SETTINGS)
    assert cell(results, ORACLE, "temporal-f1").value == 1.0


def test_picking_the_oracle_closes_the_whole_gap_and_abstaining_none_of_it(cases):
    """The best draft of each study is worth 1, saying nothing is worth 0, and both are visible."""
    best = dict(zip((case.query.id for case in cases.cases), table_of(cases).argmax(axis=1), strict=True))
    rules = [
        picks_by(cases, lambda case: int(best[case.query.id]), "best"),
        picks_by(cases, lambda _: -1, "nothing"),
    ]
    results = evaluate([run_of(cases, *rules)], [Overlap()], SETTINGS)
    assert cell(results, "best", "ratio").gap == pytest.approx(1.0)
    assert cell(results, "best", "ratio").p == pytest.approx(1 / 201)
    assert cell(results, "nothing", "ratio").gap == pytest.approx(0.0)
    assert cell(results, "nothing", "ratio").p == 1.0
    nothing = cell(results, "nothing", "ratio")
    assert (nothing.wins, nothing.ties, nothing.losses) == (0, len(cases.cases), 0)
    assert results.runs[0].abstained == {"best": 0, "nothing": len(cases.cases)}


def test_the_mean_over_runs_is_the_mean_of_their_values(cases):
    """Several runs give each its cells and one row of means; p and intervals are of the mean."""
    other = read_cases(lines(replace(PATIENTS, prompt="p1")), name="other")
    runs = [run_of(each, picks_by(each, last), name=name) for name, each in (("a", cases), ("b", other))]
    results = evaluate(runs, [Overlap()], SETTINGS)
    single = [cell(results, "m", "ratio", run=name).value for name in ("a", "b")]
    assert cell(results, "m", "ratio", run=MEAN_RUN).value == pytest.approx(np.mean(single))
    for row in (RANDOM_SEEDS, ORACLE):
        single = [cell(results, row, "ratio", run=name).value for name in ("a", "b")]
        assert cell(results, row, "ratio", run=MEAN_RUN).value == pytest.approx(np.mean(single))
    assert cell(results, "m", "ratio", run=MEAN_RUN).n == 2 * cell(results, "m", "ratio", run="a").n
    for count in ("wins", "ties", "losses"):
        counts = [getattr(cell(results, "m", "ratio", run=name), count) for name in ("a", "b", MEAN_RUN)]
        assert counts[0] + counts[1] == counts[2]
    assert cell(results, "m", "ratio", run="a").holm is None
    assert cell(results, "m", "ratio", run=MEAN_RUN).holm >= cell(results, "m", "ratio", run=MEAN_RUN).p


def test_the_mean_of_two_equal_runs_is_either(cases):
    """Interval and p of a mean over runs are those of the runs, where these are the same."""
    results = evaluate(
        [run_of(cases, picks_by(cases, last), name=name) for name in "ab"], [Overlap()], SETTINGS
    )
    one, mean = (cell(results, "m", "ratio", run=run) for run in ("a", MEAN_RUN))
    for name in ("value", "low", "high", "delta_low", "delta_high", "gap_low", "gap_high", "p"):
        assert getattr(mean, name) == pytest.approx(getattr(one, name))


def test_a_difference_of_rounding_alone_is_none():
    """0.1 + 0.2 is 0.3, in the value and in every draw."""
    one, other = (Estimate(np.array([value]), np.array([[value]]), 2) for value in (0.1 + 0.2, 0.3))
    assert [number.named() for number in (one - other).numbers()] == [{"value": 0.0, "low": 0.0, "high": 0.0}]


def test_the_order_of_a_run_s_methods_does_not_matter(cases):
    """A run that names its methods in another order has the same cells."""
    one, two = picks_by(cases, lambda _: 0, "one"), picks_by(cases, last, "two")
    results = evaluate(
        [run_of(cases, one, two, name="a"), run_of(cases, two, one, name="b")], [Overlap()], SETTINGS
    )
    for method in ("one", "two"):
        assert cell(results, method, "ratio", run="a").value == cell(results, method, "ratio", run="b").value


def test_one_run_has_no_mean_over_runs(results):
    """A mean of one would only say everything twice."""
    assert {found.run for found in results.cells} == {"run"}


def test_runs_without_methods_have_their_reference_rows(cases):
    """Before anything is selected, random and oracle can be seen, in runs of unlike sizes too."""
    other = read_cases(lines(replace(PATIENTS, num_candidates=3)), name="other")
    fewer = replace(other, cases=other.cases[:5])
    results = evaluate([run_of(cases, name="a"), run_of(fewer, name="b")], [Overlap()], SETTINGS)
    assert {found.method for found in results.cells} == {RANDOM, RANDOM_SEEDS, ORACLE}
    assert {found.run for found in results.cells} == {"a", "b", MEAN_RUN}


def test_state_f1_is_measured_where_the_truth_is_known_and_only_there(cases, results):
    """Simulated cohorts get state-F1 of the whole report; others have no such cell."""
    assert cell(results, "last", "state-f1", "report").n == len(cases.cases)
    plain = [json.dumps({**json.loads(line), "state": None}).encode() for line in lines()]
    plain = [line.replace(b', "state": null', b"") for line in plain]
    stripped = read_cases(plain, name="plain")
    results = evaluate([run_of(stripped, picks_by(stripped, last))], [Overlap()], SETTINGS)
    assert "report" not in results.sections()


def test_every_distinct_pair_is_measured_once_and_kept(tmp_path, cases):
    """Nine selectors cost no more measuring than one; a second evaluation costs none."""
    store = MeasurementStore(tmp_path / "m.sqlite")
    rules = [picks_by(cases, lambda case, j=j: j % len(case.query.candidates), f"m{j}") for j in range(9)]
    Overlap.calls = 0
    first = evaluate([run_of(cases, *rules)], [Overlap()], SETTINGS, store=store)
    measured = Overlap.calls
    assert measured <= 2 * sum(len(case.query.candidates) for case in cases.cases)
    again = evaluate([run_of(cases, *rules)], [Overlap()], SETTINGS, store=store)
    assert Overlap.calls == measured
    assert again == first


def test_the_store_holds_no_text_and_is_keyed_by_signature(tmp_path):
    """Another signature finds nothing, and no report text lies in the file."""
    store = MeasurementStore(tmp_path / "m.sqlite")
    pair = Pair(reference="CANARY one", candidate="CANARY two")
    measure_pairs(Overlap(), [pair], store=store)
    assert b"CANARY" not in (tmp_path / "m.sqlite").read_bytes()
    other = Overlap()
    other.signature = "overlap|other"
    assert store.read(other, [pair]) == {}
    assert len(store.read(Overlap(), [pair])) == 1


def test_the_signature_is_made_once_for_many_pairs(tmp_path):
    """It looks up the versions of packages, which takes longer than a pair."""

    class Counted(Overlap):
        made = 0

        @property
        def signature(self):
            Counted.made += 1
            return "overlap|words"

    pairs = [Pair(reference="one two", candidate=f"one {number}") for number in range(50)]
    measure_pairs(Counted(), pairs, store=MeasurementStore(tmp_path / "m.sqlite"))
    assert Counted.made == 2  # to read, and to write


def test_studies_without_the_section_are_left_out_of_its_n():
    """N counts the references that say something there."""
    records = [json.loads(line) for line in lines()]
    records[0]["reference"] = {"findings": "Clear lungs.", "impression": ""}
    cases = read_cases([json.dumps(record).encode() for record in records], name="x")
    results = evaluate([run_of(cases, picks_by(cases, last))], [Overlap()], SETTINGS)
    difference = cell(results, "m", "ratio", "findings").n - cell(results, "m", "ratio", "impression").n
    assert difference == 1


def test_shortfalls_are_counted():
    """A study with fewer drafts than asked for shows in the run."""
    records = [json.loads(line) | {"expected": 4} for line in lines()]
    records[0]["candidates"] = records[0]["candidates"][:2]
    records[1]["candidates"] = []
    del records[2]["reference"]
    cases = read_cases([json.dumps(record).encode() for record in records], name="x")
    results = evaluate([run_of(cases, picks_by(cases, lambda _: 0))], [Overlap()], SETTINGS)
    assert (results.runs[0].short, cases.left_out) == (1, 2)


def test_methods_are_named_after_their_signatures():
    """A selections file names itself."""
    assert read_signature("distance:novelty|aggregate:knn10|bank:x").name == "novelty/knn"
    assert read_signature("selector:fused|bank:x").name == "fused"


def selection(number, **changes):
    """Return one line of a selections file."""
    record = {"id": number, "selected": 0, "total_distances": [0.1], "signature": "s"}
    return json.dumps(record | changes).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([b'{"id"'], "line 1 is not a selection"),
        ([b"[1]"], "line 1 is not a selection"),
        ([selection(1), selection(2, signature="t")], "2 signatures"),
        ([], "holds no selections"),
        ([selection(1), selection(1)], "answers query '1' twice"),
        ([selection(1, selected="x")], "not a selection"),
        ([selection(1, selected=-5)], "not a selection"),
        ([selection(1, selected=True)], "not a selection"),
        ([selection(1, total_distances=3)], "not a selection"),
        ([selection(1, total_distances=["a"])], "not a selection"),
    ],
)
def test_selections_that_do_not_fit_are_refused(content, message):
    """One sentence says what is wrong with a selections file."""
    with pytest.raises(BadInputError, match=message):
        read_picks(content, name="x.jsonl")


def test_selections_of_other_queries_are_refused(cases):
    """Drafts that are not there and ids that nobody asked for are named."""
    with pytest.raises(BadInputError, match="answers none of the queries"):
        check_picks(read_picks([selection("other")], name="x"), cases.cases, name="x")
    wrong = selection(cases.cases[0].query.id, selected=99)
    with pytest.raises(BadInputError, match="draft 99"):
        check_picks(read_picks([wrong], name="x"), cases.cases, name="x")


def test_methods_must_be_the_same_in_every_run(cases):
    """Two signatures under one name, a method twice, or one missing in a run are refused."""
    one, two = (picks_by(cases, last, "m", signature) for signature in ("a", "b"))
    with pytest.raises(BadInputError, match="two signatures"):
        evaluate([run_of(cases, one), run_of(cases, two, name="b")], [Overlap()], SETTINGS)
    with pytest.raises(BadInputError, match="twice"):
        evaluate([run_of(cases, one, one)], [Overlap()], SETTINGS)
    with pytest.raises(BadInputError, match="no selections of m"):
        evaluate([run_of(cases, one), run_of(cases, name="b")], [Overlap()], SETTINGS)


def test_a_file_without_references_says_so():
    """Without references nothing can be evaluated."""
    record = {"id": 1, "prior": "Clear.", "candidates": ["Clear."]}
    with pytest.raises(BadInputError, match="no query with a 'reference'"):
        read_cases([json.dumps(record).encode()], name="x.jsonl")
    with pytest.raises(BadInputError, match="line 1"):
        read_cases([b'{"id"'], name="x.jsonl")
    with pytest.raises(BadInputError, match="'reference'"):
        read_cases([json.dumps(record | {"reference": 7}).encode()], name="x.jsonl")


def test_a_reference_row_s_name_is_not_a_method_s():
    """A selector cannot call itself random or oracle."""
    for name in (RANDOM, ORACLE):
        with pytest.raises(BadInputError, match="reference row"):
            read_picks([selection(1)], name="x", method=name)


class Fixed:
    """A score that the test sets, negative ones too, so that signs can be checked."""

    name = "fixed"
    signature = "fixed"
    statistics = ("value",)
    scores = (Score("fixed", mean_of(0)), Score("turned", lambda sums, counts: 1 - sums[..., 0] / counts))

    def measure(self, pairs):
        """Read the value from the draft's text."""
        return np.array([[float(pair.candidate)] for pair in pairs])


def test_signs_are_right_where_values_are_negative():
    """A gain over a negative random pick is a gain; an oracle that is no better leaves no gap."""
    record = {"id": 1, "patient": 1, "prior": "x", "reference": {"findings": "r"}}
    drafts = [{"findings": "-0.15"}, {"findings": "-0.35"}]
    cases = read_cases([json.dumps(record | {"candidates": drafts}).encode()], name="x")
    results = evaluate([run_of(cases, picks_by(cases, lambda _: 0))], [Fixed()], SETTINGS)
    found = cell(results, "m", "fixed")
    assert found.relative == pytest.approx(0.1 / 0.25)
    assert found.gap == pytest.approx(1.0)
    same = read_cases([json.dumps(record | {"candidates": drafts[:1] * 2}).encode()], name="x")
    results = evaluate([run_of(same, picks_by(same, lambda _: 0))], [Fixed()], SETTINGS)
    assert cell(results, "m", "fixed").gap is None


def test_a_study_with_fewer_drafts_is_judged_by_those_it_has():
    """Its oracle is the best draft that is there; a single draft is a tie with itself."""
    record = {"patient": 1, "prior": "x", "reference": {"findings": "r"}}
    values = [["-0.5", "-0.25", "-1"], ["-0.75"]]
    studies = [
        record | {"id": number, "candidates": [{"findings": text} for text in texts]}
        for number, texts in enumerate(values)
    ]
    cases = read_cases([json.dumps(study).encode() for study in studies], name="x")
    results = evaluate([run_of(cases, picks_by(cases, lambda _: 0))], [Fixed()], SETTINGS)
    assert cell(results, ORACLE, "fixed").value == pytest.approx((-0.25 - 0.75) / 2)
    found = cell(results, "m", "fixed")
    assert (found.wins, found.ties, found.losses) == (1, 1, 0)


def test_a_study_in_which_no_draft_has_a_value_is_a_tie():
    """Nothing is ahead of nothing."""
    record = {"patient": 1, "prior": "x", "reference": {"findings": "r"}}
    drafts = [{"findings": "0 0"}, {"findings": "0 0"}]
    cases = read_cases([json.dumps(record | {"id": 1, "candidates": drafts}).encode()], name="x")
    found = cell(evaluate([run_of(cases, picks_by(cases, last))], [Rate()], SETTINGS), "m", "rate")
    assert (found.value, found.wins, found.ties, found.losses) == (None, 0, 1, 0)


@pytest.mark.parametrize("state", [5, "cardiomegaly", [1], None])
def test_a_state_that_is_not_a_list_of_facts_is_not_measured(state):
    """A key of that name in real data is no truth."""
    records = [json.loads(line) | {"state": state} for line in lines()][:3]
    cases = read_cases([json.dumps(record).encode() for record in records], name="x")
    results = evaluate([run_of(cases, picks_by(cases, last))], [Overlap()], SETTINGS)
    assert "report" not in results.sections()


def test_seeds_below_zero_are_refused():
    """One sentence instead of numpy's."""
    for settings in ({"seed": -1}, {"random_seeds": (0, -1)}):
        with pytest.raises(BadInputError, match="below 0"):
            EvaluationSettings(**settings)


@pytest.mark.parametrize("patients", [2.0, 2.5, 5.0, 40.0])
def test_p_of_an_estimate_is_student_s(patients):
    """Twice the tail beyond the value over its spread, which resampling n patients makes a little small."""
    rng = np.random.default_rng(7)
    draws = rng.normal(size=(200, 4)) * [1.0, 0.01, 5.0, 0.0]
    value = np.array([-0.7, 0.012, 1.0, 0.3])
    error = draws.std(axis=0) * np.sqrt(patients / (patients - 1))
    expected = 2 * t.cdf(-np.abs(value[:3]) / error[:3], patients - 1)
    found = Estimate(value, draws, patients).p()
    np.testing.assert_allclose(found[:3], expected, rtol=1e-9)
    assert np.isnan(found[3])  # without any spread nothing can be said
    assert Estimate(np.zeros(4), draws, patients).p().tolist() == [1.0] * 4
    assert np.isnan(Estimate(value, draws, 1.9).p()).tolist() == [True] * 4


def test_estimates_together_have_the_fewer_patients():
    """A mean, a difference and a share are as sure as the less sure of two."""
    few, many = (Estimate(np.ones(1), np.ones((3, 1)), patients) for patients in (3.0, 8.0))
    for one, other in ((few, many), (many, few)):
        made = (Estimate.mean([one, other]), one - other, one / other)
        assert [each.patients for each in made] == [3.0] * 3
