"""Where the numbers of a table come from, how they are named, and the notes below them.

A place of a table has a cell of the results and, beside the paper, a number that the
paper prints. These were parsed once from the paper's source into `paper_values.csv`, as
printed: a value is rounded to 0.001 and a relative change to 0.001 (0.1 %).
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from tabon._internal.registry import check_name
from tabon.evaluation.inputs import read_signature
from tabon.evaluation.results import MEAN_RUN, ORACLE, RANDOM, RANDOM_SEEDS, Cell, Results
from tabon.reporting.tables.render import TableCell

HEADLINE, PER_RUN, DELTA = "headline", "per-run", "delta"
MEAN_OF_METHODS = "mean-of-methods"  # the last row of the headline tables
DISTANCES = ("mean-shift", "novelty", "dir-hausdorff", "cost-ot")
AGGREGATES = ("min", "knn")
TRANSITION_METHODS = tuple(f"{distance}/{aggregate}" for distance in DISTANCES for aggregate in AGGREGATES)
DASH = "–"
SECTION_NAMES = {"findings": "Findings", "impression": "Impressions", "report": "Whole report"}
DISTANCE_NAMES = dict(zip(DISTANCES, ("Mean-Shift", "Novelty", "Dir-Hausdorff", "Cost-OT"), strict=True))
ABBREVIATIONS = dict(zip(DISTANCES, ("MS", "Nov", "DH", "OT"), strict=True))
DELTA_METHODS = {  # the paper's order: min first, then kNN
    f"{ABBREVIATIONS[distance]} / {aggregate[0]}": f"{distance}/{aggregate}"
    for aggregate in AGGREGATES
    for distance in DISTANCES
}
DELTA_KEY = (
    f"Columns: {', '.join(f'{ABBREVIATIONS[each]} = {DISTANCE_NAMES[each]}' for each in DISTANCES)}; "
    "m = min, k = knn. Cells are method minus random; the last column is the random baseline."
)
FAMILY_NAMES = {  # of scores: how a name begins
    "bleu": "BLEU",
    "rouge": "ROUGE",
    "meteor": "METEOR",
    "nltk_bleu": "BLEU (NLTK, lower case)",
    "stemmed_rouge": "ROUGE (stems)",
    "split_meteor": "METEOR (split words)",
    "chrf++": "chrF++",
    "bertscore": "BERTScore",
    "comet": "COMET",
    "radgraph": "RadGraph",
    "chexbert": "CheXbert",
    "labels": "Labels",
    "temporal": "Temporal",
    "clinical": "Clinical score",
    "rexrank": "ReXrank",
    "state": "State",
}
PART_NAMES = {
    "f": "",
    "p": "precision",
    "r": "recall",
    "f1": "F1",
    "bleu2": "BLEU-2",
    "bertscore": "BERTScore",
    "semb": "SembScore",
    "radgraph": "RadGraph",
    "radcliq": "RadCliQ-v1",
    **{mean: f"{mean} F1" for mean in ("micro", "macro", "weighted", "samples")},
}
ROW_NAMES = {
    RANDOM: "Random baseline (reference)",
    RANDOM_SEEDS: "Random baseline, seeded picks",
    ORACLE: "Oracle (best draft of each study)",
    MEAN_OF_METHODS: "Mean of transition methods",
}


@dataclass(frozen=True, slots=True)
class PaperValue:
    """One printed number."""

    table: str  # HEADLINE, PER_RUN or DELTA
    section: str  # "findings" or "impression"
    run: str  # "Gemini-2.5-FL P1", or "mean"
    method: str  # one of TRANSITION_METHODS, "random" or MEAN_OF_METHODS
    column: str  # the headline's head: "BLEU-1", ..., "CheX-14"
    value: float  # of DELTA tables method minus random, but of "random" its value
    relative: float | None  # change against random, where it is printed


@cache
def paper_values() -> tuple[PaperValue, ...]:
    """Return the numbers in the order of the paper.

    >>> paper_values()[0]  # doctest: +NORMALIZE_WHITESPACE
    PaperValue(table='headline', section='impression', run='mean', method='mean-shift/min',
               column='BLEU-1', value=0.163, relative=0.03)
    """
    text = files("tabon.reporting.tables").joinpath("paper_values.csv").read_text(encoding="utf-8")
    rows = csv.reader(text.splitlines()[1:])
    return tuple(
        PaperValue(table, section, run, method, column, float(value), float(change) if change else None)
        for table, section, run, method, column, value, change in rows
    )


@cache
def paper_value(*, table: str, section: str, run: str, method: str, column: str) -> PaperValue | None:
    """Return one printed number, or None where the paper prints none."""
    place = (table, section, run, method, column)
    same = (v for v in paper_values() if (v.table, v.section, v.run, v.method, v.column) == place)
    return next(same, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One place of a table and the cell of the results that belongs there."""

    run: str
    section: str
    method: str
    score: str
    column: str  # how the table calls the score
    cell: Cell | None  # None: the results have none

    @property
    def value(self) -> float | None:
        """Return the number, None where there is none."""
        return self.cell.value if self.cell else None

    @property
    def is_above_random(self) -> bool:
        """Say whether the number is above the random pick's."""
        return bool(self.cell and self.cell.delta is not None and self.cell.delta > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The cells of one section, found by run, method and score."""

    results: Results
    section: str
    cells: Mapping[tuple[str, str, str], Cell]

    def spot(self, *, run: str, method: str, score: str, column: str) -> Spot:
        """Return the place of one number."""
        cell = self.cells.get((run, method, score))
        return Spot(run=run, section=self.section, method=method, score=score, column=column, cell=cell)

    def line(self, columns: Mapping[str, str], *, run: str, method: str) -> tuple[Spot, ...]:
        """Return a row of places, one a column."""
        return tuple(
            self.spot(run=run, method=method, score=score, column=column) for column, score in columns.items()
        )

    def mean_line(self, columns: Mapping[str, str], *, run: str) -> tuple[Spot, ...]:
        """Return the row of means over the paper's transition methods, as many as the results have."""
        return tuple(
            replace(spot, cell=self._mean(run, spot.score))
            for spot in self.line(columns, run=run, method=MEAN_OF_METHODS)
        )

    def transition_methods(self) -> tuple[str, ...]:
        """Return the paper's eight methods, as many as the results have."""
        return tuple(method for method in TRANSITION_METHODS if method in self.results.methods)

    def _mean(self, run: str, score: str) -> Cell | None:
        """Return the mean of the transition methods; None where one of them has no number."""
        found = [self.cells.get((run, method, score)) for method in self.transition_methods()]
        values = [cell.value for cell in found if cell and cell.value is not None]
        if not values or len(values) < len(found):
            return None
        value, random = sum(values) / len(values), self.cells.get((run, RANDOM, score))
        return Cell(
            run=run,
            section=self.section,
            method=MEAN_OF_METHODS,
            score=score,
            value=value,
            n=min(cell.n for cell in found if cell),
            relative=value / random.value - 1 if random and random.value else None,
        )


def grid_of(results: Results, section: str) -> Grid:
    """Index a section of the results; a section they do not have is refused by name."""
    check_name("section of the results", results.sections(), section)
    cells = {(c.run, c.method, c.score): c for c in results.cells if c.section == section}
    return Grid(results=results, section=section, cells=cells)


def section_name(section: str) -> str:
    """Return a section's name as the paper writes it."""
    return SECTION_NAMES.get(section, section)


def slug(name: str) -> str:
    """Return a name as a label may have it.

    >>> slug(section_name("report"))
    'whole-report'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"


def method_name(method: str) -> str:
    """Return a method's name as the paper writes it; others stay as they are.

    >>> method_name("cost-ot/knn"), method_name("longest")
    ('Cost-OT / knn', 'longest')
    """
    distance, _, aggregate = method.partition("/")
    if distance in DISTANCE_NAMES and aggregate:
        return f"{DISTANCE_NAMES[distance]} / {aggregate}"
    return ROW_NAMES.get(method, method)


def score_name(score: str) -> str:
    """Return a score's name as people write it; one that is not tabon's stays as it is.

    >>> [score_name(score) for score in ("rouge-l-f", "corpus-bleu-4", "rexrank-minus-radcliq", "mine")]
    ['ROUGE-L', 'corpus BLEU-4', 'ReXrank minus RadCliQ-v1', 'mine']
    """
    family, *parts = score.removeprefix("corpus-").split("-")
    if family not in FAMILY_NAMES:
        return score
    joined = "-" + parts.pop(0).upper() if parts and (parts[0].isdigit() or parts[0] == "l") else ""
    words = filter(None, (PART_NAMES.get(part, part) for part in parts))
    corpus = "corpus " if score.startswith("corpus-") else ""
    return " ".join([f"{corpus}{FAMILY_NAMES[family]}{joined}", *words])


def name_cell(method: str, *, italic: bool = False, bold: bool = False) -> TableCell:
    """Return a method's name as a cell; the paper's methods in small capitals."""
    distance, _, aggregate = method.partition("/")
    small_caps = distance in DISTANCE_NAMES and bool(aggregate)
    return TableCell(text=method_name(method), italic=italic, bold=bold, small_caps=small_caps)


def number(value: float | None) -> str:
    """Write a value as the paper does, a dash where there is none.

    >>> number(0.16349), number(None)
    ('0.163', '–')
    """
    return DASH if value is None else f"{value:.3f}"


def signed(value: float | None) -> str:
    """Write a difference with its sign."""
    return DASH if value is None else f"{value:+.3f}"


def percent(value: float | None) -> str:
    """Write a relative change as the paper does; nothing where there is none.

    >>> percent(0.0296), percent(-0.0001), percent(None)
    ('+3.0%', '-0.0%', '')
    """
    return "" if value is None else f"{value:+.1%}"


def value_cell(spot: Spot, *, bold: bool = False, italic: bool = False) -> TableCell:
    """Return the value of a place with its relative change; random has none against itself."""
    changed = spot.cell and spot.value is not None and spot.method != RANDOM
    relative = spot.cell.relative if spot.cell and changed else None
    return TableCell(text=number(spot.value), subscript=percent(relative), bold=bold, italic=italic)


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
    return (*notes, *plan_notes(results), *_signature_notes(results, spots, methods))


def plan_notes(results: Results) -> Iterator[str]:
    """Say by which analysis plan the results were made, and in what they depart from it."""
    if results.plan is not None:
        named = f"Analysis plan {results.plan.sha256[:12]}"
        if results.plan.departures:
            yield f"Made otherwise than planned: {', '.join(results.plan.departures)}. {named}."
        else:
            yield f"{named}, written before anything was scored, was followed."


def mean_notes(grid: Grid, means: Sequence[Spot]) -> Iterator[str]:
    """Say over which methods the mean of methods is, and why it is empty where it is."""
    there = len(grid.transition_methods())
    if there < len(TRANSITION_METHODS):
        yield f"The results have {there} of the paper's {len(TRANSITION_METHODS)} transition methods."
    if empty := [spot.column for spot in means if spot.value is None]:
        yield f"{DASH} no mean of the transition methods, as one has no value: {', '.join(empty)}."


def _count_notes(results: Results, spots: Sequence[Spot]) -> Iterator[str]:
    """Say how many studies are behind the numbers: once if that is the same everywhere."""
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
    for spot in (spot for spot in gaps if spot.score in results.scores):
        if spot.cell is not None:
            reason = "no study to measure it on" if spot.cell.n == 0 else "not measured"
        else:
            there = dict.fromkeys(cell.section for cell in results.cells if cell.score == spot.score)
            elsewhere = there and spot.section not in there
            reason = f"measured only on {', '.join(there)}" if elsewhere else "not in the results"
        empty.setdefault(reason, []).append(spot)
    for reason, found in empty.items():
        places = dict.fromkeys(_place_name(spot, found, spots) for spot in found)
        yield f"{DASH} {reason}: {'; '.join(places)}."


def _place_name(spot: Spot, gaps: Sequence[Spot], spots: Sequence[Spot]) -> str:
    """Name a place of the table: its column if all of it is empty, its method if every run of it is."""
    if all(other in gaps for other in spots if other.column == spot.column):
        return spot.column
    name = f"{spot.column} of {method_name(spot.method)}"
    if {other.run for other in spots} == {MEAN_RUN}:
        return name
    same = [other for other in spots if (other.column, other.method) == (spot.column, spot.method)]
    if all(other in gaps for other in same):
        return f"{name} in every run"
    return f"{name} in {'the mean' if spot.run == MEAN_RUN else spot.run}"


def _signature_notes(results: Results, spots: Iterable[Spot], methods: Iterable[str]) -> Iterator[str]:
    """Write the signature of each score and of each method, equal ones together."""
    scores = dict.fromkeys((spot.column, spot.score) for spot in spots if spot.score in results.scores)
    yield from _together((results.scores[score], column) for column, score in scores)
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
    yield from _together(own)


def _together(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write each signature once, after the names it belongs to."""
    named: dict[str, list[str]] = {}
    for signature, name in pairs:
        named.setdefault(signature, []).append(name)
    for signature, names in named.items():
        yield f"{', '.join(names)}: {signature}"
