"""The small inference: the same graphs and rewards as radgraph 0.1.18, and folders that are not whole.

tests/golden/radgraph.json is made by tests/reference/radgraph_goldens.py, where radgraph runs.
"""

import io
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
from tabon.errors import BadInputError, MetricUnavailableError
from tabon.metrics import Pair, load_metric
from tabon.metrics.models.dygie import KINDS, best_mentions, load_dygie, relation_labels, split_words
from tabon.metrics.radgraph import load
from tiny_radgraph import tiny_radgraph

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE / "reference"))
from radgraph_goldens import draft_of  # noqa: E402  (how the Open-i drafts were mixed)

CASES = json.loads((HERE / "golden" / "radgraph.json").read_text())["cases"]
MADE_UP = [case for case in CASES if "pair" in case]
OPENI = [case for case in CASES if "openi" in case]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tiny products on many threads only wait for each other."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder of a tiny model of each kind."""
    return {kind: tiny_radgraph(tmp_path_factory.mktemp("models"), kind) for kind in KINDS}


@pytest.fixture(scope="module")
def metrics(folders):
    """The metric over a tiny model of each kind."""
    return {kind: load(folder) for kind, folder in folders.items()}


@pytest.fixture
def copied(folders, tmp_path):
    """A tiny model folder that a test may damage."""
    return Path(shutil.copytree(folders["radgraph-xl"], tmp_path / "radgraph-xl"))


def compact(graph):
    """Write a graph as the golden file does."""
    return [[e.first, e.last, e.label, [[r.label, r.target] for r in e.relations]] for e in graph]


def check(metric, case, texts):
    """Compare words, graphs and rewards of one golden case."""
    graphs = [metric.model.graph(text.lower()) for text in texts if text]
    assert [compact(graph) for graph in graphs] == case["graphs"]
    rewards = metric.measure([Pair(reference=texts[0], candidate=texts[1])])[0, :3]
    np.testing.assert_allclose(rewards, case["rewards"], atol=1e-6)
    return [split_words(text.lower(), case["kind"]) for text in texts if text]


# ---- the same as radgraph 0.1.18 ------------------------------------------------------------------------


@pytest.mark.parametrize("case", MADE_UP, ids=lambda case: f"{case['kind']}-{MADE_UP.index(case)}")
def test_made_up_reports_get_radgraph_s_graphs_and_rewards(metrics, case):
    """Words, entities, relations and the three rewards are those of the package."""
    words = check(metrics[case["kind"]], case, case["pair"])
    assert [" ".join(found) for found in words] == case["words"]


@pytest.mark.openi
@pytest.mark.parametrize("case", OPENI, ids=lambda case: f"{case['kind']}-{case['openi'][0]}")
def test_openi_reports_get_radgraph_s_graphs_and_rewards(metrics, case):
    """So it is for reports that radiologists wrote; only their numbers are in the golden file."""
    sections = dict(openi_sections())
    text, other = (sections[number]["FINDINGS"] for number in case["openi"])
    words = check(metrics[case["kind"]], case, [text, draft_of(text, other)])
    assert [len(found) for found in words] == case["words"]


def test_the_goldens_try_what_can_go_wrong():
    """Every relation, several labels, reports to read in parts and rewards that differ are in them."""
    entities = [entity for case in CASES for graph in case["graphs"] for entity in graph]
    assert {name for entity in entities for name, _ in entity[3]} == {"modify", "located_at", "suggestive_of"}
    assert len({entity[2] for entity in entities}) >= 6
    assert max(case["words"][0] for case in OPENI) > 50
    assert sum(len(set(case["rewards"])) == 3 for case in CASES) >= 4


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_may_be_scored_after_the_spans_that_are_no_entities_are_gone(metrics, kind):
    """The relation of two spans is the same whichever other spans are asked about."""
    heads = metrics[kind].model.heads
    random = np.random.RandomState(0)
    features = random.standard_normal((9, 37)).astype(np.float32)
    mentions = random.standard_normal(9).astype(np.float32)
    some = np.array([1, 4, 8])
    alone = relation_labels(features[some], mentions[some], heads)
    assert alone.tolist() == relation_labels(features, mentions, heads)[np.ix_(some, some)].tolist()


def slow_relation_scores(one, two, mentions, heads):
    """The score of each relation from one span to another, one product at a time in double precision."""
    weights = {name: value.astype(np.float64) for name, value in heads.weights.items()}
    at = f"{heads.kind}__relation_labels"
    values = [*one, *two, *(a * b for a, b in zip(one, two, strict=True))]
    for layer in range(2):
        name = f"_relation._relation_feedforwards.{at}._linear_layers.{layer}"
        rows = zip(weights[f"{name}.weight"], weights[f"{name}.bias"], strict=True)
        values = [max(sum(w * v for w, v in zip(row, values, strict=True)) + bias, 0) for row, bias in rows]
    name = f"_relation._relation_scorers.{at}"
    rows = zip(weights[f"{name}.weight"], weights[f"{name}.bias"], strict=True)
    return [sum(w * v for w, v in zip(row, values, strict=True)) + bias + sum(mentions) for row, bias in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_relations_are_scored_as_the_slow_loop_says(metrics, kind):
    """Both ends' mention scores are added, and no relation is one with the score 0."""
    heads = metrics[kind].model.heads
    random = np.random.RandomState(1)
    features = random.standard_normal((6, 37)).astype(np.float32)
    mentions = (3 * random.standard_normal(6)).astype(np.float32)
    found = relation_labels(features, mentions, heads)
    for i, j in np.ndindex(6, 6):
        scores = slow_relation_scores(features[i], features[j], (mentions[i], mentions[j]), heads)
        assert found[i, j] == int(np.argmax([0.0, *scores]))
    assert 0 < np.count_nonzero(found) < found.size


@given(
    st.lists(st.integers(-99, 99), min_size=1, max_size=30, unique=True),
    st.integers(1, 30),
    st.sampled_from([0.25, 0.5, 0.75]),
)
def test_the_best_mentions_are_kept(scores, num_words, spans_per_word):
    """As many as asked for, rounded up, in the order of the text; none better is dropped."""
    kept = best_mentions(np.array(scores, dtype=np.float32), num_words, spans_per_word).tolist()
    assert len(kept) == min(-int(-num_words * spans_per_word // 1), len(scores))
    assert kept == sorted(kept)
    dropped = [score for i, score in enumerate(scores) if i not in kept]
    assert not dropped or min(scores[i] for i in kept) > max(dropped)


# ---- loading ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "weights.th",
        "vocabulary/non_padded_namespaces.txt",
        "vocabulary/radgraph-xl__ner_labels.txt",
        "vocabulary/radgraph-xl__relation_labels.txt",
    ],
)
def test_a_missing_file_is_named(copied, name):
    """What is not there is said, and so is what to do."""
    (copied / name).unlink()
    with pytest.raises(MetricUnavailableError, match=Path(name).name):
        load_metric("radgraph", model=copied)


def test_a_missing_backbone_is_named(tmp_path):
    """The backbone is looked for on this machine only, and the command that fetches it is given."""
    folder = tiny_radgraph(tmp_path, backbone="nobody/no-such-bert")
    with pytest.raises(MetricUnavailableError, match="hf download nobody/no-such-bert"):
        load(folder)


def test_without_a_model_the_usual_folder_is_asked(tmp_path, monkeypatch, folders):
    """No folder named: radgraph-xl where the package unpacks it, or the command that fetches it."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    with pytest.raises(
        MetricUnavailableError, match=r"hf download StanfordAIMI/RRG_scorers radgraph-xl\.tar\.gz"
    ):
        load(None)
    shutil.copytree(folders["radgraph-xl"], tmp_path / ".cache/radgraph/0.1.18/radgraph-xl")
    assert load(None).model.heads.kind == "radgraph-xl"


def test_a_backbone_with_code_is_refused_without_a_question(tmp_path, monkeypatch):
    """`auto_map` in the backbone's files: no code runs, and nothing is read from standard input."""
    folder = tiny_radgraph(tmp_path, backbone="bert")
    code = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
    (folder / "bert" / "evil.py").write_text(code + "class Evil: ...\n")
    config = json.loads((folder / "bert/config.json").read_text())
    mapped = {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"}
    own = config | {"model_type": "evil", "auto_map": mapped}
    (folder / "bert/config.json").write_text(json.dumps(own))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\ny\n"))
    with pytest.raises(MetricUnavailableError, match="or ask for code"):
        load(folder)
    assert not (tmp_path / "ran").exists()


def test_a_pin_covers_the_weights(folders):
    """The sum behind the folder is that of weights.th."""
    folder = folders["radgraph-xl"]
    found = sha256((folder / "weights.th").read_bytes()).hexdigest()
    assert load(Path(f"{folder}@sha256:{found}")).weights == found[:12]
    with pytest.raises(BadInputError, match=r"weights\.th has sha256"):
        load(Path(f"{folder}@sha256:{'0' * 64}"))


def test_a_backbone_inside_the_folder_is_found(tmp_path):
    """config.json may name a folder that lies beside it."""
    model = load_dygie(tiny_radgraph(tmp_path, backbone="bert"))
    assert compact(model.graph(MADE_UP[3]["pair"][0].lower())) == MADE_UP[3]["graphs"][0]


def edited(path, *keys, value):
    """Change one value of a JSON file."""
    content = json.loads(path.read_text())
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(content))


def test_a_config_that_is_none_is_refused(copied):
    """Broken JSON, missing settings and coreference are refused by name."""
    edited(copied / "config.json", "model", "modules", "coref", "coref_prop", value=2)
    with pytest.raises(BadInputError, match="coreference"):
        load(copied)
    for text in ("{", "{}", "[]"):
        (copied / "config.json").write_text(text)
        with pytest.raises(BadInputError, match=r"config\.json"):
            load(copied)


def test_weights_that_do_not_fit_are_refused(copied):
    """A head without weights, and weights of another BERT."""
    import torch

    path = copied / "weights.th"
    tensors = torch.load(path, weights_only=True)
    name = "_relation._relation_scorers.radgraph-xl__relation_labels.weight"
    torch.save({key: tensor for key, tensor in tensors.items() if key != name}, path)
    with pytest.raises(BadInputError, match="_relation_scorers"):
        load(copied)
    torch.save(tensors, path)
    edited(copied / "bert" / "config.json", "hidden_size", value=32)
    edited(copied / "config.json", "dataset_reader", "token_indexers", "bert", "model_name", value="bert")
    with pytest.raises(BadInputError, match="does not fit its backbone"):
        load(copied)


def test_a_buffer_of_old_versions_is_passed_over(copied, metrics):
    """Checkpoints saved with early transformers hold position numbers, which are no weights."""
    import torch

    prefix = "_embedder.token_embedder_bert._matched_embedder.transformer_model.embeddings"
    tensors = torch.load(copied / "weights.th", weights_only=True)
    torch.save({**tensors, f"{prefix}.position_ids": torch.arange(48)[None]}, copied / "weights.th")
    text = MADE_UP[3]["pair"][1].lower()
    assert load(copied).model.graph(text) == metrics["radgraph-xl"].model.graph(text)


def test_loading_keeps_the_seed(folders):
    """Random numbers drawn by the caller are the same with and without a load between."""
    import torch

    torch.manual_seed(7)
    expected = torch.rand(3).tolist()
    torch.manual_seed(7)
    load_dygie(folders["radgraph"])
    assert torch.rand(3).tolist() == expected
