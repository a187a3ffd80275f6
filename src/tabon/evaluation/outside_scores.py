"""Scores that another program gave to every draft, beside those that are measured here."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from tabon.errors import BadInputError
from tabon.evaluation.draft_scores import Measured, drafts_there
from tabon.evaluation.inputs import Case
from tabon.metrics.protocol import Score, mean_of

FIELDS = ("id", "draft", "name", "value", "direction")
SIGNS = {"higher": 1.0, "lower": -1.0}  # direction: what makes more of it better
NAMED = 3  # rows that a message names


@dataclass(frozen=True, slots=True, eq=False)
class OutsideScore:
    """One score: a value for each draft of each study, higher is better."""

    file: str
    name: str
    direction: str
    values: Mapping[tuple[str, int], float]  # by query and draft

    @property
    def signature(self) -> str:
        """Return all that changes its numbers; where lower values are better their sign is turned."""
        rows = json.dumps(sorted((*place, value) for place, value in self.values.items()))
        turned = "|sign:turned" if self.direction == "lower" else ""
        return f"outside|score:{self.name}{turned}|rows:{sha256(rows.encode()).hexdigest()[:12]}"

    def measure(self, cases: Sequence[Case]) -> Measured:
        """Put the values into a table; a draft without one is an error, so that all share one oracle."""
        wanted = {(case.query.id, draft) for case in cases for draft in range(len(case.query.candidates))}
        studies = {case.query.id for case in cases}
        unknown = [place for place in self.values if place not in wanted]
        missing = sorted(wanted - self.values.keys())
        for rows, what in ((unknown, "no draft of the queries"), (missing, "without a row")):
            if rows:
                named = ", ".join(
                    f"{query!r} draft {draft}" if query in studies else repr(query)
                    for query, draft in rows[:NAMED]
                )
                raise BadInputError(
                    f"{self.file}: {self.name} has {len(rows)} {what} ({named}); give each draft of each "
                    "query with a reference one row, the first draft is 0"
                )
        there = drafts_there(cases)
        table = np.zeros((*there.shape, 1))
        for row, case in enumerate(cases):
            for draft in range(len(case.query.candidates)):
                table[row, draft] = self.values[case.query.id, draft]
        score = Score(self.name, mean_of(0))
        return Measured("report", tuple(cases), (score,), self.signature, table, there)


def read_scores(name: str, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[OutsideScore, ...]:
    """Read the rows of a table, one per draft and score: id, draft, name, value, direction.

    Args:
        name: of the table, for messages.
        rows: each with its place, for messages.
    """
    table, found = name, dict[str, dict[tuple[str, int], float]]()
    directions: dict[str, str] = {}
    for place, record in rows:
        try:
            query, name, direction = (str(record[key]) for key in ("id", "name", "direction"))
            draft, value = int(record["draft"]), float(record["value"])
            sign = SIGNS[direction]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise BadInputError(
                f"{place} is no score; give id, draft (0 is the first), name, value (a number) "
                "and direction (higher or lower)"
            ) from None
        if not math.isfinite(value):
            raise BadInputError(f"{place}: the value is not finite; give a number or no such score")
        if directions.setdefault(name, direction) != direction:
            raise BadInputError(f"{place}: {name} has two directions; give one")
        values = found.setdefault(name, {})
        if (query, draft) in values:
            raise BadInputError(f"{place}: {name} of {query!r} draft {draft} is there twice; give one")
        values[query, draft] = sign * value
    if not found:
        raise BadInputError(f"{table} holds no scores; give rows with {', '.join(FIELDS)}")
    return tuple(OutsideScore(table, name, directions[name], values) for name, values in found.items())
