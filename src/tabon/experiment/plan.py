"""An experiment file: everything that changes the tables, and nothing else.

A key that is not known is refused by name, so that a typing mistake cannot
quietly leave a default in force.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from tabon.distances import DISTANCES
from tabon.errors import BadInputError
from tabon.scoring import AGGREGATES

FILE = "experiment.toml"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortPlan:
    """Where the transitions come from: a cohort folder, or simulated patients."""

    folder: str = ""  # relative to the experiment; made by `tabon cohort`
    patients: int = 0  # simulated instead, where it is above 0
    seed: int = 0
    split: str = "test"  # the split whose drafts are judged


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """One set of drafts: a generator under a prompt."""

    name: str
    model: str
    prompt: str
    label: str = ""  # the model as the tables print it
    price: str = ""  # dollars per million tokens, INPUT,OUTPUT
    base_url: str = ""  # of an OpenAI-compatible server, or another door of a provider
    command: str = ""  # of a command:NAME model
    noise: float = 0.5  # of simulated drafts

    @property
    def folder(self) -> str:
        """Return the name of its folder."""
        return "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in self.name).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPlan:
    """How drafts are asked for."""

    samples: int = 5
    temperature: float = 1.0
    max_tokens: int = 512
    seed: int = 0
    cap: float = 0.0  # dollars that each journal may cost; 0 is no cap
    images: str = ""  # relative to the experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionPlan:
    """The methods: every distance with every aggregation."""

    encoder: str = "minilm"
    distances: tuple[str, ...] = tuple(DISTANCES)
    aggregates: tuple[str, ...] = AGGREGATES
    neighbours: int = 10
    zero: str = "neutral"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan:
    """What is measured and how often it is resampled."""

    metrics: tuple[str, ...]
    models: Mapping[str, str] = field(default_factory=dict)  # metric: folder of its files
    resamples: int = 10_000
    seed: int = 0
    random_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPlan:
    """What the tables and pictures show."""

    columns: Mapping[str, str]  # heading: score
    per_run: str = "novelty/min"  # the method of the per-run tables
    deltas: tuple[str, ...] = ()  # headings of the delta tables
    curve: str = ""  # heading of the K- and k-curves
    neighbours: tuple[int, ...] = ()  # the points of the k-curve
    compare: bool = False  # with the paper's printed values


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment."""

    title: str
    root: Path
    cohort: CohortPlan
    runs: tuple[RunPlan, ...]
    drafts: DraftPlan
    selection: SelectionPlan
    evaluation: EvaluationPlan
    report: ReportPlan


def read_experiment(folder: Path) -> Experiment:
    """Read the experiment file of a folder."""
    path = folder / FILE if folder.is_dir() else folder
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}); name a folder with {FILE}") from None
    return _experiment(text, root=path.parent, name=str(path))


def simulated_experiment() -> Experiment:
    """Return the embedded one: nine runs of simulated drafts, offline."""
    text = files("tabon.experiment").joinpath("simulated.toml").read_text(encoding="utf-8")
    return _experiment(text, root=Path(), name="the embedded experiment")


def _experiment(text: str, *, root: Path, name: str) -> Experiment:
    """Build an experiment from TOML."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(f"{name} is not TOML ({error}); mend that line") from None
    known = {item.name for item in fields(Experiment)} - {"root"}
    _check_keys(table, known, name)
    runs = table.get("runs")
    if not isinstance(runs, list) or not runs:
        raise BadInputError(f"{name} has no [[runs]]; add one for each model and prompt")
    return Experiment(
        title=str(table.get("title", root.name)),
        root=root,
        cohort=_part(CohortPlan, table.get("cohort", {}), f"{name} [cohort]"),
        runs=tuple(_part(RunPlan, run, f"{name} [[runs]]") for run in runs),
        drafts=_part(DraftPlan, table.get("drafts", {}), f"{name} [drafts]"),
        selection=_part(SelectionPlan, table.get("selection", {}), f"{name} [selection]"),
        evaluation=_part(EvaluationPlan, table.get("evaluation", {}), f"{name} [evaluation]"),
        report=_part(ReportPlan, table.get("report", {}), f"{name} [report]"),
    )


def _part(kind: type[T], table: object, name: str) -> T:
    """Build one part; lists become tuples, a key or a type that does not fit is refused."""
    if not isinstance(table, dict):
        raise BadInputError(f"{name} is not a table; write keys and values under it")
    known = {item.name: item for item in fields(kind)}  # type: ignore[arg-type]
    _check_keys(table, set(known), name)
    for key, item in known.items():
        if key not in table and item.default is MISSING and item.default_factory is MISSING:
            raise BadInputError(f"{name} has no key {key!r}; add it")
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    for key, value in values.items():
        _check_type(getattr(known[key].type, "__name__", ""), value, f"{name} {key!r}")
    return kind(**values)


def _check_keys(table: Mapping[str, Any], known: set[str], name: str) -> None:
    """Refuse a key that means nothing."""
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
            raise BadInputError(f"{name} has the unknown key {key!r}; {meant}")


def _check_type(kind: str, value: object, name: str) -> None:
    """Refuse a value of another kind than the annotation says."""
    fitting: dict[str, tuple[type, ...]] = {
        "str": (str,), "int": (int,), "float": (int, float), "bool": (bool,),
    }  # fmt: skip
    wanted = fitting.get(kind, (tuple, dict))
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted != (bool,)):
        raise BadInputError(
            f"{name} is of the wrong kind; give {kind if kind in fitting else 'a list or a table'}"
        )
