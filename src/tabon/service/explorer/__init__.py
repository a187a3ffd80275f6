"""The explorer: a cohort's studies, their drafts, the pick and why, as one page.

    queries ─▶ studies (`studies`) ─▶ JSON (`records`) ─▶ served by `tabon.service`, or one file (`export`)

The page itself is in `page/`; it has no build step and asks no other host.
"""

from tabon.service.explorer.export import Page, overview_record, read_page, study_record, write_report
from tabon.service.explorer.studies import (
    MOST_STUDIES,
    ExplorerSettings,
    Studies,
    Study,
    StudyLine,
    explorer_of,
)

__all__ = [
    "MOST_STUDIES",
    "ExplorerSettings",
    "Page",
    "Studies",
    "Study",
    "StudyLine",
    "explorer_of",
    "overview_record",
    "read_page",
    "study_record",
    "write_report",
]
