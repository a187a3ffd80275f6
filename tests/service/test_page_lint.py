"""The linter over the scripts of the pages: it passes, and a mistake is found in its file and line."""

import sys
from pathlib import Path

import pytest

from tabon.service.explorer.export import read_scripts
from tabon.service.study.export import read_scripts as read_study_scripts

sys.path.append(str(Path(__file__).parents[2] / "tools"))

import lint_page

pytestmark = pytest.mark.skipif(
    not lint_page.OXLINT.exists(), reason="run `make setup`: oxlint is not installed"
)


@pytest.mark.parametrize("scripts", [read_scripts, read_study_scripts], ids=["explorer", "study"])
def test_the_script_has_no_finding(scripts):
    """`make check` passes the scripts of both pages."""
    assert lint_page.findings(scripts()) == []


@pytest.mark.parametrize(
    ("name", "code", "mistake", "found"),
    [
        ("keys.js", 'announce(stop ? "One', 'anounce(stop ? "One', "'anounce' is not defined"),
        ("list.js", "function drawList()", "function drawAll()", "'drawAll' is declared but never used"),
        ("map.js", "const MAP = {", "const MAP = {{", "Unexpected token"),
        ("words.js", "const SECTIONS = [", "const KINDS = [", "already been declared"),
    ],
)
def test_a_mistake_is_found_where_it_is(name, code, mistake, found):
    """An undefined name, an unused one, broken syntax and a double name are given with file and line."""
    scripts = read_scripts()
    assert scripts[name].count(code) == 1
    scripts[name] = scripts[name].replace(code, mistake)
    line = next(at for at, text in enumerate(scripts[name].splitlines(), start=1) if mistake in text)
    findings = lint_page.findings(scripts)
    assert any(one.startswith(f"{name}:{line}:") and found in one for one in findings), findings


def test_two_functions_of_one_name_are_found():
    """A function of one file does not silently take the place of another file's."""
    scripts = read_scripts()
    scripts["keys.js"] += "function drawList() {}\n"
    assert any("'drawList' is already defined" in one for one in lint_page.findings(scripts))


def test_a_linter_that_does_not_run_is_no_pass(monkeypatch, tmp_path):
    """Without its settings oxlint ends with an error; that is not an empty list of findings."""
    monkeypatch.setattr(lint_page, "ROOT", tmp_path)
    with pytest.raises(RuntimeError):
        lint_page.findings(read_scripts())
