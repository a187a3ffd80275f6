"""An experiment file: everything that changes the tables, and nothing else.

A key that is not known is refused by name, so that a typing mistake cannot
quietly leave a default in force. Values are checked here too, before any step:
a mistake must not come to light after drafts were paid for.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from tabon._internal.registry import check_name, names_of
from tabon._internal.typed_values import MisfitError, check_keys, fitting
from tabon.data.simulate import SPLITS, SimulationSettings
from tabon.errors import BadInputError, TabonError
from tabon.generation.prompts import get_prompt
from tabon.generation.providers.command import words_of
from tabon.generation.providers.names import KINDS
from tabon.generation.runner import read_price
from tabon.method.distances import DISTANCES
from tabon.method.nearest import AGGREGATES, ZERO_POLICIES
from tabon.metrics import METRICS
from tabon.metrics.load import GROUP as METRIC_GROUP
from tabon.selectors import SELECTORS
from tabon.selectors.scorer import GROUP as SELECTOR_GROUP
from tabon.text.records import MAX_DRAFTS

FILE = "experiment.toml"
SIMULATED_PROMPTS = ("p1", "p2", "p3")
MOST_PATIENTS = 10_000_000
MOST_RESAMPLES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortPlan:
    """Where the transitions come from: a cohort folder, or simulated patients."""

    folder: str = ""  # relative to the experiment; made by `tabon cohort`
    patients: int = 0  # simulated instead, where it is above 0
    seed: int = 0
    split: str = "test"  # the split whose drafts are judged

    def __post_init__(self) -> None:
        """Refuse what names no cohort."""
        _check_range("patients", self.patients, 0, MOST_PATIENTS)
        _check_range("seed", self.seed, 0)
        check_name("split", SPLITS, self.split)

    def simulation(self) -> SimulationSettings:
        """Return the simulated patients."""
        return SimulationSettings(patients=self.patients, seed=self.seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """One set of drafts: a generator under a prompt."""

    name: str
    model: str
    prompt: str
    label: str = ""  # the model as the tables print it
    price: str = ""  # dollars per million tokens, INPUT,OUTPUT
    base_url: str = ""  # of an OpenAI-compatible server, or another address of a provider
    command: str = ""  # of a command:NAME model
    noise: float = 0.5  # of simulated drafts

    def __post_init__(self) -> None:
        """Refuse what cannot be asked for."""
        if not any(letter.isalnum() for letter in self.name):
            raise BadInputError("'name' has no letter or digit; give the run a name")
        _check_range("noise", self.noise, 0, 1)
        if self.price:
            read_price(self.price)
        words_of(self.command)

    @property
    def folder(self) -> str:
        """Return the name of its folder."""
        return "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in self.name).lower()

    def check(self, *, simulated: bool) -> None:
        """Refuse a prompt or a kind of model that there is not."""
        if not simulated:
            get_prompt(self.prompt)
            check_name("kind of model", tuple(KINDS), self.model.partition(":")[0])
        elif self.prompt not in SIMULATED_PROMPTS:
            raise BadInputError(f"run {self.name!r}: simulated drafts have the prompts p1, p2 and p3")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPlan:
    """How drafts are asked for."""

    samples: int = 5
    temperature: float = 1.0
    max_tokens: int = 512
    seed: int = 0
    cap: float = 0.0  # dollars that each journal may cost; 0 is no cap
    images: str = ""  # relative to the experiment

    def __post_init__(self) -> None:
        """Refuse what no model can be asked."""
        _check_range("samples", self.samples, 1, MAX_DRAFTS)
        _check_range("temperature", self.temperature, 0)
        _check_range("max_tokens", self.max_tokens, 1)
        _check_range("seed", self.seed, 0)
        _check_range("cap", self.cap, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionPlan:
    """The methods: every distance with every aggregation, and selectors beside them."""

    encoder: str = "minilm"
    distances: tuple[str, ...] = tuple(DISTANCES)
    aggregates: tuple[str, ...] = AGGREGATES
    neighbours: int = 10
    zero: str = "match"
    selectors: tuple[str, ...] = ()  # as `tabon select --selector` takes them

    def __post_init__(self) -> None:
        """Refuse methods that there are not; variants of selectors are tried before drafts are paid for."""
        _check_names("distance", tuple(DISTANCES), self.distances)
        _check_names("aggregation", AGGREGATES, self.aggregates)
        _check_range("neighbours", self.neighbours, 1)
        check_name("zero policy", ZERO_POLICIES, self.zero)
        for name in self.selectors:
            check_name("selector", names_of(SELECTORS, SELECTOR_GROUP), name.partition(":")[0])
        if len(set(self.selectors)) < len(self.selectors):
            raise BadInputError("the list of selectors names one twice; name each once")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan:
    """What is measured and how often it is resampled."""

    metrics: tuple[str, ...]
    models: Mapping[str, str] = field(default_factory=dict)  # metric: folder of its files
    resamples: int = 10_000
    seed: int = 0
    random_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)

    def __post_init__(self) -> None:
        """Refuse what cannot be measured, or gives no interval."""
        _check_names("metric", names_of(METRICS, METRIC_GROUP), self.metrics)
        for name in self.models:
            check_name("metric of this experiment", self.metrics, name)
        _check_range("resamples", self.resamples, 1, MOST_RESAMPLES)
        _check_range("seed", self.seed, 0)
        if not self.random_seeds:
            raise BadInputError("'random_seeds' is empty; give whole numbers from 0")
        _check_range("random_seeds", min(self.random_seeds), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPlan:
    """What the tables and pictures show."""

    columns: Mapping[str, str]  # heading: score
    per_run: str = "novelty/min"  # the method of the per-run tables
    deltas: tuple[str, ...] = ()  # headings of the delta tables
    curve: str = ""  # heading of the K- and k-curves
    neighbours: tuple[int, ...] = ()  # the points of the k-curve
    compare: bool = False  # with the paper's printed values

    def __post_init__(self) -> None:
        """Refuse headings that are no columns."""
        for heading in (*self.deltas, *filter(None, [self.curve])):
            check_name("heading of the columns", tuple(self.columns), heading)
        for k in self.neighbours:
            _check_range("neighbours", k, 1)


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
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    return _experiment(text, root=path.parent, name=str(path))


def simulated_experiment() -> Experiment:
    """Return the embedded one: nine runs of simulated drafts, offline."""
    text = files("tabon.reporting.experiment").joinpath("simulated.toml").read_text(encoding="utf-8")
    return _experiment(text, root=Path(), name="the embedded experiment")


def _experiment(text: str, *, root: Path, name: str) -> Experiment:
    """Build an experiment from TOML."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInputError(f"{name} is not TOML ({error}); mend that line") from None
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        raise BadInputError(f"{name} is not TOML that can be read; flatten it") from None
    try:
        check_keys(table, ("title", *PARTS))
        found = {key: fitting(kind, table.get(key, {}), key) for key, kind in PARTS.items() if key != "runs"}
        experiment = Experiment(
            title=fitting(str, table.get("title", root.name), "title"),
            root=root,
            runs=fitting(PARTS["runs"], table.get("runs", []), "runs"),
            **found,
        )
    except MisfitError as error:
        raise BadInputError(f"{name}: {error}; mend it") from None
    except TabonError as error:
        raise BadInputError(f"{name}: {error}") from None
    _check_whole(experiment, name)
    return experiment


PARTS: Mapping[str, Any] = {
    "cohort": CohortPlan,
    "runs": tuple[RunPlan, ...],
    "drafts": DraftPlan,
    "selection": SelectionPlan,
    "evaluation": EvaluationPlan,
    "report": ReportPlan,
}


def _check_whole(experiment: Experiment, name: str) -> None:
    """Refuse parts that do not go together."""
    folders = [run.folder for run in experiment.runs]
    if not folders:
        raise BadInputError(f"{name} has no [[runs]]; add one for each model and prompt")
    if len(set(folders)) < len(folders):
        raise BadInputError(f"{name} has two runs of one name; give each its own")
    if not experiment.report.columns:
        raise BadInputError(f"{name} [report] has no columns; add a heading and its score")
    try:
        for run in experiment.runs:
            run.check(simulated=experiment.cohort.patients > 0)
    except TabonError as error:
        raise BadInputError(f"{name}: {error}") from None


def _check_range(key: str, value: float, least: float, most: float = float("inf")) -> None:
    """Refuse a number outside its range."""
    if not least <= value <= most:
        bound = f"from {least} to {most}" if most < float("inf") else f"from {least}"
        raise BadInputError(f"{key!r} is {value}; give a number {bound}")


def _check_names(kind: str, known: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Refuse an empty list, a name that is not known, and one that is there twice."""
    for name in names:
        check_name(kind, known, name)
    if not names or len(set(names)) < len(names):
        raise BadInputError(f"the list of {kind}s is empty or names one twice; name each once")
