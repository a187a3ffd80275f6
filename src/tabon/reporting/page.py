"""An evaluation on one page: tables, figures, and what they rest on.

The page is one file. It asks no other host for anything and runs no script. Every name
and text is escaped here; the tables come as finished HTML.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from types import MappingProxyType
from typing import Any

from tabon.errors import UnknownNameError
from tabon.evaluation.results import Results, Run
from tabon.reporting.plots import Picture
from tabon.reporting.tables.places import section_name

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
GROUPS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {  # group: its heading, and how to read its tables
        "headline": ("Headline", "What the picks of each method are worth, beside a random pick."),
        "pairs": (
            "Selectors against each other",
            "Is one better, or did chance alone put it ahead? The same patients are resampled for both.",
        ),
        "subgroups": (
            "Groups of studies",
            "For whom? The same comparisons in groups, and whether the groups differ.",
        ),
        "per-run": ("Run by run", "The same for each set of drafts: a generator under a prompt."),
        "deltas": ("Differences", "What each method adds to a random pick of the same drafts."),
        "statistics": (
            "Statistics",
            "Could chance alone have done it? Intervals resample patients; tests are paired, study by study.",
        ),
        "cohort": ("Cohort", "The patients, visits and transitions that all numbers rest on."),
        "paper": ("Beside the paper", "Our numbers and the printed ones, in the same places."),
    }
)
OPEN_TABLES = 4  # of a part
NO_PICTURES = (
    "The figures are left out: matplotlib is not installed; add it with: pip install 'tabon[plots]'."
)
PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>$title</title>
<style>
$css</style></head><body>
<header><h1>$title</h1>
$opening
</header>
<nav aria-label="Parts of this page"><ul>$links</ul></nav>
<main>
$parts
</main>
<footer>$footer This page is one file; it loads nothing from elsewhere.</footer>
</body></html>
""")


@dataclass(frozen=True, slots=True)
class Fragment:
    """One table as finished HTML, and the part of the page it belongs to."""

    title: str
    group: str  # a key of GROUPS
    html: str

    def __post_init__(self) -> None:
        """Refuse a group that the page does not have."""
        if self.group not in GROUPS:
            raise UnknownNameError("table group", self.group, GROUPS)


def report_page(
    results: Results,
    tables: Sequence[Fragment],
    *,
    columns: Mapping[str, str],
    title: str,
    pictures: Sequence[Picture] | None = None,
) -> str:
    """Return the page as HTML, without a script; each table is shown once, under its group.

    `columns` are headings and the scores that are shown; `pictures` are None where nothing can be drawn.
    """
    there = {table.group for table in tables}
    groups = [
        (group, heading, _tables_html(group, tables))
        for group, (heading, _) in GROUPS.items()
        if group in there
    ]
    headlines = int("headline" in there)
    parts = [  # id, heading, finished HTML
        *groups[:headlines],
        ("figures", "Figures", pictures_html(pictures)),
        *groups[headlines:],
        ("missing", "Not measured", _missing_html(results, columns)),
        ("settings", "Signatures and settings", _settings_html(results, columns)),
    ]
    versions = results.settings.get("versions")
    version = str(versions.get("tabon", "")) if isinstance(versions, Mapping) else ""
    return page_of(title, _opening(results, columns), parts, f"Measured with tabon {version}.")


def page_of(title: str, opening: str, parts: Sequence[tuple[str, str, str]], footer: str) -> str:
    """Return a page of parts, each with its id, its heading and finished HTML; so is the opening."""
    return PAGE.substitute(
        policy=escape(POLICY),
        title=escape(title),
        css=files("tabon.reporting").joinpath("page.css").read_text(encoding="utf-8"),
        opening=opening,
        links="".join(f'<li><a href="#{part}">{escape(heading)}</a></li>' for part, heading, _ in parts),
        parts="\n".join(
            f'<section id="{part}"><h2>{escape(heading)}</h2>\n{html}\n</section>'
            for part, heading, html in parts
        ),
        footer=escape(footer),
    )


def _opening(results: Results, columns: Mapping[str, str]) -> str:
    """Say what this is, how much was measured, and what it is not for."""
    tallies = "".join(_tally(results, section, columns) for section in results.sections())
    runs = results.runs
    counts = {
        "runs": str(len(runs)),
        "studies a run": _spread([run.studies for run in runs]),
        "patients a run": _spread([run.patients for run in runs]),
        "drafts in all": f"{sum(run.drafts for run in runs):,}",
        "methods": str(len(results.methods)),
        "scores": str(len(results.scores)),
    }
    cards = "".join(f"<div><dt>{name}</dt><dd>{count}</dd></div>" for name, count in counts.items())
    return (
        '<p class="lead">What each way of choosing among a study\'s generated chest X-ray reports is worth, '
        "measured against the report that the radiologist wrote.</p>\n"
        '<p class="notice"><strong>Research use only; not a medical device.</strong> The numbers compare '
        "ways of choosing among drafts. They do not say that any draft is safe to use.</p>\n"
        f'<dl class="facts">{cards}</dl>\n{_shut("The runs", _runs_table(runs))}\n'
        f'<ul class="tally">{tallies}</ul>\n'
        '<p class="how">Random is the exact expectation of a uniform pick, the oracle the best draft '
        "of each study, score by score. The gap closed is the share of the way from random to oracle that "
        "a method goes.</p>"
    )


def _spread(counts: Sequence[int]) -> str:
    """Write equal counts once, others from the smallest to the largest.

    >>> _spread([1727, 1727]), _spread([3, 1200]), _spread([])
    ('1,727', '3–1,200', '–')
    """
    if not counts:
        return "–"
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _runs_table(runs: Sequence[Run]) -> str:
    """Return the runs as a table."""
    heads = [
        "run",
        "model",
        "prompt",
        "studies",
        "patients",
        "drafts",
        "short of drafts",
        "abstained, by method",
    ]
    rows = []
    for run in runs:
        counts = [f"{count:,}" for count in (run.studies, run.patients, run.drafts, run.short)]
        rows.append([run.name, run.model, run.prompt, *counts, _spread(list(run.abstained.values()) or [0])])
    return scroll("Runs", plain_table(heads, rows))


def _tally(results: Results, section: str, columns: Mapping[str, str]) -> str:
    """Count the method and score pairs of a section whose interval leaves random out."""
    ends = [
        (cell.delta_low, cell.delta_high)
        for cell in results.cells
        if (cell.run, cell.section) == (results.main_run(), section)
        and cell.method in results.methods
        and cell.score in columns.values()
    ]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    if not known:
        return ""
    above, below = sum(low > 0 for low, _ in known), sum(high < 0 for _, high in known)
    bars = "".join(
        f'<i class="{kind}" style="width:{100 * count / len(known):.2f}%"></i>'
        for kind, count in (("above", above), ("below", below))
    )
    return (
        f"<li><strong>{escape(section_name(section))}</strong>: of {len(known)} pairs of method and score, "
        f"{above} lie above random with their 95 % interval clear of it, {below} below, "
        f"{len(known) - above - below} cannot be told apart from it."
        f'<span class="bar" aria-hidden="true">{bars}</span></li>'
    )


def _tables_html(group: str, tables: Sequence[Fragment]) -> str:
    """Return the tables of one group; all but the first few open when asked for."""
    titled = [(table.title, scroll(table.title, table.html)) for table in tables if table.group == group]
    shown = [f"<h3>{escape(title)}</h3>\n{html}" for title, html in titled[:OPEN_TABLES]]
    shown += [_shut(title, html) for title, html in titled[OPEN_TABLES:]]
    return "\n".join([f'<p class="how">{escape(GROUPS[group][1])}</p>', *shown])


def pictures_html(pictures: Sequence[Picture] | None) -> str:
    """Return the pictures; folded neighbours open together."""
    if pictures is None:
        return f"<p>{escape(NO_PICTURES)}</p>"
    if not pictures:
        return "<p>There is nothing to draw.</p>"
    parts = []
    for folded, group in groupby(pictures, key=lambda picture: picture.folded):
        figures = []
        for picture in group:  # it stays white in the dark
            svg = picture.drawing.svg
            data = b64encode(svg.encode()).decode()
            found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
            width, height = (round(float(side) * 4 / 3) for side in found.groups()) if found else (800, 600)
            figures.append(
                f'<figure id="{escape(picture.name)}"><div class="scroll picture" tabindex="0">'
                f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(picture.alt)}" '
                f'width="{width}" height="{height}" style="max-width:{width}px"></div></figure>'
            )
        body = "\n".join(figures)
        parts.append(_shut(f"{len(figures)} more like this", body) if folded else body)
    return "\n".join(parts)


def _missing_html(results: Results, columns: Mapping[str, str]) -> str:
    """Say what is not measured and why."""
    rows = list(results.missing.items())
    rows += [
        (heading, f"the results have no score {score}")
        for heading, score in columns.items()
        if score not in results.scores and not results.missing_metrics(score)
    ]
    empty = sum(cell.value is None for cell in results.cells)
    note = f"<p>Cells without a number: {empty:,}; their tables show a dash.</p>" if empty else ""
    if not rows:
        return f"<p>Every score that was asked for is measured.</p>{note}"
    return scroll("Not measured", plain_table(("what", "why"), rows, kind="words")) + note


def _settings_html(results: Results, columns: Mapping[str, str]) -> str:
    """Return everything that changes a number."""
    headings = {score: f"{heading} ({score})" for heading, score in columns.items()}
    marks = {score: "headline" if score in results.headline else "" for score in results.scores}
    scores = [(headings.get(score, score), marks[score], line) for score, line in results.scores.items()]
    queries = [(run.name, run.queries) for run in results.runs]
    blocks = {
        "Scores": plain_table(("score", "family", "signature"), scores, kind="words"),
        "Methods": plain_table(("method", "signature"), list(results.methods.items()), kind="words"),
        "Settings": plain_table(("setting", "value"), list(_flat(results.settings)), kind="words"),
        "Drafts": plain_table(("run", "sha256 of the queries file"), queries, kind="words"),
    }
    return "\n".join(f"<h3>{name}</h3>\n{scroll(name, table)}" for name, table in blocks.items())


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested settings as dotted names and values."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value, default=str)


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, kind: str = "numbers") -> str:
    """Return a table of escaped texts."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    lines = "\n".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f'<table class="{kind}"><thead><tr>{top}</tr></thead>\n<tbody>{lines}</tbody></table>'


def scroll(name: str, html: str) -> str:
    """Put something wide into a box that scrolls by itself, by keyboard too."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">{html}</div>'


def _shut(summary: str, html: str) -> str:
    """Put something long behind one line."""
    return f"<details><summary>{escape(summary)}</summary>\n{html}</details>"
