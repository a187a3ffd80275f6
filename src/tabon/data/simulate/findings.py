"""The findings and devices that simulated patients may have, and what is true of them on one visit.

`rates` are per thousand patients at the first visit, for the three kinds of patient in `HEALTH`;
acute findings and devices also begin later, at rates that `tabon.data.simulate.patients` derives.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
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


Group = Literal["chronic", "acute", "device"]
Region = Literal["devices", "heart", "mediastinum", "lungs", "pleura", "bones"]
Rates = tuple[int, int, int]

HEALTH = ("well", "chronic", "unwell")
HEALTH_WEIGHTS = (54, 28, 18)

EITHER: tuple[Side, ...] = ("left", "right")
ANY: tuple[Side, ...] = ("left", "right", "bilateral")
MOSTLY_LEFT: tuple[Side, ...] = ("left", "left", "left", "right")
MOSTLY_RIGHT: tuple[Side, ...] = ("right", "right", "right", "left")
BOTH: tuple[Side, ...] = ("bilateral",)

LOBES = ("upper lobe", "lower lobe", "lower lobe", "basilar", "perihilar", "mid lung")
BASES = ("basilar", "basilar", "lower lobe", "mid lung")
VEINS = (
    "in the mid SVC",
    "in the lower SVC",
    "at the cavoatrial junction",
    "in the right atrium",
    "in the brachiocephalic vein",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the catalogue."""

    name: str
    group: Group
    region: Region
    rates: Rates
    sides: tuple[Side, ...] = ()
    places: tuple[str, ...] = ()
    graded: bool = False
    incidental: bool = False  # left out of some reports, and of the impression


_ROWS = (
    Kind("endotracheal tube", "device", "devices", (0, 0, 140), places=(
        "well above the carina", "at the level of the clavicles", "just above the carina")),
    Kind("enteric tube", "device", "devices", (0, 2, 120), places=(
        "in the stomach", "below the diaphragm", "in the distal esophagus")),
    Kind("central venous catheter", "device", "devices", (0, 12, 170), MOSTLY_RIGHT, VEINS),
    Kind("PICC", "device", "devices", (0, 20, 100), EITHER, VEINS),
    Kind("chest tube", "device", "devices", (0, 0, 60), EITHER, ("at the apex", "at the base")),
    Kind("chest port", "chronic", "devices", (2, 40, 30), MOSTLY_RIGHT, VEINS[:3]),
    Kind("pacemaker", "chronic", "devices", (3, 75, 60), MOSTLY_LEFT, (
        "in the right ventricle", "in the right atrium and right ventricle")),
    Kind("cardiomegaly", "chronic", "heart", (20, 260, 300), graded=True),
    Kind("sternotomy", "chronic", "heart", (4, 110, 110), incidental=True),
    Kind("aortic tortuosity", "chronic", "mediastinum", (20, 150, 60), incidental=True),
    Kind("aortic calcification", "chronic", "mediastinum", (18, 190, 100), incidental=True),
    Kind("hiatal hernia", "chronic", "mediastinum", (6, 45, 20), graded=True, incidental=True),
    Kind("hyperinflation", "chronic", "lungs", (20, 210, 90), incidental=True),
    Kind("granuloma", "chronic", "lungs", (40, 80, 30), EITHER, LOBES[:3], incidental=True),
    Kind("scarring", "chronic", "lungs", (25, 130, 60), ANY, ("apical", "basilar", "mid lung"),
         incidental=True),
    Kind("pulmonary fibrosis", "chronic", "lungs", (0, 60, 30), BOTH, ("basilar",), graded=True),
    Kind("lung nodule", "acute", "lungs", (12, 45, 30), EITHER, LOBES[:2]),
    Kind("consolidation", "acute", "lungs", (30, 55, 230), ANY, LOBES, graded=True),
    Kind("atelectasis", "acute", "lungs", (22, 90, 280), ANY, BASES, graded=True),
    Kind("pulmonary edema", "acute", "lungs", (3, 60, 220), graded=True),
    Kind("interstitial opacity", "acute", "lungs", (14, 55, 90), ANY, BASES, graded=True),
    Kind("low lung volumes", "acute", "lungs", (22, 40, 110), incidental=True),
    Kind("pleural effusion", "acute", "pleura", (7, 70, 300), ANY, graded=True),
    Kind("pneumothorax", "acute", "pleura", (4, 8, 80), EITHER, graded=True),
    Kind("pleural thickening", "chronic", "pleura", (5, 45, 20), EITHER, ("apical", "basilar"),
         incidental=True),
    Kind("elevated hemidiaphragm", "chronic", "pleura", (5, 40, 30), MOSTLY_RIGHT, incidental=True),
    Kind("degenerative spine", "chronic", "bones", (60, 230, 90), graded=True, incidental=True),
    Kind("scoliosis", "chronic", "bones", (20, 50, 20), graded=True, incidental=True),
    Kind("compression deformity", "chronic", "bones", (4, 50, 20), graded=True, incidental=True),
    Kind("healed rib fracture", "chronic", "bones", (12, 40, 20), EITHER, incidental=True),
    Kind("rib fracture", "acute", "bones", (6, 10, 30), EITHER, graded=False),
    Kind("surgical clips", "chronic", "bones", (14, 50, 30), incidental=True),
)  # fmt: skip

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _ROWS})
