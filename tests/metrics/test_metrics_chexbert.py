"""CheXbert's labels and F1 agree with f1chexbert."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from openi import openi_sections
from tabon.errors import BadInputError, MetricUnavailableError
from tabon.metrics import Pair, chexbert, load_metric
from tabon.metrics.models.bert import digest, load_tensors
from tiny_metric_models import bert_backbone, tiny_chexbert

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "chexbert.json").read_text(encoding="utf-8"))
MADE_UP = [Pair(reference=r, candidate=c) for r, c in GOLDEN["pairs"] + GOLDEN["empty_pairs"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a tiny CheXbert with its backbone's files."""
    return tiny_chexbert(tmp_path_factory.mktemp("models") / "chexbert")


@pytest.fixture(scope="module")
def metric(folder):
    """Load it."""
    return chexbert.load(folder)


def score_all(metric, pairs):
    """Return the scores over all pairs by name, without the family's prefix."""
    rows = metric.measure(pairs)
    sums, counts = rows.sum(axis=0), np.array(float(len(rows)))
    return {score.name.removeprefix("chexbert-"): float(score.value(sums, counts)) for score in metric.scores}


def openi_pairs():
    """Return the Open-i pairs of the golden file, checked against their hashes."""
    texts = {number: sections["FINDINGS"] for number, sections in openi_sections()}
    for entry in GOLDEN["openi_pairs"]:
        reference, candidate = (texts[str(number)] for number in entry["numbers"])
        assert hashlib.sha256(f"{reference}\0{candidate}".encode()).hexdigest()[:12] == entry["sha256"]
        yield Pair(reference=reference, candidate=candidate)


def test_equals_f1chexbert(metric):
    """Labels exactly, F1 to a millionth: white space, over 512 tokens, empty texts."""
    labels = np.array(GOLDEN["made_up"]["labels"])
    np.testing.assert_array_equal(metric.label([pair.reference for pair in MADE_UP]), labels[:, 0])
    np.testing.assert_array_equal(metric.label([pair.candidate for pair in MADE_UP]), labels[:, 1])
    assert score_all(metric, MADE_UP) == pytest.approx(GOLDEN["made_up"]["scores"], abs=1e-6)
    assert 0 < labels.mean() < 1


@pytest.mark.openi
def test_equals_f1chexbert_on_real_reports(metric):
    """The same on Open-i reports, of which only numbers, labels and scores are kept."""
    pairs = list(openi_pairs())
    labels = np.array(GOLDEN["openi"]["labels"])
    np.testing.assert_array_equal(metric.label([pair.reference for pair in pairs]), labels[:, 0])
    np.testing.assert_array_equal(metric.label([pair.candidate for pair in pairs]), labels[:, 1])
    assert score_all(metric, pairs) == pytest.approx(GOLDEN["openi"]["scores"], abs=1e-6)


def test_a_row_depends_on_its_pair_alone(metric):
    """Alone, in reverse and among many: the same logits to the bit."""
    texts = [pair.reference for pair in MADE_UP]
    ids = metric._tokenizer(texts, truncation=True, max_length=512)["input_ids"]
    together = chexbert.bert.encode_rows(ids, metric._forward)
    for row, logits in zip(ids, together, strict=True):
        np.testing.assert_array_equal(chexbert.bert.encode_rows([row], metric._forward)[0], logits)
    np.testing.assert_array_equal(metric.measure(MADE_UP[::-1])[::-1], metric.measure(MADE_UP))


def test_each_distinct_text_is_labelled_once(metric, monkeypatch):
    """Ten drafts of one reference label the reference once."""
    seen = []
    label = metric.label
    monkeypatch.setattr(metric, "label", lambda texts: seen.extend(texts) or label(texts))
    drafts = ["The lungs are clear.", "Mild  edema.", "Mild edema.\n"] * 3
    metric.measure([Pair(reference="Mild edema.", candidate=draft) for draft in drafts])
    assert sorted(seen) == ["Mild edema.", "The lungs are clear."]


def test_uncertain_counts_as_positive(metric, monkeypatch):
    """Of blank, positive, negative, uncertain the second and the fourth are there."""
    logits = np.zeros(54, dtype=np.float32)
    for head, kind in enumerate((0, 1, 2, 3)):
        logits[4 * head + kind] = 1.0
    logits[53] = 1.0
    monkeypatch.setattr(chexbert.bert, "encode_rows", lambda ids, _: [logits] * len(ids))
    expected = np.isin(np.arange(14), (1, 3, 13))
    np.testing.assert_array_equal(metric.label(["any"])[0], expected)


def test_the_signature_says_what_changes_numbers(metric, folder):
    """The weights' hash, the policy for uncertain labels, and versions."""
    assert f"|weights:{digest(folder / 'chexbert.pth')}|" in metric.signature
    for part in ("chexbert|", "|uncertain:positive|", "|tokens:512|", "|empty:labelled|", "|torch:"):
        assert part in metric.signature


def test_no_pairs_no_rows(metric):
    """Nothing to measure is an empty table."""
    assert metric.measure([]).shape == (0, len(metric.statistics))


@pytest.mark.parametrize("name", ["chexbert.pth", "config.json", "vocab.txt"])
def test_a_missing_file_is_named(tmp_path, folder, name):
    """A folder without one of its files says which."""
    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model" / name).unlink()
    with pytest.raises(MetricUnavailableError, match=f"{name} is not in"):
        chexbert.load(tmp_path / "model")


def test_without_the_weights_the_command_is_named(tmp_path, monkeypatch):
    """An empty Hub cache: the file, the command and the option."""
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MetricUnavailableError) as caught:
        load_metric("chexbert")
    assert "chexbert.pth of StanfordAIMI/RRG_scorers" in caught.value.reason
    assert "hf download StanfordAIMI/RRG_scorers chexbert.pth" in caught.value.remedy
    assert "--metric-files chexbert=FOLDER" in caught.value.remedy


def test_the_hub_cache_is_used(tmp_path, monkeypatch, folder, metric):
    """Weights and backbone come from two repositories; other weights than the published ones are refused."""
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    weights = tmp_path / "models--StanfordAIMI--RRG_scorers" / "snapshots" / chexbert.REVISION
    weights.mkdir(parents=True)
    shutil.copy(folder / "chexbert.pth", weights)
    with pytest.raises(
        BadInputError, match="expected 6550703c92d640e1e04d8105a7a185d76ece0f25fcbf033d292785"
    ):
        load_metric("chexbert")
    monkeypatch.setattr(chexbert, "PUBLISHED", {})
    with pytest.raises(MetricUnavailableError, match=r"vocab\.txt of google-bert/bert-base-uncased"):
        load_metric("chexbert")
    backbone = tmp_path / "models--google-bert--bert-base-uncased" / "snapshots"
    bert_backbone(backbone / chexbert.BACKBONE_REVISION)
    np.testing.assert_array_equal(load_metric("chexbert").measure(MADE_UP), metric.measure(MADE_UP))


def test_a_folder_can_be_pinned_to_its_weights(folder, metric):
    """`FOLDER@sha256:SUM` is the folder if the sum is right; anything else is refused in one sentence."""
    found = hashlib.sha256((folder / "chexbert.pth").read_bytes()).hexdigest()
    pinned = load_metric("chexbert", model=Path(f"{folder}@sha256:{found.upper()}"))
    assert pinned.signature == metric.signature
    with pytest.raises(BadInputError, match=rf"chexbert\.pth has sha256 {found}"):
        load_metric("chexbert", model=Path(f"{folder}@sha256:{'0' * 64}"))
    with pytest.raises(BadInputError, match="write its 64 hex digits"):
        load_metric("chexbert", model=Path(f"{folder}@sha256:{found[:12]}"))


@pytest.mark.parametrize("keep", [0, 3, 1000, 100_000])
def test_a_truncated_file_is_refused(tmp_path, folder, keep):
    """Weights that were cut short are not loaded, and the message says how long they are."""
    cut = Path(shutil.copytree(folder, tmp_path / "model"))
    (cut / "chexbert.pth").write_bytes((folder / "chexbert.pth").read_bytes()[:keep])
    with pytest.raises(BadInputError, match=rf"chexbert.pth \({keep} bytes\) is not a whole checkpoint"):
        chexbert.load(cut)


class Trap:
    """An object that would leave a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        """Ask the reader to call `Path.touch`."""
        return Path.touch, (self.path,)


def test_a_checkpoint_runs_no_code(tmp_path, folder):
    """An object in the file is refused and not built."""
    torch = pytest.importorskip("torch")
    model = Path(shutil.copytree(folder, tmp_path / "model"))
    torch.save({"model_state_dict": {}, "trap": Trap(tmp_path / "sprung")}, model / "chexbert.pth")
    with pytest.raises(BadInputError, match="not a whole checkpoint"):
        chexbert.load(model)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("module.linear_heads.13.bias", r"linear_heads\.13\.bias of 2 classes"),
        ("module.bert.encoder.layer.1.output.dense.bias", r"encoder\.layer\.1\.output\.dense\.bias"),
    ],
)
def test_missing_tensors_are_named(tmp_path, folder, left_out, message):
    """A checkpoint of something else is not filled up with random numbers."""
    torch = pytest.importorskip("torch")
    model = Path(shutil.copytree(folder, tmp_path / "model"))
    tensors = load_tensors(folder / "chexbert.pth")
    del tensors[left_out]
    torch.save({"model_state_dict": tensors}, model / "chexbert.pth")
    with pytest.raises(BadInputError, match=message):
        chexbert.load(model)


def test_a_file_without_tensors_is_refused(tmp_path):
    """Something else that torch saved has nothing to load."""
    torch = pytest.importorskip("torch")
    torch.save({"epoch": 3}, tmp_path / "other.pth")
    with pytest.raises(BadInputError, match="no tensors"):
        load_tensors(tmp_path / "other.pth")
