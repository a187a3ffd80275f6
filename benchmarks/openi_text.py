"""Open-i's sentences where the archive lies beside the project, else the simulated cohort's."""

import sys
from functools import cache
from pathlib import Path

from tabon.data.simulate import SimulationSettings, simulate_transitions
from tabon.text.records import transition_from_record
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))


@cache
def reports() -> tuple[str, list[Report]]:
    """Return the name of the source and its reports."""
    from openi import ARCHIVE, openi_reports

    if ARCHIVE.exists():
        return "Open-i", [report for _, report in openi_reports()]
    made = map(transition_from_record, simulate_transitions(SimulationSettings(patients=4000), "train"))
    return "simulated cohort", [transition.current for transition in made]


@cache
def sentence_lists() -> list[tuple[str, ...]]:
    """Return the sentences of every section that has some."""
    lists = (split_sentences(report.section(section)) for report in reports()[1] for section in SECTIONS)
    return [sentences for sentences in lists if sentences]
