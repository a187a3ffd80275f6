"""`tabon demo`: the whole method on a simulated cohort, and its page."""

import json
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from commands import tabon
from tabon import Selection, TransitionBank
from tabon.cli.demo_page import Row, demo_page
from tabon.method.distances import DISTANCES
from tabon.method.scoring import AGGREGATES
from tabon.reporting.page import POLICY

FILES = ["bank.tabon", "queries.jsonl", "report.html", "selections.jsonl", "transitions.jsonl"]


def demo(out, *, patients=40, seed=0):
    """Run the demo with the test encoder."""
    return tabon("demo", "--out", out, "--patients", patients, "--seed", seed, "--encoder", "hashing")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return a finished demo run and its folder."""
    folder = tmp_path_factory.mktemp("demo") / "new"
    return demo(folder), folder


def test_the_table_has_a_row_for_each_method_between_random_and_oracle(shown):
    """Stdout shows random, the paper's eight methods and the oracle, then what was compared."""
    result, _ = shown
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    methods = [f"{distance} / {aggregate}" for distance in DISTANCES for aggregate in AGGREGATES]
    assert [line[:22].strip() for line in lines[:11]] == ["method", "random (expected)", *methods, "oracle"]
    assert "simulated cohort" in lines[-2]
    assert lines[-1].startswith("distance:novelty|aggregate:min|encoder:hashing@")


def test_the_files_are_written_whole_and_named_on_stderr(shown):
    """The folder holds the five files that stderr names, and nothing else."""
    result, folder = shown
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert result.stderr.startswith("wrote ")
    assert all(str(folder / name) in result.stderr for name in FILES)
    assert result.stderr.count("\n") == 1


def test_the_written_files_are_the_contracts_of_the_other_commands(shown, tmp_path):
    """Bank and queries of the demo give the demo's selections when `tabon select` is run on them."""
    _, folder = shown
    again = tabon("select", folder / "queries.jsonl", "--bank", folder / "bank.tabon")
    assert again.exit_code == 0
    assert again.stdout == (folder / "selections.jsonl").read_text()
    built = tmp_path / "bank.tabon"
    rebuilt = tabon("bank", "build", folder / "transitions.jsonl", "--out", built, "--encoder", "hashing")
    assert rebuilt.exit_code == 0
    assert built.read_bytes() == (folder / "bank.tabon").read_bytes()


def test_no_test_patient_is_in_the_bank(shown):
    """The demo does not select with the patient's own transitions."""
    _, folder = shown
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    patients = TransitionBank.load(folder / "bank.tabon").patients
    assert queries
    assert not patients & {query["patient"] for query in queries}


def test_a_seed_names_a_cohort(shown, tmp_path):
    """The same seed gives the same bytes, another seed another cohort."""
    result, folder = shown
    assert demo(tmp_path / "same").stdout == result.stdout
    for name in FILES:
        assert (tmp_path / "same" / name).read_bytes() == (folder / name).read_bytes()
    assert demo(tmp_path / "other", seed=1).stdout != result.stdout


class Tags(HTMLParser):
    """Collects the tags and links of a page."""

    def __init__(self):
        """Begin with none."""
        super().__init__()
        self.tags, self.links = set(), []

    def handle_starttag(self, tag, attrs):
        """Note one tag."""
        self.tags.add(tag)
        self.links += [value for key, value in attrs if key in {"src", "href"}]


def test_the_page_has_no_script_and_nothing_from_elsewhere(shown):
    """The page stands alone: no script, no remote address, links inside itself only."""
    _, folder = shown
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Tags()
    page.feed(text)
    assert not page.tags & {"script", "link", "img", "iframe"}
    assert page.links == ["#methods", "#queries"]
    assert "://" not in text


def test_the_page_forbids_all_loading(shown):
    """Its policy, which stands before all else, lets nothing in but its own styles."""
    _, folder = shown
    head = (folder / "report.html").read_text().partition("<style>")[0]
    assert f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">' in head
    assert POLICY.startswith("default-src 'none'; style-src 'unsafe-inline';")


def test_the_page_escapes_every_text():
    """Markup and dollar signs in reports, ids and notes are shown, not obeyed."""
    evil = "<script>$x</script>"
    draft = {"text": evil, "errors": [evil]}
    record = {"id": evil, "prior": {"findings": evil, "impression": evil}, "candidates": [draft]}
    selection = Selection(selected=0, total_distances=(0.5,), signature=evil)
    page = demo_page([Row(evil, 0.5, None)], [record], [selection])
    assert "<script" not in page
    assert page.count("&lt;script&gt;$x") == 7


def test_the_page_leaves_out_queries_without_an_answer():
    """A query that was abstained from has no distances to show and is no example."""
    record = {"id": "q", "prior": {"findings": "a", "impression": "b"}, "candidates": [{"errors": []}]}
    assert "<article>" not in demo_page([], [record], [Selection(selected=None, abstained="no-drafts")])


def test_a_cohort_without_a_gap_shows_a_dash():
    """Where the oracle is no better than chance, no share of the gap is claimed."""
    assert Row("novelty / min", 0.5).gap() == "–"
    assert Row("novelty / min", 0.5, -0.25, 0.1).gap() == "-25% ± 10%"


@pytest.mark.parametrize("patients", [0, 1, 8, -1])
def test_too_few_patients_are_refused(patients, tmp_path):
    """A cohort without test queries or bank is one sentence, and no folder appears."""
    result = demo(tmp_path / "out", patients=patients)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    """An --out below a file is one sentence that names the place."""
    (tmp_path / "file").write_text("precious")
    result = demo(tmp_path / "file" / "out")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: cannot write {tmp_path / 'file' / 'out'}")
    assert (tmp_path / "file").read_text() == "precious"


def test_an_unknown_encoder_is_refused_with_the_one_that_was_meant(tmp_path):
    """A typing error in the encoder's name is answered with the right name."""
    result = tabon("demo", "--out", tmp_path / "out", "--patients", 40, "--encoder", "hasing")
    assert result.exit_code == 1
    assert "Did you mean 'hashing'?" in result.stderr


@pytest.mark.parametrize("words", [["--patients", "many"], ["extra"], ["--what"], ["--out", __file__]])
def test_wrong_usage_is_exit_status_2(words):
    """Arguments that the command does not take are answered with the usage."""
    result = tabon("demo", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: " in result.stderr
    assert Path(__file__).is_file()
