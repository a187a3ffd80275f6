"""COMET: the numbers of unbabel-comet on a tiny checkpoint in the true format, without unbabel-comet.

tests/golden/comet.json is made by tests/reference/comet_goldens.py in an environment of its own.
"""

import json
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openi import openi_sections
from tabon.errors import BadInputError, MetricUnavailableError, MissingExtraError
from tabon.metrics import Pair, load_metric
from tiny_comet import HPARAMS, LAYERS, VARIANTS, tiny_comet, tiny_pieces, tiny_tensors

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tabon.metrics import comet  # noqa: E402  # after the skips

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "comet.json").read_text())
HPARAMS_SHA256 = "265ef22345ea5b9ffa020a7fe5be613a95ff931c44bf8d09a26d96c6c6048f60"  # of the published file
PARITY = 1e-6


def pairs(triples):
    """Return (reference, candidate, prior) as pairs."""
    return [Pair(reference=r, candidate=c, prior=p) for r, c, p in triples]


CASES = pairs(GOLDEN["cases"])


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Write one checkpoint a variant; what a test changes it copies first."""
    root = tmp_path_factory.mktemp("comet")
    return {name: tiny_comet(root / name, **changed) for name, changed in VARIANTS.items()}


@pytest.fixture(scope="session")
def metric(folders):
    """Load the checkpoint with the published settings."""
    return load_metric("comet", model=folders["published"])


@pytest.fixture
def copy(folders, tmp_path):
    """Return a checkpoint that a test may spoil."""
    return shutil.copytree(folders["published"], tmp_path / "copy")


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_numbers_are_unbabels(variant, folders):
    """Each source and each kind of layer mix gives what `predict` of unbabel-comet 2.2.7 gives."""
    found = comet.load(folders[variant]).measure(CASES)
    np.testing.assert_allclose(found, GOLDEN[variant], rtol=0, atol=PARITY)
    assert found.dtype == np.float64


def test_the_variants_differ_by_more_than_the_tolerance():
    """A wrong layer mix or activation would be seen in the test above."""
    tables = [np.array(GOLDEN[variant]) for variant in VARIANTS]
    for i, one in enumerate(tables):
        for other in tables[:i]:
            assert np.abs(one - other).min() > 100 * PARITY


@pytest.mark.openi
def test_the_numbers_are_unbabels_on_real_reports(metric):
    """Findings of Open-i reports, most of them longer than the tiny model reads, score the same."""
    findings = {number: sections["FINDINGS"] for number, sections in openi_sections()}
    triples = [[findings[number] for number in numbers] for numbers in GOLDEN["openi_numbers"]]
    assert len(triples) > 20
    np.testing.assert_allclose(metric.measure(pairs(triples)), GOLDEN["openi"], rtol=0, atol=PARITY)


def test_the_published_settings_are_understood(tmp_path):
    """The hparams.yaml of wmt22-comet-da, byte for byte, is read as the network it was trained as."""
    yaml = pytest.importorskip("yaml")
    path = tmp_path / "hparams.yaml"
    path.write_text(yaml.safe_dump(HPARAMS))
    assert sha256(path.read_bytes()).hexdigest() == HPARAMS_SHA256
    assert comet.read_settings(path) == comet.Settings("xlm-roberta-large", True, False, "Tanh", None)


def test_settings_that_are_not_there_are_unbabels_defaults(tmp_path):
    """Older files say less; what they leave out is softmax with layer norm."""
    path = tmp_path / "hparams.yaml"
    path.write_text("class_identifier: regression_metric\n")
    assert comet.read_settings(path) == comet.Settings("xlm-roberta-large", False, True, "Tanh", None)


def test_the_tiny_file_is_built_as_lightning_builds_it(folders):
    """It has the entries, of the same kinds, of a checkpoint that Lightning wrote for the same model."""
    content = torch.load(folders["published"] / comet.CHECKPOINT, weights_only=True)
    assert {name: type(value).__name__ for name, value in content.items()} == GOLDEN["lightning"]


def test_a_row_depends_on_its_pair_alone(metric):
    """Alone, in any order, beside copies of itself or of others: the same bits."""
    rows = metric.measure(CASES)
    alone = np.concatenate([metric.measure([pair]) for pair in CASES])
    assert rows.tobytes() == alone.tobytes()
    for seed in range(3):
        order = np.random.RandomState(seed).randint(len(CASES), size=40)
        assert metric.measure([CASES[i] for i in order]).tobytes() == rows[order].tobytes()


def test_the_number_of_threads_does_not_change_a_bit(metric):
    """One thread or three: the same bits, and the setting is given back."""
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(metric.measure(CASES).tobytes())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_the_three_sources(metric):
    """A prior that is the reference, or is not there, gives the row of that source."""
    columns = dict(zip(metric.statistics, metric.measure(CASES).T, strict=True))
    same = metric.measure(
        [Pair(reference=p.reference, candidate=p.candidate, prior=p.reference) for p in CASES]
    )
    none = metric.measure([Pair(reference=p.reference, candidate=p.candidate) for p in CASES])
    np.testing.assert_array_equal(same[:, 2], columns["source-reference"])
    np.testing.assert_array_equal(none[:, 2], columns["source-empty"])
    assert (columns["source-reference"] != columns["source-empty"]).sum() == 8  # all but the empty references


def test_scores_are_means_and_comet_is_the_one_with_the_reference(metric):
    """Each score divides a column's sum by the number of drafts, NaN for none."""
    rows = metric.measure(CASES)
    sums, counts = np.stack([rows.sum(axis=0), 0 * rows[0]]), np.array([len(rows), 0.0])
    found = {score.name: score.value(sums, counts) for score in metric.scores}
    expected = rows.mean(axis=0)
    names = ("comet", "comet-src-reference", "comet-src-empty", "comet-src-prior")
    assert tuple(found) == names
    for name, value in zip(names, expected[[0, 0, 1, 2]], strict=True):
        np.testing.assert_allclose(found[name], [value, np.nan], rtol=1e-12)


def test_no_pairs_no_rows(metric):
    """Nothing is measured of nothing."""
    assert metric.measure([]).shape == (0, 3)


def test_the_tokenizer_is_the_one_in_the_file(metric):
    """Its normalizer is kept (transformers 5 drops it): a ligature scores as its letters do."""
    ligature, letters = ("ﬁbrosis of the right lung", "fibrosis of the right lung")
    rows = metric.measure([Pair(reference="clear", candidate=text) for text in (ligature, letters)])
    assert rows[0].tobytes() == rows[1].tobytes()


def test_long_texts_are_cut_where_unbabel_cuts(metric):
    """60 tokens are read (64 positions less 4), two are marks: the 58th word counts, the 59th does not."""
    texts = [" ".join(["clear"] * 57 + tail) for tail in (["no", "no"], ["no", "mild"], ["mild"])]
    rows = metric.measure([Pair(reference="no", candidate=text) for text in texts])
    assert rows[0].tobytes() == rows[1].tobytes()
    assert (rows[0] != rows[2]).all()
    assert "max-tokens:60" in metric.signature.split("|")


@pytest.mark.parametrize("text", ["\ud800", "肺\x00", "\u200b", "<pad>", "x " * 5000], ids=ascii)
def test_odd_texts_have_finite_rows(text, metric):
    """A lone surrogate, a zero byte, a special token or a very long text is no failure."""
    assert np.isfinite(metric.measure([Pair(reference="clear", candidate=text, prior=text)])).all()


def projection(weights):
    """Return the nearest point of the simplex by bisection on what is taken off each weight."""
    low, high = min(weights) - 1.0, max(weights)
    for _ in range(200):
        middle = (low + high) / 2
        if sum(max(w - middle, 0.0) for w in weights) > 1.0:
            low = middle
        else:
            high = middle
    return [max(w - high, 0.0) for w in weights]


@given(st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=25))
def test_sparsemax_is_the_projection_on_the_simplex(weights):
    """The sorted form agrees with a bisection that knows only the definition."""
    found = comet.sparsemax(torch.tensor(weights, dtype=torch.float64))
    np.testing.assert_allclose(found, projection(weights), atol=1e-9)
    assert float(found.sum()) == pytest.approx(1.0)


def test_the_tiny_mix_leaves_a_layer_out():
    """The parity above covers a weight that sparsemax sets to zero and softmax does not."""
    tensors = tiny_tensors(len(tiny_pieces()))
    sparse, soft = (comet._layer_weights(tensors, sparse=sparse) for sparse in (True, False))
    assert len(sparse) == LAYERS + 1
    assert (int((sparse == 0).sum()), int((soft == 0).sum())) == (1, 0)


def test_the_signature_names_what_the_numbers_depend_on(metric, copy):
    """It has the source, all four files and the libraries, and another file is another signature."""
    parts = dict(part.partition(":")[::2] for part in metric.signature.split("|"))
    files = {"weights": comet.CHECKPOINT, "hparams": comet.HPARAMS}
    files |= {"config": f"backbone/{comet.CONFIG}", "tokenizer": f"backbone/{comet.TOKENIZER}"}
    for part, name in files.items():
        assert parts[part] == sha256((copy / name).read_bytes()).hexdigest()[:12]
    assert (parts["source"], parts["torch"]) == ("reference", torch.__version__)
    assert {"comet", "batching", "transformers", "tokenizers"} <= set(parts)
    with (copy / comet.HPARAMS).open("a") as file:
        file.write("# another byte\n")
    changed = comet.load(copy).signature.split("|")
    assert [part.partition(":")[0] for part in set(changed) - set(metric.signature.split("|"))] == ["hparams"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("class_identifier", "unified_metric"),
        ("class_identifier", "referenceless_regression_metric"),
        ("encoder_model", "MiniLM"),
        ("pool", "cls"),
        ("layer", 12),
        ("layer_transformation", "entmax"),
        ("layer_norm", None),
        ("activations", "ReLU"),
        ("final_activation", "Softplus"),
    ],
)
def test_other_networks_are_refused_by_the_setting(name, value, tmp_path):
    """A checkpoint that would need other code is not scored with this one."""
    folder = tiny_comet(tmp_path / "other", **{name: value})
    with pytest.raises(MetricUnavailableError, match=f"says {name}: ") as raised:
        comet.load(folder)
    assert "hf download Unbabel/wmt22-comet-da" in raised.value.remedy


@pytest.mark.parametrize(
    "name", [comet.CHECKPOINT, comet.HPARAMS, "backbone/config.json", "backbone/tokenizer.json"]
)
def test_a_missing_file_is_named(name, copy):
    """Each of the four files is asked for before anything is loaded."""
    (copy / name).unlink()
    with pytest.raises(MetricUnavailableError, match=name.removeprefix("backbone/")):
        comet.load(copy)


@pytest.mark.parametrize("text", ["", "just words", "a: [", "\x00"], ids=ascii)
def test_settings_that_are_no_table_are_refused(text, copy):
    """A file that is not YAML, or holds no settings, is not taken for the defaults."""
    (copy / comet.HPARAMS).write_text(text)
    with pytest.raises(MetricUnavailableError, match="is not a table of settings"):
        comet.load(copy)


def bomb(levels):
    """Return YAML whose aliases stand for nine times as many items a level."""
    first = "a0: &a0 [x, x, x, x, x, x, x, x, x]"
    others = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join([first, *others, f"pool: *a{levels - 1}"])


@pytest.mark.parametrize(
    "text",
    [bomb(5), bomb(12), "[" * 5000, "a: " + "x" * 100_000, "a: 2020-13-45"],
    ids=["bomb", "large bomb", "deep", "long", "no date"],
)
def test_yaml_that_grows_is_refused_in_one_sentence(text, copy):
    """Aliases are not expanded, neither in memory nor in the message; a file has a bound."""
    (copy / comet.HPARAMS).write_text(text)
    with pytest.raises(MetricUnavailableError, match="is not a table of settings") as raised:
        comet.load(copy)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pool", ["x"] * 1000),
        ("layer", {"x": "y" * 1000}),
        ("activations", "T" * 5000),
        ("pretrained_model", ["bert"]),
        ("pretrained_model", "x" * 5000),
        ("pretrained_model", "no name\0of a model"),
    ],
)
def test_a_value_is_not_repeated_whole(name, value, tmp_path):
    """What a setting says is shown short, or by its kind."""
    folder = tiny_comet(tmp_path / "odd", **{name: value})
    with pytest.raises(MetricUnavailableError) as raised:
        comet.load(folder)
    assert len(str(raised.value)) < 1000


def test_a_huge_number_is_named_by_its_kind(copy):
    """Python refuses to write it out."""
    (copy / comet.HPARAMS).write_text("layer: 0x" + "f" * 50_000)
    with pytest.raises(MetricUnavailableError, match="says layer: int"):
        comet.load(copy)


def respoil(folder, change):
    """Write a checkpoint anew with its tensors changed."""
    path = folder / comet.CHECKPOINT
    content = torch.load(path, weights_only=True)
    change(content["state_dict"])
    torch.save(content, path)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop("layerwise_attention.gamma"),
        lambda tensors: tensors.pop("layerwise_attention.scalar_parameters.3"),
        lambda tensors: tensors.pop("encoder.model.encoder.layer.2.output.dense.bias"),
        lambda tensors: tensors.update({"encoder.model.encoder.layer.3.output.dense.bias": torch.zeros(16)}),
        lambda tensors: tensors.update({"estimator.ff.0.weight": torch.zeros(24, 95)}),
        lambda tensors: [tensors.pop(name) for name in list(tensors) if name.startswith("estimator")],
    ],
    ids=["no gamma", "fewer layers mixed", "no bias", "another layer", "narrow estimator", "no estimator"],
)
def test_weights_that_do_not_fit_are_refused(change, copy):
    """unbabel-comet fills gaps with random weights; here a checkpoint fits whole or not at all."""
    respoil(copy, change)
    with pytest.raises(MetricUnavailableError, match="does not fit the backbone"):
        comet.load(copy)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_damaged_backbone_is_refused(name, copy):
    """A file cut short is one sentence, not a traceback."""
    path = copy / "backbone" / name
    path.write_text(path.read_text()[:200])
    with pytest.raises(MetricUnavailableError, match="does not fit the backbone"):
        comet.load(copy)


def test_a_damaged_checkpoint_is_refused(copy):
    """So is a checkpoint cut short."""
    path = copy / comet.CHECKPOINT
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(BadInputError, match=r"model\.ckpt .* is not a whole checkpoint"):
        comet.load(copy)


class Opens:
    """An object that, unpickled, makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        """Ask the reader to call `open`."""
        return open, (str(self.path), "w")


def test_code_in_a_checkpoint_is_not_run(copy, tmp_path):
    """A checkpoint with more than tensors and plain values is refused before it can do anything."""
    path = copy / comet.CHECKPOINT
    content = torch.load(path, weights_only=True)
    torch.save({**content, "callbacks": Opens(tmp_path / "made")}, path)
    with pytest.raises(BadInputError):
        comet.load(copy)
    assert not (tmp_path / "made").exists()


def test_older_files_with_a_pooler_are_read(copy, metric):
    """Weights that the score does not use may be there; they change nothing but the digest."""
    pooler = {f"encoder.model.pooler.dense.{part}": torch.zeros(16) for part in ("weight", "bias")}
    respoil(copy, lambda tensors: tensors.update(pooler))
    assert comet.load(copy).measure(CASES).tobytes() == metric.measure(CASES).tobytes()


def test_the_backbone_may_be_named_by_its_path(tmp_path, metric):
    """hparams.yaml may name a folder; unbabel-comet reads it the same way."""
    folder = tiny_comet(tmp_path / "absolute", absolute=True)
    assert comet.load(folder).measure(CASES).tobytes() == metric.measure(CASES).tobytes()


def in_cache(monkeypatch, repositories):
    """Let the Hub cache hold these folders, by (repository, revision)."""
    hub = pytest.importorskip("huggingface_hub")

    def look(repository, name, *, revision):
        folder = repositories.get((repository, revision))
        return str(folder / name) if folder else None

    monkeypatch.setattr(hub, "try_to_load_from_cache", look)


def test_files_of_the_hub_cache_are_found_at_their_revision(tmp_path, monkeypatch, metric):
    """Without a folder, checkpoint and backbone come from the pinned snapshots."""
    folder = tiny_comet(tmp_path / "snapshot", pretrained_model="xlm-roberta-large")
    backbone = (folder / "backbone").rename(tmp_path / "backbone")
    here = {(comet.REPOSITORY, comet.REVISION): folder, comet.BACKBONES["xlm-roberta-large"]: backbone}
    in_cache(monkeypatch, here)
    with pytest.raises(BadInputError, match=f"expected {comet.PUBLISHED[comet.CHECKPOINT]}"):
        load_metric("comet")
    monkeypatch.setattr(comet, "PUBLISHED", {})
    assert load_metric("comet").measure(CASES).tobytes() == metric.measure(CASES).tobytes()


def test_what_is_not_in_the_hub_cache_comes_with_its_download(tmp_path, monkeypatch):
    """First the checkpoint is asked for, then the two small files of the backbone; nothing is fetched."""
    in_cache(monkeypatch, {})
    with pytest.raises(MetricUnavailableError) as raised:
        load_metric("comet")
    wanted = f"{comet.REPOSITORY} {comet.CHECKPOINT} {comet.HPARAMS} --revision {comet.REVISION}"
    assert f"hf download {wanted}" in raised.value.remedy
    folder = tiny_comet(tmp_path / "snapshot", pretrained_model="xlm-roberta-large")
    with pytest.raises(MetricUnavailableError) as raised:
        comet.load(folder)
    wanted = "FacebookAI/xlm-roberta-large config.json tokenizer.json --revision c23d21b0620b"
    assert f"hf download {wanted}" in raised.value.remedy


def test_without_the_extra_it_is_named(folders, monkeypatch):
    """Where a library is missing the command that adds it is said."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"tabon\[metric-models\]"):
        comet.load(folders["published"])
