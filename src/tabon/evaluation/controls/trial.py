"""One file of queries on the bench: every selector tried under every condition, and judged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tabon._internal.registry import check_name
from tabon.encoders import Encoder, load_encoder
from tabon.encoders.cache import CachingEncoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError, TabonError
from tabon.evaluation import Case, Cases
from tabon.evaluation.controls.compare import Array, Judge, Outcome
from tabon.evaluation.controls.conditions import CONDITIONS, LeftOut, Row, Trial, with_priors
from tabon.evaluation.controls.draft_scores import SomeScores, part_tables
from tabon.evaluation.controls.factorial import FactorialCell, Generation, factorial_cells
from tabon.evaluation.controls.picks import Reader
from tabon.evaluation.draft_scores import STATE
from tabon.evaluation.statistics import bootstrap_weights
from tabon.method.bank import TransitionBank
from tabon.metrics.store import MeasurementStore
from tabon.selectors.selector import bank_encoder

DEFAULT_SELECTORS = ("transition:novelty/min", "transition:cost-ot/knn", "consensus:chamfer", "fused")
DEFAULT_SCORES = ("rouge-l-f", "labels-14-micro")


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


@dataclass(frozen=True)
class Bench:
    """The studies, the bank, and what all trials share."""

    cases: Cases
    bank: TransitionBank
    settings: ControlSettings
    dependencies: Dependencies

    def trials(self) -> tuple[list[Trial], list[LeftOut]]:
        """Return the selectors that are tried; of the default ones those that can be loaded."""
        trials: list[Trial] = []
        left_out: list[LeftOut] = []
        for name in dict.fromkeys(self.settings.selectors or DEFAULT_SELECTORS):
            trial = self._trial(name)
            try:
                _ = trial.scorer
                trials.append(trial)
            except (TabonError, ImportError) as error:
                if self.settings.selectors:
                    raise
                left_out.append(trial.left_out("prior", "all conditions", error))
        return trials, left_out

    def rows(self, trial: Trial) -> tuple[list[Row], list[LeftOut]]:
        """Try one selector under the conditions; the right prior is always there."""
        self.dependencies.on_progress(f"{trial.selector}: right prior")
        right = trial.right()
        found: list[Row | LeftOut] = [right]
        for name in dict.fromkeys(self.settings.conditions):
            self.dependencies.on_progress(f"{trial.selector}: {name}")
            found += CONDITIONS[name](trial, right.picks[0])
        return [row for row in found if isinstance(row, Row)], [
            row for row in found if isinstance(row, LeftOut)
        ]

    def outcomes(
        self, rows: Iterable[Sequence[Row]], metrics: Sequence[SomeScores]
    ) -> tuple[list[Outcome], list[LeftOut]]:
        """Judge every selector's rows in every part under every metric."""
        tried = list(rows)
        number, weights = self._patients(self.cases.cases)
        found: list[Outcome | LeftOut] = []
        for table in part_tables(self.cases.cases, metrics, states=STATE in self.settings.scores):
            self.dependencies.on_progress(f"comparing {table.part}")
            judge = Judge(table, number, weights)
            for of_one in tried:
                found += judge.outcomes(of_one)
        return [each for each in found if isinstance(each, Outcome)], [
            each for each in found if isinstance(each, LeftOut)
        ]

    def factorial(
        self, generations: Sequence[Generation], trials: Sequence[Trial], metrics: Sequence[SomeScores]
    ) -> list[FactorialCell]:
        """Choose with the right prior, another's and none in every generation, and compare."""
        chosen = [self._by_prior(each, trials) for each in generations]
        shared = [name for name in chosen[0] if all(name in found for found in chosen)]
        filled = [
            replace(each, rows=tuple(found[name] for name in shared))
            for each, found in zip(generations, chosen, strict=True)
        ]
        number, weights = self._patients([case for each in generations for case in each.cases])
        states = STATE in self.settings.scores
        return list(factorial_cells(filled, metrics, states=states, number=number, weights=weights))

    def _by_prior(self, generation: Generation, trials: Sequence[Trial]) -> dict[str, Row]:
        """Return the rows of one generation that differ in the prior alone, by name."""
        self.dependencies.on_progress(f"drafts of {generation.name}")
        queries = tuple(case.query for case in generation.cases)
        rows: list[Row | LeftOut] = []
        for trial in trials:
            here = replace(trial, queries=queries)
            right = here.right()
            rows += [right, *with_priors(here, right.picks[0])]
        return {row.method: row for row in rows if isinstance(row, Row)}

    def _trial(self, name: str) -> Trial:
        """Put one selector on the bench."""
        return Trial(
            name=name,
            bank=self.bank,
            queries=tuple(case.query for case in self.cases.cases),
            encoder=self._encoder,
            reader=self._reader,
            other_encoder=lambda: self._other_encoder,
            store=self.dependencies.store,
            seed=self.settings.seed,
            shuffles=self.settings.shuffles,
            allow_bank_patients=self.settings.allow_bank_patients,
        )

    def _patients(self, cases: Iterable[Case]) -> tuple[Mapping[str, int], Array]:
        """Number the patients and draw resamples of them, as an evaluation does."""
        everyone = list(dict.fromkeys(case.patient for case in cases))
        rng = np.random.default_rng(self.settings.seed)
        number = {patient: row for row, patient in enumerate(everyone)}
        return number, bootstrap_weights(len(everyone), self.settings.resamples, rng)

    @cached_property
    def _encoder(self) -> CachingEncoder:
        """Return the bank's encoder."""
        return CachingEncoder(bank_encoder(self.bank, self.dependencies.encoder))

    @cached_property
    def _other_encoder(self) -> CachingEncoder:
        """Return the encoder of the swap."""
        usual = "minilm" if self.bank.fingerprint["encoder"] == "hashing" else "hashing"
        return CachingEncoder(
            self.dependencies.other_encoder or load_encoder(self.settings.other_encoder or usual)
        )

    @cached_property
    def _reader(self) -> Reader:
        """Return what splits texts."""
        return Reader()
