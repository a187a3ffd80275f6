"""An evaluation to look at in Python: printed, in a notebook, as a frame, as a picture."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from tabon._internal.registry import check_name
from tabon.data.imports.source_rows import Rows, read_rows
from tabon.errors import BadInputError
from tabon.evaluation import EvaluationSettings, Picks, RunInput
from tabon.evaluation import evaluate as evaluate_runs
from tabon.evaluation.evaluate import check_scores
from tabon.evaluation.inputs import cases_of, check_picks
from tabon.evaluation.outside_scores import read_scores
from tabon.evaluation.results import REFERENCES, PairedDifference, Results, read_results, write_results
from tabon.method.selection import Selection
from tabon.metrics import DEFAULT_METRICS, Metric, load_metrics
from tabon.reporting.experiment.files import is_first, plan_of, tables_of
from tabon.reporting.plots import Picture, pictures
from tabon.reporting.tables import Table, pair_sentence, render
from tabon.reporting.tables.places import section_name, slug
from tabon.text.records import Query
from tabon.text.reports import Section

FrameKind = Literal["pandas", "polars"]
NAME = "the queries"  # in messages


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Two selectors against each other in every section; made by `Evaluation.compare`.

    Args:
        method: the one whose lead is given.
        other: the one it is compared with.
        pairs: differences with intervals and p-values, tested over all pairs of the evaluation.
    """

    method: str
    other: str
    pairs: tuple[PairedDifference, ...]

    def __repr__(self) -> str:
        """Name the two."""
        return f"Comparison({self.method!r}, {self.other!r}, differences={len(self.pairs)})"

    def __str__(self) -> str:
        """Say who is ahead, a sentence for each score and section."""
        return "\n".join(map(pair_sentence, self.pairs))

    def _repr_html_(self) -> str:
        """Show the sentences in a notebook."""
        return "".join(f"<p>{escape(pair_sentence(pair))}</p>" for pair in self.pairs)

    def to_frame(self, kind: FrameKind = "pandas") -> Any:  # noqa: ANN401  # a frame of either library
        """Return a frame with a row for each score and section.

        Args:
            kind: the library to make it with, which must be installed.
        """
        return _frame([asdict(pair) for pair in self.pairs], kind)


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """How good selections are, beside a random pick and the best draft each time; made by `evaluate`.

    Args:
        results: every number, as `tabon evaluate` writes them.

    >>> from tabon.data.in_memory import simulate
    >>> queries = simulate(patients=120).queries
    >>> first = [Selection(selected=0) for _ in queries]
    >>> found = evaluate(queries, {"first": first, "same": first}, metrics=["labels"], resamples=20)
    >>> found
    Evaluation(selectors=['first', 'same'], scores=9, studies=8)
    >>> print(found.compare("first", "same"))  # doctest: +ELLIPSIS
    Findings: first and same do not differ in Labels-14 micro F1 (Holm's p = 1).
    ...
    """

    results: Results

    def __repr__(self) -> str:
        """Name the selectors and count the rest."""
        results = self.results
        counts = f"scores={len(results.scores)}, studies={results.runs[0].studies}"
        return f"Evaluation(selectors={list(results.methods)}, {counts})"

    def __str__(self) -> str:
        """Write the headline tables as aligned columns."""
        return "\n".join(render(table, "text") for table in self.tables())

    def _repr_html_(self) -> str:
        """Show the headline tables in a notebook."""
        return "\n".join(render(table, "html") for table in self.tables())

    def tables(self) -> tuple[Table, ...]:
        """Return the headline tables and selectors against each other, to be rendered in any form."""
        return tuple(filter(is_first, tables_of(self.results, plan_of(self.results)[0])))

    def compare(self, method: str, other: str) -> Comparison:
        """Put two selectors side by side.

        Args:
            method: a name that `evaluate` was given.
            other: another one.
        """
        for name in (method, other):
            check_name("selector of the evaluation", tuple(self.results.methods), name)
        pairs = [
            pair if pair.method == method else _turned(pair)
            for pair in self.results.pairs
            if {pair.method, pair.other} == {method, other}
        ]
        if not pairs:
            raise BadInputError(f"{method!r} and {other!r} were not compared; name two selectors")
        return Comparison(method, other, tuple(pairs))

    def to_frame(self, kind: FrameKind = "pandas") -> Any:  # noqa: ANN401  # a frame of either library
        """Return a frame with a row for each section, method and score, unrounded.

        Args:
            kind: the library to make it with, which must be installed.
        """
        run = self.results.main_run()
        return _frame([asdict(cell) for cell in self.results.cells if cell.run == run], kind)

    def plot(self, section: Section | Literal["report"] | None = None) -> Picture:
        """Draw each selector's gain over a random pick; `drawing.saved("pdf")` gives a file.

        Args:
            section: whose scores; the first that is measured if it is left out.
        """
        wanted = f"gains-{slug(section_name(section or self.results.sections()[0]))}"
        for picture in pictures(self.results, plan_of(self.results)[0].columns):
            if picture.name == wanted:
                return picture
        raise BadInputError(f"no headline score of {section!r} is measured; name another section")

    @classmethod
    def load(cls, path: str | Path) -> "Evaluation":
        """Read what `save`, `tabon evaluate` or `tabon compare` wrote.

        Args:
            path: the results file.
        """
        return cls(read_results(Path(path)))

    def save(self, path: str | Path) -> None:
        """Write everything as JSON, for `tabon table`.

        Args:
            path: the file.
        """
        write_results(Path(path), self.results)


def evaluate(  # noqa: PLR0913  # two inputs, and five that have defaults
    queries: Sequence[Query],
    selections: Mapping[str, Sequence[Selection]],
    *,
    metrics: Sequence[str | Metric] = DEFAULT_METRICS,
    headline: Sequence[str] = (),
    scores: Rows | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> Evaluation:
    """Measure what selections are worth against what was really written, as `tabon compare` does.

    Args:
        queries: with references; those without are left out.
        selections: of each selector, by a name for it, one for each query in order.
        metrics: names of metrics, or metrics; what cannot be measured here is in `results.missing`.
        headline: the scores to look at first and to test; a usual few if it is left out.
        scores: a table of scores from elsewhere, such as a judge model's, with a row for each draft and
            score: `id` (a query's), `draft` (from 0), `name`, `value`, `direction` (`higher` or `lower`).
        resamples: of patients, for the intervals, and swaps for the p-values.
        seed: draws them.

    Raises:
        BadInputError: selections do not belong to the queries, or no query has a reference.

    >>> query = Query(prior="Clear.", candidates=["Clear lungs.", "Effusion."], reference="New effusion.")
    >>> picked = {"last": [Selection(selected=1)], "first": [Selection(selected=0)]}
    >>> found = evaluate([query], picked, metrics=["rouge"], resamples=10)
    >>> cell = found.results.cell(run="drafts", section="findings", method="last", score="rouge-l-f")
    >>> round(cell.value, 2), cell.gap
    (0.67, 1.0)
    """
    asked = [replace(query, id=query.id or str(number)) for number, query in enumerate(queries, start=1)]
    twice = [name for name, count in Counter(query.id for query in asked).items() if count > 1]
    if twice:
        raise BadInputError(f"the query id {twice[0]!r} is there twice; give each query its own id")
    cases = cases_of(asked, name=NAME)
    picks = tuple(_picks(name, asked, chosen) for name, chosen in selections.items())
    for found in picks:
        check_picks(found, cases.cases, name=f"the selections {found.method!r}")
    loaded, missing = load_metrics((name for name in metrics if isinstance(name, str)), {})
    loaded += [metric for metric in metrics if not isinstance(metric, str)]
    table = None if scores is None else read_rows(scores)
    outside = () if table is None else read_scores(table.name, table.placed())
    check_scores(headline, loaded, missing, outside)
    settings = EvaluationSettings(resamples=resamples, seed=seed, headline=tuple(headline))
    run = RunInput(name=cases.fact("model") or "drafts", cases=cases, picks=picks)
    return Evaluation(evaluate_runs([run], loaded, settings, missing=missing, outside=outside))


def _picks(name: str, queries: Sequence[Query], selections: Sequence[Selection]) -> Picks:
    """Return one selector's picks."""
    if name in REFERENCES:
        raise BadInputError(f"{name!r} is the name of a reference row; name the selections otherwise")
    if len(selections) != len(queries):
        raise BadInputError(
            f"{name!r} has {len(selections)} selections for {len(queries)} queries; give one for each"
        )
    signatures = {selection.signature for selection in selections}
    if len(signatures) > 1:
        raise BadInputError(f"{name!r} has selections of several signatures; give each selector its own name")
    return Picks.of(name, queries, selections, signatures.pop() if signatures else "")


def _turned(pair: PairedDifference) -> PairedDifference:
    """Return a difference from the other's side."""
    return replace(
        pair, method=pair.other, other=pair.method,
        delta=_less(pair.delta), delta_low=_less(pair.delta_high), delta_high=_less(pair.delta_low),
        gap=_less(pair.gap), gap_low=_less(pair.gap_high), gap_high=_less(pair.gap_low),
    )  # fmt: skip


def _less(value: float | None) -> float | None:
    """Return what is as far on the other side of 0."""
    return None if value is None else 0.0 - value


def _frame(rows: list[dict[str, Any]], kind: FrameKind) -> Any:  # noqa: ANN401  # a frame of either library
    """Make a frame with a library that is imported now and not before."""
    check_name("kind of frame", ("pandas", "polars"), kind)
    try:
        library = import_module(kind)
    except ModuleNotFoundError:
        raise BadInputError(f"{kind} is not installed; install it, or name the other kind of frame") from None
    return library.DataFrame({name: [row[name] for row in rows] for name in rows[0]} if rows else {})
