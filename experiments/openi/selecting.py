"""Every selector on one seed's queries, with the right prior and with another patient's."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np
from plan import SelectionPlan

import tabon
from tabon.encoders import Encoder, load_encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import TabonError
from tabon.evaluation import Cases, read_cases
from tabon.method.bank import TransitionBank
from tabon.method.distances import DISTANCES
from tabon.method.selection import Selection
from tabon.metrics import load_scores
from tabon.reporting.experiment.runner import Steps, file_digest, write_lines
from tabon.selectors import Selector
from tabon.text.records import Query, read_transitions

PRIOR_FREE = frozenset(
    {"report-space", "consensus", "modex", "longest", "shortest", "first", "random", "log-probability"}
)  # what does not look at the prior has no control
NOT_HERE = (TabonError, ImportError, AttributeError)  # a selector, or what it needs, that is not installed
FIT = "fit"  # fit:SELECTOR:SCORE,SCORE is a selector with weights learnt on valid.jsonl
CODE = ("method/*", "metrics/overlap", "selectors/**/*", "text/*")  # what selections are made by
OnProgress = Callable[[str], None]


class Chooser(Protocol):
    """What `Selector` and `Selector` share."""

    @property
    def signature(self) -> str:
        """Return all that changes its picks."""

    def select_many(self, queries: Sequence[Query]) -> list[Selection]:
        """Choose for many queries."""


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the table."""

    selector: str
    other_prior: bool = False  # the control: another patient's prior

    @property
    def name(self) -> str:
        """Return what the table calls it."""
        return f"{self.selector} [other prior]" if self.other_prior else self.selector

    @property
    def file(self) -> str:
        """Return the name of its selections file."""
        letters = "".join(letter if letter.isalnum() or letter == "-" else "_" for letter in self.selector)
        return f"{'other-prior' if self.other_prior else 'prior'}/{letters}.jsonl"


def methods(selectors: Sequence[str]) -> Iterator[Method]:
    """Yield every selector, and its control where it looks at the prior."""
    for selector in selectors:
        yield Method(selector)
        if selector.partition(":")[0] not in PRIOR_FREE:
            yield Method(selector, other_prior=True)


class Tools:
    """What all seeds share: the encoder, its store of embeddings, and an ear."""

    def __init__(self, plan: SelectionPlan, store: Path, on_progress: OnProgress) -> None:
        """Open the store; the encoder is loaded on first use."""
        self.plan, self.on_progress = plan, on_progress
        self.store = SentenceStore(store)

    @cached_property
    def encoder(self) -> Encoder:
        """Load the encoder once."""
        return load_encoder(self.plan.encoder)


class SeedRun:
    """One seed's files; each step is skipped where it was made from the same inputs."""

    def __init__(self, folder: Path, seed: int, tools: Tools) -> None:
        """Look at what is there already."""
        self.folder, self.seed, self.tools = folder, seed, tools
        self._steps = Steps(folder)

    @cached_property
    def bank(self) -> TransitionBank:
        """Build the bank from train.jsonl, or load it."""
        path, train = self.folder / "bank.tabon", self.folder / "train.jsonl"

        def build() -> None:
            self.tools.on_progress(f"{self.folder}: building the bank")
            with train.open("rb") as lines:
                transitions = read_transitions(lines, name=str(train))
                built = TransitionBank.build(transitions, encoder=self.tools.encoder, store=self.tools.store)
            built.save(path)

        self._steps.make(path, [file_digest(train), self.tools.plan.encoder], build)
        return TransitionBank.load(path)

    @cached_property
    def cases(self) -> Cases:
        """Read test.jsonl."""
        with (self.folder / "test.jsonl").open("rb") as lines:
            return read_cases(lines, name=str(self.seed))

    @cached_property
    def queries(self) -> list[Query]:
        """Return the queries of test.jsonl."""
        return [case.query for case in self.cases.cases]

    def chooser(self, name: str) -> Chooser:
        """Return one of the paper's methods (DISTANCE/AGGREGATE), or a rival by its name."""
        distance, _, aggregate = name.partition("/")
        shared = {"encoder": self.tools.encoder, "store": self.tools.store}
        if distance not in DISTANCES:
            loaded = self._fitted(name) if name.startswith(f"{FIT}:") else name
            return Selector(self.bank, loaded, **shared)
        plan = self.tools.plan
        named = {"distance": distance, "aggregate": aggregate, "zero": plan.zero}
        return Selector(self.bank, num_neighbours=plan.neighbours, **named, **shared)

    def _fitted(self, name: str) -> str:
        """Learn weights on valid.jsonl; return the name of the selector that uses them."""
        _, selector, targets = name.split(":")
        path, valid = self.folder / "fitted" / f"{selector}-{targets}.json", self.folder / "valid.jsonl"

        def work() -> None:
            from tabon.evaluation.fit import read_lesson
            from tabon.selectors.weights import write_weights

            self.tools.on_progress(f"{self.folder}: {name}")
            with valid.open("rb") as lines:
                cases = read_cases(lines, name=str(valid)).cases
            metrics = {name: metric for name, (metric, _) in load_scores(targets.split(",")).items()}
            tools = {"encoder": self.tools.encoder, "store": self.tools.store}
            write_weights(path, read_lesson(selector, self.bank, cases, metrics, **tools).fit())

        self._steps.make(path, [file_digest(valid), self.bank.sha256, name, code_digest()], work)
        return f"{selector}:{path}"

    def select(self, method: Method, chooser: Chooser) -> Path:
        """Write the selections of one method, in the contract of `tabon select`."""
        path = self.folder / "selections" / method.file

        def work() -> None:
            self.tools.on_progress(f"{self.folder}: {method.name}")
            queries = others_priors(self.queries, self.seed) if method.other_prior else self.queries
            found = zip(queries, chooser.select_many(queries), strict=True)
            write_lines(path, (selection.as_record(query.id) for query, selection in found))

        inputs = [self.cases.sha256, chooser.signature, method.name, self.seed, code_digest()]
        self._steps.make(path, inputs, work)
        return path


@cache
def code_digest() -> str:
    """Return the sha256 of the code that selects: a signature does not change when a mistake is mended."""
    root = Path(tabon.__file__).parent
    files = sorted(file for pattern in CODE for file in root.glob(f"{pattern}.py"))
    return sha256("".join(map(file_digest, files)).encode()).hexdigest()


def others_priors(queries: Sequence[Query], seed: int) -> list[Query]:
    """Give each query the prior of another: the next on one seeded tour of all, so nobody keeps their own."""
    tour = np.random.default_rng(seed).permutation(len(queries))
    giver = np.empty_like(tour)
    giver[tour] = np.roll(tour, 1)
    return [
        replace(query, prior=queries[other].prior, earlier=queries[other].earlier)
        for query, other in zip(queries, giver, strict=True)
    ]


def loadable(run: SeedRun, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the selectors that are here, and why the others are not."""
    there, missing = [], {}
    for name in names:
        try:
            run.chooser(name)
            there.append(name)
        except NOT_HERE as error:
            missing[name] = str(error)
    return there, missing
