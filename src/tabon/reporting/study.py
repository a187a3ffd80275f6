"""The files of a reader study's results: numbers, tables, pictures, draft scores, comments, one page."""

import json
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from html import escape
from importlib.metadata import version
from pathlib import Path

from tabon._internal.atomic_files import replacing
from tabon.errors import MissingExtraError
from tabon.evaluation.outside_scores import FIELDS
from tabon.reporting.page import page_of, pictures_html, plain_table, scroll
from tabon.reporting.plots.pictures import Picture
from tabon.reporting.plots.study import study_pictures
from tabon.reporting.study_tables import comments_table, study_tables
from tabon.reporting.tables.render import Table, render
from tabon.study.results import StudyResults


def write_study_report(
    results: StudyResults, out: Path, *, notes: bool = True, figures: Sequence[str] = ()
) -> tuple[Path, ...]:
    """Write the numbers, tables as LaTeX and CSV, figures and the page; return the files."""
    tables = tuple(table if notes else replace(table, notes=()) for table in study_tables(results))
    files = {out / "results.json": results.as_json().encode()}
    files |= {
        out / "tables" / f"{table.label.removeprefix('tab:study-')}.{ending}": render(table, form).encode()
        for table in tables
        for form, ending in (("latex", "tex"), ("csv", "csv"))
    }
    drawn: tuple[Picture, ...] | None = None
    with nullcontext() if figures else suppress(MissingExtraError):
        drawn = study_pictures(results)
    files |= {
        out / "figures" / f"{picture.name}.{form}": picture.drawing.saved(form)
        for picture in drawn or ()
        for form in figures or ("svg",)
    }
    if results.scores:
        files[out / "scores.jsonl"] = _scores(results)
    if results.comments:
        files[out / "comments.csv"] = render(comments_table(results), "csv").encode()
    files[out / "report.html"] = study_page(results, tables, drawn).encode()
    for path, data in files.items():
        with replacing(path) as file:
            file.write(data)
    return tuple(files)


def _scores(results: StudyResults) -> bytes:
    """Return the means of the drafts, as `tabon evaluate --scores` reads them."""
    records = (asdict(score) for score in results.scores)
    lines = (json.dumps({field: record[field] for field in FIELDS}) for record in records)
    return "".join(f"{line}\n" for line in lines).encode()


def study_page(results: StudyResults, tables: Sequence[Table], pictures: Sequence[Picture] | None) -> str:
    """Return the results on one page."""
    answered = sum(one.answered for one in results.readers)
    facts = {
        "design": results.design,
        "cases": f"{results.cases:,}",
        "readers": str(len(results.readers)),
        "answers": f"{answered:,} of {sum(one.readings for one in results.readers):,}",
        "selectors": str(len(results.selectors)) if results.selectors else "–",
        "hours of reading": f"{sum(one.hours for one in results.readers):.1f}",
    }
    cards = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts.items())
    opening = (
        f'<p class="lead">{escape(results.question)}</p>\n'
        '<p class="notice"><strong>Research use only; not a medical device.</strong> Readers saw the drafts '
        "without knowing who chose them. Their answers do not say that any draft is safe to use.</p>\n"
        f'<dl class="facts">{cards}</dl>'
    )
    parts = [
        (table.label.removeprefix("tab:"), table.title, scroll(table.title, render(table, "html")))
        for table in tables
    ]
    parts.insert(min(1, len(parts)), ("figures", "Figures", pictures_html(pictures)))
    if results.comments:
        comments = [(one.reader, one.id, _places(one.drafts), one.text) for one in results.comments]
        heads = ("reader", "query", "drafts as shown, from 0", "comment")
        parts.append(("comments", "Comments", scroll("Comments", plain_table(heads, comments, kind="words"))))
    rows = [
        ("study", results.study),
        ("resamples", f"{results.chance.resamples:,}, seed {results.chance.seed}"),
        *results.selectors.items(),
    ]
    settings = plain_table(("what", "value"), rows, kind="words")
    parts.append(("settings", "Selectors and settings", scroll("Selectors and settings", settings)))
    return page_of(results.title, opening, parts, f"Worked out with tabon {version('tabon')}.")


def _places(drafts: Sequence[int]) -> str:
    """Write the numbers of drafts."""
    return ", ".join(map(str, drafts))
