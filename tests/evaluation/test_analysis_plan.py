"""An analysis plan is written before anything is scored, and results say in what they depart from it."""

import json
from dataclasses import replace

import pytest

from tabon.errors import BadInputError
from tabon.evaluation import EvaluationSettings, Picks, RunInput, evaluate, read_cases
from tabon.evaluation.results import read_results, write_results
from tabon.metrics import load_metric
from tabon.reporting.tables import render, statistics_table

SETTINGS = EvaluationSettings(resamples=20, headline=("rouge-l-f",))


@pytest.fixture(scope="module")
def run():
    """Return four made-up studies with one selector."""
    text = {"findings": "Lungs are clear."}
    records = [
        {"id": f"q{row}", "prior": text, "reference": text, "candidates": [text, {"findings": f"Rib {row}."}]}
        for row in range(4)
    ]
    cases = read_cases([json.dumps(record).encode() for record in records], name="made up")
    chosen = {case.query.id: 1 for case in cases.cases}
    picks = Picks(method="one", signature="selector:one", chosen=chosen, distances={})
    return RunInput(name="run", cases=cases, picks=(picks,))


class Broken:
    """A metric that cannot be measured."""

    name, signature, statistics = "rouge", "broken", ("value",)
    scores = load_metric("rouge").scores

    def measure(self, pairs):
        """Fail at the first pair."""
        raise RuntimeError(len(pairs))


def test_the_plan_is_there_before_anything_is_scored(run, tmp_path):
    """An evaluation that fails at the first pair has written its plan."""
    with pytest.raises(RuntimeError):
        evaluate([run], [Broken()], SETTINGS, plan=tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["methods"] == {"one": "selector:one"}


def test_results_made_as_planned_say_so_and_others_in_what_they_differ(run, tmp_path):
    """The same again follows the plan; another seed, family, method or metric is named."""
    plan, rouge = tmp_path / "plan.json", load_metric("rouge")
    first = evaluate([run], [rouge], SETTINGS, plan=plan)
    written = plan.read_bytes()
    assert first.plan.departures == ()
    assert evaluate([run], [rouge], SETTINGS, plan=plan).plan == first.plan
    [picks] = run.picks
    other = replace(run, picks=(replace(picks, signature="selector:one|k:2"),))
    for changed, metrics, settings, names in (
        (run, [rouge], replace(SETTINGS, seed=1), ("settings.seed",)),
        (run, [rouge], replace(SETTINGS, headline=("rouge-1-f",)), ("headline", "settings.headline")),
        (other, [rouge], SETTINGS, ("methods",)),
        (run, [rouge, load_metric("labels")], SETTINGS, ("metrics",)),
    ):
        found = evaluate([changed], metrics, settings, plan=plan)
        assert found.plan.departures == names
        assert found.plan.sha256 == first.plan.sha256
    assert plan.read_bytes() == written


def test_tables_say_by_which_plan(run, tmp_path):
    """The note is under the table, from the written file."""
    rouge = load_metric("rouge")
    evaluate([run], [rouge], SETTINGS, plan=tmp_path / "plan.json")
    late = evaluate([run], [rouge], replace(SETTINGS, seed=3), plan=tmp_path / "plan.json")
    write_results(tmp_path / "results.json", late)
    again = read_results(tmp_path / "results.json")
    assert again.plan == late.plan
    text = render(statistics_table(again, "findings", "rouge-l-f"), "markdown")
    assert "Made otherwise than planned: settings.seed." in text
    assert late.plan.sha256[:12] in text


def test_a_file_that_is_no_plan_is_refused(run, tmp_path):
    """One sentence, and the file is left alone."""
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(BadInputError, match="is of another format"):
        evaluate([run], [load_metric("rouge")], SETTINGS, plan=tmp_path / "plan.json")
    assert (tmp_path / "plan.json").read_text() == "{}"
