"""What an evaluation found, as values that are written once, merged and tabled.

Every number of every table and picture is read from here; nothing is measured
again. The file is JSON, the numbers are as measured (rounding is the tables').
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from tabon._internal.atomic_files import replacing
from tabon._internal.typed_values import MisfitError, fitting, read_typed
from tabon.errors import BadInputError
from tabon.evaluation.analysis_plan import PlanRecord

FORMAT = "tabon-results/1"
LATER_SETTINGS: dict[str, object] = {"by": [], "margin": None}  # what older files lack, and were made with
RANDOM = "random"  # the exact expectation of a uniform pick
RANDOM_SEEDS = "random-seeds"  # the paper's: the mean of seeded uniform picks
ORACLE = "oracle"  # the best draft of each study, score by score
REFERENCES = (RANDOM, RANDOM_SEEDS, ORACLE)  # rows that are not selectors
MEAN_RUN = "mean"  # the unweighted mean over runs

Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number and its 95 % interval; None where it is not defined."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    def clear(self) -> bool:
        """Say whether the interval leaves out 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    def named(self, name: str = "") -> dict[str, Any]:
        """Return the fields that a cell has for it."""
        if not name:
            return asdict(self)
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One number: the score of one method's picks in one run and section."""

    run: str  # a name of Results.runs, or MEAN_RUN
    section: str  # "findings", "impression", or "report" for scores of the whole report
    method: str  # a key of Results.methods, or one of REFERENCES
    score: str  # a key of Results.scores
    value: float | None  # None: not measured
    n: int  # studies it is measured on (of a mean over runs: studies of all runs)
    low: float | None = None  # 95 % interval of the value, patients resampled
    high: float | None = None
    delta: float | None = None  # value - random
    delta_low: float | None = None
    delta_high: float | None = None
    relative: float | None = None  # delta / random
    gap: float | None = None  # delta / (oracle - random): share of the gap closed
    gap_low: float | None = None
    gap_high: float | None = None
    p: float | None = None  # paired randomisation against random, two-sided
    holm: float | None = None  # p adjusted within the headline family
    bh: float | None = None  # p adjusted (Benjamini-Hochberg) over the whole grid
    wins: int | None = None  # studies where the pick scores more than the expected random one
    ties: int | None = None
    losses: int | None = None

    def share(self) -> Number:
        """Return the share of the gap closed with its interval."""
        return Number(value=self.gap, low=self.gap_low, high=self.gap_high)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """How far one method is ahead of another by one score, in the run of the headline."""

    section: str
    score: str  # one of the headline family
    method: str
    other: str
    n: int  # studies (of a mean over runs: studies of all runs)
    delta: float | None = None  # value of the method - value of the other
    delta_low: float | None = None  # 95 % interval, the same patients resampled for both
    delta_high: float | None = None
    gap: float | None = None  # delta / (oracle - random): how much more of the gap it closes
    gap_low: float | None = None
    gap_high: float | None = None
    p: float | None = None  # paired randomisation, two-sided
    holm: float | None = None  # p adjusted over all pairs of the results

    def not_worse(self, margin: float) -> tuple[bool, bool]:
        """Say of the method, and of the other, whether a loss of so much of the gap is ruled out."""
        low, high = self.gap_low, self.gap_high
        return low is not None and low > -margin, high is not None and high < margin


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgroup:
    """How far one method is ahead of another, or of random, in one group of studies."""

    by: str  # what the groups are made by
    group: str
    section: str
    score: str  # one of the headline family
    method: str
    other: str  # a method, or RANDOM
    n: int  # studies of the group
    delta: float | None = None
    delta_low: float | None = None
    delta_high: float | None = None
    gap: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None
    p: float | None = None  # of the interaction: delta is the same in all groups; one number for all of them
    holm: float | None = None  # p adjusted over all interactions of the results


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One set of drafts: a generator under a prompt."""

    name: str  # "Gemini-2.5-FL P1"
    model: str
    prompt: str
    queries: str  # sha256 of the queries file
    studies: int
    patients: int
    drafts: int
    short: int  # studies with fewer drafts than were asked for
    abstained: Mapping[str, int] = field(default_factory=dict)  # by method; worth the expected random pick


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All cells of an evaluation and everything that changes them."""

    cells: tuple[Cell, ...]
    runs: tuple[Run, ...]
    scores: Mapping[str, str]  # score: the signature of its metric
    missing: Mapping[str, str]  # metric: why it is not measured
    methods: Mapping[str, str]  # method: the signature of its selections
    headline: tuple[str, ...]  # the scores of the headline family
    settings: Mapping[str, Any]  # seed, resamples, random_seeds, ... and the versions
    facts: Mapping[str, Any] = field(default_factory=dict)  # curves and points for the pictures
    pairs: tuple[PairedDifference, ...] = ()  # methods against each other; none in files of before
    subgroups: tuple[Subgroup, ...] = ()  # the same in groups of studies
    plan: PlanRecord | None = None  # the analysis plan that was written before; none was asked for, or merged

    def cell(self, *, run: str, section: str, method: str, score: str) -> Cell | None:
        """Return one cell, or None where there is none."""
        for cell in self.cells:
            if (cell.run, cell.section, cell.method, cell.score) == (run, section, method, score):
                return cell
        return None

    def listed_facts(self, name: str) -> tuple[Any, ...]:
        """Return a fact that is a list; nothing where there is none."""
        found = self.facts.get(name, [])
        if not isinstance(found, list | tuple):
            raise BadInputError(f"facts.{name} of the results is no list; evaluate again")
        return tuple(found)

    def typed_facts(self, name: str, kind: type[Fact]) -> list[Fact]:
        """Return a fact that is a list of values of one kind; what is not whole is refused."""
        try:
            return [fitting(kind, record, f"facts.{name}") for record in self.listed_facts(name)]
        except MisfitError as error:
            raise BadInputError(f"the results are not whole ({error}); evaluate again") from None

    def sections(self) -> tuple[str, ...]:
        """Return the sections in the order of the cells."""
        return tuple(dict.fromkeys(cell.section for cell in self.cells))

    def missing_metrics(self, score: str) -> list[str]:
        """Return the metrics that are not measured and that a score may belong to."""
        return [name for name in self.missing if score == name or score.startswith(f"{name}-")]

    def run_names(self) -> list[str]:
        """Return the runs, and the mean where there are several."""
        return [run.name for run in self.runs] + [MEAN_RUN] * (len(self.runs) > 1)

    def main_run(self) -> str:
        """Return the run of the headline: the mean where there are several."""
        return MEAN_RUN if len(self.runs) > 1 else self.runs[0].name


def write_results(path: Path, results: Results) -> None:
    """Write results in one step."""
    record = {"format": FORMAT, **asdict(results)}
    with replacing(path) as file:
        file.write(json.dumps(record, indent=1, allow_nan=False).encode() + b"\n")


def read_results(path: Path) -> Results:
    """Read results back; what is not whole is refused."""
    results = read_typed(Results, path, form=FORMAT, what="results file", hint="evaluate again")
    if not results.runs:
        raise BadInputError(f"{path} is not a whole results file (it has no runs); evaluate again")
    return results


def merge_results(many: Sequence[Results]) -> Results:
    """Put the methods, scores and runs of several results into one.

    Nothing is measured again, so adjusted p-values do not survive, nor, if the files have different
    runs, pairs and all of the mean over runs but value, delta and relative change. Facts stay that all
    files share.

    Raises:
        BadInputError: signatures, settings, the drafts of a run, or two numbers for one place differ.
    """
    if not many:
        raise BadInputError("there are no results to merge; name at least one results file")
    if len(many) == 1:
        return many[0]
    _check_settings([results.settings for results in many])
    runs = _merged_runs(many)
    same_runs = all({run.name for run in results.runs} == set(runs) for results in many)
    cells = _merged_cells(many, keep_means=same_runs)
    first, *others = many
    facts = {
        name: fact
        for name, fact in first.facts.items()
        if all(name in other.facts and _as_json(other.facts[name]) == _as_json(fact) for other in others)
    }
    scores = _union("score", "metric signatures", [results.scores for results in many])
    methods = _union("method", "selection signatures", [results.methods for results in many])
    merged = Results(
        cells=tuple(cells.values()),
        runs=tuple(runs.values()),
        scores=scores,
        missing={name: why for results in reversed(many) for name, why in results.missing.items()},
        methods=methods,
        headline=tuple(dict.fromkeys(score for results in many for score in results.headline)),
        settings=first.settings,
        facts=facts,
        pairs=_merged_pairs(many) if same_runs else (),
        subgroups=_merged_subgroups(many) if same_runs else (),
    )
    if len(runs) == 1 or any(cell.run == MEAN_RUN for cell in merged.cells):
        return merged
    return replace(merged, cells=(*merged.cells, *_mean_cells(merged)))


def _as_json(value: object) -> str:
    """Write a value as it is compared: a tuple is the list it is read back as."""
    return json.dumps(value, sort_keys=True)


def _check_settings(many: Sequence[Mapping[str, Any]]) -> None:
    """Refuse settings that differ, by the name that differs."""
    first, *others = ({**LATER_SETTINGS, **settings} for settings in many)
    for other in others:
        for name in dict.fromkeys([*first, *other]):
            there, here = (_as_json(settings.get(name)) for settings in (first, other))
            if there != here:
                raise BadInputError(
                    f"the setting {name!r} is {there} in one results file and {here} in another; "
                    "evaluate both with the same settings"
                )


def _union(kind: str, what: str, many: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Join signatures by name; a name with two of them is refused."""
    union: dict[str, str] = {}
    for signatures in many:
        for name, signature in signatures.items():
            if union.setdefault(name, signature) != signature:
                raise BadInputError(
                    f"the {kind} {name!r} has two {what}, {union[name]!r} and {signature!r}; "
                    "numbers of both cannot stand in one table: evaluate again under one of them"
                )
    return union


def _merged_runs(many: Iterable[Results]) -> dict[str, Run]:
    """Join the runs by name; a name of two sets of drafts is refused."""
    runs: dict[str, Run] = {}
    for run in (run for results in many for run in results.runs):
        known = runs.get(run.name, run)
        if replace(known, abstained={}) != replace(run, abstained={}):
            raise BadInputError(
                f"the run {run.name!r} is of other drafts in one results file than in another; "
                "evaluate both on the same queries file, or give the runs different names"
            )
        runs[run.name] = replace(run, abstained={**known.abstained, **run.abstained})
    return runs


def _merged_cells(many: Iterable[Results], *, keep_means: bool) -> dict[tuple[str, ...], Cell]:
    """Join the cells by place; two different numbers for one place are refused."""
    cells: dict[tuple[str, ...], Cell] = {}
    for cell in (replace(cell, holm=None, bh=None) for results in many for cell in results.cells):
        if cell.run == MEAN_RUN and not keep_means:
            continue
        place = (cell.run, cell.section, cell.method, cell.score)
        if cells.setdefault(place, cell) != cell:
            raise BadInputError(
                f"{cell.score} of {cell.method} in {cell.run} ({cell.section}) differs between two "
                "results files; evaluate again in one run"
            )
    return cells


def _merged_pairs(many: Iterable[Results]) -> tuple[PairedDifference, ...]:
    """Join the pairs by place; those of two files were not compared."""
    pairs = (replace(pair, holm=None) for results in many for pair in results.pairs)
    return tuple({(pair.section, pair.score, pair.method, pair.other): pair for pair in pairs}.values())


def _merged_subgroups(many: Iterable[Results]) -> tuple[Subgroup, ...]:
    """Join the subgroups by place, as pairs are."""
    rows = (replace(row, holm=None) for results in many for row in results.subgroups)
    places = {(row.by, row.group, row.section, row.score, row.method, row.other): row for row in rows}
    return tuple(places.values())


def _mean_cells(results: Results) -> Iterable[Cell]:
    """Yield the mean over runs of each method and score that every run has a number for."""
    places = {(c.section, c.method, c.score): None for c in results.cells}
    by_place = {(c.run, c.section, c.method, c.score): c for c in results.cells}
    means: dict[tuple[str, str, str], tuple[float, int]] = {}
    for section, method, score in places:
        found = [by_place.get((run.name, section, method, score)) for run in results.runs]
        values = [cell.value for cell in found if cell and cell.value is not None]
        if len(values) == len(results.runs):
            means[section, method, score] = sum(values) / len(values), sum(cell.n for cell in found if cell)
    for (section, method, score), (value, n) in means.items():
        random, _ = means.get((section, RANDOM, score), (None, 0))
        mean = Cell(run=MEAN_RUN, section=section, method=method, score=score, value=value, n=n)
        if method != RANDOM and random is not None:
            mean = replace(mean, delta=value - random, relative=(value - random) / random if random else None)
        yield mean
