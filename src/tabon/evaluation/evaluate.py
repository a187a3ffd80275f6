"""From runs, picks and metrics to results."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabon._internal.registry import check_name
from tabon.errors import BadInputError
from tabon.evaluation.analysis_plan import AnalysisPlan, keep_plan
from tabon.evaluation.compare import Chance, RunTable, compare
from tabon.evaluation.curves import CURVE_RESAMPLES, candidates_curves
from tabon.evaluation.draft_scores import STATE, Measured, measured_parts
from tabon.evaluation.inputs import NOTHING, Case, Cases, Picks
from tabon.evaluation.outside_scores import OutsideScore
from tabon.evaluation.pairs import adjusted_pairs, compare_pairs
from tabon.evaluation.results import MEAN_RUN, Cell, PairedDifference, Results, Run, Subgroup
from tabon.evaluation.statistics import adjusted, benjamini_hochberg
from tabon.evaluation.subgroups import adjusted_subgroups, compare_subgroups, grouping
from tabon.metrics.protocol import MeasurementStore, Metric

HEADLINE = (  # the scores that are looked at first, as many as are measured
    "rouge-l-f",
    "bleu-4",
    "labels-14-micro",
    "labels-14-macro",
    "radgraph-bar",
    "chexbert-14-micro",
    "chexbert-14-macro",
    STATE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSettings:
    """All that changes an evaluation beside its inputs."""

    resamples: int = 10_000
    seed: int = 0
    random_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)  # the paper averages five
    headline: tuple[str, ...] = ()  # the scores of the headline family; () is HEADLINE
    curves: tuple[str, ...] = ()  # the scores to draw K-curves of
    by: tuple[str, ...] = ()  # what groups of studies are made by
    margin: float | None = None  # the share of the gap that a method may lose and be called not worse

    def __post_init__(self) -> None:
        """Refuse what gives no interval."""
        if self.resamples < 1 or not self.random_seeds:
            raise BadInputError("resamples and random seeds must be at least 1; leave them as they are")
        if min(self.seed, *self.random_seeds) < 0:
            raise BadInputError("a seed is below 0; give whole numbers from 0")
        if self.margin is not None and not 0 < self.margin < 1:
            raise BadInputError(f"the margin is {self.margin}; give a share of the gap between 0 and 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput:
    """One run's studies and every method's picks in it."""

    name: str
    cases: Cases
    picks: tuple[Picks, ...]


def evaluate(  # noqa: PLR0913  # two inputs, the settings, and five that are rarely given
    runs: Sequence[RunInput],
    metrics: Sequence[Metric],
    settings: EvaluationSettings,
    *,
    missing: Mapping[str, str] | None = None,
    outside: Sequence[OutsideScore] = (),
    with_pairs: bool = True,
    plan: Path | None = None,
    store: MeasurementStore | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Results:
    """Measure every draft once and compare every method with the random pick, the oracle and each other.

    Methods are compared with each other by the headline scores, unless `with_pairs` is false. The analysis
    plan is kept in the file `plan` before anything is measured; if it is there, departures are named.
    """
    methods = _methods(runs)
    order = list(methods)
    runs = [_in_order(run, order) for run in runs]
    everyone = [case for run in runs for case in run.cases.cases]
    chance = Chance.draw(everyone, resamples=settings.resamples, swaps=settings.resamples, seed=settings.seed)
    quick = Chance.draw(everyone, resamples=CURVE_RESAMPLES, swaps=0, seed=settings.seed)
    drawn = [picks.method for picks in runs[0].picks if picks.per_draft]
    cells: list[Cell] = []
    pairs: list[PairedDifference] = []
    subgroups: list[Subgroup] = []
    groupings = [grouping(name, everyone) for name in settings.by]
    scores: dict[str, str] = {}
    curves: list[dict[str, Any]] = []
    family = settings.headline or headline_of(metrics, outside)
    intended = AnalysisPlan.of(runs, [*metrics, *outside], family, settings)
    planned = None if plan is None else keep_plan(plan, intended)
    studies, more = [run.cases.cases for run in runs], [score.measure for score in outside]
    for measured in measured_parts(studies, metrics, outside=more, store=store, on_progress=on_progress):
        tables = [_table(run, found, settings) for run, found in zip(runs, measured, strict=True)]
        cells += compare(tables, order, chance)
        first = [table.by(family) for table in tables]
        if with_pairs:
            pairs += compare_pairs(first, order, chance)
        for by in groupings:
            subgroups += compare_subgroups(first, order, chance, by)
        scores |= {score.name: measured[0].signature for score in measured[0].scores}
        for score in measured[0].scores:
            if drawn and score.name in settings.curves:
                curves += candidates_curves([table.by([score.name]) for table in tables], drawn, quick)
    headline = settings.headline or tuple(score for score in family if score in scores)
    return Results(
        cells=tuple(_adjusted(cells, headline, main=MEAN_RUN if len(runs) > 1 else runs[0].name)),
        runs=tuple(map(_run, runs)),
        scores=scores,
        missing=dict(missing or {}),
        methods=methods,
        headline=headline,
        settings={**asdict(settings), "versions": {"tabon": version("tabon"), "numpy": version("numpy")}},
        facts={"curves": curves},
        pairs=adjusted_pairs(pairs),
        subgroups=adjusted_subgroups(subgroups),
        plan=planned,
    )


def headline_of(metrics: Sequence[Metric], outside: Sequence[OutsideScore]) -> tuple[str, ...]:
    """Return the headline family: HEADLINE's, or else the metrics' first few; and what is from outside."""
    names = [score.name for metric in metrics for score in metric.scores]
    usual = tuple(score for score in HEADLINE if score in names)
    most = len(HEADLINE) - 1
    return (*(usual or names[:most]), STATE, *(score.name for score in outside[:most]))


def check_scores(
    names: Iterable[str],
    metrics: Sequence[Metric],
    missing: Mapping[str, str],
    outside: Sequence[OutsideScore] = (),
) -> None:
    """Refuse names that no score has, unless a missing metric's may have it, and one that two scores have."""
    own = (score.name for metric in metrics for score in metric.scores)
    known = (*own, STATE, *(score.name for score in outside))
    twice = [name for name, count in Counter(known).items() if count > 1]
    if twice:
        raise BadInputError(f"the score {twice[0]!r} is there twice; leave one out or name it otherwise")
    for name in names:
        if not any(name == metric or name.startswith(f"{metric}-") for metric in missing):
            check_name("score", known, name)


def _in_order(run: RunInput, methods: Sequence[str]) -> RunInput:
    """Return a run with its picks in the order of the methods."""
    return replace(run, picks=tuple(sorted(run.picks, key=lambda each: methods.index(each.method))))


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


def _table(run: RunInput, measured: Measured, settings: EvaluationSettings) -> RunTable:
    """Put one run's picks beside its measured drafts; a seed picks once a study, whatever the part."""
    rows = {case.query.id: row for row, case in enumerate(run.cases.cases)}
    there = [rows[case.query.id] for case in measured.cases]
    return RunTable(
        run=run.name,
        measured=measured,
        picks=[picks.rows(measured.cases) for picks in run.picks],
        seeded=[seeded_picks(run.cases.cases, seed)[there] for seed in settings.random_seeds],
        distances=[picks.distance_rows(measured.cases) for picks in run.picks if picks.per_draft],
    )


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
        patients=len({case.patient for case in cases}),
        drafts=sum(len(case.query.candidates) for case in cases),
        short=run.cases.short(),
        abstained=abstained,
    )


def _adjusted(cells: Sequence[Cell], headline: Sequence[str], *, main: str) -> list[Cell]:
    """Adjust p: Holm within the headline family, Benjamini-Hochberg over the grid."""
    family = adjusted([cell.p if cell.run == main and cell.score in headline else None for cell in cells])
    grid = adjusted([cell.p for cell in cells], benjamini_hochberg)
    return [replace(cell, holm=one, bh=other) for cell, one, other in zip(cells, family, grid, strict=True)]
