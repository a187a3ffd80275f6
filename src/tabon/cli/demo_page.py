"""The demo's report: one static page, no script, nothing from elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from string import Template
from typing import Any

from tabon.method.selection import Selection

EXAMPLES = 6
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


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


PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width">
<title>tabon demo</title><style>
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
  color:#1b1f2a;background:#fff}
h1{margin-bottom:0}table{border-collapse:collapse;margin:1rem 0}
td,th{padding:.25rem .8rem;border-bottom:1px solid #d6dbe4;text-align:left}
td.number{text-align:right;font-variant-numeric:tabular-nums}
.bar{background:#2f6f84;height:.7rem;display:inline-block}.bar.minus{background:#c24b2a}
article{border:1px solid #d6dbe4;border-radius:.5rem;padding:.5rem 1rem;margin:1rem 0}
.draft{border-left:.3rem solid #d6dbe4;padding:.2rem .8rem;margin:.6rem 0;white-space:pre-line}
.draft.chosen{border-color:#c19a2a;background:#fbf7ee}
small{color:#4c5263}
@media(prefers-color-scheme:dark){body{color:#e6e8ee;background:#14171f}td,th,article{border-color:#39404f}
.draft{border-color:#39404f}.draft.chosen{background:#2a2618}small{color:#a8aebc}}
</style></head><body>
<h1>tabon demo</h1>
<p>Simulated patients, simulated drafts, the real encoder. Research use only; not a medical device.</p>
<table><tr><th>method<th>state-F1<th>gap closed<th></tr>$rows</table>
<p><small>state-F1: agreement of the chosen draft with the simulated truth. Gap closed: 0 % is a random pick,
100 % the best draft each time; ± one standard error. $queries queries,
$drafts drafts each.<br>$signature</small></p>
<h2>Some queries</h2>$examples
</body></html>
""")


def demo_page(
    rows: Sequence[Row], records: Sequence[Mapping[str, Any]], selections: Sequence[Selection]
) -> str:
    """Return the page as HTML; every text is escaped."""
    return PAGE.substitute(
        policy=POLICY,
        rows="".join(map(_row, rows)),
        queries=len(records),
        drafts=len(records[0]["candidates"]),
        signature=escape(selections[0].signature),
        examples="".join(_examples(records, selections)),
    )


def _row(row: Row) -> str:
    """Return one line of the table with its bar."""
    closed = row.gap_closed or 0.0
    kind = "bar minus" if closed < 0 else "bar"
    bar = f'<span class="{kind}" style="width:{abs(closed) * 12:.2f}rem"></span>'
    cells = f'<td class="number">{row.state_f1:.3f}<td class="number">{row.gap()}<td>{bar}'
    return f"<tr><td>{escape(row.method)}{cells}</tr>"


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
