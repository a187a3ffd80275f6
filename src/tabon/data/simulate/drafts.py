"""The simulated generator: K drafts of a visit, with their errors by name.

A generator sees the truth through noise that its drafts share. Every doubt is a number in [0, 1),
drawn once for the visit. A draft shares it with the others most of the time and else draws its own,
so a rate stays what it is while the errors of one visit go together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace

from tabon.data.simulate.patients import (
    HEALTH,
    KINDS,
    SEVERITIES,
    Course,
    Finding,
    Severity,
    Side,
    Visit,
    begin,
    facts,
)
from tabon.data.simulate.phrases import phrase_book
from tabon.data.simulate.report_text import (
    MACHINE,
    Reader,
    Voice,
    Writing,
    draw_reader,
    polish,
    spoken,
    write_report,
)
from tabon.data.simulate.settings import Draws, Prompt, SimulationSettings

SHARED = 0.7  # how often a draft takes the visit's doubt rather than its own
PHANTOMS = (1.0, 0.35)  # how likely the first and the second imagined finding are, over the rate
EASE = {"": 1.0, "mild": 1.25, "moderate": 0.75, "severe": 0.35}  # what is mild is missed more easily
SILENT = 0.4  # how often a generator that is unsure of a change says nothing of it
STABLE_CHANGED = 0.3  # false words about a stable finding, over those about a changed one
GUESSED = 0.3  # change words without a prior, over the rate of false ones
NEW_PHANTOM = 0.5  # how often an imagined finding is called new when a prior is there


@dataclass(frozen=True, slots=True)
class Rates:
    """How often each thing goes wrong at full noise."""

    missed: float
    dropped: float
    imagined: float
    side: float
    severity: float
    change: float
    stale: float = 0.0  # a finding of the prior that is gone and is carried forward
    copied: float = 0.0
    section: float = 0.0
    chatty: float = 0.0


RATES: dict[Prompt, Rates] = {
    "p1": Rates(0.50, 0.75, 0.45, 0.16, 0.40, 0.35, section=0.08, chatty=0.30),
    "p2": Rates(0.46, 0.65, 0.40, 0.16, 0.38, 0.35, section=0.05, chatty=0.06),
    "p3": Rates(0.38, 0.35, 0.32, 0.10, 0.32, 0.45, stale=0.35, copied=0.10, section=0.06, chatty=0.14),
}


@dataclass(frozen=True, slots=True)
class Doubt:
    """What may go wrong with one finding, by the visit's own noise."""

    missed: float
    side: float
    severity: float
    change: float
    which: float  # decides among wrong answers


@dataclass(frozen=True, slots=True)
class Evidence:
    """A visit as its image shows it to a generator."""

    truth: tuple[Finding, ...]
    doubts: tuple[Doubt, ...]  # one for each finding of the truth
    phantoms: tuple[tuple[Finding, float], ...]
    stale: tuple[tuple[Finding, float], ...]  # of the prior, gone now


def gather(draws: Draws, prior: Visit, current: Visit, health: int) -> Evidence:
    """Draw the doubts that all drafts of a visit share."""
    known = {finding.kind for finding in current.findings}
    doubts = tuple(Doubt(*(draws.unit() for _ in fields(Doubt))) for _ in current.findings)
    kinds = [kind for kind in KINDS.values() if kind.group != "device"]
    ill = min(health + 1, len(HEALTH) - 1)  # imagined findings look like those of the ill: commoner, likelier
    phantoms = []
    for _ in PHANTOMS:
        kind = kinds[draws.weighted([kind.rates[ill] for kind in kinds])]
        phantoms.append((begin(draws, kind, onset=current.number), draws.unit()))
    gone = (finding for finding in prior.findings if finding.present and finding.kind not in known)
    stale = tuple((replace(finding, course="stable"), draws.unit()) for finding in gone)
    return Evidence(current.findings, doubts, tuple(phantoms), stale)


@dataclass(frozen=True, slots=True)
class Look:
    """One draft's look at the evidence."""

    draws: Draws
    rates: Rates
    noise: float
    prior: bool  # whether the prior report is in sight

    def errs(self, doubt: float, rate: float) -> bool:
        """Whether a thing that goes wrong at this rate goes wrong here."""
        own = self.draws.unit()
        return (doubt if self.draws.chance(SHARED) else own) < rate * self.noise

    def see(self, evidence: Evidence) -> tuple[Finding, ...]:
        """What this draft takes to be true, in the order of the catalogue."""
        pairs = zip(evidence.truth, evidence.doubts, strict=True)
        seen = {finding.kind: finding for pair in pairs if (finding := self.regard(*pair))}
        for finding in self.imagine(evidence):
            seen.setdefault(finding.kind, finding)
        return tuple(seen[kind] for kind in KINDS if kind in seen)

    def regard(self, finding: Finding, doubt: Doubt) -> Finding | None:
        """A true finding as this draft sees it, or nothing when it is missed."""
        chronic = KINDS[finding.kind].group == "chronic"
        rate = self.rates.dropped if chronic else self.rates.missed
        unseen = not finding.present and not self.prior
        if self.errs(doubt.missed, rate * EASE[finding.severity]) or unseen:
            return None
        side, severity = finding.side, finding.severity
        if side and self.errs(doubt.side, self.rates.side):
            side = other_side(side, doubt.which)
        if severity and self.errs(doubt.severity, self.rates.severity):
            severity = other_severity(severity, doubt.which)
        return replace(finding, side=side, severity=severity, course=self.judge(finding, doubt))

    def judge(self, finding: Finding, doubt: Doubt) -> Course:
        """The change word, right or wrong; without a prior mostly none."""
        if not self.prior:
            guesses = self.errs(doubt.change, self.rates.change * GUESSED)
            return other_course(finding, doubt.which) if guesses else ""
        rate = self.rates.change * (1.0 if finding.changed else STABLE_CHANGED)
        if not self.errs(doubt.change, rate):
            return finding.course
        silent = finding.present and self.draws.chance(SILENT)
        return "" if silent else other_course(finding, doubt.which)

    def imagine(self, evidence: Evidence) -> list[Finding]:
        """Findings that are not there: imagined, or carried forward from the prior."""
        known = {finding.kind for finding in evidence.truth}
        weights = zip(evidence.phantoms, PHANTOMS, strict=True)
        phantoms = [
            replace(finding, course="new" if self.prior and self.draws.chance(NEW_PHANTOM) else "")
            for (finding, doubt), weight in weights
            if self.errs(doubt, self.rates.imagined * weight) and finding.kind not in known
        ]
        return [
            *(finding for finding, doubt in evidence.stale if self.errs(doubt, self.rates.stale)),
            *phantoms,
        ]


def other_side(side: Side, which: float) -> Side:
    """A wrong side: the opposite one, or one of two.

    >>> other_side("left", 0.3), other_side("bilateral", 0.3)
    ('right', 'left')
    """
    if side == "bilateral":
        return "left" if which < 0.5 else "right"  # noqa: PLR2004
    return "right" if side == "left" else "left"


def other_severity(severity: Severity, which: float) -> Severity:
    """A wrong severity, one grade off.

    >>> other_severity("mild", 0.9), other_severity("moderate", 0.9)
    ('moderate', 'severe')
    """
    wrong: dict[Severity, tuple[Severity, ...]] = {"moderate": ("mild", "severe")}
    options = wrong.get(severity, (SEVERITIES[1],))
    return options[int(which * len(options))]


def other_course(finding: Finding, which: float) -> Course:
    """A wrong change word that fits the finding.

    >>> other_course(Finding("lung nodule", "left", course="new"), 0.5)
    'stable'
    """
    if not finding.present:
        return "stable"
    words: tuple[Course, ...] = ("stable", "new", "improved", "worse")
    options = [word for word in words[: 4 if finding.severity else 2] if word != finding.course]
    return options[int(which * len(options))]


ERRORS = (
    "missed finding",
    "hallucinated finding",
    "wrong side",
    "wrong severity",
    "dropped chronic finding",
    "false change word",
    "copied prior",
    "missing section",
    "chatty preamble",
)
ECHO = 0.35  # how often a draft that sees the prior takes a sentence from it
PRIOR_STYLE = 0.4  # how often such a draft also takes its style
NO_IMPRESSION = 0.7  # of drafts with one section, how many lack the impression
MARKDOWN = 0.5  # of chatty drafts, how many put their headings in bold


@dataclass(frozen=True, slots=True)
class Exam:
    """A visit with its report and its reader."""

    visit: Visit
    reader: Reader
    writing: Writing


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft as the generator returns it, with what is known of it."""

    text: str
    said: tuple[Finding, ...]
    errors: tuple[str, ...]

    def record(self) -> dict[str, object]:
        """The draft as a candidate of a query."""
        return {"text": self.text, "errors": list(self.errors), "state": facts(self.said)}


def write_draft(evidence: Evidence, prior: Exam, draws: Draws, settings: SimulationSettings) -> Draft:
    """One draft of a visit, by a generator that may know the report of the visit before."""
    rates, noise = RATES[settings.prompt], settings.noise
    if draws.chance(rates.copied * noise):
        said = prior.writing.said()
        return Draft(layout(prior.writing.record()), said, label(evidence.truth, said, "copied prior"))
    look = Look(draws, rates, noise, prior=settings.prompt == "p3")
    writing = _write(spoken(look.see(evidence), draws), prior, draws, settings)
    whole, chatty = draws.chance(1 - rates.section * noise), draws.chance(rates.chatty * noise)
    if not whole and draws.chance(NO_IMPRESSION):
        writing = replace(writing, impression=())
    elif not whole:
        writing = replace(writing, findings=())
    said = writing.said()
    manners = ["missing section"] * (not whole) + ["chatty preamble"] * chatty
    text = chat(writing.record(), draws) if chatty else layout(writing.record())
    return Draft(text, said, label(evidence.truth, said, *manners))


def _write(seen: tuple[Finding, ...], prior: Exam, draws: Draws, settings: SimulationSettings) -> Writing:
    """Put what was seen into words, in the style that the prompt brings."""
    if settings.prompt == "p1":
        return write_report(seen, MACHINE, draws)
    if settings.prompt == "p2":
        return write_report(seen, draw_reader(draws, settings.seed), draws)
    reader = prior.reader if draws.chance(PRIOR_STYLE) else MACHINE
    return write_report(seen, reader, draws, echoes=prior.writing.echoes(), echo=ECHO)


def layout(report: Mapping[str, str], *, bold: bool = False) -> str:
    """The text of a draft; a section that is empty has no heading.

    >>> layout({"findings": "Clear lungs.", "impression": ""})
    'Findings: Clear lungs.'
    """
    mark, gap = ("**", "\n\n") if bold else ("", "\n")
    return gap.join(f"{mark}{name.capitalize()}:{mark} {text}" for name, text in report.items() if text)


def chat(report: Mapping[str, str], draws: Draws) -> str:
    """The text of a draft with the small talk of a chat model around it."""
    voice, book = Voice(MACHINE, draws, loyalty=0.0), phrase_book().chat
    body = layout(report, bold=draws.chance(MARKDOWN))
    pieces = (polish(voice.speak(book["preamble"])), body, polish(voice.speak(book["closing"])))
    return "\n\n".join(piece for piece in pieces if piece)


def label(truth: Iterable[Finding], said: Iterable[Finding], *manners: str) -> tuple[str, ...]:
    """Name the errors of a draft, in the order of `ERRORS`.

    The clinical ones are found by comparing what is said with what is true, so
    a label is never wrong, however the error came about.

    >>> effusion = Finding("pleural effusion", "left", "mild", course="new")
    >>> label([effusion], [replace(effusion, side="right", course="stable")])
    ('wrong side', 'false change word')
    """
    true, stated = ({finding.kind: finding for finding in findings} for findings in (truth, said))
    there, claimed = ({kind for kind in by if by[kind].present} for by in (true, stated))
    found = set(manners)
    for kind in there - claimed:
        found.add("dropped chronic finding" if KINDS[kind].group == "chronic" else "missed finding")
    if claimed - there:
        found.add("hallucinated finding")
    for kind in there & claimed:
        found |= {"wrong side"} if stated[kind].side != true[kind].side else set()
        found |= {"wrong severity"} if stated[kind].severity != true[kind].severity else set()
    if any(stated[kind].course not in ("", true[kind].course) for kind in true.keys() & stated.keys()):
        found.add("false change word")
    return tuple(error for error in ERRORS if error in found)
