"""Cohorts as values: of a table of one's own, with drafts or without, and simulated ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from tabon.data.cohort.link import Rules
from tabon.data.cohort.visits import Excluded
from tabon.data.imports.dates import Order
from tabon.data.imports.draft_table import read_draft_rows
from tabon.data.imports.import_cohort import import_cohort
from tabon.data.imports.source_rows import Rows
from tabon.data.imports.visit_table import Guess, read_visit_rows
from tabon.data.simulate import Prompt, SimulationSettings, Split, simulate_queries, simulate_transitions
from tabon.text.frames import PandasFrame, PolarsFrame
from tabon.text.records import (
    Query,
    Transition,
    query_from_record,
    read_query_lines,
    read_transitions,
    transition_from_record,
    whole_query,
)

NAME = "the imported table"  # in messages
USUAL_SHARES = Rules().shares


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Cohort:
    """Transitions to build a bank of and queries to choose in; made by `read_visits` and `simulate`.

    Args:
        transitions: of the training patients, for `TransitionBank.build`.
        queries: of the test patients, for `Selector.select_many` and `evaluate`.
        valid: queries of patients to tune on, if a table has such a split.
        guesses: what was not said of a table, and what it was taken for.
        excluded: the rows that were left out, each with its reason.

    >>> simulate(patients=40)
    Cohort(transitions=48, queries=2, excluded=0)
    """

    transitions: tuple[Transition, ...]
    queries: tuple[Query, ...] = ()
    valid: tuple[Query, ...] = ()
    guesses: tuple[Guess, ...] = ()
    excluded: tuple[Excluded, ...] = ()

    def __repr__(self) -> str:
        """Count what is there."""
        counts = {name: len(getattr(self, name)) for name in ("transitions", "queries", "excluded")}
        return f"Cohort({', '.join(f'{name}={count}' for name, count in counts.items())})"


def read_visits(  # noqa: PLR0913  # the table, its drafts, and what may be said of both
    source: Rows,
    drafts: Rows | Sequence[Rows] = (),
    *,
    columns: Mapping[str, str] | None = None,
    draft_columns: Mapping[str, str] | None = None,
    order: Order | None = None,
    encoding: str | None = None,
    shares: tuple[float, float, float] = USUAL_SHARES,
    seed: int = 0,
    sections: Literal["any", "both"] = "any",
    history: int = 1,
) -> Cohort:
    """Read visits, and drafts for some of them, as `tabon import` does; nothing is written.

    Args:
        source: a table with a row per report: a path, a pandas or polars frame, or other rows.
        drafts: a table of drafts in any form that `tabon import` takes, or a list of such tables.
        columns: role to column, for those that are not found by their names: `{"patient": "Nr"}`.
        draft_columns: the same for the drafts.
        order: whether the day or the month comes first, if the dates do not say it.
        encoding: of files that are neither UTF-8 nor marked as UTF-16.
        shares: of training, valid and test patients, if neither a column nor the drafts say it.
        seed: draws these, and the view of a patient with both.
        sections: whether a visit needs both sections.
        history: how many earlier visits are kept as priors; 0 keeps all.

    Raises:
        BadInputError: a column cannot be found, dates are not clear, or nothing is left.

    >>> visits = [
    ...     {"PID": 7, "Date": "2019-04-03", "Report": "Clear lungs."},
    ...     {"PID": 7, "Date": "2019-05-03", "Report": "New effusion."},
    ...     {"PID": 8, "Date": "2019-04-09", "Report": "Edema."},
    ...     {"PID": 8, "Date": "2019-06-01", "Report": "Edema has resolved."},
    ... ]
    >>> drafts = [{"PID": 8, "Date": "2019-06-01", "draft_1": "No edema.", "draft_2": "Edema."}]
    >>> cohort = read_visits(visits, drafts)
    >>> cohort.transitions, cohort.queries
    ((Transition(id='7-2019-05-03', patient='7'),), (Query(id='8-2019-06-01', patient='8', drafts=2),))
    """
    table = read_visit_rows(source, columns=columns, order=order, encoding=encoding)
    found = read_draft_rows(
        _tables(drafts), columns=draft_columns, order=order, visits_order=table.order, encoding=encoding
    )
    rules = Rules(seed=seed, sections=sections, history=history, shares=shares)
    imported = import_cohort(table, found, None, rules)

    def queries(split: Split) -> tuple[Query, ...]:
        lines = BytesIO(imported.contents.get(f"{split}/queries.jsonl", b""))
        return tuple(whole_query(query, name=NAME) for query in read_query_lines(lines))

    training = BytesIO(imported.contents.get("train/transitions.jsonl", b""))
    return Cohort(
        transitions=tuple(read_transitions(training, name=NAME)),
        queries=queries("test"),
        valid=queries("valid"),
        guesses=imported.guesses,
        excluded=imported.excluded,
    )


def simulate(
    patients: int = 200, *, num_drafts: int = 5, prompt: Prompt = "p3", noise: float = 0.5, seed: int = 0
) -> Cohort:
    """Make a cohort of patients whose true states are known: for trying out, it is no evidence.

    Args:
        patients: in all splits together.
        num_drafts: for each query.
        prompt: what the drafts' writer knows: `p1` the image, `p2` the house style too, `p3` the prior too.
        noise: from 0 for faultless drafts to 1 for the worst.
        seed: names the cohort; the same seed gives the same patients.

    >>> cohort = simulate(patients=40, num_drafts=3)
    >>> cohort.queries[0]
    Query(id='sim-000008-2', patient='sim-000008', drafts=3)
    """
    settings = SimulationSettings(
        seed=seed, patients=patients, num_candidates=num_drafts, prompt=prompt, noise=noise
    )
    return Cohort(
        transitions=tuple(map(transition_from_record, simulate_transitions(settings, "train"))),
        queries=tuple(map(query_from_record, simulate_queries(settings, "test"))),
        valid=tuple(map(query_from_record, simulate_queries(settings, "valid"))),
    )


def _tables(drafts: Rows | Sequence[Rows]) -> list[Any]:
    """Return the tables of drafts: of one table, which may be rows, or of a list of tables."""
    if isinstance(drafts, str | Path | PolarsFrame | PandasFrame):
        return [drafts]
    many: list[Any] = list(drafts) if isinstance(drafts, Iterable) else []
    return [many] if any(isinstance(one, Mapping) for one in many) else many
