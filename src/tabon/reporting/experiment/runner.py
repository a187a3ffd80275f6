"""Run, or go on with, everything an experiment needs, up to its results.

Each step writes one file in one move and is skipped if that file was made from the
same inputs, so a run that was stopped goes on where it was.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from typing import Any

from tabon._internal.atomic_files import replacing
from tabon._internal.typed_values import fitting
from tabon.data.simulate import SPLITS, simulate_queries, simulate_transitions
from tabon.encoders import Encoder, load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import BadInputError
from tabon.evaluation.curves import picks_by_neighbours
from tabon.evaluation.results import Results, read_results, write_results
from tabon.method.bank import TransitionBank
from tabon.method.distances import distance_name
from tabon.method.sentence_sets import Progress
from tabon.reporting.experiment.evaluation import judge, metrics_of
from tabon.reporting.experiment.plan import Experiment, RunPlan, SelectionPlan
from tabon.reporting.tables.cohort import CohortSplit
from tabon.selectors import Selector
from tabon.selectors.scorer import load_scorer
from tabon.text.records import Query, read_query_lines, read_transitions, whole_query

RESULTS, JOURNAL = "results.json", "drafts.jsonl"


class Steps:
    """A ledger of made files beside them."""

    def __init__(
        self, folder: Path, *, total: int = 0, on_progress: Callable[[str], None] = lambda _: None
    ) -> None:
        """Read the ledger; one that cannot be read only means that steps run again.

        `on_progress` is called with each step that runs, and its number of `total`.
        """
        self._total, self._on_progress = total, on_progress
        self._done = self._skipped = 0
        self._path = folder / "steps.json"
        self._folder = folder
        try:
            self._made: dict[str, str] = dict(json.loads(self._path.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError):
            self._made = {}

    def make(self, output: Path, inputs: object, work: Callable[[], None]) -> bool:
        """Run `work` unless it made `output` from the same inputs before; say whether it ran."""
        name = output.relative_to(self._folder).as_posix()
        key = hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()
        if self._made.get(name) == self._stamp(output, key):
            self._skipped += 1
            return False
        self._done += 1
        skipped = f", {self._skipped} skipped" if self._skipped else ""
        self._on_progress(f"step {self._done + self._skipped} of {self._total}{skipped}: {name}")
        work()
        self._made[name] = self._stamp(output, key)
        with replacing(self._path) as file:
            file.write(json.dumps(self._made, indent=1, sort_keys=True).encode() + b"\n")
        return True

    @staticmethod
    def _stamp(output: Path, key: str) -> str:
        """Return what the ledger holds: the inputs and the bytes that came out."""
        return f"{key}:{file_digest(output)}" if output.exists() else ""


def file_digest(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What the outside gives: drafts that must be generated, a place for embeddings, a progress callback."""

    write_drafts: Callable[[RunPlan, Path], None] | None = None  # of a run, to a queries file
    store: SentenceStore | None = None
    progress: Progress | None = None
    on_progress: Callable[[str], None] = lambda _: None
    limit: int | None = None  # the first studies of the split alone, for a trial


def reproduce(experiment: Experiment, out: Path, dependencies: Dependencies) -> Results:
    """Run what is missing and return the results, which are in `out` too."""
    out.mkdir(parents=True, exist_ok=True)
    return Reproduction(experiment, out, dependencies).results()


def step_count(experiment: Experiment) -> int:
    """Count the files that an experiment makes: bank and results; of simulated patients more."""
    simulated = bool(experiment.cohort.patients)
    curves = len(experiment.selection.distances) if experiment.report.neighbours else 0
    each = simulated + len(methods_of(experiment.selection)) + curves
    return 2 + 2 * simulated + len(experiment.runs) * each


def methods_of(plan: SelectionPlan) -> tuple[str, ...]:
    """Return every method as the tables call it: the paper's grid, then the selectors beside it."""
    return (*map("/".join, product(plan.distances, plan.aggregates)), *plan.selectors)


class Reproduction:
    """One experiment on its way: the files that it makes, in order."""

    def __init__(self, experiment: Experiment, out: Path, dependencies: Dependencies) -> None:
        """Look at what is there already."""
        self.experiment, self.out, self.dependencies = experiment, out, dependencies
        self.steps = Steps(out, total=step_count(experiment), on_progress=dependencies.on_progress)

    def results(self) -> Results:
        """Make everything up to the results."""
        metrics, missing = metrics_of(self.experiment)
        for run in self.experiment.runs:
            self._make_queries(run)
        selections = {run: self._make_selections(run) for run in self.experiment.runs}
        curves = {run: self._make_neighbour_picks(run) for run in self.experiment.runs}
        inputs = {
            "files": [file_digest(path) for made in selections.values() for path in made.values()],
            "queries": [file_digest(self.queries(run)) for run in self.experiment.runs],
            "metrics": [metric.signature for metric in metrics],
            "missing": missing,
            "plan": [asdict(self.experiment.evaluation), asdict(self.experiment.report)],
            "runs": [[run.name, run.label] for run in self.experiment.runs],
            "cohort": [asdict(split) for split in self.cohort],
        }
        path = self.out / RESULTS

        def work() -> None:
            made = judge(self, metrics, missing, selections, curves)
            write_results(path, made)

        self.steps.make(path, inputs, work)
        return read_results(path)

    @cached_property
    def encoder(self) -> Encoder:
        """Load the encoder once."""
        return load_encoder(self.experiment.selection.encoder)

    @cached_property
    def bank(self) -> TransitionBank:
        """Build the bank from the training split, or load it."""
        path, transitions = self.out / "bank.tabon", self._transitions()

        def build() -> None:
            with transitions.open("rb") as lines:
                TransitionBank.build(
                    read_transitions(lines, name=str(transitions)),
                    encoder=self.encoder,
                    store=self.dependencies.store,
                    progress=self.dependencies.progress,
                ).save(path)

        self.steps.make(path, [file_digest(transitions), self.experiment.selection.encoder], build)
        return TransitionBank.load(path)

    def _transitions(self) -> Path:
        """Return the training transitions: simulated, or of a cohort folder that must be there."""
        cohort = self.experiment.cohort
        if cohort.patients:
            path = self.out / "train.jsonl"
            records = simulate_transitions(self.experiment.cohort.simulation(), "train")
            self.steps.make(path, asdict(cohort), lambda: write_lines(path, records))
            return path
        path = self.experiment.root / cohort.folder / "train" / "transitions.jsonl"
        if not path.exists():
            raise BadInputError(
                f"{path} is not there; make the cohort first (tabon cohort --help) "
                f"with --out {self.experiment.root / cohort.folder}"
            )
        return path

    @cached_property
    def cohort(self) -> tuple[CohortSplit, ...]:
        """Return the counts of each split: of simulated patients, or as the cohort's audit has them."""
        cohort = self.experiment.cohort
        if not cohort.patients:
            return read_audit(self.experiment.root / cohort.folder / "audit.json")
        path = self.out / "cohort.jsonl"
        self.steps.make(
            path, asdict(cohort), lambda: write_lines(path, map(asdict, self._simulated_splits()))
        )
        return tuple(CohortSplit(**json.loads(line)) for line in path.read_bytes().splitlines())

    def _simulated_splits(self) -> Iterator[CohortSplit]:
        """Count the simulated patients of each split."""
        for split in SPLITS:
            records = simulate_transitions(self.experiment.cohort.simulation(), split)
            found = Counter(str(record["patient"]) for record in records)
            pairs = found.total()
            yield CohortSplit(split=split, patients=len(found), visits=pairs + len(found), transitions=pairs)

    def queries(self, run: RunPlan) -> Path:
        """Return where a run's queries lie."""
        return self.out / "runs" / run.folder / "queries.jsonl"

    def _make_queries(self, run: RunPlan) -> None:
        """Write a run's queries: simulated ones here, generated ones by the caller."""
        path, cohort = self.queries(run), self.experiment.cohort
        if cohort.patients:
            drafts = replace(
                self.experiment.cohort.simulation(),
                prompt=run.prompt,  # type: ignore[arg-type]
                noise=run.noise,
                num_candidates=self.experiment.drafts.samples,
            )
            records = islice(simulate_queries(drafts, cohort.split), self.dependencies.limit)  # type: ignore[arg-type]
            named = ({**record, "model": run.model, "prompt": run.prompt} for record in records)
            inputs: list[Any] = [
                asdict(cohort),
                asdict(replace(run, label="")),
                asdict(self.experiment.drafts),
            ]
            inputs += [self.dependencies.limit] if self.dependencies.limit else []
            self.steps.make(path, inputs, lambda: write_lines(path, named))
        elif self.dependencies.write_drafts is not None:
            if not path.exists():
                for name in self._methods:  # what no method can work with is refused before paying
                    self._method(name)
            self.dependencies.on_progress(f"drafts of {run.name}")
            self.dependencies.write_drafts(run, path)  # its journal knows what is missing
        if not path.exists():
            raise BadInputError(
                f"{path} is not there; write the drafts of {run.name!r} with `tabon generate`"
            )

    def read_queries(self, run: RunPlan) -> list[Query]:
        """Read a run's queries."""
        with self.queries(run).open("rb") as lines:
            found = read_query_lines(lines)
            return [whole_query(query, name=str(self.queries(run))) for query in found]

    @cached_property
    def _methods(self) -> tuple[str, ...]:
        """Return every method as the tables call it: the paper's grid, then the selectors beside it."""
        return methods_of(self.experiment.selection)

    def _method(self, name: str) -> Selector:
        """Return one of the methods."""
        plan = self.experiment.selection
        if name in plan.selectors:
            return Selector(self.bank, name, encoder=self.encoder, store=self.dependencies.store)
        distance, aggregate = name.split("/")
        return self._transition(distance, aggregate, plan.neighbours)

    def _transition(self, distance: str, aggregate: str, neighbours: int) -> Selector:
        """Return one of the paper's methods."""
        return Selector(
            self.bank,
            distance=distance_name(distance),
            aggregate=aggregate,  # type: ignore[arg-type]
            num_neighbours=neighbours,
            zero=self.experiment.selection.zero,  # type: ignore[arg-type]
            encoder=self.encoder,
            store=self.dependencies.store,
        )

    def _make_selections(self, run: RunPlan) -> dict[str, Path]:
        """Select with every method; return each method's file."""
        made = {}
        for name in self._methods:
            path = self.queries(run).with_name(f"{re.sub(r'[^A-Za-z0-9.]+', '-', name)}.jsonl")

            def choose(path: Path = path, name: str = name) -> None:
                queries = self.read_queries(run)
                pairs = zip(queries, self._method(name).select_many(queries), strict=True)
                write_lines(path, (selection.as_record(query.id) for query, selection in pairs))

            self.steps.make(path, self._selection_inputs(run, name), choose)
            made[name] = path
        return made

    def _make_neighbour_picks(self, run: RunPlan) -> dict[str, Path]:
        """Write the picks of every distance under every number of neighbours of the k-curve."""
        counts = [k for k in self.experiment.report.neighbours if k <= len(self.bank)]
        made: dict[str, Path] = {}
        for distance in self.experiment.selection.distances if counts else ():
            path = self.queries(run).with_name(f"neighbours-{distance}.jsonl")

            def choose(path: Path = path, distance: str = distance) -> None:
                selector = self._transition(distance, "knn", max(counts))
                write_lines(path, picks_by_neighbours(selector, self.read_queries(run), counts))

            self.steps.make(path, [self._selection_inputs(run, f"{distance}/knn"), counts], choose)
            made[distance] = path
        return made

    def _selection_inputs(self, run: RunPlan, name: str) -> list[Any]:
        """Return what changes a run's selections."""
        plan, made_from = self.experiment.selection, [file_digest(self.queries(run)), self.bank.sha256]
        if name in plan.selectors:
            return [*made_from, name, dict(load_scorer(name, self.bank).settings)]
        return [*made_from, *name.split("/"), plan.neighbours, plan.zero]


def read_audit(path: Path) -> tuple[CohortSplit, ...]:
    """Read the counts of each split from a cohort's audit; nothing where it has none."""
    try:
        splits = json.loads(path.read_bytes())["splits"]
        return tuple(
            CohortSplit(
                split=split,
                **{name: fitting(int, counts[name]) for name in ("patients", "visits", "transitions")},
            )
            for split, counts in splits.items()
        )
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise BadInputError(f"{path} is not a whole audit; make the cohort again") from None


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON Lines in one step."""
    with replacing(path) as file:
        for record in records:
            file.write(json.dumps(record).encode() + b"\n")
