"""The experiment file: everything that changes the experiment's files and numbers."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from tabon.errors import BadInputError
from tabon.method.nearest import ZeroPolicy

FILE = Path(__file__).with_name("experiment.toml")
SEEDS = re.compile(r"([0-9]+)(?:-([0-9]+))?")
T = TypeVar("T")
Kind = Literal["retrieved", "independent", "shared", "copies", "mixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """What all stages share."""

    reserved: int
    reserved_seed: int
    link_noise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """How many reports each part has; the draft pool has the rest."""

    bank: int
    valid: int
    test: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How drafts are made."""

    noise: float
    drafts: int
    kind: Kind = "retrieved"
    text_weight: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftKind:
    """A kind of drafts at two levels of noise, in pools of several sizes: settings named NAME-LEVEL-K."""

    low: float
    high: float
    drafts: tuple[int, ...]
    kind: Kind = "retrieved"
    text_weight: float = 0.0

    def settings(self, name: str) -> dict[str, Setting]:
        """Return the settings of all levels and sizes by name."""
        return {
            f"{name}-{level}-{count}": Setting(
                noise=noise, drafts=count, kind=self.kind, text_weight=self.text_weight
            )
            for count in self.drafts
            for level, noise in (("low", self.low), ("high", self.high))
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionPlan:
    """Who selects."""

    encoder: str
    neighbours: int
    zero: ZeroPolicy  # of the paper's methods
    paper: tuple[str, ...]  # DISTANCE/AGGREGATE
    rivals: tuple[str, ...]  # names of `tabon.selectors.load_scorer`, or fit:SELECTOR:SCORE,SCORE


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan:
    """What is measured beside the MeSH facts."""

    scores: tuple[str, ...]
    resamples: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The experiment file as a whole."""

    seeds: tuple[int, ...]
    splits: Splits
    stages: Mapping[str, Stage]
    settings: Mapping[str, Setting]
    kinds: Mapping[str, DraftKind]
    selection: SelectionPlan
    evaluation: EvaluationPlan

    def stage(self, name: str) -> Stage:
        """Return a stage by name."""
        return _named(self.stages, name, "stage")

    def setting(self, name: str) -> Setting:
        """Return a setting by name."""
        return _named({**self.settings, **self.kind_settings}, name, "setting")

    @property
    def kind_settings(self) -> dict[str, Setting]:
        """Return the settings of all kinds of drafts."""
        return {name: each for kind, part in self.kinds.items() for name, each in part.settings(kind).items()}


def read_plan(path: Path = FILE) -> Plan:
    """Read an experiment file; a key that is unknown or missing is named."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    parts = {
        "splits": _part(Splits, table.get("splits", {}), "[splits]"),
        "stages": {name: _part(Stage, part, f"[stages.{name}]") for name, part in table["stages"].items()},
        "settings": {
            name: _part(Setting, part, f"[settings.{name}]") for name, part in table["settings"].items()
        },
        "kinds": {name: _part(DraftKind, part, f"[kinds.{name}]") for name, part in table["kinds"].items()},
        "selection": _part(SelectionPlan, table.get("selection", {}), "[selection]"),
        "evaluation": _part(EvaluationPlan, table.get("evaluation", {}), "[evaluation]"),
    }
    return _part(Plan, {**table, **parts}, path.name)


def numbers(text: str) -> tuple[int, ...]:
    """Read seeds such as `1000-1004` or `1000,1003`.

    >>> numbers("7,1000-1002")
    (7, 1000, 1001, 1002)
    """
    found: list[int] = []
    for part in text.split(","):
        if not (seeds := SEEDS.fullmatch(part)):
            raise BadInputError(f"seeds are {text!r}; write them as 1000-1004 or 1000,1003")
        found += range(int(seeds[1]), int(seeds[2] or seeds[1]) + 1)
    return tuple(found)


def _part(kind: type[T], table: Mapping[str, Any], name: str) -> T:
    """Build one part; lists become tuples."""
    known = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]
    needed = {key for key, item in known.items() if item.default is MISSING}
    wrong = sorted(table.keys() - known) + sorted(needed - table.keys())
    if wrong:
        raise BadInputError(f"{name}: the key {wrong[0]!r} is unknown or missing; known: {', '.join(known)}")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})


def _named(table: Mapping[str, T], name: str, kind: str) -> T:
    """Look a part up, or name those that are there."""
    if name not in table:
        raise BadInputError(f"unknown {kind} {name!r}; known: {', '.join(table)}")
    return table[name]
