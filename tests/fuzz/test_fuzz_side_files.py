"""Changed and damaged results, calibrations, weights and experiments: read, or refused in one sentence."""

import json
import tomllib
from contextlib import suppress
from dataclasses import asdict

import pytest

import hostile
from budgets import budget, seeded
from experiment_text import EXPERIMENT
from hostile import check, run
from made_up_results import made_up
from tabon import TransitionBank
from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions
from tabon.errors import BadInputError
from tabon.evaluation.results import write_results
from tabon.reporting.experiment.plan import read_experiment
from tabon.reporting.transition_map import Map2D, TransitionMap
from tabon.text.records import transition_from_record

SETTINGS = SimulationSettings(patients=60)
TRANSITIONS = list(simulate_transitions(SETTINGS, "train"))
QUERIES = list(simulate_queries(SETTINGS, "test"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a bank, queries, a calibration, weights and results."""
    folder = tmp_path_factory.mktemp("side-files")
    TransitionBank.build(map(transition_from_record, TRANSITIONS), encoder="hashing").save(folder / "bank")
    (folder / "queries").write_text("\n".join(map(json.dumps, QUERIES)), encoding="utf-8")
    (folder / "few").write_text("\n".join(map(json.dumps, QUERIES[:2])), encoding="utf-8")
    bank = ("--bank", folder / "bank", "--no-store")
    assert check(run("calibrate", folder / "queries", *bank, "--out", folder / "calibration")).exit_code == 0
    fitted = ("fit", folder / "queries", *bank, "--target", "rouge-l-f")
    assert check(run(*fitted, "--out", folder / "fused")).exit_code == 0
    assert check(run(*fitted, "--out", folder / "learnt", "--selector", "learnt")).exit_code == 0
    write_results(folder / "results", drawable_results())
    return folder


def drawable_results():
    """Return made-up results with curves, a map and a plan, so that everything is drawn."""
    results = made_up()
    points = [{"x": k, "gap": 0.1 * k, "low": 0.05, "high": 0.3 * k} for k in (1, 2, 5)]
    curve = {"name": "K-curve", "x": "drafts (K)", "score": "bleu-1", "method": "novelty/min"}
    flat = Map2D(((0.0, 0.1), (0.2, 0.3)), ((0.1, 0.1), None), (0, None), (0.5, 0.2), 2)
    shown = TransitionMap(query="q", section="findings", distance="novelty", picked=0, **asdict(flat))
    facts = {
        "curves": [{**curve, "section": "findings", "points": points}],
        "maps": [shown.as_record()],
        "report": {
            "title": "Made up",
            "columns": {"BLEU-1": "bleu-1"},
            "deltas": ["BLEU-1"],
            "compare": True,
        },
    }
    return results.__class__(**{**{name: getattr(results, name) for name in FIELDS}, "facts": facts})


FIELDS = ("cells", "runs", "scores", "missing", "methods", "headline", "settings")


def changed_file(draw, data):
    """Return a JSON file in which a value or some bytes were changed."""
    if draw.randrange(4) == 0:
        return draw.choice((hostile.damaged(draw, data), hostile.deep(), b"", b"[]", b"null", b"{}"))
    return hostile.written(hostile.changed(draw, json.loads(data), draw.randrange(1, 3)))


def test_no_results_end_in_a_traceback(folder):
    """Tables in every form, from results in which anything may be wrong; some are drawn as well."""
    draw, data = seeded("results"), (folder / "results").read_bytes()
    forms = ("markdown", "latex", "csv", "html")
    for number in range(budget(30, 3_000)):
        (folder / "odd").write_bytes(changed_file(draw, data))
        every = (folder / "odd", folder / "results") if number % 5 == 0 else (folder / "odd",)
        check(run("table", *every, "--format", draw.choice(forms)), (folder / "odd").read_bytes()[:300])


def test_no_results_end_a_picture_in_a_traceback(folder):
    """Numbers of any size in curves, maps and cells are drawn or refused, without a warning."""
    draw, record = seeded("pictures"), json.loads((folder / "results").read_bytes())
    for _ in range(budget(3, 300)):
        odd = {**record, "facts": hostile.changed(draw, record["facts"])}
        if draw.randrange(2):
            cell = draw.choice(odd["cells"])
            name = draw.choice([key for key, value in cell.items() if isinstance(value, float)])
            large = draw.choice((1e15, -1e15, 1e12, 1e-300, 0, -0.0, 1e308))
            odd["cells"] = [{**each, name: large} if each is cell else each for each in odd["cells"]]
        (folder / "odd").write_bytes(hostile.written(odd))
        check(run("table", folder / "odd", "--out", folder / "report"), str(odd["facts"])[:2000])


def test_no_calibration_ends_in_a_traceback(folder):
    """A calibration is used or refused."""
    draw, data = seeded("calibration"), (folder / "calibration").read_bytes()
    asked = ("select", folder / "few", "--bank", folder / "bank", "--no-store", "--abstain", "0.2")
    for _ in range(budget(40, 1_000)):
        (folder / "odd").write_bytes(changed_file(draw, data))
        check(run(*asked, "--calibration", folder / "odd"), (folder / "odd").read_bytes()[:300])


@pytest.mark.parametrize("selector", ["fused", "learnt"])
def test_no_weights_end_in_a_traceback(folder, selector):
    """Weights are used or refused."""
    draw, data = seeded(f"weights {selector}"), (folder / selector).read_bytes()
    asked = ("select", folder / "few", "--bank", folder / "bank", "--no-store")
    for _ in range(budget(15, 500)):
        (folder / "odd").write_bytes(changed_file(draw, data))
        check(run(*asked, "--selector", f"{selector}:{folder / 'odd'}"), (folder / "odd").read_bytes()[:300])


def as_toml(value):
    """Write a value as TOML; what TOML cannot say is written as a string."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{json.dumps(str(key))} = {as_toml(part)}" for key, part in value.items()) + "}"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, int | float):
        return repr(value) if abs(value) < 10**300 else "1e308"
    return json.dumps(str(value)).replace("\\ud800", "?").replace("\x7f", "?")


def test_no_experiment_ends_in_a_traceback(tmp_path):
    """A plan in which anything may be wrong is read whole or refused, before any step."""
    draw, record = seeded("experiments"), tomllib.loads(EXPERIMENT)
    path = tmp_path / "experiment.toml"
    for _ in range(budget(300, 20_000)):
        odd = hostile.changed(draw, record, draw.randrange(1, 3))
        text = "".join(f"{json.dumps(key)} = {as_toml(part)}\n" for key, part in odd.items()).encode()
        path.write_bytes(hostile.damaged(draw, text) if draw.randrange(5) == 0 else text)
        with suppress(BadInputError):
            read_experiment(tmp_path)


def test_what_is_read_as_an_experiment_can_be_run(tmp_path):
    """A plan that was taken runs to its tables, or stops in a sentence."""
    draw = seeded("runs")
    small = EXPERIMENT.replace("patients = 220", "patients = 40").replace("resamples = 50", "resamples = 5")
    record = tomllib.loads(small)
    for number in range(budget(2, 60)):
        folder = tmp_path / str(number)
        folder.mkdir()
        odd = hostile.changed(draw, record)
        text = "".join(f"{json.dumps(key)} = {as_toml(part)}\n" for key, part in odd.items())
        (folder / "experiment.toml").write_text(text, encoding="utf-8")
        try:
            plan = read_experiment(folder)
        except BadInputError:
            continue
        if (
            max(plan.cohort.patients, plan.evaluation.resamples) < 10_000
            and plan.selection.encoder == "hashing"
        ):
            check(run("reproduce", folder, "--no-store"), text)
