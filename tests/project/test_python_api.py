"""The Python API as a user meets it: a session with frames, types, docstrings, short values."""

import doctest
import inspect
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

import tabon
from tabon import Query, Selection, Selector, Transition, TransitionBank
from tabon.cli import main
from tabon.errors import BadInputError, UnknownNameError
from tabon.evaluation.results import read_results

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guide/python.md"
SCRIPT = ROOT / "examples/python/every_name.py"
SESSION = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
SELECTORS = ("fused", "next-visit:rouge-l-f", "paper")
QUICK = shlex.split(
    "--out compared --encoder hashing --metrics rouge --resamples 200 --no-measurements --no-store"
)
NAMES = sorted(set(tabon.__all__) - {"__version__"})
CANARY = "Zqxwv"


def played(session):
    """Run a session as a doctest and return its names."""
    names, said = {}, StringIO()
    test = doctest.DocTestParser().get_doctest(session, names, PAGE.name, str(PAGE), 0)
    with redirect_stdout(said):
        result = doctest.DocTestRunner().run(test, clear_globs=False)
    assert result.failed == 0, said.getvalue()
    return test.globs


@pytest.fixture(scope="module")
def session():
    """Play the guide's session with pandas."""
    return played(SESSION)


def test_the_session_runs_with_either_kind_of_frame(session):
    """At most 15 lines, and with polars in the place of pandas they print the same."""
    assert len(re.findall(r"^(>>>|\.\.\.) ", SESSION, re.MULTILINE)) <= 15
    other = played(SESSION.replace("pandas", "polars"))
    assert [type(names["visits"]).__module__.partition(".")[0] for names in (session, other)] == [
        "pandas",
        "polars",
    ]
    assert other["found"] == session["found"]


def test_the_numbers_are_those_of_the_command_line(session, tmp_path, monkeypatch):
    """`tabon import` and `tabon compare` on the same tables find the same transitions, cells and pairs."""
    monkeypatch.chdir(tmp_path)
    for name in ("visits", "drafts"):
        session[name].to_csv(f"{name}.csv", index=False)
    chosen = [part for name in SELECTORS for part in ("--selector", name)]
    for command in (
        ["import", "visits.csv", "--drafts", "drafts.csv", "--out", "cohort"],
        ["compare", "cohort/test/queries.jsonl", "--bank", "cohort/train/transitions.jsonl", *chosen, *QUICK],
    ):
        answer = CliRunner().invoke(main, command)
        assert answer.exit_code == 0, answer.output
    results, found = read_results(tmp_path / "compared/results.json"), session["found"].results
    assert found.cells == results.cells
    assert found.pairs == results.pairs
    assert found.methods == dict(results.methods)


def test_an_evaluation_can_be_looked_at(session, tmp_path):
    """Frames, both directions of a comparison, a table, a picture, a file; each says the same."""
    found = session["found"]
    cells = found.to_frame("pandas")
    assert (cells.equals(found.to_frame()), found.to_frame("polars").height) == (True, len(cells))
    there, back = found.compare("fused", "paper"), found.compare("paper", "fused")
    assert there.to_frame().delta.tolist() == (-back.to_frame().delta).tolist()
    assert there.to_frame().gap_low.tolist() == (-back.to_frame().gap_high).tolist()
    assert "closes 87 points more of the ROUGE-L gap than fused" in str(back)
    assert there._repr_html_().count("<p>") == len(there.pairs)
    assert found._repr_html_().count("<table") == len(found.tables()) == 4
    assert "next-visit:rouge-l-f" in str(found)
    assert found.plot()._repr_svg_() == found.plot("findings").drawing.svg
    found.save(tmp_path / "results.json")
    assert tabon.Evaluation.load(tmp_path / "results.json").results.cells == found.results.cells
    for wrong in (lambda: found.compare("fused", "papre"), lambda: found.to_frame("arrow")):
        with pytest.raises(UnknownNameError):
            wrong()
    for wrong in (lambda: found.compare("fused", "fused"), lambda: found.plot("report")):
        with pytest.raises(BadInputError):
            wrong()


@pytest.mark.parametrize(
    ("queries", "selections", "message"),
    [
        (1, {"a": []}, "'a' has 0 selections for 1 queries"),
        (1, {"random": [Selection(selected=0)]}, "name of a reference row"),
        (1, {"a": [Selection(selected=5)]}, "speaks of more drafts"),
        (2, {"a": [Selection(signature="x"), Selection(signature="y")]}, "several signatures"),
    ],
)
def test_selections_of_other_queries_are_refused(queries, selections, message):
    """One sentence that names the selector."""
    asked = [Query(prior="Clear.", candidates=["Clear."], reference="Clear.") for _ in range(queries)]
    with pytest.raises(BadInputError, match=message):
        tabon.evaluate(asked, selections, metrics=["labels"], resamples=10)


def test_queries_that_cannot_be_measured_are_refused():
    """Two of one id, none with a reference, a headline that nothing measures."""
    query = Query(id="q", prior="Clear.", candidates=["Clear."], reference="Clear.")
    with pytest.raises(BadInputError, match="the query id 'q' is there twice"):
        tabon.evaluate([query, query], {})
    with pytest.raises(BadInputError, match="no query with a 'reference'"):
        tabon.evaluate([Query(prior="Clear.", candidates=["Clear."])], {})
    with pytest.raises(UnknownNameError, match="rouge-l-f"):
        tabon.evaluate([query], {}, metrics=["rouge"], headline=["rouge-l"], resamples=10)


def test_values_show_no_text():
    """One line for each value that holds reports, without a word of them."""
    report = tabon.Report(findings=f"{CANARY} lungs.")
    bank = TransitionBank.build([Transition(prior=report, current=CANARY, patient=1)], encoder="hashing")
    query = Query(prior=report, candidates=[CANARY, report], reference=CANARY)
    selector = Selector(bank, "fused")
    [chosen] = selector.select_many([query])
    values = [
        report,
        query,
        bank,
        selector,
        chosen,
        tabon.explain(selector, query),
        tabon.simulate(patients=40),
    ]
    values.append(tabon.evaluate([query], {"fused": [chosen]}, metrics=["labels"], resamples=10))
    for shown in map(repr, values):
        assert len(shown) <= 110
        assert not re.search(rf"{CANARY}|\n", shown)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_arguments_and_an_example(name):
    """A docstring says what each argument is, and has lines that run (pytest runs those of the source)."""
    value = getattr(tabon, name)
    documented = inspect.getdoc(value)
    assert ">>> " in documented
    if not (inspect.isclass(value) and issubclass(value, Exception)):
        arguments = set(inspect.signature(value).parameters)
        named = set(re.findall(r"^    (\w+): ", documented.partition("Args:")[2], re.MULTILINE))
        assert arguments <= named


def test_the_script_uses_every_name():
    """The script that the type checkers read has each public name, and runs."""
    used = set(re.findall(r"tabon\.(\w+)", SCRIPT.read_text(encoding="utf-8")))
    assert set(tabon.__all__) <= used
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("Selection(selected=1, drafts=2, margin=1.5)\n")


CHECKERS = {
    "mypy": ["-m", "mypy", "--strict", "--no-incremental", "--cache-dir", "/dev/null"],
    "basedpyright": ["-m", "basedpyright", "--level", "error"],
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_accept_the_script_and_find_misspelt_names(checker, tmp_path):
    """Nothing to say of the script; a misspelt distance, aggregate, section and name are errors."""
    wrong = tmp_path / "wrong.py"
    mistakes = {
        'tabon.Selector(bank, distance="novelti")': "novelti",
        'tabon.Selector(bank, aggregate="mean")': "aggregate",
        'tabon.Selector(bank, zero="nothing")': "nothing",
        'found.plot("finding")': "finding",
        "tabon.TransitionBanks": "TransitionBanks",
        'tabon.Query(prior="Clear.", drafts=[])': "drafts",
    }
    head = ["import tabon", "def misspelt(bank: tabon.TransitionBank, found: tabon.Evaluation) -> None:"]
    wrong.write_text("\n".join([*head, *(f"    {line}" for line in mistakes)]) + "\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *CHECKERS[checker], str(SCRIPT), str(wrong)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert SCRIPT.name not in done.stdout
    for number, word in enumerate(mistakes.values(), start=len(head) + 1):
        found = [line for line in done.stdout.splitlines() if re.search(rf"wrong\.py:{number}:.*error", line)]
        assert any(word in line for line in found), (number, done.stdout)
