"""Model folders are data: no code runs, nothing is fetched, and the fingerprint covers what is read."""

import importlib
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tabon import Report, Selector, Transition, TransitionBank
from tabon.cli import main
from tabon.encoders import load as loading
from tabon.encoders import load_encoder
from tabon.encoders.model_folder import settings_hash
from tabon.errors import EncoderError
from tiny_mpnet_folder import SENTENCES, tiny_mpnet

MINILM_SETTINGS = "5e1717ea939f2e6e0c206203f5c8597095e9cde1b323961458db95b65057fd18"
TRANSITION = Transition(
    id="a", prior=Report(findings="Clear lungs."), current=Report(findings="New effusion.")
)
QUERY = {"id": "q", "prior": {"findings": "Clear lungs."}, "candidates": [{"findings": "New effusion."}]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A tiny model with a Dense module behind the mean, as the library saves it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    folder = tiny_mpnet(tmp_path_factory.mktemp("models") / "mpnet")
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    model.append(modules.Dense(16, 8))
    model.save(str(folder.parent / "with-dense"))
    return folder.parent / "with-dense"


@pytest.fixture
def folder(whole, tmp_path):
    """A copy to damage."""
    return shutil.copytree(whole, tmp_path / "model")


def edited(path, **changes):
    """Change some keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def add_code(folder, ran):
    """Put a module into a folder that says when it is run."""
    code = f"from pathlib import Path\nPath({str(ran)!r}).touch()\nclass Evil: ...\n"
    (folder / "evil.py").write_text(code)


def trusting(folder, **_):
    """Do what sentence-transformers 5 does with a local folder, whatever trust_remote_code says."""
    sys.path.insert(0, folder)
    try:
        for module in json.loads((Path(folder) / "modules.json").read_text()):
            importlib.import_module(module["type"].rpartition(".")[0])
    finally:
        sys.path.remove(folder)
        sys.modules.pop("evil", None)
    raise OSError("the rest is not simulated")


@pytest.fixture
def trusting_library(monkeypatch):
    """A simulated library that runs the code in a local folder, as those before 6.0 do."""
    import sentence_transformers

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", trusting)


@pytest.mark.usefixtures("trusting_library")
def test_code_in_a_folder_is_refused_before_the_library_sees_it(folder, tmp_path):
    """A module type outside of the library is refused, so that even a library that trusts does not run it."""
    add_code(folder, tmp_path / "ran")
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["type"] = "evil.Evil"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(EncoderError, match="brings its own code is not loaded"):
        load_encoder(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("config.json", {"auto_map": {"AutoModel": "evil.Evil"}}),
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": [None, "evil.Evil"]}}),
        ("2_Dense/config.json", {"activation_function": "evil.Evil"}),
        ("1_Pooling/config.json", {"types": {"0": "evil.Evil"}}),
    ],
    ids=["auto_map", "tokenizer", "activation", "router"],
)
def test_settings_that_name_code_are_refused(folder, tmp_path, file, changes):
    """`auto_map` and class names outside of the libraries are refused in one sentence."""
    add_code(folder, tmp_path / "ran")
    edited(folder / file, **changes)
    with pytest.raises(EncoderError, match="names code to run"):
        load_encoder(folder)
    assert not (tmp_path / "ran").exists()


def test_a_script_that_nothing_names_is_no_reason_to_refuse(folder):
    """Published folders carry their training script; it is not read and does not count."""
    before = load_encoder(folder).fingerprint
    (folder / "train_script.py").write_text("raise SystemExit")
    assert load_encoder(folder).fingerprint == before


@pytest.mark.parametrize("path", ["../outside", "/etc"])
def test_a_module_outside_of_the_folder_is_refused(folder, path):
    """A module's files lie inside the folder, where they are hashed."""
    modules = json.loads((folder / "modules.json").read_text())
    modules[2]["path"] = path
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(EncoderError, match="not part of sentence-transformers"):
        load_encoder(folder)


def test_pickled_weights_are_refused_wherever_they_are(folder):
    """A pickled Dense is neither hashed nor loaded; beside safetensors it is not read."""
    import torch

    dense = folder / "2_Dense"
    torch.save(
        {"linear.weight": torch.ones(8, 16), "linear.bias": torch.ones(8)}, dense / "pytorch_model.bin"
    )
    assert load_encoder(folder).fingerprint.dimension == 8
    (dense / "model.safetensors").unlink()
    with pytest.raises(EncoderError, match=r"2_Dense/pytorch_model\.bin in model holds pickled weights"):
        load_encoder(folder)


def test_files_that_are_not_hashed_are_not_read(folder, tmp_path):
    """Weights outside of the folder, by a link or by an index, are not in the fingerprint."""
    (folder / "2_Dense").rename(tmp_path / "elsewhere")
    (folder / "2_Dense").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EncoderError, match="2_Dense in model is a link to another folder"):
        load_encoder(folder)
    (folder / "2_Dense").unlink()
    index = {"weight_map": {"embeddings.LayerNorm.bias": "../elsewhere/model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(EncoderError, match="names weights outside of model"):
        load_encoder(folder)


def test_an_adapter_is_refused(folder):
    """An adapter's other half lies elsewhere and is not in the fingerprint."""
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "owner/model"}')
    with pytest.raises(EncoderError, match="adapter of another model"):
        load_encoder(folder)


def old_layout(folder):
    """Move the transformer into its own folder, as old versions of the library saved it."""
    inner = folder / "0_Transformer"
    inner.mkdir()
    ours = {"modules.json", "config_sentence_transformers.json", "README.md"}
    for path in list(folder.iterdir()):
        if path.is_file() and path.name not in ours:
            path.rename(inner / path.name)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "config.json", "sentence_bert_config.json", "tokenizer_config.json"]
)
def test_settings_in_a_module_s_folder_are_in_the_fingerprint(folder, name):
    """In the old layout too, each file that is read for a vector counts."""
    old_layout(folder)
    assert load_encoder(folder).encode(SENTENCES[:1]).shape == (1, 8)
    before = settings_hash(folder)
    with (folder / "0_Transformer" / name).open("a") as file:
        file.write(" ")
    assert settings_hash(folder) != before


@pytest.mark.parametrize("name", ["spiece.model", "vocab.bpe", "merges.txt", "1_Pooling/words.txt"])
def test_a_vocabulary_of_any_kind_is_in_the_fingerprint(folder, name):
    """What is not known to be unread counts."""
    before = settings_hash(folder)
    (folder / name).write_text("a b")
    assert settings_hash(folder) != before


def test_the_fingerprint_of_the_embedded_encoder_is_the_one_in_banks():
    """Banks in use name these sums: they may not change."""
    assert load_encoder("minilm").fingerprint.settings == MINILM_SETTINGS


@pytest.mark.parametrize("keep", [0, 5, 300, -1])
@pytest.mark.parametrize("file", ["model.safetensors", "2_Dense/model.safetensors"])
def test_cut_weights_are_refused_in_one_sentence(folder, file, keep):
    """A download that broke off is no traceback."""
    (folder / file).write_bytes((folder / file).read_bytes()[:keep])
    with pytest.raises(EncoderError, match="check that the folder is whole"):
        load_encoder(folder)


def rewritten(path, change):
    """Write a safetensors file anew with other tensors."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


def test_missing_tensors_are_not_made_up(folder):
    """The library would fill them with random numbers: one fingerprint, other rows each time."""
    rewritten(folder / "model.safetensors", lambda tensors: tensors.pop("embeddings.word_embeddings.weight"))
    with pytest.raises(EncoderError, match=r"lacks 1 tensors of its model, embeddings\.word_embeddings"):
        load_encoder(folder)


def test_tensors_under_other_names_and_an_unused_pooler_are_no_reason_to_refuse(folder):
    """A prefix of a bigger model is taken off by the library; a pooler is not read for the mean."""
    before = load_encoder(folder).encode(SENTENCES)

    def renamed(tensors):
        for name in list(tensors):
            tensor = tensors.pop(name)
            if "pooler" not in name:
                tensors[f"mpnet.{name}"] = tensor

    rewritten(folder / "model.safetensors", renamed)
    np.testing.assert_array_equal(load_encoder(folder).encode(SENTENCES), before)


class Named:
    """The hashing encoder under another name, as a bank from somewhere else may have it."""

    def __init__(self, name, revision="main"):
        hashing = load_encoder("hashing")
        self.encode = hashing.encode
        self.fingerprint = replace(hashing.fingerprint, encoder=name, revision=revision)


def absent(asked):
    """Return a Hub client that has nothing and remembers what it was asked."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    def download(**wanted):
        asked.append(wanted)
        raise LocalEntryNotFoundError("not here")

    return download


@pytest.fixture
def asked(monkeypatch):
    """What is asked of the Hub client, which has nothing."""
    import huggingface_hub

    found = []
    monkeypatch.setattr(huggingface_hub, "snapshot_download", absent(found))
    return found


@pytest.mark.parametrize("name", ["owner/model", "model", "./model", "minilm/", "../model", "folder:model"])
def test_a_bank_loads_no_model_that_the_user_did_not_name(folder, asked, monkeypatch, name):
    """Neither a folder of that name where tabon is started nor the Hub is asked for it."""
    monkeypatch.chdir(folder.parent)
    shutil.copytree(folder, folder.parent / "owner" / "model")
    bank = TransitionBank.build([TRANSITION], encoder=Named(name))
    with pytest.raises(EncoderError, match="pass that encoder yourself: --encoder"):
        Selector(bank)
    assert not asked


@pytest.mark.usefixtures("trusting_library")
def test_tabon_select_runs_no_code_beside_a_bank(folder, tmp_path, monkeypatch):
    """A folder that the bank names, with code in it, is left alone: exit code 1 and one sentence."""
    add_code(folder, tmp_path / "ran")
    (folder / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]')
    TransitionBank.build([TRANSITION], encoder=Named("model")).save(tmp_path / "bank.tabon")
    (tmp_path / "q.jsonl").write_text(json.dumps(QUERY) + "\n")
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, ["select", "q.jsonl", "--bank", "bank.tabon", "--no-store"])
    assert ran.exit_code == 1, ran.output
    assert "--encoder FOLDER" in ran.output
    assert not (tmp_path / "ran").exists()


def test_a_bank_has_nothing_fetched(asked):
    """The paper's encoder is taken from the cache alone when only the bank names it."""
    bank = TransitionBank.build([TRANSITION], encoder=Named("all-mpnet-base-v2"))
    with pytest.raises(EncoderError, match="pass --encoder all-mpnet-base-v2"):
        Selector(bank)
    assert [call["local_files_only"] for call in asked] == [True]
    with pytest.raises(EncoderError, match="could not be fetched"):
        Selector(bank, encoder="all-mpnet-base-v2")
    assert "local_files_only" not in asked[-1]


def test_a_bank_finds_the_paper_s_encoder_in_the_cache(folder, monkeypatch):
    """What is on this machine already is used without a word."""
    import huggingface_hub

    encoder = load_encoder(folder)
    named = replace(encoder.fingerprint, encoder="all-mpnet-base-v2", revision=folder.name)
    monkeypatch.setattr(encoder, "fingerprint", named)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda **_: str(folder))
    monkeypatch.setattr(loading, "MPNET", replace(loading.MPNET, weights=named.weights))
    bank = TransitionBank.build([TRANSITION], encoder=encoder)
    assert Selector(bank).encoder.fingerprint == named


def test_no_code_is_fetched(asked):
    """Scripts and pickled weights of a Hub model stay where they are."""
    with pytest.raises(EncoderError):
        load_encoder("owner/model@abc")
    assert all({"*.py", "*.bin"} <= set(call["ignore_patterns"]) for call in asked)


def test_a_bank_s_long_name_is_not_repeated_whole():
    """A message is one sentence, whatever a bank says."""
    bank = TransitionBank.build([TRANSITION], encoder=Named("x" * 10_000))
    with pytest.raises(EncoderError) as raised:
        Selector(bank)
    assert len(str(raised.value)) < 500
