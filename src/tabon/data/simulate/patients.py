"""Patients, their visits, and how a hidden state moves from visit to visit."""

from dataclasses import dataclass, replace
from datetime import date, timedelta

from tabon.data.simulate.findings import (
    HEALTH_WEIGHTS,
    KINDS,
    SEVERITIES,
    Course,
    Finding,
    Kind,
    Severity,
    Side,
)
from tabon.data.simulate.settings import Draws

VISIT_COUNTS = (2, 3, 4, 5, 6)
VISIT_WEIGHTS = (882, 85, 21, 8, 4)  # mean 2.167; the paper's cohort has 42,237 / 19,492
FIRST_DAY = date(2001, 1, 1)
START_SPAN = 2000  # first visits fall within this many days of FIRST_DAY
AP_SHARE = (0.08, 0.25, 0.75)  # by health; the others are PA
SEEN = 0.85  # how often an incidental finding is worth a word
TOLD = 0.6  # how often a resolution is worth a word
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
    if kind.group == "device":
        return _evolve_device(draws, kind, gap, finding)
    if kind.group == "chronic":
        grows = kind.graded and draws.chance(CHRONIC_WORSENS[gap])
        return regrade(finding, "worse" if grows else "stable")
    course = ACUTE_COURSES[draws.weighted(COURSE_OF_ACUTE[gap])]
    if not kind.graded and course in ("improved", "worse"):
        course = "stable"
    return regrade(finding, course)


def _evolve_device(draws: Draws, kind: Kind, gap: str, finding: Finding) -> Finding:
    """A device is taken out, moved, or stays as it was."""
    if draws.chance(FAREWELL[gap]):
        return replace(finding, course="resolved")
    if draws.chance(MOVES):
        others = [place for place in kind.places if place != finding.place]
        return replace(finding, place=draws.pick(others), course="moved")
    return replace(finding, course="stable")


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
    """The part of the hidden state that is worth a word on this visit."""
    reported = []
    for finding in hidden:
        incidental = KINDS[finding.kind].incidental and not finding.changed
        if draws.chance(TOLD if not finding.present else SEEN if incidental else 1.0):
            reported.append(finding)
    return tuple(reported)
