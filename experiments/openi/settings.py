"""How much the settings of text-overlap metrics alone move the scores, on the same texts.

    python experiments/openi/settings.py ARCHIVE WORDNET

Each of 1,000 of Open-i's reports is taken for a draft of the one before it in its group: reports with the
same MeSH codes, in the order of their numbers. WORDNET is a folder with WordNet's files.
"""

import sys
from collections.abc import Iterator
from itertools import groupby, islice, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from reading import OpeniReport, read_reports

from tabon.metrics import Pair, load_metric
from tabon.reporting.tables.places import HEADLINE, paper_values
from tabon.text.reports import Section

DRAFTS = 1_000
SECTIONS: tuple[Section, Section] = ("findings", "impression")
VARIANTS = {  # the paper's head: a score as it is by default, and under the other settings
    "BLEU-1": ("bleu-1", "nltk_bleu-1"),
    "BLEU-4": ("bleu-4", "nltk_bleu-4"),
    "ROUGE-1": ("rouge-1-f", "stemmed_rouge-1-f"),
    "ROUGE-L": ("rouge-l-f", "stemmed_rouge-l-f"),
    "METEOR": ("meteor", "split_meteor"),
}


def pairs_of(reports: tuple[OpeniReport, ...], section: Section) -> list[Pair]:
    """Return a section of reports beside that of the next one with the same codes."""

    def found() -> Iterator[Pair]:
        for _, group in groupby(
            sorted(reports, key=lambda one: (one.majors, one.number)), lambda one: one.majors
        ):
            for reference, draft in pairwise(group):
                yield Pair(reference=getattr(reference, section), candidate=getattr(draft, section))

    return list(islice(found(), DRAFTS))


def mean(score: str, pairs: list[Pair], wordnet: Path) -> float:
    """Return the mean of a score over the drafts."""
    family = score.partition("-")[0]
    metric = load_metric(family, model=wordnet if "meteor" in family else None)
    [wanted] = [each for each in metric.scores if each.name == score]
    return float(wanted.value(metric.measure(pairs).sum(axis=0), np.array(float(len(pairs)))))


def gain(column: str, section: Section) -> str:
    """Return the largest gain over random that the paper prints for a column of a section."""
    found = [
        value.relative
        for value in paper_values()
        if (value.table, value.section, value.column) == (HEADLINE, section, column) and value.relative
    ]
    return f"{max(found):+.1%}" if found else "–"


def lines(archive: Path, wordnet: Path) -> Iterator[str]:
    """Yield the rows of the table."""
    reports = read_reports(archive)
    for section in SECTIONS:
        pairs = pairs_of(reports, section)
        for column, (usual, other) in VARIANTS.items():
            before, after = (mean(score, pairs, wordnet) for score in (usual, other))
            moved = f"{after / before - 1:+.1%}"
            names = f"`{usual}` | {before:.3f} | `{other}` | {after:.3f}"
            yield f"| {section} | {names} | {moved} | {gain(column, section)} |"


if __name__ == "__main__":
    print("\n".join(lines(Path(sys.argv[1]), Path(sys.argv[2]))))
