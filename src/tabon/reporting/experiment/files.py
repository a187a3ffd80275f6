"""From results to files: every table in four forms, every figure, one page.

Only the results are read, so the files can be made again byte for byte on any
machine, without network, data or models.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tabon._internal.atomic_files import replacing
from tabon._internal.typed_values import MisfitError, fitting
from tabon.errors import BadInputError, MissingExtraError, TabonError
from tabon.evaluation.results import ORACLE, RANDOM, RANDOM_SEEDS, Results, read_results
from tabon.reporting.experiment.plan import ReportPlan
from tabon.reporting.page import Fragment, report_page
from tabon.reporting.plots import Picture, pictures
from tabon.reporting.plots.curves import curves_of
from tabon.reporting.plots.pictures import maps_of
from tabon.reporting.tables import Table, all_tables, render
from tabon.reporting.tables.places import score_name

ENDINGS = {"markdown": "md", "latex": "tex", "csv": "csv", "html": "html"}
GROUPS = {  # how a table's label begins: its part of the page
    "tab:avg": "headline",
    "tab:pairs": "pairs",
    "tab:subgroups": "subgroups",
    "tab:per-run": "per-run",
    "tab:delta": "deltas",
    "tab:statistics": "statistics",
    "tab:cohort": "cohort",
    "tab:paper": "paper",
}
OWN_NAME = re.compile(  # of a file that a report writes into its folders
    r"(?:headline|pairs|subgroups|per-run|delta|statistics|cohort|paper|gains|gap-by|transition-map|runs)"
    r"(?:-[a-z0-9-]+)?\.(?:md|tex|csv|html|svg|pdf|png)"
)


def plan_of(results: Results) -> tuple[ReportPlan, str]:
    """Return what the tables of these results show."""
    try:
        record = dict(fitting(Mapping[str, Any], results.facts.get("report") or {}, "facts.report"))
        title = fitting(str, record.pop("title", "Evaluation"), "facts.report.title")
        if not record:
            names = {score: score_name(score) for score in results.headline}
            once = [name for name, count in Counter(names.values()).items() if count == 1]
            return ReportPlan(
                columns={name if name in once else score: score for score, name in names.items()}
            ), title
        return fitting(ReportPlan, record, "facts.report"), title
    except MisfitError as error:
        raise BadInputError(f"the results are not whole ({error}); evaluate again") from None


def read_whole_results(path: Path) -> Results:
    """Read results with all that tables and pictures need; what is not whole is refused by name."""
    results = read_results(path)
    try:
        plan_of(results)
        curves_of(results)
        maps_of(results)
    except TabonError as error:
        raise BadInputError(f"{path}: {error}") from None
    return results


def tables_of(results: Results, plan: ReportPlan) -> tuple[Table, ...]:
    """Return the tables that are shown."""
    tables = all_tables(
        results,
        plan.columns,
        deltas={heading: plan.columns[heading] for heading in plan.deltas},
        method=plan.per_run,
        references=(RANDOM, RANDOM_SEEDS, ORACLE),
    )
    return tuple(table for table in tables if plan.compare or group_of(table) != "paper")


def group_of(table: Table) -> str:
    """Return a table's part of the page."""
    return next((group for start, group in GROUPS.items() if table.label.startswith(start)), "paper")


def file_name(table: Table) -> str:
    """Return the name of a table's file: what it shows, then of which section."""
    return table.label.removeprefix("tab:").replace(":", "-").replace("avg-", "headline-")


def is_first(table: Table) -> bool:
    """Say whether a table is one that is looked at first: the headline, or selectors against each other."""
    return group_of(table) in ("headline", "pairs", "subgroups")


def write_report(
    results: Results,
    out: Path,
    *,
    every: bool = False,
    notes: bool = True,
    figures: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Write tables, figures and the page; return the files.

    The page has all tables. Files are of the first ones, as LaTeX and CSV; with `every` of all, in all forms.
    Figures are written in the forms that are named; without one as SVG, if they can be drawn. Tables and
    figures that are there of other results go.
    """
    plan, title = plan_of(results)
    tables = tuple(table if notes else replace(table, notes=()) for table in tables_of(results, plan))
    forms = ENDINGS if every else ("latex", "csv")
    files = {
        out / "tables" / f"{file_name(table)}.{ENDINGS[form]}": render(table, form).encode()
        for table in tables
        if every or is_first(table)
        for form in forms
    }
    drawn: tuple[Picture, ...] | None = None
    with nullcontext() if figures else suppress(MissingExtraError):
        drawn = pictures(results, plan.columns)
    files |= {
        out / "figures" / f"{picture.name}.{form}": picture.drawing.saved(form)
        for picture in drawn or ()
        for form in figures or ("svg",)
    }
    fragments = [
        Fragment(title=table.title, group=group_of(table), html=render(table, "html")) for table in tables
    ]
    page = report_page(results, fragments, columns=plan.columns, title=title, pictures=drawn)
    files[out / "report.html"] = page.encode()
    for path, data in files.items():
        with replacing(path) as file:
            file.write(data)
    older = (path for folder in ("tables", "figures") for path in (out / folder).glob("*"))
    for path in older:
        if path not in files and OWN_NAME.fullmatch(path.name):
            path.unlink()
    return tuple(files)
