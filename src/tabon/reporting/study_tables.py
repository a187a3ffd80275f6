"""The tables of a reader study, made from its results only."""

from collections.abc import Iterator, Sequence

from tabon.reporting.tables.places import DASH
from tabon.reporting.tables.render import Block, Heading, Table, TableCell, TableRow
from tabon.study.comparison import ALPHA, KAPPA, SAME, Agreement, SelectorNumber
from tabon.study.design import ERROR_KINDS
from tabon.study.estimates import Estimate
from tabon.study.results import StudyResults

INTERVALS = (
    "95 % intervals: first for new cases and new readers, then for new cases of these readers "
    "(cases of one patient are resampled together)."
)
MEASURES = {KAPPA: "weighted kappa", ALPHA: "Krippendorff's alpha", SAME: "same answer"}


def study_tables(results: StudyResults) -> tuple[Table, ...]:
    """Return the tables that have something in them."""
    made = (
        preference_table(results),
        strength_table(results),
        rating_table(results),
        errors_table(results),
        agreement_table(results),
        readers_table(results),
    )
    return tuple(table for table in made if table.blocks and table.blocks[0].rows)


def preference_table(results: StudyResults) -> Table:
    """Return how often the picks of each selector are preferred to those of each other."""
    same = {(pair.selector, pair.other): pair for pair in results.pairs}
    rows = []
    for found in results.preferences:
        pair = same.get((found.selector, found.other))
        differ = DASH if pair is None else f"{pair.differ} of {pair.both}"
        counts = (str(found.cases), f"{found.wins} / {found.ties} / {found.losses}", differ)
        rows.append(_row(f"{found.selector} over {found.other}", *counts, *_intervals(found, percent=True)))
    return _table(
        "preference",
        "Which pick readers prefer",
        f"share of the answers that prefer the first, a tie counts half. {INTERVALS}",
        ("Pair", "cases", "first / equal / second", "picks differ", "share", "new readers", "these readers"),
        rows,
    )


def strength_table(results: StudyResults) -> Table:
    """Return the strengths of Bradley and Terry."""
    return _table(
        "strength",
        "Strength of each selector",
        "log odds of Bradley and Terry's model over all comparisons, their mean is 0: a is preferred to b "
        f"with the chance 1 / (1 + exp(b - a)). {INTERVALS}",
        ("Selector", "answers", "strength", "new readers", "these readers"),
        [
            _row(one.selector, str(one.n), *_intervals(one))
            for one in results.numbers
            if one.what == "strength"
        ],
    )


def rating_table(results: StudyResults) -> Table:
    """Return the mean rating of each selector's picks, and the differences."""
    return _table(
        "rating",
        "How readers rate the picks" if results.selectors else "How readers rate the drafts",
        f"mean rating, 5 is the best; differences are of the same cases and readers. {INTERVALS}",
        ("Selector", "answers", "rating", "new readers", "these readers"),
        [_row(_name(one), str(one.n), *_intervals(one)) for one in results.numbers if one.what == "rating"],
    )


def errors_table(results: StudyResults) -> Table:
    """Return how many errors of each kind readers find in a pick."""
    found = {(one.selector, one.what): one for one in results.numbers}
    selectors = list(dict.fromkeys(one.selector for one in results.numbers if one.what == "errors"))
    rows = []
    for kind, name in (*ERROR_KINDS.items(), ("errors", "all")):
        cells = []
        for selector in selectors:
            one, much = found[selector, kind], found[selector, f"significant {kind}"]
            text = f"{_number(one.value)} ({_number(much.value)})"
            cells.append(text if kind != "errors" else f"{text} {_ends(one.these_low, one.these_high)}")
        rows.append(_row(name, *cells))
    return _table(
        "errors",
        "Errors that readers find",
        "errors of each kind per draft that was read, of them significant ones in brackets; the last row has "
        "95 % intervals for new cases of these readers.",
        ("Error", *selectors),
        rows if selectors else [],
    )


def agreement_table(results: StudyResults) -> Table:
    """Return how much readers agree with each other and with themselves."""
    return _table(
        "agreement",
        "Agreement of readers",
        "kappa with quadratic weights, alpha of ordered categories (of significant errors: of yes and no); "
        "again: the same reader on a repeated case. 95 % intervals resample cases.",
        ("What", "readers", "measure", "judged", "value", "interval"),
        [_agreement(one) for one in results.agreement],
        words=3,
    )


def _agreement(one: Agreement) -> TableRow:
    """Return one measure of agreement."""
    return _row(
        one.what,
        " and ".join(one.readers) if len(one.readers) < 3 else f"{len(one.readers)} readers",  # noqa: PLR2004
        MEASURES[one.measure],
        str(one.n),
        _number(one.value),
        _ends(one.low, one.high),
    )


def readers_table(results: StudyResults) -> Table:
    """Return how far readers are and how long they took."""
    rows = []
    for one in results.readers:
        quartiles = [_number(end, 0) for end in (one.seconds_low, one.seconds_high)]
        rows.append(
            _row(
                one.reader,
                f"{one.answered} of {one.readings}",
                str(one.amended),
                DASH if one.left is None else f"{100 * one.left:.0f} %",
                _number(one.seconds, 0),
                DASH if one.seconds is None else f"{quartiles[0]} to {quartiles[1]}",
                f"{one.hours:.1f}",
            )
        )
    return _table(
        "readers",
        "Readers",
        "cases answered, answers changed later, how often the left of two drafts was preferred, seconds of a "
        "case (median and quartiles, breaks left out).",
        ("Reader", "answered", "changed", "left", "seconds", "quartiles", "hours"),
        rows,
    )


def comments_table(results: StudyResults) -> Table:
    """Return what readers wrote."""
    rows = [_row(one.reader, one.id, ", ".join(map(str, one.drafts)), one.text) for one in results.comments]
    heads = ("Reader", "query", "drafts as shown, from 0", "comment")
    return _table("comments", "Comments", "what readers wrote, as they wrote it.", heads, rows, words=4)


def _table(
    label: str, title: str, caption: str, heads: Sequence[str], rows: Sequence[TableRow], *, words: int = 1
) -> Table:
    """Return a table of one block whose first columns are words."""
    headings = tuple(
        Heading(text=text, align="l" if place < words else "c") for place, text in enumerate(heads)
    )
    return Table(
        label=f"tab:study-{label}",
        title=title,
        caption=caption,
        headings=headings,
        blocks=(Block(rows=tuple(rows)),),
    )


def _row(*texts: str) -> TableRow:
    """Return a row of plain cells."""
    return TableRow(cells=tuple(TableCell(text=text) for text in texts))


def _name(one: SelectorNumber) -> str:
    """Name a selector, or a difference of two."""
    return one.selector if one.other is None else f"{one.selector} {DASH} {one.other}"


def _intervals(one: Estimate, *, percent: bool = False) -> Iterator[str]:
    """Write a number with both intervals."""
    scale, places = (100, 0) if percent else (1, 2)
    value, low, high, these_low, these_high = (
        None if end is None else scale * end
        for end in (one.value, one.low, one.high, one.these_low, one.these_high)
    )
    yield f"{_number(value, places)} %" if percent and value is not None else _number(value, places)
    yield _ends(low, high, places)
    yield _ends(these_low, these_high, places)


def _ends(low: float | None, high: float | None, places: int = 2) -> str:
    """Write an interval."""
    return DASH if low is None or high is None else f"[{_number(low, places)}, {_number(high, places)}]"


def _number(value: float | None, places: int = 2) -> str:
    """Write a number; one that rounds to nothing has no sign."""
    if value is None:
        return DASH
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text
