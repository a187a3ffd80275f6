"""What an experiment's selections are worth: metrics, comparison, curves and the map."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tabon.encoders.load import minilm_folder
from tabon.evaluation import EvaluationSettings, RunInput, evaluate, read_cases, read_picks
from tabon.evaluation.curves import CURVE_RESAMPLES, neighbour_curves, read_neighbour_picks
from tabon.evaluation.results import Results
from tabon.metrics import Metric, load_metrics
from tabon.metrics.protocol import MeasurementStore
from tabon.reporting.experiment.files import plan_record
from tabon.reporting.experiment.maps import transition_maps
from tabon.reporting.experiment.plan import Experiment, RunPlan

if TYPE_CHECKING:
    from tabon.reporting.experiment.runner import Reproduction

Files = Mapping[RunPlan, Mapping[str, Path]]


def metrics_of(experiment: Experiment) -> tuple[list[Metric], dict[str, str]]:
    """Load the metrics that can be measured here, and say why the others cannot."""
    plan = experiment.evaluation
    folders = {name: model_folder(folder, experiment.root) for name, folder in plan.models.items()}
    return load_metrics(plan.metrics, folders)


def model_folder(name: str, root: Path) -> Path:
    """Return where a metric's files lie; `minilm` is the encoder that comes with tabon."""
    return minilm_folder() if name == "minilm" else root / name


def judge(
    made: "Reproduction", metrics: list[Metric], missing: Mapping[str, str], selections: Files, curves: Files
) -> Results:
    """Measure, compare, and add the curves and the map."""
    experiment, dependencies = made.experiment, made.dependencies
    plan, report = experiment.evaluation, experiment.report
    settings = EvaluationSettings(
        resamples=plan.resamples,
        seed=plan.seed,
        random_seeds=plan.random_seeds,
        headline=tuple(report.columns.values()),
        curves=(report.columns[report.curve],) if report.curve else (),
    )
    store = MeasurementStore(made.out / "measurements.sqlite")
    runs = []
    for run in experiment.runs:
        with made.queries(run).open("rb") as lines:
            cases = read_cases(lines, name=run.name)
        picks = [
            read_picks(path.read_bytes().splitlines(), name=str(path), method=method)
            for method, path in selections[run].items()
        ]
        runs.append(RunInput(name=run.name, cases=cases, picks=tuple(picks)))
    results = evaluate(
        runs, metrics, settings, missing=missing, store=store, on_progress=dependencies.on_progress
    )
    drawn = list(results.facts["curves"])
    if settings.curves and any(curves.values()):
        found = [list(read_neighbour_picks(curves[run])) for run in experiment.runs]
        again = [
            replace(run, picks=tuple(each.picks for each in shown))
            for run, shown in zip(runs, found, strict=True)
        ]
        quick = replace(settings, resamples=min(settings.resamples, CURVE_RESAMPLES), curves=())
        score = settings.curves[0]
        family = [metric for metric in metrics if score in {each.name for each in metric.scores}]
        drawn += neighbour_curves(evaluate(again, family, quick, store=store), found[0], score)
    maps = transition_maps(made.bank, runs[0].cases, made.encoder, dependencies.store)
    facts = {"curves": drawn, "maps": maps, "report": plan_record(report, experiment.title)}
    return replace(results, facts=facts)
