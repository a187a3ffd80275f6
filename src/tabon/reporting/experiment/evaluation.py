"""The evaluation of an experiment's selections: metrics, comparison, curves and the map."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tabon.encoders import Encoder
from tabon.encoders.load import minilm_folder
from tabon.encoders.sentence_store import SentenceStore
from tabon.evaluation import EvaluationSettings, RunInput, evaluate, read_cases, read_picks
from tabon.evaluation.curves import CURVE_RESAMPLES, neighbour_curves, read_neighbour_picks
from tabon.evaluation.inputs import Cases
from tabon.evaluation.results import Results
from tabon.method.bank import TransitionBank
from tabon.method.distances import get_distance
from tabon.method.nearest import ExactIndex
from tabon.method.sentence_sets import embed
from tabon.method.transitions import transitions
from tabon.metrics import Metric, load_metrics
from tabon.metrics.protocol import MeasurementStore
from tabon.reporting.experiment.plan import Experiment, RunPlan
from tabon.reporting.transition_map import TransitionMap, project
from tabon.selectors import Selector
from tabon.text.reports import Section
from tabon.text.sentences import split_sentences

if TYPE_CHECKING:
    from tabon.reporting.experiment.runner import Reproduction


Files = Mapping[RunPlan, Mapping[str, Path]]
SHOWN: Section = "impression"
DISTANCE: Final = "novelty"


def metrics_of(experiment: Experiment) -> tuple[list[Metric], dict[str, str]]:
    """Load the metrics that can be measured here, and say why the others cannot."""
    plan = experiment.evaluation
    folders = {  # `minilm` is the encoder that comes with tabon
        name: minilm_folder() if folder == "minilm" else experiment.root / folder
        for name, folder in plan.models.items()
    }
    return load_metrics(plan.metrics, folders)


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
        by_count = evaluate(again, family, quick, with_pairs=False, store=store)
        drawn += neighbour_curves(by_count, found[0], score)
    maps = transition_maps(made.bank, runs[0].cases, made.encoder, dependencies.store)
    facts = {
        "curves": drawn,
        "maps": maps,
        "cohort": [asdict(split) for split in made.cohort],
        "report": {**asdict(report), "title": experiment.title},
    }
    labels = {run.name: run.label for run in experiment.runs}
    named = tuple(replace(run, model=labels[run.name] or run.model) for run in results.runs)
    return replace(results, runs=named, facts=facts)


def transition_maps(
    bank: TransitionBank, cases: Cases, encoder: Encoder, store: SentenceStore | None
) -> list[dict[str, Any]]:
    """Return the map of the first study whose drafts all have a direction of change, if there is one."""
    index = bank.section(SHOWN, DISTANCE).index
    if not isinstance(index, ExactIndex):
        return []
    for case in cases.cases:
        prior = split_sentences(case.query.prior.section(SHOWN))
        drafts = [split_sentences(draft.section(SHOWN)) for draft in case.query.candidates]
        if not prior or not all(drafts):
            continue
        texts = {*prior, *(text for draft in drafts for text in draft)}
        table = embed(texts, encoder, known=bank.known_sentences, store=store)
        [moves] = transitions(
            [get_distance(DISTANCE)],
            table.vectors,
            prior=table.rows_of([prior] * len(drafts)),
            current=table.rows_of(drafts),
        )
        if moves.zero.any():
            continue
        selector = Selector(bank, distance=DISTANCE, encoder=encoder, store=store, allow_bank_patients=True)
        [selection] = selector.select_many([case.query])
        shown = TransitionMap(
            query=case.query.id,
            section=SHOWN,
            distance=DISTANCE,
            picked=selection.selected,
            **asdict(project(index.vectors, moves.directions)),
        )
        return [shown.as_record()]
    return []
