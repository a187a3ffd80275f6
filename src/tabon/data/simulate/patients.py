"""Simulated patients: the findings they may have, their visits, and how a hidden state moves on.

`rates` are per thousand patients at the first visit, for the three kinds of patient in `HEALTH`;
acute findings and devices also begin later, at the rates of `ONSET`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from types import MappingProxyType
from typing import Literal, get_args

from tabon.data.simulate.settings import Draws

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


VISIT_COUNTS = (2, 3, 4, 5, 6)
VISIT_WEIGHTS = (882, 85, 21, 8, 4)  # mean 2.167; the paper's cohort has 42,237 / 19,492
FIRST_DAY = date(2001, 1, 1)
START_SPAN = 2000  # first visits fall within this many days of FIRST_DAY
AP_SHARE = (0.08, 0.25, 0.75)  # by health; the others are PA
INCIDENTAL_SAID = 0.85  # how often an incidental finding is reported
RESOLUTION_SAID = 0.6  # how often a resolution is reported
MOVES = 0.12  # how often a device has a new tip
FAREWELL = {"near": 0.2, "mid": 0.7, "far": 0.92}  # how often a device has been taken out
SEVERITY_WEIGHTS = (60, 30, 10)

GAPS = {  # days between visits: bins [low, high) and their weights by health
    "near": ((1, 8), (5, 8, 46)),
    "mid": ((8, 90), (22, 30, 32)),
    "far": ((90, 900), (73, 62, 22)),
}
COURSE_OF_ACUTE: dict[str, tuple[int, int, int, int]] = {  # resolved, improved, stable, worse
    "near": (15, 28, 37, 20),
    "mid": (45, 24, 21, 10),
    "far": (68, 12, 14, 6),
}
ACUTE_COURSES: tuple[Course, ...] = ("resolved", "improved", "stable", "worse")
ONSET = {"near": 0.35, "mid": 0.5, "far": 0.65}  # incidence as a share of prevalence
CHRONIC_ONSET = {"near": 0.0, "mid": 0.015, "far": 0.06}
CHRONIC_WORSENS = {"near": 0.0, "mid": 0.02, "far": 0.06}


@dataclass(frozen=True, slots=True)
class Visit:
    """One examination and the state that a careful reader would report."""

    number: int  # from 1
    day: date
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Patient:
    """A patient with two visits or more, in order of time."""

    index: int
    health: int  # an index into HEALTH
    view: str
    visits: tuple[Visit, ...]

    @property
    def name(self) -> str:
        """The patient's id in records."""
        return f"sim-{self.index:06d}"


def simulate_patient(seed: int, index: int) -> Patient:
    """Patient number `index` of a seed, whoever else there is.

    >>> patient = simulate_patient(0, 3)
    >>> patient.name, len(patient.visits) >= 2
    ('sim-000003', True)
    """
    draws = Draws(seed, index, 0)
    health = draws.weighted(HEALTH_WEIGHTS)
    view = "AP" if draws.chance(AP_SHARE[health]) else "PA"
    count = VISIT_COUNTS[draws.weighted(VISIT_WEIGHTS)]
    day = FIRST_DAY + timedelta(days=draws.below(START_SPAN))
    hidden = tuple(
        begin(draws, kind, onset=1) for kind in KINDS.values() if draws.chance(kind.rates[health] / 1000)
    )
    visits = [Visit(1, day, _reported(draws, hidden))]
    for number in range(2, count + 1):
        gap = tuple(GAPS)[draws.weighted([weights[health] for _, weights in GAPS.values()])]
        low, high = GAPS[gap][0]
        day += timedelta(days=low + draws.below(high - low))
        hidden = _next_state(draws, health, gap, hidden, number)
        visits.append(Visit(number, day, _reported(draws, hidden)))
    return Patient(index, health, view, tuple(visits))


def begin(draws: Draws, kind: Kind, *, onset: int, course: Course = "") -> Finding:
    """A finding of this kind as it first shows itself.

    What is on both sides lies at the bases, the apices, the hila or nowhere in particular.
    """
    side: Side = draws.pick(kind.sides) if kind.sides else ""
    severity: Severity = SEVERITIES[draws.weighted(SEVERITY_WEIGHTS)] if kind.graded else ""
    place = draws.pick(kind.places) if kind.places else ""
    if side == "bilateral" and place not in ("basilar", "apical", "perihilar"):
        place = ""
    return Finding(kind.name, side, severity, place, onset, course)


def _next_state(
    draws: Draws, health: int, gap: str, hidden: tuple[Finding, ...], number: int
) -> tuple[Finding, ...]:
    """The hidden state one visit later: what was there moves on, and new things begin."""
    old = {finding.kind: finding for finding in hidden if finding.present}
    later = []
    for kind in KINDS.values():
        share = CHRONIC_ONSET[gap] if kind.group == "chronic" else ONSET[gap]
        if kind.name in old:
            later.append(_evolve(draws, kind, gap, old[kind.name]))
        elif draws.chance(share * kind.rates[health] / 1000):
            later.append(begin(draws, kind, onset=number, course="new"))
    return tuple(later)


def _evolve(draws: Draws, kind: Kind, gap: str, finding: Finding) -> Finding:
    """What has become of a finding."""
    if kind.group == "device":  # it is taken out, moved, or stays as it was
        if draws.chance(FAREWELL[gap]):
            return replace(finding, course="resolved")
        if draws.chance(MOVES):
            others = [place for place in kind.places if place != finding.place]
            return replace(finding, place=draws.pick(others), course="moved")
        return replace(finding, course="stable")
    if kind.group == "chronic":
        grows = kind.graded and draws.chance(CHRONIC_WORSENS[gap])
        return regrade(finding, "worse" if grows else "stable")
    course = ACUTE_COURSES[draws.weighted(COURSE_OF_ACUTE[gap])]
    if not kind.graded and course in ("improved", "worse"):
        course = "stable"
    return regrade(finding, course)


def regrade(finding: Finding, course: Course) -> Finding:
    """The finding after this course, one grade up or down where there is one.

    >>> regrade(Finding("cardiomegaly", severity="mild"), "worse").severity
    'moderate'
    """
    step = {"worse": 1, "improved": -1}.get(course, 0)
    if not finding.severity or not step:
        return replace(finding, course=course)
    grade = SEVERITIES.index(finding.severity) + step
    return replace(finding, severity=SEVERITIES[min(max(grade, 0), 2)], course=course)


def _reported(draws: Draws, hidden: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The part of the hidden state that is reported on this visit."""
    reported = []
    for finding in hidden:
        incidental = KINDS[finding.kind].incidental and not finding.changed
        if draws.chance(RESOLUTION_SAID if not finding.present else INCIDENTAL_SAID if incidental else 1.0):
            reported.append(finding)
    return tuple(reported)
