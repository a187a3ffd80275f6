"""From queries, a bank and names of selectors and scores to the results of all controls."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from tabon._internal.registry import check_name
from tabon.encoders import Encoder, load_encoder
from tabon.encoders.sentence_store import CachingEncoder, SentenceStore
from tabon.errors import BadInputError, TabonError
from tabon.evaluation import Case, Cases, EvaluationSettings, RunInput, evaluate
from tabon.evaluation.compare import Chance
from tabon.evaluation.controls.conditions import CONDITIONS, CURVES, LeftOut, Row, Trial, with_priors
from tabon.evaluation.controls.outcomes import (
    FactorialCell,
    Generation,
    Outcome,
    adjusted_outcomes,
    factorial_cells,
    generations_of,
    outcomes_of,
)
from tabon.evaluation.curves import curve
from tabon.evaluation.draft_scores import STATE, measured_parts
from tabon.evaluation.inputs import NOTHING, states
from tabon.evaluation.results import Results
from tabon.method.bank import TransitionBank
from tabon.metrics import Metric, Pair, Score, load_scores
from tabon.metrics.protocol import MeasurementStore, Statistics, measure_pairs
from tabon.selectors.selector import bank_encoder

DEFAULT_SELECTORS = ("transition:novelty/min", "transition:cost-ot/knn", "consensus:chamfer", "fused")
DEFAULT_SCORES = ("rouge-l-f", "labels-14-micro")


@dataclass(frozen=True)
class SomeScores:
    """A metric with some of its scores, which measures no pair twice."""

    name: str
    signature: str
    statistics: tuple[str, ...]
    scores: tuple[Score, ...]
    metric: Metric
    store: MeasurementStore | None = None
    rows: dict[Pair, Statistics] = field(default_factory=dict, repr=False)

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair."""
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self.rows]
        self.rows.update(zip(missing, measure_pairs(self.metric, missing, store=self.store), strict=True))
        return np.array([self.rows[pair] for pair in pairs]).reshape(len(pairs), len(self.statistics))


def load_some(names: Sequence[str], store: MeasurementStore | None = None) -> list[SomeScores]:
    """Load the metrics of some scores, each with those scores alone.

    Raises:
        UnknownNameError: no metric has such a score.
        MetricUnavailableError: its metric cannot be measured here.
    """
    if not names:
        raise BadInputError("no score was named; give one, such as rouge-l-f")
    found = load_scores([name for name in names if name != STATE], also=(STATE,)).values()
    metrics = {metric.name: metric for metric, _ in found}
    return [
        SomeScores(
            name, metric.signature, metric.statistics,
            tuple(score for own, score in found if own is metric), metric, store,
        )
        for name, metric in metrics.items()
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """All that changes the controls beside their inputs."""

    selectors: tuple[str, ...] = ()  # () is the default ones, as many as can be loaded
    conditions: tuple[str, ...] = tuple(CONDITIONS)
    scores: tuple[str, ...] = DEFAULT_SCORES
    seed: int = 0
    resamples: int = 10_000
    shuffles: int = 5  # exchanges of priors; the row is their mean
    other_encoder: str = ""  # "" is hashing, or minilm where the bank's is hashing
    allow_bank_patients: bool = False

    def __post_init__(self) -> None:
        """Refuse what gives no table."""
        for name in self.conditions:
            check_name("condition", tuple(CONDITIONS), name)
        if self.resamples < 1 or self.shuffles < 1:
            raise BadInputError("resamples and shuffles must be at least 1; leave them as they are")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What comes from outside: encoders that have no name, stores, and a progress callback."""

    encoder: Encoder | None = None  # the bank's; None finds it by its name
    other_encoder: Encoder | None = None  # for the encoder swap; None takes the settings' name
    store: SentenceStore | None = None
    measurements: MeasurementStore | None = None
    on_progress: Callable[[str], None] = field(default=lambda _: None)


def run_controls(
    files: Sequence[Cases],
    bank: TransitionBank,
    settings: ControlSettings,
    dependencies: Dependencies | None = None,
) -> Results:
    """Try every selector under every condition on the first file.

    The second and later files hold other drafts of the same studies, for the factorial table.
    """
    bench = Bench(files[0], bank, settings, dependencies or Dependencies())
    metrics = load_some(settings.scores, bench.dependencies.measurements)
    if STATE in settings.scores and any(states(case) is None for file in files for case in file.cases):
        raise BadInputError(f"{STATE} is known only of simulated cohorts; ask for another score")
    generations = generations_of(files) if len(files) > 1 else []
    trials, left_out = bench.trials()
    rows: list[list[Row]] = []
    for trial in trials:
        found = list(bench.rows(trial))
        rows.append([each for each in found if isinstance(each, Row)])
        left_out += [each for each in found if isinstance(each, LeftOut)]
    judged = list(bench.outcomes(rows, metrics))
    outcomes = adjusted_outcomes([each for each in judged if isinstance(each, Outcome)])
    left_out += [each for each in judged if isinstance(each, LeftOut)]
    factorial = bench.factorial(generations, trials, metrics) if generations else ()
    facts = {
        "curves": list(curves_of_outcomes(outcomes)),
        "controls": [asdict(outcome) for outcome in outcomes],
        "factorial": [asdict(cell) for cell in factorial],
        "left_out": [asdict(each) for each in dict.fromkeys(left_out)],
    }
    kept = [row for found in rows for row in found if row.comparable and row.x is None]
    return replace(bench.results(metrics, kept, outcomes), facts=facts)


@dataclass(frozen=True)
class Bench:
    """The studies, the bank, and what all trials share."""

    cases: Cases
    bank: TransitionBank
    settings: ControlSettings
    dependencies: Dependencies

    def trials(self) -> tuple[list[Trial], list[LeftOut]]:
        """Return the selectors that are tried; of the default ones those that can be loaded."""

        def other_encoder() -> CachingEncoder:
            usual = "minilm" if self.bank.fingerprint["encoder"] == "hashing" else "hashing"
            given = self.dependencies.other_encoder
            return CachingEncoder(given or load_encoder(self.settings.other_encoder or usual))

        whole = Trial(
            name="",
            bank=self.bank,
            queries=tuple(case.query for case in self.cases.cases),
            encoder=CachingEncoder(bank_encoder(self.bank, self.dependencies.encoder)),
            other_encoder=cache(other_encoder),
            store=self.dependencies.store,
            seed=self.settings.seed,
            shuffles=self.settings.shuffles,
            allow_bank_patients=self.settings.allow_bank_patients,
        )
        trials: list[Trial] = []
        left_out: list[LeftOut] = []
        for name in dict.fromkeys(self.settings.selectors or DEFAULT_SELECTORS):
            trial = replace(whole, name=name)
            try:
                _ = trial.scorer
                trials.append(trial)
            except (TabonError, ImportError) as error:
                if self.settings.selectors:
                    raise
                left_out.append(trial.row("prior", "all conditions").left_out(error))
        return trials, left_out

    def rows(self, trial: Trial) -> Iterator[Row | LeftOut]:
        """Try one selector under the conditions; the right prior is always there."""
        self.dependencies.on_progress(f"{trial.selector}: right prior")
        right = trial.right()
        yield right
        for name in dict.fromkeys(self.settings.conditions):
            self.dependencies.on_progress(f"{trial.selector}: {name}")
            yield from CONDITIONS[name](trial, right.picks[0])

    def outcomes(
        self, tried: Sequence[Sequence[Row]], metrics: Sequence[SomeScores]
    ) -> Iterator[Outcome | LeftOut]:
        """Compare every selector's rows in every part under every metric."""
        chance = self._chance(self.cases.cases)
        for [measured] in measured_parts(
            [self.cases.cases], metrics, with_states=STATE in self.settings.scores
        ):
            self.dependencies.on_progress(f"comparing {measured.part}")
            for rows in tried:
                yield from outcomes_of(rows, measured, chance)

    def factorial(
        self, generations: Sequence[Generation], trials: Sequence[Trial], metrics: Sequence[SomeScores]
    ) -> Iterator[FactorialCell]:
        """Choose with the right prior, another's and none in every generation, and compare."""
        chosen: list[dict[str, Row]] = []
        for generation in generations:
            self.dependencies.on_progress(f"drafts of {generation.name}")
            queries = tuple(case.query for case in generation.cases)
            rows: list[Row | LeftOut] = []
            for trial in trials:
                here = replace(trial, queries=queries)
                right = here.right()
                rows += [right, *with_priors(here, right.picks[0])]
            chosen.append({row.method: row for row in rows if isinstance(row, Row)})
        shared = [name for name in chosen[0] if all(name in found for found in chosen)]
        filled = [
            replace(each, rows=tuple(found[name] for name in shared))
            for each, found in zip(generations, chosen, strict=True)
        ]
        chance = self._chance([case for each in generations for case in each.cases])
        return factorial_cells(filled, metrics, chance, with_states=STATE in self.settings.scores)

    def results(
        self, metrics: Sequence[SomeScores], rows: Sequence[Row], outcomes: Sequence[Outcome]
    ) -> Results:
        """Put rows on the same studies and drafts into results, beside random and the oracle; no curves.

        A row of several seeds has the first one's signature and abstentions, and says how many there are.
        """
        name, scores = self.cases.fact("model") or "drafts", self.settings.scores
        plan = EvaluationSettings(resamples=self.settings.resamples, seed=self.settings.seed, headline=scores)
        bare = evaluate([RunInput(name=name, cases=self.cases, picks=())], metrics, plan)
        methods, abstained = {}, {}
        for row in rows:
            first, seeds = row.picks[0], len(row.picks)
            methods[row.method] = first.signature if seeds == 1 else f"{first.signature}|seeds:{seeds}"
            abstained[row.method] = int((first.rows(self.cases.cases) == NOTHING).sum())
        cells = [outcome.cell(name) for outcome in outcomes if outcome.method in methods]
        return replace(
            bare,
            cells=(*(cell for cell in bare.cells if cell.score in scores), *cells),
            runs=tuple(replace(run, abstained=abstained) for run in bare.runs),
            scores={score: text for score, text in bare.scores.items() if score in scores},
            methods=methods,
            settings={**bare.settings, "controls": asdict(self.settings)},
        )

    def _chance(self, cases: Sequence[Case]) -> Chance:
        """Draw resamples of the patients, as an evaluation does; there are no tests here."""
        return Chance.draw(cases, resamples=self.settings.resamples, swaps=0, seed=self.settings.seed)


def curves_of_outcomes(outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    """Yield the curves among the outcomes as evaluations keep theirs."""

    def key(outcome: Outcome) -> tuple[str, str, str, str]:
        return outcome.group, outcome.section, outcome.score, outcome.selector

    on_curves = sorted((outcome for outcome in outcomes if outcome.group in CURVES), key=key)
    for (group, section, score, selector), found in groupby(on_curves, key):
        name, x = CURVES[group]
        points = [
            {"x": each.x, "gap": each.gap.value, "low": each.gap.low, "high": each.gap.high} for each in found
        ]
        yield curve(name, x, section=section, score=score, method=selector, points=points)
