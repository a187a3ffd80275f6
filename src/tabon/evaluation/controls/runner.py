"""From queries, a bank and names of selectors to the results of all controls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

from tabon.evaluation import Cases, EvaluationSettings, RunInput, evaluate
from tabon.evaluation.controls.compare import Outcome, cell_of
from tabon.evaluation.controls.conditions import CURVES, Row
from tabon.evaluation.controls.draft_scores import SomeScores, load_scores
from tabon.evaluation.controls.factorial import generations_of
from tabon.evaluation.controls.trial import Bench, ControlSettings, Dependencies
from tabon.evaluation.curves import curve
from tabon.evaluation.picks import NOTHING
from tabon.evaluation.results import Results
from tabon.method.bank import TransitionBank


def run_controls(
    files: Sequence[Cases],
    bank: TransitionBank,
    settings: ControlSettings,
    dependencies: Dependencies | None = None,
) -> Results:
    """Try every selector under every condition on the first file; the others join the factorial table.

    Args:
        files: studies with references; the second and later ones hold other drafts of the same studies.
        bank: the training transitions.
        settings: what is tried.
        dependencies: encoders, stores and a progress callback.
    """
    bench = Bench(files[0], bank, settings, dependencies or Dependencies())
    metrics = load_scores(settings.scores, bench.dependencies.measurements)
    generations = generations_of(files) if len(files) > 1 else []
    trials, left_out = bench.trials()
    rows: list[list[Row]] = []
    for trial in trials:
        found, unfit = bench.rows(trial)
        rows.append(found)
        left_out += unfit
    outcomes, unfit = bench.outcomes(rows, metrics)
    factorial = bench.factorial(generations, trials, metrics) if generations else []
    facts = {
        "curves": list(curves_of_outcomes(outcomes)),
        "controls": [outcome.record() for outcome in outcomes],
        "factorial": [cell.record() for cell in factorial],
        "left_out": [asdict(each) for each in dict.fromkeys([*left_out, *unfit])],
    }
    kept = [row for found in rows for row in found if row.comparable and row.x is None]
    return replace(_results(bench, metrics, kept, outcomes), facts=facts)


def curves_of_outcomes(outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    """Yield the curves among the outcomes as evaluations keep theirs."""
    on_curves = [outcome for outcome in outcomes if outcome.group in CURVES]
    for (group, section, score, selector), found in groupby(sorted(on_curves, key=_curve_key), _curve_key):
        name, x = CURVES[group]
        points = [
            {"x": each.x, "gap": each.gap.value, "low": each.gap.low, "high": each.gap.high} for each in found
        ]
        yield {**curve(name, x, score=score, method=selector, points=points), "section": section}


def _curve_key(outcome: Outcome) -> tuple[str, str, str, str]:
    """Return which curve an outcome is on."""
    return outcome.group, outcome.section, outcome.score, outcome.selector


def _results(
    bench: Bench, metrics: Sequence[SomeScores], rows: Sequence[Row], outcomes: Sequence[Outcome]
) -> Results:
    """Put rows on the same studies and drafts into results, beside random and the oracle; no curves."""
    settings = bench.settings
    name = bench.cases.fact("model") or "drafts"
    plan = EvaluationSettings(resamples=settings.resamples, seed=settings.seed, headline=settings.scores)
    bare = evaluate([RunInput(name=name, cases=bench.cases, picks=())], metrics, plan)
    methods = {row.method: _signature(row) for row in rows}
    cells = [cell_of(outcome, name) for outcome in outcomes if outcome.method in methods]
    return replace(
        bare,
        cells=(*(cell for cell in bare.cells if cell.score in settings.scores), *cells),
        runs=tuple(replace(run, abstained=_abstained(bench.cases, rows)) for run in bare.runs),
        scores={score: text for score, text in bare.scores.items() if score in settings.scores},
        methods=methods,
        settings={**bare.settings, "controls": asdict(settings)},
    )


def _signature(row: Row) -> str:
    """Return a row's signature; of several seeds the first one's, and how many there are."""
    first = row.picks[0].signature
    return first if len(row.picks) == 1 else f"{first}|seeds:{len(row.picks)}"


def _abstained(cases: Cases, rows: Sequence[Row]) -> Mapping[str, int]:
    """Count the studies in which each row chose nothing; of several seeds the first counts."""
    return {
        row.method: sum(row.picks[0].chosen[case.query.id] == NOTHING for case in cases.cases) for row in rows
    }
