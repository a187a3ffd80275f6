"""The tables of the controls, made from results only."""

from collections.abc import Iterator, Sequence

from tabon.errors import BadInputError
from tabon.evaluation.controls.conditions import GROUP_NAMES, RIGHT
from tabon.evaluation.controls.outcomes import FactorialCell, Outcome
from tabon.evaluation.results import REFERENCES, Number, Results
from tabon.reporting.tables.places import DASH, name_cell, section_name
from tabon.reporting.tables.render import Block, Heading, Table, TableCell, TableRow
from tabon.reporting.tables.stars import STARS_KEY, stars_of

KEY = (
    "gap closed: (pick - random) / (oracle - random), 95 % interval over resampled patients. "
    "right - this: what the right prior closes beyond this row, the same draws on both sides; "
    f"bold where the interval leaves out 0. {STARS_KEY} The family is every row here."
)
LENGTH_KEY = (
    "Like length: the pick against the mean of the study's other drafts within 15 % of its words; "
    "there, right - this is what length explains."
)
FACTORIAL_KEY = (
    "right - this: what the right prior closes of the gap beyond this row, among the same drafts; "
    "difference: this generation - the first, in the score, the same draws on both sides; "
    "bold where the 95 % interval leaves out 0."
)


def controls_table(results: Results) -> Table:
    """Return all controls in one table: one block per condition, one row per selector."""
    outcomes = results.typed_facts("controls", Outcome)
    if not outcomes:
        raise BadInputError("these results hold no controls; make them with `tabon controls`")
    places = list(dict.fromkeys((outcome.section, outcome.score) for outcome in outcomes))
    found = {(each.method, each.section, each.score): each for each in outcomes}
    blocks = []
    for group, name in GROUP_NAMES.items():
        rows = [
            TableRow(
                cells=(
                    TableCell(text=method),
                    *(cell for place in places for cell in _cells(found.get((method, *place)))),
                )
            )
            for method in dict.fromkeys(each.method for each in outcomes if each.group == group)
        ]
        if rows:
            blocks.append(Block(heading=TableCell(text=name, italic=True), rows=tuple(rows)))
    headings = [
        Heading(text=text, group=f"{section_name(section)}, {score}", align=align)
        for section, score in places
        for text, align in (("gap closed", "c"), ("right - this", "c"), ("n", "r"))
    ]
    return Table(
        label="tab:controls",
        title="Controls",
        caption="what each selector is worth when one thing about it is changed.",
        headings=(Heading(text="Selector | condition", align="l"), *headings),
        blocks=tuple(blocks),
        notes=tuple(_notes(results, outcomes)),
    )


def factorial_table(results: Results) -> Table | None:
    """Return generation × selection in one table; None where there is one generation."""
    cells = results.typed_facts("factorial", FactorialCell)
    if not cells:
        return None
    generations = list(dict.fromkeys(cell.generation for cell in cells))
    headings = [Heading(text="Selector", align="l"), Heading(text="Selection with", align="l")]
    for place, generation in enumerate(generations):  # all but the first have a difference
        texts = ("value", "gap closed", "right - this", *(["difference"] if place else []))
        headings += [Heading(text=text, group=f"drafts: {generation}") for text in texts]
    places = dict.fromkeys((cell.section, cell.score, cell.n) for cell in cells)
    found = {(c.section, c.score, c.selector, c.selection, c.generation): c for c in cells}
    lines = list(dict.fromkeys((cell.selector, cell.selection) for cell in cells))
    blocks = [
        Block(
            heading=TableCell(text=f"{section_name(section)}, {score}", italic=True),
            rows=tuple(
                _factorial_row([found[section, score, *line, each] for each in generations]) for line in lines
            ),
        )
        for section, score, _ in places
    ]
    counts = "; ".join(f"{section_name(section)}, {score} {n}" for section, score, n in places)
    return Table(
        label="tab:controls-factorial",
        title="Generation and selection, with and without the prior",
        caption="drafts of the same studies, made in several ways and chosen in several ways.",
        headings=tuple(headings),
        blocks=tuple(blocks),
        notes=(FACTORIAL_KEY, f"n, studies that every file holds: {counts}."),
    )


def _cells(outcome: Outcome | None) -> list[TableCell]:
    """Return the cells of one place; dashes where a row has no such place."""
    if outcome is None:
        return [TableCell(text=DASH)] * 3
    lost, right = outcome.gap_difference, outcome.label == RIGHT
    return [
        TableCell(text=written(outcome.gap, ".1%")),
        TableCell(
            text="" if right else written(lost, "+.1%") + stars_of(outcome.holm),
            bold=not right and lost.clear(),
        ),
        TableCell(text=str(outcome.n)),
    ]


def _notes(results: Results, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield how to read the table, what is not in it, and the signatures."""
    plan = results.settings["controls"]
    yield KEY
    if any(outcome.group == "length" for outcome in outcomes):
        yield LENGTH_KEY
    yield (
        f"Seed {plan['seed']}, {plan['resamples']} resamples; another patient's prior is the mean of "
        f"{plan['shuffles']} exchanges of priors between patients."
    )
    if fewer := dict.fromkeys(
        f"{each.method} in {section_name(each.section)} {each.left_out}" for each in outcomes if each.left_out
    ):
        yield f"Studies left out, as the condition does not fit them: {'; '.join(fewer)}."
    abstained = {method: count for run in results.runs for method, count in run.abstained.items() if count}
    if abstained:
        named = "; ".join(f"{method} {count}" for method, count in abstained.items())
        yield f"Abstentions, worth the expected random pick: {named}."
    for each in results.facts.get("left_out", ()):
        yield f"Not tried: {each['selector']} | {each['label']}: {each['reason'].rstrip('.')}."
    for score, signature in results.scores.items():
        yield f"{score}: {signature}"
    for method, signature in results.methods.items():
        if method.endswith(f"| {RIGHT}"):
            yield f"{method}: {signature}"


def _factorial_row(cells: Sequence[FactorialCell]) -> TableRow:
    """Return one way of choosing, in every generation."""
    selector, selection = cells[0].selector, cells[0].selection
    reference, right = selector in REFERENCES, selection == RIGHT
    texts = [name_cell(selector, italic=reference), TableCell(text=selection or DASH, italic=reference)]
    for place, cell in enumerate(cells):
        texts.append(TableCell(text=written(cell.value, ".3f")))
        if reference:
            texts += [TableCell(text=DASH)] * 2
        else:
            lost = cell.gap_difference
            texts.append(TableCell(text=written(cell.gap, ".1%")))
            texts.append(
                TableCell(text="" if right else written(lost, "+.1%"), bold=not right and lost.clear())
            )
        if place:
            texts.append(TableCell(text=written(cell.difference, "+.3f"), bold=cell.difference.clear()))
    return TableRow(cells=tuple(texts))


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
