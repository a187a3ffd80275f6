"""The simulated generator: K drafts of a visit, with their errors by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tabon.data.simulate.catalogue import KINDS
from tabon.data.simulate.draws import Draws
from tabon.data.simulate.evidence import RATES, Evidence, Look
from tabon.data.simulate.phrases import phrase_book
from tabon.data.simulate.report_text import MACHINE, Reader, Voice, Writing, draw_reader, polish, spoken
from tabon.data.simulate.sections import write_report
from tabon.data.simulate.settings import SimulationSettings
from tabon.data.simulate.state import Finding, facts

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
class Prior:
    """What a generator may know of the visit before."""

    writing: Writing
    reader: Reader


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft as the generator returns it, with what is known of it."""

    text: str
    said: tuple[Finding, ...]
    errors: tuple[str, ...]

    def record(self) -> dict[str, object]:
        """The draft as a candidate of a query."""
        return {"text": self.text, "errors": list(self.errors), "state": facts(self.said)}


def write_draft(evidence: Evidence, prior: Prior, draws: Draws, settings: SimulationSettings) -> Draft:
    """One draft of a visit."""
    rates, noise = RATES[settings.prompt], settings.noise
    if draws.chance(rates.copied * noise):
        said = prior.writing.said()
        return Draft(layout(prior.writing.record()), said, label(evidence.truth, said, "copied prior"))
    look = Look(draws, rates, noise, prior=settings.prompt == "p3")
    writing = _write(spoken(look.see(evidence), draws), prior, draws, settings)
    whole, chatty = draws.chance(1 - rates.section * noise), draws.chance(rates.chatty * noise)
    writing = writing if whole else _drop_section(writing, draws)
    said = writing.said()
    manners = ["missing section"] * (not whole) + ["chatty preamble"] * chatty
    text = chat(writing.record(), draws) if chatty else layout(writing.record())
    return Draft(text, said, label(evidence.truth, said, *manners))


def _write(seen: tuple[Finding, ...], prior: Prior, draws: Draws, settings: SimulationSettings) -> Writing:
    """Put what was seen into words, in the style that the prompt brings."""
    if settings.prompt == "p1":
        return write_report(seen, MACHINE, draws)
    if settings.prompt == "p2":
        return write_report(seen, draw_reader(draws, settings.seed), draws)
    reader = prior.reader if draws.chance(PRIOR_STYLE) else MACHINE
    return write_report(seen, reader, draws, echoes=prior.writing.echoes(), echo=ECHO)


def _drop_section(writing: Writing, draws: Draws) -> Writing:
    """The draft without one of its sections."""
    if draws.chance(NO_IMPRESSION):
        return replace(writing, impression=())
    return replace(writing, findings=())


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
    true, told = _by_kind(truth), _by_kind(said)
    found = {*manners, *_absences(true, told), *_details(true, told)}
    return tuple(error for error in ERRORS if error in found)


def _by_kind(findings: Iterable[Finding]) -> dict[str, Finding]:
    """The findings by kind."""
    return {finding.kind: finding for finding in findings}


def _present(findings: Mapping[str, Finding]) -> set[str]:
    """The kinds that are there."""
    return {kind for kind, finding in findings.items() if finding.present}


def _absences(true: Mapping[str, Finding], told: Mapping[str, Finding]) -> set[str]:
    """Errors of presence: what is left out, what is made up."""
    missing = _present(true) - _present(told)
    left_out = {
        "dropped chronic finding" if KINDS[kind].group == "chronic" else "missed finding" for kind in missing
    }
    made_up = _present(told) - _present(true)
    return left_out | ({"hallucinated finding"} if made_up else set())


def _details(true: Mapping[str, Finding], told: Mapping[str, Finding]) -> set[str]:
    """Errors in what is said of a finding: side, severity, change."""
    errors = set()
    for kind in true.keys() & told.keys():
        truth, said = true[kind], told[kind]
        if truth.present and said.present:
            errors |= {"wrong side"} if said.side != truth.side else set()
            errors |= {"wrong severity"} if said.severity != truth.severity else set()
        errors |= {"false change word"} if said.course not in ("", truth.course) else set()
    return errors
