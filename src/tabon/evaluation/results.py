"""What an evaluation found, as values that are written once and tabled for ever.

Every number of every table and picture is read from here; nothing is measured
again. The file is JSON, the numbers are as measured (rounding is the tables').
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tabon._internal.atomic_files import replacing
from tabon._internal.typed_values import read_typed
from tabon.errors import BadInputError

FORMAT = "tabon-results/1"
RANDOM = "random"  # the exact expectation of a uniform pick
RANDOM_SEEDS = "random-seeds"  # the paper's: the mean of seeded uniform picks
ORACLE = "oracle"  # the best draft of each study, score by score
REFERENCES = (RANDOM, RANDOM_SEEDS, ORACLE)  # rows that are not selectors
MEAN_RUN = "mean"  # the unweighted mean over runs


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
    """One number: what one method's picks are worth in one run, section and score."""

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
    wins: int | None = None  # studies where the pick is worth more than the expected random one
    ties: int | None = None
    losses: int | None = None


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
