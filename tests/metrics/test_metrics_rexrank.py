"""ReXrank's columns agree with the packages that its programs use, RadCliQ-v1 with its published numbers."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openi import openi_sections
from tabon.errors import MetricUnavailableError
from tabon.metrics import Pair, load_metric, load_metrics, rexrank
from tabon.metrics.bertscore import BertScore, Recipe
from tabon.metrics.models.bert import encode_rows
from tabon.metrics.rexrank import COLUMNS, MEANS, Rexrank, bleu2, radcliq
from tiny_metric_models import tiny_chexbert, tiny_roberta
from tiny_radgraph import tiny_radgraph

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "rexrank.json").read_text(encoding="utf-8"))
MADE_UP = [case for case in GOLDEN["cases"] if "pair" in case]
OPENI = [case for case in GOLDEN["cases"] if "openi" in case]
SHOWN = dict(
    zip(GOLDEN["columns"], (1e-12, 5e-6, 1e-6, 1e-12, 1e-5), strict=True)
)  # largest difference allowed
WORDS = st.lists(st.sampled_from(["clear", "Clear.", "no", "effusion", " ", "."]), max_size=12).map(" ".join)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny products on many threads only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the three models, each in a folder of its own."""
    root = tmp_path_factory.mktemp("models")
    tiny_roberta(root / "distilroberta-base", layers=6)
    tiny_chexbert(root / "chexbert")
    tiny_radgraph(root, "radgraph")
    return root


@pytest.fixture(scope="module")
def metric(folder):
    """The metric over the three tiny models."""
    return rexrank.load(folder)


def columns_of(metric, pairs):
    """Return the four columns and RadCliQ-v1 of each pair."""
    rows = metric.measure(pairs)
    return np.column_stack([rows, radcliq(rows)])


def differences(metric, cases, pairs):
    """Return the largest difference from the reference in each column."""
    theirs = np.array([case["row"] for case in cases])
    return dict(zip(GOLDEN["columns"], np.abs(columns_of(metric, pairs) - theirs).max(axis=0), strict=True))


def test_equals_the_packages_that_rexrank_uses(metric):
    """BLEU-2, BERTScore, SembScore, RadGraph and RadCliQ-v1 of made-up pairs."""
    pairs = [Pair(reference=case["pair"][0], candidate=case["pair"][1]) for case in MADE_UP]
    found = differences(metric, MADE_UP, pairs)
    assert all(found[name] <= bound for name, bound in SHOWN.items()), found


@pytest.mark.openi
def test_equals_them_on_200_real_reports(metric):
    """The same on 200 pairs of Open-i's reports, of which only numbers and columns are kept."""
    texts = {
        number: f"Findings: {sections['FINDINGS']} Impression: {sections['IMPRESSION']}"
        for number, sections in openi_sections()
    }
    pairs = []
    for case in OPENI:
        text, other = (texts[number] for number in case["openi"])
        half = text.split()[len(text.split()) // 2 :]
        pairs.append(Pair(reference=text, candidate=" ".join([*half, *other.split()])))
    assert len(pairs) == 200
    found = differences(metric, OPENI, pairs)
    print({name: f"{value:.1e}" for name, value in found.items()})  # noqa: T201  # the figures of docs/decisions/rexrank.md: pytest -s
    assert all(found[name] <= bound for name, bound in SHOWN.items()), found
    assert (np.array([case["row"] for case in OPENI]).std(axis=0) > 0.01).all()  # no column is constant


def bleu2_as_printed(reference, candidate):
    """BLEU with equal weights of words and bigrams, in plain loops."""
    theirs, ours = ([w for w in t.lower().replace(".", " .").split(" ") if w] for t in (reference, candidate))
    logs = []
    for size in (1, 2):
        grams = [tuple(ours[i : i + size]) for i in range(len(ours) - size + 1)]
        left = [tuple(theirs[i : i + size]) for i in range(len(theirs) - size + 1)]
        hits = 0
        for gram in grams:
            if gram in left:
                left.remove(gram)
                hits += 1
        if size == 1 and not hits:
            return 0.0
        logs.append(math.log((hits or 0.1) / max(1, len(grams))))
    penalty = 1.0 if len(ours) > len(theirs) else math.exp(1 - len(theirs) / len(ours))
    return penalty * math.exp(sum(logs) / 2)


@given(WORDS, WORDS)
def test_bleu_2_is_the_formula(reference, candidate):
    """Clipped counts, a tenth where no bigram is shared, the brevity penalty."""
    assert bleu2(reference, candidate) == pytest.approx(bleu2_as_printed(reference, candidate), abs=1e-12)


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4), st.integers(0, 2), st.floats(0.01, 1))
def test_radcliq_is_a_distance(columns, column, more):
    """More of three columns makes it smaller, BLEU hardly counts; its score turns the sign."""
    better = list(columns)
    better[column] += more
    assert radcliq(np.array(better)) < radcliq(np.array(columns))
    worded = [*columns[:3], columns[3] + more]
    assert abs(radcliq(np.array(worded)) - radcliq(np.array(columns))) < 1e-10
    score = Rexrank.scores[3]
    assert score.name == "rexrank-minus-radcliq"
    assert score.value(np.array(columns), np.array(1.0)) == pytest.approx(-radcliq(np.array(columns)))


def test_the_mean_distance_is_that_of_the_mean_columns():
    """Sums of drafts are enough; ReXrank's number, 1 / mean, is no order where the mean may be below 0."""
    rows = np.random.default_rng(0).random((7, 4))
    value = Rexrank.scores[3].value(rows.sum(axis=0), np.array(7.0))
    assert value == pytest.approx(-radcliq(rows).mean())
    assert np.isnan(Rexrank.scores[3].value(np.zeros(4), np.array(0.0)))
    good, perfect = radcliq(np.array([[0.9, 0.9, 0.9, 0.9], [1, 1, 1, 1]]))
    assert perfect < good < 0
    assert 1 / radcliq(np.zeros(4)) > 1 / perfect


def test_the_published_average_has_distance_zero():
    """The columns are standardised by what the model was fitted with, so its average draft is at 0."""
    assert radcliq(np.array(MEANS)) == pytest.approx(2.46655256e-10)


def test_one_model_of_each_reads_each_text_once(metric, monkeypatch):
    """Ten drafts of one reference: the reference is embedded once by each model."""
    read = []
    graph = metric._radgraph.model.graph
    monkeypatch.setattr(
        type(metric._radgraph.model), "graph", lambda _, text: read.append(text) or graph(text)
    )
    encoded = []
    monkeypatch.setattr(
        rexrank.chexbert.bert,
        "encode_rows",
        lambda ids, forward: encoded.append(len(ids)) or encode_rows(ids, forward),
    )
    metric.measure([Pair(reference="Mild edema.", candidate=f"Edema {n % 3}.") for n in range(10)])
    assert sorted(read) == ["edema 0.", "edema 1.", "edema 2.", "mild edema."]
    assert encoded == [4, 4]  # BERTScore, then CheXbert


def test_a_row_depends_on_its_pair_alone(metric):
    """Alone and among others: the same bits."""
    pairs = [Pair(reference=case["pair"][0], candidate=case["pair"][1]) for case in MADE_UP[:5]]
    together = metric.measure(pairs)
    for pair, row in zip(pairs, together, strict=True):
        np.testing.assert_array_equal(metric.measure([pair])[0], row)
    assert metric.measure([]).shape == (0, len(COLUMNS))


def test_empty_texts_have_finite_columns(metric):
    """A missing section is a row of numbers like any other, never not a number."""
    rows = metric.measure([Pair(reference="", candidate="Clear."), Pair(reference="", candidate="")])
    assert np.isfinite(rows).all()
    assert not rows[:, [0, 1, 3]].any()


def test_the_signature_says_what_changes_numbers(metric):
    """Each model's weights and settings, and that RadCliQ's sign is turned."""
    for part in ("rexrank|radcliq:v1|sign:turned|", "|bertscore.layer:5|", "|bertscore.idf:no|"):
        assert part in metric.signature
    for part in ("|bertscore.rescaled:bert-score-0.3.13-en|", "|radgraph.model:radgraph|", "|semb.weights:"):
        assert part in metric.signature


def test_bleu_2_needs_no_file():
    """It is measured where nothing else of ReXrank can be."""
    loaded, missing = load_metrics(["rexrank-bleu2"], {})
    assert not missing
    assert loaded[0].measure([Pair(reference="Clear lungs.", candidate="Clear lungs.")]).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("gone", "named"),
    [("distilroberta-base", "model.safetensors"), ("chexbert", "chexbert.pth"), ("radgraph", "weights.th")],
)
def test_a_missing_model_is_named(tmp_path, folder, gone, named):
    """The reason names the files and the option of this metric, not that of another."""
    shutil.copytree(folder, tmp_path / "models", ignore=lambda at, _: [gone] if Path(at) == folder else [])
    with pytest.raises(
        MetricUnavailableError, match=rf"{named}.* is not in .*{gone}; .*--metric-files rexrank=FOLDER"
    ):
        rexrank.load(tmp_path / "models")


def test_radgraph_xl_is_refused(tmp_path, folder):
    """RadCliQ was fitted with the first RadGraph; with another the sum means nothing."""
    shutil.copytree(folder, tmp_path / "models", ignore=lambda *_: ["radgraph"])
    shutil.copytree(tiny_radgraph(tmp_path, "radgraph-xl"), tmp_path / "models" / "radgraph")
    with pytest.raises(MetricUnavailableError, match="holds radgraph-xl, RadCliQ was fitted with radgraph"):
        rexrank.load(tmp_path / "models")


def test_without_weights_the_commands_are_named(tmp_path, monkeypatch):
    """An empty Hub cache: the command with the pinned commit."""
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MetricUnavailableError) as caught:
        load_metric("rexrank")
    assert "of distilbert/distilroberta-base is not in the local Hub cache" in caught.value.reason
    assert f"--revision {rexrank.REVISION}" in caught.value.remedy


def test_rexrank_s_bertscore_has_a_baseline_of_its_own(folder):
    """DistilRoBERTa's layer 5 is rescaled; the metric bertscore leaves a small model as it is."""
    pair = [Pair(reference="Small left effusion.", candidate="Large right effusion.")]
    raw = BertScore(folder / "distilroberta-base", named="tiny", recipe=Recipe(5)).measure(pair)[0, 2]
    rescaled = rexrank.load(folder).measure(pair)[0, 1]
    assert rescaled == pytest.approx((raw - 0.8473319) / (1 - 0.8473319))
