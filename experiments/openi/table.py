"""One setting's results as Markdown: the share of the random → oracle gap that each selector closes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from judging import FACTS, section_name
from selecting import Method

from tabon.evaluation.results import ORACLE, RANDOM, Cell, Results
from tabon.text.reports import SECTIONS

LETTERS = {"impression": "I", "findings": "F"}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a score of a section, and by which section's distances a draft was picked."""

    section: str  # of the score: a section, or "report"
    score: str
    picked_by: str = ""  # a section; "" is the joint pick

    @property
    def heading(self) -> str:
        """Return what stands above it."""
        section = self.picked_by if self.section == "report" else self.section
        return f"{LETTERS[section]} {self.score}" if section else self.score

    def method(self, method: str) -> str:
        """Return whose cell it shows."""
        return section_name(method, self.picked_by) if self.picked_by else method  # type: ignore[arg-type]


def setting_lines(
    setting: str, results: Results, rows: Sequence[Method], missing: Mapping[str, str]
) -> Iterator[str]:
    """Yield one setting's part of the page."""
    scores = [score for score in results.scores if score != FACTS]
    sections = sorted(SECTIONS, reverse=True)  # impressions first, as the paper's question is
    joint = [Column(section, score) for score in scores for section in sections]
    own = [Column(section, score, section) for score in scores for section in sections]
    facts = [Column("report", FACTS, section) for section in sections]
    studies = sum(run.studies for run in results.runs)
    seeds = ", ".join(run.name for run in results.runs)
    yield f"\n## {setting}\n"
    yield f"Seeds {seeds}; {studies} queries, all of `test.jsonl`.\n"
    yield "**One draft for both sections** (eq. 11):\n"
    yield from _table(results, rows, [*joint, Column("report", FACTS)])
    yield "\n**Each section's own draft** (its section's distances alone):\n"
    yield from _table(results, rows, [*own, *facts])
    for name, reason in missing.items():
        yield f"\nNot here: `{name}` ({reason})."


def _table(results: Results, rows: Sequence[Method], columns: Sequence[Column]) -> Iterator[str]:
    """Yield a table; the value of the random pick and of the oracle stand above the selectors."""
    yield f"| selector | {' | '.join(column.heading for column in columns)} |"
    yield "|---" * (1 + len(columns)) + "|"
    for name in (RANDOM, ORACLE):
        yield f"| {name} (value) | {' | '.join(_value(_cell(results, c, name)) for c in columns)} |"
    for row in rows:
        name = "↳ another patient's prior" if row.other_prior else f"`{row.selector}`"
        cells = (_cell(results, column, column.method(row.name)) for column in columns)
        yield f"| {name} | {' | '.join(map(_gap, cells))} |"


def _cell(results: Results, column: Column, method: str) -> Cell | None:
    """Return the cell of the mean over seeds, or of the only one."""
    return results.cell(run=results.main_run(), section=column.section, method=method, score=column.score)


def _value(cell: Cell | None) -> str:
    """Write a value."""
    return "–" if cell is None or cell.value is None else f"{cell.value:.3f}"


def _gap(cell: Cell | None) -> str:
    """Write a share of the gap in percent, with its interval."""
    if cell is None or cell.gap is None or cell.gap_low is None or cell.gap_high is None:
        return "–"
    return f"{100 * cell.gap:.1f} [{100 * cell.gap_low:.1f}, {100 * cell.gap_high:.1f}]"
