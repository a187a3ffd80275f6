"""From runs, picks and metrics to results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon.errors import BadInputError
from tabon.evaluation.cases import PARTS, Case, Cases, Part
from tabon.evaluation.compare import Chance, RunTable, compare
from tabon.evaluation.curves import candidates_curve
from tabon.evaluation.draft_scores import Measured, eligible, measure_section, measure_states
from tabon.evaluation.picks import NOTHING, Picks
from tabon.evaluation.results import MEAN_RUN, Cell, Results, Run
from tabon.evaluation.statistics import benjamini_hochberg, holm, patient_rows
from tabon.metrics.protocol import Metric
from tabon.metrics.store import MeasurementStore

OnProgress = Callable[[str], None]  # a progress callback


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """All that changes an evaluation beside its inputs."""

    resamples: int = 10_000
    seed: int = 0
    random_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)  # the paper averages five
    headline: tuple[str, ...] = ()  # the scores of the headline family; () is all
    curves: tuple[str, ...] = ()  # the scores to draw K-curves of

    def __post_init__(self) -> None:
        """Refuse what gives no interval."""
        if self.resamples < 1 or not self.random_seeds:
            raise BadInputError("resamples and random seeds must be at least 1; leave them as they are")
        if min(self.seed, *self.random_seeds) < 0:
            raise BadInputError("a seed is below 0; give whole numbers from 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput:
    """One run's studies and every method's picks in it."""

    name: str
    cases: Cases
    picks: tuple[Picks, ...]


def evaluate(
    runs: Sequence[RunInput],
    metrics: Sequence[Metric],
    settings: EvaluationSettings,
    *,
    missing: Mapping[str, str] | None = None,
    store: MeasurementStore | None = None,
    on_progress: OnProgress = lambda _: None,
) -> Results:
    """Measure every draft once and compare every method with the random pick and the oracle."""
    methods = _methods(runs)
    everyone = list(dict.fromkeys(case.patient for run in runs for case in run.cases.cases))
    chance = Chance.draw(len(everyone), settings.resamples, settings.seed)
    number = {patient: row for row, patient in enumerate(everyone)}
    cells: list[Cell] = []
    scores: dict[str, str] = {}
    curves: list[dict[str, Any]] = []
    for part, tables in _tables(runs, metrics, settings, number, store, on_progress):
        found = [replace(cell, section=part) for cell in compare(tables, list(methods), chance)]
        scores |= {score.name: tables[0].measured.signature for score in tables[0].measured.scores}
        cells += found
        curves += _curves(part, tables, methods, settings)
    headline = settings.headline or tuple(scores)
    return Results(
        cells=tuple(_adjusted(cells, headline, main=MEAN_RUN if len(runs) > 1 else runs[0].name)),
        runs=tuple(_run(run) for run in runs),
        scores=scores,
        missing=dict(missing or {}),
        methods=methods,
        headline=headline,
        settings={**asdict(settings), "versions": {"tabon": version("tabon"), "numpy": version("numpy")}},
        facts={"curves": curves},
    )


def _curves(
    part: Part, tables: Sequence[RunTable], methods: Mapping[str, str], settings: EvaluationSettings
) -> Iterator[dict[str, Any]]:
    """Yield the K-curves of one metric in one part: of methods whose distances do not depend on K."""
    names = [name for name, signature in methods.items() if signature.startswith("distance:")]
    keep = [list(methods).index(name) for name in names]
    fitting = [replace(table, distances=[table.distances[row] for row in keep]) for table in tables]
    for score in tables[0].measured.scores:
        if names and score.name in settings.curves:
            main = MEAN_RUN if len(tables) > 1 else tables[0].run
            drawn = candidates_curve(fitting, names, main=main, score=score.name, seed=settings.seed)
            yield from ({**curve, "section": part} for curve in drawn)


def _methods(runs: Sequence[RunInput]) -> dict[str, str]:
    """Return the methods and their signatures; all runs have the same ones."""
    methods: dict[str, str] = {}
    for run in runs:
        for picks in run.picks:
            if methods.setdefault(picks.method, picks.signature) != picks.signature:
                raise BadInputError(
                    f"the selections of {picks.method!r} have two signatures, {methods[picks.method]} and "
                    f"{picks.signature}; give each its own name (NAME=FILE)"
                )
        names = [picks.method for picks in run.picks]
        if len(set(names)) < len(names):
            raise BadInputError(f"run {run.name!r} has a method twice; name them apart (NAME=FILE)")
    for run in runs:
        absent = methods.keys() - {picks.method for picks in run.picks}
        if absent:
            raise BadInputError(
                f"run {run.name!r} has no selections of {', '.join(sorted(absent))}; "
                "a mean over runs needs every method in every run"
            )
    return methods


def _tables(  # what is measured, for whom and where it is kept
    runs: Sequence[RunInput],
    metrics: Sequence[Metric],
    settings: EvaluationSettings,
    number: Mapping[str, int],
    store: MeasurementStore | None,
    on_progress: OnProgress,
) -> Iterator[tuple[Part, list[RunTable]]]:
    """Yield the runs' tables of one metric in one part at a time."""
    for part in PARTS:
        studies = [eligible(run.cases.cases, part) for run in runs]
        for measure in _measures(part, metrics, store) if all(studies) else ():
            on_progress(f"measuring {part}")
            measured = [found for found in map(measure, studies) if found is not None]
            if len(measured) == len(runs):
                yield (
                    part,
                    [
                        _table(run, cases, found, settings, number)
                        for run, cases, found in zip(runs, studies, measured, strict=True)
                    ],
                )


def _measures(
    part: Part, metrics: Sequence[Metric], store: MeasurementStore | None
) -> Iterator[Callable[[Sequence[Case]], Measured | None]]:
    """Yield what can be measured in one part."""
    if part == "report":
        yield measure_states
    else:
        for metric in metrics:
            yield partial(measure_section, metric, section=part, store=store)


def _table(
    run: RunInput,
    cases: Sequence[Case],
    measured: Measured,
    settings: EvaluationSettings,
    number: Mapping[str, int],
) -> RunTable:
    """Put one run's picks beside its measured drafts."""
    return RunTable(
        run=run.name,
        measured=measured,
        patients=np.array([number[case.patient] for case in cases], dtype=np.intp),
        picks=[picks.rows(cases) for picks in run.picks],
        seeded=[_seeded(run.cases.cases, cases, seed) for seed in settings.random_seeds],
        distances=[picks.distance_rows(cases) for picks in run.picks],
    )


def _seeded(studies: Sequence[Case], cases: Sequence[Case], seed: int) -> NDArray[np.intp]:
    """Return the seeded picks of some of the studies: one pick a study, whatever the section."""
    drawn = zip(studies, seeded_picks(studies, seed).tolist(), strict=True)
    picks = {case.query.id: pick for case, pick in drawn}
    return np.array([picks[case.query.id] for case in cases], dtype=np.intp)


def seeded_picks(cases: Sequence[Case], seed: int) -> NDArray[np.intp]:
    """Return a uniform pick a study, as the paper's random baseline with one seed."""
    rng = np.random.default_rng(seed)
    draws = rng.random(len(cases))
    counts = np.array([len(case.query.candidates) for case in cases])
    picks: NDArray[np.intp] = np.minimum((draws * counts).astype(np.intp), counts - 1)
    return picks


def _run(run: RunInput) -> Run:
    """Return what is known of a run."""
    cases = run.cases.cases
    abstained = {picks.method: int((picks.rows(cases) == NOTHING).sum()) for picks in run.picks}
    return Run(
        name=run.name,
        model=run.cases.fact("model"),
        prompt=run.cases.fact("prompt"),
        queries=run.cases.sha256,
        studies=len(cases),
        patients=len(set(patient_rows([case.patient for case in cases]).tolist())),
        drafts=sum(len(case.query.candidates) for case in cases),
        short=run.cases.short(),
        abstained=abstained,
    )


def _adjusted(cells: Sequence[Cell], headline: Sequence[str], *, main: str) -> list[Cell]:
    """Adjust p: Holm within the headline family, Benjamini-Hochberg over the grid."""
    tested = [row for row, cell in enumerate(cells) if cell.p is not None]
    family = [row for row in tested if cells[row].run == main and cells[row].score in headline]
    adjusted = list(cells)
    for rows, name, adjust in ((family, "holm", holm), (tested, "bh", benjamini_hochberg)):
        values = adjust(np.array([cells[row].p for row in rows], dtype=np.float64))
        for row, value in zip(rows, values.tolist(), strict=True):
            adjusted[row] = replace(adjusted[row], **{name: value})
    return adjusted
