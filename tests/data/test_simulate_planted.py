"""Planted errors: two drafts differ in one error only, and the gallery shows what notices it."""

import re
import sys
from pathlib import Path

from tabon.data.simulate import SimulationSettings
from tabon.data.simulate.planted import PLANTED, planted_errors
from tabon.text.sentences import split_sentences

GALLERY = Path(__file__).parents[2] / "experiments" / "gallery"
SETTINGS = SimulationSettings(patients=60, seed=3, splits=(0.0, 0.0, 1.0))


def only(ours, theirs):
    """Return the sentences of one report that another one lacks."""
    return [sentence for sentence in split_sentences(ours) if sentence not in split_sentences(theirs)]


def test_two_drafts_differ_in_the_planted_error_only():
    """One sentence of the Findings differs, every kind comes, a seed gives the same cases again."""
    cases = list(planted_errors(SETTINGS))
    assert {case.kind for case in cases} == set(PLANTED)
    assert cases == list(planted_errors(SETTINGS))
    for case in cases:
        assert case.right != case.wrong
        right, wrong = case.right["findings"], case.wrong["findings"]
        assert len(only(right, wrong)) <= 1
        assert len(only(wrong, right)) <= 1
        assert all(case.right.values())
        assert all(case.wrong.values())


def test_the_kinds_are_what_they_are_called():
    """Dropped and invented change a sentence's presence, flipped says no, a number stays a number."""
    for case in planted_errors(SETTINGS):
        right, wrong = case.right["findings"], case.wrong["findings"]
        if case.kind == "finding dropped":
            assert only(wrong, right) in ([], ["No acute disease."])
        if case.kind == "finding invented":
            assert only(right, wrong) in ([], ["No acute disease."])
        if case.kind == "negation flipped":
            assert only(wrong, right)[0].startswith("No ")
        if case.kind == "number changed":
            numbers = [re.findall(r"\d+", one) for (one,) in (only(right, wrong), only(wrong, right))]
            assert numbers[0] != numbers[1]


def test_the_gallery_is_one_command(tmp_path, monkeypatch):
    """The page has a row for every metric and selector, and a cell for every error."""
    monkeypatch.syspath_prepend(str(GALLERY))
    monkeypatch.delitem(sys.modules, "run", raising=False)
    import run

    page = tmp_path / "page.md"
    monkeypatch.setattr(
        sys, "argv", ["run.py", "--encoder", "hashing", "--patients", "80", "--page", str(page)]
    )
    assert run.main() == 0
    rows = {
        line.split(" | ")[0]: line.count(" | ")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    }
    assert rows == {f"| `{name}`": len(PLANTED) for name in (*run.SCORES.values(), *run.SELECTORS)}
    monkeypatch.delitem(sys.modules, "run")
