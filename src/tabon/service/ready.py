"""The golden self-query: a fixed question whose answer must not change while the service runs."""

from dataclasses import dataclass
from typing import Final

from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

GOLDEN: Final = Query(
    id="tabon-golden",
    priors=(
        Report(
            findings="The lungs are clear. Heart size is normal. No pleural effusion or pneumothorax.",
            impression="No acute cardiopulmonary process.",
        ),
    ),
    candidates=(
        Report(
            findings="New small left pleural effusion. Heart size is normal. No pneumothorax.",
            impression="New small left pleural effusion.",
        ),
        Report(
            findings="The lungs are clear. Heart size is mildly enlarged. No pleural effusion.",
            impression="Mild cardiomegaly without edema.",
        ),
    ),
)
GOLDEN_SENTENCES: Final = tuple(
    sentence
    for report in (*GOLDEN.priors, *GOLDEN.candidates)
    for section in SECTIONS
    for sentence in split_sentences(report.section(section))
)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the service may be asked, and why not."""

    ready: bool
    reason: str = ""
