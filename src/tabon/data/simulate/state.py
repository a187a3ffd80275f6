"""What is true of a patient on one visit, as findings and as countable facts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Course = Literal["", "stable", "new", "improved", "worse", "moved", "resolved"]
Severity = Literal["", "mild", "moderate", "severe"]
Side = Literal["", "left", "right", "bilateral"]

COURSES: tuple[Course, ...] = get_args(Course)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)[1:]
UNCHANGED = ("", "stable")  # the courses that make no fact


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding or device on one visit.

    An empty field does not apply or is not said. `course` is the change since
    the visit before: empty on a first visit, `resolved` when the finding has
    just gone (or the device was taken out), `moved` for a device with a new tip.
    """

    kind: str
    side: Side = ""
    severity: Severity = ""
    place: str = ""  # the lobe, or where the tip of a device lies
    onset: int = 1  # the visit that first showed it
    course: Course = ""

    @property
    def present(self) -> bool:
        """Whether it is there now."""
        return self.course != "resolved"

    @property
    def changed(self) -> bool:
        """Whether it differs from the visit before."""
        return self.course not in UNCHANGED


def finding_facts(finding: Finding) -> list[str]:
    """The facts of one finding: its presence, side, severity and change.

    No change and no word about change are the same, so `stable` is no fact. A
    finding that has resolved is one fact only.

    >>> finding_facts(Finding("pleural effusion", "left", "mild", course="new"))
    ['pleural effusion', 'pleural effusion: left', 'pleural effusion: mild', 'pleural effusion: new']
    >>> finding_facts(Finding("pleural effusion", "left", "mild", course="resolved"))
    ['pleural effusion: resolved']
    """
    if not finding.present:
        return [f"{finding.kind}: resolved"]
    details = [finding.side, finding.severity, finding.course if finding.changed else ""]
    return [finding.kind, *(f"{finding.kind}: {detail}" for detail in details if detail)]


def facts(findings: Iterable[Finding]) -> list[str]:
    """All facts of a visit or of a report, sorted, each once."""
    return sorted({fact for finding in findings for fact in finding_facts(finding)})
