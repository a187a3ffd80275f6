"""What stands under a table: how many studies, what is missing and why, and every signature."""

from collections.abc import Iterable, Iterator, Sequence

from tabon.evaluation.inputs import read_signature
from tabon.evaluation.results import MEAN_RUN, Results
from tabon.reporting.tables.paper_values import TRANSITION_METHODS
from tabon.reporting.tables.places import DASH, Grid, Spot, method_name


def notes_of(results: Results, spots: Sequence[Spot]) -> tuple[str, ...]:
    """Return all that a reader must know about these numbers."""
    runs = [run for run in results.runs if {run.name, MEAN_RUN} & {spot.run for spot in spots}]
    methods = list(dict.fromkeys(spot.method for spot in spots))
    notes = [*_count_notes(results, spots), *_gap_notes(results, spots)]
    if short := [f"{run.name} {run.short} of {run.studies}" for run in runs if run.short]:
        notes.append(f"Studies with fewer drafts than asked for: {'; '.join(short)}.")
    counts = {method: sum(run.abstained.get(method, 0) for run in runs) for method in methods}
    if silent := [f"{method_name(method)} {count}" for method, count in counts.items() if count]:
        notes.append(f"Abstentions, worth the expected random pick: {'; '.join(silent)}.")
    return (*notes, *_signature_notes(results, spots, methods))


def mean_notes(grid: Grid, means: Sequence[Spot]) -> Iterator[str]:
    """Say over which methods the mean of methods is, and why it is empty where it is."""
    there = len(grid.transition_methods())
    if there < len(TRANSITION_METHODS):
        yield f"The results have {there} of the paper's {len(TRANSITION_METHODS)} transition methods."
    if empty := [spot.column for spot in means if spot.value is None]:
        yield f"{DASH} no mean of the transition methods, as one has no value: {', '.join(empty)}."


def _count_notes(results: Results, spots: Sequence[Spot]) -> Iterator[str]:
    """Say how many studies the numbers stand on: once if that is the same everywhere."""
    by_run = len({spot.run for spot in spots}) > 1
    counts: dict[str, set[int]] = {}
    for spot in spots:
        if spot.cell and spot.value is not None and not (by_run and spot.run == MEAN_RUN):
            counts.setdefault(spot.run if by_run else spot.column, set()).add(spot.cell.n)
    of_runs = f" of {len(results.runs)} runs" if {spot.run for spot in spots} == {MEAN_RUN} else ""
    every = set().union(*counts.values())
    if len(every) == 1:
        yield f"n = {every.pop()} studies{of_runs} behind every number."
    elif every:
        ranges = {name: dict.fromkeys((min(found), max(found))) for name, found in counts.items()}
        listed = "; ".join(f"{name} {' to '.join(map(str, ends))}" for name, ends in ranges.items())
        yield f"n, studies{of_runs}: {listed}."


def _gap_notes(results: Results, spots: Sequence[Spot]) -> Iterator[str]:
    """Give the reason of every dash: once for a score that is missing, else place by place."""
    gaps = [spot for spot in spots if spot.value is None]
    for column, score in dict.fromkeys((spot.column, spot.score) for spot in gaps):
        if score not in results.scores:
            named = results.missing_metrics(score) or list(results.missing)
            reasons = "; ".join(f"{name}: {results.missing[name].rstrip('.')}" for name in named)
            why = reasons or "the results have no score of this name"
            yield f"{DASH} {column} ({score}) is not measured: {why}."
    empty: dict[str, list[Spot]] = {}
    for spot in gaps:
        if spot.score in results.scores:
            empty.setdefault(_why_empty(results, spot), []).append(spot)
    for reason, found in empty.items():
        yield f"{DASH} {reason}: {'; '.join(dict.fromkeys(_place(spot, found, spots) for spot in found))}."


def _why_empty(results: Results, spot: Spot) -> str:
    """Return why a place of a measured score is empty."""
    if spot.cell is not None:
        return "no study to measure it on" if spot.cell.n == 0 else "not measured"
    sections = dict.fromkeys(cell.section for cell in results.cells if cell.score == spot.score)
    if sections and spot.section not in sections:
        return f"measured only on {', '.join(sections)}"
    return "not in the results"


def _place(spot: Spot, gaps: Sequence[Spot], spots: Sequence[Spot]) -> str:
    """Name a place of the table: its column if all of it is empty, its method if every run of it is."""
    if all(other in gaps for other in spots if other.column == spot.column):
        return spot.column
    name = f"{spot.column} of {method_name(spot.method)}"
    if {other.run for other in spots} == {MEAN_RUN}:
        return name
    alike = [other for other in spots if (other.column, other.method) == (spot.column, spot.method)]
    if all(other in gaps for other in alike):
        return f"{name} in every run"
    return f"{name} in {'the mean' if spot.run == MEAN_RUN else spot.run}"


def _signature_notes(results: Results, spots: Iterable[Spot], methods: Iterable[str]) -> Iterator[str]:
    """Write the signature of each score and of each method, equal ones together."""
    scores = dict.fromkeys((spot.column, spot.score) for spot in spots if spot.score in results.scores)
    for signature, names in _together((results.scores[score], column) for column, score in scores):
        yield f"{', '.join(names)}: {signature}"
    parts = {each: read_signature(results.methods[each]).parts for each in methods if each in results.methods}
    several = len(parts) > 1  # one signature is written whole
    first = next(iter(parts.values()), ())
    shared = [part for part in first if several and all(part in other for other in parts.values())]
    if shared:
        yield f"All methods: {'|'.join(shared)}"
    own = (
        ("|".join(part for part in found if part not in shared) or "|".join(found), method_name(each))
        for each, found in parts.items()
    )
    for signature, names in _together(own):
        yield f"{', '.join(names)}: {signature}"


def _together(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each signature once with the names it belongs to."""
    names: dict[str, list[str]] = {}
    for signature, name in pairs:
        names.setdefault(signature, []).append(name)
    yield from names.items()
