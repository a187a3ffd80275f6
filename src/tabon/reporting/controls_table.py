"""The tables of the controls, made from results only."""

from collections.abc import Iterator, Sequence

from tabon.errors import BadInputError
from tabon.evaluation.controls.conditions import GROUP_NAMES, RIGHT
from tabon.evaluation.controls.factorial import FactorialCell
from tabon.evaluation.controls.outcomes import Outcome
from tabon.evaluation.results import REFERENCES, Number, Results
from tabon.reporting.tables.places import DASH, name_cell, section_name
from tabon.reporting.tables.render import Block, Heading, Table, TableCell, TableRow

KEY = (
    "gap closed: (pick - random) / (oracle - random), 95 % interval over resampled patients. "
    "right - this: what the right prior closes beyond this row, the same draws on both sides; "
    "bold where the interval leaves out 0."
)
LIKE_KEY = (
    "Like length: the pick against the mean of the study's other drafts within 15 % of its words; "
    "there, right - this is what length explains."
)
FACTORIAL_KEY = (
    "right - this: what the right prior closes of the gap beyond this row, among the same drafts; "
    "difference: this generation - the first, in the score, the same draws on both sides; "
    "bold where the 95 % interval leaves out 0."
)


def controls_table(results: Results) -> Table:
    """Return all controls in one table: a block a condition, a row a selector."""
    outcomes = _outcomes(results)
    places = list(dict.fromkeys((outcome.section, outcome.score) for outcome in outcomes))
    found = {(each.method, each.section, each.score): each for each in outcomes}
    blocks = [
        Block(
            heading=TableCell(text=name, italic=True),
            rows=tuple(
                TableRow(cells=(_name(method), *_cells(found.get((method, *place)) for place in places)))
                for method in dict.fromkeys(each.method for each in outcomes if each.group == group)
            ),
        )
        for group, name in GROUP_NAMES.items()
    ]
    return Table(
        label="tab:controls",
        title="Controls",
        caption="what each selector is worth when one thing about it is changed.",
        headings=(Heading(text="Selector | condition", align="l"), *_headings(places)),
        blocks=tuple(block for block in blocks if block.rows),
        notes=tuple(_notes(results, outcomes)),
    )


def factorial_table(results: Results) -> Table | None:
    """Return generation × selection in one table; None where there is one generation."""
    cells = [FactorialCell.from_record(record) for record in results.facts.get("factorial", ())]
    if not cells:
        return None
    generations = list(dict.fromkeys(cell.generation for cell in cells))
    places = list(dict.fromkeys((cell.section, cell.score) for cell in cells))
    found = {(c.section, c.score, c.selector, c.selection, c.generation): c for c in cells}
    lines = list(dict.fromkeys((cell.selector, cell.selection) for cell in cells))
    blocks = [
        Block(
            heading=TableCell(text=f"{section_name(section)}, {score}", italic=True),
            rows=tuple(
                _factorial_row(line, [found[section, score, *line, each] for each in generations])
                for line in lines
            ),
        )
        for section, score in places
    ]
    return Table(
        label="tab:controls-factorial",
        title="Generation and selection, with and without the prior",
        caption="drafts of the same studies, made in several ways and chosen in several ways.",
        headings=tuple(_factorial_headings(generations)),
        blocks=tuple(blocks),
        notes=(FACTORIAL_KEY, *_factorial_counts(cells)),
    )


def _outcomes(results: Results) -> list[Outcome]:
    """Read the outcomes; results of something else are refused."""
    records = results.facts.get("controls")
    if not records:
        raise BadInputError("these results hold no controls; make them with `tabon controls`")
    return [Outcome.from_record(record) for record in records]


def _headings(places: Sequence[tuple[str, str]]) -> Iterator[Heading]:
    """Yield three heads for each part and score."""
    for section, score in places:
        group = f"{section_name(section)}, {score}"
        yield Heading(text="gap closed", group=group)
        yield Heading(text="right - this", group=group)
        yield Heading(text="n", group=group, align="r")


def _cells(outcomes: Iterator[Outcome | None]) -> Iterator[TableCell]:
    """Yield the cells of a row; dashes where a row has no such place."""
    for outcome in outcomes:
        if outcome is None:
            yield from [TableCell(text=DASH)] * 3
            continue
        yield TableCell(text=written(outcome.gap, ".1%"))
        if outcome.label == RIGHT:
            yield TableCell(text="")
        else:
            yield TableCell(text=written(outcome.gap_difference, "+.1%"), bold=_clear(outcome.gap_difference))
        yield TableCell(text=str(outcome.n))


def _name(method: str) -> TableCell:
    """Return the name of a row, as it stands in results."""
    return TableCell(text=method)


def _notes(results: Results, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield how to read the table, what is not in it, and the signatures."""
    yield KEY
    if any(outcome.group == "length" for outcome in outcomes):
        yield LIKE_KEY
    yield from _seeds(results)
    yield from _fewer(outcomes)
    silent = {method: count for run in results.runs for method, count in run.abstained.items() if count}
    if silent:
        named = "; ".join(f"{method} {count}" for method, count in silent.items())
        yield f"Abstentions, worth the expected random pick: {named}."
    for each in results.facts.get("left_out", ()):
        yield f"Not tried: {each['selector']} | {each['label']}: {each['reason'].rstrip('.')}."
    for score, signature in results.scores.items():
        yield f"{score}: {signature}"
    for method, signature in results.methods.items():
        if method.endswith(f"| {RIGHT}"):
            yield f"{method}: {signature}"


def _seeds(results: Results) -> Iterator[str]:
    """Say how chance came in."""
    plan = results.settings["controls"]
    yield (
        f"Seed {plan['seed']}, {plan['resamples']} resamples; another patient's prior is the mean of "
        f"{plan['shuffles']} exchanges of priors between patients."
    )


def _fewer(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Count the studies that a condition leaves out."""
    fewer = [
        f"{each.method} in {section_name(each.section)} {each.left_out}" for each in outcomes if each.left_out
    ]
    if fewer:
        yield f"Studies left out, as the condition does not fit them: {'; '.join(dict.fromkeys(fewer))}."


def _factorial_headings(generations: Sequence[str]) -> Iterator[Heading]:
    """Yield the heads of each generation; all but the first have a difference."""
    yield Heading(text="Selector", align="l")
    yield Heading(text="Selection with", align="l")
    for place, generation in enumerate(generations):
        group = f"drafts: {generation}"
        yield Heading(text="value", group=group)
        yield Heading(text="gap closed", group=group)
        yield Heading(text="right - this", group=group)
        if place:
            yield Heading(text="difference", group=group)


def _factorial_row(line: tuple[str, str], cells: Sequence[FactorialCell]) -> TableRow:
    """Return one way of choosing, in every generation."""
    selector, selection = line
    reference = selector in REFERENCES
    texts = [name_cell(selector, italic=reference), TableCell(text=selection or DASH, italic=reference)]
    for place, cell in enumerate(cells):
        texts.append(TableCell(text=written(cell.value, ".3f")))
        texts.append(TableCell(text=DASH if reference else written(cell.gap, ".1%")))
        texts.append(_right_minus_this(cell, reference=reference))
        if place:
            texts.append(TableCell(text=written(cell.difference, "+.3f"), bold=_clear(cell.difference)))
    return TableRow(cells=tuple(texts))


def _right_minus_this(cell: FactorialCell, *, reference: bool) -> TableCell:
    """Return what the right prior closes beyond a cell."""
    if reference or cell.selection == RIGHT:
        return TableCell(text=DASH if reference else "")
    return TableCell(text=written(cell.gap_difference, "+.1%"), bold=_clear(cell.gap_difference))


def _factorial_counts(cells: Sequence[FactorialCell]) -> Iterator[str]:
    """Say how many studies stand behind each block."""
    counts = dict.fromkeys((cell.section, cell.score, cell.n) for cell in cells)
    listed = "; ".join(f"{section_name(section)}, {score} {n}" for section, score, n in counts)
    yield f"n, studies that every file holds: {listed}."


def written(number: Number, form: str) -> str:
    """Write a number with its interval; a dash where there is none.

    >>> written(Number(value=0.123, low=0.05, high=0.2), ".1%")
    '12.3% [5.0%, 20.0%]'
    """
    if number.value is None:
        return DASH
    if number.low is None or number.high is None:
        return f"{number.value:{form}}"
    return f"{number.value:{form}} [{number.low:{form}}, {number.high:{form}}]"


def _clear(number: Number) -> bool:
    """Say whether an interval leaves out 0."""
    return number.low is not None and number.high is not None and (number.low > 0 or number.high < 0)
