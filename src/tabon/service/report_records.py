"""Reports, and sentences beside each other, as JSON that a page can set: with the words to set off.

Places in a sentence count characters, as Python does; numbers have six digits, and what is none is null.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

from tabon.explanation.alignment import Aligned
from tabon.explanation.differences import differences
from tabon.text.marks import marks
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

DIGITS: Final = 6
Record = dict[str, Any]


def report_record(report: Report) -> Record:
    """Return a report as sentences, which flags and alignments point at, and as it was written.

    `written` has the sections whose text is not their sentences with a blank between them.
    """
    sentences = {section: list(split_sentences(report.section(section))) for section in SECTIONS}
    return {
        **{str(section): found for section, found in sentences.items()},
        "other": report.other,
        "marks": {
            section: [[[mark.kind, mark.start, mark.end] for mark in marks(one)] for one in found]
            for section, found in sentences.items()
        },
        "written": {
            section: report.section(section)
            for section, found in sentences.items()
            if report.section(section) != " ".join(found)
        },
    }


def line_record(pair: Aligned, prior: Sequence[str], current: Sequence[str]) -> Record:
    """Return one line of an alignment, with the words that differ if the sentence was reworded."""
    record: Record = {
        "kind": pair.kind,
        "prior": pair.prior,
        "current": pair.current,
        "distance": number(pair.distance),
        "turned": list(pair.turned),
    }
    if pair.kind == "reworded" and pair.prior is not None and pair.current is not None:
        found = differences(prior[pair.prior], current[pair.current])
        record["lost"], record["added"] = list(map(list, found.lost)), list(map(list, found.added))
        record["turns"] = [[turn.kind, list(turn.before), list(turn.after)] for turn in found.turns]
    return record


def number(value: float | None) -> float | None:
    """Round a number; NaN and infinity are not numbers in JSON.

    >>> [number(value) for value in (0.12345678, float("nan"), None, -0.0)]
    [0.123457, None, None, 0.0]
    """
    return None if value is None or not isfinite(value) else round(float(value), DIGITS) + 0.0
