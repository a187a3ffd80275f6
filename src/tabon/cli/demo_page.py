"""The demo's report: one static page, no script, nothing from elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tabon.method.selection import Selection
from tabon.reporting.page import Part, scroll, static_page

EXAMPLES = 6


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the demo's table."""

    method: str
    state_f1: float
    gap_closed: float | None = None  # (method - random) / (oracle - random); None where there is no gap
    standard_error: float = 0.0  # of the gap closed, over queries

    def gap(self) -> str:
        """Write the gap closed with its standard error.

        >>> Row("novelty / min", 0.5, 0.081, 0.052).gap()
        '8% ± 5%'
        """
        return "–" if self.gap_closed is None else f"{self.gap_closed:.0%} ± {self.standard_error:.0%}"


OPENING = """<p class="lead">Simulated patients, simulated drafts, the real encoder.</p>
<p class="notice"><strong>Research use only; not a medical device.</strong></p>"""
HOW = """<p class="how">state-F1: agreement of the chosen draft with the simulated truth. Gap closed: 0 % is
a random pick, 100 % the best draft each time; ± one standard error."""


def demo_page(
    rows: Sequence[Row], records: Sequence[Mapping[str, Any]], selections: Sequence[Selection]
) -> str:
    """Return the page as HTML; every text is escaped."""
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("method", "state-F1", "gap closed", ""))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(map(_row, rows))}</tbody></table>"
    counts = f"{len(records)} queries, {len(records[0]['candidates'])} drafts each.</p>"
    parts = (
        Part("methods", "Methods", f"{scroll('Methods', table)}{HOW} {counts}"),
        Part("queries", "Some queries", "".join(_examples(records, selections))),
    )
    footer = f"<code>{escape(selections[0].signature)}</code><br>"
    return static_page("tabon demo", OPENING, parts, footer=footer)


def _row(row: Row) -> str:
    """Return one line of the table with its bar."""
    closed = row.gap_closed or 0.0
    kind = "gap minus" if closed < 0 else "gap"
    bar = f'<span class="{kind}" style="width:{abs(closed) * 12:.2f}rem"></span>'
    cells = f'<td>{row.state_f1:.3f}</td><td>{row.gap()}</td><td class="left">{bar}</td>'
    return f'<tr><th scope="row">{escape(row.method)}</th>{cells}</tr>'


def _examples(records: Sequence[Mapping[str, Any]], selections: Sequence[Selection]) -> Iterator[str]:
    """Yield the queries with the widest margins: there the method has an opinion."""
    both = zip(records, selections, strict=True)
    chosen = [pair for pair in both if pair[1].selected is not None]
    for record, selection in sorted(chosen, key=lambda pair: -(pair[1].margin or 0.0))[:EXAMPLES]:
        prior = record["prior"]
        drafts = "".join(
            _draft(number, draft, selection) for number, draft in enumerate(record["candidates"])
        )
        yield (
            f"<article><h3>{escape(record['id'])}</h3><p><b>Prior findings.</b> {escape(prior['findings'])} "
            f"<b>Prior impression.</b> {escape(prior['impression'])}</p>{drafts}</article>"
        )


def _draft(number: int, draft: Mapping[str, Any], selection: Selection) -> str:
    """Return one draft with its distance and its true errors."""
    chosen = number == selection.selected
    mark = "chosen, " if chosen else ""
    errors = ", ".join(draft["errors"]) or "none"
    note = (
        f"draft {number}: {mark}total distance {selection.total_distances[number]:.3f}; true errors: {errors}"
    )
    text = draft.get("text") or f"{draft.get('findings', '')}\n{draft.get('impression', '')}"
    return (
        f'<div class="draft{" chosen" if chosen else ""}"><small>{escape(note)}</small>\n{escape(text)}</div>'
    )
