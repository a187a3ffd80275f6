"""The table of the cohort: patients, visits and transitions of each split, and the paper's beside them."""

from collections.abc import Iterator
from dataclasses import dataclass

from tabon.data.cohort.build import PAPER
from tabon.evaluation.results import Results
from tabon.reporting.tables.places import DASH
from tabon.reporting.tables.render import Block, Heading, Table, TableCell, TableRow

COUNTED = ("Patients", "Visits", "Transitions")


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortSplit:
    """The counts of one split, as results keep them under `cohort`."""

    split: str
    patients: int
    visits: int
    transitions: int

    def counts(self) -> tuple[int, int, int]:
        """Return the counts in the order of the table."""
        return self.patients, self.visits, self.transitions


def cohort_tables(results: Results) -> Iterator[Table]:
    """Yield the cohort's table and the one beside the paper's; nothing where results do not know a cohort."""
    splits = results.typed_facts("cohort", CohortSplit)
    if splits:
        yield _cohort_table(splits)
        yield _cohort_comparison(splits)


def _cohort_table(splits: list[CohortSplit]) -> Table:
    """Return one row per split."""
    return Table(
        label="tab:cohort",
        title="Cohort",
        caption="patients with at least two visits; a transition is a pair of consecutive visits.",
        headings=(
            Heading(text="Split", align="l"),
            *(Heading(text=text, align="r") for text in COUNTED),
        ),
        blocks=(Block(rows=tuple(_row(split.split, map(_count, split.counts())) for split in splits)),),
    )


def _cohort_comparison(splits: list[CohortSplit]) -> Table:
    """Return the paper's counts, ours, and ours minus theirs."""
    rows = []
    for split in splits:
        printed = PAPER.get(split.split)
        pairs = zip(printed or (None,) * len(COUNTED), split.counts(), strict=True)
        texts = (
            text
            for theirs, ours in pairs
            for text in (
                _count(theirs),
                _count(ours),
                DASH if theirs is None else f"{ours - theirs:+,}",
            )
        )
        rows.append(_row(split.split, texts))
    return Table(
        label="tab:paper-cohort",
        title="Cohort",
        caption="the paper's counts beside ours.",
        headings=(
            Heading(text="Split", align="l"),
            *(
                Heading(text=text, group=group, align="r")
                for group in COUNTED
                for text in ("paper", "ours", "diff.")
            ),
        ),
        blocks=(Block(rows=tuple(rows)),),
    )


def _row(name: str, texts: Iterator[str]) -> TableRow:
    """Return a row under its split."""
    return TableRow(cells=(TableCell(text=name), *(TableCell(text=text) for text in texts)))


def _count(number: int | None) -> str:
    """Write a count, a dash where there is none."""
    return DASH if number is None else f"{number:,}"
