"""The simulated generator: K drafts of a visit, with their errors by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tabon.data.simulate.catalogue import KINDS
from tabon.data.simulate.draws import Draws
from tabon.data.simulate.evidence import RATES, Evidence, Look
from tabon.data.simulate.patients import Visit
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
    true, told = ({finding.kind: finding for finding in findings} for findings in (truth, said))
    there, claimed = ({kind for kind in by if by[kind].present} for by in (true, told))
    found = set(manners)
    for kind in there - claimed:
        found.add("dropped chronic finding" if KINDS[kind].group == "chronic" else "missed finding")
    if claimed - there:
        found.add("hallucinated finding")
    for kind in there & claimed:
        found |= {"wrong side"} if told[kind].side != true[kind].side else set()
        found |= {"wrong severity"} if told[kind].severity != true[kind].severity else set()
    if any(told[kind].course not in ("", true[kind].course) for kind in true.keys() & told.keys()):
        found.add("false change word")
    return tuple(error for error in ERRORS if error in found)
