"""Several results files put together; numbers that do not belong together are refused."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tabon.errors import BadInputError
from tabon.evaluation.results import MEAN_RUN, RANDOM, Cell, Results, Run


def merge_results(many: Sequence[Results]) -> Results:
    """Put the methods, scores and runs of several results into one.

    Nothing is measured again, so two things do not survive: p-values adjusted
    for one file's family of tests (the merged family is another one), and, where
    the files have different runs, all of the mean over runs but value, delta and
    relative change. Of the facts, those stay that all files agree on.

    Raises:
        BadInputError: a score has two signatures, a method has two, the
            settings differ, a run stands for two sets of drafts, or two files
            disagree on a number. One file is returned as it is.
    """
    if not many:
        raise BadInputError("there are no results to merge; name at least one results file")
    if len(many) == 1:
        return many[0]
    _check_settings([results.settings for results in many])
    runs = _runs(many)
    same_runs = all({run.name for run in results.runs} == set(runs) for results in many)
    cells = _cells(many, keep_means=same_runs)
    first, *others = many
    facts = {
        name: fact
        for name, fact in first.facts.items()
        if all(name in other.facts and _json(other.facts[name]) == _json(fact) for other in others)
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
    )
    if len(runs) == 1 or any(cell.run == MEAN_RUN for cell in merged.cells):
        return merged
    return replace(merged, cells=(*merged.cells, *_means(merged)))


def _json(value: object) -> str:
    """Write a value as it is compared: a tuple is the list it is read back as."""
    return json.dumps(value, sort_keys=True)


def _check_settings(many: Sequence[Mapping[str, Any]]) -> None:
    """Refuse settings that differ, by the name that differs."""
    first = many[0]
    for other in many[1:]:
        for name in dict.fromkeys([*first, *other]):
            there, here = (_json(settings.get(name)) for settings in (first, other))
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


def _runs(many: Iterable[Results]) -> dict[str, Run]:
    """Join the runs by name; a name that stands for two sets of drafts is refused."""
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


def _cells(many: Iterable[Results], *, keep_means: bool) -> dict[tuple[str, ...], Cell]:
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


def _means(results: Results) -> Iterable[Cell]:
    """Yield the mean over runs of each method and score that every run has a number for."""
    places = {(c.section, c.method, c.score): None for c in results.cells}
    by_place = {(c.run, c.section, c.method, c.score): c for c in results.cells}
    means: dict[tuple[str, str, str], float] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for section, method, score in places:
        found = [by_place.get((run.name, section, method, score)) for run in results.runs]
        values = [cell.value for cell in found if cell and cell.value is not None]
        if len(values) == len(results.runs):
            means[section, method, score] = sum(values) / len(values)
            counts[section, method, score] = sum(cell.n for cell in found if cell)
    for (section, method, score), value in means.items():
        random = means.get((section, RANDOM, score))
        n = counts[section, method, score]
        mean = Cell(run=MEAN_RUN, section=section, method=method, score=score, value=value, n=n)
        if method != RANDOM and random is not None:
            mean = replace(mean, delta=value - random, relative=(value - random) / random if random else None)
        yield mean
